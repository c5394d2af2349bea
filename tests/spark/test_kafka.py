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
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from tests.oracle.oracle import Row
from tests.spark.broker import CONNECTOR, CONNECTOR_WITH_AVRO, started_broker
from tests.spark.drive import Drive, Driver, started_driver
from tests.spark.maven import jars
from tests.spark.pysparks import environment_or_skip
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
    with pytest.raises(Error, match="give both, envelope='avro' and avro="):
        kafka(spark, "127.0.0.1:1", "t", COLUMNS, envelope="avro")
    with pytest.raises(Error, match="by a key, messages are JSON or events of Debezium's"):
        kafka(spark, "127.0.0.1:1", "t", COLUMNS, envelope="avro", avro="{}", key=["id"])


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


# -- Avro --------------------------------------------------------------------------------------------------------------

AVRO = json.dumps(
    {
        "type": "record",
        "name": "item",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "kind", "type": ["null", "string"]},
            {"name": "x", "type": ["null", "long"]},
            {"name": "op", "type": "int"},
        ],
    }
)


@pytest.fixture
def with_avro(servers: str, tmp_path: Path) -> Iterator[Driver]:
    """Of Spark's package for Avro there is none newer than this."""
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, jars(*CONNECTOR_WITH_AVRO)))}
    with started_driver(tmp_path / "log", settings, environment_or_skip("4.1.0")) as driver:
        yield driver


def sent_and_kept(drive: Drive, servers: str, folder: str, messages: list[tuple[Any, ...]]) -> list[Row]:
    columns = "id long, kind string, x long, op int"
    with pytest.raises(
        Error, match="x int is not in the schema of Avro; it has id bigint, kind string, x bigint, op int"
    ):
        kafka(drive.spark, servers, "avro", "id long, x int", envelope="avro", avro=AVRO)
    frame = drive.spark.createDataFrame(messages, columns).coalesce(1)
    written = frame.select(to_avro(F.struct("id", "kind", "x", "op"), AVRO).alias("value"))
    written.write.format("kafka").options(**{"kafka.bootstrap.servers": servers, "topic": "avro"}).save()
    items = kafka(drive.spark, servers, "avro", columns, envelope="avro", avro=AVRO)
    views = maintain(drive.spark, ITEMS, {"items": items}, f"{folder}/ck", cells=2, trigger={"availableNow": True})
    views.query.awaitTermination()
    rows = [tuple(row) for row in views["kinds"].collect()]
    views.stop()
    return rows


def test_records_of_avro_equal_the_referee(servers: str, with_avro: Driver, tmp_path: Path) -> None:
    rng, held = Random(6), dict[int, dict[str, Any]]()
    for _ in range(ROUNDS):
        messages = []
        for id_ in rng.sample(range(12), 8):
            if (before := held.pop(id_, None)) is not None:
                messages.append((*before.values(), -1))
            else:
                held[id_] = {"id": id_, "kind": rng.choice([None, "a", "b"]), "x": rng.choice([None, 2**60, -3])}
                messages.append((*held[id_].values(), 1))
        rows = with_avro.call(sent_and_kept, servers, str(tmp_path), messages)
        assert sorted(map(repr, rows)) == sorted(map(repr, expected(held)))
    assert len(expected(held)) > 1
