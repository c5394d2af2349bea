"""A broker of Kafka's for real: one JVM, which is its own controller, and what Spark needs to talk to it."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.cluster import until
from tests.spark.maven import jars
from viewlet.spark.java import java_home

BROKER = "org.apache.kafka:kafka_2.13:4.1.1"
# No connector of Spark 4.3 is to be had, and of the token provider none newer than 4.0.0: these run on it all the same.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0!",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0!",
    "org.apache.kafka:kafka-clients:3.9.1!",
    "org.apache.commons:commons-pool2:2.13.1!",
)
CONNECTOR_WITH_AVRO = (  # for Spark 4.1
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1!",
    "org.apache.spark:spark-avro_2.13:4.1.1!",
    *CONNECTOR[1:],
)
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@contextmanager
def started_broker(folder: Path) -> Iterator[str]:
    """``host:port`` of a broker without topics; who writes to one makes it."""
    classpath = os.pathsep.join(map(str, jars(BROKER)))
    port, controller = _free_port(), _free_port()
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
    java = [str(java_home() / "bin" / "java"), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with (folder / "log").open("wb") as log:
        format_ = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run(format_, check=True, stdout=log, stderr=log)
        with subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log) as broker:
            try:
                until("the broker", lambda: _listens(port))
                yield f"127.0.0.1:{port}"
            finally:
                broker.kill()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])
