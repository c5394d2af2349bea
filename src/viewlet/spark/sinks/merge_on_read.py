"""A view as Parquet files: a micro-batch adds its changes, and a reader sums them up.

::

    changes/<micro-batch>-<attempt>/   the changes of one micro-batch: weight, columns
    bases/<micro-batch>-<attempt>/     all rows after a micro-batch, in the same form
    manifests/<micro-batch>.json       which of those directories are the view, written last

A directory is never written to again once a manifest names it. No manifest names the directory of a repeated or failed
attempt. So readers see the view after some micro-batch, whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.durable.places import absolute
from viewlet.durable.store import Store, digest
from viewlet.errors import CorruptError, Error
from viewlet.spark.driver.cluster import on_cluster
from viewlet.spark.sinks.order import BATCH, WEIGHT, Held, column, is_held, with_own_names

FORMAT = 1


@dataclass(frozen=True)
class ParquetManifest:
    """The view after a micro-batch: the rows of its base, if it has one, and the changes since."""

    micro_batch: int
    last_batch: int | None
    schema: str  # of the view, as Spark's JSON
    base: str | None
    changes: tuple[str, ...]

    @property
    def held(self) -> Held:
        return Held(self.micro_batch, self.last_batch)

    @property
    def directories(self) -> list[str]:
        return [*([self.base] if self.base else []), *self.changes]


@dataclass(frozen=True)
class MergeOnRead:
    """The function that ``foreachBatch`` calls, made by :func:`viewlet.spark.sinks.parquet`."""

    path: str
    compact_every: int

    def __call__(self, changes: DataFrame, micro_batch: int) -> None:
        store = Store(self.path)
        before = newest_manifest(store)
        changes = with_own_names(changes)
        if is_held(self.path, before.held if before else None, micro_batch, changes):
            return
        after = self._appended(store, before, changes, micro_batch)
        if len(after.changes) < self.compact_every:
            _write_manifest(store, after)
            return
        _write_manifest(store, _compacted(changes.sparkSession, store, after))
        _clean(store, after)

    def _appended(
        self, store: Store, before: ParquetManifest | None, changes: DataFrame, micro_batch: int
    ) -> ParquetManifest:
        schema = changes.drop(BATCH, WEIGHT).schema
        if before and _described(before.schema) != schema.simpleString():
            raise Error(
                f"{self.path} holds a view of {_described(before.schema)}, and the changes are of "
                f"{schema.simpleString()}: keep another view in another place"
            )
        directory = _fresh("changes", micro_batch)
        seen = Observation()
        watched = changes.observe(seen, F.max(BATCH).alias(BATCH)).drop(BATCH)
        watched.write.parquet(store.path_of(directory))
        base, since = (before.base, before.changes) if before else (None, ())
        return ParquetManifest(micro_batch, seen.get[BATCH], schema.json(), base, (*since, directory))


def read_view(spark: SparkSession, path: str) -> DataFrame:
    """The view that :func:`parquet` keeps under ``path``, as of its last micro-batch.

    The DataFrame does not change while the stream goes on. The second compaction from now deletes the files that it
    needs: read it again then, or cache it.
    """
    view = on_cluster(spark, partial(_look_up, absolute(path)))
    if view is None:
        raise Error(f"there is no view in {path}: its sink has not finished a micro-batch yet, or it is elsewhere")
    schema, directories = view
    counted = _summed(spark, schema, directories)
    copies = F.explode(F.sequence(F.lit(1).cast("bigint"), WEIGHT)).alias(WEIGHT)
    names = [column(name) for name in counted.drop(WEIGHT).columns]
    return counted.select(*names, copies).select(*names)


def _look_up(path: str) -> tuple[str, list[str]] | None:
    store = Store(path)
    newest = newest_manifest(store)
    if newest is None:
        return None
    return newest.schema, [store.pattern_of(directory) for directory in newest.directories]


def _summed(spark: SparkSession, schema: str, directories: list[str]) -> DataFrame:
    """Each row that is there and, as its weight, how often: grouped by all columns, NULL and NaN like any value."""
    view = T.StructType.fromJson(json.loads(schema))
    stored = T.StructType([T.StructField(WEIGHT, T.LongType()), *view.fields])
    rows = spark.read.schema(stored).parquet(*directories)
    grouped = rows.groupBy(*[column(name) for name in view.names]).agg(F.sum(WEIGHT).alias(WEIGHT))
    refused = F.raise_error(F.lit(f"{directories[0]} and later changes: a row went more often than it came"))
    total = F.when(F.col(WEIGHT) < 0, refused.cast("bigint")).otherwise(F.col(WEIGHT))
    return grouped.withColumn(WEIGHT, total).where(F.col(WEIGHT) != 0)


def _compacted(spark: SparkSession, store: Store, manifest: ParquetManifest) -> ParquetManifest:
    base = _fresh("bases", manifest.micro_batch)
    rows = _summed(spark, manifest.schema, [store.pattern_of(directory) for directory in manifest.directories])
    rows.write.parquet(store.path_of(base))
    return ParquetManifest(manifest.micro_batch, manifest.last_batch, manifest.schema, base, ())


def _clean(store: Store, before: ParquetManifest) -> None:
    """Delete the files that the previous base replaced. Readers may still need those that the new base replaces."""
    if before.base is None:
        return
    oldest = _micro_batch(before.base)
    changes = [path for path in store.walk("changes") if _micro_batch(path) <= oldest]
    bases = [path for path in store.walk("bases") if _micro_batch(path) < oldest]
    manifests = [_manifest_path(number) for number in _manifests(store) if number < oldest]
    store.delete([*manifests, *changes, *bases])


# -- names and manifests -----------------------------------------------------------------------------------------------


def newest_manifest(store: Store) -> ParquetManifest | None:
    number = max(_manifests(store), default=None)
    if number is None:
        return None
    where = store.path_of(_manifest_path(number))
    body = store.awaited(_manifest_path(number), partial(_body, where))
    if body.pop("format") != FORMAT:
        raise CorruptError(f"{where} has another format than this viewlet reads, {FORMAT}")
    return ParquetManifest(**{**body, "changes": tuple(body["changes"])})


def _body(where: str, data: bytes) -> Any:
    checksum, _, body = data.partition(b"\n")
    if checksum.decode("latin-1") != digest(body):
        raise CorruptError(f"{where} fails its checksum: restore it, or fill the sink again from nothing")
    return json.loads(body)


def _write_manifest(store: Store, manifest: ParquetManifest) -> None:
    body = json.dumps({"format": FORMAT, **asdict(manifest)}).encode()
    store.write(_manifest_path(manifest.micro_batch), digest(body).encode() + b"\n" + body)


def _manifests(store: Store) -> Iterator[int]:
    return (int(name.removesuffix(".json")) for name in store.names("manifests") if name[0].isdigit())


def _manifest_path(micro_batch: int) -> str:
    return f"manifests/{micro_batch}.json"


def _fresh(kind: str, micro_batch: int) -> str:
    return f"{kind}/{micro_batch}-{uuid.uuid4().hex}"


def _micro_batch(path: str) -> int:
    return int(path.split("/")[1].partition("-")[0])


def _described(schema: str) -> str:
    return T.StructType.fromJson(json.loads(schema)).simpleString()
