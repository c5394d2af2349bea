"""One Java for all processes of a user on a machine, in which Hadoop's file systems run as Spark's own do.

It is py4j's gateway, from Spark's jars. Its standard input is a named pipe that each process which uses it holds open:
when the last one ends, however it ends, the pipe has no writer any more, and Java ends, too.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from viewlet.errors import Error

PRIVATE = 0o700
GATEWAY = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]


@dataclass(frozen=True)
class Hadoop:
    """Classes of Java's as py4j shows them. To look one up takes several round trips, and settings are read off XML."""

    gateway: Any
    settings: Any
    file_system: Any
    file_context: Any
    path: Any
    uri: Any
    overwrite: Any  # how to rename


def hadoop() -> Hadoop:
    """Of the Java of this machine, which is started if need be; one connection for each process."""
    known = _known.get(os.getpid())
    if known is None:
        _known.clear()  # that of the process which this one was forked from
        known = _known[os.getpid()] = _looked_up(_connected())
    return known


def forget() -> None:
    """The Java is gone: the next call starts another."""
    _known.clear()


_known: dict[int, Hadoop] = {}
_held: list[int] = []  # the pipes' ends that keep it running
_children: list[subprocess.Popen[bytes]] = []  # that this process started, and does not wait for


def _looked_up(gateway: Any) -> Hadoop:
    apache, how = gateway.jvm.org.apache.hadoop, gateway.jvm.org.apache.hadoop.fs.Options.Rename
    overwrite = gateway.new_array(how, 1)
    overwrite[0] = how.OVERWRITE
    return Hadoop(
        gateway,
        apache.conf.Configuration(),
        apache.fs.FileSystem,
        apache.fs.FileContext,
        apache.fs.Path,
        gateway.jvm.java.net.URI,
        overwrite,
    )


def _connected() -> Any:
    py4j = import_module("py4j.java_gateway")
    classpath = _classpath()
    with _locked(hashlib.sha256(classpath.encode()).hexdigest()[:16]) as place:
        port, token = _joined(place) or _started(place, classpath)
    parameters = py4j.GatewayParameters(port=port, auth_token=token, auto_convert=True)
    return py4j.JavaGateway(gateway_parameters=parameters)


def _classpath() -> str:
    """Hadoop's configuration, and what Spark's JVMs have of it."""
    if find_spec("pyspark") is None:
        raise Error("Hadoop's file systems come with Spark, and there is no PySpark here: pip install 'viewlet[spark]'")
    home = os.environ.get("SPARK_HOME") or str(Path(import_module("pyspark").__file__ or "").parent)
    settings = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    return os.pathsep.join([*([settings] if settings else []), str(Path(home, "jars", "*"))])


@contextmanager
def _locked(name: str) -> Iterator[Path]:
    """Alone in the directory of the Java with this classpath."""
    mine = Path(tempfile.gettempdir()) / f"viewlet-java-{os.getuid()}"
    mine.mkdir(mode=PRIVATE, exist_ok=True)
    status = mine.lstat()
    if status.st_uid != os.getuid() or mine.is_symlink() or status.st_mode & 0o077:
        raise Error(f"{mine} must be a directory of this user, closed to others: remove it")
    place = mine / name
    place.mkdir(mode=PRIVATE, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def _joined(place: Path) -> tuple[int, str] | None:
    """The one that runs, if one does: only then has its pipe a reader."""
    try:
        _held.append(os.open(place / "pipe", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise
    port, token = json.loads((place / "address").read_text())
    return port, token


def _started(place: Path, classpath: str) -> tuple[int, str]:
    pipe = place / "pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe, 0o600)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    _held.append(os.open(pipe, os.O_WRONLY | os.O_CLOEXEC))
    os.set_blocking(reader, True)
    command = [_java(), "-Xmx256m", "-XX:+UseSerialGC", "-cp", classpath, *GATEWAY]
    with (place / "log").open("wb") as log:
        java = subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    os.close(reader)
    _children.append(java)
    assert java.stdout is not None
    with java.stdout as said:
        port, token = said.readline().strip(), said.readline().strip()
    if not token:
        raise Error(f"Java did not start: {(place / 'log').read_text(errors='replace').strip()[-300:]}")
    (place / "address").write_text(json.dumps([int(port), token.decode()]))
    return int(port), token.decode()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    if java := found or shutil.which("java"):
        return java
    raise Error("Hadoop's file systems need Java, and none is found: let JAVA_HOME name its directory on every machine")
