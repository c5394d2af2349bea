"""The first rows of a view: what ORDER BY puts first, else any, and no more of them than were asked for."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import viewlet
from viewlet.engines.native.build import find_compiler

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
SCRIPT = """
CREATE STREAM r (a BIGINT, t VARCHAR, x BIGINT);
CREATE MATERIALIZED VIEW kept AS SELECT a, t, sum(x) AS s, max(x) AS m FROM r GROUP BY a, t HAVING sum(x) > 3;
CREATE MATERIALIZED VIEW many AS SELECT x, t = 'b' AS b, t FROM r;
CREATE MATERIALIZED VIEW sorted AS SELECT a, sum(x) AS s FROM r GROUP BY a ORDER BY s DESC, a;
CREATE MATERIALIZED VIEW top AS SELECT a, sum(x) AS s FROM r GROUP BY a ORDER BY s DESC, a LIMIT 5 OFFSET 1;
CREATE MATERIALIZED VIEW list AS SELECT a, list(x ORDER BY x) AS xs FROM r GROUP BY a;
CREATE MATERIALIZED VIEW one AS SELECT count(*) AS n, max(x) AS m FROM r;
"""
VIEWS = ("kept", "many", "sorted", "top", "list", "one")


@pytest.fixture(params=["interpreter", "python", NATIVE])
def db(request: pytest.FixtureRequest) -> viewlet.Database:
    database = viewlet.connect(engine=request.param, wait_native=True)
    database.execute(SCRIPT)
    return database


def test_they_are_rows_of_the_view_and_those_that_come_first(db: viewlet.Database) -> None:
    for view in VIEWS:
        assert db.view(view).first(3) == db.view(view).rows(), "of nothing"
    db.insert("r", [(i, f"t{i}", i % 7) for i in range(40)])
    db.insert("r", [(None, None, None)] * 30 + [(1, "b", 9)] * 6)
    for view in VIEWS:
        every, is_ordered = db.view(view).rows(), view in ("sorted", "top")
        for most in (0, 1, 4, 31, 1000):
            first = db.view(view).first(most)
            assert len(first) == min(most, len(every)), (view, most)
            assert first == every[:most] or not is_ordered
            assert not Counter(map(str, first)) - Counter(map(str, every)), (view, most)
    assert len(db.view("many").rows()) == 76


@pytest.mark.parametrize("view", ["kept", "many", "sorted", "top"])
def test_native_code_stops_when_it_has_them(view: str) -> None:
    if find_compiler() is None:
        pytest.skip("no C++ compiler")
    with viewlet.connect(wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("r", [(i, "t", 5) for i in range(100)] + [(7, "t", 5)] * 50)
        assert db.tier == "native"
        assert len(pa.array(db.engine.result(view, 3))) == 3


@pytest.mark.parametrize("most", [-1, 1.5, "3", None, True])
def test_how_many_is_a_whole_number(db: viewlet.Database, most: object) -> None:
    with pytest.raises(viewlet.Error, match="first takes a whole number from 0 on, not "):
        db.view("kept").first(most)  # type: ignore[arg-type]
    with pytest.raises(viewlet.Error, match="most takes a whole number from 1 on, not "):
        db.view("kept").changes(most=most)  # type: ignore[arg-type]
