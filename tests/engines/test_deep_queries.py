"""Random queries in layers, next to the referee after every update and every tick, with all that subscribers hear.

A query may be refused with an ``UnsupportedError``, and these are counted. The engines and strategies take turns with
the scripts. For many more of them::

    python -m tests.engines.test_deep_queries 500 --seed 7
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

import viewlet
from tests.engines.conformance import Disagreement
from tests.engines.deep_sql import NOON, SCHEMA, Step, Writer, steps
from tests.oracle.oracle import DuckOracle, Row, difference
from tests.oracle.ordered import line_difference
from viewlet.database.memory import Database

SEEDS = (8, 10)  # of make test; make soak goes on from each of them
QUERIES = 3  # in each script
STEPS = 18
CONTESTANTS = (
    ("python", "optimized"),
    ("native", "optimized"),
    ("python", "naive"),
    ("interpreter", "optimized"),
    ("python", "classical"),
    ("native", "cost"),
    ("python", "reevaluate"),
)


@dataclass
class Tally:
    """What became of the queries, and how many answers that were not empty have been compared."""

    drawn: int = 0
    refused: int = 0
    compared: int = 0


def drawn(seed: int) -> list[str]:
    return [Writer(Random(f"{seed}/{number}")).view() for number in range(QUERIES)]


def is_taken(query: str) -> bool:
    """Only an UnsupportedError may say that it is not."""
    try:
        viewlet.compile(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS {query}")
    except viewlet.UnsupportedError:
        return False
    return True


def prove(seed: int, tally: Tally) -> None:
    queries = drawn(seed)
    taken = [query for query in queries if is_taken(query)]
    tally.drawn += len(queries)
    tally.refused += len(queries) - len(taken)
    engine, strategy = CONTESTANTS[seed % len(CONTESTANTS)]
    database = viewlet.connect(engine=engine, strategy=strategy, wait_native=True)
    database.tick(NOON)
    database.execute(SCHEMA + "".join(f"CREATE MATERIALIZED VIEW v{i} AS {q};\n" for i, q in enumerate(taken)))
    try:
        tally.compared += follow(database, taken, steps(Random(seed), STEPS))
    except (Disagreement, viewlet.Error) as wrong:
        raise Disagreement(f"seed {seed} by {engine}/{strategy}: {wrong}") from wrong


class Heard:
    """The rows of a view as a subscriber adds them up."""

    def __init__(self, database: Database, view: str) -> None:
        self.rows: Counter[Any] = Counter(_hashable(row) for row in database.view(view).rows())
        database.view(view).subscribe(self.hear)

    def hear(self, change: tuple[int, Row]) -> None:
        weight, row = change
        self.rows[_hashable(row)] += weight

    def difference(self, rows: list[Row]) -> str | None:
        there = Counter(_hashable(row) for row in rows)
        heard = Counter({row: n for row, n in self.rows.items() if n})
        return None if heard == there else f"heard {heard - there} too much and {there - heard} too little"


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (tuple, list)) else value


def follow(database: Database, queries: list[str], stream: list[Step]) -> int:
    """How many answers were compared that had rows."""
    referee, moment, compared = DuckOracle(viewlet.compile(SCHEMA).relations), NOON, 0
    heard = [Heard(database, f"v{i}") for i in range(len(queries))]
    for number, step in enumerate(stream):
        if step[0] == "tick":
            moment = step[1]
            database.tick(moment)
        else:
            database.apply(step[1])
            for event in step[1]:
                referee.apply(*event)
        for i, query in enumerate(queries):
            rows, theirs = database.view(f"v{i}").rows(), referee.connection.execute(as_of(query, moment)).fetchall()
            same = line_difference if "ORDER BY ALL" in query else difference
            if wrong := same(rows, theirs) or heard[i].difference(rows):
                raise Disagreement(f"after step {number} {step}: {wrong}\n{query}\n{rows}\n{theirs}")
            compared += bool(theirs)
    return compared


def as_of(query: str, moment: dt.datetime) -> str:
    """The referee has a clock of its own, which nobody can set: it reads the moment as a constant."""
    return query.replace("now()", f"TIMESTAMP '{moment}'")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_deep_queries_equal_the_referee(seed: int, seeded: int) -> None:
    tally = Tally()
    prove(seed + 100 * seeded, tally)
    assert tally.refused <= tally.drawn / 2
    assert tally.compared >= STEPS * tally.drawn / 6


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Random queries against the referee, for as long as you like.")
    arguments.add_argument("scripts", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    total = Tally()
    for number in range(given.seed, given.seed + given.scripts):
        prove(number, total)
    print(f"{total.drawn} queries, {total.refused} refused; {total.compared} answers with rows agree")
