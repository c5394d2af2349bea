"""The big streams are what they promise, and on them each of the paper's queries has something to say."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
import pytest

import viewlet
from tests.oracle.oracle import DuckOracle
from tests.unit.test_workloads import relations
from viewlet.errors import Error
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH, PaperQuery
from viewlet.workloads.streams import NATION

Maker = Callable[..., BulkStream]
GROWING: list[Maker] = [bulk.order_book, bulk.tpch]
FULL_SIZE: dict[Maker, int] = {bulk.deep_book: 1, bulk.customers_and_orders: 2}  # so many events load a live row
STREAMS = pytest.mark.parametrize("make", [*GROWING, *FULL_SIZE])


def small(make: Maker, seed: int = 1, events: int = 3000) -> BulkStream:
    if make in FULL_SIZE:
        return make(seed, 100, events - 100 * FULL_SIZE[make])
    return make(seed, events, live=200) if make is bulk.order_book else make(seed, events, scale=0.001, live=200)


@STREAMS
def test_the_seed_decides_the_stream(make: Maker) -> None:
    first, again, other = (list(small(make, seed).events()) for seed in (1, 1, 2))
    assert len(first) == 3000
    assert first == again != other


@STREAMS
def test_a_delete_repeats_a_row_that_is_there(make: Maker) -> None:
    live: Counter[object] = Counter()
    for op, name, row in small(make).events():
        live[name, row] += 1 if op == "+" else -1
        assert live[name, row] in (0, 1)


@pytest.mark.parametrize("events", [0, 1, 150, 200, 201, 230, 2000])
@pytest.mark.parametrize("make", GROWING)
def test_there_are_as_many_events_as_asked_for(make: Maker, events: int) -> None:
    stream = small(make, events=events)
    assert len(stream) == len(list(stream.events())) == events


def test_the_book_stays_near_its_size() -> None:
    stream = bulk.order_book(5, 40_000, live=1000)
    sizes = list(accumulate(int(op) for op in stream.ops))[2000:]
    assert 850 < min(sizes) <= max(sizes) < 1150
    assert {row[2] for _, _, row in stream.events()} == set(range(10))


@pytest.mark.parametrize("events", [0, 1, 2, 3, 4, 5, 500])
@pytest.mark.parametrize("make", FULL_SIZE)
def test_a_book_of_a_given_size_is_loaded_first_and_keeps_its_size(make: Maker, events: int) -> None:
    load = 50 * FULL_SIZE[make]
    stream = make(1, 50, events)
    sizes = list(accumulate(int(op) for op in stream.ops))
    assert len(stream) == load + events
    assert sizes[:load] == list(range(1, load + 1))
    assert set(sizes[load:]) <= {load - 1, load}


def test_hardly_two_orders_of_a_deep_book_are_alike() -> None:
    for table in bulk.deep_book(1, 20_000, 0).tables.values():
        for column in ("t", "volume", "price"):
            assert len(table[column].unique()) > 0.9 * len(table), column


def test_a_customer_keeps_his_key_and_nation_when_his_balance_changes() -> None:
    customers = [row for _, name, row in small(bulk.customers_and_orders).events() if name == "customer"]
    assert len({row[0] for row in customers}) == len({row[:3] for row in customers}) == 100
    assert len({row[3] for row in customers}) > 500


def test_volumes_are_whole_and_prices_are_ticks() -> None:
    for table in bulk.order_book(1, 5000, live=300).tables.values():
        volume, ticks = table["volume"].to_numpy(), table["price"].to_numpy() * 20
        assert (volume == np.floor(volume)).all()
        assert volume.min() > 0
        assert np.abs(ticks - np.round(ticks)).max() < 1e-6


def test_active_orders_stay_near_their_number() -> None:
    stream = bulk.tpch(3, 30_000, scale=0.001, live=1000).only(["orders"])
    sizes = list(accumulate(int(op) for op in stream.ops))[1200:]
    assert 850 < min(sizes) <= max(sizes) < 1150


@pytest.mark.parametrize("form", ["union", "structs"])
@STREAMS
def test_batches_hold_the_same_events(make: Maker, form: bulk.Form) -> None:
    stream = small(make)
    events = []
    for batch in stream.batches(700, form):
        batch.validate(full=True)
        for event in batch.to_pylist():
            row = event["row"] if form == "union" else event[event["relation"]]
            events.append(("+" if event["op"] == 1 else "-", event["relation"], tuple(row.values())))
    assert events == list(stream.events())


@STREAMS
def test_runs_hold_the_same_events(make: Maker) -> None:
    stream = small(make)
    runs = [(op, name, tuple(row.values())) for op, name, table in stream.runs() for row in table.to_pylist()]
    assert runs == list(stream.events(chunk=999))
    kinds = [(op, name) for op, name, _ in stream.runs()]
    assert all(kind != following for kind, following in pairwise(kinds))


def test_a_database_takes_the_batches() -> None:
    stream = bulk.order_book(4, 500, live=50, sides=("bids",))
    by_batch, by_event = viewlet.connect(), viewlet.connect()
    for db in (by_batch, by_event):
        db.execute(PAPER_QUERIES["bsv"].script())
    for batch in stream.batches(100):
        by_batch.apply(batch)
    by_event.apply(stream.events())
    assert by_batch.view("bsv").weights() == by_event.view("bsv").weights() != Counter()


def test_only_keeps_order_and_rows() -> None:
    stream = small(bulk.tpch)
    wanted = ("lineitem", "part")
    assert list(stream.only(wanted).events()) == [event for event in stream.events() if event[1] in wanted]


def test_too_small_a_scale_is_refused() -> None:
    with pytest.raises(Error, match="suppliers"):
        bulk.tpch(1, 10, scale=0.0001)


@pytest.mark.parametrize("query", PAPER_QUERIES.values(), ids=lambda q: q.name)
def test_the_answer_is_there_and_changes(query: PaperQuery) -> None:
    make: Maker = bulk.order_book if query.schema == FINANCE else bulk.tpch
    events = 2000 if make is bulk.order_book else 16_000
    stream = make(1, events, live=500) if make is bulk.order_book else make(1, events, scale=0.005, live=1000)
    answers = {
        str(sorted(_answer(query, stream.between(0, stop)))) for stop in range(events // 2, events, events // 16)
    }
    assert "[]" not in answers
    assert len(answers) >= (3 if query.name != "q11" else 1)  # Q11's relations are complete by then


@pytest.mark.parametrize("live", [100, 2000])
@pytest.mark.parametrize("name", ["vwap", "mst", "psp", "axf", "bsp", "q22"])
def test_the_inequality_queries_have_an_answer_at_every_size(name: str, live: int) -> None:
    query = PAPER_QUERIES[name]
    make: Maker = bulk.deep_book if query.schema == FINANCE else bulk.customers_and_orders
    stream = make(1, live, 40)
    answers = [_answer(query, stream.between(0, len(stream) - left)) for left in (0, 40)]
    assert answers[0] != answers[1]
    assert all(rows and None not in rows[0] for rows in answers)


def _answer(query: PaperQuery, stream: BulkStream) -> list[tuple[object, ...]]:
    """DuckDB's, on the rows that are left in the end."""
    oracle = DuckOracle(relations(query.schema))
    names = stream.relations
    for code, name in enumerate(names):
        mine = stream.codes == code
        weights = np.bincount(stream.places[mine], stream.ops[mine], len(stream.tables[name]))
        rows = stream.tables[name].filter(weights > 0)
        oracle.connection.register("arrived", rows)
        oracle.connection.execute(f"INSERT INTO {name} SELECT * FROM arrived")
    if query.schema == TPCH:
        oracle.load("nation", NATION)
    return oracle.rows(query.referee())


def test_without_numpy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.delitem(sys.modules, "viewlet.workloads.bulk")
    with pytest.raises(Error, match="pip install numpy"):
        importlib.import_module("viewlet.workloads.bulk")
