"""GROUPING SETS, ROLLUP and CUBE, each as DuckDB has it, after every event."""

from __future__ import annotations

import pytest

import viewlet
from tests.engines.conformance import agree
from tests.engines.test_aggregates_more import CONTESTANTS, case

VIEWS = {
    "levels": "SELECT k, f, grouping(k, f) AS g, grouping(f) AS h, sum(n) AS s, count(*) AS c, min(s) AS m, avg(x)"
    " AS v,"
    " count(DISTINCT a) AS u, arg_max(n, n) FILTER (WHERE p < 0) AS b FROM r GROUP BY ROLLUP (k, f)",
    "cubed": "SELECT k, n + 1 AS m, s, grouping_id(s, m, k) AS g, sum(a) FILTER (WHERE f) AS v, bool_and(f) AS o FROM r"
    " GROUP BY CUBE (k, m, s) HAVING count(*) > 1",
    "sets": "SELECT k, f, grouping(f) AS g, count(*) AS c FROM r GROUP BY GROUPING SETS ((1, f), (1), (), (1),"
    " ROLLUP (f))",
    "mixed": "SELECT k, f, n, count(*) AS c, sum(k) AS s FROM r GROUP BY n, ROLLUP (k), GROUPING SETS (f, ())",
    "of_nothing": "SELECT k, count(*) AS c, sum(n) AS s, max(n) AS m, var_pop(n) AS v FROM r WHERE n = 4 GROUP BY"
    " ROLLUP (k)",
    "row_items": "SELECT k, f, n, max(d) AS d FROM r GROUP BY ROLLUP ((k, f), 3)",
    "below": "SELECT t.g, count(*) AS c, sum(t.s) AS s FROM (SELECT k, grouping(k) AS g, sum(n) AS s FROM r"
    " GROUP BY ROLLUP (k)) t GROUP BY t.g",
    "compared": "SELECT n FROM r WHERE n < (SELECT max(t.s) FROM (SELECT k, avg(n) AS s FROM r GROUP BY ROLLUP (k)) t)",
    "never_null": "SELECT k IS NULL AS a, coalesce(k IS NULL, f, TRUE) AS b, coalesce(f, k = 1, TRUE) AS c,"
    " count(*) AS o FROM r GROUP BY ROLLUP (k, f, (k IS NULL))",
    "plain": "SELECT (k), grouping(k) AS g, sum(n) AS s FROM r GROUP BY (k, f), () HAVING grouping(k) = 0",
}


def test_groupings_side_by_side() -> None:
    for watch in agree(case(VIEWS, {}, 3, 36), CONTESTANTS).values():
        watch.check()


def test_a_key_that_another_would_be_taken_for_is_refused() -> None:
    schema = "CREATE STREAM r (k INTEGER NOT NULL); CREATE MATERIALIZED VIEW v AS "
    with pytest.raises(viewlet.UnsupportedError, match="COALESCE of what is never NULL as a key of grouping sets"):
        viewlet.compile(f"{schema} SELECT coalesce(k, 1) AS a, count(*) AS n FROM r GROUP BY ROLLUP (coalesce(k, 1))")
