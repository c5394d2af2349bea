"""The driver is killed, three times, and each time another one goes on: elsewhere, and from where the last one was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.feed import CELLS, attempts, bids_streams, check, give
from tests.faults.processes import cell_process, stopped, waiting_client
from tests.spark import drive
from tests.spark.cluster import Cluster, marked_processes, until
from tests.spark.drive import Driver, started_driver
from tests.spark.harness import Streams

pytestmark = pytest.mark.xdist_group("cluster")

LOCAL = {"spark.master": "local[2]"}
NAME = "query"


@dataclass(frozen=True)
class Job:
    """A query that one driver after the other works at."""

    folder: Path
    streams: Streams

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def done(self, batch: int) -> tuple[bool, bool, bool]:
        """Has it offsets, a manifest, Spark's commit?"""
        places = (f"offsets/{batch}", f"viewlet/batches/{batch}.json", f"commits/{batch}")
        return tuple((self.checkpoint / place).exists() for place in places)  # type: ignore[return-value]

    @contextmanager
    def driven(self, settings: Mapping[str, str]) -> Iterator[Driver]:
        with started_driver(self.folder / "log", settings) as driver:
            driver.call(drive.gated, str(self.folder))
            yield driver

    @contextmanager
    def driven_up_to(self, point: str, settings: Mapping[str, str]) -> Iterator[Driver]:
        """A driver that waits in front of a gate (see ``drive.gated``), and is killed there unless it is already."""
        gate = self.folder / f"{point}.closed"
        with self.driven(settings) as driver:
            gate.touch()
            driver.call(drive.start, NAME, self.streams, checkpoint=self.checkpoint, cells=CELLS)
            until(f"the driver at {point}", gate.with_suffix(".reached").exists)
            yield driver
            driver.kill()  # no harm in twice
            gate.unlink(missing_ok=True)
            until("all that the driver started to end by itself", lambda: not marked_processes(driver.mark))

    def open(self, point: str) -> None:
        (self.folder / f"{point}.closed").unlink()


def test_a_driver_is_killed_before_in_and_after_a_batch(cluster: Cluster, tmp_path: Path) -> None:
    job = Job(tmp_path, bids_streams(tmp_path / "in", 8))
    give(job.streams, range(8))

    with job.driven_up_to("begin-2", LOCAL):
        assert job.done(1) == (True, True, True)
        assert job.done(2) == (True, False, False)

    with job.driven_up_to("begin-4", cluster.settings) as driver:
        with stopped(cell_process(cluster.mark, job.checkpoint, "c1")):
            job.open("begin-4")
            waiting_client(cluster.mark, job.checkpoint, "c1")
            until("cell c0 to take batch 4", lambda: attempts(job.checkpoint, 4, "c0"))
            driver.kill()
        assert job.done(4) == (True, False, False)

    with job.driven_up_to("end-5", LOCAL):
        assert job.done(5) == (True, True, False)

    with job.driven(LOCAL) as driver:
        driver.call(drive.start, NAME, job.streams, checkpoint=job.checkpoint, cells=CELLS)
        driver.call(drive.finish, NAME)
        check(job.streams, job.checkpoint, driver.call(drive.rows, NAME))
    assert len(attempts(job.checkpoint, 4, "c0")) == 2  # of which one counts
    assert len(attempts(job.checkpoint, 5, "c0")) == 1  # it was done, and only Spark did not know yet
