"""One micro-batch after the other: run the cells, then say which of their files count.

Spark's own offset and commit logs say which batches there are. The manifest of a batch says what they came to; it is
written when all of it is durable and before Spark commits. A batch that Spark runs again starts from the manifest
before it; where it was done already, over the same offsets, the cells have nothing left to do. Over others it is
refused.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewlet.durable.chain import Chain, Manifest
from viewlet.durable.cleaning import Cleaner
from viewlet.durable.manifest import Written, newest_manifest, read_manifest, write_manifest
from viewlet.durable.published import publish
from viewlet.durable.store import Store, digest
from viewlet.errors import LONGEST, CorruptError, Error
from viewlet.spark.driver.letters import write_letters
from viewlet.spark.driver.offsets import keep_offsets, noted_moment, noted_offsets, refuse_another_batch
from viewlet.spark.driver.placement import Placement
from viewlet.spark.driver.route import OP
from viewlet.spark.pipeline import Works
from viewlet.spark.process.client import Answer
from viewlet.spark.task.feed import (
    LOST,
    NOBODY,
    Message,
    Turn,
    answers,
    apply_handed_over,
    executors_in,
    feed_merge_cells,
    hand_over_ticks,
    letters_in,
)
from viewlet.spark.task.stage import DONE, OUTPUT, TURN, cell_stage, hand_over_stage, merge_stage

OPENING, HISTORY = -2, -1  # the batches before Spark's first: static tables, and what was there before the stream
ATTEMPTS = 5  # at a batch
GIVEN_UP = "indeterminate output"  # says Spark where part of a job would see other rows than the rest
TASKS_TO_A_CORE = 4  # where tasks take what they read to the cells: several even out, many only cost
SETTINGS = {  # of the query's session
    # without a limit in bytes, Spark does not add up the bytes of an Arrow batch at every row: a third of a task's time
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # so that even with texts of 200,000 letters each a batch stays below what Arrow can hold
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # nothing to adapt, and each shuffle would be a job of its own: as Spark has it for streams anyway
    "spark.sql.adaptive.enabled": "false",
}
STOPPED = re.compile(
    r"Interrupted(?:IO)?Exception|ClosedByInterruptException|cancelled job group|Query \[[^]]*\] was stopped"
)
SPARKS_WORDS = "py4j.protocol.Py4JJavaError: An error occurred while calling"
CLEAN_EVERY = 20  # batches
REMEMBERED = 1000  # batches' progress, in memory


def apply_settings(spark: SparkSession) -> None:
    for setting, value in SETTINGS.items():
        spark.conf.set(setting, value)


class Done(NamedTuple):
    """A batch, and the letters of its dead rows."""

    manifest: Manifest
    letters: list[str]


@dataclass
class Runner:
    """The function that ``foreachBatch`` calls, wherever the driver of the query is."""

    works: Works
    checkpoint: str
    retain: int
    planned: bool  # the stream's own plan hands rows over to the cells: what it gives says what they hold
    spark: str  # where Spark's own checkpoint is
    job: str = ""  # as manifests say it, once it has changed
    last: Manifest | None = None
    written: Written | None = None  # the last manifest of this driver
    cleaner: Cleaner | None = None
    recent: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    placement: Placement = field(default_factory=Placement)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with _short_if_stopped():
            self._take(rows, batch)

    def _take(self, rows: DataFrame, batch: int) -> None:
        store = Store(self.works.run.store)
        noted = noted_offsets(self.spark, batch)
        manifest = self._done(store, batch, digest(noted.encode()))
        if manifest is None:
            self._count(store, self._run(store, rows, batch, noted))
        else:
            _run_for_spark(rows, planned=self.planned)
            publish(store, manifest)  # the attempt before may have died just before it did
            self.last = manifest
        assert self.last is not None, "the batch is done"
        self.recent.append(self.last.progress)

    def _done(self, store: Store, batch: int, offsets: str) -> Manifest | None:
        """What an earlier attempt at this very batch came to; one that is broken, or nobody heard of, is done again.

        Only another driver can have made it: this one has done the batches before, and looks no further.
        """
        manifest = None
        if self.written is None:
            with suppress(CorruptError):
                manifest = read_manifest(store, batch)
        if manifest is not None and manifest.offsets == offsets and manifest.job == self.job:
            return manifest
        refuse_another_batch(store, batch, offsets, manifest.offsets if manifest else None)
        return None

    def _count(self, store: Store, manifest: Manifest) -> None:
        """From here on the batch is done. What it made needless goes once nobody may ask for it."""
        self.cleaner = self.cleaner or Cleaner(store, self.retain)
        self.written = write_manifest(store, manifest, self.written)
        self.cleaner.note(self.last, self.written)
        self.last = manifest
        if manifest.batch % CLEAN_EVERY == CLEAN_EVERY - 1:
            self.cleaner.clean(manifest.batch - 1)

    def _run(self, store: Store, rows: DataFrame, batch: int, noted: str) -> Manifest:
        """Spark's note is forced to the disk meanwhile: once the batch counts, it must not be lost."""
        if not self.planned:  # through Connect a batch is planned in the session that started the query
            apply_settings(rows.sparkSession)
        before, offsets = self._before(store, batch), digest(noted.encode())
        with ThreadPoolExecutor(1) as meanwhile:
            kept = meanwhile.submit(keep_offsets, self.spark, batch, noted)
            moment = noted_moment(noted) if self.works.clocks or self.works.expiries else None
            done = self.run_batch(rows, before, batch, offsets, moment, planned=self.planned)
            kept.result()
        write_letters(store, batch, done.letters)
        lag = {"lag_seconds": time.time() - noted_moment(noted) / 10**6}
        return replace(done.manifest, noted=noted, job=self.job, progress={**done.manifest.progress, **lag})

    def run_batch(
        self,
        rows: DataFrame,
        before: Manifest | None,
        batch: int,
        offsets: str,
        moment: int | None,
        *,
        planned: bool = False,
    ) -> Done:
        """Route, apply, merge: what the cells answer is the batch's manifest."""
        started = time.monotonic()
        works = (
            self.works if before else replace(self.works, preaggregate=False)
        )  # all rows at once are too many copies
        turn = self.placement.turned(replace(turn_of(works, before, batch), moment=moment))
        turn, answered, told = _handed_over(rows, turn) if planned else (turn, *_shuffled(rows, turn))
        self.placement.note(turn, answered, executors_in(told))
        letters = letters_in(told)
        manifest = manifest_after(before, turn, answered, offsets, time.monotonic() - started, len(letters))
        where = {**manifest.addresses, **self.placement.ready}
        progress = {**manifest.progress, **self.placement.progress}
        return Done(replace(manifest, addresses=where, progress=progress), letters)

    def _before(self, store: Store, batch: int) -> Manifest:
        if self.last is not None and max(self.last.batch, HISTORY) == batch - 1:
            return self.last
        manifest = read_manifest(store, batch - 1) if batch > 0 else newest_manifest(store, HISTORY)
        if manifest is None or manifest.job != self.job:
            raise CorruptError(
                f"Spark goes on with batch {batch}, but {store.uri} has no state of the batch before it: restore the "
                f"checkpoint as a whole, or start with a new one"
            )
        return manifest


@contextmanager
def _short_if_stopped() -> Iterator[None]:
    """Spark knows by its text that a batch failed because the query was stopped in the middle of it.

    It looks for the words below with a regular expression that takes a frame of Java's stack for each letter of what
    Python said, so Java's own account of the failure, and Python's of how it came about, would be too long.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        if not (sign := STOPPED.search(text)):
            raise
        why = " ".join(text[:LONGEST].split())
        short = Error(f"{SPARKS_WORDS} Spark: {why} … {sign[0]}: java.lang.InterruptedException")
        raise short.with_traceback(None) from None


def _run_for_spark(rows: DataFrame, *, planned: bool) -> None:
    """What the cells have already. Sources with a state of their own (dropDuplicates, say) note it as they are read."""
    if planned:
        rows.sparkSession.sparkContext.setLocalProperty(TURN, DONE)
        rows.collect()
    else:
        rows.write.format("noop").mode("overwrite").save()


def turn_of(works: Works, before: Manifest | None, batch: int) -> Turn:
    if before is None:
        return Turn(works, batch, None, {}, {})
    seen = before.addresses if before.run == works.run.id else {}  # others' cells do not talk to us
    versions = {name: chain.version for name, chain in before.cells.items()}
    absent = works.absent if batch >= 0 else {}
    return Turn(works, batch, (before.batch, before.run), versions, seen, absent=absent, counts=batch >= 0)


def manifest_after(
    before: Manifest | None, turn: Turn, answered: list[Answer], offsets: str, seconds: float, dead: int = 0
) -> Manifest:
    """The cells that answered have one more batch behind them; the others are as they were."""
    chains = dict(before.cells) if before else {}
    for answer in answered:
        chains[answer.cell] = chains.get(answer.cell, Chain()).followed(answer.log, answer.snapshot, answer.merged)
    addresses = {**turn.addresses, **{a.cell: a.address for a in answered}}
    held = {**(before.progress["state_by_cell"] if before else {}), **{a.cell: a.state_bytes for a in answered}}
    progress = {**_progress(turn.batch, turn.works, answered, held, seconds), "dead_rows": dead}
    return Manifest(turn.batch, offsets, chains, addresses, progress, turn.works.run.id)


# -- all on this machine -----------------------------------------------------------------------------------------------


def handing_over(rows: DataFrame, works: Works) -> DataFrame:
    """Routed rows in, what the cells then hold of them out: no row is shuffled, and a batch need not be planned."""
    tasks = 1 if works.in_one_task else TASKS_TO_A_CORE * works.tasks
    return rows.coalesce(tasks).mapInArrow(hand_over_stage(works), OUTPUT)


def _handed_over(rows: DataFrame, turn: Turn) -> tuple[Turn, list[Answer], list[Message]]:
    """Tasks take what they read to the cells; then these are told which of it counts, for a task may have run twice."""
    for _ in range(ATTEMPTS):
        turn = turn.with_all_cells()
        rows.sparkSession.sparkContext.setLocalProperty(TURN, turn.to_text())
        handed = [Message(*row) for row in rows.collect()]
        told = apply_handed_over(turn, [*hand_over_ticks(turn), *handed])
        lost = [message.part for message in told if message.kind == LOST]
        if not lost:
            answered = answers(list(feed_merge_cells(turn, told)) if turn.works.merge_cells else told)
            assert answered is not None, "each cell was asked once, and what it sent was summed"
            return turn, answered, told
        turn = turn.without(lost)
    raise Error("cells end again and again in the middle of a batch: has the machine too little memory for them?")


# -- anywhere ----------------------------------------------------------------------------------------------------------


def _shuffled(rows: DataFrame, turn: Turn) -> tuple[list[Answer], list[Message]]:
    """One Spark job: rows are shuffled to tasks, each of which feeds some cells."""
    works = turn.works
    rows = rows.unionAll(openers(rows, works.cells)) if turn.moment is not None else rows
    done = _by_cell(_summed(rows, works), works).mapInArrow(cell_stage(turn), OUTPUT)
    if works.merge_cells:
        done = _in_tasks(done, works, works.merge_cells, "part").mapInArrow(merge_stage(turn), OUTPUT)
    return _consistent(done)


def openers(rows: DataFrame, cells: int) -> DataFrame:
    """A row for each cell that says nothing, with the columns of others: a cell is asked although no row reaches it."""
    said = {"cell": F.col("id").cast("int"), "copy": F.lit(NOBODY), OP: F.lit(1).cast("long")}
    columns = [said.get(f.name, F.lit(None).cast(f.dataType)).alias(f.name) for f in rows.schema]
    return rows.sparkSession.range(cells).select(*columns)


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


def _consistent(done: DataFrame) -> tuple[list[Answer], list[Message]]:
    """What the cells answered, all of one mind about what was summed, and all that the tasks said.

    A task that Spark runs again after its output was lost gives the same changes, but perhaps with doubles that were
    added in another order; a merge cell may have summed those of the first run. Then all of it is done again, which
    changes nothing but the files that count. Spark knows the danger too, and gives such a job up.
    """
    for _ in range(ATTEMPTS):
        try:
            messages = [Message(*row) for row in done.collect()]
            answered = answers(messages)
        except Exception as error:  # Spark has no type of its own for this one
            if GIVEN_UP not in str(error):
                raise
            continue
        if answered is not None:
            return answered, messages
    raise Error("the tasks of a batch were run again and again in the middle of it: are executors dying?")


# -- what a batch took -------------------------------------------------------------------------------------------------


def _progress(
    batch: int, works: Works, answered: list[Answer], held: Mapping[str, int], job_seconds: float
) -> dict[str, Any]:
    cells = [a for a in answered if a.cell.startswith("c")]
    slowest = max((a.seconds for a in answered), default=0.0)
    return {
        "batch": batch,
        "rows": sum(a.rows for a in cells),
        "cells": works.cells,
        "busy_cells": len(cells),
        "skew": _skew(works, cells),
        "reloaded_cells": sum(a.reloaded for a in answered),
        "state_bytes": sum(held.values()),
        "state_by_cell": held,
        "engine_seconds": sum(a.engine_seconds for a in answered),
        "cell_seconds": sum(a.seconds for a in answered),
        "slowest_cell_seconds": slowest,
        "shuffle_seconds": job_seconds - slowest,
        "job_seconds": job_seconds,
        "log_bytes": sum(a.log.file.bytes for a in answered),
        "engine": ", ".join(sorted({a.engine for a in answered})),
    }


def _skew(works: Works, cells: list[Answer]) -> float:
    """How much more the busiest cell has than its share of the rows: 1 is even, and the number of cells is all."""
    rows = [answer.rows for answer in cells]
    return works.cells * max(rows) / sum(rows) if any(rows) else 1.0
