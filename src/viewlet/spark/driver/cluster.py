"""Errands where the data is: the checkpoint may be out of reach for the caller of ``maintain`` (Spark Connect)."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewlet.durable.chain import Manifest
from viewlet.durable.manifest import manifest_names, newest_manifest, read_manifest, rolled, write_manifest
from viewlet.durable.published import published_batches, published_offsets
from viewlet.durable.store import Store
from viewlet.errors import CorruptError, Error
from viewlet.spark.job import known_job, spark_place
from viewlet.spark.process.client import stop
from viewlet.spark.process.ticket import Run

A = TypeVar("A")
OTHER_VERSION = "PYTHON_VERSION_MISMATCH"  # says Spark
RECENT = 100  # batches whose progress is looked up


def on_cluster(spark: SparkSession, errand: Callable[[], A]) -> A:
    """What ``errand`` answers, or raises, when some executor runs it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            try:
                answer: object = errand()
            except Error as error:
                answer = error
            yield pa.RecordBatch.from_pydict({"answer": [pickle.dumps(answer)]})

    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(run, "answer binary").collect()
    except (PySparkException, Py4JJavaError) as error:
        refuse_other_python(str(error))
        raise
    answer = pickle.loads(rows[0].answer)
    if isinstance(answer, Error):
        raise answer
    return answer  # type: ignore[no-any-return]


def refuse_other_python(failure: str) -> None:
    """An errand is the first that Spark's Python workers hear of viewlet. Their Python may not be the one of this."""
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", failure)
    if missing or OTHER_VERSION in failure:
        what = f"have no module {missing[1]}" if missing else "are of another version of Python"
        theirs = os.environ.get("PYSPARK_PYTHON", "python3, since PYSPARK_PYTHON is not set")
        raise Error(
            f"Spark's Python workers {what}: they run {theirs}. Make the session with viewlet.spark.session(), or set "
            f"PYSPARK_PYTHON={sys.executable} before it starts; on a cluster, install viewlet in the Python of its "
            f"executors"
        ) from None


# -- errands -----------------------------------------------------------------------------------------------------------


def last_committed(checkpoint: str) -> int:
    """Spark's last commit; before the first one, the newest of our own batches before the stream."""
    committed = [int(name) for name in Store(spark_place(checkpoint)).names("commits") if name.isdigit()]
    if committed:
        return max(committed)
    before = newest_manifest(Store.of(checkpoint), -1)
    if before is None:
        raise CorruptError(f"{checkpoint} holds no state of a maintained script")
    return before.batch


def state_of(checkpoint: str, batch: int) -> Manifest:
    manifest = read_manifest(Store.of(checkpoint), batch)
    if manifest is None:
        raise Error(f"there is no state of batch {batch} in {checkpoint}: it is deleted by now, or never was")
    return manifest


def view_files(checkpoint: str, batch: int | None, views: tuple[str, ...]) -> dict[str, list[str]]:
    """The Parquet files that make up each view as of a batch, the last committed one unless told.

    Views are left out that were not there yet, or had other columns.
    """
    asked = last_committed(checkpoint) if batch is None else batch
    since = known_job(checkpoint).since
    there = [view for view in views if since.get(view, asked) <= asked]
    return files_of(checkpoint, state_of(checkpoint, asked), there)


def files_of(checkpoint: str, manifest: Manifest, views: Iterable[str]) -> dict[str, list[str]]:
    store = Store.of(checkpoint)
    parts = {view: [chain.view(view) for chain in manifest.cells.values()] for view in views}
    return {
        view: [
            store.pattern_of(file.path)
            for part in pieces
            for file in ((part.base,) if part.base else ()) + part.changes
        ]
        for view, pieces in parts.items()
    }


def batches_done(checkpoint: str) -> list[int]:
    return published_batches(Store.of(checkpoint))


def batches_done_and_given(checkpoint: str, first: int) -> tuple[list[int], str]:
    """And what the first of them was made of; "" if it was not yet, or nobody noted it."""
    store = Store.of(checkpoint)
    return published_batches(store), published_offsets(store, first) or ""


def save_manifest(checkpoint: str, manifest: Manifest) -> None:
    write_manifest(Store.of(checkpoint), manifest)


def recent_progress(checkpoint: str) -> list[Any]:
    """One for each batch, of whichever run has done it."""
    last, store = last_committed(checkpoint), Store.of(checkpoint)
    recent = range(max(0, last - RECENT), last + 1)
    names = {name.batch: name for name in manifest_names(store) if name.batch in recent}
    return [one.manifest.progress for one in rolled(store, [names[batch] for batch in sorted(names)])]


def stop_cells(checkpoint: str, run: Run) -> None:
    """Of this run, where they were last seen. A manifest that cannot be read is passed over: stopping needs none."""
    store = Store.of(checkpoint)
    for batch in sorted(batches_done(checkpoint), reverse=True):
        with suppress(CorruptError):
            manifest = read_manifest(store, batch)
            if manifest is not None and manifest.run == run.id:
                stop(run, manifest.addresses.values())
            return
