"""A view as a table of Delta Lake and of Iceberg, on the newest Spark that each of them is made for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.oracle.oracle import difference
from tests.spark.drive import Drive, Driver, started_driver
from tests.spark.harness import shown
from tests.spark.maven import jars
from tests.spark.pysparks import environment_or_skip
from tests.spark.test_change import BY_BROKER, Life, script_of
from tests.spark.test_jdbc import view_changes
from tests.spark.test_sinks import Changes, feed, summed
from viewlet.errors import Error
from viewlet.spark.sinks import Sink, delta, iceberg

SCHEMA = "batch long, weight long, a int, b string, c double"
NOT_EXPLAINED = "does not hold what the view did: somebody else wrote to it"


@dataclass(frozen=True)
class Lake:
    """``spark`` is the PySpark; ``packages`` are those of Maven's; ``settings`` say where the warehouse is."""

    spark: str
    packages: tuple[str, ...]
    settings: dict[str, str]
    table: str


SINKS = {"delta": delta, "iceberg": iceberg}
LAKES = {
    "delta": Lake(
        "4.2.1",
        ("io.delta:delta-spark_4.2_2.13:4.4.0!", "io.delta:delta-storage:4.4.0!"),
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
        "{folder}/{name}",
    ),
    "iceberg": Lake(
        "4.1.0",
        ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0!",),
        {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": "{folder}",
        },
        "lake.db.{name}",
    ),
}


@pytest.fixture(scope="module", params=list(LAKES))
def driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Driver, str, str]]:
    """With what the format's name and a table's are."""
    if request.config.getoption("--soak") < 2:
        pytest.skip("another PySpark, and what Maven brings: pytest --soak 2")
    lake, folder = LAKES[request.param], tmp_path_factory.mktemp(request.param)
    own = {name: setting.format(folder=folder) for name, setting in lake.settings.items()}
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, jars(*lake.packages))), **own}
    with started_driver(folder / "log", settings, environment_or_skip(lake.spark)) as driver:
        yield driver, request.param, lake.table.replace("{folder}", str(folder))


def table(drive: Drive, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, read(drive, name).collect()))


def read(drive: Drive, name: str) -> DataFrame:
    """A session holds on to the version of Iceberg's that it has read before."""
    if "/" in name:
        return drive.spark.table(f"delta.`{name}`")
    drive.spark.catalog.refreshTable(name)
    return drive.spark.table(name)


def refusal(drive: Drive, sink: Sink, micro_batch: int, changes: Changes) -> str:
    with pytest.raises(Error) as refused:
        feed(drive.spark, sink, micro_batch, changes, SCHEMA)
    return str(refused.value)


# -- over there --------------------------------------------------------------------------------------------------------


def rounds(drive: Drive, format_: str, name: str) -> int:
    """The table is the view after every micro-batch; some are repeated, and some say nothing."""
    told = view_changes(seed=5, batches=5, texts=("", "x'y", None))
    told[2:2] = [[]]
    seen = list[tuple[Any, ...]]()
    for micro_batch, changes in enumerate(told):
        sink = SINKS[format_](name, key=["a", "b"])
        seen += changes
        for _ in range(2 if micro_batch in (2, 3, 5) else 1):
            feed(drive.spark, sink, micro_batch, changes, SCHEMA)
        assert table(drive, name) == summed(seen), micro_batch
    assert "holds micro-batches up to 5, and a stream came that is at micro-batch 9" in refusal(drive, sink, 9, told[0])
    assert "holds micro-batches up to 5, and a stream came that is at micro-batch 5" in refusal(drive, sink, 5, [])
    return len(summed(seen))


def mistakes(drive: Drive, format_: str, name: str) -> None:
    sink = SINKS[format_](name, key="a")
    feed(drive.spark, sink, 0, [(0, 1, 1, "x", 0.5)], SCHEMA)
    one = Counter([(1, "x", 0.5)])
    refused: dict[str, list[Changes]] = {
        NOT_EXPLAINED: [[(1, -1, 7, "x", 0.5)], [(1, 1, 1, "y", 0.5)], [(1, 1, 2, "z", 0.5), (1, -1, 7, "x", 0.5)]],
        "does not tell the view's rows apart": [[(1, 1, 2, "x", 0.5), (1, 1, 2, "y", 0.5)]],
    }
    for why, several in refused.items():
        for changes in several:
            assert why in refusal(drive, sink, 1, changes)
            assert table(drive, name) == one
    drive.spark.sql(f"DELETE FROM {f'delta.`{name}`' if '/' in name else name} WHERE a = 9")  # a version of somebody's
    feed(drive.spark, sink, 1, [(1, -1, 1, "x", 0.5), (1, 1, 1, "y", 0.5)], SCHEMA)
    assert table(drive, name) == Counter([(1, "y", 0.5)])
    empty = drive.spark.createDataFrame([(1, "x", 0.5)], "a int, b string, c double")
    other = f"{name}_other"
    empty.write.format("delta").save(other) if "/" in name else empty.writeTo(other).using("iceberg").create()
    assert "holds rows that no sink wrote" in refusal(drive, SINKS[format_](other, key="a"), 0, [])
    assert "needs a key" in refusal(drive, SINKS[format_](name, key=[]), 0, [])


def follows(drive: Drive, format_: str, name: str, folder: str) -> None:
    """A view of a query, by restarts of query and sink: equal to the referee's after each."""
    life = Life(drive.spark, Path(folder))
    for _ in range(3):
        life.give()
        views = life.start(script_of({"by_broker": BY_BROKER}), ("bids",), cells=2)
        views.query.awaitTermination()
        writer = views.changes("by_broker").writeStream.foreachBatch(SINKS[format_](name, key="broker_id"))
        writer = writer.option("checkpointLocation", f"{folder}/marks").trigger(availableNow=True)
        writer.start().awaitTermination()
        views.stop()
        held = shown(read(drive, name))
        expected = list(life.oracle.rows(BY_BROKER))
        assert len(expected) > 1
        assert difference(held, expected) is None


# -- here --------------------------------------------------------------------------------------------------------------


def test_a_table_is_the_view_after_every_micro_batch(driver: tuple[Driver, str, str]) -> None:
    there, format_, name = driver
    assert there.call(rounds, format_, name.format(name="rounds")) > 2


def test_what_the_view_does_not_explain_changes_nothing(driver: tuple[Driver, str, str]) -> None:
    there, format_, name = driver
    there.call(mistakes, format_, name.format(name="mistakes"))


def test_a_view_of_a_query_is_followed(driver: tuple[Driver, str, str], tmp_path: Path) -> None:
    there, format_, name = driver
    there.call(follows, format_, name.format(name="follows"), str(tmp_path))
