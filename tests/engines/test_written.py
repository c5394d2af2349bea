"""TPC-H, SSB, ClickBench and Nexmark as their authors wrote them: equal to DuckDB along streams, on every engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

import viewlet
from tests.engines.conformance import Case, Disagreement, apply_event
from tests.oracle.oracle import DuckOracle, Row, Vacuity, Vacuous, difference
from tests.oracle.ordered import line_difference
from viewlet.workloads.streams import Event
from viewlet.workloads.written import SuiteName, suite
from viewlet.workloads.written.rows import STATIC, events

BEFORE = 170  # events whose rows are there when the views are first looked at
LAST_CLAUSE = re.compile(r"\border\s+by\b(?![^()]*\))", re.IGNORECASE)
LIMIT = re.compile(r"\blimit\b(?![^()]*\))", re.IGNORECASE)
OTHER_STRATEGIES = ("reevaluate", "classical", "naive", "cost")


def in_full(select: str, width: int) -> str:
    """The question with an order in which no two rows tie: by its own terms, then by its columns."""
    limit = LIMIT.search(select)
    head, tail = (select[: limit.start()], select[limit.start() :]) if limit else (select, "")
    columns = ", ".join(str(i + 1) for i in range(width))
    return f"{head.rstrip()}{',' if LAST_CLAUSE.search(head) else ' ORDER BY'} {columns} {tail}"


def split(name: SuiteName, seed: int, count: int) -> tuple[dict[str, Sequence[Row]], list[Event]]:
    """The rows that are there at first, and the events that follow."""
    stream = list(events(name, seed, BEFORE + count))
    held: dict[str, Counter[Row]] = {}
    for op, relation, row in stream[:BEFORE]:
        held.setdefault(relation, Counter())[row] += 1 if op == "+" else -1
    rows = {relation: list((+counted).elements()) for relation, counted in held.items()}
    return {**STATIC[name], **rows}, stream[BEFORE:]


def case(name: SuiteName, questions: Sequence[str], seed: int, count: int) -> Case:
    written = suite(name)
    start, following = split(name, seed, count)
    views = "".join(written.view(question) for question in questions)
    widths = {r.name: len(r.columns) for r in viewlet.compile(written.schema + views).results}
    is_ordered = {
        q: bool(LAST_CLAUSE.search(written.questions[q]) or LIMIT.search(written.questions[q])) for q in questions
    }
    selects = {q: in_full(written.referee(q), widths[q]) if is_ordered[q] else written.referee(q) for q in questions}
    return Case(written.schema, views, selects, following, start)


def answers(tested: Case) -> Iterator[dict[str, list[Row]]]:
    oracle: DuckOracle = tested.referee()
    for op, relation, row in tested.events:
        oracle.apply(op, relation, row)
        yield {view: oracle.connection.execute(select).fetchall() for view, select in tested.selects.items()}


def along(tested: Case, contestants: Sequence[tuple[str, str]]) -> dict[str, Vacuity]:
    """All contestants beside the referee; rows in its order where the question has one."""
    databases = {contestant: tested.open(*contestant) for contestant in contestants}
    watch = {view: Vacuity() for view in tested.selects}
    for number, (event, answer) in enumerate(zip(tested.events, answers(tested), strict=True)):
        for contestant, database in databases.items():
            apply_event(database, event)
            for view, expected in answer.items():
                rows = database.view(view).rows()
                ordered = LAST_CLAUSE.search(tested.selects[view]) is not None
                if wrong := (line_difference if ordered else difference)(rows, expected):
                    raise Disagreement(f"{view} by {contestant} after event {number} {event}: {wrong}")
        for view, expected in answer.items():
            watch[view].watch(expected)
    return watch


def is_answered(watch: Vacuity) -> bool:
    try:
        watch.check()
    except Vacuous:
        return False
    return True


SCRIPTS: dict[SuiteName, list[tuple[str, ...]]] = {
    "tpch": [("q2", "q8"), tuple(f"q{i}" for i in range(1, 23) if i not in (2, 8))],
    "ssb": [tuple(suite("ssb").questions)],
    "nexmark": [tuple(suite("nexmark").questions)],
    "clickbench": [tuple(suite("clickbench").questions)],
}
"""Questions that share a script, and so what they keep."""

MANY_ROWS = ("q27", "q28", "q38", "q39", "q40", "q41", "q42")
"""ClickBench asks for groups of 100,000 rows, and for what comes behind the first 1,000: see :mod:`test_many_rows`."""

SEEDS: dict[SuiteName, tuple[int, ...]] = {"tpch": (2, 3), "ssb": (1,), "nexmark": (4,), "clickbench": (2,)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_question_is_answered_as_duckdb_does(name: SuiteName) -> None:
    answered: set[str] = set()
    for questions in SCRIPTS[name]:
        for seed in SEEDS[name]:
            tested = case(name, questions, seed, 14)
            watched = along(tested, [("python", "optimized"), ("native", "optimized")])
            answered |= {question for question, watch in watched.items() if is_answered(watch)}
    missing = set(suite(name).questions) - answered
    assert missing <= (set(MANY_ROWS) if name == "clickbench" else set()), "the stream asks nothing of these"


EVERY_STRATEGY: dict[SuiteName, tuple[str, ...]] = {
    "tpch": ("q4", "q13", "q16", "q22"),
    "ssb": ("q1_1", "q3_4", "q4_3"),
    "nexmark": ("q8", "q18", "q21"),
    "clickbench": ("q8", "q18", "q23", "q28", "q42"),
}
"""To compile all questions in every way would take minutes."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_interpreter(name: SuiteName) -> None:
    for questions in SCRIPTS[name]:
        along(case(name, questions, 3, 2), [("interpreter", "optimized")])


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_strategy(name: SuiteName) -> None:
    along(case(name, EVERY_STRATEGY[name], 3, 4), [("python", strategy) for strategy in OTHER_STRATEGIES])
