"""Before a query starts: do Spark's Java, the Python of executors and that of the driver mean the same place?

A name may be another place to each of them: a local directory on several machines, a file system that one of them has
no package or no settings for. Then batches would be done and lost. So Java writes a file there, executors read it and
write their own, and the driver reads those.
"""

from __future__ import annotations

import pickle
import socket
import uuid
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewlet.durable.places import absolute
from viewlet.durable.store import Store
from viewlet.errors import Error
from viewlet.spark.driver.cluster import on_cluster

SHARED = "give a place that every machine reaches by this name, with the packages and settings that it needs"


def check_reach(spark: SparkSession, place: str, tasks: int, *, from_here: bool) -> None:
    """``tasks`` are as many as are likely to meet every executor. ``from_here``: this process is Spark's driver."""
    probe = f"reach/{uuid.uuid4().hex}"
    store = Store.of(absolute(place)) if from_here else None
    given = None if store and store.is_local else _given(spark, place, probe)
    written = _asked(spark, tasks, partial(_met, place, probe, given))
    if store is not None:
        _found(store, place, probe, written)
        _clear(place, probe)
    else:
        on_cluster(spark, partial(_clear, place, probe))


def _given(spark: SparkSession, place: str, probe: str) -> str:
    """What Spark's Java wrote."""
    token = uuid.uuid4().hex
    where = f"{place.rstrip('/')}/viewlet/{probe}/java"
    try:
        spark.createDataFrame([(token,)], "token string").coalesce(1).write.text(where)
    except (PySparkException, Py4JJavaError) as error:
        raise Error(f"Spark itself cannot write to {place}: {_in_short(str(error))}") from error
    return token


def _in_short(error: str) -> str:
    """The line of Java's that says what is wrong."""
    lines = [line.strip() for line in error.splitlines() if "Exception: " in line]
    return (lines or error.splitlines())[0].removeprefix(": ")


def _met(place: str, probe: str, given: str | None, task: int) -> str | Error:
    """On an executor: its machine's name, and the number of the task, once it has read and written there."""
    name = f"{socket.gethostname()} {task}"
    try:
        store = Store.of(place)
        parts = [path for path in store.walk(f"{probe}/java") if path.rpartition("/")[2].startswith("part-")]
        if given is not None and given not in {bytes(store.read(path)).decode().strip() for path in parts}:
            return Error(f"Spark's Java writes {place} elsewhere than the Python of {name} reads it: {SHARED}")
        store.write(f"{probe}/python/{task}", name.encode())
    except (Error, OSError, ImportError) as error:
        return Error(f"an executor on {socket.gethostname()} cannot use the checkpoint {place}: {error}")
    return name


def _found(store: Store, place: str, probe: str, written: list[str]) -> None:
    there = {bytes(store.read(path)).decode() for path in store.walk(f"{probe}/python")}
    if lost := sorted(set(written) - there):
        machine = lost[0].rpartition(" ")[0]
        raise Error(f"the driver does not find in {place} what an executor on {machine} wrote there: {SHARED}")


def _clear(place: str, probe: str) -> None:
    store = Store.of(place)
    store.delete(store.walk(probe))


def _asked(spark: SparkSession, tasks: int, met: partial[str | Error]) -> list[str]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = [pickle.dumps(met(task)) for task in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"answer": answers})

    frame: DataFrame = spark.range(0, tasks, 1, tasks).mapInArrow(run, "answer binary")
    answers = [pickle.loads(row.answer) for row in frame.collect()]
    for answer in answers:
        if isinstance(answer, Error):
            raise answer
    return answers
