"""Rows by their key, as rows that come and go, over several micro-batches."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.harness import shown
from tests.spark.test_envelopes import NEW, NEW_ROW, OLD, event
from viewlet import Error
from viewlet.spark import debezium, upserts

ROW = "id long, name string, price decimal(20,2), at timestamp_ntz, day date, far double, good boolean"
SCHEMA = f"{ROW}, offset long, op int"
LARGE, AT = 2**63 - 1, dt.datetime(2026, 1, 1, 0, 0, 0, 1)
FULL = (LARGE, 'ä"\n', Decimal("123456789012345678.99"), AT, dt.date(1969, 1, 1), -0.1, True)
EMPTY = (LARGE - 1, None, None, None, None, None, None)
ZERO = (0, "", Decimal("0.00"), AT, dt.date(2026, 1, 1), float("inf"), False)


def changed(row: tuple[Any, ...], **values: Any) -> tuple[Any, ...]:
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    return tuple(values.get(name, value) for name, value in zip(names, row, strict=False))


BATCHES = [
    [(*FULL, 1, 1), (*EMPTY, 2, 1), (*ZERO, 3, 1), (*changed(ZERO, name="first"), 1, 1)],
    [(*changed(FULL, name=None), 5, 1), (*EMPTY, 4, 1), (*ZERO, 6, -1), (*ZERO, 5, 1)],
    [(*changed(EMPTY, id=7), 7, -1), (*changed(FULL, name="x"), 7, -1), (*ZERO, 8, 1)],
]
EXPECTED = [
    {(*FULL, 1): 1, (*EMPTY, 1): 1, (*ZERO, 1): 1},
    {(*FULL, -1): 1, (*changed(FULL, name=None), 1): 1, (*ZERO, -1): 1},
    {(*changed(FULL, name=None), -1): 1, (*ZERO, 1): 1},
]


def test_the_newest_row_of_a_key_takes_the_place_of_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    told: list[Counter[tuple[Any, ...]]] = []
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in" / "*"))
    for number, batch in enumerate(BATCHES):
        spark.createDataFrame(batch, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "in" / str(number)))
        writer = upserts(stream, ["id"], "offset").writeStream.foreachBatch(
            lambda frame, _: told.append(Counter(shown(frame)))
        )
        writer.option("checkpointLocation", str(tmp_path / "marks")).trigger(
            availableNow=True
        ).start().awaitTermination()
    assert [counts for counts in told if counts] == EXPECTED


def test_debezium_by_key_needs_no_row_before_and_takes_events_twice(spark: SparkSession) -> None:
    events = [event("c", None, OLD), event("u", None, NEW), event("u", None, NEW), event("c", None, {**OLD, "id": 2})]
    events += [event("d", {"id": 2}, None)]
    columns = "id long, name string, price decimal(10,2), day date, `a b` boolean"
    frame = spark.createDataFrame([*enumerate(events), (9, None)], "offset long, value string")
    assert shown(debezium(frame, columns, key=["id"])) == [(*NEW_ROW, 1)]


def test_what_has_no_order_or_no_key_is_refused(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, None, 1)], "id long, offset long, op int")
    with pytest.raises(PySparkException, match="offset is NULL, so nobody knows which row is newer"):
        shown(upserts(rows, ["id"], "offset"))
    with pytest.raises(PySparkException, match="op is 2; by a key it is \\+1 or -1"):
        shown(upserts(rows.selectExpr("id", "1L AS offset", "2 AS op"), ["id"], "offset"))
    with pytest.raises(Error, match="there is no column key; there are id, offset, op"):
        upserts(rows, ["key"], "offset")
    with pytest.raises(Error, match="give the columns of the key, and one with an integer"):
        upserts(rows, [], "offset")
    with pytest.raises(Error, match="give the columns of the key, and one with an integer"):
        upserts(rows.selectExpr("id", "'x' AS offset"), ["id"], "offset")
