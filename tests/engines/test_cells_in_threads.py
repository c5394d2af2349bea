"""``connect(threads=N)``: cells in one process answer as one engine does, after every event and every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import THREADED, WAYS, Case, agree, cut
from tests.oracle.oracle import difference
from viewlet import Database
from viewlet.cells.routing import Hash
from viewlet.cells.whole_rows import plan_whole_rows
from viewlet.engines.native.build import find_compiler
from viewlet.sql import translate
from viewlet.threads import engine as threads_engine
from viewlet.threads.engine import ThreadsEngine
from viewlet.workloads.streams import Event

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
SCHEMA = """
CREATE STREAM orders (id INTEGER, customer VARCHAR, price DECIMAL(8,2), day DATE);
CREATE STREAM items (order_id BIGINT, part VARCHAR, quantity INTEGER NOT NULL);
CREATE TABLE parts (name VARCHAR NOT NULL, weight INTEGER NOT NULL);
"""
SELECTS = {
    "by_order": "SELECT o.id, sum(i.quantity) AS n, count(*) AS lines FROM orders o, items i "
    "WHERE o.id = i.order_id GROUP BY o.id",
    "by_part": "SELECT part, sum(quantity) AS n, count(*) AS lines FROM items GROUP BY part HAVING sum(quantity) > 3",
    "total": "SELECT count(*) AS n, sum(price) AS total, min(day) AS first FROM orders",
    "ends": "SELECT customer, max(price) AS most, min(id) AS least, count(*) AS n FROM orders GROUP BY customer",
    "waiting": "SELECT id, price FROM orders o WHERE NOT EXISTS (SELECT * FROM items i WHERE i.order_id = o.id)",
    "dearest": "SELECT id, customer, price FROM orders WHERE price IS NOT NULL "
    "ORDER BY price DESC, id, customer LIMIT 3",
    "in_order": "SELECT id, count(*) AS n FROM orders GROUP BY id ORDER BY n DESC, id",
    "weights": "SELECT i.order_id, sum(i.quantity * p.weight) AS weight FROM items i, parts p WHERE i.part = p.name "
    "GROUP BY i.order_id",
}
VIEWS = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in SELECTS.items())
STATIC = {"parts": [("bolt", 3), ("nut", 1), ("nut", 1)]}
DAYS = ("2024-02-29", "1969-12-31", None)


def events(seed: int, length: int) -> list[Event]:
    """Rows come, come again and go; NULL everywhere, and the views are empty now and then."""
    rng, there = Random(seed), list[tuple[str, tuple[Any, ...]]]()
    made = list[Event]()
    for number in range(length):
        leaving = 0.9 if number % 60 > 40 else 0.2
        if there and rng.random() < leaving:
            relation, row = there.pop(rng.randrange(len(there)))
            made.append(("-", relation, row))
            continue
        relation, row = _row(rng)
        there.append((relation, row))
        made.append(("+", relation, row))
    return made


def _row(rng: Random) -> tuple[str, tuple[Any, ...]]:
    key = rng.choice([None, -1, 0, 1, 2, 3, 4, 2**31 - 1])
    if rng.random() < 0.5:
        return "orders", (
            key,
            rng.choice(["ann", "bob", "", None]),
            rng.choice([None, "1.50", "-2.25"]),
            rng.choice(DAYS),
        )
    return "items", (key, rng.choice(["bolt", "nut", "é", None]), rng.randint(-2, 4))


CASE = Case(SCHEMA, VIEWS, SELECTS, events(7, 260), STATIC)


def opened(threads: int, script: str = SCHEMA + VIEWS, **options: Any) -> Database:
    database = viewlet.connect(threads=threads, wait_native=True, **options)
    database.execute(script)
    assert isinstance(database.engine, ThreadsEngine)
    assert len(database.engine.cells) == threads
    return database


def test_cells_agree_with_the_referee_after_every_event() -> None:
    opened(3).close()  # all of it is divided
    for watched in agree(CASE, THREADED).values():
        watched.check()


HOT = SCHEMA.replace("day DATE)", "day DATE) WITH (hot_id = 0.9, hot_customer = 0.9)").replace(
    "quantity INTEGER NOT NULL)", "quantity INTEGER NOT NULL) WITH (hot_order_id = 0.9, hot_part = 0.9)"
)


def _heated(event: Event) -> Event:
    """Most keys are 1, most customers "ann", most parts "bolt"."""
    op, relation, (key, name, *rest) = event
    common = {"ann": "ann", "bob": "ann", "bolt": "bolt", "nut": "bolt"}
    return op, relation, (1 if key in (0, 2, 3, 4) else key, common.get(name, name), *rest)


def test_rows_of_a_hot_key_are_in_all_cells_and_agree_with_the_referee_after_every_event() -> None:
    """A row that is deleted is found where it was put: all equal rows go by the same other column."""
    selects = {name: SELECTS[name] for name in ("by_part", "total", "ends", "weights")}
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    opened(3, HOT + views).close()  # all of it is divided
    routes = [route for copy in plan_whole_rows(translate(HOT + views), 3).copies for route in copy.routes]
    assert {route.column for route in routes if isinstance(route, Hash)} == {"day", "quantity"}
    case = Case(HOT, views, selects, [*map(_heated, events(8, 260))], STATIC)
    for watched in agree(case, [("3 threads", "optimized")]).values():
        watched.check()


TYPES = {
    "orders": [("id", pa.int32()), ("customer", pa.string()), ("price", pa.decimal128(8, 2)), ("day", pa.date32())],
    "items": [("order_id", pa.int64()), ("part", pa.dictionary(pa.int32(), pa.string())), ("quantity", pa.int32())],
}


def arrow_of(relation: str, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [_array(column, type_) for column, (_, type_) in zip(columns, TYPES[relation], strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _ in TYPES[relation]])


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    plain = pa.string() if pa.types.is_date(type_) or pa.types.is_decimal(type_) else type_
    if pa.types.is_dictionary(type_):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, plain).cast(type_)


def by_arrow(database: Database, batch: Sequence[Event]) -> None:
    for (op, relation), run in groupby(batch, key=lambda event: event[:2]):
        change = database.insert if op == "+" else database.delete
        change(relation, arrow_of(relation, [row for _, _, row in run]))


def by_arrow_events(database: Database, batch: Sequence[Event]) -> None:
    """One batch of all events, with a struct for each relation."""
    columns: dict[str, Any] = {
        "op": pa.array([1 if op == "+" else -1 for op, _, _ in batch], pa.int8()),
        "relation": pa.array([relation for _, relation, _ in batch], pa.string()),
    }
    for relation, types in TYPES.items():
        mine = [name == relation for _, name, _ in batch]
        places = pa.array([sum(mine[:i]) if own else None for i, own in enumerate(mine)], pa.int64())
        rows = [row for _, name, row in batch if name == relation]
        none = pa.nulls(len(batch), pa.struct(types))
        columns[relation] = arrow_of(relation, rows).to_struct_array().take(places) if rows else none
    database.apply(pa.record_batch(columns))


ALL_WAYS = (by_arrow, by_arrow_events, *(way for name, way in WAYS.items() if name != "net effect"))


@pytest.mark.parametrize("threads", [2, 3])
def test_batches_in_threads_and_who_listens_to_them(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What listeners are told comes to the rows, after each batch in any form; ``len`` and ``verify`` agree."""
    monkeypatch.setattr(threads_engine, "WORTH_A_THREAD", 4)
    database, referee, rng = opened(threads), CASE.referee(), Random(threads)
    database.insert("parts", STATIC["parts"])
    told: dict[str, Counter[Any]] = {name: database.view(name).weights() for name in SELECTS}
    for name, rows in told.items():
        database.view(name).subscribe(lambda change, rows=rows: rows.update({change[1]: change[0]}))
    for number, batch in enumerate(cut(CASE.events, rng, 24)):
        ALL_WAYS[number % len(ALL_WAYS)](database, batch)
        for op, relation, row in batch:
            referee.apply(op, relation, row)
        for name, select in SELECTS.items():
            view = database.view(name)
            assert not difference(view.rows(), expected := referee.rows(select)), (name, number)
            assert +told[name] == view.weights(), (name, number)
            assert len(view) == len(expected)
            assert number % 5 or database.verify(name) == []
    assert isinstance(database.engine, ThreadsEngine)
    assert database.view("by_order").get(id=77) is None


def test_a_view_keeps_its_order_and_its_groups() -> None:
    database = opened(3)
    database.insert("orders", [(n % 5, "ann", "1.00", "2024-01-01") for n in range(12)])
    assert database.view("in_order").rows() == [(0, 3), (1, 3), (2, 2), (3, 2), (4, 2)]
    assert database.view("in_order").first(2) == [(0, 3), (1, 3)]
    assert database.view("in_order").get(id=4) == (4, 2)
    assert database.view("ends").get(customer="ann") == ("ann", Decimal("1.00"), 0, 12)
    assert len(database.view("waiting").first(2)) == 2


# -- all or nothing ----------------------------------------------------------------------------------------------------

SUMS = """
CREATE STREAM r (k BIGINT NOT NULL, v BIGINT NOT NULL);
CREATE MATERIALIZED VIEW own AS SELECT k, CAST(sum(v) AS BIGINT) AS v, count(*) AS n FROM r GROUP BY k;
CREATE MATERIALIZED VIEW logs AS
    SELECT v % 10 AS digit, sum(v) AS v, count(*) AS n FROM r WHERE ln(v) >= 0 GROUP BY v % 10;
"""
MANY = 600  # so that threads run


@pytest.mark.parametrize("form", ["arrow", "rows", "events", "arrow events"])
def test_a_batch_that_one_cell_refuses_changes_no_other(form: str) -> None:
    database = opened(2, SUMS)
    database.insert("r", rows := [(k, 1 + k) for k in range(MANY)])
    before = {name: database.view(name).weights() for name in ("own", "logs")}
    heard: list[Any] = []
    database.view("own").subscribe(heard.append)
    for wrong, give in (([*rows[::-1], (7, 77)], database.delete), ([*rows, (5, 0), (8, -1)], database.insert)):
        with pytest.raises(viewlet.Error) as refused:
            give_as(form, database, give, wrong)
        assert "77" in str(refused.value) or "has no value" in str(refused.value)
        assert {name: database.view(name).weights() for name in before} == before
        assert sorted(database.table("r").rows()) == rows
        assert [database.verify(name) for name in before] == [[], []]
    assert heard == []
    give_as(form, database, database.delete, rows)
    assert database.view("own").rows() == database.view("logs").rows() == []
    assert len(heard) == MANY


def give_as(form: str, database: Database, give: Any, rows: list[tuple[int, int]]) -> None:
    if form == "arrow":
        keys, values = zip(*rows, strict=True)
        give("r", pa.record_batch({"k": pa.array(keys), "v": pa.array(values)}))
    elif form == "rows":
        give("r", rows)
    elif form == "arrow events":
        structs = pa.array([{"k": k, "v": v} for k, v in rows])
        ops = pa.array([-1 if give == database.delete else 1] * len(rows), pa.int8())
        database.apply(pa.record_batch({"op": ops, "relation": pa.array(["r"] * len(rows)), "r": structs}))
    else:
        database.apply([("-" if give == database.delete else "+", "r", row) for row in rows])


def test_the_first_row_that_no_cell_has_is_named_by_its_place() -> None:
    database = opened(3, SUMS)
    database.insert("r", [(k, 1) for k in range(20)])
    wrong = pa.record_batch({"k": [0, 1, 2, 30, 3, 31, 32], "v": [1] * 7})
    with pytest.raises(viewlet.DataError, match=r"r, row 3: \{'k': 30, 'v': 1\} is not there") as refused:
        database.delete("r", wrong)
    assert refused.value.row == 3


KEYS = """
CREATE STREAM a (k INTEGER, v INTEGER NOT NULL); CREATE STREAM b (k TIMESTAMP, v INTEGER NOT NULL);
CREATE STREAM c (k DATE, v INTEGER NOT NULL); CREATE STREAM d (k VARCHAR, v INTEGER NOT NULL);
CREATE STREAM e (k UINTEGER, v INTEGER NOT NULL);
"""
COUNTS = "".join(
    f"CREATE MATERIALIZED VIEW n_{name} AS SELECT k, count(*) AS n FROM {name} GROUP BY k;" for name in "abcde"
)
NUMBERS = [None, *range(-20, 100), 127]
TEXTS = [None, "", "a", "é", "a longer text than twelve bytes", *map(str, range(100))]
NATURALS = [None, *range(200)]
MOMENTS = pa.array([None if n is None else n * 86_400 * 37 for n in NUMBERS], pa.int64()).cast(pa.timestamp("s"))


@pytest.mark.parametrize(
    ("relation", "given"),
    [
        *(("a", pa.array(NUMBERS, t)) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        ("a", pa.array(range(100), pa.int32())),
        *(("e", pa.array(NATURALS, t)) for t in (pa.uint8(), pa.uint32(), pa.uint64(), pa.int64())),
        *(
            ("b", pa.array(MOMENTS, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(u)))
            for u in ("s", "ms", "us", "ns")
        ),
        ("c", pa.array(NUMBERS, pa.int32()).cast(pa.date32())),
        ("c", pa.array(NUMBERS, pa.int32()).cast(pa.date32()).cast(pa.date64())),
        *(("d", pa.array(TEXTS, t)) for t in (pa.string(), pa.large_string(), pa.string_view())),
        ("d", pa.array(TEXTS).dictionary_encode()),
    ],
)
def test_a_cell_finds_its_rows_in_columns_of_every_form(relation: str, given: pa.Array) -> None:
    """Machine code divides a batch as Python divides single rows: else rows that came could not go."""
    database = opened(3, KEYS + COUNTS)
    for column in (given, given.slice(3, 90)):
        database.insert(relation, pa.record_batch({"v": pa.array([1] * len(column), pa.int32()), "k": column}))
        assert isinstance(database.engine, ThreadsEngine)
        assert all(cell.total(relation) for cell in database.engine.cells)
        rows = database.table(relation).rows()
        assert len(rows) == len(column)
        database.delete(relation, rows)
        assert database.view(f"n_{relation}").rows() == []


# -- beside them -------------------------------------------------------------------------------------------------------


def test_a_directory_in_threads(tmp_path: Path) -> None:
    database = opened(2, SUMS, path=tmp_path)
    give_as("arrow", database, database.insert, [(k, 1 + k) for k in range(MANY)])
    database.delete("r", [(0, 1), (1, 2)])
    before = {name: database.view(name).weights() for name in ("own", "logs")}
    database.checkpoint()
    database.insert("r", (0, 1))
    database.delete("r", (0, 1))
    database.close()
    with viewlet.connect(tmp_path, threads=2, wait_native=True) as again:
        assert isinstance(again.engine, ThreadsEngine)
        assert {name: again.view(name).weights() for name in before} == before
        assert again.stats().relations["r"].rows == MANY - 2


def test_a_view_that_comes_later_starts_from_the_rows_of_all_cells() -> None:
    database = opened(2, SUMS)
    database.insert("r", [(k % 3, 1 + k) for k in range(10)])
    changes = database.view("own").changes()
    database.execute("CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n, max(v) AS v FROM r")
    assert database.view("late").rows() == [(10, 10)]
    assert database.sql("SELECT sum(v) FROM r").rows() == [(55,)]
    database.delete("r", (0, 10))
    assert database.view("late").rows() == [(9, 9)]
    assert list(changes) == [(-1, (0, 22, 4)), (1, (0, 12, 3))]


def test_what_cannot_be_divided_runs_in_one_thread_and_says_so() -> None:
    doubles = "CREATE MATERIALIZED VIEW roots AS SELECT sum(sqrt(v)) AS v FROM r;"
    database = viewlet.connect(threads=2, wait_native=True)
    database.execute(SUMS + doubles)
    assert "sums up DOUBLEs, which each cell would round" in database.explain().threads
    nested = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r WHERE r.v > (SELECT avg(s.v) FROM r s);"
    database = viewlet.connect(threads=2, wait_native=True)
    database.execute(SUMS + nested)
    assert database.tier == "native"
    assert not isinstance(database.engine, ThreadsEngine)
    assert "one cell" in database.explain().threads
    database.insert("r", [(1, 2), (1, 4)])
    assert database.view("v").rows() == [(1,)]


def test_threads_are_for_the_native_engine() -> None:
    with pytest.raises(viewlet.Error, match="threads=2: only the native engine runs in several"):
        viewlet.connect(threads=2, engine="python")
    with pytest.raises(viewlet.Error, match="threads=0: there are 1 to 64"):
        viewlet.connect(threads=0)
    with pytest.raises(viewlet.Error, match=r"threads=.2.: there are 1 to 64"):
        viewlet.connect(threads="2")  # type: ignore[arg-type]
