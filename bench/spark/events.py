"""Streams as Parquet files, one for each relation and micro-batch, and a directory into which they are let."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from viewlet.workloads.bulk import BulkStream

LONG_AGO = 1_700_000_000  # Spark takes files by their age: each is a second younger than the one before


@dataclass(frozen=True)
class EventFiles:
    """Below ``folder``, by relation: the rows of each batch with their ``op``."""

    folder: Path
    relations: tuple[str, ...]
    count: int

    def file(self, relation: str, number: int) -> Path:
        return self.folder / relation / f"{number:05}.parquet"

    def rows(self, numbers: range) -> int:
        return sum(pq.read_metadata(self.file(name, n)).num_rows for n in numbers for name in self.relations)


def write_events(folder: Path, batches: Iterable[Mapping[str, pa.Table]]) -> EventFiles:
    """Each batch has a file for every relation, be it empty, so that Spark's micro-batches are these."""
    names: tuple[str, ...] = ()
    number = -1
    for number, tables in enumerate(batches):
        names = tuple(tables)
        for name, table in tables.items():
            _write(EventFiles(folder, names, 0).file(name, number), table, number)
    return EventFiles(folder, names, number + 1)


def _write(file: Path, table: pa.Table, number: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
    os.utime(file, (LONG_AGO + number, LONG_AGO + number))


def event_tables(stream: BulkStream, rows: int) -> Iterator[dict[str, pa.Table]]:
    """A stream cut into batches of so many events: the rows of each relation with their ``op``."""
    for start in range(0, len(stream), rows):
        yield _by_relation(stream.between(start, start + rows))


def _by_relation(part: BulkStream) -> dict[str, pa.Table]:
    tables = {}
    for code, (name, table) in enumerate(part.tables.items()):
        mine = part.codes == code
        tables[name] = table.take(pa.array(part.places[mine])).append_column("op", pa.array(part.ops[mine]))
    return tables


@dataclass(frozen=True)
class Intake:
    """A directory that a streaming query watches. It has no rows until they are let in."""

    files: EventFiles
    folder: Path

    def sources(self, spark: SparkSession, files_to_a_batch: int) -> dict[str, DataFrame]:
        streams = {}
        for name in self.files.relations:
            (self.folder / name).mkdir(parents=True)
            schema = spark.read.parquet(str(self.files.file(name, 0))).schema
            reader = spark.readStream.schema(schema).option("recursiveFileLookup", value=True)
            reader = reader.option("maxFilesPerTrigger", files_to_a_batch)
            streams[name] = reader.parquet(str(self.folder / name))
        return streams

    def let_in(self, numbers: range) -> None:
        """All of them at once: a listing that is read while files come in may have a later one and lack an earlier."""
        for name in self.files.relations:
            ready = self.folder / f"{name}-ready"
            ready.mkdir()
            for number in numbers:
                file = self.files.file(name, number)
                os.link(file, ready / file.name)
            ready.rename(self._stretch(name, numbers))

    def let_go(self, numbers: range) -> None:
        """Files that were read: else Spark would list them again for every micro-batch to come."""
        for name in self.files.relations:
            shutil.rmtree(self._stretch(name, numbers))

    def _stretch(self, relation: str, numbers: range) -> Path:
        return self.folder / relation / f"{numbers.start:05}"
