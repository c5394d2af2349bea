"""A process of its own for each measurement, and what it and all that it starts take of the machine."""

from __future__ import annotations

import multiprocessing
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from pyspark.errors import PySparkException

P = ParamSpec("P")
A = TypeVar("A")

PROC = Path("/proc")
MARK = "VIEWLET_BENCH"  # in the environment, which a process inherits even from a parent that is gone
DRIVER = "driver"
ROLES = {DRIVER: b"", "JVM": b"/bin/java", "workers": b".daemon", "cells": b"viewlet.spark.process"}
TICKS = os.sysconf("SC_CLK_TCK")


def apart(cores: range | None, function: Callable[P, A], *given: P.args, **named: P.kwargs) -> A:
    """What ``function`` answers in a fresh process that has these cores (None: all) for itself and its children."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh, _begin, (cores, uuid.uuid4().hex)) as pool:
        return pool.submit(_told, partial(function, *given, **named)).result()


def _begin(cores: range | None, mark: str) -> None:
    os.environ[MARK] = mark
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[cores.start : cores.stop])


def _told(function: Callable[[], A]) -> A:
    """Errors of Spark hold what cannot travel to another process; their text can."""
    try:
        return function()
    except PySparkException as error:
        raise RuntimeError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds: of the wall, of CPU that this measurement's processes took, by role, and of CPU that anyone took."""

    wall: float
    roles: Mapping[str, float]
    all: float

    @staticmethod
    def now() -> Clock:
        roles = dict.fromkeys(ROLES, 0.0)
        for process, role in _marked():
            roles[role] += _cpu_seconds(process)
        return Clock(time.monotonic(), roles, _busy_seconds())

    def __sub__(self, earlier: Clock) -> Clock:
        roles = {role: seconds - earlier.roles[role] for role, seconds in self.roles.items()}
        return Clock(self.wall - earlier.wall, roles, self.all - earlier.all)

    @staticmethod
    def total(clocks: Iterable[Clock]) -> Clock:
        """Of stretches that were apart."""
        given = list(clocks)
        roles = {role: sum(clock.roles[role] for clock in given) for role in ROLES}
        return Clock(sum(clock.wall for clock in given), roles, sum(clock.all for clock in given))

    @property
    def own(self) -> float:
        return sum(self.roles.values())

    @property
    def cores(self) -> float:
        """How many were busy for us."""
        return self.own / self.wall

    @property
    def others(self) -> float:
        """How many were busy for others."""
        return max(0.0, self.all - self.own) / self.wall


def _marked() -> Iterator[tuple[Path, str]]:
    """The processes that this one started, and theirs, each with its role."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if process.name == str(os.getpid()):
                yield process, DRIVER
            elif mark in (process / "environ").read_bytes().split(b"\0"):
                yield process, _role((process / "cmdline").read_bytes())


def _role(command: bytes) -> str:
    return next((role for role, sign in ROLES.items() if sign and sign in command), DRIVER)


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
