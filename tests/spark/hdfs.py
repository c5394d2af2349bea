"""HDFS for real: a NameNode and a DataNode, each a JVM, on ports of their own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.spark.cluster import until
from tests.spark.maven import jars
from viewlet.spark.java import java_home

HADOOP = ("org.apache.hadoop:hadoop-client-minicluster:3.4.2", "javax.xml.bind:jaxb-api:2.3.1")
SERVER = "org.apache.hadoop.hdfs.server"


@contextmanager
def started_hdfs(folder: Path) -> Iterator[str]:
    """``hdfs://host:port`` of an empty file system, whose files are below ``folder``."""
    classpath = jars(*HADOOP)
    port = _free_port()
    _configure(folder, port)
    with ExitStack() as ends:
        _run(folder, classpath, "namenode.NameNode", "-format", "-nonInteractive").wait()
        for kind in ("namenode.NameNode", "datanode.DataNode"):
            process = ends.enter_context(_run(folder, classpath, kind))
            ends.callback(process.kill)
        until("HDFS", lambda: _takes_blocks(folder))
        yield f"hdfs://127.0.0.1:{port}"


def _takes_blocks(folder: Path) -> bool:
    """A DataNode has a directory for blocks once it has registered with the NameNode."""
    return any(folder.glob("data/dfs/data/current/BP-*/current/finalized"))


def _run(folder: Path, classpath: tuple[Path, ...], kind: str, *options: str) -> subprocess.Popen[bytes]:
    places = os.pathsep.join([str(folder), *map(str, classpath)])
    java = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", places]
    with (folder / f"{kind}.log").open("ab") as log:
        return subprocess.Popen([*java, f"{SERVER}.{kind}", *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _configure(folder: Path, port: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    anywhere = {f"dfs.datanode.{what}": "127.0.0.1:0" for what in ("address", "http.address", "ipc.address")}
    core = {"fs.defaultFS": f"hdfs://127.0.0.1:{port}", "hadoop.tmp.dir": str(folder / "data")}
    hdfs = {**anywhere, "dfs.namenode.http-address": "127.0.0.1:0", "dfs.replication": "1"}
    for name, settings in (("core-site", core), ("hdfs-site", hdfs)):
        (folder / f"{name}.xml").write_text(_xml(settings))


def _xml(settings: Mapping[str, str]) -> str:
    properties = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    return f"<configuration>{''.join(properties)}</configuration>"


def _free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])
