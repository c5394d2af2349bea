"""Joins of grouped subqueries: the groups that an event is about are evaluated again, and are as DuckDB has them."""

from __future__ import annotations

from random import Random

import pytest

from tests.engines.conformance import agree, cut, difference, net_effect
from tests.engines.three_streams import SCHEMA, case
from viewlet import compile
from viewlet.program.trigger import Program

BY_C = "SELECT s.c, sum(r.a) AS p, avg(r.b) AS q, count(*) AS n FROM r, s WHERE r.b = s.b"
BY_C_AND_W = f"SELECT r.w, {BY_C.removeprefix('SELECT ')}"
RANKED = (
    "SELECT c, d, sum(d) AS p, avg(sum(d)) OVER (PARTITION BY c) AS m, rank() OVER (PARTITION BY c ORDER BY d) AS n"
)
VIEWS = {
    "side_by_side": f"SELECT x.c, x.p, x.q, y.p AS o, y.n FROM ({BY_C} AND r.w = 'x' GROUP BY s.c) x,"
    f" ({BY_C} GROUP BY s.c) y WHERE x.c = y.c",
    "shifted": f"SELECT x.c, x.p, x.q, y.p AS o, y.n FROM ({BY_C} GROUP BY s.c) x, ({BY_C} GROUP BY s.c) y"
    " WHERE x.c = y.c - 1 AND y.n > 0",
    "scaled": f"SELECT x.c, x.p, x.q, y.p AS o, y.n FROM ({BY_C} GROUP BY s.c) x, ({BY_C} GROUP BY s.c) y"
    " WHERE x.c = y.c * 0.5 AND y.n > 0",
    "by_two_keys": f"SELECT x.w, x.c, x.p, y.p AS o, y.n FROM ({BY_C_AND_W} GROUP BY r.w, s.c) x, ({BY_C} GROUP BY s.c)"
    " y WHERE x.c = y.c",
    "neighbours": f"SELECT x.c, x.d, x.p, x.m, y.p AS o FROM ({RANKED} FROM t GROUP BY c, d) x,"
    f" ({RANKED} FROM t GROUP BY c, d) y WHERE x.c = y.c AND x.n = y.n - 1",
    "with_itself": "SELECT x.c, x.p, x.n, y.p AS o, y.n AS m FROM (SELECT t.c, sum(o.d) AS p, count(*) AS n FROM t, t o"
    " WHERE t.d = o.c GROUP BY t.c) x, (SELECT t.c, avg(o.d) AS p, count(o.c) AS n FROM t, t o WHERE t.d = o.c"
    " GROUP BY t.c) y WHERE x.c = y.c",
}
OPTIMIZED = [("interpreter", "optimized"), ("python", "optimized"), ("native", "optimized"), ("python", "cost")]


def refreshed(program: Program) -> set[str]:
    """The views of which some groups are evaluated again."""
    return {s.target.name for t in program.triggers for s in t.statements if s.late}


def test_groups_are_evaluated_again_as_duckdb_does() -> None:
    for watch in agree(case(VIEWS, 8, 70), OPTIMIZED).values():
        watch.check()


@pytest.mark.parametrize("engine", ["interpreter", "python"])
def test_a_batch_of_inserts_and_deletes_is_one_change(engine: str) -> None:
    streamed, done = case(VIEWS, 8, 70), 0
    answers, database = list(streamed.answers()), streamed.open(engine, "optimized")
    for batch in cut(streamed.events, Random(1), 9):
        net_effect(database, batch)
        done += len(batch)
        for view, expected in answers[done - 1].items() if done else ():
            assert not difference(database.view(view).rows(), expected), view


def test_each_of_these_views_has_groups_that_are_evaluated_again() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in VIEWS.items())
    assert refreshed(compile(SCHEMA + script)) == VIEWS.keys()


def test_few_nested_aggregates_keep_their_deltas() -> None:
    grouped = "SELECT c, sum(d) AS p FROM t GROUP BY c"
    assert not refreshed(compile(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS SELECT c, p FROM ({grouped}) x WHERE p > 1;"))
