"""One group of a view with MIN and MAX, by keys of every type: the same on every engine."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import viewlet
from viewlet import Database
from viewlet.engines.native.build import find_compiler

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
TYPES = {
    "i": ("INTEGER", (1, -2)),
    "b": ("BIGINT", (2**62, 0)),
    "x": ("DOUBLE", (0.5, -0.0)),
    "p": ("DECIMAL(10,2)", (Decimal("1.50"), Decimal("-0.01"))),
    "w": ("DECIMAL(38,4)", (Decimal("123456789012345678901234567890.1234"), Decimal(0))),
    "d": ("DATE", (dt.date(2020, 2, 29), dt.date(1, 1, 1))),
    "t": ("TIMESTAMP", (dt.datetime(2020, 1, 1, 12, 0, 0, 5), dt.datetime(1969, 1, 1))),
    "s": ("VARCHAR", ("", "\U0001f600")),
    "f": ("BOOLEAN", (True, False)),
}


@pytest.fixture(params=["interpreter", "python", NATIVE])
def engine(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def opened(engine: str, script: str) -> Database:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(script)
    assert database.tier == engine
    return database


@pytest.mark.parametrize("column", TYPES)
def test_a_key_of_any_type(engine: str, column: str) -> None:
    type_, (one, other) = TYPES[column]
    database = opened(
        engine,
        f"""
        CREATE STREAM r (k {type_}, v BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW ends AS SELECT max(v) AS high, k, min(v) AS low FROM r GROUP BY k;
        """,
    )
    view = database.view("ends")
    assert view.get(k=one) is None
    database.insert("r", [(one, 1), (one, 5), (other, 2), (None, 7), (None, 9)])
    assert view.get(k=one) == (5, one, 1)
    assert view.get(k=other) == (2, other, 2)
    assert view.get(k=None) == (9, None, 7)
    database.delete("r", (other, 2))
    assert view.get(k=other) is None


def test_several_keys_and_none(engine: str) -> None:
    database = opened(
        engine,
        """
        CREATE STREAM r (a BIGINT, b VARCHAR, v BIGINT);
        CREATE MATERIALIZED VIEW ends AS SELECT a, b, max(v) AS high FROM r GROUP BY a, b HAVING max(v) > 1;
        CREATE MATERIALIZED VIEW whole AS SELECT min(v) AS low, max(v) AS high FROM r;
        CREATE MATERIALIZED VIEW part AS SELECT a, max(v) AS high FROM r GROUP BY a, b;
        """,
    )
    assert database.view("whole").get() == (None, None)
    database.insert("r", [(1, "x", 3), (1, "y", 1), (None, "x", 4), (1, None, 5)])
    assert database.view("ends").get(a=1, b="x") == (1, "x", 3)
    assert database.view("ends").get(a=1, b="y") is None
    assert database.view("ends").get(a=None, b="x") == (None, "x", 4)
    assert database.view("ends").get(a=1, b=None) == (1, None, 5)
    assert database.view("whole").get() == (1, 5)
    assert database.view("part").get(a=None) == (None, 4)
    with pytest.raises(viewlet.Error, match="does not show all of its key: 3 rows"):
        database.view("part").get(a=1)


def test_a_row_that_cannot_be_shown_hides_no_other(engine: str) -> None:
    database = opened(
        engine,
        """
        CREATE STREAM r (k BIGINT NOT NULL, v DECIMAL(38,0) NOT NULL);
        CREATE MATERIALIZED VIEW ends AS SELECT k, max(v) AS high, sum(v) + 1 AS s FROM r GROUP BY k;
        """,
    )
    database.insert("r", [(1, 10**38 - 1), (2, 5)])
    with pytest.raises(viewlet.OverflowError_):
        database.view("ends").rows()
    with pytest.raises(viewlet.OverflowError_):
        database.view("ends").get(k=1)
    assert database.view("ends").get(k=2) == (2, 5, 6)
