"""Topics of Kafka's in and out, on a real broker: the views equal DuckDB's after every micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.oracle.oracle import Row
from tests.spark.broker import CONNECTOR, started_broker
from tests.spark.drive import Drive, Driver, started_driver
from tests.spark.maven import jars
from viewlet.errors import Error
from viewlet.spark import kafka, maintain
from viewlet.spark.sinks import kafka as topic_sink

ROUNDS = 3
ITEMS = """
CREATE STREAM items (id BIGINT NOT NULL, kind VARCHAR, x BIGINT);
CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n, sum(x) AS s FROM items GROUP BY kind;
"""
COPIED = """
CREATE STREAM kinds (kind VARCHAR, n BIGINT, s BIGINT);
CREATE MATERIALIZED VIEW copied AS SELECT kind, n, s, count(*) AS c FROM kinds GROUP BY kind, n, s;
"""
COLUMNS = "id long, kind string, x long"
Held = dict[int, dict[str, Any]]
Message = tuple[str | None, str | None]


def test_without_its_connector_the_source_says_how_to_get_it(spark: SparkSession) -> None:
    with pytest.raises(
        Error, match=r"Spark has no Kafka source here: start it with --packages org\.apache\.spark:spark-"
    ):
        kafka(spark, "127.0.0.1:1", "t", COLUMNS)
    with pytest.raises(Error, match="envelope='xml' is not known"):
        kafka(spark, "127.0.0.1:1", "t", COLUMNS, envelope="xml")  # type: ignore[arg-type]


# -- a broker ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.config.getoption("--soak") < 2:
        pytest.skip("a broker, and what Maven brings: pytest --soak 2")
    with started_broker(tmp_path_factory.mktemp("broker")) as servers:
        yield servers


@pytest.fixture(scope="module")
def driver(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """With Spark's connector in it, which the other tests' Spark does not have."""
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, jars(*CONNECTOR)))}
    with started_driver(tmp_path_factory.mktemp("driver") / "log", settings) as driver:
        yield driver


def changed(rng: Random, held: Held, envelope: str) -> list[Message]:
    """Rows come, change and go; the messages that say so."""
    messages: list[Message] = []
    for id_ in rng.sample(range(12), 8):
        before = held.pop(id_, None)
        after = {"id": id_, "kind": rng.choice([None, "a", "b"]), "x": rng.choice([None, 2**60, -3])}
        after = after if before is None or rng.random() < 0.7 else None
        if after is not None:
            held[id_] = after
        key = json.dumps({"id": id_})
        if envelope == "json":
            messages.append((key, None if after is None else json.dumps(after)))
        else:
            op = "d" if after is None else "c" if before is None else "u"
            messages.append((key, json.dumps({"before": before, "after": after, "op": op})))
    return messages


def expected(held: Held) -> list[Row]:
    with duckdb.connect() as referee:
        referee.execute("CREATE TABLE items (id BIGINT, kind VARCHAR, x BIGINT)")
        for row in held.values():
            referee.execute("INSERT INTO items VALUES (?, ?, ?)", list(row.values()))
        return referee.execute("SELECT kind, count(*), sum(x) FROM items GROUP BY kind").fetchall()


def send(drive: Drive, servers: str, topic: str, messages: list[Message]) -> None:
    frame = drive.spark.createDataFrame(messages, "key string, value string").coalesce(1)
    frame.write.format("kafka").options(**{"kafka.bootstrap.servers": servers, "topic": topic}).save()


def run(drive: Drive, servers: str, topic: str, folder: str, source: Mapping[str, Any]) -> list[Row]:
    """The view of a topic, which also goes to another topic."""
    items = kafka(drive.spark, servers, topic, COLUMNS, **source)
    now = {"availableNow": True}
    views = maintain(drive.spark, ITEMS, {"items": items}, f"{folder}/items", cells=2, trigger=now)
    views.query.awaitTermination()
    sink = topic_sink(servers, f"{topic}-kinds", key="kind")
    follower = views.changes("kinds").writeStream.foreachBatch(sink).trigger(availableNow=True)
    follower.option("checkpointLocation", f"{folder}/sink").start().awaitTermination()
    rows = [tuple(row) for row in views["kinds"].collect()]
    views.stop()
    return rows


def copied(drive: Drive, servers: str, topic: str, folder: str) -> list[Row]:
    """What a reader of the other topic makes of it."""
    kinds = kafka(drive.spark, servers, f"{topic}-kinds", "kind string, n long, s long", key=["kind"])
    now = {"availableNow": True}
    views = maintain(drive.spark, COPIED, {"kinds": kinds}, f"{folder}/copied", cells=2, trigger=now)
    views.query.awaitTermination()
    rows = [tuple(row) for row in views["copied"].collect()]
    views.stop()
    return rows


SOURCES: dict[str, dict[str, Any]] = {
    "json by key": {"key": ["id"]},
    "debezium": {"envelope": "debezium"},
    "debezium by key": {"envelope": "debezium", "key": ["id"]},
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_topic_and_the_topic_of_its_view_equal_the_referee(
    servers: str, driver: Driver, tmp_path: Path, name: str
) -> None:
    source, rng, held = SOURCES[name], Random(4), dict[int, dict[str, Any]]()
    topic = name.replace(" ", "-")
    for _ in range(ROUNDS):
        messages = changed(rng, held, source.get("envelope", "json"))
        driver.call(send, servers, topic, messages)
        rows = driver.call(run, servers, topic, str(tmp_path), source)
        assert sorted(map(repr, rows)) == sorted(map(repr, expected(held)))
        if name == "json by key":
            again = [row[:3] for row in driver.call(copied, servers, topic, str(tmp_path))]
            assert sorted(map(repr, again)) == sorted(map(repr, expected(held)))
    assert len(expected(held)) > 1
