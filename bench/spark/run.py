"""A maintained script at work: stretches of micro-batches, what Spark and the cells say of each, what they took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import viewlet.spark
from bench.engine.workload import Row
from bench.spark.events import EventFiles, Intake
from bench.spark.machine import Clock
from viewlet.workloads.queries import PaperQuery

HEAP = "3g"  # of the JVM
REMEMBERED = 100_000  # micro-batches whose progress Spark keeps

Progress = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch: seconds of its parts, as Spark names them."""

    number: int
    parts: Mapping[str, float]
    own: Mapping[str, Any]
    """What viewlet says of it."""

    @property
    def seconds(self) -> float:
        """From the trigger to Spark's commit."""
        return self.parts["triggerExecution"]


@dataclass(frozen=True)
class Stretch:
    """Micro-batches one after the other, their events, and what they took from the first file to the last commit."""

    batches: tuple[Batch, ...]
    rows: int
    took: Clock
    answer_rows: int = 0  # of the view afterwards, each compared with DuckDB's

    @property
    def rate(self) -> float:
        """Events per second of the wall."""
        return self.rows / self.took.wall

    @property
    def rate_of_cpu(self) -> float:
        """Events per CPU second, whoever took it: driver, JVM, workers, cells."""
        return self.rows / self.took.own

    @cached_property
    def seconds(self) -> list[float]:
        return [batch.seconds for batch in self.batches]

    @property
    def typical(self) -> float:
        return median(self.seconds)

    @property
    def average(self) -> float:
        return mean(self.seconds)

    @property
    def worst(self) -> float:
        return max(self.seconds)


@contextmanager
def spark_with(cores: int, **more: str) -> Iterator[SparkSession]:
    conf: dict[str, str | int] = {
        **more,
        "spark.driver.memory": HEAP,
        "spark.sql.streaming.numRecentProgressUpdates": REMEMBERED,
    }
    spark = viewlet.spark.session(f"local[{cores}]", app="bench.spark", **conf)
    try:
        yield spark
    finally:
        spark.stop()


@dataclass
class Running:
    """A streaming query over event files that are let in when it suits the measurement."""

    query: StreamingQuery
    intake: Intake
    own: Callable[[], Progress]
    files_to_a_batch: int = 1
    _next: int = 0

    def take(self, batches: int) -> Stretch:
        """Let in the files of so many micro-batches, and wait until they are committed."""
        seen = len(self.query.recentProgress)
        numbers = range(self._next, self._next + batches * self.files_to_a_batch)
        self._next = numbers.stop
        before = Clock.now()
        self.intake.let_in(numbers)
        self.query.processAllAvailable()
        took = Clock.now() - before
        self.intake.let_go(numbers)
        own = {entry["batch"]: entry for entry in self.own()}
        ran = [p for p in self.query.recentProgress[seen:] if "addBatch" in p.durationMs]
        done = tuple(Batch(p.batchId, _in_seconds(p.durationMs), own.get(p.batchId, {})) for p in ran)
        return Stretch(done, self.intake.files.rows(numbers), took)


def _in_seconds(parts: Mapping[str, int]) -> dict[str, float]:
    return {name: ms / 1000 for name, ms in parts.items()}


@contextmanager
def maintained(
    spark: SparkSession,
    script: str,
    files: EventFiles,
    scratch: Path,
    *,
    cells: int,
    files_to_a_batch: int = 1,
    history: Mapping[str, DataFrame] | None = None,
) -> Iterator[tuple[Running, viewlet.spark.Views]]:
    intake = Intake(files, scratch / "arrived")
    sources = intake.sources(spark, files_to_a_batch)
    views = viewlet.spark.maintain(spark, script, sources, scratch / "checkpoint", cells=cells, history=history)
    try:
        yield Running(views.query, intake, lambda: views.progress, files_to_a_batch), views
    finally:
        views.stop()


def script_of(query: PaperQuery) -> str:
    """Without the relations that the query does not read: there is no source for them."""
    statements = [statement.strip() for statement in query.schema.split(";")]
    read = [s for s in statements if s.split("(")[0].split()[2:3] in [[name] for name in query.relations]]
    return ";\n".join([*read, query.sql()])


def shown(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.collect()]
