"""Who is who among the processes of a query, so that a test can stop and kill exactly the one it means.

``SIGSTOP`` is the gate of these tests: a cell that is stopped holds its batch in the middle, for as long as it takes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.cluster import command_of, marked_processes, parent_of, until
from viewlet.durable.manifest import newest_manifest
from viewlet.durable.store import Store

LISTENING, ESTABLISHED = "0A", "01"  # states of a connection in /proc/net/tcp


def cell_port(checkpoint: Path, cell: str) -> int:
    """Where the newest manifest says that a cell is."""
    manifest = newest_manifest(Store.of(str(checkpoint)))
    assert manifest is not None
    return manifest.addresses[cell].port


def cell_process(mark: str, checkpoint: Path, cell: str) -> int:
    port = cell_port(checkpoint, cell)
    (pid,) = _holders(mark, {inode for inode, local, _, state in _sockets() if (local, state) == (port, LISTENING)})
    return pid


def clients_of(mark: str, checkpoint: Path, cell: str) -> list[int]:
    """The Python workers that wait for a cell's answer."""
    port = cell_port(checkpoint, cell)
    return _holders(mark, {inode for inode, _, remote, state in _sockets() if (remote, state) == (port, ESTABLISHED)})


def executor_of(pid: int) -> int:
    """The JVM above a Python worker."""
    while "CoarseGrainedExecutorBackend" not in command_of(pid):
        pid = parent_of(pid)
        assert pid > 1, "no executor above this process"
    return pid


def is_keeper(pid: int) -> bool:
    """Or a cell, which is a fork of its keeper."""
    return "viewlet.spark.process.keeper" in command_of(pid)


def keeper_of(cell: int) -> int:
    keeper = parent_of(cell)
    assert is_keeper(keeper), "the keeper is gone already"
    return keeper


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Meanwhile the process does nothing; afterwards it goes on, if it is still there."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def waiting_client(mark: str, checkpoint: Path, cell: str) -> int:
    """A worker in mid-batch: it has connected to a stopped cell."""
    return until(f"a task of cell {cell}", lambda: clients_of(mark, checkpoint, cell))[0]


def _sockets() -> Iterator[tuple[str, int, int, str]]:
    """(inode, local port, remote port, state) of every IPv4 connection on this machine."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, remote = (int(end.rpartition(":")[2], 16) for end in fields[1:3])
        yield fields[9], local, remote, fields[3]


def _holders(mark: str, inodes: set[str]) -> list[int]:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return [pid for pid in marked_processes(mark) if wanted & set(_open_files(pid))]


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{fd}")
