"""``kill -9`` in the middle of a batch, of every kind of process there is: no event is lost, none counts twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.feed import Feed, attempts, bids_streams
from tests.faults.processes import cell_process, executor_of, executor_of_cell, kill
from tests.spark.cluster import Cluster, parent_of
from tests.spark.drive import Driver

pytestmark = pytest.mark.xdist_group("cluster")

Victim = Callable[[Feed, int], int]  # from the query and the Python worker that waits for the last cell


@pytest.fixture
def feed(driver: Driver, cluster: Cluster, tmp_path: Path) -> Feed:
    """Two micro-batches into a stream of five."""
    feed = Feed(driver, cluster.mark, bids_streams(tmp_path / "in", batches=5), tmp_path / "checkpoint")
    feed.start()
    feed.run(2)
    return feed


def _the_task_s_executor(feed: Feed, worker: int) -> int:
    return executor_of(worker)


def _the_cell_s_executor(feed: Feed, worker: int) -> int:
    return executor_of_cell(_the_cell(feed, worker))


def _the_worker(feed: Feed, worker: int) -> int:
    return worker


def _the_cell(feed: Feed, worker: int) -> int:
    return cell_process(feed.mark, feed.checkpoint, "c1")


VICTIMS: tuple[Victim, ...] = (_the_task_s_executor, _the_cell_s_executor, _the_worker, _the_cell)


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_process_is_killed_while_a_cell_has_its_batch_and_another_has_not(feed: Feed, victim: Victim) -> None:
    with feed.mid_batch() as worker:
        kill(victim(feed, worker))
    feed.committed()
    feed.end()


def test_an_executor_is_killed_while_partial_changes_are_summed(feed: Feed) -> None:
    with feed.mid_batch(last="m1", done="m0") as worker:
        kill(executor_of(worker))
    feed.committed()
    feed.end()


def test_a_keeper_is_killed_and_later_a_cell_without_one(feed: Feed) -> None:
    with feed.mid_batch():
        kill(parent_of(cell_process(feed.mark, feed.checkpoint, "c1")))
    feed.committed()
    kill(cell_process(feed.mark, feed.checkpoint, "c1"))
    feed.end()


def test_what_a_losing_attempt_wrote_does_not_count(feed: Feed) -> None:
    """Everything that holds the batch is killed, so that the cells must take it again from where they were."""
    with feed.mid_batch() as worker:
        batch = feed.given - 1
        for cell in ("c0", "c1"):
            kill(cell_process(feed.mark, feed.checkpoint, cell))
        kill(worker)
    feed.committed()
    assert attempts(feed.checkpoint, batch, "c0")
    feed.end()
