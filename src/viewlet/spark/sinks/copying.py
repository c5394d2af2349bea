"""Rows of Spark as PostgreSQL reads them: types, and text for COPY that executors write."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pyarrow as pa
from psycopg.sql import SQL, Composable, Literal
from pyarrow import csv
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.spark.sinks.order import column


def postgres_type(table: str, field: T.StructField) -> Composable:
    """The type that holds every value of Spark's."""
    match field.dataType:
        case T.BooleanType():
            return SQL("boolean")
        case T.ByteType() | T.ShortType():
            return SQL("smallint")
        case T.IntegerType():
            return SQL("integer")
        case T.LongType():
            return SQL("bigint")
        case T.FloatType():
            return SQL("real")
        case T.DoubleType():
            return SQL("double precision")
        case T.DecimalType() as decimal:
            return SQL("numeric({}, {})").format(Literal(decimal.precision), Literal(decimal.scale))
        case T.StringType() | T.CharType() | T.VarcharType():
            return SQL("text")
        case T.BinaryType():
            return SQL("bytea")
        case T.DateType():
            return SQL("date")
        case T.TimeType():
            return SQL("time")
        case T.TimestampType():
            return SQL("timestamp with time zone")
        case T.TimestampNTZType():
            return SQL("timestamp")
        case other:
            raise Error(f"table {table}: column {field.name} is {other.simpleString()}, which the sink cannot write")


def as_text(rows: DataFrame) -> DataFrame:
    """One column of bytes, CSV as COPY reads it, in pieces of as many rows as Spark puts into an Arrow batch.

    NULL is nothing at all and the empty string a pair of quotes, for pyarrow and PostgreSQL alike.
    """
    written = [
        _hexadecimal(field) if isinstance(field.dataType, T.BinaryType) else column(field.name) for field in rows.schema
    ]
    return rows.select(*written).mapInArrow(_csv, "piece binary")


def _hexadecimal(field: T.StructField) -> Column:
    return F.concat(F.lit("\\x"), F.hex(column(field.name))).alias(field.name)


def _csv(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        text = BytesIO()
        utc = pa.RecordBatch.from_arrays([_without_zone(values) for values in batch.columns], batch.schema.names)
        csv.write_csv(utc, text, csv.WriteOptions(include_header=False))
        yield pa.RecordBatch.from_pydict({"piece": [text.getvalue()]})


def _without_zone(values: pa.Array) -> pa.Array:
    """A point in time becomes its date and time in UTC. Other values stay as they are."""
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        return values.cast(pa.int64()).cast(pa.timestamp(values.type.unit))
    return values
