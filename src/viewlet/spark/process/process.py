"""Processes around a cell: the one whose life it shares, and the directory in which its keeper is found."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewlet.errors import Error
from viewlet.spark.process.secret import Secret

PRIVATE = 0o700
LOOPBACK = "127.0.0.1"  # where cells listen if all of Spark is on this machine
NOTE = "address"  # the file in a keeper's directory that says where it listens


@dataclass(frozen=True)
class Process:
    """A process, and when it started: its number alone may be another's by now."""

    pid: int
    started: str

    @property
    def is_alive(self) -> bool:
        status = _look(self.pid)
        return status is not None and status.started == self.started


@dataclass(frozen=True)
class _Look:
    parent: int
    name: str
    started: str


def owner() -> Process:
    """Whose end is the end of cells that are opened here: the executor's JVM, or else this process."""
    pid = os.getpid()
    while (status := _look(pid)) is not None and pid > 1:
        if status.name == "java":
            return Process(pid, status.started)
        pid = status.parent
    mine = _look(os.getpid())
    assert mine is not None, "a process finds itself"
    return Process(os.getpid(), mine.started)


def home_of(host: str, of: Process) -> str:
    """An executor, told from all others."""
    return f"{host}:{of.pid}"


def _look(pid: int) -> _Look | None:
    """None for a process that is gone, or dead and not yet buried."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _ask_ps(pid)
    except ProcessLookupError:
        return None
    before, _, after = text.rpartition(")")
    state, parent, *rest = after.split()
    return None if state in "ZX" else _Look(int(parent), before.partition("(")[2], rest[17])


def _ask_ps(pid: int) -> _Look | None:
    """Where there is no /proc."""
    ran = subprocess.run(["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)], capture_output=True, text=True)
    if ran.returncode != 0 or not ran.stdout.strip():
        return None
    parent, *date, name = ran.stdout.split(maxsplit=6)
    return _Look(int(parent), name.strip().rpartition("/")[2], " ".join(date))


# -- keepers and their directories -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a keeper is told through its standard input: command lines can be read by other users."""

    directory: str
    secret: Secret
    host: str
    store: str
    idle: float
    owner_pid: int
    owner_started: str
    ports: tuple[int, int] | None = None  # the first and the last that may be listened at

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Settings:
        return Settings(**{**data, "secret": Secret(**data["secret"])})


def directory_for(run: str, of: Process) -> Path:
    """Private to the user; one for each run and executor on this machine."""
    mine = Path(tempfile.gettempdir()) / f"viewlet-{os.getuid()}"
    mine.mkdir(mode=PRIVATE, exist_ok=True)
    status = mine.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise Error(f"{mine} must be a directory of this user, closed to others: remove it")
    return mine / f"{run}-{of.pid}"


def started(module: str, told: Mapping[str, object]) -> str:
    """What a process prints that goes on by itself. Its modules are those of this one, wherever Spark has put them."""
    command = [sys.executable, "-m", module]
    ran = subprocess.run(command, input=json.dumps(told), capture_output=True, text=True, env=environment())
    if ran.returncode != 0 or not ran.stdout:
        raise Error(f"the keeper of cells does not start: {ran.stderr.strip()}")
    return ran.stdout


def environment() -> dict[str, str]:
    """Of a process that forks."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def sweep(directory: Path) -> None:
    """Remove what keepers that were killed have left beside a directory: those of owners that are gone."""
    for other in directory.parent.glob("*-*"):
        if _look(int(other.name.rpartition("-")[2])) is None:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Alone in the directory, which is made if need be; also where the last keeper removes it meanwhile."""
    import fcntl

    while True:
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        try:
            lock = (directory / "lock").open("w")
        except FileNotFoundError:
            continue
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_there(directory / "lock", lock.fileno()):
                yield
                return


def _is_there(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
