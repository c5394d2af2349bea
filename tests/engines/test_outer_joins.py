"""Outer joins, SEMI, ANTI, NATURAL, LATERAL and VALUES equal DuckDB after every event."""

from __future__ import annotations

import viewlet
from tests.engines.conformance import agree
from tests.engines.three_streams import EVERYWHERE, SCHEMA, case

PLAIN = {
    "left_": "SELECT r.a, r.w, s.b AS sb, s.x FROM r LEFT JOIN s ON r.a = s.b",
    "left_both": "SELECT r.a, s.c FROM r LEFT OUTER JOIN s ON r.a = s.b AND r.b < s.c",
    "left_constant": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.a = s.b AND r.b > 1 AND s.c IS NOT NULL",
    "left_range": "SELECT r.b, s.b AS sb FROM r LEFT JOIN s ON s.b < r.a OR s.c = r.b",
    "left_true": "SELECT r.b, t.d FROM r LEFT JOIN t ON TRUE",
    "right_": "SELECT r.a, r.b, s.c FROM r RIGHT JOIN s ON r.a = s.b",
    "full_": "SELECT r.a, r.w, s.b AS sb, s.c FROM r FULL JOIN s ON r.a = s.b",
    "full_range": "SELECT r.b, s.c FROM r FULL OUTER JOIN s ON r.b <= s.c AND r.a = s.b",
    "semi_": "SELECT r.a, r.w FROM r SEMI JOIN s ON r.a = s.b AND s.c > 0",
    "anti_": "SELECT a, w FROM r ANTI JOIN s USING (b)",
    "same": "SELECT x.a, y.b FROM r x LEFT JOIN r y ON x.a = y.b",
}
USING = {
    "using_left": "SELECT * FROM r LEFT JOIN s USING (b)",
    "using_right": "SELECT b, r.b AS rb, s.b AS sb FROM r RIGHT JOIN s USING (b)",
    "using_full": "SELECT * FROM r FULL JOIN s USING (b)",
    "using_three": "SELECT * FROM (SELECT b AS c, a FROM r) r FULL JOIN (SELECT c, x FROM s) s USING (c) FULL JOIN t "
    "USING (c)",
    "using_group": "SELECT b, COUNT(*) AS n, COUNT(s.c) AS m FROM r FULL JOIN s USING (b) GROUP BY b",
    "natural_left": "SELECT * FROM s NATURAL LEFT JOIN t NATURAL LEFT JOIN k",
    "natural_": "SELECT c, d, name FROM t NATURAL JOIN k",
}
AGGREGATES = {
    "counts": "SELECT r.b, COUNT(*) AS n, COUNT(s.c) AS m, SUM(s.c) AS x, AVG(s.x) AS y, MAX(s.c) AS z FROM r LEFT "
    "JOIN s ON r.a = s.b GROUP BY r.b",
    "by_padded": "SELECT s.c, s.b, COUNT(*) AS n, SUM(r.b) AS x FROM r LEFT JOIN s ON r.a = s.b GROUP BY s.c, s.b",
    "without": "SELECT COUNT(*) AS n FROM r LEFT JOIN s ON r.a = s.b WHERE s.b IS NULL",
    "coalesced": "SELECT r.a, COALESCE(SUM(s.c), 0) AS x FROM r LEFT JOIN s ON r.a = s.b GROUP BY r.a HAVING "
    "COUNT(s.b) < 2",
    "of_full": "SELECT r.a IS NULL AS alone, COUNT(*) AS n, SUM(s.c - r.b) AS x FROM r FULL JOIN s ON r.a = s.b "
    "GROUP BY r.a IS NULL",
    "distinct_": "SELECT DISTINCT s.c FROM r LEFT JOIN s ON r.a = s.b",
}
CHAINS = {
    "three": "SELECT r.a, s.c, t.d FROM r LEFT JOIN s ON r.a = s.b LEFT JOIN t ON s.c = t.c",
    "star": "SELECT r.b, s.c, t.d, k.name FROM r LEFT JOIN s ON r.a = s.b LEFT JOIN t ON r.b = t.c LEFT JOIN k "
    "ON k.c = r.a",
    "star_sum": "SELECT k.name, SUM(r.b) AS x, COUNT(t.d) AS n FROM r LEFT JOIN s ON r.a = s.b LEFT JOIN t ON r.b = "
    "t.c LEFT JOIN k ON k.c = s.c GROUP BY k.name",
    "mixed": "SELECT r.a, s.c, t.d FROM r RIGHT JOIN s ON r.a = s.b FULL JOIN t ON s.c = t.c",
    "inner_after": "SELECT r.a, s.c, t.d FROM r LEFT JOIN s ON r.a = s.b JOIN t ON t.d >= COALESCE(s.c, 0)",
    "comma": "SELECT r.a, s.c, t.d FROM r, s RIGHT JOIN t ON s.c = t.c",
    "lateral_on": "SELECT r.b, s.c, t.d FROM r, s LEFT JOIN t ON r.a = t.c",
    "nested": "SELECT r.a, s.c, t.d FROM r LEFT JOIN (s JOIN t ON s.c = t.c) ON r.a = s.b",
    "rejected": "SELECT r.a, s.c, t.d FROM r LEFT JOIN s ON r.a = s.b LEFT JOIN t ON s.c = t.c WHERE t.d > -1",
    "half_rejected": "SELECT r.a, s.c FROM r FULL JOIN s ON r.a = s.b WHERE COALESCE(r.b, -1) > 0",
    "kept": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.a = s.b WHERE s.c > 0 OR s.c IS NULL",
}
SIDES = {
    "grouped": "SELECT r.a, q.n FROM r LEFT JOIN (SELECT b, COUNT(*) AS n, SUM(c) AS x FROM s GROUP BY b) q ON r.a "
    "= q.b",
    "computed": "SELECT r.b, q.twice FROM r LEFT JOIN (SELECT b, c * 2 AS twice, 1 AS one FROM s) q ON r.a = q.b",
    "common": "WITH q AS (SELECT s.b, t.d FROM s LEFT JOIN t ON s.c = t.c) SELECT r.w, q.d FROM r LEFT JOIN q ON "
    "q.b = r.a",
    "of_view": "SELECT r.a, v.x FROM r LEFT JOIN left_ v ON r.a = v.sb",
    "in_on": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.a = s.b AND EXISTS (SELECT 1 FROM t WHERE t.c = s.c)",
    "sum_in_on": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.b < (SELECT SUM(s.c) FROM s WHERE s.b = t.c)",
    "unioned": "SELECT q.a, t.d FROM (SELECT a FROM r UNION ALL SELECT c FROM s) q LEFT JOIN t ON q.a = t.c",
    "lateral_": "SELECT r.a, q.m FROM r, LATERAL (SELECT MAX(s.c) AS m FROM s WHERE s.b = r.a) q",
    "lateral_rows": "SELECT r.a, q.y FROM r JOIN LATERAL (SELECT s.c + r.b AS y FROM s WHERE s.b < r.a) q ON q.y > 0",
    "lateral_left": "SELECT r.a, q.c FROM r LEFT JOIN LATERAL (SELECT s.c FROM s WHERE s.b = r.a) q ON TRUE",
    "values_": "SELECT r.a, q.u FROM r LEFT JOIN (VALUES (1, 'x'), (2, NULL), (2, 'y')) q (k, u) ON q.k = r.a",
    "values_first": "SELECT q.col0, s.c FROM (VALUES (1), (NULL), (2)) q LEFT JOIN s ON s.b = q.col0",
    "from_first": "FROM r LEFT JOIN s ON r.a = s.b SELECT r.w, s.c WHERE r.b > 0",
}
QUERIES = PLAIN | USING | AGGREGATES | CHAINS | SIDES


PREPARE = (f"CREATE VIEW left_ AS {PLAIN['left_']}",)
ON_ALL = ("left_both", "full_", "using_full", "counts", "by_padded", "star_sum", "nested", "lateral_left", "values_")


def test_joins_equal_the_referee_after_every_event() -> None:
    for vacuity in agree(case(QUERIES, 6, 40, PREPARE), [("python", "optimized")]).values():
        vacuity.check()


def test_every_engine_and_strategy_has_outer_joins() -> None:
    for vacuity in agree(case({name: QUERIES[name] for name in ON_ALL}, 6, 40), EVERYWHERE).values():
        vacuity.check()


def test_five_outer_joins_in_a_row_are_five_lookups() -> None:
    """The products of all branches would be 32, and each would have maps of its own."""
    tables = "".join(f"CREATE STREAM d{i} (k INTEGER, x INTEGER);" for i in range(5))
    fact = f"CREATE STREAM f ({', '.join(f'k{i} INTEGER' for i in range(5))}, v INTEGER);"
    columns = ", ".join(f"d{i}.x AS x{i}" for i in range(5))
    joins = " ".join(f"LEFT JOIN d{i} ON f.k{i} = d{i}.k" for i in range(5))
    program = viewlet.compile(f"{fact}{tables}CREATE MATERIALIZED VIEW v AS SELECT f.v, {columns} FROM f {joins};")
    assert len(program.views) == 12  # the view, f, and of each d its rows and its counts


def test_a_condition_that_rejects_nulls_makes_the_join_an_inner_one() -> None:
    joins = "SELECT r.a, s.c, t.d FROM r {0} JOIN s ON r.a = s.b {0} JOIN t ON s.c = t.c WHERE t.d > 0"
    outer, inner = (
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {joins.format(kind)};") for kind in ("LEFT", "INNER")
    )
    assert [v.definition for v in outer.views] == [v.definition for v in inner.views]
