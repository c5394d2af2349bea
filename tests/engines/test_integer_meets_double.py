"""INTEGER columns equal to DOUBLE ones: joined as machine code, and as DuckDB joins them."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from tests.engines.conformance import opened_natively
from tests.oracle.oracle import DuckOracle, Vacuity, difference

SCHEMA = """
CREATE STREAM r (k INTEGER, a BIGINT NOT NULL, m INTEGER NOT NULL);
CREATE STREAM s (x DOUBLE, b BIGINT NOT NULL, y DOUBLE NOT NULL);
CREATE TABLE u (z DOUBLE, c INTEGER);
"""
VIEWS = {
    "joined": "SELECT r.k, sum(r.a * s.b) AS v, count(*) AS n FROM r, s WHERE r.k = s.x GROUP BY r.k",
    "shown": "SELECT s.x, r.k, s.b FROM r, s WHERE r.m = s.y AND r.a < s.b",
    "existing": "SELECT k, sum(m) AS n FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.x = r.k AND s.y <> r.m) GROUP BY k",
    "member": "SELECT x, b FROM s WHERE x IN (SELECT k FROM r)",
    "nested": "SELECT r.k, (SELECT sum(s.y) FROM s WHERE s.x = r.k AND s.y < r.m) AS q FROM r",
    "a_sum": "SELECT k, m FROM r WHERE r.k = (SELECT sum(s.y) FROM s)",
    "static": "SELECT r.k, s.x, u.c FROM r, s, u WHERE r.k = s.x AND s.x = u.z AND u.c = r.m",
    "extreme": "SELECT max(s.y) AS m, r.k FROM r, s, r q WHERE r.k = s.x AND q.m = s.y GROUP BY r.k",
    "either": "SELECT CASE WHEN s.x > 0 THEN s.x ELSE r.m END AS c, coalesce(s.x, 7) AS d FROM s, r WHERE r.a = s.b",
}
STATIC = [(1.0, 1), (2.5, 2), (2.0, 2), (None, 1)]
INTEGERS = (None, 0, 1, 2, 2**31 - 1, -(2**31))
DOUBLES = (None, 0.0, -0.0, 1.0, 2.0, 1.5, 2.0**31 - 1, -(2.0**31), 2.0**31, 1e300, math.nan, math.inf)


def drawn(rng: Random) -> tuple[str, Any]:
    if rng.random() < 0.5:
        return "r", (rng.choice(INTEGERS), rng.randint(0, 3), rng.choice((0, 1, 2)))
    return "s", (rng.choice(DOUBLES), rng.randint(0, 3), rng.choice((0.0, 1.0, 2.0, 0.5, -0.5)))


def told_apart(rows: list[Any]) -> list[Any]:
    return [tuple("NaN" if isinstance(c, float) and math.isnan(c) else c for c in row) for row in rows]


@pytest.mark.parametrize("strategy", ["optimized", "naive"])
def test_equal_integers_and_doubles(strategy: str) -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in VIEWS.items())
    db = opened_natively(SCHEMA + views, strategy=strategy)
    referee, rng, live = DuckOracle(db.program.relations), Random(4), list[tuple[str, Any]]()
    db.insert("u", STATIC)
    referee.load("u", STATIC)
    watch = {name: Vacuity() for name in VIEWS}
    for number in range(150):
        leaves = bool(live) and rng.random() < len(live) / 60
        relation, row = live.pop(rng.randrange(len(live))) if leaves else drawn(rng)
        (db.delete if leaves else db.insert)(relation, row)
        referee.apply("-" if leaves else "+", relation, row)
        if not leaves:
            live.append((relation, row))
        for name, select in VIEWS.items():
            expected = referee.rows(select)
            watch[name].watch(expected)
            assert not difference(told_apart(db.view(name).rows()), told_apart(expected)), (name, number)
    for vacuity in (watch[name] for name in VIEWS if name != "a_sum"):
        vacuity.check()
