"""Queries that ordered access paths once got wrong: all strategies against DuckDB after every event.

The views of a script are compiled together, so that the native engine takes one compilation for them all.
"""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest

from tests.engines.conformance import STRATEGIES, Case, agree
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k BIGINT NOT NULL, a BIGINT, b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE STREAM s (g BIGINT NOT NULL, f BOOLEAN, n BIGINT, t TIMESTAMP NOT NULL);
"""
SELECTS = {
    # natively, a late increment wiped out all other groups
    "groups": """SELECT x.k, SUM(x.b) AS n FROM r x
        WHERE (SELECT COUNT(*) FROM r y WHERE y.k = x.k AND y.b < x.b) > 0 GROUP BY x.k""",
    # a factor that gives the running sum, too, was taken for a test of it
    "total_joined": """SELECT SUM(x.v) AS n FROM (SELECT p.b AS v, (SELECT COUNT(*) FROM r q WHERE q.k < p.k) AS m
        FROM r p) x, r y WHERE m > 1 AND y.k = x.m""",
    # R(x, x, k) lost its equality
    "repeated": "SELECT SUM(x.b * y.b) AS n FROM r x, r y WHERE y.b = y.c AND y.k > x.k",
    # the outer key was needed before it had a value
    "key_as_slice": """SELECT SUM(x.b) AS n FROM r x
        WHERE 2 < (SELECT SUM(y.b) FROM r y WHERE y.c = x.k AND y.k < x.k)""",
    # more ranges than are taken, in one condition
    "many_ranges": "SELECT SUM(x.b * y.b) AS n FROM r x, r y WHERE (y.k < x.k AND y.k <> 2) OR y.k <> x.b",
    # a key that is NULL beside an alternative that does not ask for it
    "null_beside": "SELECT k FROM r WHERE a < (SELECT SUM(a) FROM r) OR b = (SELECT SUM(b) FROM r) - 3",
    # two loops over runs with the same names
    "equal_run": "SELECT SUM(x.b) AS n FROM r x WHERE (SELECT SUM(y.b) FROM r y WHERE y.k > x.k) BETWEEN 2 AND 9",
    # the running sum is a column of the view
    "total_shown": """SELECT x.m, SUM(x.v) AS n FROM (SELECT p.b AS v, (SELECT COUNT(*) FROM r q WHERE q.k < p.k) AS m
        FROM r p) x WHERE x.m >= 1 GROUP BY x.m""",
    # NULL keys whose alternatives need what other factors give
    "null_and_sums": """SELECT s.g, SUM(r.b - s.n) AS n FROM r, s
        WHERE (COALESCE((SELECT SUM(x.b) FROM r x WHERE x.c > r.c), 0) > 4 OR r.a < 1) GROUP BY s.g""",
    # one lane of a tree was added up twice in one descent
    "one_lane": """SELECT y.k, SUM(x.b * z.b) AS c1, SUM(x.c - z.c) AS c2, SUM(x.b - z.c) AS c3 FROM r x, r z, r y
        WHERE z.k - y.k >= 1 AND (x.b - z.b < 0.5 OR z.b < x.b) AND y.c = x.c GROUP BY y.k""",
    # two ranges of one key that exclude each other
    "no_key_at_all": "SELECT COUNT(*) AS n FROM r x, r y WHERE y.k > x.k AND (y.k < x.k OR y.b > x.b)",
}
OTHERS = {
    # a month later is not later by the hour
    "months": "SELECT SUM(x.n) AS n, COUNT(*) AS c FROM s x, s y WHERE x.t + INTERVAL 1 MONTH > y.t",
    # truth values in order
    "truths": "SELECT SUM(x.n * y.g) AS n, COUNT(*) AS c FROM s x, s y WHERE x.f > y.f",
    "truth": "SELECT COUNT(*) AS n FROM s WHERE f",
}


def rows_of(rng: Random, name: str) -> tuple[object, ...]:
    if name == "r":
        return rng.randrange(5), rng.choice((None, 0, 1, 3)), rng.randrange(-1, 5), rng.randrange(4)
    day = rng.choice((dt.date(2021, 1, 28), dt.date(2021, 1, 30), dt.date(2021, 1, 31), dt.date(2021, 2, 28)))
    moment = dt.datetime.combine(day, dt.time(rng.choice((8, 9, 10)), 30))
    return rng.randrange(3), rng.choice((None, True, False)), rng.choice((None, 1, 2, -1)), moment


def stream(names: str, seed: int) -> list[Event]:
    """Rows come and go until some twenty are there, and at last they all go."""
    rng, live, events = Random(seed), list[tuple[str, tuple[object, ...]]](), list[Event]()
    for _ in range(70):
        if rng.random() < len(live) / 36:
            events.append(("-", *live.pop(rng.randrange(len(live)))))
        else:
            name = rng.choice(names)
            live.append((name, rows_of(rng, name)))
            events.append(("+", *live[-1]))
    return [*events, *(("-", *row) for row in live)]


@pytest.mark.parametrize(("selects", "names"), [(SELECTS, "rrs"), (OTHERS, "s")], ids=["numbers", "others"])
def test_once_wrong(selects: dict[str, str], names: str) -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    contestants = [("python", strategy) for strategy in STRATEGIES]
    contestants += [("native", "optimized"), ("native", "classical")]
    for watch in agree(Case(SCHEMA, views, selects, stream(names, 1)), contestants).values():
        watch.check()
