"""Before the stream: every cell is opened, with the static tables in it and what streams had before. Once.

At a later start the same tables are given again. Where they, or the job, are others by then, the job is changed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewlet.durable.chain import Manifest
from viewlet.durable.store import Store
from viewlet.errors import Error
from viewlet.spark.driver.arguments import Frames
from viewlet.spark.driver.change import change
from viewlet.spark.driver.cluster import batches_done_and_given, on_cluster, save_manifest, state_of
from viewlet.spark.driver.given import columns_read, differing, fingerprints, refuse_other_rows
from viewlet.spark.driver.route import Slots, events, route
from viewlet.spark.driver.runner import HISTORY, OPENING, Runner
from viewlet.spark.driver.types import spark_type
from viewlet.spark.job import Job, begin_job
from viewlet.spark.pipeline import Pipeline
from viewlet.spark.task.feed import NOBODY


@dataclass(frozen=True)
class Given:
    """What does not stream: all of it as it was given, the tables, and the rows that streams had before."""

    all: Frames
    static: Frames
    earlier: Frames


@dataclass(frozen=True)
class Loading:
    """``before`` is the job that the state under the checkpoint is of, if there is one; ``job`` the one to go on."""

    spark: SparkSession
    pipeline: Pipeline
    slots: Slots
    runner: Runner
    before: Job | None
    job: Job

    def load(self, sources: Frames, history: Frames) -> Job:
        """The job, as it is then noted."""
        given = {n: f for n, f in sources.items() if n in self.pipeline.read and not f.isStreaming}
        static = {n: f for n, f in given.items() if self.pipeline.relations[n].static}
        earlier = self._earlier({n: f for n, f in given.items() if n not in static}, history)
        tables = Given(given, static, earlier)
        begun, known = on_cluster(self.spark, partial(batches_done_and_given, self.runner.checkpoint, OPENING))
        if OPENING not in begun or self.before is None:
            return self._open(tables)
        return self._go_on(self.before, tables, begun, self.before.given or known)

    def _go_on(self, before: Job, tables: Given, begun: list[int], known: str) -> Job:
        """``known`` says what the tables were, if anything does."""
        stored = {kept.relation for kept in before.kept} if max(begun) > OPENING else set()
        if max(begun) > HISTORY not in begun and any(name in stored for name in tables.earlier):
            raise Error("history comes before the stream, and this stream has begun without: give a new checkpoint")
        self._refuse_other_rows(before, tables, known)
        prints = fingerprints(self.pipeline, tables.all) if known else ""
        if not before.is_as(self.job) or differing(known, prints, tables.static):
            job = replace(self.job, given=prints or fingerprints(self.pipeline, tables.all))
            return self._change(
                before, job, tables.static, {n: f for n, f in tables.earlier.items() if n not in stored}
            )
        if not self.runner.job and not before.sources:  # an earlier version noted less of it
            on_cluster(self.spark, partial(begin_job, self.runner.checkpoint, self.job))
        if tables.earlier and HISTORY not in begun:
            self._run(HISTORY, self._opened(), self._routed(tables.earlier))
        return before

    def _refuse_other_rows(self, before: Job, tables: Given, known: str) -> None:
        """A static DataFrame for a stream: its rows are in the cells, among the stream's others."""
        columns = columns_read(before.kept)
        there = {n: f for n, f in tables.all.items() if n in columns and n not in tables.static}
        if known and there:
            prints = fingerprints(self.pipeline, there, columns)
            refuse_other_rows(self.runner.checkpoint, differing(known, prints, there))

    def _earlier(self, given: Frames, history: Frames) -> Frames:
        """The rows that streams had before: those of static DataFrames, and of ``history``."""
        relations = self.pipeline.relations
        return {
            n: reduce(DataFrame.unionAll, [events(relations[n], f[n]) for f in (given, history) if n in f])
            for n in {**given, **history}
            if n in self.pipeline.read
        }

    def _open(self, tables: Given) -> Job:
        """A job that never got as far as this has left nothing but its name."""
        on_cluster(self.spark, partial(begin_job, self.runner.checkpoint, self.job))
        self._run(OPENING, None, self._tables(tables.static), fingerprints(self.pipeline, tables.all))
        if tables.earlier:
            self._run(HISTORY, self._opened(), self._routed(tables.earlier))
        return self.job

    def _opened(self) -> Manifest:
        return self.runner.last or on_cluster(self.spark, partial(state_of, self.runner.checkpoint, OPENING))

    def _change(self, before: Job, job: Job, static: Frames, earlier: Frames) -> Job:
        """``earlier`` are rows that no cell has yet."""
        rows = [self._tables(static), *([self._routed(earlier)] if earlier else [])]
        changed = change(self.spark, self.runner, self.pipeline, self.slots, (before, job), rows)
        self.runner.job = changed.to_text()
        return changed

    # -- batches -------------------------------------------------------------------------------------------------------

    def _tables(self, static: Frames) -> DataFrame:
        """Rows of the tables, and one for each cell."""
        opening = openers(self.spark, self.pipeline.grid.cells, self.slots)
        return opening.unionAll(self._routed(static)) if static else opening

    def _routed(self, frames: Frames) -> DataFrame:
        return route(self.pipeline.grid, self.slots, self.pipeline.relations, frames)

    def _run(self, batch: int, before: Manifest | None, rows: DataFrame, given: str = "") -> None:
        moment = time.time_ns() // 1000 if self.runner.works.clocks else None
        self.runner.last = self.runner.run_batch(rows, before, batch, given, moment).manifest
        on_cluster(self.spark, partial(save_manifest, self.runner.checkpoint, self.runner.last))


def openers(spark: SparkSession, cells: int, slots: Slots) -> DataFrame:
    """A row for each cell that says nothing: even a cell that no row ever reaches has its share of the answer."""
    nulls = [F.lit(None).cast(spark_type(type_)).alias(f"s{i}") for i, type_ in enumerate(slots.types)]
    cell = F.col("id").cast("int").alias("cell")
    return spark.range(cells).select(cell, F.lit(NOBODY).alias("copy"), F.lit(1).cast("long").alias("op"), *nulls)


def nothing(spark: SparkSession, runner: Runner, slots: Slots) -> DataFrame:
    """No source streams: a stream without rows, so that the query is Spark's own all the same."""
    schema = openers(spark, runner.works.cells, slots).schema
    return spark.readStream.schema(schema).parquet(on_cluster(spark, partial(_empty_directory, runner.checkpoint)))


def _empty_directory(checkpoint: str) -> str:
    store = Store.of(checkpoint)
    store.write("nothing/.keep", b"")
    return store.pattern_of("nothing")
