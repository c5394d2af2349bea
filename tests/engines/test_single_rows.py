"""Subqueries that are values and may have several rows: an update that gives one of them a second row is refused."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import get_args

import duckdb
import pytest

import viewlet
from tests.engines.conformance import Case, agree, apply_event
from tests.oracle.oracle import DuckOracle, difference
from viewlet.compiler.strategy import StrategyName
from viewlet.database.memory import EngineName
from viewlet.program.trigger import Program
from viewlet.spark.pipeline import pipeline_of
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM r (k INTEGER, x INTEGER); CREATE STREAM s (v INTEGER, w VARCHAR); CREATE TABLE c (v INTEGER);"
VIEWS = {
    "compared": "SELECT k FROM r WHERE x >= (SELECT v FROM s WHERE v > 0)",
    "shown": "SELECT k, (SELECT DISTINCT w FROM s) AS w, sum(x) AS n FROM r GROUP BY k",
    "grouped": "SELECT k, x FROM r WHERE x <= (SELECT sum(v) + 1 FROM s GROUP BY w)",
    "alone": "SELECT (SELECT w FROM s WHERE v = 2) AS w, count(*) AS n FROM r",
    "nested": "SELECT k FROM r WHERE x IN (SELECT v + 1 FROM s WHERE v = (SELECT v FROM s))",
}


def stream() -> Iterator[Event]:
    """At most one row of s is there."""
    rng, there, rows = Random(5), None, list[tuple[int | None, int | None]]()
    for _ in range(60):
        if rng.random() < (0.15 if there else 0.8):
            one = rng.choice([1, 2, 2, None]), rng.choice(["a", "b", None])
            yield ("-", "s", there) if there else ("+", "s", one)
            there = None if there else one
        elif rows and rng.random() < 0.3:
            yield "-", "r", rows.pop(rng.randrange(len(rows)))
        else:
            rows.append((rng.choice([1, 2, None]), rng.choice([1, 2, 3, None])))
            yield "+", "r", rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    contestants = [("interpreter", "optimized"), ("python", "reevaluate"), ("python", "naive"), ("native", "cost")]
    for watched in agree(Case(SCHEMA, script, VIEWS, list(stream())), contestants).values():
        watched.check()


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_a_second_row_is_refused(engine: EngineName) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW a AS SELECT k FROM r WHERE x > (SELECT v FROM s);")
    database.execute("CREATE MATERIALIZED VIEW b AS SELECT k, x + (SELECT v FROM c) AS y FROM r")
    assert Program.from_text(database.program.to_text()) == database.program
    database.insert("s", (1, "a"))
    database.insert("c", (10,))
    said = "a subquery that is used as a value has more than one row"
    for relation, row in (("s", (2, "b")), ("s", (1, "a")), ("c", (11,))):
        with pytest.raises(viewlet.OutOfRangeError, match=f"{'b' if relation == 'c' else 'a'}: {said}"):
            database.insert(relation, row)
    database.insert("r", (1, 5))
    assert (database.view("a").rows(), database.view("b").rows()) == ([(1,)], [(1, 15)])
    database.apply([("-", "s", (1, "a")), ("+", "s", (7, "b"))])
    database.execute("UPDATE c SET v = 20")
    assert (database.view("a").rows(), database.view("b").rows()) == ([], [(1, 25)])
    database.execute("CREATE STREAM t (z INTEGER)")
    database.insert("t", [(1,), (2,)])
    with pytest.raises(viewlet.Error, match=said):
        database.execute("CREATE MATERIALIZED VIEW d AS SELECT k FROM r WHERE x = (SELECT z FROM t)")
    assert database.view("b").rows() == [(1, 25)]


def test_not_on_spark() -> None:
    with pytest.raises(viewlet.Error, match="which no cell on Spark can count"):
        pipeline_of(
            f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT (SELECT v FROM s) AS v FROM r", 2, "optimized", "sql"
        )


AROUND = {
    "shown": "SELECT k, (SELECT v + r.x FROM s WHERE s.v = r.k) AS w FROM r",
    "compared": "SELECT k FROM r WHERE x >= (SELECT v FROM s WHERE s.v > r.k)",
    "summed": "SELECT k, sum((SELECT DISTINCT v FROM s WHERE s.v <= r.k)) AS t FROM r GROUP BY k",
    "joined": "SELECT a.k, coalesce((SELECT w FROM s WHERE s.v = b.x), '') AS w FROM r a JOIN r b ON a.x = b.k",
}


@pytest.mark.parametrize(
    ("engine", "strategy"), [("interpreter", "optimized"), ("python", "naive"), ("native", "cost")]
)
def test_a_second_row_for_a_row_around_it(engine: EngineName, strategy: StrategyName) -> None:
    """DuckDB fails where an update is refused, and nowhere else."""
    database = viewlet.connect(engine=engine, strategy=strategy, wait_native=True)
    database.execute(SCHEMA + "".join(f"CREATE MATERIALIZED VIEW {v} AS {q};" for v, q in AROUND.items()))
    referee, rng, rows, refused = DuckOracle(viewlet.compile(SCHEMA).relations), Random(3), list[Event](), 0
    for _ in range(70):
        new = ("r", (rng.choice([1, 2, None]), rng.choice([1, 2]))), ("s", (rng.choice([1, 2, 3]), "a"))
        goes = rows.pop(rng.randrange(len(rows))) if rows and rng.random() < 0.35 else None
        event = ("-", *goes[1:]) if goes else ("+", *rng.choice(new))
        referee.apply(*event)
        try:
            answers = {view: referee.rows(select) for view, select in AROUND.items()}
        except duckdb.InvalidInputException:
            with pytest.raises(viewlet.OutOfRangeError, match="used as a value has more than one row"):
                apply_event(database, event)
            referee.apply("+" if goes else "-", *event[1:])
            rows, refused = rows + [goes] * bool(goes), refused + 1  # type: ignore[list-item]
        else:
            apply_event(database, event)
            rows += [] if goes else [event]
            for view, expected in answers.items():
                assert difference(database.view(view).rows(), expected) is None
    assert 5 < refused < 50
