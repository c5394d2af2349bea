"""A view as a table of any database: Derby, which is in Spark's jars, and H2 where Maven brings it."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.drive import Drive, started_driver
from tests.spark.maven import jars
from tests.spark.test_sinks import Changes, feed, summed
from viewlet.errors import Error
from viewlet.spark.sinks import Sink, jdbc

SCHEMA = "batch long, weight long, a int, b string, c double"
TYPES = {"createTableColumnTypes": "b VARCHAR(20)"}


@pytest.fixture(autouse=True)
def few_partitions(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(before))


@pytest.fixture
def url() -> str:
    return f"jdbc:derby:memory:{uuid.uuid4().hex};create=true"


def table(spark: SparkSession, url: str, **options: str) -> Counter[tuple[Any, ...]]:
    read = spark.read.format("jdbc").options(url=url, dbtable="v", **options)
    return Counter(map(tuple, read.load().collect()))


def give(spark: SparkSession, sink: Sink, micro_batch: int, changes: Changes) -> None:
    feed(spark, sink, micro_batch, changes, SCHEMA)


def view_changes(seed: int, batches: int, texts: tuple[str | None, ...] = ("", "x'y", "z")) -> list[Changes]:
    """Rows by the key (a, b), NULL among them: they come, change, go, and come again. Derby takes no NULL as text."""
    rng, told = random.Random(seed), list[Changes]()
    held: dict[tuple[int | None, str | None], float | None] = {}
    for batch in range(batches):
        changes: Changes = []
        for key in rng.sample([(a, b) for a in (None, 1, 2) for b in texts], 5):
            if key in held:
                changes.append((batch, -1, *key, held.pop(key)))
            if rng.random() < 0.7:
                held[key] = rng.choice([None, 0.5, float(batch)])
                changes.append((batch, 1, *key, held[key]))
        told.append(changes)
    return told


def check_rounds(spark: SparkSession, url: str, options: dict[str, str], rounds: list[Changes]) -> int:
    """The table is the view after every micro-batch; how many rows it has in the end."""
    assert any(weight < 0 and a is None for changes in rounds for _, weight, a, *_ in changes), "NULL is looked for"
    sink, seen = jdbc(url, "v", key=["a", "b"], options=options), list[tuple[Any, ...]]()
    for micro_batch, changes in enumerate(rounds):
        seen += changes
        for _ in range(2 if micro_batch == 2 else 1):  # a repeated one changes nothing
            give(spark, sink, micro_batch, changes)
        assert table(spark, url, **options) == summed(seen)
    with pytest.raises(
        Error, match=r"table v holds micro-batches up to \d, and a stream came that is at micro-batch 9"
    ):
        give(spark, sink, 9, rounds[0])
    return len(summed(seen))


def test_a_table_is_the_view_after_every_micro_batch_and_each_counts_once(spark: SparkSession, url: str) -> None:
    assert check_rounds(spark, url, TYPES, view_changes(seed=7, batches=3)) > 2


def on_h2(drive: Drive) -> int:
    """With text that is NULL among the keys."""
    url, options = "jdbc:h2:mem:v;DB_CLOSE_DELAY=-1", {"driver": "org.h2.Driver"}
    return check_rounds(drive.spark, url, options, view_changes(seed=5, batches=6, texts=("", "x'y", None)))


def test_another_database(soaking: bool, tmp_path: Path) -> None:
    """H2, with its driver among Spark's jars."""
    if not soaking:
        pytest.skip("a Spark with another jar: pytest --soak 2")
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, jars("com.h2database:h2:2.4.240")))}
    with started_driver(tmp_path / "log", settings) as driver:
        assert driver.call(on_h2) > 2


def test_what_the_view_does_not_explain_changes_nothing(spark: SparkSession, url: str, soaking: bool) -> None:
    if not soaking:
        pytest.skip("nine micro-batches: pytest --soak 2")
    sink = jdbc(url, "v", key="a", options=TYPES)
    give(spark, sink, 0, [(0, 1, 1, "x", 0.5)])
    refused: dict[str, Changes] = {
        "does not hold what the view did: 1 rows were to change, 0 could": [(1, -1, 7, "x", 0.5)],
        "does not hold what the view did: 0 rows were to change, 1 could": [(1, 1, 1, "y", 0.5)],
        "does not tell the view's rows apart": [(1, 1, 2, "x", 0.5), (1, 1, 2, "y", 0.5)],
    }
    for reason, changes in refused.items():
        with pytest.raises(Error, match=reason):
            give(spark, sink, 1, changes)
        assert table(spark, url) == Counter([(1, "x", 0.5)])
    give(spark, sink, 1, [(1, -1, 1, "x", 0.5), (1, 1, 1, "y", 0.5)])
    assert table(spark, url) == Counter([(1, "y", 0.5)])


def test_a_driver_that_comes_second_writes_nothing(spark: SparkSession, url: str) -> None:
    """Both have looked before either has written."""
    sink = jdbc(url, "v", key=["a"], options=TYPES)
    give(spark, sink, 0, [(0, 1, 1, "x", 0.5)])
    late = jdbc(url, "v", key=["a"], options=TYPES)
    with late._connected(spark) as database:  # type: ignore[attr-defined]
        held = late._held(database)  # type: ignore[attr-defined]
        database.commit()
        give(spark, sink, 1, [(1, 1, 2, "y", 0.5)])
        with pytest.raises(Error, match="another driver has done micro-batch 1"):
            late._remember(database, held, 1, 1)  # type: ignore[attr-defined]
    assert table(spark, url) == Counter([(1, "x", 0.5), (2, "y", 0.5)])


def test_mistakes_are_named(spark: SparkSession, url: str) -> None:
    changes: Changes = [(0, 1, 1, "x", 0.5)]
    with pytest.raises(Error, match="table v needs a key"):
        give(spark, jdbc(url, "v", key=[]), 0, changes)
    with pytest.raises(Error, match="key: the view has no column z; it has a, b, c"):
        give(spark, jdbc(url, "v", key=["z"]), 0, changes)
    with pytest.raises(Error, match="No suitable driver"):
        give(spark, jdbc("jdbc:nothing:x", "v", key=["a"]), 0, changes)
    spark.createDataFrame([(1,)], "a int").write.format("jdbc").options(url=url, dbtable="w").save()
    with pytest.raises(Error, match="table w holds rows that no sink wrote"):
        give(spark, jdbc(url, "w", key=["a"]), 0, changes)
