"""now() on Spark: the moment at which Spark made the batch, the same for every cell and for a batch that runs again."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewlet
from tests.engines.conformance import Case
from tests.engines.test_clock import SCHEMA, SELECTS, as_of
from tests.oracle.oracle import DuckOracle, Vacuity, difference
from tests.spark.harness import Streams, published_rows, write_streams
from viewlet.workloads.streams import Event

CHOSEN = {view: SELECTS[view] for view in ("recent", "total", "shown", "lately")}
CHOSEN |= {"exactly": "SELECT k, now()::TIMESTAMP AS at, count(*) AS n FROM trades GROUP BY k"}
AWAY = (-7000, -290, -30, 4, 7000)  # seconds


def stream() -> list[Event]:
    """Around the moment at which the test runs. Some cells have no rows in a batch."""
    now = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
    rows = list[Event]()
    for number in range(20):
        t = now + dt.timedelta(seconds=AWAY[number % 5])
        rows.append(("+", "trades", (number // 7, t, number)))
        rows.append(("+", "quotes", (number // 7, t.date(), None)))
    return rows


def check(streams: Streams, checkpoint: Path) -> dict[str, Vacuity]:
    oracle, watch = DuckOracle(viewlet.compile(SCHEMA).relations), {view: Vacuity() for view in CHOSEN}
    published = published_rows(checkpoint, tuple(CHOSEN))
    for number, batch in enumerate(streams.batches):
        for op, relation, row in batch:
            oracle.apply(op, relation, row)
        about = json.loads((checkpoint / "offsets" / str(number)).read_text().split("\n")[1])
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=about["batchTimestampMs"])
        for view in CHOSEN:
            expected = oracle.rows(as_of(CHOSEN[view], moment))
            wrong = difference(published[number][view].elements(), expected)
            assert wrong is None, f"{view} after micro-batch {number}: {wrong}"
            watch[view].watch(expected)
    return watch


@pytest.mark.parametrize("pinned", ["true", "false"])  # by the stream's own plan, or by a shuffle
def test_the_clock_shows_the_moment_of_the_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: str
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in CHOSEN.items())
    streams = write_streams(Case(SCHEMA, script, CHOSEN, stream()), tmp_path / "in", seed=2, longest=20)
    checkpoint = tmp_path / "checkpoint"
    for _ in range(2 if pinned == "true" else 1):
        views = streams.maintain(spark, checkpoint=checkpoint, cells=2)
        views.query.awaitTermination()
        views.stop()
        for watch in check(streams, checkpoint).values():
            watch.check()
        last = len(streams.batches) - 1
        forgotten = [checkpoint / "commits" / str(last), checkpoint / "viewlet" / "published" / f"{last}.json"]
        for file in (*forgotten, *(checkpoint / "viewlet" / "batches").glob(f"{last}-*")):
            file.unlink()  # as if the driver had died in the middle of it: the batch runs again, at its own moment
