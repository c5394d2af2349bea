"""A query with its sinks that is put through one fault after the other, and the referee beside it."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.faults.choices import Choice, sources_of
from tests.faults.feed import give
from tests.faults.followers import Follower, keep_following, kept, stop_following
from tests.faults.job import Job
from tests.faults.victims import Known, running
from tests.oracle.oracle import Row, Vacuity, difference
from tests.spark import drive
from tests.spark.cluster import PATIENCE, Cluster, marked_environment, until
from tests.spark.drive import Driver, DriverError, started_driver
from tests.spark.harness import Streams, plain
from viewlet.durable.store import Store

QUERY = "endured"
MOST_STARTS = 8  # for one fault: what does not go on by then never will
SETTINGS = {"spark.sql.streaming.numRecentProgressUpdates": "5"}
LONGEST = 2.0  # seconds until harm is done: longer than most batches


@dataclass
class Endured:
    cluster: Cluster
    folder: Path
    streams: Streams
    followers: list[Follower]
    checkpoint: str  # a path, or a URI of another store
    has_small_disk: bool
    choice: Choice  # what the query is started with
    retain: int
    given: int = 0  # files, each for a batch
    starts: int = 0  # of the query, by hand
    spared: set[Known] = field(default_factory=set)  # processes of drivers that are gone
    _ends: ExitStack = field(default_factory=ExitStack)
    _version: int = 0  # of the driver
    _watched: dict[str, Vacuity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._referee = self.streams.case.referee()

    @property
    def job(self) -> Job:
        """The files of the query, where they are local."""
        return Job(self.streams, Path(self.checkpoint), self.choice.cells)

    @property
    def changes(self) -> int:
        """Batches that changed the job: those without a file."""
        return self.driver.call(last_batch, self.checkpoint) + 1 - self.given

    def wait(self, rng: Random) -> None:
        """Until any moment of a batch."""
        time.sleep(rng.uniform(0, LONGEST))

    # -- the query -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.driver = self.new_driver()
        self.start()
        self.give(2)
        self.settle()
        self.compare()
        self.starts = 0

    def new_driver(self) -> Driver:
        """Of the version that is chosen, as its executors are."""
        self.spared, self._version = running(self.cluster.mark), self.choice.version
        others = marked_environment("")["PYTHONPATH"].split(os.pathsep)[1:]
        path = os.pathsep.join([str(sources_of(self._version, self.folder)), *others])
        settings = {**self.cluster.settings, **SETTINGS, "spark.executorEnv.PYTHONPATH": path}
        return self._ends.enter_context(started_driver(self.folder / "log", settings, {"PYTHONPATH": path}))

    def ensure_driver(self) -> None:
        """One of the version that is chosen."""
        if self.driver.is_alive and self._version != self.choice.version:
            self.driver.kill()
        if not self.driver.is_alive:
            self.driver = self.new_driver()

    def start(self, driver: Driver | None = None) -> None:
        """The query, and the sinks that do not run."""
        options = {"checkpoint": self.checkpoint, "trigger": None, "retain": self.retain}
        encrypted = self.starts % 2 == 1  # every other start
        chosen = {"cells": self.choice.cells, "strategy": self.choice.strategy, "encrypted": encrypted}
        case = replace(self.streams.case, views=self.choice.views, selects=self.choice.selects)
        driver = driver or self.driver
        self.starts += 1
        driver.call(drive.start, QUERY, replace(self.streams, case=case), **options, **chosen)
        driver.call(keep_following, QUERY, self.followers)

    def stop(self) -> None:
        self.driver.call(drive.stop, QUERY)

    def start_again(self) -> None:
        """After it ended, with its driver or without."""
        self.ensure_driver()
        self.driver.call(stop_quietly)
        self.start()

    def finish(self) -> None:
        for vacuity in self._watched.values():
            vacuity.check()
        self.driver.call(stop_following)
        self.stop()

    def close(self) -> None:
        self._ends.close()

    # -- batches -------------------------------------------------------------------------------------------------------

    def give(self, batches: int = 1) -> None:
        numbers = range(self.given, self.given + batches)
        give(self.streams, numbers)
        self.given += batches
        for number in numbers:
            for op, relation, row in self.streams.batches[number]:
                self._referee.apply(op, relation, row)

    def committed(self) -> None:
        """All that was given, or DriverError."""
        self.driver.call(until_committed, self.checkpoint, self.given)

    def settle(self) -> None:
        """Until all that was given is committed; a query that ended is started again."""
        has_failed = False
        for _ in range(MOST_STARTS):
            try:
                if has_failed or not self.driver.is_alive:
                    self.start_again()
                return self.committed()
            except DriverError as error:
                print(_said(str(error)), file=sys.stderr)
                has_failed = True
        raise AssertionError(f"file {self.given - 1} is not committed after {MOST_STARTS} starts")

    # -- the referee ---------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Views at once, since all is committed; sinks as soon as they have heard of it."""
        rows = self.driver.call(drive.rows, QUERY)
        answer = {view: [*map(plain, self._referee.rows(select))] for view, select in self.choice.selects.items()}
        assert rows.keys() == answer.keys()
        for view, expected in answer.items():
            assert (wrong := difference(rows[view], expected)) is None, f"{view} after file {self.given - 1}: {wrong}"
            self._watched.setdefault(view, Vacuity()).watch(expected)
        for follower in self.followers:
            self._await(follower, answer[follower.view])

    def _await(self, follower: Follower, expected: list[Row]) -> None:
        end = time.monotonic() + 3 * PATIENCE
        while (wrong := self._difference(follower, expected)) is not None:
            assert time.monotonic() < end, f"{follower.name} after file {self.given - 1}: {wrong}"
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


def until_committed(drive_: drive.Drive, checkpoint: str, files: int) -> None:
    """As ``drive.committed``, on any store, and whatever number the batch has that took the last file."""
    query = drive_.running[QUERY].query

    def look() -> bool:
        if (error := query.exception()) is not None:
            raise error
        return _files_taken(checkpoint) == files

    until(f"file {files - 1}", look)


def last_batch(_: drive.Drive, checkpoint: str) -> int:
    """Of those that Spark has committed; -1 before the first."""
    return max((int(name) for name in Store(checkpoint).names("commits") if name.isdigit()), default=-1)


def _files_taken(checkpoint: str) -> int:
    """By the batches that Spark has committed: it numbers files from 0, and notes the last one of each batch."""
    store = Store(checkpoint)
    batches = [int(name) for name in store.names("commits") if name.isdigit()]
    noted = bytes(store.read(f"offsets/{max(batches)}")).decode() if batches else ""
    found = re.search(r'"logOffset":(\d+)', noted)
    return int(found[1]) + 1 if found else 0


def stop_quietly(drive_: drive.Drive) -> None:
    """A query that has failed, with its cells."""
    if QUERY in drive_.running:
        drive.stop(drive_, QUERY)
