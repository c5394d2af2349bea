"""Aliases that are used again, * with EXCLUDE, REPLACE and RENAME, and ORs that share a conjunct equal DuckDB."""

from __future__ import annotations

import viewlet
from tests.engines.conformance import agree
from tests.engines.three_streams import SCHEMA, case
from viewlet.loops.cost_class import program_cost_class

QUERIES = {
    "later": "SELECT a + 1 AS k, k * 2 AS kk, b FROM r WHERE kk > 2",
    "of_sums": "SELECT a, SUM(b) AS z, z + 1 AS y, COUNT(*) AS n FROM r GROUP BY a HAVING y > 0 OR n > 1",
    "in_sums": "SELECT a + 1 AS q, SUM(q) AS z, MAX(q + b) AS m FROM r GROUP BY q",
    "from_inside": "SELECT b AS q, (SELECT MAX(s.c) + q FROM s WHERE s.b = r.a) AS y FROM r "
    "WHERE EXISTS (SELECT 1 FROM s WHERE s.c <= q)",
    "columns_first": "SELECT b AS a, a AS x FROM r WHERE a > 0",
    "before_outer": "SELECT t.d, (SELECT SUM(r.b) AS d FROM r WHERE r.a = t.c HAVING d > 1) AS y FROM t",
    "in_parentheses": "SELECT x.a, x.b FROM (SELECT DISTINCT (a), ((r.b)) FROM r) x",
    "a_key_of_another_type": "SELECT CAST(a AS DOUBLE) AS d, a, CAST(a AS DECIMAL(5,1)) AS e, SUM(b) AS z FROM r "
    "GROUP BY CUBE (a, w)",
    "a_key_with_a_subquery": "SELECT a IN (SELECT b FROM s) AS k, COUNT(*) AS n FROM r GROUP BY 1 HAVING k OR n > 1",
    "such_a_key_in_sets": "SELECT (SELECT MAX(s.c) FROM s WHERE s.b = r.a) AS k, w, SUM(b) AS z FROM r "
    "GROUP BY ROLLUP (k, w)",
    "excluded": "SELECT * EXCLUDE (w) FROM r",
    "replaced": "SELECT * REPLACE (b + 1 AS b) RENAME (a AS z) FROM r",
    "some": "SELECT r.* EXCLUDE (a), s.* EXCLUDE (b, x) FROM r LEFT JOIN s ON r.a = s.b",
    "by_table": "SELECT * EXCLUDE (s.b, s.x) FROM r LEFT JOIN s ON r.a = s.b",
    "merged": "SELECT * EXCLUDE (a, w) FROM r FULL JOIN (SELECT b, c FROM s) s USING (b)",
    "unnamed": "SELECT * FROM (SELECT a, count(*) AS n FROM r GROUP BY a) FULL JOIN (SELECT b AS a, c FROM s)"
    " USING (a)",
    "unnamed_twice": "SELECT unnamed_subquery.a, unnamed_subquery2.a AS b, x.c"
    " FROM (SELECT a FROM r), (SELECT b AS a FROM s), s x WHERE unnamed_subquery.a = x.b",
    "shared": "SELECT r.b, s.c FROM r, s WHERE (r.a = s.b AND s.c > 0 AND r.b > 1) OR (s.c < 1 AND r.a = s.b) "
    "OR (r.a = s.b AND r.w = 'x')",
    "shared_terms": "SELECT b, (a = 1 AND b > 0) OR (a = 1 AND w = 'x') AS p, a = 1 OR (a = 1 AND b > 0) AS q, "
    "NOT ((a > 0 AND w = 'y') OR (b > 1 AND a > 0)) AS x FROM r",
}


def test_select_items_equal_the_referee_after_every_event() -> None:
    contestants = [("python", "optimized"), ("interpreter", "classical"), ("python", "reevaluate")]
    for vacuity in agree(case(QUERIES, 6, 40), contestants).values():
        vacuity.check()


def test_a_conjunct_of_all_alternatives_is_a_lookup() -> None:
    program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {QUERIES['shared']};")
    assert str(program_cost_class(program)) == "O(matches)"


def test_is_not_distinct_from_is_a_lookup() -> None:
    join = "SELECT r.b, s.c FROM r FULL JOIN s ON r.a IS NOT DISTINCT FROM s.b"
    program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {join};")
    assert str(program_cost_class(program)) == "O(matches)"
