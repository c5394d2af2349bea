"""Every engine and strategy side by side against the referee, after every event.

A new engine joins every suite in this directory by its name in ``ENGINES``.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any

import pytest

import viewlet
from tests.oracle.oracle import DuckOracle, Row, Vacuity, difference
from viewlet.algebra.evaluate import Key
from viewlet.compilation import Dialect
from viewlet.compiler.script import compile_script
from viewlet.database.memory import Database
from viewlet.engines.native.emit.program import native
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program, Script
from viewlet.rows.boundary import to_key
from viewlet.workloads.streams import Event

ENGINES = ("interpreter", "python", "native")
STRATEGIES = ("reevaluate", "classical", "naive", "optimized", "cost")
THREADED = tuple((f"{threads} threads", "optimized") for threads in (2, 3))  # the native engine in cells
CONTESTANTS = tuple((engine, strategy) for engine in ENGINES for strategy in STRATEGIES)


def deal_engines(start: int) -> list[tuple[str, str]]:
    """Every strategy, each with one engine in turn: compiling is what takes the time."""
    return [(ENGINES[(start + number) % len(ENGINES)], strategy) for number, strategy in enumerate(STRATEGIES)]


def chosen_contestants(start: int, soaking: bool) -> Sequence[tuple[str, str]]:
    """Both engines that users have by default, and every strategy in turn; all pairs where there is time for them."""
    usual = [("native", "optimized"), ("python", "optimized")]
    return (*CONTESTANTS, *THREADED) if soaking else list(dict.fromkeys([*usual, *deal_engines(start)]))


@contextlib.contextmanager
def compiled_as_users_have_it() -> Iterator[None]:
    """With optimisation, which the compiler of the tests leaves out: see ``tests/quick-c++``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CXX", raising=False)
        yield


_PROGRAMS: dict[tuple[str, str, str], Program] = {}


@contextlib.contextmanager
def compiled_once() -> Iterator[None]:
    """The engines share a strategy's program: to compile it for each of them takes longer than many a stream."""
    viewlet.database.memory.compile_script = _compiled
    try:
        yield
    finally:
        viewlet.database.memory.compile_script = compile_script


def _compiled(script: Script, strategy: str) -> Program:
    key = script.source, script.dialect, strategy
    if key not in _PROGRAMS:
        if len(_PROGRAMS) == len(STRATEGIES):
            _PROGRAMS.clear()
        _PROGRAMS[key] = compile_script(script, strategy)
    return _PROGRAMS[key]


class Disagreement(AssertionError):
    """A database and the referee have different rows."""


@dataclass(frozen=True)
class Case:
    """Tables, views, a stream, what static tables hold, and for each view under test the referee's SELECT.

    ``prepare`` is what the referee executes before it answers: the views that the SELECTs read. ``as_users_have_it``
    is for a case that is worth the compiler's time: the default strategy is optimised machine code.
    """

    schema: str
    views: str
    selects: Mapping[str, str]
    events: Sequence[Event]
    static: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    dialect: Dialect = "sql"
    prepare: tuple[str, ...] = ()
    as_users_have_it: bool = False

    def open(self, engine: str, strategy: str) -> Database:
        """A database with the views and the static tables, before the first event."""
        threads = int(engine.split()[0]) if engine.endswith("threads") else 1
        engine = "native" if threads > 1 else engine
        database = viewlet.connect(
            engine=engine, strategy=strategy, dialect=self.dialect, wait_native=True, threads=threads
        )
        optimised = self.as_users_have_it and strategy == "optimized"
        with compiled_once(), compiled_as_users_have_it() if optimised else contextlib.nullcontext():
            database.execute(self.schema + self.views)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tier = database.tier
        if tier != engine:  # only numbers without a fixed width may keep a program from the native engine
            with pytest.raises(Unfit):
                native(database.program)
        for relation, rows in self.static.items():
            database.insert(relation, list(rows))
        return database

    def referee(self) -> DuckOracle:
        oracle = DuckOracle(viewlet.compile(self.schema).relations)
        for statement in self.prepare:
            oracle.connection.execute(statement)
        for relation, rows in self.static.items():
            oracle.load(relation, rows)
        return oracle

    def answers(self) -> Iterator[dict[str, list[Row]]]:
        """What the referee says of each view after each event."""
        oracle = self.referee()
        for op, relation, row in self.events:
            oracle.apply(op, relation, row)
            yield {view: oracle.rows(select) for view, select in self.selects.items()}


def opened_natively(script: str, **options: Any) -> Database:
    """A database that runs ``script`` as machine code."""
    database = viewlet.connect(wait_native=True, **options)
    database.execute(script)
    assert database.tier == "native"
    return database


def apply_event(database: Database, event: Event) -> None:
    op, relation, row = event
    (database.insert if op == "+" else database.delete)(relation, row)


def agree(case: Case, contestants: Sequence[tuple[str, str]] = CONTESTANTS) -> dict[str, Vacuity]:
    """Run all contestants over the stream next to the referee; returns how often each view was empty."""
    databases = {contestant: case.open(*contestant) for contestant in contestants}
    watch = {view: Vacuity() for view in case.selects}
    for number, (event, answer) in enumerate(zip(case.events, case.answers(), strict=True)):
        for (engine, strategy), database in databases.items():
            apply_event(database, event)
            for view, expected in answer.items():
                if wrong := difference(database.view(view).rows(), expected):
                    raise Disagreement(f"{view} by {engine}/{strategy} after event {number} {event}: {wrong}")
        for view, expected in answer.items():
            watch[view].watch(expected)
    return watch


# -- batches -----------------------------------------------------------------------------------------------------------


def cut(events: Sequence[Event], rng: Random, longest: int) -> Iterator[Sequence[Event]]:
    """The stream in batches of random length, empty ones among them."""
    start = 0
    while start < len(events):
        end = start + rng.randint(0, longest)
        yield events[start:end]
        start = end


def insert_then_delete(database: Database, batch: Sequence[Event]) -> None:
    """Relation by relation, all inserts as one list and then all deletes as another."""
    for relation in _relations(batch):
        database.insert(relation, [row for op, name, row in batch if (op, name) == ("+", relation)])
        database.delete(relation, [row for op, name, row in batch if (op, name) == ("-", relation)])


def runs(database: Database, batch: Sequence[Event]) -> None:
    """Neighbours of one kind as one list, so that the stream keeps its order."""
    for (op, relation), run in groupby(batch, key=lambda event: event[:2]):
        (database.insert if op == "+" else database.delete)(relation, [row for _, _, row in run])


def net_effect(database: Database, batch: Sequence[Event]) -> None:
    """One ΔR per relation, inserts and deletes mixed; a row that comes and goes within the batch stands with 0."""
    relations = {relation.name: relation for relation in database.program.relations}
    for name in _relations(batch):
        entries: Counter[Key] = Counter()
        for op, changed, row in batch:
            if changed == name:
                entries[to_key(relations[name], row)] += 1 if op == "+" else -1
        database.engine.apply_bulk(name, entries)


def _relations(batch: Sequence[Event]) -> list[str]:
    return list(dict.fromkeys(name for _, name, _ in batch))


WAYS: Mapping[str, Callable[[Database, Sequence[Event]], None]] = {
    "insert then delete": insert_then_delete,
    "runs": runs,
    "net effect": net_effect,
    "apply": lambda database, batch: database.apply(list(batch)),
}
