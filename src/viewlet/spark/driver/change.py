"""A checkpoint goes on with another job: another script, number of cells, strategy or version, or with other tables.

A change is a batch of its own, in which no source gives a row. Its cells are new: they begin from the rows that the
cells before them have stored, routed as the new grid asks. It counts when its manifest is there. A driver that dies
before leaves the old job, one that dies after it the new one, and what is then left to do is done at the next start.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from viewlet.cells.routing import Hash
from viewlet.durable.chain import Manifest
from viewlet.durable.manifest import newest_manifest, write_manifest
from viewlet.durable.published import publish
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError, Error
from viewlet.program.trigger import Result
from viewlet.schema import Column, Relation
from viewlet.spark.driver.cluster import files_of, on_cluster
from viewlet.spark.driver.offsets import (
    noted_moment,
    noted_of_change,
    noted_offsets,
    restore_offsets,
    with_sources,
)
from viewlet.spark.driver.route import Slots, route
from viewlet.spark.driver.runner import Runner
from viewlet.spark.driver.told import differences
from viewlet.spark.driver.types import arrow_schema, spark_type
from viewlet.spark.job import JOB, Job, Kept, described, spark_place
from viewlet.spark.pipeline import Pipeline, cell_type
from viewlet.spark.task.stored import OP, Stored, stored_stage

COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'  # as Spark says it of a stream without watermarks


# -- what a change stands on -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ground:
    """The last batch that counts: its manifest, what Spark noted of it (nothing before its first), and where.

    ``query`` is how Spark calls the query.
    """

    manifest: Manifest
    noted: str
    place: str
    query: str


def ground_of(checkpoint: str) -> Ground:
    """An errand. A batch that is done is committed, where its driver died before Spark could."""
    store, place = Store.of(checkpoint), spark_place(checkpoint)
    manifest = newest_manifest(store)
    if manifest is None:
        raise CorruptError(f"{checkpoint} holds no state of a maintained script")
    spark = Store(place)
    committed = [int(name) for name in spark.names("commits") if name.isdigit()]
    if committed and manifest.batch < max(committed):
        raise CorruptError(f"Spark has committed batch {max(committed)}, and {store.uri} has no state of it")
    if manifest.batch > max(committed, default=-1):
        _commit(store, spark, manifest, max(committed, default=None))
    query = json.loads(bytes(spark.read("metadata")))["id"] if "metadata" in spark.names("") else ""
    return Ground(manifest, noted_offsets(place, manifest.batch) if manifest.batch >= 0 else "", place, query)


def refuse_while_running(spark: SparkSession, checkpoint: str, ground: Ground) -> None:
    """It would go on with the old job, beside the new one."""
    if any(str(query.id) == ground.query for query in spark.streams.active):
        raise Error(f"a query runs on {checkpoint}: stop it before its job is changed, or say views.evolve(…)")


def _commit(store: Store, spark: Store, manifest: Manifest, before: int | None) -> None:
    if spark.names("state"):
        raise Error(
            f"batch {manifest.batch} is done, and Spark has not noted the state of its sources yet (a watermark, "
            f"dropDuplicates): start once with the script as it was, and change it then"
        )
    publish(store, manifest)
    spark.write(f"commits/{manifest.batch}", COMMIT if before is None else bytes(spark.read(f"commits/{before}")))


# -- the change --------------------------------------------------------------------------------------------------------


def change(
    spark: SparkSession, runner: Runner, pipeline: Pipeline, slots: Slots, jobs: tuple[Job, Job], rows: list[DataFrame]
) -> Job:
    """From the first job to the second one, which is returned with what the change made of it.

    ``rows`` are those of static tables, and all that comes new, routed.
    """
    before, job = jobs
    taken = taken_over(before, pipeline)
    ground: Ground = on_cluster(spark, partial(ground_of, runner.checkpoint))
    refuse_while_running(spark, runner.checkpoint, ground)
    batch = max(ground.manifest.batch, -1) + 1
    job = replace(job, since=since(before, pipeline.results, batch), spark=before.spark)
    job, noted = _noted(spark, runner, ground, before, job)
    stored = _stored(spark, runner.works.run.store, ground.manifest, taken, pipeline)
    everything = [*rows, *([route(pipeline.grid, slots, held_relations(pipeline), stored)] if stored else [])]
    moment = noted_moment(noted) if runner.works.clocks else None
    union = reduce(DataFrame.unionAll, everything)
    done = runner.run_batch(union, None, batch, digest(noted.encode()), moment).manifest
    told = _told(spark, runner, ground.manifest, done, before, pipeline.results)
    runner.last = replace(done, noted=noted, job=job.to_text(), told=told)
    on_cluster(spark, partial(_count, runner.checkpoint, runner.last))
    return job


def _noted(spark: SparkSession, runner: Runner, ground: Ground, before: Job, job: Job) -> tuple[Job, str]:
    """What Spark is to note of the batch. Where its sources are others, it has a checkpoint of its own from then on."""
    last = max(ground.manifest.batch, -1)
    sources = before.sources or tuple(dict.fromkeys(kept.relation for kept in before.kept))  # as earlier versions have
    if sources != job.sources:
        job = replace(job, spark=f"spark-{last + 1}-{runner.works.run.id}")
        place = f"{runner.checkpoint.rstrip('/')}/{job.spark}"
        on_cluster(spark, partial(with_sources, ground.place, place, last, sources, job.sources))
    return job, noted_of_change(ground.noted, sources, job.sources, time.time_ns() // 10**6)


def _count(checkpoint: str, manifest: Manifest) -> None:
    """An errand. With the first line the change counts."""
    store = Store.of(checkpoint)
    write_manifest(store, manifest)
    store.write(JOB, manifest.job.encode())
    restore_offsets(checkpoint)


# -- stored rows -------------------------------------------------------------------------------------------------------


def taken_over(before: Job, pipeline: Pipeline) -> dict[str, Kept]:
    """Stream ↦ where its rows are. Streams that no view read before have none."""
    known = {kept.relation for kept in before.kept}
    names = dict.fromkeys(copy.relation for copy in pipeline.grid.copies if not copy.static)
    return {name: _with_columns(before, pipeline, name) for name in names if name in known}


def _with_columns(before: Job, pipeline: Pipeline, name: str) -> Kept:
    """A copy that has all columns which are needed now: rows of two copies cannot be put together."""
    needed = {column.name: described(column) for column in needed_columns(pipeline, name)}
    copies = [kept for kept in before.kept if kept.relation == name]
    fitting = [kept for kept in copies if needed.items() <= kept.columns.items()]
    if fitting:
        return min(fitting, key=lambda kept: len(kept.columns))
    missing = min(([n for n, what in needed.items() if kept.columns.get(n) != what] for kept in copies), key=len)
    what = "stored as another type" if any(missing[0] in kept.columns for kept in copies) else "not stored"
    raise Error(
        f"{name}.{missing[0]} is read now, and its values are {what}: cells store the columns that the views of their "
        f"script read. Give a new checkpoint and let the sources replay (with every_column=True cells store all)"
    )


def needed_columns(pipeline: Pipeline, name: str) -> list[Column]:
    """Of a stream, those that a cell reads or that route its rows."""
    copies = [copy for copy in pipeline.grid.copies if copy.relation == name]
    routed = {route.column for copy in copies for route in copy.routes if isinstance(route, Hash)}
    names = routed.union(*(copy.columns for copy in copies))
    return [column for column in pipeline.relations[name].columns if column.name in names]


def held_relations(pipeline: Pipeline) -> dict[str, Relation]:
    """As stored rows have them: of the types that cells hold, and nothing is to be derived."""
    return {
        name: replace(r, columns=tuple(replace(c, type=cell_type(c.type), derived="") for c in r.columns))
        for name, r in pipeline.relations.items()
    }


def _stored(
    spark: SparkSession, store: str, manifest: Manifest, taken: Mapping[str, Kept], pipeline: Pipeline
) -> dict[str, DataFrame]:
    """A task for each cell reads its files."""
    frames = {}
    for name, kept in taken.items():
        fields = [T.StructField(c.name, spark_type(cell_type(c.type))) for c in needed_columns(pipeline, name)]
        schema = T.StructType([*fields, T.StructField(OP, T.LongType())])
        arrow = arrow_schema(schema)
        wanted = Stored(store, (manifest.batch, manifest.run), kept.name, kept.cells, arrow)
        places = spark.range(0, len(kept.cells), 1, len(kept.cells))
        frames[name] = places.mapInArrow(stored_stage(wanted), schema)
    return frames


# -- views -------------------------------------------------------------------------------------------------------------


def since(before: Job, results: Mapping[str, Result], batch: int) -> dict[str, int]:
    """View ↦ the batch from which on it has these columns, for those that have not always had them."""
    same = same_columns(before.results, results)
    kept = {view: first for view, first in before.since.items() if view in same}
    return {**kept, **{view: batch for view in results if view not in same}}


def same_columns(before: Mapping[str, Result], after: Mapping[str, Result]) -> set[str]:
    def columns(result: Result) -> list[tuple[object, ...]]:
        return [(column.name, column.type) for column in result.columns]

    return {view for view in after if view in before and columns(before[view]) == columns(after[view])}


def _told(
    spark: SparkSession, runner: Runner, before: Manifest, done: Manifest, job: Job, results: Mapping[str, Result]
) -> dict[str, list[str]]:
    same = sorted(same_columns(job.results, results))

    def files(manifest: Manifest, views: Iterable[str]) -> dict[str, list[str]]:
        return on_cluster(spark, partial(files_of, runner.checkpoint, manifest, tuple(views)))

    new = {view: paths for view, paths in done.changes().items() if view not in same}
    changed = differences(spark, runner.works, done.batch, results, files(before, same), files(done, same))
    return {**new, **changed}
