"""A job at work: batch after batch until its sources end, on the engine in this process or on Spark."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from viewlet.compilation import Dialect
from viewlet.compiler.strategy import StrategyName
from viewlet.database.directory import connect
from viewlet.database.looking import Shape, Window, window
from viewlet.database.memory import Database
from viewlet.errors import Error
from viewlet.jobs import local
from viewlet.jobs.file import with_op
from viewlet.jobs.source import sources_of
from viewlet.jobs.verify import Row, difference, expected
from viewlet.rows import dml
from viewlet.rows.arrow import listed
from viewlet.rows.unstored import refuse
from viewlet.schema import CLOCK, Relation
from viewlet.sql.define import Changed
from viewlet.sql.translate import Translation, nothing, translate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

POLL = 0.1  # seconds
STDERR = 2
LOOK_SHARE = 0.1
LOOK_SHARE_BESIDE = 0.5  # where batches are done elsewhere


@dataclass(frozen=True)
class Options:
    strategy: StrategyName
    dialect: Dialect
    master: str | None
    cells: int | None
    checkpoint: str | None


@dataclass(frozen=True)
class Progress:
    """After a batch: how many there were and will be, rows read, seconds of the last one, and what Spark alone knows.

    Spark reads a relation as often as there are copies of it on the grid.
    """

    batches: int
    of: int
    rows: int
    seconds: float
    engine: str
    cells: int | None = None
    state_bytes: int | None = None


@dataclass
class Stop:
    """Asked for by a signal's handler, which may hold no lock: an Event could wait for itself."""

    asked: bool = False


class FailedBatchError(Error):
    """Rows or files that a query on Spark met while it was at work."""


class Batches(Protocol):
    """What a screen shows. ``stop`` ends it after the batch at work.

    ``views`` by name, to be looked at from any thread. ``is_endless``: it waits for rows, and ends by ``stop`` alone.
    """

    views: Mapping[str, Window]
    stop: Stop
    is_endless: bool
    look_share: float
    """Of the time, that looks at the views may take: in this process batches wait for them."""

    def batches(self) -> Iterator[Progress]: ...


class Run(Batches, Protocol):
    """Closed when it is over, however it ended."""

    def rows(self, view: str) -> list[Row]: ...

    def arrow(self, view: str) -> pa.Table: ...

    def live_rows(self) -> Mapping[str, list[pa.Table]]: ...

    def close(self) -> None: ...


def start(script: str, engine: str, options: Options) -> Run:
    return SparkRun(script, options) if engine == "spark" else LocalRun(script, options)


def wrong_views(run: Run, script: str, dialect: Dialect) -> dict[str, str]:
    """The views that differ from their queries, evaluated over the rows that are left, and how they differ."""
    relations = translate(script, dialect).relations
    if CLOCK in relations:
        raise Error("a view reads now(), and DuckDB has a clock of its own: such a script cannot be verified")
    right = expected(script, dialect, streams_and_tables(relations), run.live_rows())
    differences = {view: difference(run.rows(view), right[view]) for view in run.views}
    return {view: what for view, what in differences.items() if what is not None}


def given_relations(translation: Translation) -> list[Relation]:
    """Those that have a source, or should: the script itself fills the others."""
    filled = {step.statement.name for step in translation.steps if isinstance(step, Changed)}
    relations = streams_and_tables(translation.script.relations)
    return [r for r in relations if "connector" in r.options or r.name not in filled]


def streams_and_tables(relations: Iterable[Relation]) -> list[Relation]:
    """Those that users have: no source has the rows of the clock, or of elements."""
    return [relation for relation in relations if not relation.is_hidden]


class LocalRun:
    def __init__(self, script: str, options: Options) -> None:
        translation = nothing(options.dialect).followed(script)
        self.stop = Stop()
        self._relations = given_relations(translation)
        self._sources = sources_of(self._relations)
        self.is_endless, self.look_share = False, LOOK_SHARE
        self._db: Database = connect(strategy=options.strategy, dialect=options.dialect, wait_native=True)
        self._db.execute(script)
        self.views: Mapping[str, Window] = {
            result.name: window(self._db, result.name) for result in translation.script.results
        }
        stored = streams_and_tables(translation.script.relations)
        self._lost = [r for r in stored if r not in self._relations and not r.stored]
        self._first = {r.name: dml.as_arrow(r, self._db.engine.table(r.name)) for r in stored}

    def batches(self) -> Iterator[Progress]:
        for name, tables in local.static_tables(self._relations, self._sources).items():
            for table in tables:
                self._db.insert(name, table)
        rows, of = 0, local.batch_count(self._relations, self._sources)
        for number, step in enumerate(local.batches(self._relations, self._sources)):
            started = time.perf_counter()
            self._db.tick()  # nothing happens where no view reads the clock
            for batch in step:
                self._db.apply(batch)
                rows += batch.num_rows
            yield Progress(number + 1, of, rows, time.perf_counter() - started, self._db.tier)
            if self.stop.asked:
                return

    def rows(self, view: str) -> list[Row]:
        return self._db.view(view).rows()

    def arrow(self, view: str) -> pa.Table:
        return self._db.view(view).arrow()

    def live_rows(self) -> Mapping[str, list[pa.Table]]:
        for relation in self._lost:
            refuse(relation, "the rows that the script inserts cannot be verified")
        arrived = local.live_rows(self._relations, self._sources)
        return {name: [with_op(first), *arrived.get(name, ())] for name, first in self._first.items()}

    def close(self) -> None:
        self._db.close()


class SparkRun:
    def __init__(self, script: str, options: Options) -> None:
        from viewlet.jobs.spark import Frames, clear_errors
        from viewlet.spark import maintain

        translated = translate(script, options.dialect)
        relations = streams_and_tables(translated.relations)
        sources = sources_of(relations)
        self.stop = Stop()
        self.is_endless, self.look_share = False, LOOK_SHARE_BESIDE
        self.views: Mapping[str, Window] = {
            r.name: Window(Shape.of(r), partial(self._first_rows, r.name)) for r in translated.results
        }
        self._results = {r.name: r for r in translated.results}
        self._scratch = tempfile.TemporaryDirectory(prefix="viewlet-run-")
        try:
            self._spark = _silent_session(options.master, Path(self._scratch.name, "jvm.log"))
            generated = f"{options.checkpoint}/generated" if options.checkpoint else self._scratch.name
            with clear_errors():
                self._frames = Frames(self._spark, relations, sources, generated)
                self._of = self._frames.batch_count()
                self._views = maintain(
                    self._spark,
                    script,
                    self._frames.sources(),
                    options.checkpoint,
                    cells=options.cells,
                    strategy=options.strategy,
                    dialect=options.dialect,
                    trigger={"availableNow": True},
                )
        except BaseException:
            self._scratch.cleanup()
            raise

    def batches(self) -> Iterator[Progress]:
        query, seen, rows, over = self._views.query, 0, 0, False
        while not over:
            over = self._is_over()
            for done in [p for p in query.recentProgress if p.batchId >= seen and "addBatch" in p.durationMs]:
                seen, rows = done.batchId + 1, rows + done.numInputRows
                yield self._progress(done, rows)
                if self.stop.asked:
                    return

    def _progress(self, done: StreamingQueryProgress, rows: int) -> Progress:
        cells = next((p for p in reversed(self._views.progress) if p["batch"] == done.batchId), {})
        return Progress(
            done.batchId + 1,
            max(self._of, done.batchId + 1),  # a directory may have got more files
            rows,
            done.durationMs["triggerExecution"] / 1000,
            f"spark, {cells.get('engine', '')}",
            cells.get("cells"),
            cells.get("state_bytes"),
        )

    def _is_over(self) -> bool:
        if self._views.query.isActive:
            time.sleep(POLL)
            return False
        from viewlet.jobs.spark import clear_errors

        try:
            with clear_errors():
                self._views.query.awaitTermination()
        except Error as error:
            raise FailedBatchError(str(error)) from error
        return True

    def rows(self, view: str) -> list[Row]:
        return listed(self._results[view], self.arrow(view))

    def _first_rows(self, view: str, most: int) -> list[Row]:
        from viewlet.jobs.spark import clear_errors

        with clear_errors():
            return [tuple(row) for row in self._views[view].limit(most).collect()]

    def arrow(self, view: str) -> pa.Table:
        return self._views[view].toArrow()

    def live_rows(self) -> Mapping[str, list[pa.Table]]:
        from viewlet.jobs.spark import clear_errors

        with clear_errors():
            return {name: [frame.toArrow()] for name, frame in self._frames.live_rows().items()}

    def close(self) -> None:
        self._views.stop()
        self._scratch.cleanup()


def _silent_session(master: str | None, log: Path) -> SparkSession:
    """The code that awaits the query reports a failure. Spark's log and py4j's do not report it again."""
    from viewlet.spark import session

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    is_remote = master is not None and master.startswith("sc://")
    with _errors_apart(log):
        return session(master) if is_remote else session(master, **{"spark.log.level": "OFF"})


@contextmanager
def _errors_apart(log: Path) -> Iterator[None]:
    """A JVM that starts here warns into a file for all its life. Only if it does not start, that is told."""
    mine = os.dup(STDERR)
    with log.open("wb") as file:
        os.dup2(file.fileno(), STDERR)
    try:
        yield
    except BaseException:
        os.write(mine, log.read_bytes())
        raise
    finally:
        os.dup2(mine, STDERR)
        os.close(mine)
