"""``kill -9`` in the middle of a batch, of every kind of process there is: no event is lost, none counts twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.feed import Feed, bids_streams
from tests.faults.processes import cell_process, executor_of, keeper_of, kill, stopped
from tests.spark.cluster import Cluster
from tests.spark.drive import Driver

pytestmark = pytest.mark.xdist_group("cluster")


def _cell(feed: Feed, name: str = "c1") -> int:
    return cell_process(feed.mark, feed.checkpoint, name)


def _all_that_hold_the_batch(feed: Feed, worker: int) -> None:
    for pid in (_cell(feed, "c0"), _cell(feed), worker):
        kill(pid)


# Each in a batch of its own that cell c0 has taken and c1 has not; given is the Python worker that waits for c1.
KILLS: tuple[Callable[[Feed, int], None], ...] = (
    lambda feed, worker: kill(worker),
    lambda feed, worker: kill(_cell(feed)),
    lambda feed, worker: kill(keeper_of(_cell(feed))),  # the next cells to end have none
    _all_that_hold_the_batch,
    lambda feed, worker: kill(executor_of(worker)),
)


def test_every_kind_of_process_is_killed_or_hangs_in_mid_batch(
    driver: Driver, cluster: Cluster, tmp_path: Path
) -> None:
    """One query for all of them: starting one takes longer than killing what runs it."""
    feed = Feed(driver, cluster.mark, bids_streams(tmp_path / "in", len(KILLS) + 5), tmp_path / "checkpoint")
    feed.start()
    feed.run(2)
    for kill_one in KILLS:
        with feed.mid_batch() as worker:
            kill_one(feed, worker)
        feed.committed()
    _kill_an_executor_while_partial_changes_are_summed(feed)
    _let_a_copy_overtake_a_task(feed)
    feed.end()


def _kill_an_executor_while_partial_changes_are_summed(feed: Feed) -> None:
    with feed.mid_batch(last="m1", done="m0") as worker:
        kill(executor_of(worker))
    feed.committed()


def _let_a_copy_overtake_a_task(feed: Feed) -> None:
    """Its cell has taken its rows; it hears the answer only when the batch is committed, by what its copy did."""
    with ExitStack() as hanging:
        with feed.mid_batch() as worker:
            hanging.enter_context(stopped(worker))
        feed.committed()
