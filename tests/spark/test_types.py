"""Types that Spark has under another name, or in another form: in, through cells, and out as DuckDB shows them."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.oracle.oracle import Row, difference
from tests.spark.harness import shown, write_streams
from viewlet.errors import Error
from viewlet.schema import REAL, UUID, Column, Relation, Type, enum
from viewlet.spark import maintain, register
from viewlet.spark.driver.arguments import TAKES_TIME
from viewlet.spark.driver.types import cell_value
from viewlet.workloads.streams import Event

MOOD = "ENUM('sad', 'ok', 'it''s', 'a')"
SCHEMA = (
    f"CREATE STREAM r (k TINYINT, u UUID, z TIMESTAMPTZ, f REAL, t TIME, i INTERVAL, e {MOOD}, b BLOB, n UINTEGER);"
    f"CREATE STREAM q (k SMALLINT NOT NULL, u UUID NOT NULL, w TIMESTAMP, d DOUBLE, e {MOOD}, b BLOB, v UTINYINT);"
)
VIEWS = {
    "shown": "SELECT k, u, z, f, t, i, e, b, n FROM r",
    "ends": "SELECT k, min(f) AS f, max(t) AS t, min(i) AS i, max(e) AS e, max(b) AS b, min(u) AS u, max(z) AS z,"
    " max(n) AS n FROM r GROUP BY k",
    "total": "SELECT min(f) AS f, max(t) AS t, min(i) AS i, max(e) AS e, max(b) AS b, max(z) AS z, sum(n) AS n FROM r",
    "joined": "SELECT r.k, q.e, r.u, q.v FROM r JOIN q ON r.u = q.u AND r.e = q.e",
    "moments": "SELECT r.z, q.v, count(*) AS n FROM r JOIN q ON r.z = q.w GROUP BY ALL",
    "reals": "SELECT r.f, sum(q.k) AS k FROM r JOIN q ON r.f = q.d GROUP BY r.f",
    "lists": "SELECT k, list(e ORDER BY e) AS e, list(u ORDER BY u) AS u, list(f ORDER BY f) AS f,"
    " string_agg(e, ',' ORDER BY e) AS s FROM r GROUP BY k",
    "computed": "SELECT k, hour(t) AS h, f * 2 AS f, z::DATE AS d, t + INTERVAL 3 HOUR AS t FROM r",
}
UUIDS = [str(uuid.UUID(int=n * 0x1234567890ABCDEF1234567890ABCDEF % 2**128)) for n in range(1, 5)]
ZONE = dt.timezone.utc
MOMENTS = [dt.datetime(2024, 3, 31, 0, 59, 59, 999_999), dt.datetime(2024, 10, 27, 0, 30), dt.datetime(1969, 7, 20, 20)]
REALS = (0.25, -1.5, 3.0, 1e18)
TIMES = (dt.time(9, 30), dt.time(0), dt.time(23, 59, 59, 999_999))
LENGTHS = (dt.timedelta(days=2), dt.timedelta(minutes=90, microseconds=7), dt.timedelta(hours=-30, microseconds=-1))
WORDS = ("sad", "ok", "it's", "a")
BYTES = (b"", b"\x00a", b"\xff\x00")


def stream() -> Iterator[Event]:
    rng, rows = Random(7), list[tuple[str, Row]]()

    def maybe(*options: object) -> Any:
        return rng.choice([*options, None])

    for _ in range(90):
        if rows and rng.random() < 0.3:
            yield "-", *rows.pop(rng.randrange(len(rows)))
            continue
        k, u, e, b, at = maybe(1, -128), maybe(*UUIDS), maybe(*WORDS), maybe(*BYTES), rng.choice(MOMENTS)
        z, f = maybe(at.replace(tzinfo=ZONE)), rng.choice(REALS)
        r = k, u, z, maybe(f), maybe(*TIMES), maybe(*LENGTHS), e, b, maybe(0, 2**32 - 1)
        q = rng.choice((7, -300)), u or UUIDS[0], at, f, e, b, maybe(0, 255)
        rows.append(("r", r) if rng.random() < 0.6 else ("q", q))
        yield "+", *rows[-1]


@pytest.fixture
def summer_time(spark: SparkSession) -> Iterator[None]:
    """A session whose clock shows some hours twice."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")


@pytest.mark.usefixtures("summer_time")
def test_every_type_goes_in_and_out_as_duckdb_has_it(spark: SparkSession, tmp_path: Path) -> None:
    views_text = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in VIEWS.items())
    streams = write_streams(Case(SCHEMA, views_text, VIEWS, list(stream())), tmp_path / "in", seed=5, longest=40)
    views = streams.maintain(spark, checkpoint=tmp_path / "checkpoint", cells=2)
    try:
        views.query.awaitTermination()
        for watch in streams.check(tmp_path / "checkpoint").values():
            watch.check()
        *_, last = streams.answers()
        register(spark)
        read = spark.read.format("viewlet").option("checkpoint", str(tmp_path / "checkpoint"))
        for name, rows in last.items():
            assert difference(shown(views[name]), rows) is None, name
            if name in ("shown", "lists", "total"):
                assert difference(shown(read.load(name)), rows) is None, name
    finally:
        views.stop()


def converted(spark: SparkSession, type_: Type, spark_type: str, *values: object) -> list[Any]:
    """The values as cells hold them."""
    column = Column("x", type_)
    frame = spark.createDataFrame([(value,) for value in values], f"x {spark_type}")
    held = cell_value(column, frame.schema["x"].dataType, Relation("r", (column,)))
    return [row[0] for row in frame.select(held.alias("x")).collect()]


def test_values_take_the_form_that_cells_hold(spark: SparkSession) -> None:
    text = "369D0369-b203-69cd-369d-0369b20369cd"
    assert converted(spark, UUID, "string", text, "{" + text.replace("-", "") + "}") == [text.lower()] * 2
    assert converted(spark, REAL, "double", 0.1, float("inf")) == [0.10000000149011612, float("inf")]
    assert converted(spark, Type("UTINYINT"), "bigint", 255, None) == [255, None]


def test_a_value_that_is_none_of_its_type_stops_the_batch(spark: SparkSession) -> None:
    wrong: list[tuple[Type, str, object]] = [
        (Type("UTINYINT"), "int", 256),
        (Type("TINYINT"), "bigint", -129),
        (UUID, "string", "369d0369"),
        (enum(("a", "b")), "string", "c"),
        (REAL, "double", 1e39),
    ]
    for type_, given, value in wrong:
        with pytest.raises(Exception, match=r"r\.x: .* does not fit"):
            converted(spark, type_, given, value)


def test_time_needs_a_session_that_takes_it(spark: SparkSession) -> None:
    script = "CREATE STREAM r (t TIME); CREATE MATERIALIZED VIEW v AS SELECT max(t) AS t FROM r"
    spark.conf.set(TAKES_TIME, "false")
    try:
        with pytest.raises(Error, match=r"r\.t is a TIME, which this session of Spark's does not take: set"):
            maintain(spark, script, {})
    finally:
        spark.conf.set(TAKES_TIME, "true")
