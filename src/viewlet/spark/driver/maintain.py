"""``maintain``: streaming DataFrames and a SQL script in, views that stay fresh out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from viewlet.compiler.strategy import StrategyName
from viewlet.durable.chain import Manifest
from viewlet.durable.manifest import RETAINED_BATCHES
from viewlet.durable.store import Store, absolute
from viewlet.errors import Error
from viewlet.schema import Dialect, Relation
from viewlet.spark.driver.arguments import (
    Frames,
    Trigger,
    check_ports,
    check_script,
    check_trigger,
    checked_streams,
    with_trigger,
)
from viewlet.spark.driver.cluster import batches_done_and_given, on_cluster, save_manifest, state_of, stop_cells
from viewlet.spark.driver.given import check_same, fingerprints
from viewlet.spark.driver.offsets import restore_offsets
from viewlet.spark.driver.route import Slots, events, route, slots_of, spark_type, without_the_obvious
from viewlet.spark.driver.runner import HISTORY, OPENING, SETTINGS, Runner, apply_settings, handing_over, run_batch
from viewlet.spark.driver.views import Views
from viewlet.spark.pipeline import Artefacts, Pipeline, Works, pipeline_of, prepare, works
from viewlet.spark.process.client import new_run
from viewlet.spark.task.feed import NOBODY

DEFAULT_CELLS = 4  # where Spark does not say how many cores it has


def maintain(
    spark: SparkSession,
    script: str,
    sources: Frames,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    cells: int | None = None,
    history: Frames | None = None,
    trigger: Trigger | None = None,
    strategy: StrategyName = "optimized",
    dialect: Dialect = "sql",
    retain: int = RETAINED_BATCHES,
    name: str | None = None,
    ports: tuple[int, int] | None = None,
    dead_letters: bool = False,
) -> Views:
    """Keep the views of a script fresh over streaming DataFrames, micro-batch by micro-batch, exactly once.

    ``sources`` has a DataFrame for each stream and table of the script, with the relation's columns. A streaming one
    may also have a column ``op``: +1 inserts the row, -1 deletes it, another integer does so that many times. A static
    one is loaded once, before the first batch. So are the rows of ``history``, which streams had before.

    ``checkpoint`` is the directory for all that a restart needs. Call with the same one to go on. Without one, the
    state is in a directory that is deleted with this process.

    ``cells`` says into how many shares to cut the work. The default is as many as Spark has cores. ``trigger`` is
    Spark's own: ``"5 seconds"`` looks for rows that often, ``{"availableNow": True}`` takes what is there and ends.
    ``retain`` says for how many batches old state and changes are kept. ``name`` is the query's name in Spark.
    ``ports`` are the first and the last that cells may listen at, where a firewall is between executors.
    With ``dead_letters``, a row of a stream that is bad by itself (NULL in NOT NULL, a number too large for its column,
    an ``op`` that is none) is put into ``views.dead_letters`` and counted in ``progress``, rather than stop the query.
    ``strategy`` and ``dialect`` are those of :func:`viewlet.connect`.
    """
    check_script(script)
    pipeline = pipeline_of(script, cells or _cores(spark), strategy, dialect)
    streams = checked_streams(pipeline, sources, history or {})
    check_trigger(spark, trigger)
    check_ports(ports)
    place = _place(checkpoint)
    artefacts = on_cluster(spark, partial(_prepared, place, script, pipeline.asked, strategy, dialect))
    slots = _slots(pipeline)
    works_ = _works(spark, pipeline, place, slots, artefacts, ports)
    runner = Runner(works_, place, retain, _is_planned(spark, pipeline))
    try:
        _load(spark, pipeline, slots, runner, sources, history or {})
        routed = (
            route(pipeline.grid, slots, pipeline.relations, streams, letters=dead_letters)
            if streams
            else _nothing(spark, runner, slots)
        )
        query = _start(spark, without_the_obvious(pipeline.grid, routed), runner, trigger, name)
    except BaseException:
        on_cluster(spark, partial(stop_cells, place, runner.works.run))
        raise
    return Views(spark, pipeline, runner, query)


def _works(
    spark: SparkSession,
    pipeline: Pipeline,
    place: str,
    slots: Slots,
    artefacts: Artefacts,
    ports: tuple[int, int] | None,
) -> Works:
    """Where Spark is all on this machine, cells listen for nobody else, and more tasks than cores only cost time."""
    local = _is_local(spark)
    run = new_run(Store.of(place), "127.0.0.1" if local else "", ports=ports)
    return works(pipeline, run, _cores(spark) if local else pipeline.grid.cells, slots.names, artefacts)


def _is_planned(spark: SparkSession, pipeline: Pipeline) -> bool:
    """Whether the stream's own plan hands rows over to the cells, rather than each batch a plan of its own.

    That takes cells which every task and the driver reach, and tasks that learn of their batch from a property of
    Spark's job: it is the job's only while a thread of Python's is one of Java's, and Connect has none. Nor does Spark
    take a stream's groupBy for one over the batch.
    """
    pinned = os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"
    return _is_local(spark) and pinned and not pipeline.grid.preaggregate


def _start(
    spark: SparkSession, rows: DataFrame, runner: Runner, trigger: Trigger | None, name: str | None
) -> StreamingQuery:
    rows = handing_over(rows, runner.works) if runner.planned else rows
    writer = rows.writeStream.foreachBatch(runner).option("checkpointLocation", runner.checkpoint)
    writer = with_trigger(writer, trigger)
    with _our_settings(spark):
        return (writer.queryName(name) if name else writer).start()


@contextmanager
def _our_settings(spark: SparkSession) -> Iterator[None]:
    """Our settings for a query that starts meanwhile: it takes its own copy of the session's settings."""
    before = {setting: spark.conf.get(setting, None) for setting in SETTINGS}
    apply_settings(spark)
    try:
        yield
    finally:
        for setting, earlier in before.items():
            if earlier is None:
                spark.conf.unset(setting)
            else:
                spark.conf.set(setting, earlier)


def _cores(spark: SparkSession) -> int:
    """How many tasks Spark runs at once, which Connect does not say."""
    context = _context(spark)
    return DEFAULT_CELLS if context is None else context.defaultParallelism


def _is_local(spark: SparkSession) -> bool:
    """Spark is all on this machine: nobody else need reach the cells, and no cores will join later."""
    context = _context(spark)
    return context is not None and (context.master or "").startswith("local")


def _context(spark: SparkSession) -> SparkContext | None:
    """None for a session of Spark Connect."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def _place(checkpoint: str | os.PathLike[str] | None) -> str:
    if checkpoint is not None:
        return absolute(os.fspath(checkpoint))
    kept = tempfile.TemporaryDirectory(prefix="viewlet-")
    _temporary.append(kept)
    return kept.name


_temporary: list[tempfile.TemporaryDirectory[str]] = []  # deleted with the process


def _prepared(checkpoint: str, script: str, cells: int, strategy: str, dialect: Dialect) -> Artefacts:
    artefacts = prepare(checkpoint, pipeline_of(script, cells, strategy, dialect))
    restore_offsets(checkpoint)
    return artefacts


# -- sources -----------------------------------------------------------------------------------------------------------


def _slots(pipeline: Pipeline) -> Slots:
    def types(relation: Relation, columns: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(c.type for c in relation.columns if c.name in columns)

    return slots_of({c.name: types(pipeline.relations[c.relation], c.columns) for c in pipeline.grid.copies})


# -- before the stream -------------------------------------------------------------------------------------------------


def _load(
    spark: SparkSession, pipeline: Pipeline, slots: Slots, runner: Runner, sources: Frames, history: Frames
) -> None:
    """Open every cell with the static tables in it; then the rows that streams had before. Once: not at a restart."""
    read = {copy.relation for copy in pipeline.grid.copies}
    given = {n: f for n, f in sources.items() if n in read and not f.isStreaming}
    static = {n: f for n, f in given.items() if pipeline.relations[n].static}
    earlier = {n: f for n, f in given.items() if n not in static}
    both = {
        n: reduce(DataFrame.unionAll, [events(pipeline.relations[n], f[n]) for f in (earlier, history) if n in f])
        for n in {**earlier, **history}
        if n in read
    }
    begun, known = on_cluster(spark, partial(batches_done_and_given, runner.checkpoint, OPENING))
    if both and begun and max(begun) > HISTORY not in begun:
        raise Error("history comes before the stream, and this stream has begun without: give a new checkpoint")
    prints = fingerprints(pipeline, given) if known or OPENING not in begun else ""
    if known:
        check_same(runner.checkpoint, known, prints)
    if OPENING not in begun:
        opening = _openers(spark, pipeline.grid.cells, slots)
        tables = [route(pipeline.grid, slots, pipeline.relations, static)] if static else []
        _run_before(spark, runner, OPENING, None, reduce(DataFrame.unionAll, tables, opening), prints)
    if both and HISTORY not in begun:
        opened = runner.last or on_cluster(spark, partial(state_of, runner.checkpoint, OPENING))
        _run_before(spark, runner, HISTORY, opened, route(pipeline.grid, slots, pipeline.relations, both))


def _run_before(
    spark: SparkSession, runner: Runner, batch: int, before: Manifest | None, rows: DataFrame, given: str = ""
) -> None:
    runner.last, _ = run_batch(rows, runner.works, before, batch, given)
    on_cluster(spark, partial(save_manifest, runner.checkpoint, runner.last))


def _openers(spark: SparkSession, cells: int, slots: Slots) -> DataFrame:
    """A row for each cell that says nothing: even a cell that no row ever reaches has its share of the answer."""
    nulls = [F.lit(None).cast(spark_type(type_)).alias(f"s{i}") for i, type_ in enumerate(slots.types)]
    cell = F.col("id").cast("int").alias("cell")
    return spark.range(cells).select(cell, F.lit(NOBODY).alias("copy"), F.lit(1).cast("long").alias("op"), *nulls)


def _nothing(spark: SparkSession, runner: Runner, slots: Slots) -> DataFrame:
    """No source streams: a stream without rows, so that the query is Spark's own all the same."""
    schema = _openers(spark, runner.works.cells, slots).schema
    return spark.readStream.schema(schema).parquet(on_cluster(spark, partial(_empty_directory, runner.checkpoint)))


def _empty_directory(checkpoint: str) -> str:
    store = Store.of(checkpoint)
    store.write("nothing/.keep", b"")
    return store.pattern_of("nothing")
