"""``maintain`` as its users meet it: what it takes, what it gives back, what it refuses, and how it goes on."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from queue import Queue
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import viewlet
from tests.spark.harness import shown, write_events
from viewlet.durable.manifest import read_manifest
from viewlet.durable.store import Store
from viewlet.spark import Views, maintain
from viewlet.spark.driver.runner import SETTINGS
from viewlet.spark.pipeline import Works
from viewlet.spark.process.client import stop
from viewlet.spark.task.feed import HANDED_AT_ONCE
from viewlet.spark.task.stage import hand_over_stage

SALES = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR, amount DECIMAL(10,2) NOT NULL);
CREATE TABLE shops (shop BIGINT NOT NULL, city VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW by_city AS
  SELECT s.city, count(*) AS n, sum(x.amount) AS total, avg(x.amount) AS mean
  FROM sales x, shops s WHERE x.shop = s.shop GROUP BY s.city;
CREATE MATERIALIZED VIEW turnover AS SELECT sum(amount) AS total, max(amount) AS most FROM sales;
CREATE MATERIALIZED VIEW dear AS SELECT shop, item FROM sales WHERE amount > 10;
"""
SHOPS = [(1, "Rome"), (2, "Rome"), (3, "Oslo")]
BATCHES: list[list[tuple[str, str, tuple[Any, ...]]]] = [
    [("+", "sales", (1, "pen", Decimal("3.50"))), ("+", "sales", (3, "desk", Decimal("120.00")))],
    [("+", "sales", (2, None, Decimal("20.00"))), ("+", "sales", (2, None, Decimal("20.00")))],
    [("-", "sales", (3, "desk", Decimal("120.00"))), ("-", "sales", (2, None, Decimal("20.00")))],
]
AFTER = [
    {"Rome": (1, Decimal("3.50")), "Oslo": (1, Decimal("120.00"))},
    {"Rome": (3, Decimal("43.50")), "Oslo": (1, Decimal("120.00"))},
    {"Rome": (2, Decimal("23.50"))},
]
AVAILABLE = {"availableNow": True}


def relation(name: str, script: str = SALES) -> viewlet.schema.Relation:
    return viewlet.compile(script).relation(name)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "sales"
    folder.mkdir()
    for number, batch in enumerate(BATCHES):
        write_events(relation("sales"), batch, folder / f"{number}.parquet", number)
    return folder


def sales(spark: SparkSession, inbox: Path) -> DataFrame:
    schema = "shop bigint, item string, amount decimal(10,2), op int"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(inbox))


def shops(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(SHOPS, "shop bigint, city string")


@pytest.fixture
def running(spark: SparkSession) -> Iterator[list[Views]]:
    started: list[Views] = []
    yield started
    for views in started:
        views.stop()


def finished(views: Views, running: list[Views]) -> Views:
    running.append(views)
    views.query.awaitTermination()
    return views


def by_city(rows: list[tuple[Any, ...]]) -> dict[str, tuple[int, Decimal]]:
    return {city: (n, total) for city, n, total, _ in rows}


def test_views_are_as_of_the_last_commit_and_of_any_batch_before(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    views = finished(maintain(spark, SALES, sources, tmp_path / "ck", cells=2, trigger=AVAILABLE), running)
    assert list(views) == ["by_city", "turnover", "dear"]
    assert views.committed == 2
    assert by_city(shown(views["by_city"])) == AFTER[-1]
    assert shown(views["turnover"]) == [(Decimal("23.50"), Decimal("20.00"))]
    assert shown(views["dear"]) == [(2, None)]
    for batch, expected in enumerate(AFTER):
        then = views.at(batch)
        assert by_city(shown(then["by_city"])) == expected
        assert sum(total for _, total in expected.values()) == shown(then["turnover"])[0][0]
    assert Counter(shown(views.at(1)["dear"])) == {(2, None): 2, (3, "desk"): 1}
    for file in (tmp_path / "ck" / "viewlet" / "changes" / "dear").iterdir():
        damaged = bytearray(file.read_bytes())
        damaged[damaged.index(b"desk" if b"desk" in damaged else b"PAR1", 8)] ^= 1
        file.write_bytes(bytes(damaged))
    with pytest.raises(Exception, match=r"(?i)checksum|crc|corrupt|not a Parquet file|magic"):
        shown(views.at(1)["dear"])
    with pytest.raises(KeyError, match="there is no view nope; there are: by_city, turnover, dear"):
        views["nope"]
    assert [p["batch"] for p in views.progress] == [0, 1, 2]
    assert all(p["rows"] and p["state_bytes"] and p["engine"] == "native" for p in views.progress)
    assert "summed across cells" in views.explain()


def test_changes_are_a_stream_of_their_own(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    views = finished(maintain(spark, SALES, sources, tmp_path / "ck", cells=2, trigger=AVAILABLE), running)
    writer = views.changes("by_city").writeStream.trigger(availableNow=True)
    out, marks = str(tmp_path / "out"), str(tmp_path / "marks")
    writer.format("parquet").option("checkpointLocation", marks).start(out).awaitTermination()
    folded: Counter[tuple[Any, ...]] = Counter()
    for batch, weight, *row in sorted(shown(spark.read.parquet(out)), key=lambda change: (change[0], change[1])):
        folded[tuple(row)] += weight
        assert batch >= 0
    assert by_city(list((+folded).elements())) == AFTER[-1]
    late = views.changes("by_city", since=2).writeStream.trigger(availableNow=True).format("memory").queryName("late")
    late.option("checkpointLocation", str(tmp_path / "late")).start().awaitTermination()
    assert {row.batch for row in spark.table("late").collect()} == {2}


def test_listeners_hear_of_every_batch_until_they_are_removed(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    heard: Queue[dict[str, Any]] = Queue()
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    views = maintain(spark, SALES, sources, tmp_path / "checkpoint", cells=2)
    running.append(views)
    end = views.listen(lambda progress: heard.put(dict(progress)))
    views.query.processAllAvailable()
    write_events(relation("sales"), BATCHES[0], inbox / "more.parquet", len(BATCHES))
    views.query.processAllAvailable()
    told: dict[str, Any] = {"batch": None}
    while told["batch"] != len(BATCHES):  # some of the first may have been over before anybody listened
        told = heard.get(timeout=60)
    assert told["input_rows"] == len(BATCHES[0])
    assert told["rows"] >= told["input_rows"]
    assert told["busy_cells"] >= 1
    assert told["state_bytes"] == sum(told["state_by_cell"].values()) > 0
    assert {"addBatch", "commitOffsets"} <= told["durations"].keys()
    assert 0 < told["slowest_cell_seconds"] <= told["job_seconds"] <= told["lag_seconds"] < 600
    assert len(told["behind"]) == 1
    end()
    write_events(relation("sales"), BATCHES[0], inbox / "last.parquet", len(BATCHES) + 1)
    views.query.processAllAvailable()
    assert views.progress[-1]["batch"] == len(BATCHES) + 1
    assert heard.empty()


def test_on_one_machine_rows_are_not_shuffled_and_cells_that_are_gone_are_opened_again(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a row to each of Spark's Arrow batches, so that a task hands its rows over in several goes."""
    monkeypatch.setitem(SETTINGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    before = {setting: spark.conf.get(setting) for setting in SETTINGS}
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    views = maintain(spark, SALES, sources, tmp_path / "ck", cells=2)
    running.append(views)
    views.query.processAllAvailable()
    assert stages(spark, views) == [1, 1, 1]
    assert {setting: spark.conf.get(setting) for setting in SETTINGS} == before, "the session is the user's"
    gone = read_manifest(Store.of(str(tmp_path / "ck")), 2)
    assert gone is not None
    stop(views._runner.works.run, [gone.addresses["c0"], gone.addresses["m1"]])
    for number, times in ((3, 5), (4, HANDED_AT_ONCE + 10)):
        write_events(relation("sales"), BATCHES[0] * times, inbox / f"{number}.parquet", number)
        views.query.processAllAvailable()
    assert stages(spark, views) == [1, 1, 1, 1, 1, 1], "the first batch after it takes two attempts"
    assert by_city(shown(views["by_city"])) == {"Rome": (67, Decimal("251.00")), "Oslo": (65, Decimal("7800.00"))}
    assert [p["reloaded_cells"] > 0 for p in views.progress] == [False, False, False, True, False]


def test_without_pinned_threads_each_batch_shuffles_its_rows(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    views = finished(maintain(spark, SALES, sources, tmp_path / "ck", cells=2, trigger=AVAILABLE), running)
    assert stages(spark, views) == [3, 3, 3], "what was routed, cells, merge cells"
    assert by_city(shown(views["by_city"])) == AFTER[-1]


def test_a_plan_that_runs_outside_of_its_query_says_so() -> None:
    with pytest.raises(viewlet.Error, match="not told of its batch"):
        list(hand_over_stage(cast("Works", None))(iter(())))


def stages(spark: SparkSession, views: Views) -> list[int]:
    """Of each job that a query ran, how many."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in sorted(tracker.getJobIdsForGroup(str(views.query.runId)))]
    return [len(job.stageIds) for job in jobs if job is not None]


COMMON = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR, amount DECIMAL(10,2) NOT NULL)
  WITH (rows = 1000000, distinct_amount = 100);
CREATE MATERIALIZED VIEW turnover AS SELECT sum(amount) AS total, count(*) AS n FROM sales;
"""


def test_a_batch_of_equal_rows_is_summed_up_before_it_goes_to_the_one_cell(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    nothing = [(op, "sales", (9, None, Decimal("1.00"))) for op in "+-"]
    write_events(relation("sales"), nothing, inbox / "nothing.parquet", len(BATCHES))
    sources = {"sales": sales(spark, inbox)}
    views = finished(maintain(spark, COMMON, sources, tmp_path / "ck", cells=1, trigger=AVAILABLE), running)
    assert "summed up before" in views.explain()
    assert [p["rows"] for p in views.progress] == [2, 1, 2, 0], "what is equal is one row, what comes and goes is none"
    assert shown(views.at(1)["turnover"]) == [(Decimal("163.50"), 4)]
    assert shown(views["turnover"]) == [(Decimal("23.50"), 2)]


PAIRS = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR, amount DECIMAL(10,2) NOT NULL);
CREATE MATERIALIZED VIEW pairs AS
  SELECT x.shop, count(*) AS n FROM sales x, sales y WHERE x.amount = y.shop GROUP BY x.shop;
"""


def test_a_source_that_is_routed_in_two_ways_is_read_once(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    extra = [("+", "sales", (7, None, Decimal("3.00"))), ("+", "sales", (1, None, Decimal("7.00")))]
    write_events(relation("sales"), extra, inbox / "more.parquet", len(BATCHES))
    sources = {"sales": sales(spark, inbox)}
    views = finished(maintain(spark, PAIRS, sources, tmp_path / "checkpoint", cells=4, trigger=AVAILABLE), running)
    assert "  sales_2 = sales(shop): by shop " in views.explain(), "one copy would prove nothing"
    read = [p.numInputRows for p in views.query.recentProgress if p.numInputRows]
    assert read == [*map(len, BATCHES), len(extra)]
    assert shown(views["pairs"]) == [(1, 1)]


def test_a_restart_goes_on_where_the_last_one_stopped(
    spark: SparkSession, tmp_path: Path, running: list[Views]
) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    for number, batch in enumerate(BATCHES):
        write_events(relation("sales"), batch, folder / f"{number}.parquet", number)
        sources = {"sales": sales(spark, folder), "shops": shops(spark)}
        script = f"-- start {number}\n{SALES.replace('SELECT', 'select')}" if number else SALES
        views = maintain(spark, script, sources, tmp_path / "ck", cells=None if number else 3, trigger=AVAILABLE)
        views.query.awaitTermination()
        assert by_city(shown(views["by_city"])) == AFTER[number]
        views.stop()
    sources = {"sales": sales(spark, folder), "shops": shops(spark)}
    with pytest.raises(viewlet.Error, match="history comes before the stream"):
        maintain(
            spark,
            SALES,
            sources,
            tmp_path / "ck",
            cells=3,
            history={
                "sales": sources["shops"].limit(0).selectExpr("shop", "city item", "cast(0 as decimal(10,2)) amount")
            },
        )


def test_history_and_batch_jobs(spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]) -> None:
    old = [(1, "lamp", Decimal("1.00")), (3, "lamp", Decimal("2.00"))]
    before = spark.createDataFrame(old, "shop bigint, item string, amount decimal(10,2)")
    sources = {"sales": sales(spark, inbox), "shops": shops(spark)}
    both = maintain(spark, SALES, sources, tmp_path / "ck", cells=2, history={"sales": before}, trigger=AVAILABLE)
    finished(both, running)
    assert by_city(shown(both["by_city"])) == {"Rome": (3, Decimal("24.50")), "Oslo": (1, Decimal("2.00"))}
    static = {"sales": before, "shops": shops(spark)}
    job = finished(maintain(spark, SALES, static, tmp_path / "job", cells=2, trigger=AVAILABLE), running)
    assert by_city(shown(job["by_city"])) == {"Rome": (1, Decimal("1.00")), "Oslo": (1, Decimal("2.00"))}
    assert job.committed < 0


EVERYTHING = """
CREATE STREAM things (
  b BOOLEAN, i INTEGER, l BIGINT, d DOUBLE, m DECIMAL(20,4), day DATE, moment TIMESTAMP, s VARCHAR);
CREATE MATERIALIZED VIEW each AS
  SELECT b, i, l, d, m, day, moment, s, count(*) AS n FROM things GROUP BY b, i, l, d, m, day, moment, s;
CREATE MATERIALIZED VIEW sums AS
  SELECT s, sum(d) AS d, sum(m) AS m, sum(i) AS i, min(day) AS day FROM things GROUP BY s;
"""
THINGS: list[tuple[Any, ...]] = [
    (True, 2**31 - 1, -(2**63), 0.1, Decimal("-9999999999999999.9999"), dt.date(1, 1, 1), None, "ä\N{SNOWMAN}'\"\\"),
    (None, None, None, None, None, None, None, None),
    (
        False,
        -(2**31),
        2**63 - 1,
        -1e300,
        Decimal("0.0001"),
        dt.date(9999, 12, 31),
        dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "",
    ),
    (False, 0, 0, math.inf, Decimal("0"), dt.date(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), " "),
]


def test_every_type_makes_the_round_trip(spark: SparkSession, tmp_path: Path, running: list[Views]) -> None:
    schema = "b boolean, i int, l bigint, d double, m decimal(20,4), day date, moment timestamp_ntz, s string"
    frame = spark.createDataFrame([*THINGS, THINGS[0], THINGS[1]], schema)
    views = finished(maintain(spark, EVERYTHING, {"things": frame}, cells=2, trigger=AVAILABLE), running)
    expected = Counter({(*row, 1): 1 for row in THINGS[2:]} | {(*row, 2): 1 for row in THINGS[:2]})
    assert Counter(shown(views["each"])) == expected
    assert {row[0] for row in shown(views["sums"])} == {row[-1] for row in THINGS}


def test_what_does_not_fit_is_refused_before_anything_runs(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "shop bigint, item string, amount decimal(10,2)")
    good = {"sales": frame, "shops": shops(spark)}
    for sources, message in [
        ({}, r"no source for sales: give sources="),
        ({**good, "sale": frame}, r"there is no stream or table sale .*: sales, shops"),
        ({**good, "sales": frame.drop("item")}, r"source of sales has no column item; it has shop, amount"),
        (
            {**good, "sales": frame.selectExpr("shop", "item", "cast(amount as double) amount")},
            r"amount as double, which DECIMAL\(10,2\) does not take",
        ),
        ({**good, "sales": frame.selectExpr("*", "'+' as op")}, r"has op as string; it is \+1, -1"),
    ]:
        with pytest.raises(viewlet.Error, match=message):
            maintain(spark, SALES, sources)
    with pytest.raises(viewlet.Error, match="no view to maintain"):
        maintain(spark, "CREATE STREAM r (a BIGINT);", {"r": spark.range(1)})
    with pytest.raises(viewlet.Error, match="has a column weight, as its changes have: rename it with AS"):
        maintain(spark, "CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a AS weight FROM r;", {})
    script = "CREATE STREAM r (op BIGINT); CREATE MATERIALIZED VIEW v AS SELECT op AS o FROM r;"
    with pytest.raises(viewlet.Error, match="r has a column op"):
        maintain(spark, script, {"r": spark.range(1).selectExpr("id as op")})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, "pen", None, 1)], r"sales\.amount.*NULL"),
        ([(1, "pen", Decimal(1), -1)], r"sales.*is not there"),
        ([(1, "pen", Decimal(1), None)], r"sales\.op is NULL; it is \+1"),
        ([(1, "pen", Decimal(1), 2**31 - 1)], r"sales\.op is 2147483647; it is \+1"),
    ],
)
def test_a_bad_row_stops_the_batch_and_changes_nothing(
    spark: SparkSession,
    tmp_path: Path,
    running: list[Views],
    rows: list[tuple[Any, ...]],
    message: str,
    soaking: bool,
) -> None:
    if "op" not in message and not soaking:
        pytest.skip("make soak runs it, and tests/faults/test_files.py has such rows")
    folder = tmp_path / "sales"
    folder.mkdir()
    write_events(relation("sales"), BATCHES[0], folder / "0.parquet", 0)
    types = {"shop": pa.int64(), "item": pa.string(), "amount": pa.decimal128(10, 2), "op": pa.int32()}
    columns = {n: pa.array([row[i] for row in rows], t) for i, (n, t) in enumerate(types.items())}
    pq.write_table(pa.table(columns), folder / "1.parquet")
    sources = {"sales": sales(spark, folder), "shops": shops(spark)}
    views = maintain(spark, SALES, sources, tmp_path / "ck", cells=2, trigger=AVAILABLE)
    running.append(views)
    with pytest.raises(StreamingQueryException, match=message):
        views.query.awaitTermination()
    assert by_city(shown(views["by_city"])) == AFTER[0]


def test_tables_that_never_change_have_views_too(spark: SparkSession, running: list[Views]) -> None:
    script = """
      CREATE TABLE shops (shop BIGINT NOT NULL, city VARCHAR NOT NULL);
      CREATE MATERIALIZED VIEW cities AS SELECT city, count(*) AS n FROM shops GROUP BY city;
    """
    views = finished(maintain(spark, script, {"shops": shops(spark)}, cells=1, trigger=AVAILABLE), running)
    assert sorted(shown(views["cities"])) == [("Oslo", 1), ("Rome", 2)]


def test_groups_that_look_alike_are_rows_of_their_own(spark: SparkSession, running: list[Views]) -> None:
    script = """
      CREATE STREAM r (k BIGINT NOT NULL);
      CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM r GROUP BY k;
    """
    frame = spark.createDataFrame([(1,), (2,), (3,), (3,)], "k long")
    views = finished(maintain(spark, script, {"r": frame}, cells=2, trigger=AVAILABLE), running)
    assert sorted(shown(views["counts"])) == [(1,), (1,), (2,)]


def test_equal_rows_are_added_up_before_the_only_cell(
    spark: SparkSession, tmp_path: Path, running: list[Views]
) -> None:
    """In a place whose name Spark could take for a pattern."""
    script = """
      CREATE STREAM r (k BIGINT NOT NULL, note VARCHAR) WITH (rows = 1000000, distinct_k = 10);
      CREATE MATERIALIZED VIEW high AS SELECT sum(k) AS s FROM r WHERE k < (SELECT max(k) FROM r);
    """
    place = tmp_path / "100% [a] {b} ä"
    (place / "in").mkdir(parents=True)
    rows: list[tuple[str, str, tuple[Any, ...]]] = [("+", "r", (k, None)) for k in (1, 2, 2, 3)] + [
        ("-", "r", (2, None))
    ]
    write_events(relation("r", script), rows, tmp_path / "0.parquet", 0)
    (tmp_path / "in").mkdir()
    (tmp_path / "0.parquet").rename(tmp_path / "in" / "0.parquet")
    source = spark.readStream.schema("k long, note string, op int").parquet(str(tmp_path / "in"))
    views = finished(maintain(spark, script, {"r": source}, place, cells=2, trigger=AVAILABLE), running)
    assert views.progress[0]["rows"] == 3
    assert shown(views["high"]) == [(3,)]
    assert "equal" in views.explain()


def test_a_death_before_the_stream_loses_and_doubles_nothing(
    spark: SparkSession, inbox: Path, tmp_path: Path, running: list[Views]
) -> None:
    """Between a manifest and its publication, the last moment at which a batch is not known to be done."""
    old = spark.createDataFrame([(1, "lamp", Decimal("1.00"))], "shop bigint, item string, amount decimal(10,2)")
    sources = {"sales": old.limit(0), "shops": shops(spark)}
    for gone in (["-2.json", "-1.json"], ["-1.json"], []):
        views = maintain(spark, SALES, sources, tmp_path / "ck", cells=2, history={"sales": old}, trigger=AVAILABLE)
        finished(views, running)
        assert by_city(shown(views["by_city"])) == {"Rome": (1, Decimal("1.00"))}
        for name in gone:
            (tmp_path / "ck" / "viewlet" / "published" / name).unlink()
