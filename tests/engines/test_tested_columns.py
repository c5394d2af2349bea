"""A column that WHERE or ON compares is not NULL behind it: no map counts its NULLs, and the answers stay DuckDB's."""

from __future__ import annotations

import pytest

import viewlet
from tests.engines.conformance import agree
from tests.engines.test_aggregates_more import SCHEMA, case

VIEWS = {
    "compared": "SELECT k, sum(a) AS s, avg(a) AS v, max(a) AS m, count(p) AS c FROM r WHERE a > -5 GROUP BY k",
    "either": "SELECT k, sum(a) AS s, sum(b) AS t FROM r WHERE a > 1 OR b > 1 GROUP BY k",
    "computed": "SELECT s, sum(b) AS t, min(b) AS m FROM r WHERE b + n > a GROUP BY s",
    "like": "SELECT s, upper(s) AS u, sum(x) AS t FROM r WHERE s LIKE 'a%' GROUP BY s",
    "chosen": "SELECT coalesce(a, 9) AS c, a IS NULL AS z, nullif(a, 5) AS n FROM r WHERE a <> 0",
    "rolled": "SELECT k, f, sum(a) AS s FROM r WHERE f IS NOT NULL AND k < 9 GROUP BY ROLLUP (k, f)",
    "joined": "SELECT q.a, t.s, sum(t.b) AS b FROM r q LEFT JOIN r t ON q.a = t.a WHERE t.b < 99 GROUP BY q.a, t.s",
    "kept": "SELECT q.a, t.s, sum(t.b) AS b FROM r q LEFT JOIN r t ON q.a = t.a AND t.b < 99 GROUP BY q.a, t.s",
    "around": "SELECT a, (SELECT sum(t.a) FROM r t WHERE t.k = r.k) AS s, k IN (SELECT n FROM r) AS i FROM r"
    " WHERE k < 2",
    "window": "SELECT k, a, sum(n) OVER (PARTITION BY k ORDER BY b RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS s"
    " FROM r WHERE b IS NOT NULL",
}


def test_tested_columns_are_those_of_duckdb(soaking: bool) -> None:
    contestants = [("interpreter", "optimized"), ("native", "cost"), ("python", "reevaluate"), ("python", "naive")]
    for view in agree(case(VIEWS, {}, 11, 40), contestants if soaking else contestants[:2]).values():
        view.check()


@pytest.mark.parametrize(
    ("where", "nullable"), [("a > 0", False), ("a IS NOT NULL", False), ("a > 0 OR n > 0", True), ("n > 0", True)]
)
def test_no_map_counts_what_is_never_null(where: str, nullable: bool) -> None:
    select = f"SELECT n, sum(a) AS s FROM r WHERE {where} GROUP BY n"
    program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select};")
    assert [column.nullable for column in program.results[0].columns] == [False, nullable]
    assert len(program.views) == 2 + nullable  # the groups, the sum, and how many of its values are not NULL
