"""A stream as files, one for each relation and micro-batch; what Spark made of it; and what the referee says."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

import viewlet
from tests.engines.conformance import Case, cut
from tests.oracle.oracle import Row, Vacuity, difference
from viewlet.durable.manifest import read_manifest
from viewlet.durable.store import Store
from viewlet.rows.arrow import arrow_type
from viewlet.schema import Relation
from viewlet.spark import Views, maintain
from viewlet.spark.driver.types import spark_type
from viewlet.workloads.streams import Event

Batches = Sequence[Sequence[Event]]


@dataclass(frozen=True)
class Streams:
    """The events of a case on disk, below ``folder``."""

    case: Case
    batches: Batches
    folder: Path

    @property
    def relations(self) -> dict[str, Relation]:
        return {r.name: r for r in viewlet.compile(self.case.schema).relations}

    @property
    def used(self) -> dict[str, Relation]:
        names = {name for batch in self.batches for _, name, _ in batch}
        return {name: r for name, r in self.relations.items() if name in names or r.name in self.case.static}

    def sources(self, spark: SparkSession) -> dict[str, DataFrame]:
        """A stream of one file for each micro-batch; static tables as DataFrames."""
        frames = {}
        for name, relation in self.relations.items():
            columns = ", ".join(f"{c.name} {spark_type(c.type).simpleString()}" for c in relation.columns)
            if relation.static:
                rows = [tuple(row) for row in self.case.static.get(name, ())]
                frames[name] = spark.createDataFrame(rows, columns)
            else:
                reader = spark.readStream.schema(f"{columns}, op int").option("maxFilesPerTrigger", 1)
                frames[name] = reader.parquet(str(self.folder / name))
        return frames

    def maintain(self, spark: SparkSession, **options: Any) -> Views:
        script = self.case.schema + self.case.views
        chosen = {"trigger": {"availableNow": True}, "dialect": self.case.dialect, **options}
        return maintain(spark, script, self.sources(spark), **chosen)

    def answers(self) -> Iterator[dict[str, list[Row]]]:
        """What the referee says of each view after each micro-batch."""
        oracle = self.case.referee()
        for batch in self.batches:
            for op, relation, row in batch:
                oracle.apply(op, relation, row)
            yield {view: [*map(plain, oracle.rows(select))] for view, select in self.case.selects.items()}

    def check(self, checkpoint: Path) -> dict[str, Vacuity]:
        """The views, folded from the changes that each micro-batch published, equal the referee's after each."""
        watch = {view: Vacuity() for view in self.case.selects}
        published = published_rows(checkpoint, tuple(self.case.selects))
        for number, answer in enumerate(self.answers()):
            for view, expected in answer.items():
                wrong = difference(published[number][view].elements(), expected)
                assert wrong is None, f"{view} after micro-batch {number}: {wrong}"
                watch[view].watch(expected)
        assert max(published) == len(self.batches) - 1, "Spark made other micro-batches than the files say"
        return watch


def write_streams(case: Case, folder: Path, seed: int, longest: int) -> Streams:
    streams = Streams(case, list(cut(case.events, Random(seed), longest)), folder)
    for relation in streams.relations.values():
        if not relation.static:
            _write_relation(relation, streams.batches, folder / relation.name)
    return streams


def _write_relation(relation: Relation, batches: Batches, folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, batch in enumerate(batches):
        write_events(relation, batch, folder / f"{number:05}.parquet", number)


def write_events(relation: Relation, batch: Sequence[Event], file: Path, number: int) -> None:
    """One file of a stream; Spark takes files by their age, so each is a second younger than the one before.

    It appears whole and with that age: a query that is running would take one of today for the youngest there will be,
    and pass over those after it.
    """
    hidden = file.with_name(f".{file.name}")
    events = [(row, 1 if op == "+" else -1) for op, name, row in batch if name == relation.name]
    columns = {
        c.name: pa.array([row[i] for row, _ in events], arrow_type(c.type)) for i, c in enumerate(relation.columns)
    }
    pq.write_table(pa.table({**columns, "op": pa.array([op for _, op in events], pa.int32())}), hidden)
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(file)


def published_rows(checkpoint: Path, views: Sequence[str]) -> Mapping[int, dict[str, Counter[Row]]]:
    """What each view held after each batch, by the changes published until then."""
    store = Store.of(str(checkpoint))
    by_batch: dict[int, dict[str, Counter[Row]]] = {}
    rows: dict[str, Counter[Row]] = {view: Counter() for view in views}
    for batch in sorted(int(name.removesuffix(".json")) for name in store.names("published")):
        manifest = read_manifest(store, batch)
        assert manifest is not None
        for view, files in manifest.changes().items():
            for file in files:
                for change in pq.read_table(pa.BufferReader(store.read(file))).to_pylist():
                    change.pop("batch")
                    weight = change.pop("weight")
                    rows[view][plain(tuple(change.values()))] += weight
        for counts in rows.values():
            assert all(count >= 0 for count in counts.values()), "a row was taken out that was not there"
        by_batch[batch] = {view: +counts for view, counts in rows.items()}
    return by_batch


def plain(row: Row) -> Row:
    """In one form for DuckDB, Arrow and Spark: a moment as that of UTC, a UUID as its text, a list as a tuple."""

    def of(value: Any) -> Any:
        match value:
            case dt.datetime(tzinfo=zone) if zone is not None:
                return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
            case list() | tuple():
                return tuple(map(of, value))
            case bytearray():
                return bytes(value)
        return str(value) if isinstance(value, UUID) else value

    return tuple(map(of, row))


def shown(frame: DataFrame) -> list[Row]:
    """Spark shows moments in the time zone of the process."""
    moments = [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]
    in_utc = {name: F.expr(f"unix_micros(`{name}`)").alias(name) for name in moments}
    rows = frame.select(*(in_utc.get(name, F.col(f"`{name}`")) for name in frame.columns)).collect()
    places = [frame.columns.index(name) for name in moments]

    def moment(micros: int | None) -> dt.datetime | None:
        return None if micros is None else dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)

    return [plain(tuple(moment(v) if i in places else v for i, v in enumerate(row))) for row in rows]
