"""Sinks: the view that arrives is the view that was, whatever Spark repeats and whoever interferes."""

from __future__ import annotations

import math
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.paper.postgres import server
from viewlet.errors import CorruptError, Error
from viewlet.spark import maintain
from viewlet.spark.sinks import Sink, parquet, postgres, read_view

Changes = list[tuple[Any, ...]]  # (batch, weight, columns…)
SCHEMA = "batch long, weight long, a int, b string"


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    """Few partitions, since there is little in them, and a time zone in which some hours are missing."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "America/New_York"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, setting in settings.items():
        spark.conf.set(name, setting)
    yield
    for name, setting in before.items():
        spark.conf.set(name, setting)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with server("-c timezone=Asia/Kolkata") as url:  # whatever the server's zone, a point in time is one
        yield url


@pytest.fixture
def url(database: str, request: pytest.FixtureRequest) -> str:
    """A schema of its own for each test, the first that its tables are looked for in."""
    name = request.node.name.replace("[", "_").replace("]", "")
    execute(database, f'CREATE SCHEMA "{name}"')
    return f"{database}?options=-csearch_path%3D%22{name}%22"


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())


def rows(url: str, query: str = "SELECT * FROM v") -> Counter[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return Counter(connection.execute(query.encode()).fetchall())


def collected(view: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, view.collect()))


def summed(changes: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for _, weight, *row in changes:
        total[tuple(row)] += weight
    return +total


def feed(spark: SparkSession, sink: Sink, micro_batch: int, changes: Changes, schema: str = SCHEMA) -> None:
    sink(spark.createDataFrame(changes, schema), micro_batch)


def random_changes(seed: int, micro_batches: int) -> Iterator[Changes]:
    """A bag that changes in batches of which a micro-batch has several; NULLs and copies are in it."""
    draw = random.Random(seed)
    bag: Counter[tuple[Any, ...]] = Counter()
    batch = 0
    for _ in range(micro_batches):
        changes: Changes = []
        for _ in range(draw.randrange(4)):
            batch += 1
            for row in draw.sample(sorted(bag, key=repr), k=min(len(bag), 3)):
                gone = draw.randint(1, bag[row])
                bag[row] -= gone
                changes.append((batch, -gone, *row))
            for _ in range(4):
                row = (draw.choice([None, 1, 2, 3]), draw.choice([None, "", "x", 'a "quoted",\n\\. text']))
                came = draw.randint(1, 3)
                bag[row] += came
                changes.append((batch, came, *row))
            bag = +bag
        yield changes


# -- Parquet -----------------------------------------------------------------------------------------------------------


def test_files_hold_the_view_after_every_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Compactions come in between, and a micro-batch is repeated, as after a crash before Spark's commit."""
    sink, fed = parquet(str(tmp_path), compact_every=2), []
    for number, changes in enumerate(random_changes(seed=1, micro_batches=4)):
        feed(spark, sink, number, changes)
        fed += changes
        assert collected(read_view(spark, str(tmp_path))) == summed(fed)
    feed(spark, sink, number, changes)
    assert collected(read_view(spark, str(tmp_path))) == summed(fed)
    assert len(summed(fed)) > 3


def test_readers_keep_what_they_read_until_the_second_compaction(spark: SparkSession, tmp_path: Path) -> None:
    sink, path = parquet(str(tmp_path), compact_every=2), str(tmp_path)
    for number in range(3):
        feed(spark, sink, number, [(number, 1, number, "x")])
    before = read_view(spark, path)
    feed(spark, sink, 3, [(3, -1, 0, "x"), (3, 1, 3, "x")])
    assert collected(before) == Counter([(0, "x"), (1, "x"), (2, "x")])
    for number in (4, 5):
        feed(spark, sink, number, [(number, 1, number, "x")])
    assert collected(read_view(spark, path)) == Counter((n, "x") for n in range(1, 6))
    assert micro_batches_of(tmp_path / "bases") == {3, 5}
    assert micro_batches_of(tmp_path / "changes") == {4, 5}
    assert micro_batches_of(tmp_path / "manifests") == {3, 4, 5}


def micro_batches_of(directory: Path) -> set[int]:
    files = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    return {int(file.parts[0].partition("-")[0].partition(".")[0]) for file in files}


def test_an_attempt_that_failed_leaves_no_trace_in_the_view(spark: SparkSession, tmp_path: Path) -> None:
    sink = parquet(str(tmp_path))
    feed(spark, sink, 0, [(0, 1, 1, "x")])
    with pytest.raises(PySparkException, match="no disk"):
        sink(failing(spark, "no disk"), 1)
    assert collected(read_view(spark, str(tmp_path))) == Counter([(1, "x")])
    feed(spark, sink, 1, [(1, 1, 2, "y")])
    assert collected(read_view(spark, str(tmp_path))) == Counter([(1, "x"), (2, "y")])


def failing(spark: SparkSession, message: str) -> DataFrame:
    """Changes whose last partition fails, after the others were delivered."""
    b = F.when(F.col("id") == 39, F.raise_error(F.lit(message))).otherwise(F.lit("x"))
    return spark.range(0, 40, 1, 4).select(
        F.lit(1).cast("long").alias("batch"),
        F.lit(1).cast("long").alias("weight"),
        F.col("id").cast("int").alias("a"),
        b.alias("b"),
    )


def test_values_that_are_not_equal_to_themselves_or_have_two_forms(spark: SparkSession, tmp_path: Path) -> None:
    """What came in one form goes in the other."""
    sink, schema = parquet(str(tmp_path)), "batch long, weight long, d double, n decimal(20,2)"
    nan, other_nan = math.nan, -math.nan
    feed(spark, sink, 0, [(0, 1, nan, None), (0, 2, None, Decimal("1.50")), (0, 1, 0.0, Decimal(7))], schema)
    feed(spark, sink, 1, [(1, -1, other_nan, None), (1, -1, -0.0, Decimal("7.00"))], schema)
    assert collected(read_view(spark, str(tmp_path))) == Counter({(None, Decimal("1.50")): 2})


def test_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    sink, names = parquet(str(tmp_path), compact_every=1), ["WEIGHT_", "a b", "a.b", "`", "select"]
    changes = spark.createDataFrame([(0, 2, 1, 2, 3, 4, 5)]).toDF("batch", "weight", *names)
    sink(changes, 0)
    view = read_view(spark, str(tmp_path))
    assert view.columns == names
    assert collected(view) == Counter({(1, 2, 3, 4, 5): 2})


def test_what_went_before_it_came_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    feed(spark, parquet(str(tmp_path)), 0, [(0, -1, 1, "x")])
    with pytest.raises(PySparkException, match="went more often than it came"):
        read_view(spark, str(tmp_path)).collect()


def test_no_view_and_a_spoilt_manifest(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Error, match="there is no view"):
        read_view(spark, str(tmp_path))
    feed(spark, parquet(str(tmp_path)), 0, [])
    assert collected(read_view(spark, str(tmp_path))) == Counter()
    manifest = tmp_path / "manifests" / "0.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"base": null', b'"base": "0"'))
    with pytest.raises(CorruptError, match=r"0\.json fails its checksum"):
        read_view(spark, str(tmp_path))


def test_another_view_in_the_same_place_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    sink = parquet(str(tmp_path))
    feed(spark, sink, 0, [])
    with pytest.raises(Error, match="keep another view in another place"):
        feed(spark, sink, 1, [(1, 1, 1)], "batch long, weight long, a int")


def test_nonsense_is_refused() -> None:
    with pytest.raises(Error, match="compact_every is 0"):
        parquet("anywhere", compact_every=0)


# -- both --------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["parquet", "postgres"])
def kept(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> tuple[Sink, Callable[[], Counter[Any]]]:
    """A sink and its view."""
    if request.param == "parquet":
        place = str(tmp_path / "view")
        return parquet(place), lambda: collected(read_view(spark, place))
    url = request.getfixturevalue("url")
    return postgres(url, "v"), lambda: rows(url)


Kept = tuple[Sink, Callable[[], "Counter[Any]"]]


def test_another_stream_is_refused(spark: SparkSession, kept: Kept) -> None:
    sink, view = kept
    with pytest.raises(Error, match="is new, and a stream came that is at micro-batch 1"):
        feed(spark, sink, 1, [(0, 1, 1, "x")])
    feed(spark, sink, 0, [(0, 1, 1, "x")])
    feed(spark, sink, 1, [(1, 1, 2, "y")])
    for micro_batch, batch in ((3, 3), (0, 0), (1, 2)):  # a gap, the start, a last one that is not the same
        with pytest.raises(Error, match=f"holds micro-batches up to 1, and a stream .* at micro-batch {micro_batch}"):
            feed(spark, sink, micro_batch, [(batch, 1, 3, "z")])
    assert view() == Counter([(1, "x"), (2, "y")])


def test_what_is_no_change_is_refused(spark: SparkSession, kept: Kept) -> None:
    with pytest.raises(Error, match=r"takes batch, weight and a view's columns, not a, b: .*views\.changes"):
        feed(spark, kept[0], 0, [], "a int, b int")


def test_a_stream_that_dies_between_the_sink_and_its_own_commit(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    """Spark repeats the micro-batch when the stream is started again; then the stream goes on."""
    sink, view = kept
    source, checkpoint = tmp_path / "source", str(tmp_path / "checkpoint")
    calls: list[int] = []

    def dies_at_first(changes: DataFrame, micro_batch: int) -> None:
        calls.append(micro_batch)
        sink(changes, micro_batch)
        if calls == [0]:
            raise RuntimeError("the driver's machine is gone")

    def run() -> None:
        stream = spark.readStream.schema(SCHEMA).parquet(str(source)).writeStream.foreachBatch(dies_at_first)
        stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()

    spark.createDataFrame([(0, 2, 1, "x"), (0, 1, 2, None)], SCHEMA).write.mode("append").parquet(str(source))
    with pytest.raises(PySparkException, match="the driver's machine is gone"):
        run()
    run()
    spark.createDataFrame([(1, -1, 1, "x"), (1, -1, 2, None)], SCHEMA).write.mode("append").parquet(str(source))
    run()
    assert calls == [0, 0, 1]
    assert view() == Counter([(1, "x")])


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def test_a_bag_holds_the_view_after_every_micro_batch(spark: SparkSession, url: str) -> None:
    sink, fed = postgres(url, "v"), []
    for number, changes in enumerate(random_changes(seed=2, micro_batches=5)):
        feed(spark, sink, number, changes)
        fed += changes
        assert rows(url) == summed(fed)
        assert rows(url, "SELECT target, batch FROM viewlet_batches") == Counter([("v", number)])
    feed(spark, sink, number, changes)
    assert rows(url) == summed(fed)
    assert len(summed(fed)) > 3


def test_a_key_is_inserted_updated_moved_and_deleted(spark: SparkSession, url: str) -> None:
    """Two batches of the view in one micro-batch: what is in between is never seen."""
    schema = "batch long, weight long, a int, b string, total double"
    sink = postgres(url, "v", key=("a", "b"))
    feed(
        spark,
        sink,
        0,
        [(0, 1, 1, "x", 1.0), (0, 1, None, "x", 2.0), (0, 1, None, None, 3.0), (0, 1, 4, "x", 4.0)],
        schema,
    )
    execute(url, "ALTER TABLE v ADD note text; UPDATE v SET note = 'kept'")
    feed(
        spark,
        sink,
        1,
        [
            (1, -1, 1, "x", 1.0),
            (1, 1, 1, "x", 1.5),
            (2, -1, 1, "x", 1.5),
            (2, 1, 1, "x", 1.75),  # updated twice
            (1, -1, None, "x", 2.0),
            (1, 1, None, "x", None),  # updated, found by a NULL
            (1, -1, None, None, 3.0),  # gone
            (2, -1, 4, "x", 4.0),
            (2, 1, 5, "x", 4.0),  # another key
            (1, 1, 9, "x", 9.0),
            (2, -1, 9, "x", 9.0),  # never there
        ],
        schema,
    )
    assert rows(url) == Counter([(1, "x", 1.75, "kept"), (None, "x", None, "kept"), (5, "x", 4.0, None)])


def test_a_view_that_is_all_key(spark: SparkSession, url: str) -> None:
    sink = postgres(url, "v", key=("a", "b"))
    feed(spark, sink, 0, [(0, 1, 1, "x"), (0, 1, 2, "x")])
    feed(spark, sink, 1, [(1, -1, 1, "x"), (1, 1, 3, "x")])
    assert rows(url) == Counter([(2, "x"), (3, "x")])


def test_a_key_that_does_not_tell_rows_apart_is_refused(spark: SparkSession, url: str) -> None:
    sink = postgres(url, "v", key="a")
    feed(spark, sink, 0, [(0, 1, 1, "x")])
    not_keys: list[Changes] = [
        [(1, 1, 2, "y"), (1, 1, 2, "z")],  # two at once
        [(1, 1, None, "y"), (1, 1, None, "z")],
        [(1, 2, 2, "y")],  # two copies
        [(1, 1, 1, "y")],  # one after the other
        [(1, -1, 1, "x"), (1, 1, 1, "y"), (1, 1, 1, "z")],  # two for one
    ]
    for changes in not_keys:
        with pytest.raises(Error, match=r"key=\(a\) does not tell the view's rows apart"):
            feed(spark, sink, 1, changes)
    assert rows(url) == Counter([(1, "x")])


@pytest.mark.parametrize("key", [None, ("a",)])
def test_a_table_that_others_changed_is_refused(spark: SparkSession, url: str, key: tuple[str, ...] | None) -> None:
    sink = postgres(url, "v", key=key)
    feed(spark, sink, 0, [(0, 1, 1, "x"), (0, 1, 2, "x")])
    execute(url, "DELETE FROM v WHERE a = 1")
    with pytest.raises(Error, match=r"2 rows were to change, 1 could.*somebody else wrote to the table"):
        feed(spark, sink, 1, [(1, -1, 1, "x"), (1, -1, 2, "x")])
    assert rows(url) == Counter([(2, "x")])


def test_every_type_arrives_as_it_was(spark: SparkSession, url: str) -> None:
    """In a database and a session that are each in another time zone."""
    changes = spark.sql(
        """
        SELECT 0L AS batch, 1L AS weight, true AS bool, -7Y AS tiny, 32767S AS small, -2147483648 AS whole,
          9223372036854775807L AS big, 0.1F AS single, 0.1D AS double, double('-infinity') AS infinite,
          double('NaN') AS nan, -12345678901234567890.12BD AS exact, 'ü\\t"\\\\' AS text, '' AS nothing,
          x'00ff27' AS bytes, date'1582-10-15' AS day, timestamp'2024-03-10 07:30:00.000001Z' AS instant,
          timestamp_ntz'2024-03-10 02:30:00' AS wall, CAST(NULL AS timestamp) AS never
        """
    )
    postgres(url, "v")(changes, 0)
    (row,) = rows(url, "SELECT single, nan, bytes, wall, instant, never FROM v")
    assert row[0] == pytest.approx(0.1)
    assert math.isnan(row[1])
    assert row[2:] == (
        b"\x00\xff'",
        datetime(2024, 3, 10, 2, 30),
        datetime(2024, 3, 10, 7, 30, 0, 1, tzinfo=timezone.utc),
        None,
    )
    (row,) = rows(url, "SELECT bool, tiny, small, whole, big, double, infinite, exact, text, nothing, day FROM v")
    assert row == (
        True, -7, 32767, -(2**31), 2**63 - 1, 0.1, -math.inf, Decimal("-12345678901234567890.12"), 'ü\t"\\', "",
        date(1582, 10, 15),
    )  # fmt: skip
    types = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0"
    assert set(rows(url, types)) >= {("numeric(22,2)",), ("timestamp with time zone",), ("bytea",), ("real",)}
    postgres(url, "v")(
        changes.withColumn("batch", F.lit(1).cast("long")).withColumn("weight", F.lit(-1).cast("long")), 1
    )
    assert rows(url) == Counter()


def test_a_type_without_a_counterpart_is_refused(spark: SparkSession, url: str) -> None:
    with pytest.raises(Error, match="table v: column l is array<int>, which the sink cannot write"):
        feed(spark, postgres(url, "v"), 0, [], "batch long, weight long, l array<int>")


def test_a_micro_batch_that_fails_on_its_way_changes_nothing(spark: SparkSession, url: str) -> None:
    sink = postgres(url, "v")
    feed(spark, sink, 0, [(0, 1, 1, "x")])
    with pytest.raises(Exception, match="executor on fire"):  # Spark's own, as it comes
        sink(failing(spark, "executor on fire"), 1)
    execute(url, "ALTER TABLE v ADD CHECK (a < 100)")
    with pytest.raises(Error, match=r"table v, micro-batch 1: .*violates check constraint"):
        feed(spark, sink, 1, [(1, 1, 2, "y"), (1, -1, 1, "x"), (1, 1, 100, "z")])
    with pytest.raises(Error, match=r"(?s)micro-batch 1: invalid byte sequence.*Nothing of it was written"):
        feed(spark, sink, 1, [(1, 1, 2, "\0")])
    assert rows(url) == Counter([(1, "x")])
    feed(spark, sink, 1, [(1, 1, 2, "y")])
    assert rows(url) == Counter([(1, "x"), (2, "y")])


def test_two_drivers_at_once_count_once(spark: SparkSession, url: str) -> None:
    """One of them was thought dead. They also both find that nothing is there yet."""
    sink = postgres(url, "v")
    changes = spark.createDataFrame([(0, 1, n, "x") for n in range(100)], SCHEMA)
    drivers = [threading.Thread(target=sink, args=(changes, 0)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert rows(url) == Counter((n, "x") for n in range(100))


def test_tables_that_are_there_already(spark: SparkSession, url: str) -> None:
    execute(url, "CREATE TABLE old AS SELECT 1 AS a, 'x' AS b")
    with pytest.raises(Error, match="table old holds rows that no sink wrote"):
        feed(spark, postgres(url, "old"), 0, [])
    execute(url, "CREATE TABLE parted (a int, b text) PARTITION BY LIST (b)")
    with pytest.raises(Error, match="parted is no ordinary table: without key"):
        feed(spark, postgres(url, "parted"), 0, [])
    execute(url, "CREATE TABLE bare (b text, a bigint)")
    with pytest.raises(Error, match="no unique or exclusion constraint"):
        feed(spark, postgres(url, "bare", key="a"), 0, [(0, 1, 1, "x")])
    execute(url, "ALTER TABLE bare ADD PRIMARY KEY (a)")
    feed(spark, postgres(url, "bare", key="a"), 0, [(0, 1, 1, "x")])
    assert rows(url, "SELECT a, b FROM bare") == Counter([(1, "x")])


def test_a_schema_and_names_that_need_quotes(spark: SparkSession, url: str) -> None:
    execute(url, 'CREATE SCHEMA "My Schema"')
    sink = postgres(url, 'the "view"', key=("Weight %s",), schema="My Schema")
    feed(spark, sink, 0, [(0, 1, 1, None)], "batch long, weight long, `Weight %s` int, `{a}` string")
    feed(spark, sink, 1, [(1, -1, 1, None), (1, 1, 1, "x")], "batch long, weight long, `Weight %s` int, `{a}` string")
    assert rows(url, 'SELECT "Weight %s", "{a}" FROM "My Schema"."the ""view"""') == Counter([(1, "x")])
    assert rows(url, 'SELECT target, batch, last_change FROM "My Schema".viewlet_batches') == Counter(
        [('the "view"', 1, 1)]
    )


def test_errors_say_what_is_missing_and_no_password(spark: SparkSession, tmp_path: Path) -> None:
    sink = postgres(f"postgresql://someone:secret@/nowhere?host={tmp_path}", "v", key="c")
    assert "secret" not in repr(sink)
    with pytest.raises(Error, match="key: the view has no column c; it has a, b"):
        feed(spark, sink, 0, [])
    sink = postgres(f"postgresql://someone:secret@/nowhere?host={tmp_path}", "v")
    with pytest.raises(Error, match=r"PostgreSQL, table v, micro-batch 0: .*No such file") as refused:
        feed(spark, sink, 0, [])
    assert "secret" not in str(refused.value)


def test_a_missing_psycopg_fails_with_the_sentence_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "viewlet.spark.sinks.upsert", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Error, match=r"needs psycopg: pip install 'viewlet\[postgres\]'"):
        postgres("postgresql://", "v")


# -- from a maintained view --------------------------------------------------------------------------------------------

SALES = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR);
CREATE MATERIALIZED VIEW items AS SELECT shop, item FROM sales;
CREATE MATERIALIZED VIEW per_item AS SELECT item, count(*) AS n FROM sales GROUP BY item;
"""


def test_views_of_a_query_arrive_in_both_sinks(spark: SparkSession, url: str, tmp_path: Path) -> None:
    schema, inbox = "shop long, item string, op int", tmp_path / "sales"
    events = [[(1, "pen", 1), (1, "pen", 1), (2, None, 1)], [(1, "pen", -1), (2, "ink", 1)], [(2, None, -1)]]
    for number, rows_ in enumerate(events):
        spark.createDataFrame(rows_, schema).coalesce(1).write.parquet(str(inbox / f"{number}"))
    sales = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{inbox}/*")
    once = {"availableNow": True}
    views = maintain(spark, SALES, {"sales": sales}, str(tmp_path / "checkpoint"), cells=2, trigger=once)
    try:
        views.query.awaitTermination()
        sinks = {"items": parquet(str(tmp_path / "items")), "per_item": postgres(url, "per_item", key="item")}
        for name, sink in sinks.items():
            stream = views.changes(name).writeStream.foreachBatch(sink).trigger(availableNow=True)
            stream.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).start().awaitTermination()
        assert collected(read_view(spark, str(tmp_path / "items"))) == collected(views["items"])
        assert rows(url, "SELECT * FROM per_item") == collected(views["per_item"]) == Counter([("pen", 1), ("ink", 1)])
    finally:
        views.stop()
