"""The driver is killed, twice, and each time another one goes on: elsewhere, and from where the last one was."""

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


def test_a_driver_is_killed_before_and_after_the_manifest(
    driver: Driver, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """On a cluster, where executors outlive it for a while; then a local one, and all goes with it."""
    job = Job(bids_streams(tmp_path / "in", 6), tmp_path / "checkpoint")
    give(job.streams, range(6))
    _kill_in_mid_batch_2(driver, cluster, job)
    assert (job.has(1), job.has(2)) == ((True, True, True), (True, False, False))

    with started_driver(tmp_path / "log", LOCAL) as local:
        start_up_to(local, job, "end-3")
        local.kill()
        until("the cells to end", lambda: not marked_processes(local.mark))
    assert job.has(3) == (True, True, False)

    check(job.streams, job.checkpoint, job.run(spark))
    assert len(attempts(job.checkpoint, 2, "c0")) == 2  # of which one counts
    assert len(attempts(job.checkpoint, 3, "c0")) == 1  # it was done, only Spark did not know yet


def _kill_in_mid_batch_2(driver: Driver, cluster: Cluster, job: Job) -> None:
    """Cell c0 has taken its share, c1 has not; then all cells end by themselves."""
    gate = start_up_to(driver, job, "begin-2")
    with stopped(cell_process(cluster.mark, job.checkpoint, "c1")):
        gate.unlink()
        waiting_client(cluster.mark, job.checkpoint, "c1")
        until("cell c0 to take batch 2", lambda: attempts(job.checkpoint, 2, "c0"))
        driver.kill()
    until("the cells to end", lambda: not [pid for pid in marked_processes(cluster.mark) if is_keeper(pid)])
