"""``kill -9`` in the middle of a batch, of every kind of process there is: no event is lost, none counts twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

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
KILLS: dict[str, Callable[[Feed, int], None]] = {
    "worker": lambda feed, worker: kill(worker),
    "cell": lambda feed, worker: kill(_cell(feed)),
    "keeper": lambda feed, worker: kill(keeper_of(_cell(feed))),  # the next cells to end have none
    "all that hold the batch": _all_that_hold_the_batch,
    "executor": lambda feed, worker: kill(executor_of(worker)),
}


@pytest.fixture(scope="module")
def feeds(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Driver], Feed]]:
    """One query for all tests: starting one takes longer than killing what runs it. A test that fails leaves none."""
    running: list[Feed] = []

    def feed(driver: Driver) -> Feed:
        if running and running[-1].is_right():
            running[-1].run(1)  # all cells are there: some went with the last victim
            return running[-1]
        folder = tmp_path_factory.mktemp("kills")
        streams = bids_streams(folder / "in", 2 * len(KILLS) + 9)
        running.append(Feed(driver, cluster.mark, streams, folder / "checkpoint"))
        running[-1].start()
        running[-1].run(2)
        return running[-1]

    yield feed
    for each in running:
        if each.driver.is_alive and not each.over:
            each.stop()


@pytest.fixture
def feed(feeds: Callable[[Driver], Feed], driver: Driver) -> Feed:
    return feeds(driver)


@pytest.mark.parametrize("victim", KILLS)
def test_a_process_is_killed_in_mid_batch(feed: Feed, victim: str) -> None:
    with feed.mid_batch() as worker:
        KILLS[victim](feed, worker)
    feed.committed()
    assert feed.is_right()


def test_an_executor_is_killed_while_partial_changes_are_summed(feed: Feed) -> None:
    with feed.mid_batch(last="m1", done="m0") as worker:
        kill(executor_of(worker))
    feed.committed()
    assert feed.is_right()


def test_a_copy_overtakes_a_task(feed: Feed) -> None:
    """Its cell has taken its rows; it hears the answer only when the batch is committed, by what its copy did."""
    with ExitStack() as hanging:
        with feed.mid_batch() as worker:
            hanging.enter_context(stopped(worker))
        feed.committed()
    assert feed.is_right()


def test_every_batch_of_the_query_was_right(feed: Feed) -> None:
    """The rest of the stream, and all batches that the tests above have seen."""
    feed.end()
