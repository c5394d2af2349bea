"""ANY, ALL, row values, IS DISTINCT FROM and scalar subqueries equal DuckDB after every event."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.engines.three_streams import EVERYWHERE, SCHEMA, case
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

GROUPED = "SELECT b, COUNT(*) AS n FROM s GROUP BY b"
QUERIES = {
    "any_": "SELECT b, a = ANY (SELECT b FROM s) AS p, b >= ANY (SELECT d FROM t) AS q, a < SOME (SELECT c "
    "FROM t) AS x "
    "FROM r",
    "all_": "SELECT b, a <> ALL (SELECT b FROM s) AS p, b < ALL (SELECT c FROM s) AS q, a = ALL (SELECT c FROM t) AS x "
    "FROM r",
    "where_all": "SELECT a FROM r WHERE b > ALL (SELECT d FROM t WHERE t.c = r.a)",
    "where_not": "SELECT a FROM r WHERE NOT (b < ANY (SELECT c FROM s WHERE c > 1))",
    "list_": "SELECT a, a = ANY ([1, 2]) AS x, b < ANY ([1, NULL]) AS y FROM r",
    "row_in": "SELECT a, (a, b) IN (SELECT b, c FROM s) AS x, (a, b) NOT IN (SELECT c, d FROM t) AS y FROM r",
    "where_row": "SELECT a, b FROM r WHERE (a, b) IN (SELECT c, d FROM t)",
    "rows_": "SELECT b, (a, b) = (1, 2) AS p, (a, b) < (2, 1) AS q, (a, w) >= (1, 'y') AS x, (a, w) <> "
    "(NULL, 'x') AS y "
    "FROM r",
    "row_list": "SELECT b FROM r WHERE (a, b) IN ((1, 2), (NULL, 1), (0, 0), (2, 1))",
    "distinct_from": "SELECT b, a IS NOT DISTINCT FROM b AS x, a IS DISTINCT FROM NULL AS y FROM r",
    "join_same": "SELECT r.b, s.c FROM r JOIN s ON r.a IS NOT DISTINCT FROM s.b",
    "full_same": "SELECT r.b, s.c FROM r FULL JOIN s ON r.a IS NOT DISTINCT FROM s.b AND r.b > 0",
    "one_group": "SELECT b, (SELECT SUM(c) FROM s WHERE s.b = r.a GROUP BY s.b) AS x FROM r",
    "one_distinct": "SELECT b, (SELECT DISTINCT w FROM r y WHERE y.w = r.w AND y.b > 0) AS x FROM r",
    "one_of_groups": f"SELECT a, (SELECT q.n FROM ({GROUPED}) q WHERE q.b = r.a) AS n FROM r",
    "chosen": f"SELECT a FROM r WHERE (SELECT q.n FROM ({GROUPED}) q WHERE q.b = r.a) > 1 - b",
    "in_case": "SELECT a, CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.b = r.a) THEN (SELECT MAX(d) FROM t) END "
    "AS x FROM r",
    "aggregated": "SELECT SUM((SELECT COUNT(*) FROM s WHERE s.b = r.a) * b) AS x FROM r",
    "having_any": "SELECT a, SUM(b) AS x FROM r GROUP BY a HAVING SUM(b) > ANY (SELECT d FROM t) OR a IN (SELECT "
    "b FROM s)",
}
KEYED = "CREATE STREAM k (id INTEGER PRIMARY KEY, name VARCHAR, boss INTEGER); CREATE STREAM e (a INTEGER, v INTEGER);"
BY_KEY = {
    "named": "SELECT a, v, (SELECT name FROM k WHERE k.id = e.a) AS name FROM e",
    "over_two": "SELECT a, (SELECT y.name FROM k x JOIN k y ON y.id = x.boss WHERE x.id = e.a) AS boss FROM e",
    "compared": "SELECT a FROM e WHERE (SELECT name FROM k WHERE k.id = e.a) = 'x'",
    "of_a_sum": "SELECT (SELECT name FROM k WHERE k.id = 1) AS one, SUM(v) AS z FROM e",
    "of_groups": "SELECT a, SUM(v) AS z FROM e GROUP BY a HAVING (SELECT boss FROM k WHERE k.id = e.a) > 0",
}
ON_ALL = ("any_", "all_", "row_in", "rows_", "join_same", "full_same", "one_group", "chosen")


def test_quantifiers_equal_the_referee_after_every_event() -> None:
    for vacuity in agree(case(QUERIES, 6, 40), [("python", "optimized")]).values():
        vacuity.check()


def test_every_engine_and_strategy_has_quantifiers() -> None:
    for vacuity in agree(case({name: QUERIES[name] for name in ON_ALL}, 6, 40), EVERYWHERE).values():
        vacuity.check()


def keyed_stream(events: int) -> Iterator[Event]:
    """At most one row of k for each id."""
    pick = Random(3)
    keyed: dict[int, Row] = {}
    rows: list[Row] = []
    for _ in range(events):
        id_ = pick.randint(0, 3)
        if pick.random() < 0.4:
            row = keyed.pop(id_, None)
            yield ("-", "k", row) if row else ("+", "k", keyed.setdefault(id_, (id_, pick.choice("xy"), id_ // 2)))
        elif rows and pick.random() < 0.3:
            yield "-", "e", rows.pop(pick.randrange(len(rows)))
        else:
            rows.append((pick.choice((None, 0, 1, 2, 3)), pick.choice((None, 1, 2))))
            yield "+", "e", rows[-1]


def test_a_row_that_a_key_finds_is_a_value() -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};\n" for name, sql in BY_KEY.items())
    contestants = [("python", "optimized"), ("interpreter", "classical"), ("native", "optimized")]
    for vacuity in agree(Case(KEYED, views, BY_KEY, list(keyed_stream(40))), contestants).values():
        vacuity.check()


@pytest.mark.parametrize("query", ["SELECT c FROM s WHERE s.b = r.a", "SELECT b FROM s WHERE c > r.a GROUP BY b"])
def test_a_scalar_subquery_that_may_have_two_rows_for_one_group_is_refused(query: str) -> None:
    """DuckDB fails when it meets the second row."""
    with pytest.raises(viewlet.UnsupportedError, match="a scalar subquery that may have several rows"):
        viewlet.compile(
            f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT a, ({query}) AS x, count(*) AS n FROM r GROUP BY a;"
        )
