"""Aggregates over grouped subqueries, each as DuckDB has it, after every event; a sum of sums costs what a sum does."""

from __future__ import annotations

import viewlet
from tests.engines.conformance import agree
from tests.engines.test_aggregates_more import CONTESTANTS, SCHEMA, case
from viewlet.explain import explain

BY_TWO = "SELECT k, f, sum(a) AS s, sum(n) AS t, count(*) AS c, avg(p) AS v FROM r GROUP BY k, f"
VIEWS = {
    "sums": f"SELECT k, sum(s) AS s, sum(t) AS t, sum(c) AS c FROM ({BY_TWO}) q GROUP BY k",
    "one": f"SELECT sum(s) AS s, sum(t) AS t, count(s) AS c FROM ({BY_TWO}) q",
    "groups": f"SELECT k, count(*) AS c, count(s) AS d, avg(s) AS v FROM ({BY_TWO}) q GROUP BY k",
    "squares": f"SELECT k, sum(t * t) AS s, sum(t * c) AS t, sum(s + 1) AS u FROM ({BY_TWO}) q GROUP BY k",
    "tested": f"SELECT k, sum(s) AS s FROM ({BY_TWO}) q WHERE s > 0 OR f GROUP BY k",
    "below": f"SELECT k, sum(s) AS s FROM ({BY_TWO} HAVING count(a) > 1) q GROUP BY k HAVING sum(s) <> 1",
    "both": f"SELECT k, sum(s) AS s FROM ({BY_TWO} UNION ALL SELECT n, f, sum(b), 1, 2, 3 FROM r WHERE b < 99"
    " GROUP BY n, f) q GROUP BY k",
    "levels": f"SELECT k, f, sum(s) AS s, count(s) AS c FROM ({BY_TWO}) q GROUP BY ROLLUP (k, f)",
    "deep": "SELECT k, sum(s) AS s FROM (SELECT k, f, sum(t) AS s FROM (SELECT k, f, n, sum(a) AS t FROM r"
    " GROUP BY k, f, n) o GROUP BY k, f) q GROUP BY k",
    "joined": f"SELECT r.k, sum(q.s) AS s FROM r, ({BY_TWO}) q WHERE q.k = r.n GROUP BY r.k",
    "keys": "SELECT DISTINCT k FROM (SELECT DISTINCT k, f FROM r) q",
    "double": "SELECT sum(s) AS s FROM (SELECT k, sum(x) AS s FROM r GROUP BY k) q",
    "known": "SELECT k, sum(s) AS s FROM (SELECT k, f, sum(n) AS s FROM r WHERE k IN (SELECT q.n FROM r q) GROUP BY"
    " k, f) q GROUP BY k",
}


def test_groups_of_groups_side_by_side() -> None:
    for watch in agree(case(VIEWS, {}, 5, 36), CONTESTANTS).values():
        watch.check()


def test_a_sum_of_sums_is_one_map() -> None:
    program = viewlet.compile(f"{SCHEMA}CREATE MATERIALIZED VIEW sums AS {VIEWS['sums']};")
    assert explain(program).cost_class == "O(1)"
    assert all("Exists" not in view.definition.text for view in program.views)
