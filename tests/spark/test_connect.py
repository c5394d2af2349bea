"""Through Spark Connect, where a client has neither the driver nor its files: views, changes, progress, stop."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.feed import Feed, bids_streams
from tests.faults.processes import is_keeper
from tests.oracle.oracle import Row, difference
from tests.spark import drive
from tests.spark.cluster import marked_processes, until
from tests.spark.drive import Drive, started_driver
from tests.spark.harness import shown

CONNECT = {"spark.remote": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
pytestmark = pytest.mark.xdist_group("cluster")


def folded_changes(drive: Drive, name: str, view: str) -> Counter[Row]:
    """What the stream of a view's changes comes to, followed from its first row."""
    sink = drive.running[name].changes(view).writeStream.format("memory").queryName("followed")
    sink.trigger(availableNow=True).start().awaitTermination()
    rows: Counter[Row] = Counter()
    for _, weight, *row in shown(drive.spark.table("followed")):
        rows[tuple(row)] += weight  # type: ignore[operator]
    return +rows


def test_a_client_of_spark_connect_maintains_views(tmp_path: Path) -> None:
    with started_driver(tmp_path / "log", CONNECT) as driver:
        feed = Feed(driver, driver.mark, bids_streams(tmp_path / "in", 3), tmp_path / "checkpoint")
        feed.start()
        feed.run(3)
        *_, last = feed.streams.answers()
        folded = driver.call(folded_changes, str(feed.checkpoint), "by_price")
        assert difference(folded.elements(), last["by_price"]) is None
        progress = driver.call(drive.progress, str(feed.checkpoint))
        assert [(p["batch"], p["rows"]) for p in progress] == [(n, len(b)) for n, b in enumerate(feed.streams.batches)]
        feed.end()
        until("the cells to end", lambda: not [pid for pid in marked_processes(driver.mark) if is_keeper(pid)])
