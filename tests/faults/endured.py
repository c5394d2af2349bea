"""A query with its sinks that is put through one fault after the other, and the referee beside it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.feed import give
from tests.faults.followers import Follower, keep_following, kept, stop_following
from tests.faults.job import Job
from tests.faults.victims import Known, running
from tests.oracle.oracle import Row, difference
from tests.spark import drive
from tests.spark.cluster import PATIENCE, Cluster, until
from tests.spark.drive import Driver, DriverError, started_driver
from tests.spark.harness import Streams
from viewlet.durable.store import Store

QUERY = "endured"
MOST_STARTS = 8  # for one fault: what does not go on by then never will
SETTINGS = {"spark.sql.streaming.numRecentProgressUpdates": "5"}


@dataclass
class Endured:
    cluster: Cluster
    folder: Path
    streams: Streams
    followers: list[Follower]
    checkpoint: str  # a path, or a URI of another store
    has_small_disk: bool
    cells: int
    retain: int
    given: int = 0  # batches
    starts: int = 0  # of the query, by hand
    spared: set[Known] = field(default_factory=set)  # processes of drivers that are gone
    _ends: ExitStack = field(default_factory=ExitStack)
    _answers: Iterator[dict[str, list[Row]]] = field(default_factory=lambda: iter(()))
    _answer: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The files of the query, where they are local."""
        return Job(self.streams, Path(self.checkpoint), self.cells)

    # -- the query -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._answers = self.streams.answers()
        self.driver = self.new_driver()
        self.start()
        self.give(2)
        self.settle()
        self.compare()
        self.starts = 0

    def new_driver(self) -> Driver:
        self.spared = running(self.cluster.mark)
        return self._ends.enter_context(started_driver(self.folder / "log", {**self.cluster.settings, **SETTINGS}))

    def start(self, driver: Driver | None = None) -> None:
        """The query, and the sinks that do not run."""
        options = {"checkpoint": self.checkpoint, "cells": self.cells, "trigger": None, "retain": self.retain}
        driver = driver or self.driver
        self.starts += 1
        driver.call(drive.start, QUERY, self.streams, **options)
        driver.call(keep_following, QUERY, self.followers)

    def stop(self) -> None:
        self.driver.call(drive.stop, QUERY)

    def start_again(self) -> None:
        """After it ended, with its driver or without."""
        if not self.driver.is_alive:
            self.driver = self.new_driver()
        else:
            self.driver.call(stop_quietly)
        self.start()

    def finish(self) -> None:
        self.driver.call(stop_following)
        self.stop()

    def close(self) -> None:
        self._ends.close()

    # -- batches -------------------------------------------------------------------------------------------------------

    def give(self, batches: int = 1) -> None:
        give(self.streams, range(self.given, self.given + batches))
        self.given += batches
        for _ in range(batches):
            self._answer = next(self._answers)

    def committed(self) -> None:
        """All that was given, or DriverError."""
        self.driver.call(until_committed, self.checkpoint, self.given - 1)

    def settle(self) -> None:
        """Until all that was given is committed; a query that ended is started again."""
        for _ in range(MOST_STARTS):
            try:
                if not self.driver.is_alive:
                    self.start_again()
                return self.committed()
            except DriverError as error:
                print(_said(str(error)), file=sys.stderr)
                self.start_again()
        raise AssertionError(f"batch {self.given - 1} is not committed after {MOST_STARTS} starts")

    # -- the referee ---------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Views at once, since all is committed; sinks as soon as they have heard of it."""
        rows = self.driver.call(drive.rows, QUERY)
        for view, expected in self._answer.items():
            assert (wrong := difference(rows[view], expected)) is None, f"{view} after batch {self.given - 1}: {wrong}"
        for follower in self.followers:
            self._await(follower, self._answer[follower.view])

    def _await(self, follower: Follower, expected: list[Row]) -> None:
        end = time.monotonic() + 3 * PATIENCE
        while (wrong := self._difference(follower, expected)) is not None:
            assert time.monotonic() < end, f"{follower.name} after batch {self.given - 1}: {wrong}"
            time.sleep(0.2)
            for reason in self.driver.call(keep_following, QUERY, self.followers):
                print(_said(reason), file=sys.stderr)

    def _difference(self, follower: Follower, expected: list[Row]) -> str | None:
        try:
            return difference(self.driver.call(kept, follower), expected)
        except DriverError as error:  # the sink has nothing yet, or an executor is gone
            return str(error)


def _said(error: str) -> str:
    """The last line that names an error, in short: Spark's own say much more."""
    lines = [line.strip() for line in error.splitlines() if re.search(r"(Error|Exception)\b.*:", line)]
    said = lines[-1] if lines else error.partition("\n")[0]
    return f"  started again after {said[:160]}"


def until_committed(drive_: drive.Drive, checkpoint: str, batch: int) -> None:
    """As ``drive.committed``, on any store."""
    query, store = drive_.running[QUERY].query, Store(checkpoint)

    def look() -> bool:
        if (error := query.exception()) is not None:
            raise error
        return str(batch) in store.names("commits")

    until(f"batch {batch}", look)


def stop_quietly(drive_: drive.Drive) -> None:
    """A query that has failed, with its cells."""
    if QUERY in drive_.running:
        drive.stop(drive_, QUERY)
