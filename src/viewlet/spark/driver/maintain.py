"""``maintain``: streaming DataFrames and a SQL script in, views that stay fresh out."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from viewlet.compiler.strategy import StrategyName
from viewlet.durable.manifest import RETAINED_BATCHES
from viewlet.durable.places import absolute
from viewlet.durable.store import Store
from viewlet.durable.taken_back import refuse_half_taken_back
from viewlet.schema import Dialect, Relation
from viewlet.spark.driver.arguments import (
    Frames,
    Trigger,
    check_ports,
    check_script,
    check_trigger,
    check_types,
    checked_expiries,
    checked_streams,
    with_trigger,
)
from viewlet.spark.driver.cluster import last_committed, on_cluster, stop_cells
from viewlet.spark.driver.cores import context_of, cores, default_cells, is_local
from viewlet.spark.driver.encryption import check_encrypted, run_pem
from viewlet.spark.driver.loading import Loading, nothing
from viewlet.spark.driver.offsets import forget_first_try, restore_offsets
from viewlet.spark.driver.reach import check_reach
from viewlet.spark.driver.route import Slots, route, slots_of, without_the_obvious
from viewlet.spark.driver.runner import SETTINGS, Runner, apply_settings, handing_over
from viewlet.spark.driver.views import Views
from viewlet.spark.job import Standing, job_of, standing_job
from viewlet.spark.pipeline import (
    Artefacts,
    Pipeline,
    Works,
    absent,
    cell_type,
    expiries,
    pipeline_of,
    published,
    works,
)
from viewlet.spark.process.client import new_run
from viewlet.spark.process.process import LOOPBACK
from viewlet.spark.process.ticket import Run

MOMENT = 0.05  # seconds


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
    encrypted: bool | None = None,
    dead_letters: bool = False,
    every_column: bool | None = None,
    expire: Mapping[str, tuple[str, timedelta]] | None = None,
) -> Views:
    """Keep the views of a script fresh over streaming DataFrames, micro-batch by micro-batch, exactly once.

    ``sources`` has a DataFrame for each stream and table of the script, with the relation's columns. A streaming one
    may also have a column ``op``: +1 inserts the row, -1 deletes it, another integer does so that many times. A static
    one is loaded once, before the first batch. So are the rows of ``history``, which streams had before.

    ``checkpoint`` is the directory for all that a restart needs. Call with the same one to go on. Without one, the
    state is in a directory that is deleted with this process. A restart may have another script, another strategy or
    other static tables: it takes over the rows that are stored, and builds the views again from them
    (:func:`explain_change` says what).

    ``cells`` says into how many shares to cut the work, at most: of a script that cannot be cut there is one. The
    default is as many as Spark has cores when the checkpoint is new; a restart goes on with the number that it has, and
    cuts it again if told another one. ``trigger`` is
    Spark's own: ``"5 seconds"`` looks for rows that often, ``{"availableNow": True}`` takes what is there and ends.
    ``retain`` says for how many batches old state and changes are kept. ``name`` is the query's name in Spark.
    ``ports`` are the first and the last that cells may listen at, where a firewall is between executors.
    ``encrypted`` says whether rows are encrypted on their way to cells and between them. The default is to do as Spark
    does, in its settings, between its own processes; in a local session they are not.
    With ``dead_letters``, a row of a stream that is bad by itself (NULL in NOT NULL, a number too large for its column,
    an ``op`` that is none) is put into ``views.dead_letters`` and counted in ``progress``, rather than stop the query.
    So is a delete of what is not there.
    With ``every_column``, cells store all columns of their streams, not only those that views read: a later script may
    then read others. A restart that does not say goes on as it was.
    With ``expire={"trades": ("at", timedelta(hours=1))}`` rows of a stream go by themselves when their column says a
    moment longer ago than that, and late ones do nothing: an eighth of that time later at most, in a micro-batch.
    ``strategy`` and ``dialect`` are those of :func:`viewlet.connect`.
    """
    check_script(script)
    place = _place(checkpoint)
    _check_place(spark, place)
    options = {
        "cells": cells,
        "history": history,
        "trigger": trigger,
        "strategy": strategy,
        "dialect": dialect,
        "retain": retain,
        "name": name,
        "ports": ports,
        "encrypted": encrypted,
        "dead_letters": dead_letters,
        "every_column": every_column,
        "expire": expire,
    }
    standing: Standing | None = None if checkpoint is None else on_cluster(spark, partial(standing_job, place))
    before = standing.job if standing else None
    asked = cells or (before.cells if before else default_cells(spark))
    whole = every_column if every_column is not None else before is not None and before.every_column
    cut = partial(pipeline_of, script, asked, strategy, dialect, before.order if before else (), every_column=whole)
    pipeline = cut()
    check_types(spark, pipeline)
    streams = checked_streams(pipeline, sources, history or {})
    check_trigger(spark, trigger)
    check_ports(ports)
    check_encrypted(encrypted)
    pem = run_pem(spark, encrypted)
    artefacts = on_cluster(spark, partial(_prepared, place, cut, _running(spark)))
    slots = _slots(pipeline)
    run = new_run(Store.of(place), _host(spark), ports=ports, pem=pem)
    works_ = _works(spark, pipeline, run, slots, artefacts)
    works_ = replace(works_, absent=absent(pipeline)) if dead_letters else works_
    works_ = replace(works_, expiries=expiries(pipeline, checked_expiries(expire)))
    runner = Runner(works_, place, retain, _is_planned(spark, pipeline), place, standing.text if standing else "")
    loading = Loading(spark, pipeline, slots, runner, before, job_of(pipeline, artefacts, streams))
    try:
        job = loading.load(sources, history or {})
        runner.spark = f"{place.rstrip('/')}/{job.spark}" if job.spark else place
        routed = (
            route(pipeline.grid, slots, pipeline.relations, streams, letters=dead_letters)
            if streams
            else nothing(spark, runner, slots)
        )
        query = _start(spark, without_the_obvious(pipeline.grid, routed), runner, trigger, name)
        _await_change(spark, runner, query)
    except BaseException:
        on_cluster(spark, partial(stop_cells, place, runner.works.run))
        raise
    return Views(spark, pipeline, runner, query, partial(_again, spark, sources, place, options))


def _again(
    spark: SparkSession, sources: Frames, place: str, options: Mapping[str, Any], script: str, **others: Any
) -> Views:
    """The same call with another script, and perhaps with other arguments."""
    given = {**options, **others}
    return maintain(spark, script, given.pop("sources", None) or sources, place, **given)


def _await_change(spark: SparkSession, runner: Runner, query: StreamingQuery) -> None:
    """Until Spark has committed the batch that changed the job: before that it shows views of the job before."""
    changed = runner.last.batch if runner.last is not None and runner.last.told is not None else None
    while changed is not None and query.isActive:
        if int(on_cluster(spark, partial(last_committed, runner.checkpoint))) >= changed:
            return
        time.sleep(MOMENT)


def _host(spark: SparkSession) -> str:
    """Where Spark is all on this machine, cells listen for nobody else."""
    return LOOPBACK if is_local(spark) else ""


def _works(spark: SparkSession, pipeline: Pipeline, run: Run, slots: Slots, artefacts: Artefacts) -> Works:
    """Where Spark is all on this machine, more tasks than cores only cost time."""
    tasks = cores(spark) if is_local(spark) else pipeline.grid.cells
    return works(pipeline, run, tasks, slots.names, artefacts)


def _is_planned(spark: SparkSession, pipeline: Pipeline) -> bool:
    """Whether the stream's own plan hands rows over to the cells, rather than each batch a plan of its own.

    That takes cells which every task and the driver reach, and tasks that learn of their batch from a property of
    Spark's job: it is the job's only while a thread of Python's is one of Java's, and Connect has none. Nor does Spark
    take a stream's groupBy for one over the batch.
    """
    pinned = os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"
    return is_local(spark) and pinned and not pipeline.grid.preaggregate


def _start(
    spark: SparkSession, rows: DataFrame, runner: Runner, trigger: Trigger | None, name: str | None
) -> StreamingQuery:
    rows = handing_over(rows, runner.works) if runner.planned else rows
    writer = rows.writeStream.foreachBatch(runner).option("checkpointLocation", runner.spark)
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


def _place(checkpoint: str | os.PathLike[str] | None) -> str:
    if checkpoint is not None:
        return absolute(os.fspath(checkpoint))
    kept = tempfile.TemporaryDirectory(prefix="viewlet-")
    _temporary.append(kept)
    return kept.name


def _check_place(spark: SparkSession, place: str) -> None:
    """Where all is on this machine and its disk, there is nobody to disagree."""
    if not (is_local(spark) and Store.of(place).is_local):
        check_reach(spark, place, 2 * cores(spark), from_here=context_of(spark) is not None)


_temporary: list[tempfile.TemporaryDirectory[str]] = []  # deleted with the process


def _running(spark: SparkSession) -> tuple[str, ...]:
    return tuple(str(query.id) for query in spark.streams.active)


def _prepared(checkpoint: str, cut: Callable[[], Pipeline], running: Collection[str]) -> Artefacts:
    refuse_half_taken_back(Store.of(checkpoint))
    artefacts = published(checkpoint, cut())
    restore_offsets(checkpoint)
    forget_first_try(checkpoint, running)
    return artefacts


# -- sources -----------------------------------------------------------------------------------------------------------


def _slots(pipeline: Pipeline) -> Slots:
    def types(relation: Relation, columns: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(cell_type(c.type) for c in relation.columns if c.name in columns)

    copies = {c.name: types(pipeline.relations[c.relation], c.columns) for c in pipeline.grid.copies}
    return slots_of({**copies, **{clock.name: () for clock in pipeline.clocks}})
