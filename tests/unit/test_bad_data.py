"""Bad data through the public API: the error says where and what, and the batch it came in changed nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from viewlet import Database, DataError

SCRIPT = """
CREATE STREAM trades (
  id BIGINT NOT NULL, sym VARCHAR NOT NULL, qty INTEGER, price DECIMAL(6,2), weight DOUBLE,
  d DATE, ts TIMESTAMP, ok BOOLEAN);
CREATE TABLE symbols (sym VARCHAR NOT NULL, name VARCHAR);
CREATE MATERIALIZED VIEW volume AS
  SELECT t.sym, sum(t.qty) AS total, count(*) AS n FROM trades t, symbols s WHERE t.sym = s.sym GROUP BY t.sym;
"""
GOOD = (1, "A", 10, Decimal("9.99"), 0.5, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12), True)
FIELDS = ("id", "sym", "qty", "price", "weight", "d", "ts", "ok")


def trade(**changed: object) -> dict[str, object]:
    return {**dict(zip(FIELDS, GOOD, strict=True)), **changed}


@pytest.fixture
def db() -> Iterator[Database]:
    with viewlet.connect(engine="python") as database:  # the native engine: tests/engines/test_native.py
        database.execute(SCRIPT)
        database.insert("symbols", [("A", "Alpha"), ("B", None)])
        database.insert("trades", [GOOD, GOOD, trade(id=2, sym="B", qty=None)])
        yield database


def state(db: Database) -> object:
    return db.view("volume").rows(), db.engine.table("trades"), db.engine.table("symbols")


VALUES: list[tuple[str, object, str]] = [
    ("id", None, "NULL in a NOT NULL column"),
    ("id", 2**63, "does not fit BIGINT"),
    ("id", "1", "takes an int"),
    ("id", 1.0, "takes an int"),
    ("id", True, "takes an int"),
    ("sym", None, "NULL in a NOT NULL column"),
    ("sym", 5, "takes a str"),
    ("sym", b"A", "takes a str"),
    ("sym", "\udcff", "not valid Unicode"),
    ("qty", 2**31, "does not fit INTEGER"),
    ("qty", -(2**31) - 1, "does not fit INTEGER"),
    ("price", Decimal("0.001"), "more than 2 digits"),
    ("price", Decimal("10000"), "does not fit"),
    ("price", 0.001, "more than 2 digits"),
    ("price", Decimal("NaN"), "takes a Decimal"),
    ("price", "cheap", "takes a Decimal"),
    ("weight", float("nan"), "NaN"),
    ("weight", float("inf"), "infinities"),
    ("weight", "0.5", "takes a float"),
    ("weight", 2**53 + 1, "not exactly"),
    ("d", "2023-02-29", "no date"),
    ("d", dt.datetime(2024, 1, 1, 12), "takes a datetime.date"),
    ("ts", dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), "time zone"),
    ("ts", dt.date(2024, 1, 1), "takes a datetime.datetime"),
    ("ok", 1, "takes a bool"),
]


@pytest.mark.parametrize(("column", "value", "why"), VALUES)
@pytest.mark.parametrize("update", ["insert", "delete", "apply"])
def test_a_value_that_its_column_does_not_take(db: Database, update: str, column: str, value: object, why: str) -> None:
    """The bad row stands behind a good one, which must not stay."""
    before = state(db)
    rows = [GOOD, trade(**{column: value})]
    given = ([("+", "trades", row) for row in rows],) if update == "apply" else ("trades", rows)
    with pytest.raises(DataError, match=why) as caught:
        getattr(db, update)(*given)
    error = caught.value
    assert (error.relation, error.row, error.column) == ("trades", 1, column)
    assert error.value is value
    assert state(db) == before


Act = Callable[[Database], Any]
BATCHES: dict[str, tuple[Act, str, int | None, str | None, str]] = {
    "too few values": (lambda db: db.insert("trades", [GOOD, GOOD[:-1]]), "trades", 1, None, "7 values for 8"),
    "too many values": (lambda db: db.insert("trades", [GOOD, (*GOOD, 1)]), "trades", 1, None, "9 values for 8"),
    "an empty row": (lambda db: db.insert("trades", ()), "trades", 0, None, "0 values for 8"),
    "a column that is not there": (
        lambda db: db.insert("trades", [GOOD, trade(colour="red")]), "trades", 1, "colour", "no such column",
    ),
    "a missing NOT NULL key": (lambda db: db.insert("trades", [GOOD, {"id": 1}]), "trades", 1, "sym", "NOT NULL"),
    "a row that is no row": (lambda db: db.insert("trades", [GOOD, "A"]), "trades", 1, None, "a row is a tuple"),
    "rows that are no rows": (lambda db: db.insert("trades", "A"), "trades", None, None, "neither a row nor rows"),
    "a number for rows": (lambda db: db.delete("trades", 5), "trades", None, None, "neither a row nor rows"),
    "a stream that is not there": (lambda db: db.insert("trade", GOOD), "trade", None, None, "no such stream or table"),
    "inserting into a view": (lambda db: db.insert("volume", ("A", 1, 1)), "volume", None, None, "is a view"),
    "deleting what never was": (
        lambda db: db.delete("trades", [GOOD, trade(id=9)]), "trades", 1, None, "is not there",
    ),
    "deleting once too often": (lambda db: db.delete("trades", [GOOD] * 3), "trades", 2, None, "is not there"),
    "deleting a NULL as a value": (
        lambda db: db.delete("trades", trade(id=2, sym="B", qty=0)), "trades", 0, None, "is not there",
    ),
    "deleting from a static table": (lambda db: db.delete("symbols", ("C", None)), "symbols", 0, None, "is not there"),
    "deleting before inserting": (
        lambda db: db.apply([("-", "trades", trade(id=9)), ("+", "trades", trade(id=9))]),
        "trades", 0, None, "is not there",
    ),
    "a delete late in a batch": (
        lambda db: db.apply([("+", "trades", GOOD), *[("-", "trades", GOOD)] * 4]), "trades", 4, None, "is not there",
    ),
    "an unknown op": (
        lambda db: db.apply([("+", "trades", GOOD), ("*", "trades", GOOD)]), "trades", 1, "op", "op is",
    ),
    "a fractional op": (lambda db: db.apply([(0.5, "trades", GOOD)]), "trades", 0, "op", "op is"),
    "an event for an unknown stream": (
        lambda db: db.apply([("+", "trades", GOOD), ("+", "nowhere", GOOD)]), "nowhere", 1, None, "no such stream",
    ),
    "a NULL in an Arrow column": (
        lambda db: db.insert("symbols", pa.table({"sym": ["C", None]})), "symbols", 1, "sym", "NOT NULL",
    ),
    "an Arrow column too many": (
        lambda db: db.insert("symbols", pa.table({"sym": ["C"], "x": [1]})), "symbols", 0, "x", "no such column",
    ),
    "a wrong Arrow type": (
        lambda db: db.insert("symbols", pa.table({"sym": ["C"], "name": [1]})), "symbols", 0, "name", "takes a str",
    ),
    "an Arrow column twice": (
        lambda db: db.insert("symbols", pa.table([["C"], ["D"]], names=["sym", "sym"])),
        "symbols", None, "sym", "two columns of this name",
    ),
    "an event column twice": (
        lambda db: db.apply(pa.table([["+"], ["symbols"], ["-"]], names=["op", "relation", "op"])),
        "events", None, "op", "two columns of this name",
    ),
    "a pandas column of mixed types": (
        lambda db: db.insert("symbols", pytest.importorskip("pandas").DataFrame({"sym": ["C", 1]})),
        "symbols", None, None, "not a table: .*column sym",
    ),
    "too many deletes by multiplicity": (
        lambda db: db.apply(pa.table({"op": [1, -5], "relation": ["symbols"] * 2, "row": [{"sym": "A"}] * 2})),
        "symbols", 1, None, "is not there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BATCHES)
def test_a_batch_that_cannot_be_taken(db: Database, case: str) -> None:
    act, relation, row, column, why = BATCHES[case]
    before = state(db)
    with pytest.raises(DataError, match=why) as caught:
        act(db)
    assert (caught.value.relation, caught.value.row, caught.value.column) == (relation, row, column)
    assert state(db) == before


@pytest.mark.parametrize("events", [["+"], [("+", "trades")], [5], [("+", "trades", GOOD), None]])
def test_events_of_the_wrong_shape(db: Database, events: list[object]) -> None:
    before = state(db)
    with pytest.raises(viewlet.Error, match="not \\(op, relation, row\\)"):
        db.apply(events)
    assert state(db) == before


@pytest.mark.parametrize("events", [None, 5])
def test_events_that_are_no_events(db: Database, events: object) -> None:
    with pytest.raises(viewlet.Error, match=r"apply takes events \(op, relation, row\), not"):
        db.apply(events)


def test_an_event_batch_without_its_columns(db: Database) -> None:
    with pytest.raises(viewlet.Error, match="has columns op and relation"):
        db.apply(pa.table({"relation": ["trades"]}))
    with pytest.raises(viewlet.Error, match="no column row and no column trades"):
        db.apply(pa.table({"op": [1], "relation": ["trades"], "symbols": [{"sym": "A"}]}))


def test_rows_that_stop_coming_change_nothing(db: Database) -> None:
    """A generator that fails on its way is the caller's error, and the rows before it are not kept."""

    def rows() -> Iterator[object]:
        yield GOOD
        raise ConnectionError("gone")

    before = state(db)
    with pytest.raises(ConnectionError):
        db.insert("trades", rows())
    assert state(db) == before


def test_an_update_that_fails_halfway_is_undone(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong inside a trigger, the events before it in the batch do not stay."""
    before, apply, calls = state(db), type(db.engine).apply, []

    def failing(self: object, *event: Any) -> None:
        calls.append(event)
        if len(calls) == 3:
            raise MemoryError
        apply(self, *event)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(type(db.engine), "apply", failing)
        with pytest.raises(MemoryError):
            db.apply(
                [("+", "trades", GOOD), ("+", "symbols", ("A", "x")), ("+", "trades", GOOD), ("-", "trades", GOOD)]
            )
    assert len(calls) == 3
    assert state(db) == before
    db.insert("trades", GOOD)
    assert db.verify("volume") == []


def test_a_row_from_which_a_view_cannot_be_computed(db: Database) -> None:
    """The last day that a DATE can be has no next month: found in the middle of a trigger, and undone."""
    db.execute("CREATE MATERIALIZED VIEW due AS SELECT count(*) AS n FROM trades WHERE d + INTERVAL '1' MONTH > ts;")
    before = state(db), db.view("due").rows()
    for update in (
        lambda: db.insert("trades", [GOOD, trade(d=dt.date.max)]),
        lambda: db.insert("trades", trade(d=dt.date.max)),
        lambda: db.apply([("+", "trades", GOOD), ("+", "trades", trade(d=dt.date.max))]),
    ):
        with pytest.raises(viewlet.Error, match="cannot be computed"):
            update()
        assert (state(db), db.view("due").rows()) == before


def test_rows_from_which_a_new_view_cannot_be_computed(db: Database) -> None:
    db.insert("trades", trade(d=dt.date.max))
    before = state(db)
    view = "CREATE MATERIALIZED VIEW due AS SELECT count(*) AS n FROM trades WHERE d + INTERVAL '1' MONTH > ts;"
    with pytest.raises(viewlet.Error, match="from the rows that are there, so nothing changed"):
        db.execute(view)
    assert state(db) == before
    db.delete("trades", trade(d=dt.date.max))
    db.execute(view)
    assert db.verify("due") == []
