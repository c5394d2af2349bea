"""Envelopes of Debezium's as rows that come and go, without a broker."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.harness import shown
from viewlet import Error
from viewlet.spark import debezium

COLUMNS = "id long, name string, price decimal(10,2), day date, `a b` boolean"
OLD = {"id": 1, "name": None, "price": "9.50", "day": 59, "a b": True}
NEW = {"id": 1, "name": "ann", "price": "-0.05", "day": -1, "a b": None}
OLD_ROW = (1, None, Decimal("9.50"), dt.date(1970, 3, 1), True)
NEW_ROW = (1, "ann", Decimal("-0.05"), dt.date(1969, 12, 31), None)


def event(op: str | None, before: dict[str, Any] | None, after: dict[str, Any] | None, schema: bool = False) -> str:
    body = {"before": before, "after": after, "op": op, "source": {"lsn": 7}, "ts_ms": 1}
    return json.dumps({"schema": {"type": "struct"}, "payload": body} if schema else body)


def rows(spark: SparkSession, *values: str | None) -> list[tuple[Any, ...]]:
    events = spark.createDataFrame([(value,) for value in values], "value string")
    return shown(debezium(events.selectExpr("cast(value AS binary) AS value"), COLUMNS))


@pytest.mark.parametrize("schema", [False, True])
def test_rows_come_and_go(spark: SparkSession, schema: bool) -> None:
    come = [event(op, None, NEW, schema) for op in "cr"]
    given = [*come, event("u", NEW, OLD, schema), event("d", OLD, None, schema), None, event("m", None, None, schema)]
    assert rows(spark, *given) == [
        (*NEW_ROW, 1),
        (*NEW_ROW, 1),
        (*NEW_ROW, -1),
        (*OLD_ROW, 1),
        (*OLD_ROW, -1),
    ]


def test_what_says_too_little_stops_the_query(spark: SparkSession) -> None:
    """Never a row that is half right: a NULL in the place of what could not be read would be counted."""
    for value, reason in (
        (
            event("u", None, NEW),
            "no row before the operation u: in PostgreSQL, say ALTER TABLE … REPLICA IDENTITY FULL",
        ),
        (event("c", NEW, None), "no row after the operation c"),
        (event("t", None, None), "an event of Debezium's has t, which says nothing about single rows"),
        ('{"id": 1}', "an event of Debezium's has no operation"),
        ("{", "MALFORMED_RECORD_IN_PARSING"),
        (event("c", None, {**NEW, "price": "AJo="}), "MALFORMED_RECORD_IN_PARSING"),
        (event("c", None, {**NEW, "day": "2026-01-01"}), "MALFORMED_RECORD_IN_PARSING"),
    ):
        with pytest.raises((PySparkException, Py4JJavaError)) as refusal:
            rows(spark, value)
        assert reason in str(refusal.value), value


def test_columns_that_would_be_read_wrongly_are_refused(spark: SparkSession) -> None:
    events = spark.createDataFrame([], "value string")
    for kind in ("timestamp", "timestamp_ntz"):
        with pytest.raises(Error, match="at is a timestamp, which Debezium writes as a number"):
            debezium(events, f"at {kind}")
    with pytest.raises(Error, match="rename it in the connector"):
        debezium(events, "id long, op string")
