"""The driver is killed, three times, and each time another one goes on: elsewhere, and from where the last one was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.feed import attempts, bids_streams, check, give
from tests.faults.job import Job
from tests.faults.processes import cell_process, is_keeper, stopped, waiting_client
from tests.spark import drive
from tests.spark.cluster import Cluster, marked_processes, until
from tests.spark.drive import Driver, started_driver

pytestmark = pytest.mark.xdist_group("cluster")

LOCAL = {"spark.master": "local[2]"}


def start_up_to(driver: Driver, job: Job, point: str) -> Path:
    """The query, until it waits in front of a gate (see ``drive.gated``), which is returned."""
    gate = job.checkpoint.with_name(f"{point}.closed")
    gate.touch()
    driver.call(drive.gated, str(gate.parent))
    driver.call(drive.start, str(job.checkpoint), job.streams, checkpoint=job.checkpoint, cells=job.cells)
    until(f"the driver at {point}", gate.with_suffix(".reached").exists)
    return gate


def kill_at(point: str, job: Job, log: Path) -> None:
    """A local driver; all that it started ends by itself."""
    with started_driver(log, LOCAL) as driver:
        gate = start_up_to(driver, job, point)
        driver.kill()
        until("the cells to end", lambda: not marked_processes(driver.mark))
    gate.unlink()


def test_a_driver_is_killed_before_in_and_after_a_batch(
    driver: Driver, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    job, log = Job(bids_streams(tmp_path / "in", 6), tmp_path / "checkpoint"), tmp_path / "log"
    give(job.streams, range(6))

    kill_at("begin-1", job, log)
    assert (job.has(0), job.has(1)) == ((True, True, True), (True, False, False))

    gate = start_up_to(driver, job, "begin-2")
    with stopped(cell_process(cluster.mark, job.checkpoint, "c1")):
        gate.unlink()
        waiting_client(cluster.mark, job.checkpoint, "c1")
        until("cell c0 to take batch 2", lambda: attempts(job.checkpoint, 2, "c0"))
        driver.kill()
    until("the cells to end", lambda: not [pid for pid in marked_processes(cluster.mark) if is_keeper(pid)])
    assert job.has(2) == (True, False, False)

    kill_at("end-3", job, log)
    assert job.has(3) == (True, True, False)

    check(job.streams, job.checkpoint, job.run(spark))
    assert len(attempts(job.checkpoint, 2, "c0")) == 2  # of which one counts
    assert len(attempts(job.checkpoint, 3, "c0")) == 1  # it was done, only Spark did not know yet
