"""Started again after it died, or with something else: sources that have a state, and tables that have changed."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.oracle.oracle import Row
from tests.spark.harness import shown
from viewlet.errors import Error
from viewlet.spark import maintain
from viewlet.spark.driver.given import differing, fingerprints
from viewlet.spark.pipeline import pipeline_of

pytestmark = pytest.mark.xdist_group("spark")

CLICKS = """
CREATE STREAM clicks (id BIGINT NOT NULL, page VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
"""


def click(folder: Path, number: int, rows: Iterable[tuple[int, str]]) -> None:
    """A second apart, in the hour in which a click is known again."""
    ids, pages = zip(*rows, strict=True)
    moment = dt.datetime(2024, 1, 1, 12, 0, number)
    table = pa.table({"id": ids, "page": pages, "moment": pa.array([moment] * len(ids), pa.timestamp("us", "UTC"))})
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f".{number}.parquet")
    os.utime(folder / f".{number}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    (folder / f".{number}.parquet").rename(folder / f"{number}.parquet")


def run(spark: SparkSession, folder: Path, checkpoint: Path) -> list[Row]:
    """Each click once, though it may come several times: Spark remembers those of an hour."""
    stream = spark.readStream.schema("id long, page string, moment timestamp").option("maxFilesPerTrigger", 1)
    clicks = stream.parquet(str(folder)).withWatermark("moment", "1 hour").dropDuplicatesWithinWatermark(["id"])
    views = maintain(spark, CLICKS, {"clicks": clicks}, checkpoint, cells=2, trigger={"availableNow": True})
    try:
        views.query.awaitTermination()
        return sorted(shown(views["pages"]))
    finally:
        views.stop()


@pytest.mark.parametrize("pinned", ["true", "false"])
def test_a_source_with_a_state_goes_on_though_the_driver_died_before_the_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: str
) -> None:
    """The cells have the batch, and Spark does not know: it must read its rows again, and note the clicks it saw."""
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    folder, checkpoint = tmp_path / "clicks", tmp_path / "checkpoint"
    click(folder, 0, [(1, "a"), (2, "a"), (2, "a")])
    click(folder, 1, [(2, "a"), (3, "b")])
    assert run(spark, folder, checkpoint) == [("a", 2), ("b", 1)]
    newest = max(int(f.name) for f in (checkpoint / "commits").iterdir() if f.name.isdigit())
    for name in (f"{newest}", f".{newest}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    click(folder, 2, [(3, "b"), (4, "b"), (1, "a")])
    assert run(spark, folder, checkpoint) == [("a", 2), ("b", 2)]


# -- tables ------------------------------------------------------------------------------------------------------------

PRICES = """
CREATE STREAM sales (item BIGINT NOT NULL);
CREATE TABLE prices (item BIGINT NOT NULL, price DECIMAL(10,2), note VARCHAR);
CREATE TABLE kinds (item BIGINT NOT NULL, kind VARCHAR);
CREATE MATERIALIZED VIEW worth AS
  SELECT kind, sum(price) AS worth FROM sales, prices, kinds
  WHERE sales.item = prices.item AND kinds.item = prices.item GROUP BY kind;
"""
ITEMS: Sequence[tuple[Any, ...]] = [(1, Decimal("2.50"), "new"), (2, None, None), (2, None, None), (3, Decimal(4), "")]
KINDS = [(1, "x"), (2, None), (3, "y")]


def prices(spark: SparkSession, rows: Iterable[tuple[Any, ...]], item: str = "bigint") -> DataFrame:
    return spark.createDataFrame(list(rows), f"item {item}, price decimal(10,2), note string")


def kinds(spark: SparkSession, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(list(rows), "item bigint, kind string")


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a job whose tables are loaded."""
    checkpoint = tmp_path_factory.mktemp("begun") / "checkpoint"
    start(spark, checkpoint, prices(spark, ITEMS), kinds(spark, KINDS))
    return checkpoint


def start(spark: SparkSession, checkpoint: Path, prices: DataFrame, kinds: DataFrame) -> list[Row]:
    sources = {"sales": spark.createDataFrame([(1,), (3,)], "item int"), "prices": prices, "kinds": kinds}
    views = maintain(spark, PRICES, sources, checkpoint, cells=2, trigger={"availableNow": True})
    views.query.awaitTermination()
    try:
        return sorted(shown(views["worth"]))
    finally:
        views.stop()


def test_the_same_tables_in_another_order_of_another_width_and_with_other_columns_go_on(
    spark: SparkSession, begun: Path
) -> None:
    other = [(item, price, "unread") for item, price, _ in reversed(ITEMS)]
    rows = start(spark, begun, prices(spark, other, "int").repartition(3), kinds(spark, reversed(KINDS)))
    assert rows == [("x", Decimal("2.50")), ("y", Decimal("4.00"))]


CHANGED = {
    "a value": ([*ITEMS[:3], (3, Decimal(5), "")], KINDS),
    "one row less": (ITEMS[:3], KINDS),
    "one copy less": ([*ITEMS[:2], ITEMS[3]], KINDS),
    "one row more": ([*ITEMS, ITEMS[0]], KINDS),
    "nothing": ([], KINDS),
    "NULL elsewhere": (ITEMS, [(1, "x"), (2, "y"), (3, None)]),
}


def test_what_was_before_a_stream_is_not_taken_for_what_it_has_since(spark: SparkSession, begun: Path) -> None:
    sources = {
        "sales": spark.createDataFrame([(1,), (3,), (3,)], "item int"),
        "prices": prices(spark, ITEMS),
        "kinds": kinds(spark, KINDS),
    }
    with pytest.raises(Error, match=r"^sales has other rows now"):
        maintain(spark, PRICES, sources, begun, cells=2)


@pytest.mark.parametrize("change", CHANGED)
def test_other_rows_are_noticed(spark: SparkSession, change: str) -> None:
    items, its_kinds = CHANGED[change]
    pipeline = pipeline_of(PRICES, 2, "optimized", "sql")
    known = fingerprints(pipeline, {"prices": prices(spark, ITEMS), "kinds": kinds(spark, KINDS)})
    now = fingerprints(pipeline, {"prices": prices(spark, items), "kinds": kinds(spark, its_kinds)})
    assert differing(known, now, ["prices", "kinds"]) == ["kinds" if items is ITEMS else "prices"]
    assert differing(known, known, ["prices", "kinds"]) == []


def test_a_table_that_has_changed_is_loaded_again(spark: SparkSession, begun: Path) -> None:
    """Also where no micro-batch has come yet."""
    rows = start(spark, begun, prices(spark, [*ITEMS[:3], (3, Decimal(5), "")]), kinds(spark, KINDS))
    assert rows == [("x", Decimal("2.50")), ("y", Decimal("5.00"))]
    rows = start(spark, begun, prices(spark, [*ITEMS, ITEMS[0]]), kinds(spark, [(1, None), (2, "y"), (3, None)]))
    assert rows == [(None, Decimal("9.00"))]
