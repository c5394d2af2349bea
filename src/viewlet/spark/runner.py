"""One micro-batch after the other: run the cells, then say which of their files count.

Spark's own offset and commit logs say which batches there are. The manifest of a batch says what they came to; it is
written when all of it is durable and before Spark commits. A batch that Spark runs again starts from the manifest
before it; where it was done already, over the same offsets, nothing is left to do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewlet.errors import CorruptError, Error
from viewlet.spark.chain import Chain, Manifest
from viewlet.spark.client import Answer
from viewlet.spark.feed import Message, Turn, answers, feed_cells, feed_merge_cells
from viewlet.spark.manifest import clean, newest_manifest, publish, read_manifest, write_manifest
from viewlet.spark.pipeline import Works
from viewlet.spark.route import OP
from viewlet.spark.stage import OUTPUT, cell_stage, merge_stage
from viewlet.spark.store import Store, digest

OPENING, HISTORY = -2, -1  # the batches before Spark's first: static tables, and what was there before the stream
ATTEMPTS = 5  # at a batch
GIVEN_UP = "indeterminate output"  # says Spark where part of a job would see other rows than the rest
TOO_LARGE = "spark.driver.maxResultSize"  # names Spark where it will not give this process as much as it asked for
MOST_GATHERED = 4_000_000  # rows of the batch before, for this one to come through this process
SETTINGS = {  # of the query's session
    # without a limit in bytes, Spark does not add up the bytes of an Arrow batch at every row: a third of a task's time
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # so that even with texts of 200,000 letters each a batch stays below what Arrow can hold
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # nothing to adapt, and each shuffle would be a job of its own: as Spark has it for streams anyway
    "spark.sql.adaptive.enabled": "false",
    # what a task reads of a batch may have to lie in the JVM's memory at once; a core has soon read that much
    "spark.sql.files.maxPartitionBytes": "16m",
}
CLEAN_EVERY = 20  # batches: looking for files to delete lists directories
REMEMBERED = 1000  # batches' progress, in memory


def apply_settings(spark: SparkSession) -> None:
    for setting, value in SETTINGS.items():
        spark.conf.set(setting, value)


@dataclass
class Runner:
    """The function that ``foreachBatch`` calls, wherever the driver of the query is."""

    works: Works
    checkpoint: str
    retain: int
    here: bool  # Spark is all on this machine
    last: Manifest | None = None
    named: dict[int, frozenset[str]] = field(default_factory=dict)  # by batch: the files that its manifest names
    recent: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def __call__(self, rows: DataFrame, batch: int) -> None:
        store = Store(self.works.run.store)
        offsets = digest(Store(self.checkpoint).read(f"offsets/{batch}"))
        manifest = _done(store, batch, offsets)
        if manifest is None:
            if not self.here:  # through Connect a batch is planned in the session that started the query
                apply_settings(rows.sparkSession)
            before = self._before(store, batch)
            manifest = run_batch(rows, self.works, before, batch, offsets, gather=self.here and self._is_small(before))
            write_manifest(store, manifest)
        else:
            publish(store, manifest)  # the attempt before may have died just before it did
        self.last = manifest
        self.named[batch] = manifest.files()
        self.recent.append(manifest.progress)
        if batch % CLEAN_EVERY == CLEAN_EVERY - 1:
            clean(store, batch - 1, self.retain, self.named)

    def _is_small(self, before: Manifest) -> bool:
        """By the last batch of this run: the first may have all that came in since the run before."""
        return before.run == self.works.run.id and before.batch >= 0 and before.progress["rows"] <= MOST_GATHERED

    def _before(self, store: Store, batch: int) -> Manifest:
        if self.last is not None and max(self.last.batch, HISTORY) == batch - 1:
            return self.last
        found = read_manifest(store, batch - 1) if batch > 0 else newest_manifest(store, HISTORY)
        if found is None:
            raise CorruptError(
                f"Spark goes on with batch {batch}, but {store.uri} has no state of the batch before it: restore the "
                f"checkpoint as a whole, or start with a new one"
            )
        return found


def _done(store: Store, batch: int, offsets: str) -> Manifest | None:
    """What an earlier attempt at this very batch came to; one that is broken or of other offsets is done again."""
    try:
        found = read_manifest(store, batch)
    except CorruptError:
        return None
    return found if found is not None and found.offsets == offsets else None


def run_batch(
    rows: DataFrame, works: Works, before: Manifest | None, batch: int, offsets: str, *, gather: bool = False
) -> Manifest:
    """Route, apply, merge: what the cells answer is the batch's manifest."""
    started = time.monotonic()
    seen = before.addresses if before and before.run == works.run.id else {}  # others' cells do not talk to us
    chains = dict(before.cells) if before else {}
    turn = Turn(works, batch, {name: chain.packed() for name, chain in chains.items()}, seen)
    gathered = _gathered(rows, works) if gather else None
    found = _through_tasks(rows, turn) if gathered is None else _from_here(gathered, turn)
    for answer in found:
        chains[answer.cell] = chains.get(answer.cell, Chain()).followed(answer.log, answer.snapshot)
    addresses = {**turn.addresses, **{a.cell: a.address for a in found}}
    held = {**(before.progress["state_by_cell"] if before else {}), **{a.cell: a.state_bytes for a in found}}
    progress = _progress(batch, works, found, held, time.monotonic() - started)
    return Manifest(batch, offsets, chains, addresses, progress, works.run.id)


# -- all on this machine -----------------------------------------------------------------------------------------------


def _gathered(rows: DataFrame, works: Works) -> list[pa.RecordBatch] | None:
    """A batch's rows, in this process; None where Spark finds that they are too many for it.

    In one piece: the threads that feed cells would only wait for each other over many small ones.
    """
    try:
        found: list[pa.RecordBatch] = _summed(rows, works).toArrow().combine_chunks().to_batches()
    except Exception as error:  # Spark has no type of its own for this one
        if TOO_LARGE not in str(error):
            raise
        return None
    return found


def _from_here(rows: list[pa.RecordBatch], turn: Turn) -> list[Answer]:
    """Cells are processes of this machine: they get their rows without a shuffle, and without Python workers."""
    told = feed_cells(turn, rows)
    found = answers(list(feed_merge_cells(turn, told) if turn.works.merge_cells else told))
    assert found is not None, "each cell was asked once, and what it sent was summed"
    return found


# -- anywhere ----------------------------------------------------------------------------------------------------------


def _through_tasks(rows: DataFrame, turn: Turn) -> list[Answer]:
    """One Spark job: rows are shuffled to tasks, each of which feeds some cells."""
    works = turn.works
    done = _by_cell(_summed(rows, works), works).mapInArrow(cell_stage(turn), OUTPUT)
    if works.merge_cells:
        done = _in_tasks(done, works, works.merge_cells, "part").mapInArrow(merge_stage(turn), OUTPUT)
    return _consistent(done)


def _summed(rows: DataFrame, works: Works) -> DataFrame:
    """Where there is but one cell, equal rows may be worth adding up before they get there: the batch as a GMR."""
    if not works.preaggregate:
        return rows
    same = [name for name in rows.columns if name != OP]
    return rows.groupBy(*same).agg(F.sum(OP).alias(OP)).where(F.col(OP) != 0)


def _by_cell(rows: DataFrame, works: Works) -> DataFrame:
    """Where there is but one cell, reading its rows may still be worth a task for each source file."""
    if works.cells > 1:
        return _in_tasks(rows, works, works.cells, "cell")
    return rows.coalesce(1) if works.in_one_task else rows.repartition(1)


def _in_tasks(rows: DataFrame, works: Works, parts: int, column: str) -> DataFrame:
    """All rows of a part in one task, and a task for each part where there are enough at once."""
    tasks = min(works.tasks, parts)
    return rows.repartitionById(tasks, F.col(column) % tasks if tasks < parts else F.col(column))


def _consistent(done: DataFrame) -> list[Answer]:
    """What the cells answered, all of one mind about what was summed.

    A task that Spark runs again after its output was lost gives the same changes, but perhaps with doubles that were
    added in another order; a merge cell may have summed those of the first run. Then all of it is done again, which
    changes nothing but the files that count. Spark knows the danger too, and gives such a job up.
    """
    for _ in range(ATTEMPTS):
        try:
            found = answers([Message(*row) for row in done.collect()])
        except Exception as error:  # Spark has no type of its own for this one
            if GIVEN_UP not in str(error):
                raise
            continue
        if found is not None:
            return found
    raise Error("the tasks of a batch were run again and again in the middle of it: are executors dying?")


# -- what a batch took -------------------------------------------------------------------------------------------------


def _progress(
    batch: int, works: Works, found: list[Answer], held: Mapping[str, int], job_seconds: float
) -> dict[str, Any]:
    cells = [a for a in found if a.cell.startswith("c")]
    slowest = max((a.seconds for a in found), default=0.0)
    return {
        "batch": batch,
        "rows": sum(a.rows for a in cells),
        "cells": works.cells,
        "busy_cells": len(cells),
        "reloaded_cells": sum(a.reloaded for a in found),
        "state_bytes": sum(held.values()),
        "state_by_cell": held,
        "engine_seconds": sum(a.engine_seconds for a in found),
        "cell_seconds": sum(a.seconds for a in found),
        "slowest_cell_seconds": slowest,
        "shuffle_seconds": job_seconds - slowest,
        "job_seconds": job_seconds,
        "log_bytes": sum(a.log.file.bytes for a in found),
        "engine": ", ".join(sorted({a.engine for a in found})),
    }
