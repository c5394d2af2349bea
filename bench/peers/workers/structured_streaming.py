"""Spark Structured Streaming in update mode, a micro-batch for every so many events; it has no deletes.

The query must pass Spark's own check of what may be streamed. The first micro-batches are not timed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from worker import Clock, RefusedError, Run, Task, work

UNTIMED = 3  # micro-batches
LONG_AGO = 1_700_000_000  # Spark takes files by their age: each is a second younger than the one before
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.checkpointFileManagerClass": (  # the other one starts a process for each file
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def write_inserts(task: Task, folder: Path) -> int:
    """A file for each relation and micro-batch, be it empty; how many rows there are."""
    inserts = [(name, place) for op, name, place in task.events if op > 0]
    for number, start in enumerate(range(0, len(inserts), task.batch)):
        for name, table in task.tables.items():
            places = [place for each, place in inserts[start : start + task.batch] if each == name]
            file = folder / name / f"{number:05}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table.take(pa.array(places, pa.int64())), file)
            os.utime(file, (LONG_AGO + number, LONG_AGO + number))
    return len(inserts)


class Watch:
    """What the micro-batches gave until the time was up; a row's last cell is the aggregate, the others are its key."""

    def __init__(self, task: Task, total: int) -> None:
        self._task, self._total, self._clock = task, total, Clock()
        self.run: Run | None = None
        self.over = threading.Event()
        self._rows: dict[tuple[Any, ...], Any] = {}

    def take(self, batch: DataFrame, number: int) -> None:
        if self.over.is_set():
            return
        for *key, value in batch.collect():
            self._rows[tuple(key)] = value
        if number < UNTIMED:
            self._clock = Clock()
            return
        taken = min((number + 1) * self._task.batch, self._total)
        cpu, wall = self._clock.cpu, self._clock.wall
        self.run = Run(
            taken - UNTIMED * self._task.batch, taken, cpu, wall, self._answer(), f"Spark {pyspark.__version__}"
        )
        if wall > self._task.seconds:
            self.over.set()

    def _answer(self) -> Iterable[list[Any]]:
        return [[*key, value] for key, value in self._rows.items()]


def maintained(task: Task) -> Run:
    folder = task.scratch
    total = write_inserts(task, folder)
    spark = SparkSession.builder.config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for name in task.relations:
        schema = spark.read.parquet(str(folder / name / "00000.parquet")).schema
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        rows.createOrReplaceTempView(name)
    watch = Watch(task, total)
    try:
        writer = spark.sql(task.sql).writeStream.outputMode("update").foreachBatch(watch.take)
        query = writer.option("checkpointLocation", str(folder / "checkpoint"))
        query = query.trigger(availableNow=True).start()
    except AnalysisException as refused:
        raise RefusedError(str(refused)) from refused
    while query.isActive and not watch.over.wait(0.05):
        pass
    if watch.run is None:
        raise RuntimeError(f"no micro-batch was timed: {query.exception()}")
    return watch.run


if __name__ == "__main__":
    work(maintained)
