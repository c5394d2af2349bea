"""Random queries over the whole width of the SQL that is taken, next to the referee after every event.

A query may be refused with an ``UnsupportedError``, and these are counted. Any other error, and any other answer than
DuckDB's, is a bug. The queries of a seed are one script over one schema and stream, and the engines and strategies take
turns with the scripts. For many more of them::

    python -m tests.engines.test_wide_queries 500 --seed 7
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Disagreement, apply_event
from tests.engines.wide_sql import Query, Writer
from tests.engines.wide_world import World, world
from tests.oracle.oracle import DuckOracle, Row, difference
from tests.oracle.ordered import line_difference
from viewlet.database.memory import Database

SEEDS = (10, 12, 13, 15, 17)  # of make test; make soak goes on from each of them
QUERIES = 10  # in each script
EVENTS = 16
ROOM = 2
CONTESTANTS = (("python", "optimized"), ("native", "optimized"), ("interpreter", "classical"), ("python", "naive"))


@dataclass
class Tally:
    """What became of the queries, and how many answers that were not empty have been compared."""

    drawn: int = 0
    refused: int = 0
    compared: int = 0


def drawn(seed: int) -> tuple[World, list[Query]]:
    here = world(Random(seed), EVENTS)
    return here, [Writer(Random(f"{seed}/{number}"), here.tables, ROOM).view() for number in range(QUERIES)]


def prove(seed: int, tally: Tally) -> None:
    """The queries that are taken, in one script, by one engine and strategy."""
    here, queries = drawn(seed)
    taken = [q for q in queries if is_taken(here, q)]
    tally.drawn += len(queries)
    tally.refused += len(queries) - len(taken)
    engine, strategy = CONTESTANTS[seed % len(CONTESTANTS)]
    database = viewlet.connect(engine=engine, strategy=strategy, wait_native=True)
    views = "".join(f"CREATE MATERIALIZED VIEW v{i} AS {q.view};\n" for i, q in enumerate(taken))
    database.execute(here.schema + views)
    assert database.tier == engine
    tally.compared += follow(database, here, taken)


def is_taken(here: World, query: Query) -> bool:
    """DuckDB takes it, and so does viewlet. Only an UnsupportedError may say that it does not."""
    try:
        viewlet.compile(f"{here.schema}CREATE MATERIALIZED VIEW v AS {query.view}")
    except viewlet.UnsupportedError:
        return False
    return True


def follow(database: Database, here: World, queries: list[Query]) -> int:
    """How many answers were compared that had rows."""
    referee, compared = DuckOracle(viewlet.compile(here.schema).relations), 0
    for number, (op, relation, row) in enumerate(here.events):
        apply_event(database, (op, relation, row))
        referee.apply(op, relation, row)
        for i, query in enumerate(queries):
            theirs = referee.connection.execute(query.referee).fetchall()
            if wrong := different(query, database.view(f"v{i}").rows(), theirs):
                raise Disagreement(f"after event {number}: {wrong}\n{here.schema}{query.view}")
            compared += bool(theirs)
    return compared


def different(query: Query, ours: list[Row], theirs: list[Row]) -> str | None:
    return (line_difference if query.ordered else difference)(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_wide_queries_equal_the_referee(seed: int, seeded: int) -> None:
    tally = Tally()
    prove(seed + 100 * seeded, tally)
    assert tally.refused <= tally.drawn / 2
    assert tally.compared >= EVENTS * tally.drawn / 4


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Random queries against the referee, for as long as you like.")
    arguments.add_argument("scripts", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    total = Tally()
    for number in range(given.seed, given.seed + given.scripts):
        prove(number, total)
    print(f"{total.drawn} queries, {total.refused} refused; {total.compared} answers with rows agree")
