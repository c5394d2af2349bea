"""Which processes of a query there are, by kind, so that one of a kind can be picked and killed."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tests.faults.processes import is_keeper
from tests.spark.cluster import command_of, marked_processes, parent_of

DAEMON = "viewlet.spark.task.daemon"
KINDS = ("executor", "Python worker", "daemon of Python workers", "cell", "keeper")


Known = tuple[int, str]  # a process, and when it started: its number alone is another's soon


def victims(mark: str, spared: Collection[Known]) -> dict[str, list[int]]:
    """The processes of each kind, but for those of drivers that are gone, which no batch needs."""
    kinds: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for pid, started in sorted(running(mark)):
        with suppress(OSError, IndexError):  # it ended just now
            if (pid, started) not in spared and (kind := _kind(pid)) is not None:
                kinds[kind].append(pid)
    return kinds


def running(mark: str) -> set[Known]:
    found: set[Known] = set()
    for pid in marked_processes(mark):
        with suppress(OSError, IndexError):
            found.add((pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]))
    return found


def _kind(pid: int) -> str | None:
    command = command_of(pid)
    if "CoarseGrainedExecutorBackend" in command:
        return "executor"
    if DAEMON in command:  # workers are forked from it
        return "Python worker" if DAEMON in command_of(parent_of(pid)) else "daemon of Python workers"
    if is_keeper(pid):  # cells are forked from it, and stay when it is gone
        return "keeper" if os.getsid(pid) == pid else "cell"
    return None
