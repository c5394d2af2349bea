"""An update on its way through several cells: all of them do their part of it, or none has done anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from viewlet.engines.native.bridge import Cells
from viewlet.engines.native.engine import NativeEngine
from viewlet.engines.native.module import Point
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.errors import DataError
from viewlet.program.encoding import Row
from viewlet.rows import arrow
from viewlet.rows.ledger import opposite


@dataclass(frozen=True)
class Work:
    """What a cell does, and what takes it back.

    ``do`` returns False where nothing was done, since the rows must come in another way. ``whole``: what interrupts it
    undoes it. Else the state counts whether it was taken.
    """

    do: Callable[[NativeEngine], bool | None]
    undo: Callable[[NativeEngine], object]
    whole: bool = False


class Divided(Protocol):
    """What an update needs of the engine of all cells."""

    cells: list[NativeEngine]

    def points(self) -> list[Point | None]: ...
    def sum_up(self) -> None: ...
    def recover_sums(self, error: BaseException) -> None: ...


class Update:
    """One update on its way: done in all cells that it concerns, or to be undone in those that have it."""

    def __init__(self, engine: Divided, works: Mapping[int, Work], pool: ThreadPoolExecutor | None) -> None:
        self._engine, self._works, self._pool = engine, works, pool
        self._points = engine.points()
        self._before = {cell: engine.cells[cell].state.updates() for cell in works}
        self._done = set[int]()
        self._failed = dict[int, BaseException]()  # these cells are as they were
        self._unsummed: BaseException | None = None
        self._undone = False

    def run(self) -> bool:
        """False where a cell left its rows to Python: then nothing was done. What fails is undone, and raised."""
        try:
            done = self._run()
            if done:
                self._sum_up()
        except BaseException:
            self.undo()
            raise
        if not done:
            self.undo()
        return done

    def _run(self) -> bool:
        if self._pool is None:
            answers = [self._one(cell, work) for cell, work in self._works.items()]
        else:
            tasks = [self._pool.submit(self._one, cell, work) for cell, work in self._works.items()]
            try:
                wait(tasks)
            finally:  # Ctrl-C does not reach them
                wait(tasks)
            answers = [task.result() for task in tasks]
        if self._failed:
            raise min(self._failed.values(), key=_row)
        return all(answer is not False for answer in answers)

    def _one(self, cell: int, work: Work) -> bool | None:
        engine = self._engine.cells[cell]
        try:
            done = work.do(engine)
            if done is not False:
                self._done.add(cell)
            return done
        except SpoiledError as error:
            try:
                engine.recover(error)
            except BaseException as told:
                self._failed[cell] = told
        except BaseException as error:
            if self._was_taken(cell):  # Ctrl-C came behind it
                raise
            self._failed[cell] = error
        return None

    def _was_taken(self, cell: int) -> bool:
        counted = not self._works[cell].whole and self._engine.cells[cell].state.updates() != self._before[cell]
        return not self._undone and cell not in self._failed and (cell in self._done or counted)

    def _sum_up(self) -> None:
        try:
            self._engine.sum_up()
        except BaseException as error:
            self._unsummed = error
            raise

    def undo(self) -> None:
        """Once: a second call does nothing. Sums that could not be made are told by the names that a user knows."""
        if self._undone:
            return
        for cell in filter(self._was_taken, self._works):
            engine, point = self._engine.cells[cell], self._points[cell]
            if point is None:
                self._works[cell].undo(engine)
            else:
                engine.go_back({}, point)
        self._undone = True
        if self._unsummed is not None:
            self._engine.recover_sums(self._unsummed)
        else:
            self._engine.sum_up()


def _row(error: BaseException) -> tuple[bool, int]:
    """The first row that was refused is the one to tell of."""
    row = error.row if isinstance(error, DataError) else None
    return row is None, row or 0


def events_work(events: list[tuple[int, str, Cells]]) -> Work:
    return Work(
        lambda engine: engine.apply_events(events),
        lambda engine: engine.apply_events([(-times, name, row) for times, name, row in reversed(events)]),
    )


def many_work(relation: str, times: int, rows: list[Any]) -> Work:
    """The cell's own rows of a list, each in any form that a user may give."""
    return Work(
        lambda engine: engine.state.many(relation, times, rows),
        lambda engine: engine.state.many(relation, -times, rows[::-1]),
    )


def mixed_work(events: Sequence[Any]) -> Work:
    """The same for events (op, relation, row); what is none Python must look at."""
    return Work(
        lambda engine: engine.state.events(events) is None,
        lambda engine: engine.state.events([(opposite(op), name, row) for op, name, row in events[::-1]]),
    )


def rows_work(relation: str, times: int, batch: pa.RecordBatch) -> Work:
    """The cell's own rows of a batch."""
    return Work(
        lambda engine: engine.state.arrow_rows(relation, times, batch),
        lambda engine: engine.state.arrow_rows(relation, -times, arrow.backwards(batch)),
    )


def arrow_events_work(batch: pa.RecordBatch) -> Work:
    """The cell's own events of a batch."""
    return Work(
        lambda engine: engine.state.arrow_events(batch),
        lambda engine: engine.state.arrow_events(arrow.undone(batch)),
    )


def load_work(relation: str, entries: Mapping[Row, int]) -> Work:
    """An engine whose table cannot be loaded goes back by itself."""
    gone = {row: -times for row, times in entries.items()}
    return Work(lambda engine: engine.load(relation, entries), lambda engine: engine.load(relation, gone), whole=True)
