"""``spark.read.format("viewlet")``: the same rows and changes as a query's own handles give, without the query."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.harness import shown, write_events
from viewlet import Error
from viewlet.durable.store import Store
from viewlet.schema import Relation
from viewlet.spark import Views, maintain, register, tables
from viewlet.spark.driver.source import ChangeFiles, ChangeStream, ViewSource, repeated, summed
from viewlet.spark.job import known_job
from viewlet.sql.translate import nothing
from viewlet.workloads.streams import Event

SCRIPT = """
CREATE STREAM trips
  (city VARCHAR, day DATE NOT NULL, at TIMESTAMP, paid DECIMAL(10,2), far DOUBLE, good BOOLEAN NOT NULL);
CREATE MATERIALIZED VIEW log AS SELECT city, day, at, paid, far, good FROM trips;
CREATE MATERIALIZED VIEW by_city AS
  SELECT city, count(*) AS n, sum(paid) AS paid, avg(far) AS "how far" FROM trips GROUP BY city;
CREATE MATERIALIZED VIEW never AS SELECT city FROM trips WHERE paid > 1000000;
CREATE MATERIALIZED VIEW days AS SELECT day FROM trips WHERE good;
"""
DAY, AT = dt.date(2026, 2, 28), dt.datetime(2026, 2, 28, 23, 59, 59, 999999)
ROME = ("Rome", DAY, AT, Decimal("3.50"), 1.5, True)
NOWHERE = (None, DAY, None, None, None, False)
FAR = ("Oslo", dt.date(1969, 1, 1), AT, Decimal("-0.01"), math.inf, True)
BATCHES: list[list[Event]] = [
    [("+", "trips", ROME), ("+", "trips", ROME), ("+", "trips", NOWHERE), ("+", "trips", FAR)],
    [("-", "trips", ROME), ("+", "trips", NOWHERE), ("+", "trips", ("", DAY, AT, Decimal("1.00"), -0.0, True))],
    [("-", "trips", FAR), ("+", "trips", ("Rome", DAY, AT, Decimal("9.25"), 0.25, True))],
]
SCHEMA = "city string, day date, at timestamp_ntz, paid decimal(10,2), far double, good boolean, op int"
VIEWS = ("log", "by_city", "never", "days")


def trips() -> Relation:
    return nothing("sql").followed(SCRIPT).script.relations[0]


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    folder = tmp_path_factory.mktemp("trips")
    for number, batch in enumerate(BATCHES):
        write_events(trips(), batch, folder / f"{number}.parquet", number)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    views = maintain(spark, SCRIPT, {"trips": stream}, checkpoint, cells=2, trigger={"availableNow": True})
    views.query.awaitTermination()
    yield views
    views.stop()


@pytest.fixture(scope="module")
def checkpoint(views: Views) -> str:
    return str(views._runner.checkpoint)


@pytest.fixture(scope="module")
def other(views: Views, spark: SparkSession) -> SparkSession:
    """A session that has not heard of the query, beside one that knows the format."""
    register(spark)
    session = spark.newSession()
    register(session)
    return session


def loaded(session: SparkSession, checkpoint: str, view: str, **options: Any) -> DataFrame:
    return session.read.format("viewlet").options(checkpoint=checkpoint, **options).load(view)


def followed(changes: DataFrame, marks: Path) -> Counter[tuple[Any, ...]]:
    """All changes that a stream gives until it has none, each as often as it came."""
    rows: Counter[tuple[Any, ...]] = Counter()
    writer = changes.writeStream.foreachBatch(lambda frame, _: rows.update(shown(frame)))
    writer.option("checkpointLocation", str(marks)).trigger(availableNow=True).start().awaitTermination()
    return rows


def test_rows_are_those_of_the_views_as_of_any_batch(views: Views, other: SparkSession, checkpoint: str) -> None:
    for view in VIEWS:
        frame = loaded(other, checkpoint, view)
        assert frame.dtypes == views[view].dtypes, view
        assert Counter(shown(frame)) == Counter(shown(views[view])), view
    for view in ("log", "by_city"):
        for batch in range(len(BATCHES) - 1):
            then = Counter(shown(loaded(other, checkpoint, view, batch=batch)))
            assert then == Counter(shown(views.at(batch)[view])), (view, batch)
    assert shown(loaded(other, checkpoint, "log", batch=0)).count(ROME) == 2, "a row may be there twice"
    assert shown(loaded(other, checkpoint, "never")) == []
    assert loaded(other, checkpoint, "log").rdd.getNumPartitions() == 2, "one for each cell"


def test_changes_are_those_of_the_views(views: Views, other: SparkSession, checkpoint: str, tmp_path: Path) -> None:
    reader = other.readStream.format("viewlet").options(checkpoint=checkpoint, changes=True)
    for view in ("log", "by_city"):
        own = views.changes(view)
        assert reader.load(view).dtypes == own.dtypes
        changes = followed(reader.load(view), tmp_path / view)
        assert changes == followed(own, tmp_path / f"{view}-own")
        assert changes == Counter(shown(loaded(other, checkpoint, view, changes=True)))
        folded: Counter[tuple[Any, ...]] = Counter()
        for (_, weight, *row), times in changes.items():
            folded[tuple(row)] += weight * times
        assert Counter(shown(views[view])) == +folded
    late = followed(reader.option("since", 2).load("log"), tmp_path / "late")
    assert {batch for batch, *_ in late} == {2}
    assert followed(reader.option("since", 2).load("log"), tmp_path / "late") == Counter(), "it goes on where it was"


def test_sql_asks_all_views_of_one_batch(views: Views, other: SparkSession, checkpoint: str) -> None:
    assert tables(other, checkpoint, batch=1) == list(VIEWS)
    joined = other.sql("SELECT l.city, c.n FROM log l JOIN by_city c ON l.city <=> c.city WHERE NOT l.good")
    assert shown(joined) == [(None, 2), (None, 2)]
    assert tables(other, checkpoint) == list(VIEWS)
    assert shown(other.sql("SELECT count(*) FROM log")) == [(5,)]


def test_mistakes_are_named(views: Views, other: SparkSession, checkpoint: str, tmp_path: Path) -> None:
    def refused(**options: str) -> str:
        with pytest.raises(Error) as refusal:
            ViewSource(options)
        return str(refusal.value)

    there = {"checkpoint": checkpoint, "path": "log"}
    assert 'is not told its checkpoint: say option("checkpoint"' in refused(path="log")
    assert "is not told its path: say load(" in refused(checkpoint=checkpoint)
    assert "has no view nope; it has log, by_city, never, days" in refused(checkpoint=checkpoint, path="nope")
    assert "holds no state of a maintained script" in refused(checkpoint=str(tmp_path), path="log", batch="0")
    assert "neither true nor false" in refused(**there, changes="perhaps")
    assert "no number of a batch" in refused(**there, batch="last")
    assert 'say option("changes", True) too' in refused(**there, since="1")
    with pytest.raises(Exception, match="there is no state of batch 77"):
        shown(loaded(other, checkpoint, "log", batch=77))
    source = ViewSource(there)
    with pytest.raises(Error, match=r'the stream of its changes: say option\("changes", True\)'):
        source.streamReader(source.schema())
    follower = ViewSource({**there, "changes": "true"})
    with pytest.raises(Error, match="of another version of viewlet or of another source"):
        follower.streamReader(follower.schema()).partitions({"logOffset": 3}, {"batch": 3})


def test_a_follower_that_comes_too_late_is_told(views: Views, checkpoint: str, tmp_path: Path) -> None:
    """Of what is gone in the middle, too: a batch that is missed would never be noticed."""
    source = ViewSource({"checkpoint": checkpoint, "path": "log", "changes": "true"})
    stream = ChangeStream(source, source.schema())
    assert stream.initialOffset() == {"batch": -2}
    assert stream.latestOffset() == {"batch": 3}
    partitions = stream.partitions({"batch": 1}, {"batch": 3})
    store = Store.of(checkpoint)
    note = store.read("published/1.json").to_pybytes()
    store.delete(["published/1.json"])
    with pytest.raises(Error, match="the changes of log in batch 1 are deleted by now"):
        stream.partitions({"batch": 0}, {"batch": 3})
    assert stream.partitions({"batch": 2}, {"batch": 3})
    store.write("published/1.json", note)
    read = pa.Table.from_batches([rows for partition in partitions for rows in stream.read(partition)])
    assert set(read.column("batch").to_pylist()) == {1, 2}
    for partition in partitions:
        assert isinstance(partition, ChangeFiles)
        partition.files = [(batch, f"{path}.gone") for batch, path in partition.files]
        with pytest.raises(Error, match="are deleted by now: read them in time"):
            list(stream.read(partition))


def test_equal_rows_are_summed_as_spark_sums_them() -> None:
    nan, odd = float("nan"), -float("nan")
    rows = pa.table(
        {
            "weight": [1, 2, -1, 1, -1, 1, 1, -3, 3],
            "a.b": pa.array([0.0, -0.0, None, None, 7.0, nan, odd, 2.0, 2.0]),
            "weight of": ["x", "x", None, None, "x", None, None, "", ""],
        }
    )
    by_row = {tuple(row): weight for weight, *row in zip(*summed(rows).to_pydict().values(), strict=True)}
    assert by_row.pop((0.0, "x")) == 3
    assert by_row.pop((7.0, "x")) == -1
    ((key, weight),) = by_row.items()
    assert math.isnan(key[0])
    assert weight == 2
    twice = repeated(pa.table({"weight": [2, 1, 3], "k": ["a", None, "c"]}))
    assert twice.to_pydict() == {"k": ["a", "a", None, "c", "c", "c"]}


def test_the_script_of_a_checkpoint_keeps_its_dialect(tmp_path: Path) -> None:
    store = Store.of(str(tmp_path))
    script = "CREATE STREAM r (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM r;"
    for dialect, nullable in (("sql", True), ("paper", False)):
        store.write("job.txt", f"identity\ncells=2 strategy=optimized dialect={dialect}\n{script}".encode())
        assert known_job(str(tmp_path)).results["v"].columns[0].nullable == nullable
