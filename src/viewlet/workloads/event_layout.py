"""How events lie in Parquet files, how Spark writes them there, and how they are read back.

``<path>/<relation>/part-00000.parquet`` …: file n of every relation is slice n of the stream, so files of one number
belong together, and any number of first files is a stream that is right in itself: no row leaves in an earlier file
than it came. A relation without events in a slice has an empty file. Columns are those of the relation, and ``op``: +1
for a row that comes, -1 for one that goes. The rows of a file are in the order of their events.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from viewlet.durable.store import Store
from viewlet.rows.arrow import arrow_type
from viewlet.schema import Relation
from viewlet.spark.driver.cluster import on_cluster
from viewlet.spark.driver.route import OP
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.event_bulk import bulk_stream
from viewlet.workloads.streams import Row

EVENTS_OF_A_FILE = 100_000
SLICE = "slice"
_LONG_AGO = 1_700_000_000  # Spark's streams take files by their age: each is a second younger than the one before


@dataclass(frozen=True)
class EventFiles:
    """What a job wrote: below ``path`` so many files for each relation."""

    path: str
    relations: tuple[str, ...]
    files: int

    def stream(self, spark: SparkSession, relation: str, files_per_batch: int = 1) -> DataFrame:
        return event_stream(spark, self.path, relation, files_per_batch)

    def bulk(self) -> BulkStream:
        """All events in memory, for engines without Spark.

        Files do not say how the events of two relations lie to each other within a slice: they advance evenly.
        """
        return bulk_stream({name: [self._table(name, n) for n in range(self.files)] for name in self.relations})

    def _table(self, relation: str, number: int) -> pa.Table:
        return pq.read_table(pa.BufferReader(Store(self.path).read(f"{relation}/{_name(number)}")))


def event_stream(
    spark: SparkSession, path: str | os.PathLike[str], relation: str, files_per_batch: int = 1
) -> DataFrame:
    """The files of one relation as a streaming DataFrame, so many to a micro-batch, in order."""
    directory = f"{os.fspath(path)}/{relation}"
    schema = spark.read.parquet(directory).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch).parquet(directory)


def events_schema(relation: Relation) -> pa.Schema:
    return pa.schema([*((c.name, arrow_type(c.type)) for c in relation.columns), (OP, pa.int32())])


def write_slices(events: DataFrame, path: str, relation: Relation, files: int, order: Sequence[str]) -> None:
    """The events of one relation, each with the number of its file in ``slice``, sorted there by ``order``."""
    directory, columns = f"{path}/{relation.name}", [*(c.name for c in relation.columns), OP]
    ordered = events.repartitionById(files, SLICE).sortWithinPartitions(*order)
    ordered.select(*columns).write.parquet(directory)
    on_cluster(events.sparkSession, partial(_number_files, directory, files, events_schema(relation)))


def write_static(spark: SparkSession, path: str, relation: Relation, rows: Sequence[Row]) -> None:
    columns = [c.name for c in relation.columns]
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])
    on_cluster(spark, lambda: _write_file(Store(f"{path}/{relation.name}"), 0, _parquet(table)))


def _number_files(directory: str, files: int, schema: pa.Schema) -> None:
    """Spark names a file by its task, of which an empty one writes none, and in parallel: bring them in order."""
    store = Store(directory)
    names = store.names("")
    written = {int(name.split("-")[1]): name for name in names if name.startswith("part-")}
    for number in range(files):
        data = store.read(written[number]) if number in written else _parquet(schema.empty_table())
        _write_file(store, number, data)
    store.delete(names)


def _write_file(store: Store, number: int, data: pa.Buffer) -> None:
    file = store.write(_name(number), data)
    if store.is_local:  # elsewhere, files are as old as the order in which they are written
        os.utime(Path(store.uri, file.path), (_LONG_AGO + number, _LONG_AGO + number))


def _name(number: int) -> str:
    return f"part-{number:05}.parquet"


def _parquet(table: pa.Table) -> pa.Buffer:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue()
