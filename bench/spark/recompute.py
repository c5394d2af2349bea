"""Maintained against run again: the same query as Spark SQL over a cached table of all rows that are there.

Spark gets every fair chance: the table has no deleted rows left in it and lies in memory before the clock starts, the
answer is thrown away where it is made, several settings are tried, and the best run counts. What a run over
micro-batches would cost it besides (taking in the batch, Spark's own overhead) is not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.engine.answers import answer, check
from bench.engine.workload import SEED, Row, Workload, survivors
from bench.spark.events import EventFiles, event_tables, write_events
from bench.spark.machine import apart
from bench.spark.run import Stretch, maintained, script_of, shown, spark_with
from viewlet.workloads import bulk
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

STATE = 1_000_000  # rows
ROWS = 10_000  # to a micro-batch
CORES = 2
BROKERS = 1_000  # with a thousand bids each, which are joined with each other: the paper's ten make 100 times the pairs
MANY_BROKERS = 10_000  # a tenth of the pairs, where minutes must do
FULL = 0.98  # of the state that is aimed at
LINEITEMS = 4  # to an order, on average
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "as it comes": {},
    "larger broadcasts": {"spark.sql.autoBroadcastJoinThreshold": str(1 << 28)},
    "no adaptive plans": {"spark.sql.adaptive.enabled": "false"},
    "hash joins": {"spark.sql.join.preferSortMergeJoin": "false", "spark.sql.adaptive.enabled": "false"},
}
RUNS = 2  # more under the best of them


@dataclass(frozen=True)
class Recomputed:
    """Seconds of the best run, under which settings, beside the micro-batches that kept the same view."""

    seconds: float
    settings: str
    kept: Stretch

    @property
    def times(self) -> float:
        return self.seconds / self.kept.typical


def recompute(name: str, warm: int, batches: int, folder: Path, brokers: int = BROKERS) -> Recomputed:
    w = _workload(name, ROWS * (warm + batches), brokers)
    before, after = survivors(w.stream.between(0, w.warm)), survivors(w.stream)
    files = write_events(folder / f"{name}-more", event_tables(w.stream.between(w.warm, len(w.stream)), ROWS))
    history, everything = _written(folder / f"{name}-history", before), _written(folder / f"{name}-all", after)
    found, ours, theirs = apart(None, _measured, name, files, history, everything, warm, batches)
    right = answer(w, w.stream)
    check(f"{name} on Spark, maintained over {STATE:,} rows", ours, right)
    check(f"{name} as Spark SQL over {STATE:,} rows", theirs, right)
    return replace(found, kept=replace(found.kept, answer_rows=len(ours)))


def _workload(name: str, events: int, brokers: int) -> Workload:
    """``warm`` events lead to the state; so many follow, which come and go and leave it as large as it is."""
    query = PAPER_QUERIES[name]
    most = 3 * STATE + events
    if query.schema == FINANCE:
        stream = bulk.order_book(SEED, most, brokers=brokers, live=STATE, sides=query.relations)
    else:
        stream = bulk.tpch(SEED, most, live=STATE // (1 + LINEITEMS)).only(query.relations)
    warm = int(np.argmax(np.cumsum(stream.ops) >= FULL * STATE))
    return Workload(query, stream.between(0, warm + events), warm)


def _written(folder: Path, tables: Mapping[str, pa.Table]) -> Path:
    """Files of a size that Spark's tasks share evenly."""
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        share = -(-len(table) // CORES)
        for part in range(CORES):
            pq.write_table(table.slice(part * share, share), folder / name / f"{part}.parquet")
    return folder


def _measured(
    name: str, files: EventFiles, history: Path, everything: Path, warm: int, batches: int
) -> tuple[Recomputed, list[Row], list[Row]]:
    query = PAPER_QUERIES[name]
    with tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch, spark_with(CORES) as spark:
        earlier = {relation: spark.read.parquet(str(history / relation)) for relation in files.relations}
        with maintained(spark, script_of(query), files, Path(scratch), cells=CORES, history=earlier) as (
            running,
            views,
        ):
            running.take(warm)
            kept, ours = running.take(batches), shown(views[name])
        for relation in files.relations:
            cached = spark.read.parquet(str(everything / relation)).cache()
            cached.count()
            cached.createOrReplaceTempView(relation)
        seconds, settings = _best(spark, query.referee())
        return Recomputed(seconds, settings, kept), ours, shown(spark.sql(query.referee()))


def _best(spark: SparkSession, select: str) -> tuple[float, str]:
    """Each setting has a run, after one that warms up; the best has more of them."""

    def under(title: str, runs: int) -> float:
        with _set(spark, SETTINGS[title]):
            return min(_seconds(spark, select) for _ in range(runs))

    _seconds(spark, select)
    found = {title: under(title, 1) for title in SETTINGS}
    best = min(found, key=lambda title: found[title])
    return min(found[best], under(best, RUNS)), best


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def _seconds(spark: SparkSession, select: str) -> float:
    start = time.perf_counter()
    spark.sql(select).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start
