"""SSB and Nexmark: what their streams promise, and what is said of their queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import viewlet
from viewlet.rows.arrow import arrow_type
from viewlet.workloads import nexmark, ssb
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import WorkloadQuery


def small_ssb(seed: int) -> BulkStream:
    return ssb.stream(seed, 3000, scale=0.001, live=100)


def small_nexmark(seed: int) -> BulkStream:
    return nexmark.stream(seed, 3000, live=20)


STREAMS = pytest.mark.parametrize("make", [small_ssb, small_nexmark])
QUERIES = pytest.mark.parametrize(
    "query", [*ssb.SSB_QUERIES.values(), *nexmark.NEXMARK_QUERIES.values()], ids=lambda q: q.relations[0] + q.name
)


@STREAMS
def test_the_seed_decides_the_stream(make: Callable[[int], BulkStream]) -> None:
    first, again, other = (list(make(seed).events()) for seed in (1, 1, 2))
    assert len(first) == 3000
    assert first == again != other


@STREAMS
def test_a_delete_repeats_a_row_that_is_there(make: Callable[[int], BulkStream]) -> None:
    live: Counter[object] = Counter()
    for op, name, row in make(1).events():
        live[name, row] += 1 if op == "+" else -1
        assert live[name, row] in (0, 1)


@pytest.mark.parametrize("make", [lambda n: ssb.stream(1, n, live=5), lambda n: nexmark.stream(1, n, live=5)])
@pytest.mark.parametrize("events", [0, 1, 7, 60, 400])
def test_there_are_as_many_events_as_asked_for(make: Callable[[int], BulkStream], events: int) -> None:
    assert len(make(events)) == events


@pytest.mark.parametrize(("schema", "make"), [(ssb.SSB, small_ssb), (nexmark.NEXMARK, small_nexmark)])
def test_the_schemas_declare_what_the_streams_bring(schema: str, make: Callable[[int], BulkStream]) -> None:
    declared = {
        r.name: [(c.name, arrow_type(c.type)) for c in r.columns]
        for r in viewlet.compile(schema).relations
        if not r.static
    }
    brought = {name: list(zip(t.column_names, t.schema.types, strict=True)) for name, t in make(1).tables.items()}
    assert brought == declared


@QUERIES
def test_a_query_reads_what_it_says(query: WorkloadQuery) -> None:
    """So that a stream may be cut down to it."""
    result = viewlet.compile(query.script())
    read = {trigger.event.relation for trigger in result.triggers if trigger.statements}
    assert read == {r.name for r in result.relations if r.name in query.relations and not r.static}


# -- the star schema ---------------------------------------------------------------------------------------------------


def test_the_star_schema_has_thirteen_queries() -> None:
    flights = Counter(name[:2] for name in ssb.SSB_QUERIES)
    assert flights == {"q1": 3, "q2": 3, "q3": 4, "q4": 3}


def test_lines_are_priced_and_dated() -> None:
    lines = small_ssb(1).tables["lineorder"]
    columns = {name: lines[name].to_numpy() for name in lines.column_names}
    price, discount = columns["lo_extendedprice"].astype(np.int64), columns["lo_discount"]
    assert (columns["lo_revenue"] == price * (100 - discount) // 100).all()
    assert set(columns["lo_orderdate"]) <= {row[0] for row in ssb.DATE}
    orders = set(zip(columns["lo_orderkey"], columns["lo_orderdate"], columns["lo_custkey"], strict=True))
    assert len(orders) == len(set(columns["lo_orderkey"])), "an order has one date and one customer"


def test_the_calendar() -> None:
    assert len(ssb.DATE) == 2557
    assert ssb.DATE[0] == (19920101, 1992, 199201, "Jan1992", 1)
    assert [row[0] for row in ssb.DATE if row[1] == 1994 and row[4] == 6] == list(range(19940205, 19940212))


def test_live_orders_stay_near_their_number() -> None:
    stream = ssb.stream(1, 20_000, scale=0.001, live=300).only(["lineorder"])
    lines = np.cumsum(stream.ops, dtype=np.int64)[2000:]
    assert 4 * 300 * 0.8 < lines.min() <= lines.max() < 4 * 300 * 1.2


# -- the auction -------------------------------------------------------------------------------------------------------


def test_each_standard_query_is_treated() -> None:
    assert list(nexmark.TREATMENT) == [f"q{n}" for n in range(23)]
    assert all(bool(treated.how) == (treated.kind != "kept") for treated in nexmark.TREATMENT.values())
    assert list(nexmark.NEXMARK_QUERIES) == [name for name, t in nexmark.TREATMENT.items() if t.kind != "refused"]


def test_arrivals_and_hot_ones_are_nexmarks() -> None:
    stream = nexmark.stream(1, 40_000, live=100)
    came = stream.ops > 0
    counts = np.bincount(stream.codes[came]) / np.count_nonzero(came)
    assert counts == pytest.approx([1 / 50, 3 / 50, 46 / 50], abs=0.01)
    bids = stream.tables["bid"]
    for column, least in (("auction", 0.45), ("bidder", 0.7)):
        hot = np.count_nonzero((bids[column].to_numpy() - 1000) % 100 == 0) / len(bids)
        assert least < hot < least + 0.1, column
    usual = {channel for channel, _ in nexmark.SIDE_INPUT}
    assert np.isin(bids["channel"].to_numpy(), list(usual)).mean() == pytest.approx(0.5, abs=0.02)


def test_bids_are_on_auctions_that_are_there() -> None:
    open_, late, bids = set(), 0, 0
    expires: dict[object, object] = {}
    for op, name, row in small_nexmark(1).events():
        if name == "auction":
            (open_.add if op == "+" else open_.discard)(row[0])
            expires[row[0]] = row[5]
        elif name == "bid" and op == "+":
            assert row[0] in open_
            bids, late = bids + 1, late + (row[4] > expires[row[0]])  # type: ignore[operator]
    assert 0.1 < late / bids < 0.6, "some are too late to count"
