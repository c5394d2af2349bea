"""LIMIT and OFFSET in subqueries, ranks between two numbers, dense_rank, ranks as columns: as DuckDB has them.

Where rows tie, the referee's query says which one comes first: the one with the lesser columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM r (k INTEGER, a INTEGER, s VARCHAR); CREATE STREAM q (k INTEGER, b INTEGER);"
VIEWS = {
    "first": "SELECT t.a, t.s FROM (SELECT a, s FROM r ORDER BY a DESC NULLS LAST, s LIMIT 3) t WHERE t.a < 9",
    "summed": "SELECT count(*) AS n, sum(a) AS s FROM (SELECT a FROM r ORDER BY 1 LIMIT 4) t",
    "skipped": "SELECT * FROM (SELECT s, a AS k FROM r ORDER BY s NULLS FIRST, k LIMIT 2 OFFSET 1) t",
    "all_but_two": "SELECT k, count(*) AS n FROM (SELECT * FROM q ORDER BY ALL OFFSET 2) t GROUP BY k",
    "groups": "SELECT q.b, t.n FROM q JOIN (SELECT k, count(*) AS n FROM r GROUP BY k ORDER BY sum(a) DESC, k LIMIT 1)"
    " t ON t.k = q.k",
    "sets": "SELECT * FROM (SELECT k FROM r UNION SELECT k FROM q ORDER BY k DESC LIMIT 2) t",
    "distinct_": "SELECT count(*) AS n FROM (SELECT DISTINCT s FROM r ORDER BY s LIMIT 3) t",
    "in_": "SELECT k, s FROM r WHERE a IN (SELECT b FROM q ORDER BY b DESC, k LIMIT 2)",
    "last_of_each": "SELECT k, a, (SELECT b FROM q WHERE q.k = r.k ORDER BY b DESC LIMIT 1) AS b FROM r",
    "greatest": "SELECT s, (SELECT k FROM q GROUP BY k ORDER BY count(*) DESC, k LIMIT 1) AS m FROM r",
    "dense": "SELECT k, s FROM r QUALIFY dense_rank() OVER (PARTITION BY k ORDER BY a DESC) <= 2",
    "middle": "SELECT k, s FROM r QUALIFY rank() OVER (ORDER BY a) BETWEEN 2 AND 4",
    "second": "SELECT k, s, a FROM r QUALIFY row_number() OVER (PARTITION BY k ORDER BY a, s) = 2",
    "numbered": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY a DESC, s) AS n FROM r)"
    " WHERE n <= 3",
    "shown_rank": "SELECT rank() OVER (ORDER BY a) AS n, s, k FROM r QUALIFY n <= 4",
    "shown_dense": "SELECT k, dense_rank() OVER (PARTITION BY k ORDER BY s) AS n, a FROM r QUALIFY n BETWEEN 2 AND 3",
    "of_numbers": "SELECT n, sum(a) AS s FROM (SELECT a, row_number() OVER (ORDER BY a, s) AS n FROM r) t"
    " WHERE n <= 4 AND n <> 2 GROUP BY n",
    "over_a_view": "SELECT s, count(*) AS n FROM top GROUP BY s",
}
OPEN = {"any_two": "SELECT * FROM (SELECT s, a FROM r WHERE k = 1 LIMIT 2) t"}
REFEREE = {"any_two": "SELECT s, a FROM r WHERE k = 1 ORDER BY s, a LIMIT 2"}
TOP = "AS SELECT s, a FROM r ORDER BY a, s LIMIT 3"


def stream(length: int) -> Iterator[Event]:
    rng, rows = Random(9), list[tuple[str, Row]]()
    for _ in range(length):
        if rows and rng.random() < 0.3:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        r = rng.choice([1, 1, 2, None]), rng.choice([-3, 0, 5, 5, 8, None]), rng.choice(["a", "b", "é", None])
        q = rng.choice([1, 2, 2, None]), rng.choice([0, 5, 8, None])
        rows.append(("r", r) if rng.random() < 0.6 else ("q", q))
        yield "+", *rows[-1]


def test_as_duckdb() -> None:
    views = f"CREATE MATERIALIZED VIEW top {TOP};"
    views += "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in (VIEWS | OPEN).items())
    case = Case(SCHEMA, views, VIEWS | REFEREE, list(stream(40)), prepare=(f"CREATE VIEW top {TOP}",))
    contestants = [("interpreter", "optimized"), ("python", "reevaluate"), ("native", "cost")]
    for watched in agree(case, contestants).values():
        watched.check()


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT k FROM r, LATERAL (SELECT b FROM q WHERE q.k = r.k ORDER BY b LIMIT 2) t", "of a correlated subquery"),
        ("SELECT k FROM (SELECT DISTINCT k FROM r ORDER BY k + 1 LIMIT 2) t", "this ORDER BY of a subquery with LIMIT"),
        ("SELECT k FROM (SELECT * FROM r ORDER BY 1 LIMIT 2) t", "ORDER BY 1 in a subquery with LIMIT"),
        ("SELECT k FROM (SELECT k, a FROM r ORDER BY ALL DESC LIMIT 2) t", "ORDER BY ALL DESC in a subquery"),
        ("SELECT k, row_number() OVER (ORDER BY a) AS n FROM r QUALIFY n <= 65", "a column of more than 64 rows"),
    ],
)
def test_refused(select: str, message: str) -> None:
    with pytest.raises(viewlet.UnsupportedError, match=message):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")
