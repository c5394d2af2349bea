"""Topics of Kafka's as rows that come and go: JSON, Avro, and the change events of Debezium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.avro.functions import from_avro

from viewlet.errors import Error
from viewlet.spark.driver.envelopes import debezium
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.types import named
from viewlet.spark.driver.upserts import upserts

OFFSET = "place of the message"
STRICT = {"mode": "FAILFAST"}  # a message that is no JSON of such a row stops the query


def kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    columns: str,
    *,
    envelope: Literal["json", "debezium", "avro"] = "json",
    key: Sequence[str] = (),
    avro: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A topic as a source of :func:`maintain`: the rows of its messages, from the first one that it has.

    ``columns`` are those of the messages, as Spark writes them: ``"id long, name string"``. With ``envelope="json"``
    the value of a message is one JSON object, and each inserts its row; a column ``op int`` says otherwise, if there is
    one. With the columns of a ``key`` a message is what the row of its key is now, and one without a value says that
    there is none any more, as in a compacted topic; its Kafka key is then a JSON object with the key's columns. With
    ``envelope="debezium"`` messages are change events, as :func:`debezium` takes them. With ``envelope="avro"`` the
    value of a message is a record of Avro's, in binary, and ``avro`` is the schema with which it was written, as JSON.
    ``options`` are those of Spark's Kafka source, such as ``startingOffsets`` or ``kafka.security.protocol``.
    """
    if envelope not in ("json", "debezium", "avro"):
        raise Error(f"envelope={envelope!r} is not known: give 'json', 'debezium' or 'avro'")
    if (avro is not None) != (envelope == "avro"):
        raise Error("avro is the schema of messages in Avro: give both, envelope='avro' and avro='{…}', or neither")
    if avro is not None and key:
        raise Error("by a key, messages are JSON or events of Debezium's: decode Avro yourself, and use upserts")
    messages = _messages(spark, servers, topic, options or {})
    if envelope == "debezium":
        return debezium(messages, columns, key=key)
    row = T.StructType.fromDDL(columns)
    assert isinstance(row, T.StructType), "columns are the fields of a row"
    if avro is not None:
        return _records(messages, row, avro)
    return _by_key(messages, row, key) if key else _rows(messages, row)


def _messages(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str]) -> DataFrame:
    settings = {"startingOffsets": "earliest", **options, "kafka.bootstrap.servers": servers, "subscribe": topic}
    try:
        return spark.readStream.format("kafka").options(**settings).load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        raise Error(
            "Spark has no Kafka source here: start it with --packages "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, or the session with spark.jars.packages"
        ) from error


def _rows(messages: DataFrame, row: T.StructType) -> DataFrame:
    why = "a message has no value, which says that the row of its key is gone: give the columns of the key, key=[…]"
    value = F.when(F.col("value").isNull(), F.raise_error(F.lit(why)).cast("string")).otherwise(_text("value"))
    return messages.select(F.from_json(value, row, STRICT).alias("row")).select("row.*")


def _records(messages: DataFrame, row: T.StructType, schema: str) -> DataFrame:
    """The types of columns are those that the schema says, so that nothing is converted unseen."""
    value = F.coalesce(F.col("value"), F.raise_error(F.lit("a message has no value, and Avro has no record of that")))
    try:
        records = messages.select(from_avro(value, schema, STRICT).alias("row")).select("row.*")
    except (AnalysisException, TypeError) as error:
        said = str(error).split("\n")[0]
        package = f"org.apache.spark:spark-avro_2.13:{messages.sparkSession.version}"
        raise Error(f"Spark cannot read this Avro: {said}. It needs --packages {package}") from error
    given = {f.name: f.dataType for f in records.schema.fields}
    for field in row.fields:
        if given.get(field.name) != field.dataType:
            there = ", ".join(f"{name} {kind.simpleString()}" for name, kind in given.items())
            raise Error(f"{field.name} {field.dataType.simpleString()} is not in the schema of Avro; it has {there}")
    return records.select(*map(named, row.names))


def _by_key(messages: DataFrame, row: T.StructType, key: Sequence[str]) -> DataFrame:
    for name in key:
        if name not in row.names:
            raise Error(f"key: there is no column {name}; there are {', '.join(row.names)}")
    if OP in row.names:
        raise Error("by a key, a message is what a row is now, and has no op: leave one of both out")
    keys = T.StructType([field for field in row.fields if field.name in key])
    there = F.col("value").isNotNull()
    read = messages.select(
        F.from_json(_text("value"), row, STRICT).alias("row"),
        F.when(~there, F.from_json(_text("key"), keys, STRICT)).alias("gone"),
        F.when(there, F.lit(1)).otherwise(F.lit(-1)).alias(OP),
        F.col("offset").alias(OFFSET),
    )
    return upserts(read.select(*(_value(name, key) for name in row.names), OP, named(OFFSET)), key, OFFSET)


def _value(name: str, key: Sequence[str]) -> Column:
    value = F.col("row").getField(name)
    return (F.coalesce(value, F.col("gone").getField(name)) if name in key else value).alias(name)


def _text(column: str) -> Column:
    return F.col(column).cast("string")
