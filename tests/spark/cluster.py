"""A standalone cluster of real processes: a master and two workers, each a JVM, and executors in JVMs of their own.

Whatever is started here, and whatever that starts, carries a *mark* in its environment, so all of it can be found,
killed, and shown to be gone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyspark

from viewlet.spark.java import java_home

MARK = "VIEWLET_TEST_MARK"
ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
SPARK_CLASS = str(SPARK_HOME / "bin" / "spark-class")
PATIENCE = 180.0  # seconds until something that must happen has not
HOSTS = ("127.0.0.1", "localhost")  # two names: Spark never runs two copies of a task on one host
A = TypeVar("A")


def until(what: str, look: Callable[[], A | None]) -> A:
    """What ``look`` finds, as soon as it finds anything."""
    end = time.monotonic() + PATIENCE
    while not (answer := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.02)
    return answer


# -- marked processes --------------------------------------------------------------------------------------------------


def marked_environment(mark: str) -> dict[str, str]:
    """For a process that, like all its descendants, is to be found again, and runs what is in this checkout."""
    return {
        **os.environ,
        MARK: mark,
        "JAVA_HOME": str(java_home()),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # JVMs that live for seconds
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT, SPARK_HOME.parent))),  # this PySpark, too
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOSTS[0],
    }


def marked_processes(mark: str) -> list[int]:
    """The processes with a mark that still run; one that is dead and not yet waited for does not."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _all_processes() if wanted in _read(pid, "environ").split(b"\0")]


def command_of(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode()


def parent_of(pid: int) -> int:
    return int(_read(pid, "stat").rpartition(b")")[2].split()[1])


def end_marked(mark: str) -> None:
    """Nothing with this mark runs any more."""

    def end_those_left() -> bool:
        left = marked_processes(mark)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    until("marked processes to end", end_those_left)


def _all_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _read(pid: int, name: str) -> bytes:
    """Empty for a process that is gone, or not ours."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


# -- the cluster -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    master: str
    mark: str

    @property
    def settings(self) -> Mapping[str, str]:
        """Of a driver: one executor with one core on each worker; several drivers find room."""
        return {
            "spark.master": self.master,
            **_encrypted(self.mark),
            "spark.cores.max": str(len(HOSTS)),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": str(len(HOSTS)),
        }


def _encrypted(secret: str) -> dict[str, str]:
    """Spark's processes, and so the cells, trust no network."""
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
    }


@contextmanager
def started_cluster(folder: Path) -> Iterator[Cluster]:
    """A running cluster; ``folder`` takes its logs and its workers' directories."""
    mark = uuid.uuid4().hex
    folder.mkdir(parents=True, exist_ok=True)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons.append(_launch(mark, folder, "master.Master", "master", "--host", HOSTS[0]))
        master = until("the master", lambda: _said(folder / "master.log", r"Starting Spark master at (spark://\S+)"))
        for number, host in enumerate(HOSTS):
            own = ["--host", host, "--cores", "4", "--memory", "4g", "--work-dir", str(folder / f"work{number}")]
            daemons.append(_launch(mark, folder, "worker.Worker", f"worker{number}", *own, master))
        for number in range(len(HOSTS)):
            registered = partial(_said, folder / f"worker{number}.log", r"(Successfully registered) with master")
            until("a worker", registered)
        yield Cluster(master, mark)
    finally:
        end_marked(mark)
        for daemon in daemons:
            daemon.wait()


def _launch(mark: str, folder: Path, kind: str, name: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a JVM on ports of its own choice, with a log in the folder."""
    environment = {
        **marked_environment(mark),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(f"-D{name}={value}" for name, value in _encrypted(mark).items()),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    command = [SPARK_CLASS, f"org.apache.spark.deploy.{kind}", "--port", "0", "--webui-port", "0", *options]
    with (folder / f"{name}.log").open("wb") as out:
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def _said(log: Path, pattern: str) -> str | None:
    match_ = re.search(pattern, log.read_text())
    return match_[1] if match_ else None
