"""Who keeps a view fresh after every event, and how fast: each contestant is one function, and each answer is checked.

Times are CPU seconds of this process. The trigger programs and the native engine take the whole stream. Slower ones
start with the rows of the steady state and take events until their time is up; the interpreter does so on a stream
with a hundredth of the live rows, or it would not get there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import viewlet
from bench.engine.answers import Referee, answer, check
from bench.engine.triggers import Kept, Run, Triggers, generated_source, hand_source, hand_written
from bench.engine.workload import Row, Workload, survivors, workload
from viewlet.errors import Error
from viewlet.workloads.bulk import BulkStream

BATCH = 10_000  # events of one Arrow batch or one list
CHUNK = 100  # events between two looks at the clock
PATIENCE = 5  # times the seconds of the others
TUPLES = 200_000  # events for the contestants that take Python objects


class SkippedError(Exception):
    """A contestant that cannot run here and now; the message says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    repetitions: int = 5
    seconds: float = 3.0  # for a contestant that does not take the whole stream
    tuples: int = TUPLES


@dataclass(frozen=True, slots=True)
class Measured:
    events: int
    seconds: float
    rows: list[Row]
    kept: list[Kept] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.events / self.seconds


Contestant = Callable[[Workload, Limits], Measured]


# -- the triggers alone ------------------------------------------------------------------------------------------------


def hand(w: Workload, limits: Limits) -> Measured:
    """The upper bound: what an expert would write for this one query with the runtime's maps."""
    if not hand_written(w.name).exists():
        raise SkippedError("nobody wrote it by hand")
    return _triggers(hand_source(w.name), w, limits)


def trick(w: Workload, limits: Limits) -> Measured:
    """The same with what only this query or this data allows: a part's quantities in order, one customer an order."""
    if not hand_written(w.name, trick=True).exists():
        raise SkippedError("no trick is known that the maps do not have")
    return _triggers(hand_source(w.name, trick=True), w, limits)


def native_triggers(w: Workload, limits: Limits) -> Measured:
    try:
        source = generated_source(viewlet.compile(w.script))
    except ImportError as missing:
        raise SkippedError(f"no emitter: {missing}") from missing
    return _triggers(source, w, limits)


def _triggers(source: str, w: Workload, limits: Limits) -> Measured:
    """The best of several runs; all of them, and one that stops early, must be right."""
    program = Triggers(source, w)
    early = w.stream.between(0, len(w.stream) // 3)
    check("the program, a third of the way,", program.run(early).rows, answer(w, early))
    runs = [program.run(w.stream) for _ in range(limits.repetitions)]
    right = answer(w, w.stream)
    for run in runs:
        check("the program", run.rows, right)
    best: Run = min(runs, key=lambda run: run.seconds)
    return Measured(len(w.stream), best.seconds, best.rows, best.kept)


# -- the native engine as users meet it: base tables, checked deletes --------------------------------------------------


def native_batches(w: Workload, limits: Limits) -> Measured:
    """``apply`` with Arrow batches."""
    parts = ((len(batch), (batch,)) for batch in w.stream.batches(BATCH))
    return _through_api(w, w.stream, parts, limits, lambda db, batch: db.apply(batch))


def native_inserts(w: Workload, limits: Limits) -> Measured:
    """``insert`` with Arrow tables, relation by relation: how a database is filled."""
    stream = w.inserts_only()
    slices = ((name, table.slice(i, BATCH)) for _, name, table in stream.runs() for i in range(0, len(table), BATCH))
    parts = ((len(table), (name, table)) for name, table in slices)
    return _through_api(w, stream, parts, limits, lambda db, name, table: db.insert(name, table))


def native_lists(w: Workload, limits: Limits) -> Measured:
    """``apply`` with lists of (op, relation, tuple)."""
    stream = w.stream.between(0, limits.tuples)
    events = stream.events()
    parts = ((len(part), (part,)) for part in iter(lambda: list(islice(events, BATCH)), []))
    return _through_api(w, stream, parts, limits, lambda db, part: db.apply(part))


def native_single(w: Workload, limits: Limits) -> Measured:
    """``insert`` and ``delete`` with one tuple a call."""
    stream = w.stream.between(0, limits.tuples)
    return _through_api(w, stream, ((1, event) for event in list(stream.events())), limits, _change)


def _change(db: viewlet.Database, op: str, relation: str, row: Row) -> None:
    (db.insert if op == "+" else db.delete)(relation, row)


Parts = Iterable[tuple[int, tuple[Any, ...]]]  # how many events, and what the API takes for them


def _through_api(w: Workload, stream: BulkStream, parts: Parts, limits: Limits, do: Callable[..., None]) -> Measured:
    """All parts, unless that takes many times longer than any contestant should."""
    done, spent = 0, 0.0
    with _native(w) as db:
        for events, arguments in parts:
            start = time.process_time()
            do(db, *arguments)
            spent += time.process_time() - start
            done += events
            if spent > PATIENCE * limits.seconds:
                break
        rows = db.view(w.name).rows()
        kept = [Kept(*each) for each in db.engine.memory()]  # type: ignore[attr-defined]
    check("the native engine", rows, answer(w, stream.between(0, done)))
    return Measured(done, spent, rows, kept)


def _native(w: Workload) -> viewlet.Database:
    try:
        return w.opened("native", wait_native=True)
    except (Error, TypeError) as refused:
        raise SkippedError(f'engine="native" is refused: {refused}') from refused


# -- the others, for a bounded time ------------------------------------------------------------------------------------


def python_tier(w: Workload, limits: Limits) -> Measured:
    return _in_stride(w, limits, "python")


def interpreter(w: Workload, limits: Limits) -> Measured:
    return _in_stride(workload(w.name, shrunk=True), limits, "interpreter")


def _in_stride(w: Workload, limits: Limits, engine: str) -> Measured:
    """Insert the rows of the steady state, untimed, one by one: what is quadratic in a bulk would never end."""
    with w.opened(engine) as db:
        for name, table in survivors(w.stream.between(0, w.warm)).items():
            db.apply(("+", name, row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True))
        done, seconds = _timed(w, limits, db.apply)
        rows = db.view(w.name).rows()
    check(f"the {engine} engine", rows, answer(w, w.stream.between(0, w.warm + done)))
    return Measured(done, seconds, rows)


def duckdb(w: Workload, limits: Limits) -> Measured:
    """Evaluates the query anew after every event."""
    referee = Referee(w, survivors(w.stream.between(0, w.warm)))
    rows: list[Row] = []

    def refresh(events: list[tuple[str, str, Row]]) -> None:
        for event in events:
            referee.change(*event)
            rows[:] = referee.rows()

    done, seconds = _timed(w, limits, refresh, chunk=1)
    check("DuckDB", rows, answer(w, w.stream.between(0, w.warm + done)))
    return Measured(done, seconds, rows)


def _timed(w: Workload, limits: Limits, apply: Callable[[list], None], chunk: int = CHUNK) -> tuple[int, float]:  # type: ignore[type-arg]
    """Events taken from the steady state on, and the seconds they took."""
    events: Iterator[tuple[str, str, Row]] = w.stream.between(w.warm, len(w.stream)).events()
    done, seconds = 0, 0.0
    while seconds < limits.seconds and (part := list(islice(events, chunk))):
        start = time.process_time()
        apply(part)
        seconds += time.process_time() - start
        done += len(part)
    return done, seconds


CONTESTANTS: dict[str, Contestant] = {
    "hand": hand,
    "trick": trick,
    "triggers": native_triggers,
    "arrow": native_batches,
    "fill": native_inserts,
    "lists": native_lists,
    "single": native_single,
    "python": python_tier,
    "interpreter": interpreter,
    "duckdb": duckdb,
}
