"""The native engine through the public API: every way in, every way out.

The truth is DuckDB for what SQL says, and the Python tier for how it is said: errors, types, schemas.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import opened_natively as native
from tests.oracle.oracle import difference
from tests.unit.test_bad_data import BATCHES, FIELDS, GOOD, VALUES, trade
from viewlet import Database
from viewlet.engines.native.emit import program as emit
from viewlet.engines.native.emit.sizes import SLOT_BYTES, entry_bytes, order_bytes, slice_bytes
from viewlet.workloads import bulk
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.streams import tpch

NATIVE = (("native", "optimized"),)

# -- rows in -----------------------------------------------------------------------------------------------------------

TRADES = """
CREATE STREAM trades (
  id BIGINT NOT NULL, sym VARCHAR NOT NULL, qty INTEGER, price DECIMAL(6,2), weight DOUBLE,
  d DATE, ts TIMESTAMP, ok BOOLEAN);
CREATE STREAM quotes (sym VARCHAR NOT NULL, bid DECIMAL(6,2));
CREATE TABLE symbols (sym VARCHAR NOT NULL, name VARCHAR);
CREATE MATERIALIZED VIEW volume AS
  SELECT t.sym, sum(t.qty) AS total, count(*) AS n FROM trades t, symbols s WHERE t.sym = s.sym GROUP BY t.sym;
CREATE MATERIALIZED VIEW every AS
  SELECT id, sym, qty, price, weight, d, ts, ok, count(*) AS n FROM trades
  GROUP BY id, sym, qty, price, weight, d, ts, ok;
CREATE MATERIALIZED VIEW quoted AS SELECT sym, sum(bid) AS bid FROM quotes GROUP BY sym;
"""
SOME = (
    GOOD,
    (2, "B", None, None, None, None, None, None),
    (
        3,
        "é\0",
        -(2**31),
        Decimal("-9999.99"),
        -0.0,
        dt.date(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        False,
    ),
    GOOD,
)
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("sym", pa.string()),
        ("qty", pa.int32()),
        ("price", pa.decimal128(6, 2)),
        ("weight", pa.float64()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("ok", pa.bool_()),
    ]
)


def as_dict(row: tuple[object, ...]) -> dict[str, object]:
    return dict(zip(FIELDS, row, strict=True))


def as_arrow(rows: tuple[tuple[object, ...], ...] = SOME) -> pa.Table:
    return pa.Table.from_pylist([as_dict(row) for row in rows], ARROW)


def as_pandas() -> pd.DataFrame:
    frame = as_arrow().to_pandas(types_mapper={pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    frame["d"] = frame["d"].astype(object)
    return frame.astype({"ts": object}).replace({pd.NaT: None})


def dictionaries() -> pa.Table:
    table = as_arrow()
    return table.set_column(1, "sym", table["sym"].dictionary_encode())


FORMS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: list(SOME),
    "lists": lambda: [list(row) for row in SOME],
    "dicts": lambda: [as_dict(row) for row in SOME],
    "dicts without NULLs": lambda: [{k: v for k, v in as_dict(row).items() if v is not None} for row in SOME],
    "a generator": lambda: (row for row in SOME),
    "a table": as_arrow,
    "a batch": lambda: as_arrow().combine_chunks().to_batches()[0],
    "a reader": lambda: as_arrow().to_reader(),
    "chunks": lambda: pa.concat_tables([as_arrow(SOME[:1]), as_arrow(SOME[1:3]), as_arrow(()), as_arrow(SOME[3:])]),
    "a slice": lambda: as_arrow((SOME[1], *SOME, SOME[2])).slice(1, len(SOME)),
    "a slice of a batch": lambda: as_arrow((SOME[1], *SOME)).combine_chunks().to_batches()[0].slice(1),
    "a dictionary": dictionaries,
    "columns in another order": lambda: as_arrow().select(list(reversed(FIELDS))),
    "wider types": lambda: as_arrow().set_column(2, "qty", as_arrow()["qty"].cast(pa.int64())),
    "large strings": lambda: as_arrow().set_column(1, "sym", as_arrow()["sym"].cast(pa.large_string())),
    "string views": lambda: as_arrow().set_column(1, "sym", as_arrow()["sym"].cast(pa.string_view())),
    "pandas": as_pandas,
    "polars": lambda: pl.from_arrow(as_arrow()),
}
CELLS = Counter(viewlet.rows.boundary.to_key(viewlet.compile(TRADES).relations[0], row) for row in SOME)


@pytest.fixture(scope="module")
def shared() -> Database:
    """Every test leaves it empty but for the symbols."""
    db = native(TRADES)
    db.insert("symbols", [("A", "Alpha"), ("B", None)])
    return db


@pytest.fixture
def db(shared: Database) -> Iterator[Database]:
    yield shared
    for relation in ("trades", "quotes"):
        assert shared.engine.table(relation) == {}, "the test left rows behind"


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_every_form(db: Database, form: str) -> None:
    db.insert("trades", FORMS[form]())
    assert db.engine.table("trades") == CELLS
    assert difference(db.view("volume").rows(), [("A", 20, 2), ("B", None, 1)]) is None
    assert db.view("every").weights() == Counter([(*SOME[0], 2), (*SOME[1], 1), (*SOME[2], 1)])
    db.delete("trades", FORMS[form]())
    assert db.view("every").rows() == []


@pytest.mark.parametrize("row", [GOOD, list(GOOD), as_dict(GOOD)], ids=["tuple", "list", "dict"])
def test_one_row(db: Database, row: Any) -> None:
    db.insert("trades", row)
    assert db.view("volume").rows() == [("A", 10, 1)]
    db.delete("trades", row)


EVENTS: list[tuple[Any, str, Any]] = [
    ("+", "trades", GOOD),
    ("+", "quotes", ("A", Decimal("1.25"))),
    (3, "trades", as_dict(SOME[1])),
    ("-", "trades", GOOD),
    (1, "quotes", ["B", None]),
    (-2, "trades", list(SOME[1])),
    ("+", "trades", SOME[2]),
    ("-", "quotes", ("A", Decimal("1.25"))),
    (0, "quotes", ("C", None)),
]
OPS = {"+": 1, "-": -1}


def named(relation: str, row: Any) -> dict[str, Any]:
    fields = FIELDS if relation == "trades" else ("sym", "bid")
    return row if isinstance(row, dict) else dict(zip(fields, row, strict=True))


def struct_events(relation_type: pa.DataType) -> pa.Table:
    """One struct column for each relation."""
    quotes = pa.struct([("sym", pa.string()), ("bid", pa.decimal128(6, 2))])
    columns = {"trades": pa.struct(list(ARROW)), "quotes": quotes}
    ops = pa.array([OPS.get(op, op) for op, _, _ in EVENTS], pa.int8())
    made = {
        name: pa.array([named(name, row) if relation == name else None for _, relation, row in EVENTS], type_)
        for name, type_ in columns.items()
    }
    return pa.table({"op": ops, "relation": pa.array([n for _, n, _ in EVENTS]).cast(relation_type), **made})


def union_events() -> pa.Table:
    """One dense union column of all relations' rows."""
    children = {
        name: [named(name, row) for _, relation, row in EVENTS if relation == name] for name in ("trades", "quotes")
    }
    structs = [
        pa.array(children["trades"], pa.struct(list(ARROW))),
        pa.array(children["quotes"], pa.struct([("sym", pa.string()), ("bid", pa.decimal128(6, 2))])),
    ]
    kinds = [("trades", "quotes").index(relation) for _, relation, _ in EVENTS]
    offsets = [kinds[:i].count(kind) for i, kind in enumerate(kinds)]
    rows = pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), pa.array(offsets, pa.int32()), structs, list(children))
    relation = pa.array([relation for _, relation, _ in EVENTS]).dictionary_encode()
    return pa.table(
        {"op": pa.array([OPS.get(op, op) for op, _, _ in EVENTS], pa.int8()), "relation": relation, "row": rows}
    )


BATCH_FORMS: dict[str, Callable[[], Any]] = {
    "a list": lambda: EVENTS,
    "a tuple": lambda: tuple(EVENTS),
    "a generator": lambda: (event for event in EVENTS),
    "lists": lambda: [list(event) for event in EVENTS],
    "structs": lambda: struct_events(pa.string()),
    "structs, dictionary": lambda: struct_events(pa.dictionary(pa.int32(), pa.string())),
    "structs, sliced": lambda: pa.concat_tables([struct_events(pa.string())] * 2).slice(len(EVENTS)),
    "union": union_events,
    "union as a batch": lambda: union_events().to_batches()[0],
}


@pytest.mark.parametrize("form", BATCH_FORMS)
def test_events_in_every_form(db: Database, form: str) -> None:
    db.apply(BATCH_FORMS[form]())
    assert db.view("volume").rows() == [("B", None, 1)]
    assert db.view("quoted").rows() == [("B", None)]
    assert sum(db.engine.table("trades").values()) == 2
    db.delete("quotes", ("B", None))
    db.delete("trades", [SOME[1], SOME[2]])


def test_events_for_a_static_table_among_others(db: Database) -> None:
    db.apply([("+", "trades", trade(sym="N")), ("+", "symbols", ("N", "New")), ("+", "quotes", ("N", None))])
    assert db.view("volume").rows() == [("N", 10, 1)]
    db.apply([("-", "quotes", ("N", None)), ("-", "symbols", ("N", "New")), ("-", "trades", trade(sym="N"))])
    assert db.view("volume").rows() == []


# -- bad rows ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python() -> Database:
    db = viewlet.connect(engine="python")
    db.execute(TRADES)
    db.insert("symbols", [("A", "Alpha"), ("B", None)])
    return db


def refusal(db: Database, act: Callable[[Database], object]) -> tuple[object, ...]:
    """What an update is refused with; it must have changed nothing."""
    before = db.engine.table("trades"), db.engine.table("symbols"), db.view("every").weights(), db.view("volume").rows()
    with pytest.raises(viewlet.Error) as caught:
        act(db)
    after = db.engine.table("trades"), db.engine.table("symbols"), db.view("every").weights(), db.view("volume").rows()
    assert after == before
    error = caught.value
    place = tuple(getattr(error, name, None) for name in ("relation", "row", "column"))
    return type(error), str(error), place


WILD = ("nan", "inf")


@pytest.mark.parametrize(("column", "value"), [(c, v) for c, v, _ in VALUES if str(v) not in WILD])
def test_bad_values_are_refused_as_by_python(db: Database, python: Database, column: str, value: object) -> None:
    bad = trade(**{column: value})
    ways: list[Callable[[Database], object]] = [
        lambda d: d.insert("trades", bad),
        lambda d: d.insert("trades", tuple(bad.values())),
        lambda d: d.insert("trades", [GOOD, list(bad.values())]),
        lambda d: d.delete("trades", [GOOD, tuple(bad.values())]),
        lambda d: d.apply([("+", "trades", GOOD), ("+", "trades", bad)]),
        lambda d: d.apply([("-", "trades", GOOD), ("-", "trades", bad)]),
    ]
    for each in (db, python):
        each.insert("trades", [GOOD, GOOD])
    for act in ways:
        assert refusal(db, act) == refusal(python, act)
    for each in (db, python):
        each.delete("trades", [GOOD, GOOD])


@pytest.mark.parametrize("case", BATCHES)
def test_bad_batches_are_refused_as_by_python(db: Database, python: Database, case: str) -> None:
    act, *_ = BATCHES[case]
    rows = [GOOD, GOOD, trade(id=2, sym="B", qty=None)]
    for each in (db, python):
        each.insert("trades", rows)
    told = [refusal(each, act) for each in (db, python)]
    for each in (db, python):
        each.delete("trades", rows)
    assert told[0] == told[1]


def test_a_batch_may_delete_what_it_inserted(db: Database) -> None:
    db.apply([("+", "trades", GOOD), ("-", "trades", GOOD), (2, "trades", GOOD), (-2, "trades", GOOD)])
    with pytest.raises(viewlet.DataError, match=r"trades, row 2: .*'A'.* is not there"):
        db.apply([("+", "trades", GOOD), ("-", "trades", GOOD), ("-", "trades", GOOD), ("+", "trades", GOOD)])


def test_a_listener_that_cannot_be_shown_a_view_undoes_the_update() -> None:
    """The sum fits, what is shown of it does not."""
    db = native(
        "CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) + 1 AS s, count(*) AS n FROM r;"
    )
    db.insert("r", (2**63 - 3,))
    changes = db.view("v").changes()
    for act in (
        lambda: db.insert("r", (2,)),
        lambda: db.insert("r", [(1,), (1,)]),
        lambda: db.insert("r", pa.table({"a": [1, 1]})),
        lambda: db.apply([("+", "r", (1,)), ("+", "r", (1,))]),
        lambda: db.apply(pa.table({"op": [1, 1], "relation": ["r", "r"], "r": [{"a": 1}, {"a": 1}]})),
    ):
        with pytest.raises(viewlet.OverflowError_, match=r"^v\.s: 9223372036854775808 no longer fits BIGINT"):
            act()
        assert db.view("v").rows() == [(2**63 - 2, 1)]
        assert db.engine.table("r") == {(2**63 - 3,): 1}
    assert list(changes) == []
    db.insert("r", (1,))
    assert list(changes) == [(-1, (2**63 - 2, 1)), (1, (2**63 - 1, 2))]


# -- views out ---------------------------------------------------------------------------------------------------------

SHOWN = """
CREATE STREAM r (k BIGINT NOT NULL, i INTEGER, p DECIMAL(10,2), s VARCHAR, f BOOLEAN, d DATE, t TIMESTAMP, x DOUBLE);
CREATE MATERIALIZED VIEW grouped AS
  SELECT k, s, sum(i) AS i, sum(p) AS p, sum(p * p) AS pp, avg(p) AS a, sum(x) AS x, count(*) AS n FROM r GROUP BY k, s;
CREATE MATERIALIZED VIEW copies AS SELECT s, i, f, d, t, p, x FROM r;
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(p) AS p, avg(x) AS x FROM r;
CREATE MATERIALIZED VIEW many AS SELECT s, count(*) AS n FROM r GROUP BY s HAVING count(*) > 1;
CREATE MATERIALIZED VIEW terms AS SELECT k + 1 AS k, p * 2 AS p, i IS NULL AS u, 'text' AS s, NULL AS z FROM r;
CREATE MATERIALIZED VIEW both_of AS SELECT s FROM r WHERE k = 1 UNION ALL SELECT s FROM r WHERE f;
CREATE MATERIALIZED VIEW uncounted AS SELECT sum(p) AS p FROM r GROUP BY s;
"""
SHOWN_VIEWS = ("grouped", "copies", "total", "many", "terms", "both_of", "uncounted")
DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 1)
SHOWN_ROWS = [
    (1, 5, Decimal("1.25"), "a", True, DAY, NOON, 0.5),
    (1, None, None, None, None, None, None, None),
    (2, -1, Decimal("-0.01"), "a", False, DAY, None, 0.25),
    (1, 5, Decimal("1.25"), "a", True, DAY, NOON, 0.5),
]


def test_views_are_shown_as_by_python() -> None:
    """Empty, filled, and emptied again."""
    python = viewlet.connect(engine="python")
    python.execute(SHOWN)
    db = native(SHOWN)
    for update in (lambda d: None, lambda d: d.insert("r", SHOWN_ROWS), lambda d: d.delete("r", SHOWN_ROWS)):
        for each in (db, python):
            update(each)
        for name in SHOWN_VIEWS:
            ours, theirs = db.view(name), python.view(name)
            assert ours.weights() == theirs.weights() == Counter(ours.rows()) == Counter(map(tuple, ours))
            assert ours.arrow().schema == theirs.arrow().schema
            assert Counter(map(repr, ours.arrow().to_pylist())) == Counter(map(repr, theirs.arrow().to_pylist()))
            assert list(ours.df().dtypes) == list(theirs.df().dtypes)
            assert ours.pl().schema == theirs.pl().schema
            assert pa.table(ours).num_rows == len(ours) == len(theirs)
            assert (repr(ours), ours._repr_html_()[:7]) == (repr(theirs), "<table>")


def test_one_group_is_found_as_by_python() -> None:
    python = viewlet.connect(engine="python")
    python.execute(SHOWN)
    db = native(SHOWN)
    for each in (db, python):
        each.insert("r", SHOWN_ROWS)
    for keys in (
        {"k": 1, "s": "a"},
        {"k": 1, "s": None},
        {"k": 9, "s": "a"},
        {"k": 2, "s": "none"},
        {"k": 2**63 - 1, "s": ""},
    ):
        assert db.view("grouped").get(**keys) == python.view("grouped").get(**keys)
    for keys in ({"k": 1}, {"k": 1, "s": "a", "z": 1}, {"k": "1", "s": "a"}, {"k": 2**63, "s": "a"}):
        errors = []
        for each in (db, python):
            with pytest.raises(viewlet.Error) as caught:
                each.view("grouped").get(**keys)
            errors.append((type(caught.value), str(caught.value)))
        assert errors[0] == errors[1]
    assert db.view("total").get() == python.view("total").get() == (4, Decimal("2.49"), 1.25 / 3)


def test_a_table_that_was_read_stays_as_it_was() -> None:
    """The arrays are handed over without a copy: later updates must not write into them."""
    db = native(SHOWN)
    db.insert("r", SHOWN_ROWS)
    tables = {name: db.view(name).arrow() for name in SHOWN_VIEWS}
    before = {name: table.to_pylist() for name, table in tables.items()}
    db.delete("r", SHOWN_ROWS)
    db.insert("r", [(k, 1, None, "other" * 9, None, None, None, 9.0) for k in range(500)])
    db.close()
    del db
    assert {name: table.to_pylist() for name, table in tables.items()} == before
    for table in tables.values():
        table.validate(full=True)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_is_what_explain_says() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute(PAPER_QUERIES["q3"].script())
    db.apply(tpch(1, 20_000, live=3000, relations=PAPER_QUERIES["q3"].relations))
    measured = {name: size / entries for name, entries, size in db.engine.memory() if entries > 500}  # type: ignore[attr-defined]
    said = {m.shown: entry_bytes(m) + SLOT_BYTES * (1 + len(m.indexes)) for m in emit.native(db.program).layout.maps}
    compared = {name: measured[name] / said[name] for name in said if name in measured}
    assert len(compared) >= 3
    assert all(0.7 < ratio < 1.5 for ratio in compared.values()), compared


@pytest.mark.parametrize("query", ["vwap", "axf"])
def test_the_memory_of_orders_is_what_explain_says(query: str) -> None:
    """Of one tree, with a running sum, and of one for each of ten brokers."""
    db = viewlet.connect(wait_native=True)
    db.execute(PAPER_QUERIES[query].script())
    db.apply(bulk.deep_book(1, 8000, 4000, sides=PAPER_QUERIES[query].relations).batch())
    measured = {name: size / entries for name, entries, size in db.engine.memory() if entries > 500}  # type: ignore[attr-defined]
    ordered = [m for m in emit.native(db.program).layout.maps if m.orders]
    for map_ in ordered:
        said = entry_bytes(map_) + SLOT_BYTES * (1 + len(map_.indexes))
        said += sum(order_bytes(map_, order) for order in map_.orders.values())
        assert 0.8 < measured[map_.shown] / said < 1.25, map_.name
    assert ordered


def test_the_memory_of_many_small_trees_is_what_explain_says() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute("""
      CREATE STREAM r (k BIGINT NOT NULL, x BIGINT NOT NULL);
      CREATE MATERIALIZED VIEW least AS SELECT k, min(x) AS x FROM r GROUP BY k;
    """)
    db.insert("r", [(k, -k) for k in range(5000)])
    (map_,) = (m for m in emit.native(db.program).layout.maps if m.orders)
    (order,) = map_.orders.values()
    (measured,) = (size / entries for name, entries, size in db.engine.memory() if name == map_.shown)  # type: ignore[attr-defined]
    said = entry_bytes(map_) + SLOT_BYTES + order_bytes(map_, order) + slice_bytes(map_, order)
    assert 0.75 < measured / said < 1.25
