"""Faults of a campaign: each gives batches, and does its harm at some moment while they are done."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.faults.disks import filled, flipped
from tests.faults.endured import QUERY, Endured
from tests.faults.processes import kill
from tests.faults.restarts import CHANGES, cut_short, restart
from tests.faults.victims import victims
from tests.spark import drive
from tests.spark.cluster import until
from tests.spark.drive import DriverError


@dataclass(frozen=True)
class Strike:
    strike: Callable[[Endured, Random], None]
    weight: float
    of_files: bool = False  # it does harm to files, which must be local for that


def kill_one(kind: str, endured: Endured, rng: Random) -> None:
    """In mid-batch, between batches, while others are opened again: whenever it is."""
    endured.give(rng.randint(1, 2))
    endured.wait(rng)
    with suppress(ProcessLookupError):  # it ended by itself just now
        kill(rng.choice(until(f"a {kind}", lambda: victims(endured.cluster.mark, endured.spared)[kind])))


def kill_several(endured: Endured, rng: Random) -> None:
    """Processes of any kind, one soon after the other, while the query is busy with what the first has left."""
    endured.give(2)
    for _ in range(rng.randint(2, 4)):
        endured.wait(rng)
        alive = [pid for pids in victims(endured.cluster.mark, endured.spared).values() for pid in pids]
        with suppress(ProcessLookupError, IndexError):
            kill(rng.choice(alive))


def kill_driver(endured: Endured, rng: Random) -> None:
    endured.give(2)
    endured.wait(rng)
    endured.driver.kill()


def two_drivers(endured: Endured, rng: Random) -> None:
    """The first is stopped in mid-batch, and believed dead; it wakes up while a second one does its work."""
    endured.give()
    endured.wait(rng)
    first = endured.driver
    os.killpg(first.process.pid, signal.SIGSTOP)
    endured.driver = endured.new_driver()
    endured.start()
    endured.give()
    endured.wait(rng)
    os.killpg(first.process.pid, signal.SIGCONT)
    endured.give()
    endured.wait(rng)
    first.kill()


def disk_full(endured: Endured, rng: Random) -> None:
    """Until the query has ended, in whatever it was writing: it must not say that it has done what it could not."""
    with filled(endured.folder / "disk", spare=rng.choice((0, 1 << 14, 1 << 16, 1 << 17))):
        while not endured.driver.call(has_ended):
            endured.give()
            with suppress(DriverError):
                endured.committed()


def has_ended(drive_: drive.Drive) -> bool:
    return not drive_.running[QUERY].query.isActive


def damage(endured: Endured, rng: Random) -> None:
    """A start over a damaged file goes on from another one, or refuses it by name; it is mended then."""
    endured.stop()
    file = rng.choice(_state_files(endured))
    with flipped(file):
        endured.give()
        try:
            endured.start()
            endured.committed()
        except DriverError as refusal:
            if "CorruptError" not in str(refusal):
                raise
        if endured.driver.is_alive:
            endured.start_again()


def _state_files(endured: Endured) -> list[Path]:
    """Those that the next start may need: manifests, snapshots and logs of the last batch."""
    newest = endured.job.newest
    chains = newest.cells.values()
    logs = [chain.logs[-1].file.path for chain in chains if chain.logs]
    snapshots = [snapshot.file.path for chain in chains for snapshot in chain.snapshots]
    return [*endured.job.manifests(newest.batch), *map(endured.job.state, (*logs, *snapshots))]


def lose_offsets(endured: Endured, rng: Random) -> None:
    """As a host that crashes does: what Spark noted of its last batch is gone, or was not whole."""
    endured.stop()
    last = endured.job.newest.batch
    endured.job.lose("commits", last)
    endured.job.lose("offsets", last)
    if rng.random() < 0.5:
        Path(endured.checkpoint, "offsets", str(last)).write_bytes(b"")
    endured.give()
    endured.start()


STRIKES = {
    "executor": Strike(partial(kill_one, "executor"), 4),
    "Python worker": Strike(partial(kill_one, "Python worker"), 5),
    "daemon of Python workers": Strike(partial(kill_one, "daemon of Python workers"), 3),
    "cell": Strike(partial(kill_one, "cell"), 6),
    "keeper of cells": Strike(partial(kill_one, "keeper"), 4),
    "several of them": Strike(kill_several, 3),
    "driver": Strike(kill_driver, 2),
    "two drivers at once": Strike(two_drivers, 1),
    "disk full": Strike(disk_full, 1, of_files=True),
    "a damaged file": Strike(damage, 2, of_files=True),
    "lost offsets": Strike(lose_offsets, 1, of_files=True),
    **{name: Strike(partial(restart, change), 2) for name, change in CHANGES.items()},
    "a kill while the job changes": Strike(cut_short, 4),
}
