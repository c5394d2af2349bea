"""The first rows of each group: QUALIFY row_number() and rank(), numbers of a subquery, DISTINCT ON."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k INTEGER, v INTEGER, s VARCHAR, d DOUBLE, f BOOLEAN);
CREATE STREAM u (k INTEGER NOT NULL, p DECIMAL(6,2) NOT NULL);
"""
# what a view says, and after it how the referee chooses among rows that agree in all terms
QUERIES = {
    "newest": ("SELECT k, v, s FROM r QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC{}) = 1", "k, v, s"),
    "two": ("SELECT k, v FROM r QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, s DESC{}) <= 2", "k, v"),
    "three": ("SELECT v, s FROM r WHERE v > -2 QUALIFY row_number() OVER (ORDER BY s NULLS FIRST{}) < 4", "v, s"),
    "any_row": ("SELECT k, f FROM r QUALIFY row_number() OVER (PARTITION BY k{}) = 1", "k, f"),
    "by_flag": (
        "SELECT k, f, d FROM r QUALIFY row_number() OVER (PARTITION BY k ORDER BY f DESC, d{}) <= 1",
        "k, f, d",
    ),
    "ranked": ("SELECT k, d FROM r QUALIFY rank() OVER (PARTITION BY k ORDER BY d DESC NULLS FIRST) <= 2", ""),
    "twice": ("SELECT k, s FROM r QUALIFY rank() OVER (PARTITION BY k, s ORDER BY v + 1, d) = 1", ""),
    "none": ("SELECT k FROM r QUALIFY rank() OVER (ORDER BY v) <= 1 - 1", ""),
    "joined": (
        "SELECT r.k, u.p FROM r JOIN u ON r.k = u.k QUALIFY row_number() OVER (PARTITION BY r.k ORDER BY u.p{}) <= 2",
        "r.k, u.p",
    ),
    "numbered": (
        "SELECT v, k FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC{}) AS n FROM r) x "
        "WHERE n <= 2 AND v > -1",
        "k, v",
    ),
    "summed": (
        "SELECT k, sum(p) AS t FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY p DESC) AS n FROM u) x "
        "WHERE x.n < 3 GROUP BY k",
        "",
    ),
    "first_on": ("SELECT DISTINCT ON (k) k, v, s FROM r ORDER BY k, v{}", "k, v, s"),
}


def event(rng: Random, there: list[tuple[str, Row]]) -> Event:
    if there and rng.random() < 0.35:
        return "-", *there.pop(rng.randrange(len(there)))
    if rng.random() < 0.25:
        name, row = "u", (rng.randint(0, 2), Decimal(rng.randint(-2, 2)) / 4)
    else:
        v, s = rng.choice((None, -3, -1, 0, 1, 2)), rng.choice((None, "", "a", "é"))
        d, f = rng.choice((None, -0.5, 0.0, 1e300)), rng.choice((None, True, False))
        name, row = "r", (rng.choice((None, 0, 1)), v, s, d, f)
    there.append((name, row))
    return "+", name, row


def case(seed: int, length: int) -> Case:
    rng, there = Random(seed), list[tuple[str, Row]]()
    events = [event(rng, there) for _ in range(length)]
    events += [("-", *gone) for gone in there]
    views = "".join(f"CREATE MATERIALIZED VIEW {n} AS {q.replace('{}', '')};\n" for n, (q, _) in QUERIES.items())
    return Case(SCHEMA, views, {n: _in_full(q, ties) for n, (q, ties) in QUERIES.items()}, events)


def _in_full(query: str, ties: str) -> str:
    joint = ", " if "ORDER BY" in query else " ORDER BY "
    return query.replace("{}", f"{joint}{ties}")


def test_the_first_rows_of_each_group_equal_the_referees() -> None:
    ways = [("native", "optimized"), ("python", "cost"), ("python", "classical"), ("interpreter", "naive")]
    watched = agree(case(seed=2, length=70), ways)
    assert watched.pop("none").empty
    for vacuity in watched.values():
        vacuity.check()
