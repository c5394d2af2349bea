"""Executors come and go, and cells follow: even numbers again, and every view right after every batch.

Without speculation: a copy on the executor that knows its work would overtake each task of a new one, and end it before
it has Python up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.feed import Feed, bids_streams
from tests.faults.processes import cell_process, executor_of, kill
from tests.spark import drive
from tests.spark.cluster import Cluster
from tests.spark.drive import Driver, started_driver

pytestmark = pytest.mark.xdist_group("cluster")

CELLS = 4  # and as many merge cells
MOST = 25  # batches until all is even
LOSSES = 2


@pytest.fixture
def calm(cluster: Cluster, tmp_path: Path, soaking: bool) -> Iterator[Driver]:
    if not soaking:
        pytest.skip("make soak runs it")
    with started_driver(tmp_path / "log", cluster.settings) as driver:
        yield driver


def told(feed: Feed) -> dict[str, int]:
    """After one more batch: cells by executor."""
    feed.run(1)
    by_executor: dict[str, int] = feed.driver.call(drive.progress, str(feed.checkpoint))[-1]["cells_by_executor"]
    return by_executor


def until_even(feed: Feed) -> int:
    """How many batches that took."""
    for batch in range(1, MOST + 1):
        counts = told(feed)
        if len(counts) == 2 and set(counts.values()) == {CELLS}:
            return batch
    raise AssertionError(f"after {MOST} batches: {counts}")


def kill_an_executor(feed: Feed) -> None:
    """In mid-batch, while its task waits for a cell."""
    with feed.mid_batch() as worker:
        kill(executor_of(worker))
    feed.committed()


def test_cells_are_even_after_executors_were_lost_and_others_came(
    calm: Driver, cluster: Cluster, tmp_path: Path
) -> None:
    streams = bids_streams(tmp_path / "in", (LOSSES + 1) * (MOST + 2))
    feed = Feed(calm, cluster.mark, streams, tmp_path / "checkpoint", cells=CELLS)
    feed.start()
    for _ in range(LOSSES):
        until_even(feed)
        kill_an_executor(feed)
        assert feed.is_right()
    until_even(feed)
    before = {cell: cell_process(cluster.mark, feed.checkpoint, cell) for cell in ("c0", "c1", "c2", "c3")}
    feed.run(5)
    assert before == {cell: cell_process(cluster.mark, feed.checkpoint, cell) for cell in before}, "none moves again"
    feed.end()
