"""One group of a view with MIN and MAX, by keys of every type: the same on every engine."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pytest

import viewlet
from viewlet import Database
from viewlet.engines.exact.store import Map
from viewlet.engines.native.bridge import NativeState
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
    name: str = request.param
    return name


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


def test_a_key_between_two_that_there_can_be(engine: str) -> None:
    database = opened(
        engine,
        """
        CREATE STREAM r (k INTEGER NOT NULL, v BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW ends AS SELECT CAST(k AS DECIMAL(12,2)) AS h, max(v) AS high FROM r
          GROUP BY CAST(k AS DECIMAL(12,2));
        """,
    )
    database.insert("r", [(1, 5), (2, 6)])
    assert database.view("ends").get(h=Decimal("1.50")) is None
    assert database.view("ends").get(h=2) == (Decimal("2.00"), 6)


def test_the_ends_of_one_group_are_not_looked_for_in_all(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened(
        engine,
        """
        CREATE STREAM r (k BIGINT NOT NULL, v BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW ends AS SELECT k, min(v) AS low, max(v) AS high, sum(v) AS s FROM r GROUP BY k;
        """,
    )
    database.insert("r", [(i % 50, i) for i in range(100)])
    seen: list[object] = []
    read = Map.read
    if engine == "native":
        for scan in ("rows", "entries"):
            monkeypatch.setattr(NativeState, scan, lambda *given: pytest.fail("this scans"))
    else:
        monkeypatch.setattr(Map, "read", lambda *given: seen.extend(entries := list(read(*given))) or entries)
    assert database.view("ends").get(k=7) == (7, 7, 57, 64)
    assert len(seen) < 10


def test_rows_are_counted_and_shown_without_reading_all(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened(
        engine,
        """
        CREATE STREAM r (k BIGINT NOT NULL, v BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW plain AS SELECT v FROM r;
        CREATE MATERIALIZED VIEW grouped AS SELECT k, sum(v) AS s, max(v) AS high FROM r GROUP BY k;
        CREATE MATERIALIZED VIEW some AS SELECT k, sum(v) AS s FROM r GROUP BY k HAVING sum(v) > 10;
        CREATE MATERIALIZED VIEW whole AS SELECT sum(v) AS s FROM r;
        CREATE MATERIALIZED VIEW none AS SELECT sum(v) AS s FROM r HAVING sum(v) < 0;
        """,
    )
    views = {name: database.view(name) for name in ("plain", "grouped", "some", "whole", "none")}
    assert {name: len(view) for name, view in views.items()} == dict.fromkeys(views, 0) | {"whole": 1}
    database.insert("r", [(i % 40, i % 3) for i in range(400)])
    database.delete("r", [(39, 0)])
    assert {name: len(view) for name, view in views.items()} == {name: len(view.rows()) for name, view in views.items()}
    assert (len(views["plain"]), len(views["grouped"])) == (399, 40)
    read, rows = Map.read, NativeState.rows
    seen: list[object] = []
    if engine == "native":
        monkeypatch.setattr(NativeState, "entries", lambda *given: pytest.fail("this makes Python rows"))
        monkeypatch.setattr(NativeState, "rows", lambda *given: seen.append(given) or rows(*given))
    else:
        monkeypatch.setattr(Map, "read", lambda *given: (seen.append(e) or e for e in read(*given)))
    assert [repr(views[name])[-9:-1] for name in ("plain", "grouped")] == ["399 rows", " 40 rows"]
    assert seen == []
    assert "20 of 399 rows" in views["plain"]._repr_html_()
    assert len(seen) <= 20


def test_a_list_and_the_number_of_groups(engine: str) -> None:
    """``get`` finds a group of a LIST by its key. ``len`` counts the rows while rows come and go."""
    database = opened(
        engine,
        """
        CREATE STREAM r (k BIGINT, s VARCHAR, x DOUBLE, v BIGINT);
        CREATE MATERIALIZED VIEW lists AS SELECT k, s, list(v ORDER BY v) AS vs FROM r GROUP BY k, s;
        CREATE MATERIALIZED VIEW sums AS SELECT k, s, sum(x) AS x, sum(v) AS v, avg(v) AS a FROM r GROUP BY k, s;
        CREATE MATERIALIZED VIEW some AS SELECT k, s, count(*) AS n FROM r WHERE v > 2 GROUP BY k, s;
        CREATE MATERIALIZED VIEW ks AS SELECT DISTINCT k FROM r;
        CREATE MATERIALIZED VIEW plain AS SELECT s, v FROM r WHERE v < 3;
        """,
    )
    chance, there = random.Random(5), list[tuple[object, ...]]()
    for _ in range(60):
        row = (
            chance.choice([None, 0, 1]),
            chance.choice([None, "", "é"]),
            chance.choice([0.1, 0.3]),
            chance.randrange(5),
        )
        gone = [there.pop(chance.randrange(len(there))) for _ in range(min(len(there), chance.choice([0, 0, 3])))]
        database.delete("r", gone)
        database.insert("r", row)
        there.append(row)
        for name in ("lists", "sums", "some", "ks", "plain"):
            assert len(database.view(name)) == len(database.view(name).rows()), name
        lists = {(k, s): vs for k, s, vs in database.view("lists").rows()}
        for k in (None, 0, 1, 7):
            for s in (None, "", "é", "never"):
                group = lists.get((k, s))
                assert database.view("lists").get(k=k, s=s) == (None if group is None else (k, s, group))
