"""Change events of databases as rows that come and go: the envelopes of Debezium, from Kafka or from anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.types import named
from viewlet.spark.driver.upserts import upserts

BEFORE, AFTER, PAYLOAD, PLACE = "before", "after", "payload", "place of the event"
CAME, WENT = ("c", "r", "u"), ("u", "d")  # which operations have a row after them, and which one before
SAYS_NOTHING = ("m",)  # a message of the database's own


def debezium(
    events: DataFrame, columns: str, value: str = "value", *, key: Sequence[str] = (), order: str = "offset"
) -> DataFrame:
    """The rows of a table that Debezium follows, with ``op`` +1 and -1, from a DataFrame of its change events.

    ``columns`` are the table's, as Spark writes them: ``"id long, name string"``. ``value`` is the column with the
    events as JSON, as a Kafka source gives it; they may come with their schema or without. An insert and a row of the
    first snapshot come, a delete goes, an update goes and comes. Events of anything else stop the query and say why.
    The database must say which row it was: in PostgreSQL, ``ALTER TABLE … REPLICA IDENTITY FULL``. Numbers that
    Debezium writes as bytes are refused: set ``decimal.handling.mode=string``. DATE is taken as Debezium counts days.

    With the columns of its ``key``, the row before is looked up instead, as :func:`upserts` does. Then an event that
    comes twice, as it may when a connector starts again, counts once. ``order`` is as there.
    """
    row = _row(columns)
    sides = [T.StructField(side, _read(row)) for side in (BEFORE, AFTER)]
    envelope = [*sides, T.StructField(OP, T.StringType())]
    read = T.StructType([T.StructField(PAYLOAD, T.StructType(envelope)), *envelope])
    event = F.from_json(named(value).cast("string"), read, {"mode": "FAILFAST"})
    placed, kept = ([named(order).alias(PLACE)], [F.col(PLACE)]) if key else ([], [])
    bare = F.struct(*(F.col(f"event.{part}") for part in (BEFORE, AFTER, OP)))
    bodies = (
        events.where(named(value).isNotNull())  # a tombstone follows a delete: it says nothing new
        .select(event.alias("event"), *placed)
        .select(F.coalesce(F.col(f"event.{PAYLOAD}"), bare).alias("event"), *kept)
    )
    rows = bodies.select(F.explode(_rows(row, by_key=bool(key))).alias("row"), *kept)
    told = rows.select(*(_value(f) for f in row.fields), F.col("row.op").alias(OP), *kept)
    return upserts(told, key, PLACE) if key else told


def _row(columns: str) -> T.StructType:
    row = T.StructType.fromDDL(columns)
    assert isinstance(row, T.StructType), "columns are the fields of a row"
    for field in row.fields:
        if isinstance(field.dataType, T.TimestampType | T.TimestampNTZType):
            raise Error(
                f"{field.name} is a timestamp, which Debezium writes as a number of milliseconds, microseconds or "
                f"nanoseconds: declare it long, and convert it in the DataFrame, as by timestamp_micros"
            )
        if field.name == OP:
            raise Error("a column op says on Spark whether a row comes or goes: rename it in the connector")
    return row


def _read(row: T.StructType) -> T.StructType:
    """As Debezium writes it: DATE is a number of days."""
    days = T.IntegerType()
    return T.StructType(
        [T.StructField(f.name, days if isinstance(f.dataType, T.DateType) else f.dataType) for f in row.fields]
    )


def _value(field: T.StructField) -> Column:
    held = F.col("row.row").getField(field.name)
    return (F.date_from_unix_date(held) if isinstance(field.dataType, T.DateType) else held).alias(field.name)


def _rows(row: T.StructType, *, by_key: bool) -> Column:
    """Of one event, those that go and those that come; by a key, an update is a row that comes."""
    op = F.col(f"event.{OP}")
    came, went = _counted(AFTER, 1), _counted(BEFORE, -1)
    nothing = F.lit(None).cast(_of(row))
    both = F.when(op.isin(*set(CAME) & set(WENT)), F.array(came) if by_key else F.array(went, came))
    one = both.when(op.isin(*CAME), F.array(came)).when(op.isin(*WENT), F.array(went))
    what = F.coalesce(op, F.lit("no operation"))
    odd = F.concat(F.lit("an event of Debezium's has "), what, F.lit(", which says nothing about single rows"))
    return one.when(op.isin(*SAYS_NOTHING), nothing).otherwise(F.raise_error(odd).cast(_of(row)))


def _counted(side: str, times: int) -> Column:
    held = F.col(f"event.{side}")
    missing = F.concat(
        F.lit(f"an event of Debezium's has no row {side} the operation "),
        F.col(f"event.{OP}"),
        F.lit(": in PostgreSQL, say ALTER TABLE … REPLICA IDENTITY FULL"),
    )
    there = F.when(held.isNull(), F.raise_error(missing).cast("int")).otherwise(F.lit(times))
    return F.struct(held.alias("row"), there.alias(OP))


def _of(row: T.StructType) -> T.ArrayType:
    return T.ArrayType(T.StructType([T.StructField("row", _read(row)), T.StructField(OP, T.IntegerType())]))
