"""UNION, INTERSECT and EXCEPT equal DuckDB after every event."""

from __future__ import annotations

from tests.engines.conformance import agree
from tests.engines.three_streams import EVERYWHERE, case

QUERIES = {
    "united": "SELECT a, b FROM r UNION SELECT b, c FROM s",
    "common": "SELECT a, b FROM r INTERSECT SELECT c, d FROM t",
    "without": "SELECT a, b FROM r EXCEPT SELECT b, c FROM s",
    "fewest": "SELECT a FROM r INTERSECT ALL SELECT b FROM s",
    "surplus": "SELECT a FROM r EXCEPT ALL SELECT b FROM s",
    "of_itself": "SELECT a FROM r EXCEPT ALL SELECT a FROM r WHERE b > 1",
    "by_name": "SELECT b, a FROM r UNION BY NAME SELECT c AS a, b, x FROM s",
    "all_by_name": "SELECT a, w FROM r UNION ALL BY NAME SELECT name AS w, c FROM k",
    "nested": "(SELECT a FROM r UNION SELECT c FROM s) EXCEPT (SELECT c FROM t UNION ALL SELECT 0)",
    "precedence": "SELECT a FROM r UNION ALL SELECT c FROM s INTERSECT SELECT c FROM t",
    "types": "SELECT x, 1 AS y FROM s UNION SELECT d, 1.5 FROM t",
    "counted": "SELECT q.x, COUNT(*) AS n FROM (SELECT a AS x FROM r EXCEPT ALL SELECT b FROM s) q GROUP BY q.x",
    "summed": "SELECT COUNT(*) AS n, SUM(q.x) AS m FROM (SELECT a AS x FROM r UNION SELECT b FROM s) q",
    "in_union": "SELECT a FROM r WHERE a IN (SELECT b FROM s UNION SELECT c FROM t)",
    "correlated": "SELECT a FROM r WHERE EXISTS (SELECT b FROM s WHERE s.b = r.a INTERSECT SELECT c FROM t)",
    "constant": "SELECT 1 AS u EXCEPT SELECT b FROM s",
    "written": "VALUES (1, 2), (2, NULL) EXCEPT SELECT a, b FROM r",
    "joined": "WITH q AS (SELECT a FROM r INTERSECT SELECT b FROM s) SELECT q.a, t.d FROM q LEFT JOIN t ON t.c = q.a",
}
ON_ALL = ("united", "common", "without", "fewest", "surplus", "by_name", "counted")


def test_sets_equal_the_referee_after_every_event() -> None:
    for vacuity in agree(case(QUERIES, 6, 40), [("python", "optimized")]).values():
        vacuity.check()


def test_every_engine_and_strategy_has_sets() -> None:
    for vacuity in agree(case({name: QUERIES[name] for name in ON_ALL}, 6, 40), EVERYWHERE).values():
        vacuity.check()
