"""Cells on executors in JVMs of their own: one core and one cell each."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import viewlet.spark
from bench.engine.answers import answer, check
from bench.engine.workload import Row
from bench.spark.events import EventFiles
from bench.spark.machine import apart
from bench.spark.run import REMEMBERED, Stretch, maintained, script_of, shown
from bench.spark.throughput import Stream
from viewlet.workloads.queries import PAPER_QUERIES

MEMORY_MB = 1024  # of an executor


def executors(stream: Stream, count: int, warm: int, batches: int) -> Stretch:
    stretch, rows = apart(None, _measured, stream.name, stream.files, count, stream.first + warm, batches)
    check(f"{stream.name} on {count} executors", rows, answer(stream.workload, stream.until(warm + batches)))
    return replace(stretch, answer_rows=len(rows))


def _measured(name: str, files: EventFiles, count: int, warm: int, batches: int) -> tuple[Stretch, list[Row]]:
    spark = viewlet.spark.session(
        f"local-cluster[{count},1,{MEMORY_MB}]",
        app="bench.spark",
        **{
            "spark.executor.memory": f"{MEMORY_MB}m",
            "spark.sql.shuffle.partitions": count,
            "spark.sql.streaming.numRecentProgressUpdates": REMEMBERED,
            "spark.ui.enabled": False,
        },
    )
    try:
        with (
            tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch,
            maintained(spark, script_of(PAPER_QUERIES[name]), files, Path(scratch), cells=count) as (running, views),
        ):
            running.take(warm)
            return running.take(batches), shown(views[name])
    finally:
        spark.stop()
