"""A process of its own for each measurement, and what it and all that it starts take of the machine."""

from __future__ import annotations

import multiprocessing
import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException

P = ParamSpec("P")
A = TypeVar("A")

PROC = Path("/proc")
MARK = "VIEWLET_BENCH"  # in the environment, which a process inherits even from a parent that is gone
TICKS = os.sysconf("SC_CLK_TCK")


def apart(cores: int | None, function: Callable[P, A], *given: P.args, **named: P.kwargs) -> A:
    """What ``function`` answers in a fresh process that has so many cores (None: all) for itself and its children."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh, _begin, (cores, uuid.uuid4().hex)) as pool:
        return pool.submit(_told, function, *given, **named).result()


def _begin(cores: int | None, mark: str) -> None:
    os.environ[MARK] = mark
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def _told(function: Callable[P, A], *given: P.args, **named: P.kwargs) -> A:
    """Errors of Spark hold what cannot travel to another process; their text can."""
    try:
        return function(*given, **named)
    except PySparkException as error:
        raise RuntimeError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds: of the wall, of CPU that this measurement's processes took, of CPU that anyone took."""

    wall: float
    own: float
    all: float

    @staticmethod
    def now() -> Clock:
        return Clock(time.monotonic(), sum(map(_cpu_seconds, _marked())), _busy_seconds())

    def __sub__(self, earlier: Clock) -> Clock:
        return Clock(self.wall - earlier.wall, self.own - earlier.own, self.all - earlier.all)

    @property
    def cores(self) -> float:
        """How many were busy for us."""
        return self.own / self.wall

    @property
    def others(self) -> float:
        """How many were busy for others."""
        return max(0.0, self.all - self.own) / self.wall


def _marked() -> Iterator[Path]:
    """The processes that this one started, and theirs: driver, JVM, workers, cells."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if process.name == str(os.getpid()) or mark in (process / "environ").read_bytes().split(b"\0"):
                yield process


def _cpu_seconds(process: Path) -> float:
    """Its own, and that of children that ended: a child's passes to its parent, so that none is lost or doubled."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def _busy_seconds() -> float:
    """User, nice, system, interrupts: all but idle and waiting."""
    user, nice, system, _, _, irq, soft, *_ = map(int, (PROC / "stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + soft) / TICKS
