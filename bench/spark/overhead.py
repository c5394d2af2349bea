"""What a micro-batch of few rows takes beyond Spark's own: the same sources, into a function that does nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.engine.answers import answer, check
from bench.engine.workload import Row, workload
from bench.spark.events import EventFiles, Intake, event_tables, write_events
from bench.spark.machine import apart
from bench.spark.run import Running, Stretch, maintained, script_of, shown, spark_with
from viewlet.workloads.queries import PAPER_QUERIES

ROWS = 100  # to a micro-batch
CORES, CELLS = 2, 4


@dataclass(frozen=True)
class Overhead:
    """Of the same micro-batches: Spark's own, and with views kept."""

    empty: Stretch
    kept: Stretch

    @property
    def seconds(self) -> float:
        return self.kept.typical - self.empty.typical


def overhead(name: str, warm: int, batches: int, folder: Path) -> Overhead:
    """Spark alone comes last, when its code is warmest."""
    w = workload(name, 4 * ROWS * (warm + batches), shrunk=True)
    stream = w.stream.between(0, ROWS * (warm + batches))
    files = write_events(folder / f"{name}-few", event_tables(stream, ROWS))
    measured, rows = apart(None, _measured, name, files, warm, batches)
    check(f"{name} on Spark, {CELLS} cells, micro-batches of {ROWS}", rows, answer(w, stream))
    return replace(measured, kept=replace(measured.kept, answer_rows=len(rows)))


def _measured(name: str, files: EventFiles, warm: int, batches: int) -> tuple[Overhead, list[Row]]:
    script = script_of(PAPER_QUERIES[name])
    with tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch, spark_with(CORES) as spark:
        with maintained(spark, script, files, Path(scratch, "kept"), cells=CELLS) as (running, views):
            running.take(warm)
            kept, rows = running.take(batches), shown(views[name])
        with doing_nothing(spark, files, Path(scratch, "empty")) as running:
            running.take(warm)
            return Overhead(running.take(batches), kept), rows


@contextmanager
def doing_nothing(spark: SparkSession, files: EventFiles, scratch: Path) -> Iterator[Running]:
    intake = Intake(files, scratch / "arrived")
    rows = reduce(DataFrame.unionAll, [source.select("op") for source in intake.sources(spark, 1).values()])
    writer = rows.writeStream.foreachBatch(lambda batch, number: None)
    query = writer.option("checkpointLocation", str(scratch / "checkpoint")).start()
    try:
        yield Running(query, intake, list)
    finally:
        query.stop()
