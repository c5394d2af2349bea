"""SESSION windows equal gaps and islands in DuckDB after every event, and cost the rows that move."""

from __future__ import annotations

import datetime as dt
from random import Random

from tests.engines.conformance import CONTESTANTS, STRATEGIES, Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k INTEGER, t TIMESTAMP, x INTEGER NOT NULL);
CREATE STREAM p (k INTEGER, name VARCHAR NOT NULL);
"""
NOON = dt.datetime(2026, 3, 29, 12)
GAP = "INTERVAL '10' SECOND"


def islands(keys: str, where: str = "TRUE") -> str:
    """The rows of ``r`` with the number of their session."""
    over = f"OVER ({f'PARTITION BY {keys} ' if keys else ''}ORDER BY t)"
    begins = f"CASE WHEN t - lag(t) {over} <= {GAP} THEN 0 ELSE 1 END"
    rows = f"SELECT *, {begins} AS begins FROM r WHERE t IS NOT NULL AND ({where})"
    return f"(SELECT *, sum(begins) {over} AS number FROM ({rows}))"


def per_session(select: str, keys: str = "k", where: str = "TRUE", having: str = "") -> str:
    return f"SELECT {select} FROM {islands(keys, where)} GROUP BY {keys + ', ' if keys else ''}number {having}"


ENDS = f"min(t) AS s, max(t) + {GAP} AS e"
START, END = f"SESSION_START(t, {GAP})", f"SESSION_END(t, {GAP})"
SELECTS = {
    "grouped": (
        f"SELECT k, {START} AS s, {END} AS e, count(*) AS n, sum(x) AS sx FROM r GROUP BY k, SESSION(t, {GAP})",
        per_session(f"k, {ENDS}, count(*) AS n, sum(x) AS sx"),
    ),
    "spark": (
        "SELECT session_window.start, session_window.end AS e, avg(x) AS m, count(DISTINCT x) AS d FROM r"
        " WHERE x > -3 AND t > TIMESTAMP '2026-03-29 11:59:30' GROUP BY session_window(t, '10 seconds')",
        per_session(
            f"{ENDS}, avg(x) AS m, count(DISTINCT x) AS d", "", "x > -3 AND t > TIMESTAMP '2026-03-29 11:59:30'"
        ),
    ),
    "function": (
        f"SELECT window_start, window_end, k, max(x) AS most, min(x) AS least"
        f" FROM TABLE(SESSION(TABLE r PARTITION BY k, DESCRIPTOR(t), {GAP}))"
        " GROUP BY k, window_start, window_end HAVING count(*) > 1",
        per_session(f"{ENDS}, k, max(x), min(x)", having="HAVING count(*) > 1"),
    ),
}


def drawn(seed: int, count: int) -> list[Event]:
    """Times around the gap, so that rows begin, join, split and lengthen sessions; few keys, copies and NULLs."""
    rng, there, events = Random(seed), list[tuple[str, Row]](), list[Event]()
    while len(events) < count:
        if there and rng.random() < 0.42:
            relation, row = there.pop(rng.randrange(len(there)))
            events.append(("-", relation, row))
            continue
        k = rng.choice([None, 1, 1, 2])
        if rng.random() < 0.1:
            relation, row = "p", (k, rng.choice("ab"))
        else:
            away = dt.timedelta(
                seconds=rng.choice([0, 5, 10, 20, rng.randint(-60, 60)]), microseconds=rng.choice([0, 0, 1, -1])
            )
            t = None if rng.random() < 0.05 else NOON + away
            relation, row = "r", (k, t, rng.randint(-5, 5))
        there.append((relation, row))
        events.append(("+", relation, row))
    return events


def case(pairs: dict[str, tuple[str, str]], seed: int, events: int) -> Case:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {ours};\n" for name, (ours, _) in pairs.items())
    return Case(SCHEMA, script, {name: theirs for name, (_, theirs) in pairs.items()}, drawn(seed, events))


def test_rows_that_follow_one_another_are_one_session(seeded: int, soaking: bool) -> None:
    usual = [("native", "optimized"), ("interpreter", "optimized"), ("python", STRATEGIES[seeded % len(STRATEGIES)])]
    for view in agree(case(SELECTS, 3 + seeded, 80), CONTESTANTS if soaking else usual).values():
        view.check()
