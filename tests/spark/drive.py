"""A driver in a process of its own, so that it can be killed, and so that each may have its own kind of Spark.

Both ends of a pipe: ``Driver`` is what a test holds; ``serve`` runs in the other process, calls the functions that it
is sent, and ends when the pipe does.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from pyspark.sql import DataFrame, SparkSession

import viewlet.spark
from tests.oracle.oracle import Row
from tests.spark.cluster import end_marked, marked_environment, until
from tests.spark.harness import Streams, shown
from viewlet.spark import Views
from viewlet.spark.driver.runner import Runner
from viewlet.spark.process.secret import Secret

A = TypeVar("A")
SERVE = "import sys; from tests.spark.drive import serve; serve(sys.stdin.buffer)"


class DriverError(Exception):
    """What went wrong in the other process, as it printed there."""


# -- the test's end ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Driver:
    """A running driver. ``mark`` is its own: of the Python process and its JVM, and of all that runs in a local one."""

    mark: str
    process: subprocess.Popen[bytes]

    def call(self, command: Callable[..., A], *arguments: Any, **options: Any) -> A:
        """``command(drive, *arguments, **options)``, over there."""
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        try:
            pickle.dump((command, arguments, options), to)
            to.flush()
            error, answer = pickle.load(back)
        except (EOFError, BrokenPipeError):
            raise DriverError("the driver is gone") from None
        if error is not None:
            raise DriverError(error)
        return cast(A, answer)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """-9: Python and its JVM at once, which are one process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def started_driver(
    log: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """A driver with Spark's settings; ``log`` takes what it and its JVM say. Nothing of it stays.

    ``environment`` may have another PySpark.
    """
    mark = uuid.uuid4().hex
    with log.open("ab") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            env={**marked_environment(mark), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
            start_new_session=True,
        )
    try:
        driver = Driver(mark, process)
        driver.call(connect, settings)
        yield driver
        if driver.is_alive:
            driver.call(disconnect)
    finally:
        with process:
            end_marked(mark)


# -- the driver's end --------------------------------------------------------------------------------------------------


@dataclass
class Drive:
    running: dict[str, Views] = field(default_factory=dict)

    @property
    def spark(self) -> SparkSession:
        return SparkSession.active()


def serve(requests: BinaryIO) -> None:
    """Answers go where stdout went; from now on what anybody prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    drive = Drive()
    while True:
        try:
            command, arguments, options = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answered(drive, command, arguments, options), answers)
        answers.flush()


def _answered(drive: Drive, command: Callable[..., object], arguments: Any, options: Any) -> tuple[str | None, object]:
    try:
        return None, command(drive, *arguments, **options)
    except Exception as error:
        return "".join(traceback.format_exception(error)), None


def connect(drive: Drive, settings: Mapping[str, str]) -> None:
    """``spark.master`` as anywhere; ``spark.remote`` for Spark Connect."""
    own = dict(settings)
    if "spark.remote" in own:
        SparkSession.builder.config(map=own).getOrCreate()  # type: ignore[arg-type]
    else:
        viewlet.spark.session(own["spark.master"], **{"spark.ui.enabled": "false", **own})


def disconnect(drive: Drive) -> None:
    for name in list(drive.running):
        stop(drive, name)
    drive.spark.stop()


def start(drive: Drive, name: str, streams: Streams, **options: Any) -> None:
    drive.running[name] = streams.maintain(drive.spark, **options)


def finish(drive: Drive, name: str) -> None:
    """The query took all that was there, and ended by itself."""
    drive.running[name].query.awaitTermination()


def committed(drive: Drive, name: str, checkpoint: Path, batch: int) -> None:
    """Spark has committed a batch; raises what ended the query before that."""
    query = drive.running[name].query

    def look() -> bool:
        if (error := query.exception()) is not None:
            raise error
        return (checkpoint / "commits" / str(batch)).exists()

    until(f"batch {batch} of {name}", look)


def stop(drive: Drive, name: str) -> None:
    drive.running.pop(name).stop()


def rows(drive: Drive, name: str) -> dict[str, list[Row]]:
    """All views as of the last commit."""
    return {view: shown(frame) for view, frame in drive.running[name].at().items()}


def secret(drive: Drive, name: str) -> Secret:
    return drive.running[name]._runner.works.run.secret


def progress(drive: Drive, name: str) -> list[dict[str, Any]]:
    return [dict(p) for p in drive.running[name].progress]


# -- gates -------------------------------------------------------------------------------------------------------------


def gated(drive: Drive, gates: str) -> None:
    """From now on queries wait in front of closed gates: ``begin-7`` before batch 7, ``end-7`` between it and Spark's
    commit."""

    class GatedRunner(Runner):
        def __call__(self, rows: DataFrame, batch: int) -> None:
            _wait_at(Path(gates), f"begin-{batch}")
            super().__call__(rows, batch)
            _wait_at(Path(gates), f"end-{batch}")

    vars(import_module("viewlet.spark.driver.maintain"))["Runner"] = GatedRunner


def _wait_at(gates: Path, point: str) -> None:
    if (gates / f"{point}.closed").exists():
        (gates / f"{point}.reached").touch()
        while (gates / f"{point}.closed").exists():
            time.sleep(0.01)
