"""SESSION windows equal gaps and islands in DuckDB after every event, and cost the rows that move."""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest

import viewlet
from tests.engines.conformance import CONTESTANTS, STRATEGIES, THREADED, WAYS, Case, agree, cut
from tests.oracle.oracle import Row, difference
from viewlet.cells import plan
from viewlet.loops.cost_class import statement_access
from viewlet.sql import translate
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
        "SELECT session_window.start, session_window.end AS e, avg(x) AS m, max(x) AS d FROM r"
        " WHERE x > -3 AND t > TIMESTAMP '2026-03-29 11:59:30' GROUP BY session_window(t, '10 seconds')",
        per_session(f"{ENDS}, avg(x) AS m, max(x) AS d", "", "x > -3 AND t > TIMESTAMP '2026-03-29 11:59:30'"),
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


MORE = {
    "joined": (
        f"SELECT p.name, s.window_start, count(*) AS n FROM SESSION(TABLE r PARTITION BY k, DESCRIPTOR(t), {GAP}) s"
        " JOIN p ON p.k = s.k GROUP BY p.name, s.window_start",
        f"SELECT p.name, s.start, count(*) FROM (SELECT *, min(t) OVER (PARTITION BY k, number) AS start"
        f" FROM {islands('k')}) s JOIN p ON p.k = s.k GROUP BY p.name, s.start",
    ),
    "filtered": (
        f"SELECT k, x, {START} AS s, count(*) AS n FROM r WHERE x > 1 OR k = 2"
        f" GROUP BY k, x, SESSION(t, {GAP}) HAVING sum(x) <> 3",
        per_session("k, x, min(t), count(*)", "k, x", "x > 1 OR k = 2", "HAVING sum(x) <> 3"),
    ),
    "rows_of": (
        f"SELECT k, t, x, window_start AS s FROM SESSION(r, t, {GAP}, k) WHERE x <> 0",
        f"SELECT k, t, x, min(t) OVER (PARTITION BY k, number) AS s FROM {islands('k')} QUALIFY x <> 0",
    ),
    "first": (
        f"SELECT k, {END} - {START} AS d, string_agg(x::VARCHAR, ',' ORDER BY x) AS l FROM r WHERE k IS NOT NULL"
        f" GROUP BY 1, SESSION(t, {GAP}) ORDER BY d DESC, k, l LIMIT 2",
        per_session(
            f"k, max(t) + {GAP} - min(t) AS d, string_agg(x::VARCHAR, ',' ORDER BY x) AS l", where="k IS NOT NULL"
        )
        + " ORDER BY d DESC, k, l LIMIT 2",
    ),
}


def test_rows_that_follow_one_another_are_one_session(seeded: int, soaking: bool) -> None:
    """The native engine has Nexmark's q11 among the questions of ``test_written``."""
    usual = [("interpreter", "optimized"), ("python", STRATEGIES[seeded % len(STRATEGIES)])]
    contestants = (*CONTESTANTS, *THREADED) if soaking else usual
    for view in agree(case(SELECTS, 3 + seeded, 80 if soaking else 40), contestants).values():
        view.check()


def test_sessions_beside_more(seeded: int, soaking: bool) -> None:
    pairs = MORE if soaking else {"joined": MORE["joined"]}
    contestants = CONTESTANTS if soaking else [("python", "optimized")]
    for view in agree(case(pairs, 5 + seeded, 60), contestants).values():
        view.check()


@pytest.mark.parametrize("way", WAYS)
def test_batches_move_sessions_as_their_rows_do(way: str, seeded: int) -> None:
    tested, rng = case({"grouped": SELECTS["grouped"]}, 11 + seeded, 60), Random(seeded)
    database, oracle = tested.open("python", "optimized"), tested.referee()
    for batch in cut(tested.events, rng, 12):
        WAYS[way](database, batch)
        for event in batch:
            oracle.apply(*event)
        assert not difference(database.view("grouped").rows(), oracle.rows(tested.selects["grouped"]))
    database.verify("grouped")


def test_cells_share_sessions_by_their_keys() -> None:
    views = [f"SELECT count(*) AS n FROM r GROUP BY {key}SESSION(t, {GAP})" for key in ("k, ", "")]
    grids = [plan(translate(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}"), 4) for select in views]
    assert [[d.what for d in grid.dimensions] for grid in grids] == [["r.k"], []]


def test_an_event_costs_what_moves() -> None:
    """No statement finds sessions by what they are: the rows of a key that none comes before."""
    program = viewlet.compile(SCHEMA + case({"grouped": SELECTS["grouped"]}, 0, 0).views)
    for trigger in program.triggers:
        for statement in trigger.statements if trigger.event.kind in "+-" else ():
            found = statement_access(statement, trigger.event, program)
            assert found.cost_class in {"O(1)", "O(log n)", "O(matches)", "O(matches log n)"}
            assert not any(path == "scan" for _, path in found.paths)
            assert ".inside.before" not in str(statement)
