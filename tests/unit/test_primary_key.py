"""PRIMARY KEY and UNIQUE: at most one row a key, on every engine and for every form of rows."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import viewlet
from viewlet.database.memory import Database, EngineName
from viewlet.program.trigger import Program

SCRIPT = """
CREATE STREAM orders (id BIGINT PRIMARY KEY, who VARCHAR, amount DECIMAL(10,2));
CREATE TABLE people (who VARCHAR, city VARCHAR UNIQUE, PRIMARY KEY (who));
CREATE STREAM pairs (a INTEGER, b DATE, x DOUBLE, CONSTRAINT both PRIMARY KEY (b, a), UNIQUE (x));
CREATE STREAM free (a INTEGER);
CREATE MATERIALIZED VIEW sums AS SELECT city, sum(amount) AS s, count(*) AS n
  FROM orders JOIN people ON orders.who = people.who GROUP BY city;
CREATE MATERIALIZED VIEW plain AS SELECT (SELECT count(*) FROM free) AS f, count(*) AS n, sum(x) AS x FROM pairs;
"""
FIRST = [(1, "ann", Decimal("1.50")), (2, "bob", Decimal("2.50"))]


@pytest.fixture(params=["interpreter", "python", "native"])
def db(request: pytest.FixtureRequest) -> Database:
    engine: EngineName = request.param
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(SCRIPT)
    assert database.tier == engine
    database.insert("people", [("ann", "oslo"), ("bob", "rome")])
    database.insert("orders", FIRST)
    return database


def state(db: Database) -> tuple[Any, ...]:
    views = [db.view(name) for name in ("sums", "plain")]
    assert [db.verify(view.name) for view in views] == [[], []]
    return (*(sorted(view.rows(), key=str) for view in views), *(db.engine.table(r.name) for r in db.program.relations))


def refused(db: Database, update: Callable[[], None], message: str, row: int | None) -> viewlet.DataError:
    before = state(db)
    with pytest.raises(viewlet.DataError) as caught:
        update()
    assert state(db) == before
    assert message in str(caught.value)
    assert caught.value.row == row
    return caught.value


def test_a_second_row_with_a_key_is_refused(db: Database) -> None:
    error = refused(db, lambda: db.insert("orders", (1, "eve", 9)), "a row with id = 1 is there already", 0)
    assert (error.relation, error.column, error.value) == ("orders", "id", (1, "eve", 9))
    refused(db, lambda: db.insert("orders", {"id": 2, "who": "x", "amount": 1}), "id = 2 is there already", 0)
    refused(db, lambda: db.insert("orders", [(3, "x", 1), (4, "x", 1), (3, "y", 2)]), "id = 3 is there already", 2)
    refused(db, lambda: db.insert("people", ("ann", "bern")), "who = 'ann' is there already", 0)
    frame = pa.table({"id": [7, 8, 1], "who": ["x", "y", "z"], "amount": ["1", "2", "3"]})
    refused(db, lambda: db.insert("orders", frame), "id = 1 is there already", 2)
    refused(db, lambda: db.apply([(2, "orders", (5, "x", 1))]), "id = 5 would be there 2 times", 0)
    refused(db, lambda: db.insert("orders", (None, "x", 1)), "NULL in a NOT NULL column", 0)
    db.insert("orders", frame.slice(0, 2))
    assert sorted(row[0] for row in db.engine.table("orders")) == [1, 2, 7, 8]


def test_the_order_inside_a_call_counts(db: Database) -> None:
    old, new = FIRST[0], (1, "bob", Decimal(7))
    db.apply([("-", "orders", old), ("+", "orders", new), ("+", "free", (1,))])
    assert sorted(db.view("sums").rows()) == [("rome", Decimal("9.50"), 2)]
    refused(db, lambda: db.apply([("+", "orders", old), ("-", "orders", new)]), "id = 1 is there already", 0)
    refused(db, lambda: db.apply([("-", "orders", new), ("-", "orders", new)]), "is not there", 1)
    refused(db, lambda: db.delete("orders", old), "is not there", 0)
    refused(db, lambda: db.delete("orders", [new, (9, "x", 1)]), "is not there", 1)
    db.delete("orders", new)
    db.insert("orders", old)
    assert sorted(db.view("sums").rows()) == [("oslo", Decimal("1.50"), 1), ("rome", Decimal("2.50"), 1)]
    moved = [{"id": 1, "who": who, "amount": 1.5} for who in ("ann", "bob")]
    events = pa.table({"op": ["-", "+"], "relation": ["orders"] * 2, "row": moved})
    db.apply(events)
    assert db.view("sums").rows() == [("rome", Decimal("4.00"), 2)]


def test_keys_of_several_columns_and_unique_ones(db: Database) -> None:
    db.insert("pairs", [(1, "2024-01-01", 1.5), (2, "2024-01-01", None), (1, "2024-01-02", None)])
    refused(db, lambda: db.insert("pairs", (1, "2024-01-01", 9.0)), "(b, a) = (datetime.date(2024, 1, 1), 1)", 0)
    error = refused(db, lambda: db.insert("pairs", (9, "2024-01-01", 1.5)), "x = 1.5 is there already", 0)
    assert error.column == "x"
    db.delete("pairs", (1, "2024-01-01", 1.5))
    db.insert("pairs", (9, "2024-01-01", 1.5))
    db.insert("people", [("eve", None), ("fay", None)])
    refused(db, lambda: db.insert("people", ("gus", "oslo")), "city = 'oslo' is there already", 0)
    assert db.view("plain").rows() == [(0, 3, 1.5)]


def test_nan_is_one_key() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute(SCRIPT)
    db.insert("pairs", (1, "2024-01-01", math.nan))
    with pytest.raises(viewlet.DataError, match="x = nan is there already"):
        db.insert("pairs", (2, "2024-01-01", -math.nan))
    db.execute("CREATE MATERIALIZED VIEW another AS SELECT count(*) AS n FROM pairs")  # the keys are read off the table
    with pytest.raises(viewlet.DataError, match="x = nan is there already"):
        db.insert("pairs", (2, "2024-01-01", float("nan")))
    db.delete("pairs", (1, "2024-01-01", math.nan))


def test_upsert_replaces_the_row_with_the_key(db: Database) -> None:
    heard: list[Any] = []
    db.view("sums").subscribe(heard.append)
    db.upsert("orders", (2, "ann", 10))
    assert sorted(heard) == [
        (-1, ("oslo", Decimal("1.50"), 1)),
        (-1, ("rome", Decimal("2.50"), 1)),
        (1, ("oslo", Decimal("11.50"), 2)),
    ]
    assert [weight for weight, _ in heard] == [-1, -1, 1]  # what went is told first
    db.upsert("orders", [{"id": 3, "who": "bob", "amount": 1}, (3, "bob", 2), (1, "ann", Decimal("1.50"))])
    assert sorted(db.view("sums").rows()) == [("oslo", Decimal("11.50"), 2), ("rome", Decimal("2.00"), 1)]
    db.upsert("orders", pa.table({"amount": ["5", "6"], "id": [3, 4], "who": ["bob", "bob"]}))
    db.upsert("people", [("ann", "bern"), ("eve", None)])
    assert sorted(db.view("sums").rows()) == [("bern", Decimal("11.50"), 2), ("rome", Decimal("11.00"), 2)]
    state(db)
    refused(db, lambda: db.upsert("people", ("ann", "rome")), "city = 'rome' is there already", 0)
    refused(db, lambda: db.upsert("free", (1,)), "has no PRIMARY KEY", None)
    refused(db, lambda: db.upsert("sums", (1,)), "is a view", None)
    refused(db, lambda: db.upsert("orders", [(5, "x", 1), ("six", "x", 1)]), "BIGINT takes an int", 1)
    db.upsert("orders", [])


def test_a_row_that_a_view_cannot_hold_leaves_no_key_behind(db: Database) -> None:
    db.execute(
        "CREATE STREAM r (k INTEGER PRIMARY KEY, a INTEGER); CREATE MATERIALIZED VIEW q AS SELECT a * a AS s FROM r"
    )
    big = 2_000_000_000
    for update in (lambda: db.insert("r", (1, big)), lambda: db.upsert("r", [(1, 5), (2, big)])):
        with pytest.raises(viewlet.OutOfRangeError):
            update()
    db.insert("r", [(1, 3), (2, 4)])
    assert sorted(db.view("q").rows()) == [(9,), (16,)]


def test_an_upsert_of_many_is_one_step(db: Database) -> None:
    """Rows may trade their UNIQUE values, since all go before any comes. The last of a key stays."""
    day = "2024-01-01"
    db.insert("pairs", [(1, day, 1.0), (2, day, 2.0), (3, day, None), (4, day, 4.0)])
    db.upsert("pairs", [(1, day, 2.0), (2, day, 1.0), (4, day, 9.0), (4, day, 4.0), (5, day, 7.0), (5, day, None)])
    assert db.view("plain").rows() == [(0, 5, 7.0)]
    day_of = dt.date(2024, 1, 1)
    frame = pa.table({"b": [day_of] * 4, "a": [1, 2, 5, 5], "x": [1.0, 2.0, 1.5, 3.0]})
    db.upsert("pairs", frame)
    assert db.view("plain").rows() == [(0, 5, 10.0)]
    refused(db, lambda: db.upsert("pairs", [(6, day, 8.0), (7, day, 4.0)]), "x = 4.0 is there already", 1)
    refused(db, lambda: db.upsert("pairs", frame.set_column(2, "x", pa.array([1.0, 2.0, 5.0, 4.0]))), "x = 4.0", 3)
    if db.tier == "native":
        db.upsert("pairs", [(1, day, math.nan)])
        db.upsert("pairs", [(1, day, 1.0)])
        assert db.view("plain").rows() == [(0, 5, 10.0)]


def test_single_rows_replace_those_with_their_keys(db: Database) -> None:
    orders, heard = db.stream("orders"), list[Any]()
    for amount in (1, 5, 5, 7):
        orders.upsert((1, "ann", amount))
        db.upsert("orders", (3, "bob", amount))
    assert sorted(db.view("sums").rows()) == [("oslo", Decimal("7.00"), 1), ("rome", Decimal("9.50"), 2)]
    refused(db, lambda: orders.upsert((1, "ann", "x")), "amount", 0)
    end = db.view("sums").subscribe(heard.append)
    orders.upsert((1, "ann", 7))
    orders.upsert((1, "ann", 8))
    end()
    orders.upsert((1, "ann", 9))
    assert heard == [(-1, ("oslo", Decimal("7.00"), 1)), (1, ("oslo", Decimal("8.00"), 1))]
    day = "2024-01-01"
    pairs = db.stream("pairs")
    for x in (1.0, 2.0, 2.0):
        pairs.upsert((1, day, x))
    refused(db, lambda: pairs.upsert((2, day, 2.0)), "x = 2.0 is there already", 0)
    pairs.delete((1, day, 2.0))
    pairs.upsert((2, day, 2.0))
    assert db.view("plain").rows() == [(0, 1, 2.0)]
    state(db)


def test_an_upsert_that_nobody_can_be_told_of_is_taken_back() -> None:
    """A sum that its column cannot show is no reason to lose rows."""
    db = viewlet.connect(wait_native=True)
    db.execute(
        "CREATE STREAM r (k INTEGER PRIMARY KEY, a BIGINT, s VARCHAR);"
        "CREATE MATERIALIZED VIEW q AS SELECT s, (sum(a) * 3)::BIGINT AS t FROM r GROUP BY s;"
    )
    assert db.tier == "native"
    db.insert("r", [(1, 1, "a text that is longer than a short one"), (2, 2, "b")])
    told: list[Any] = []
    db.view("q").subscribe(told.append)
    before, rows = sorted(db.view("q").rows()), db.engine.table("r")
    with pytest.raises(viewlet.Error):
        db.upsert("r", [(1, 2**62, "c"), (3, 3, "d")])
    assert (sorted(db.view("q").rows()), db.engine.table("r"), told) == (before, rows, [])
    db.upsert("r", [(1, 5, "c"), (3, 3, "d")])
    assert sorted(db.view("q").rows()) == [("b", 6), ("c", 15), ("d", 9)]
    assert sorted(told) == [(-1, before[0]), (1, ("c", 15)), (1, ("d", 9))]


@pytest.mark.parametrize("rows", [50, 120_000])  # rows that machine code takes from the files by itself, too
def test_keys_outlive_their_process(rows: int, tmp_path: Path) -> None:
    with viewlet.connect(tmp_path / "db", wait_native=True) as db:
        db.execute(
            "CREATE STREAM r (k INTEGER PRIMARY KEY, a INTEGER UNIQUE);"
            "CREATE MATERIALIZED VIEW q AS SELECT count(*) AS n, sum(a) AS s FROM r;"
        )
        ids = pa.array(range(rows), pa.int32())
        db.insert("r", pa.table({"k": ids, "a": ids}))
        db.upsert("r", pa.table({"k": ids, "a": pc.subtract(rows, ids)}))
        db.upsert("r", [(0, -1), (rows, -2)])
        db.execute("UPDATE r SET a = a + 1 WHERE k < 5")
        there = db.view("q").rows()
    with viewlet.connect(tmp_path / "db", wait_native=True) as db:
        assert db.view("q").rows() == there == [(rows + 1, sum(range(1, rows)) + 5 - 3)]
        assert db.verify("q") == []
        with pytest.raises(viewlet.DataError, match="a = 0 is there already"):
            db.insert("r", (-1, 0))
        with pytest.raises(viewlet.DataError, match=f"k = {rows} is there already"):
            db.insert("r", [(-1, None), (rows, None)])


def test_keys_are_in_the_text_of_a_program() -> None:
    program = viewlet.compile(SCRIPT)
    again = Program.from_text(program.to_text())
    assert [(r.key, r.unique) for r in again.relations] == [(r.key, r.unique) for r in program.relations]
    assert program.relation("pairs").key == ("b", "a")
    assert not program.relation("pairs").columns[0].nullable


def test_a_key_costs_one_lookup() -> None:
    """No scan: the second ten thousand rows take no longer than the first."""
    db = viewlet.connect(engine="python")
    db.execute(
        "CREATE STREAM r (k INTEGER PRIMARY KEY, a INTEGER); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r"
    )
    spent = []
    for start in range(0, 30_000, 10_000):
        begun = time.process_time()
        for k in range(start, start + 10_000, 10):
            db.insert("r", (k, 1))
            db.insert("r", [(k + i, 1) for i in range(1, 10)])
        spent.append(time.process_time() - begun)
    assert db.view("n").rows() == [(30_000,)]
    assert spent[2] < 4 * spent[0] + 0.2
