"""Random queries over random streams: every strategy equals the referee after every event, the engines taking turns.

Each example is also verified against its definition at the end, then emptied and filled again in batches. Examples
whose views all stay empty are rejected. The suite draws few queries, always the same; for thousands of others::

    python -m tests.engines.test_random_queries 5000 --seed 7

draws until so many are accepted (hypothesis tries some with several streams), and stops at the first failure with a
small example. What failed once is kept in ``regressions/``, one script each, and runs over a stream of its own.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from tests.engines.conformance import WAYS, Case, Disagreement, apply_event, chosen_contestants, cut, deal_engines
from tests.engines.random_sql import SCHEMA, cases, seeded_rows, seeded_stream
from tests.oracle.oracle import Row, Vacuity, Vacuous, difference
from viewlet.compiler import wide
from viewlet.database.memory import Database

Answer = dict[str, list[Row]]

SHARDS = 4
QUERIES = 5  # in each shard
FLOOR = 0.5  # of the scripts drawn, so many must be different and say something
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.sql"))


@dataclass
class Tally:
    """The different scripts that were drawn, and those of them that proved something."""

    drawn: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)


def prove(case: Case, tally: Tally) -> None:
    tally.drawn.add(case.views)
    answers = list(case.answers())
    assume(not all(is_vacuous([answer[view] for answer in answers]) for view in case.selects))
    tally.accepted.add(case.views)
    agree(case, answers, deal_engines(len(case.views)))


def agree(case: Case, answers: list[Answer], contestants: Sequence[tuple[str, str]]) -> None:
    for engine, strategy in contestants:
        database = case.open(engine, strategy)
        try:
            follow(database, case, answers)
            replay(database, case, answers[-1])
        except Disagreement as wrong:
            raise Disagreement(f"{engine}/{strategy}: {wrong}") from None


def is_vacuous(answers: list[list[Row]]) -> bool:
    watch = Vacuity()
    for rows in answers:
        watch.watch(rows)
    try:
        watch.check()
    except Vacuous:
        return True
    return False


def follow(database: Database, case: Case, answers: list[Answer]) -> None:
    """Event by event, and at the end the views as they are defined."""
    for number, (event, answer) in enumerate(zip(case.events, answers, strict=True)):
        apply_event(database, event)
        compare(database, answer, f"after event {number} {event}")
    for view in case.selects:
        if wrong := database.verify(view):
            raise Disagreement(f"{view} is not what it is defined as: {wrong}")


def replay(database: Database, case: Case, last: Answer) -> None:
    """Empty the tables in one batch each, then the same stream in random cuts, each way a batch can be handed over."""
    live = Counter[tuple[str, Row]]()
    for op, relation, row in case.events:
        live[relation, row] += 1 if op == "+" else -1
    rng = Random(len(case.views))
    for way, apply_batch in WAYS.items():
        for relation in {relation for relation, _ in live}:
            database.delete(relation, [row for name, row in live.elements() if name == relation])
        for batch in cut(case.events, rng, longest=10):
            apply_batch(database, batch)
        compare(database, last, f"after batches by {way}")


def compare(database: Database, answer: Answer, when: str) -> None:
    for view, expected in answer.items():
        if wrong := difference(database.view(view).rows(), expected):
            raise Disagreement(f"{view} {when}: {wrong}")


def property_test(queries: int, start: int, tally: Tally) -> Callable[[], None]:
    """The same examples for the same start. A failure shrinks for at most five minutes: hypothesis' own limit."""

    @seed(start)
    @settings(
        max_examples=queries,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    @given(cases())
    def check(case: Case) -> None:
        prove(case, tally)

    return check


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_queries_equal_the_referee(shard: int, seeded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if (shard + seeded) % 2:
        monkeypatch.setattr(wide, "MOST_PARTS", 0)  # as if each had hundreds of maps
    tally = Tally()
    property_test(QUERIES, shard + seeded * SHARDS, tally)()
    assert len(tally.accepted) >= FLOOR * max(len(tally.drawn), QUERIES)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_failed_once_holds(path: Path, soaking: bool) -> None:
    views = path.read_text()
    statements = [s.replace("MATERIALIZED", "") for s in views.split(";") if "CREATE" in s]
    selects = {f"v{number}": f"SELECT * FROM v{number}" for number in range(1, len(statements) + 1)}
    rng = Random(path.stem)
    case = Case(
        SCHEMA, views, selects, seeded_stream(rng, 80), {"u": seeded_rows(rng, "u", 4)}, "sql", tuple(statements)
    )
    agree(case, list(case.answers()), chosen_contestants(REGRESSIONS.index(path), soaking))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Random queries against the referee, for as long as you like.")
    arguments.add_argument("queries", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    given_arguments = arguments.parse_args()
    total = Tally()
    property_test(given_arguments.queries, given_arguments.seed, total)()
    print(f"{len(total.accepted)} scripts agree with the referee, of {len(total.drawn)} drawn")
