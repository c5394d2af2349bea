"""The paper's streams as Spark jobs that write Parquet files of events: ``<path>/<relation>/part-00000.parquet`` …

File n of every relation is slice n of the stream, so files of one number belong together, and any number of first
files is a stream that is right in itself: no row leaves in an earlier file than it came. A relation without events in
a slice has an empty file. Columns are those of the relation, and ``op``: +1 for a row that comes, -1 for one that goes.

A stream is woven from *strands*, each a stream of :mod:`viewlet.workloads.bulk` with keys of its own, made in one task.
How many there are follows from the size of the stream: the same seed and parameters give the same files, however many
tasks run at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from viewlet.arrow import arrow_type
from viewlet.errors import Error
from viewlet.schema import Relation
from viewlet.spark.cluster import on_cluster
from viewlet.spark.route import OP, spark_type
from viewlet.spark.store import Store
from viewlet.sql.translate import translate
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import FINANCE, TPCH
from viewlet.workloads.streams import NATION

EVENTS_OF_A_STRAND = 250_000
EVENTS_OF_A_FILE = 100_000
_LONG_AGO = 1_700_000_000  # Spark's streams take files by their age: each is a second younger than the one before
_ROWS_OF_A_BATCH = 65_536
_PLACE = (  # of an event: its file, and where in it
    T.StructField("slice", T.IntegerType()),
    T.StructField("place", T.DoubleType()),
    T.StructField("strand", T.LongType()),
)


@dataclass(frozen=True)
class EventFiles:
    """What a job wrote: below ``path`` so many files for each relation."""

    path: str
    relations: tuple[str, ...]
    files: int

    def stream(self, spark: SparkSession, relation: str, files_per_batch: int = 1) -> DataFrame:
        return event_stream(spark, self.path, relation, files_per_batch)


def order_book(
    spark: SparkSession,
    path: str | os.PathLike[str],
    events: int = bulk.ORDER_BOOK_EVENTS,
    *,
    seed: int = 1,
    live: int = 10_000,
    brokers: int = 10,
    events_per_file: int = EVENTS_OF_A_FILE,
) -> EventFiles:
    """Bids and asks: about ``live`` resting orders of the same brokers, in one book for each strand."""
    strands = _Strands.of(events, seed)

    def book(strand: int) -> BulkStream:
        share = max(live // strands.count, 1)
        return bulk.order_book(strands.seed_of(strand), strands.events_of(strand), live=share, brokers=brokers)

    return _write(spark, os.fspath(path), FINANCE, strands, book, frozenset({"id"}), events_per_file)


def tpch(
    spark: SparkSession,
    path: str | os.PathLike[str],
    events: int = bulk.TPCH_EVENTS,
    *,
    seed: int = 1,
    scale: float = 0.1,
    live: int = 30_000,
    events_per_file: int = EVENTS_OF_A_FILE,
) -> EventFiles:
    """The six streams of TPC-H: from ``live`` orders on, a random one leaves with its lineitems for each that comes.

    The static table is below ``path`` as well: ``nation/part-00000.parquet``.
    """
    strands = _Strands.of(events, seed, most=max(1, int(1000 * scale)))

    def warehouse(strand: int) -> BulkStream:
        seed_, events_, share = strands.seed_of(strand), strands.events_of(strand), max(live // strands.count, 1)
        return bulk.tpch(seed_, events_, scale=scale / strands.count, live=share)

    keys = frozenset({"custkey", "orderkey", "partkey", "suppkey"})
    written = _write(spark, os.fspath(path), TPCH, strands, warehouse, keys, events_per_file)
    on_cluster(spark, partial(_write_nation, os.fspath(path)))
    return written


def event_stream(
    spark: SparkSession, path: str | os.PathLike[str], relation: str, files_per_batch: int = 1
) -> DataFrame:
    """The files of one relation as a streaming DataFrame, so many to a micro-batch, in order."""
    directory = f"{os.fspath(path)}/{relation}"
    schema = spark.read.parquet(directory).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch).parquet(directory)


# -- strands -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Strands:
    events: int
    seed: int
    count: int

    @staticmethod
    def of(events: int, seed: int, most: int | None = None) -> _Strands:
        if events < 1:
            raise Error(f"events={events}: a stream has at least one event")
        wanted = -(-events // EVENTS_OF_A_STRAND)
        return _Strands(events, seed, wanted if most is None else min(wanted, most))

    def events_of(self, strand: int) -> int:
        return self.events * (strand + 1) // self.count - self.events * strand // self.count

    def seed_of(self, strand: int) -> int:
        """Streams of neighbouring seeds share no strand."""
        return int(np.random.SeedSequence((self.seed, strand)).generate_state(1, np.uint64)[0])


Make = Callable[[int], BulkStream]
Batches = Iterator[pa.RecordBatch]


def _write(
    spark: SparkSession,
    path: str,
    schema: str,
    strands: _Strands,
    make: Make,
    keys: frozenset[str],
    events_per_file: int,
) -> EventFiles:
    """One job for each relation: make the strands, put their events into slices, sort these, write them."""
    files = -(-strands.events // events_per_file)
    relations = [r for r in translate(schema).relations if not r.static]
    for relation in relations:
        columns = [T.StructField(c.name, spark_type(c.type)) for c in relation.columns]
        made = spark.range(0, strands.count, 1, strands.count).mapInArrow(
            _weaver(make, strands.count, relation, keys, files),
            T.StructType([*columns, T.StructField(OP, T.IntegerType()), *_PLACE]),
        )
        ordered = made.repartitionById(files, "slice").sortWithinPartitions("place", "strand")
        ordered.drop(*(field.name for field in _PLACE)).write.parquet(f"{path}/{relation.name}")
        on_cluster(spark, partial(_number_files, f"{path}/{relation.name}", files, _events_schema(relation)))
    return EventFiles(path, tuple(r.name for r in relations), files)


def _weaver(
    make: Make, strands: int, relation: Relation, keys: frozenset[str], files: int
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for strand in batch.column("id").to_pylist():
                yield from _woven(make(strand), strand).to_batches(_ROWS_OF_A_BATCH)

    def _woven(stream: BulkStream, strand: int) -> pa.Table:
        """A relation's events, each with its place in the whole stream: strands advance evenly."""
        code = stream.relations.index(relation.name)
        mine = np.flatnonzero(stream.codes == code)
        rows = stream.tables[relation.name].take(pa.array(stream.places[mine]))
        found = {c.name: _key(rows[c.name], strand) if c.name in keys else rows[c.name] for c in relation.columns}
        events = pa.table({**found, OP: pa.array(stream.ops[mine])}).cast(_events_schema(relation))
        places = {
            "slice": pa.array((mine * files // len(stream)).astype(np.int32)),
            "place": pa.array((mine + 0.5) / len(stream)),
            "strand": pa.repeat(strand, len(mine)),
        }
        return pa.table({**dict(zip(events.column_names, events.columns, strict=True)), **places})

    def _key(numbers: pa.ChunkedArray, strand: int) -> pa.Array:
        """Keys 1, 2, … of all strands together, none in two of them."""
        return pa.array((numbers.to_numpy() - 1) * strands + strand + 1)

    return run


def _events_schema(relation: Relation) -> pa.Schema:
    return pa.schema([*((c.name, arrow_type(c.type)) for c in relation.columns), (OP, pa.int32())])


# -- files -------------------------------------------------------------------------------------------------------------


def _number_files(directory: str, files: int, schema: pa.Schema) -> None:
    """Spark names a file by its task, of which an empty one writes none, and in parallel: bring them in order."""
    store = Store(directory)
    found = store.names("")
    written = {int(name.split("-")[1]): name for name in found if name.startswith("part-")}
    for number in range(files):
        data = store.read(written[number]) if number in written else _parquet(schema.empty_table())
        _write_file(store, number, data)
    store.delete(found)


def _write_nation(path: str) -> None:
    (nation,) = (r for r in translate(TPCH).relations if r.static)
    columns = [c.name for c in nation.columns]
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in NATION])
    _write_file(Store(f"{path}/{nation.name}"), 0, _parquet(table))


def _write_file(store: Store, number: int, data: pa.Buffer) -> None:
    file = store.write(f"part-{number:05}.parquet", data)
    if store.is_local:  # elsewhere, files are as old as the order in which they are written
        os.utime(Path(store.uri, file.path), (_LONG_AGO + number, _LONG_AGO + number))


def _parquet(table: pa.Table) -> pa.Buffer:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue()
