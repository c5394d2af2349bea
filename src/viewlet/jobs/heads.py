"""What the Parquet files of a source say of their columns: Spark looks at one of them and believes it of all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import SparkSession

from viewlet.durable.places import file_system
from viewlet.errors import DataError
from viewlet.jobs.file import OP, check_columns
from viewlet.schema import Relation

_INT96 = "int96"  # Spark's own timestamps, which are finer than it says and which it reads


@dataclass(frozen=True)
class Head:
    file: str
    uri: str  # the same file, as ``_metadata.file_path`` of its rows has it
    columns: Sequence[tuple[str, str]]  # name and type

    def type_of(self, column: str) -> str | None:
        return next((type_ for name, type_ in self.columns if name.lower() == column), None)


def heads_of(spark: SparkSession, path: str) -> list[Head]:
    """Only the ends of the files are read, by the executors: the driver may not reach them."""
    files = spark.read.load(path, format="binaryFile").select("path", "_metadata.file_path")
    rows = files.mapInArrow(_heads, "file string, uri string, columns string").collect()
    return sorted((Head(r.file, r.uri, json.loads(r.columns)) for r in rows), key=lambda head: head.file)


def check_heads(relation: Relation, heads: Sequence[Head]) -> None:
    """Refuse a file that lacks a column, which Spark would take for NULLs, or has it as another type than the first."""
    for head in heads:
        check_columns(relation, head.file, [name for name, _ in head.columns])
    for column in (*(c.name for c in relation.given), OP):
        having = [(head.file, type_) for head in heads if (type_ := head.type_of(column)) is not None]
        for file, type_ in having:
            _check_type(relation, column, (file, type_), having[0])


def _check_type(relation: Relation, column: str, mine: tuple[str, str], first: tuple[str, str]) -> None:
    (file, type_), (first_file, first_type) = mine, first
    if type_ != first_type:
        why = f"{file} has it as {type_}, {first_file} as {first_type}; Spark reads all files of a source as one type"
        raise DataError(why, relation=relation.name, column=column)
    if type_.startswith("timestamp[ns"):
        why = f"{file} has it as {type_}, which Spark does not read: write it as timestamp[us]"
        raise DataError(why, relation=relation.name, column=column)


def _heads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        files = batch.column("path")
        columns = pa.array([json.dumps(_columns(file)) for file in files.to_pylist()], pa.string())
        yield pa.record_batch({"file": files, "uri": batch.column("file_path"), "columns": columns})


def _columns(file: str) -> list[tuple[str, str]]:
    files, path = file_system(file)
    try:
        with pyarrow.parquet.ParquetFile(path, filesystem=files) as opened:
            schema = opened.schema
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot be read: {error}", relation=file) from error
    old = {leaf.path for leaf in map(schema.column, range(len(schema))) if leaf.physical_type == "INT96"}
    return [(f.name, _INT96 if f.name in old else str(_stored(f.type))) for f in schema.to_arrow_schema()]


def _stored(type_: pa.DataType) -> pa.DataType:
    """As Parquet has it: what Arrow notes beside it about dictionaries, long strings and zones is nothing to Spark."""
    if pa.types.is_dictionary(type_):
        return _stored(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    return type_
