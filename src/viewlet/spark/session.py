"""A Spark session anywhere: in this process, on a cluster, through Spark Connect, or the one that is already there."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from viewlet.errors import Error
from viewlet.spark.java import java_home

try:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession
except ImportError as missing:
    raise Error("viewlet.spark needs PySpark: pip install 'viewlet[spark]'") from missing

Setting = str | int | float | bool

LOCAL = "local[*]"
TASK_FAILURES = 4  # what Spark allows on a cluster; a local master allows none unless it is told
_LOCAL_MASTER = re.compile(r"local(?:\[(?P<cores>\*|\d+)\])?")

# Anywhere. Between the JVM and its Python workers small messages wait for each other on TCP, 40 ms at a time (Nagle's
# algorithm meets delayed acknowledgements); on Unix sockets they do not. SQL's TIME is a type that Spark has and does
# not take unless it is told to. The rows of a small micro-batch are read by one task: with locality, all tasks after it
# would queue for up to three seconds at that task's executor, rather than run on those that are free.
_OURS = {
    "spark.python.daemon.module": "viewlet.spark.task.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.sql.timeType.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# In this process: nothing listens to the network, nothing is printed but errors. Checkpoints go through the older of
# Hadoop's two interfaces to files: on local disks both write, then rename, but the newer one starts a process for each.
# What a source of files has noted in its log and then noted again in short need not lie there for ten minutes more: it
# is listed for every micro-batch, and nobody but the query reads it.
_QUIET = Path(__file__).with_name("log4j2.properties")
_LOCALLY = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.fileSource.log.cleanupDelay": "10s",
    "spark.ui.enabled": "false",
}


def session(master: str | None = None, app: str = "viewlet", **conf: Setting) -> SparkSession:
    """A Spark session, ready for :func:`maintain`.

    A session that is already there is handed out as it is. Else ``master`` says where it runs. ``local[*]``, the
    default, is Spark inside this process. ``spark://host:port`` is a cluster, as is any other master that
    ``spark-submit`` takes. ``sc://host`` is a Spark Connect server. Under ``spark-submit`` its own master and
    configuration hold. ``conf`` has Spark's settings by their own names: ``session(**{"spark.ui.enabled": True})``.
    """
    with suppress(PySparkRuntimeError):  # there is none
        return SparkSession.active()
    master = master or os.environ.get("SPARK_REMOTE")
    if master is not None and master.startswith("sc://"):
        settings: dict[str, Setting] = {"spark.remote": master}
    elif "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit
        settings = {} if master is None else {"spark.master": master}
    else:
        os.environ["JAVA_HOME"] = str(java_home())
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = _settings(master or LOCAL)
    return SparkSession.builder.appName(app).config(map={**settings, **conf}).getOrCreate()


def _settings(master: str) -> dict[str, Setting]:
    local = _LOCAL_MASTER.fullmatch(master)
    if local is None:
        return {"spark.master": master, **_OURS}
    cores = local["cores"] or "1"
    partitions = os.cpu_count() or 1 if cores == "*" else int(cores)
    return {
        "spark.master": f"local[{cores},{TASK_FAILURES}]",
        "spark.sql.shuffle.partitions": partitions,
        **_OURS,
        **_LOCALLY,
    }
