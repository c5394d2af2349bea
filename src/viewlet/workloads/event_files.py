"""The paper's streams as Spark jobs that write Parquet files of events (:mod:`viewlet.workloads.event_layout`).

:func:`tpch` takes its rows from a maintained generator (:mod:`viewlet.workloads.tpch_events`). The order book is woven
from *strands*, each a stream of :mod:`viewlet.workloads.bulk` with keys of its own, made in one task. How many there
are follows from the size of the stream: the same seed and parameters give the same files, however many tasks run at
once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.schema import Relation
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.types import spark_type
from viewlet.sql.translate import translate
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.event_layout import (
    EVENTS_OF_A_FILE,
    SLICE,
    EventFiles,
    event_stream,
    events_schema,
    write_slices,
)
from viewlet.workloads.queries import FINANCE
from viewlet.workloads.tpch_events import tpch

__all__ = ["EventFiles", "event_stream", "order_book", "tpch"]

EVENTS_OF_A_STRAND = 250_000
_ROWS_OF_A_BATCH = 65_536
_ID = "id"  # the one column that strands must not share
_PLACE = (  # of an event: its file, and where in it
    T.StructField(SLICE, T.IntegerType()),
    T.StructField("place", T.DoubleType()),
    T.StructField("strand", T.LongType()),
)


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
    strands, where = _Strands.of(events, seed), os.fspath(path)
    files = -(-events // events_per_file)

    def book(strand: int) -> BulkStream:
        share = max(live // strands.count, 1)
        return bulk.order_book(strands.seed_of(strand), strands.events_of(strand), live=share, brokers=brokers)

    relations = translate(FINANCE).relations
    for relation in relations:
        columns = [T.StructField(c.name, spark_type(c.type)) for c in relation.columns]
        made = spark.range(0, strands.count, 1, strands.count).mapInArrow(
            _weaver(book, strands.count, relation, files),
            T.StructType([*columns, T.StructField(OP, T.IntegerType()), *_PLACE]),
        )
        write_slices(made, where, relation, files, ("place", "strand"))
    return EventFiles(where, tuple(r.name for r in relations), files)


@dataclass(frozen=True)
class _Strands:
    events: int
    seed: int
    count: int

    @staticmethod
    def of(events: int, seed: int) -> _Strands:
        if events < 1:
            raise Error(f"events={events}: a stream has at least one event")
        return _Strands(events, seed, -(-events // EVENTS_OF_A_STRAND))

    def events_of(self, strand: int) -> int:
        return self.events * (strand + 1) // self.count - self.events * strand // self.count

    def seed_of(self, strand: int) -> int:
        """Streams of neighbouring seeds share no strand."""
        return int(np.random.SeedSequence((self.seed, strand)).generate_state(1, np.uint64)[0])


_Make = Callable[[int], BulkStream]
_Batches = Iterator[pa.RecordBatch]


def _weaver(make: _Make, strands: int, relation: Relation, files: int) -> Callable[[_Batches], _Batches]:
    def run(batches: _Batches) -> _Batches:
        for batch in batches:
            for strand in batch.column("id").to_pylist():
                yield from _woven(make(strand), strand).to_batches(_ROWS_OF_A_BATCH)

    def _woven(stream: BulkStream, strand: int) -> pa.Table:
        """A relation's events, each with its place in the whole stream: strands advance evenly."""
        code = stream.relations.index(relation.name)
        mine = np.flatnonzero(stream.codes == code)
        rows = stream.tables[relation.name].take(pa.array(stream.places[mine]))
        columns = {c.name: rows[c.name] for c in relation.columns} | {_ID: _key(rows[_ID], strand)}
        events = pa.table({**columns, OP: pa.array(stream.ops[mine])}).cast(events_schema(relation))
        places = {
            SLICE: pa.array((mine * files // len(stream)).astype(np.int32)),
            "place": pa.array((mine + 0.5) / len(stream)),
            "strand": pa.repeat(strand, len(mine)),
        }
        return pa.table({**dict(zip(events.column_names, events.columns, strict=True)), **places})

    def _key(numbers: pa.ChunkedArray, strand: int) -> pa.Array:
        """Keys 1, 2, … of all strands together, none in two of them."""
        return pa.array((numbers.to_numpy() - 1) * strands + strand + 1)

    return run
