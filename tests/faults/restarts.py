"""Strikes that start the query again with something else: the same checkpoint goes on with another job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from threading import Timer

from tests.faults.choices import (
    Choice,
    other_cells,
    other_condition,
    other_strategy,
    other_version,
    view_less,
    view_more,
)
from tests.faults.endured import Endured
from tests.faults.processes import kill
from tests.faults.victims import victims
from tests.spark.drive import DriverError

Change = Callable[[Choice, Random], Choice]

CHANGES: dict[str, Change] = {
    "another number of cells": other_cells,
    "a view more": view_more,
    "a view less": view_less,
    "another condition": other_condition,
    "another strategy": other_strategy,
    "another version": other_version,
}
LONGEST_CHANGE = 12.0  # seconds until something is killed while the job changes: longer than most changes


def restart(change: Change, endured: Endured, rng: Random) -> None:
    """The query ends in mid-batch, in one of three cases with its driver, and goes on as another job."""
    _end(endured, rng)
    endured.choice = change(endured.choice, rng)
    endured.give(rng.randint(0, 1))
    endured.start_again()


def cut_short(endured: Endured, rng: Random) -> None:
    """The driver, or any other process, is killed while the job changes. What goes on is the job before, or that one.

    Which of the two did count does not matter to a start with either.
    """
    before = endured.choice
    _end(endured, rng)
    endured.choice = rng.choice(list(CHANGES.values()))(before, rng)
    endured.give(rng.randint(0, 1))
    with _killed_meanwhile(endured, rng), suppress(DriverError):
        endured.start_again()
    if not endured.driver.is_alive and rng.random() < 0.5:
        endured.choice = before


def _end(endured: Endured, rng: Random) -> None:
    endured.give()
    endured.wait(rng)
    if rng.random() < 1 / 3:
        endured.driver.kill()
    else:
        endured.stop()


@contextmanager
def _killed_meanwhile(endured: Endured, rng: Random) -> Iterator[None]:
    """The driver is there before that: what is cut short is the change, not a start of Java's."""
    endured.ensure_driver()
    is_driver, nth = rng.random() < 0.6, rng.random()

    def strike() -> None:
        alive = [pid for pids in victims(endured.cluster.mark, endured.spared).values() for pid in pids]
        if is_driver or not alive:
            endured.driver.kill()
        else:
            with suppress(ProcessLookupError):
                kill(alive[int(nth * len(alive))])

    timer = Timer(rng.uniform(0, LONGEST_CHANGE), strike)
    timer.start()
    try:
        yield
    finally:
        timer.join()
