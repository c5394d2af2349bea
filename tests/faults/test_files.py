"""Damage on the disk, and rows that cannot be: put right again, or refused by name, and never a wrong view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.faults.feed import CELLS, bids_streams, check, give
from tests.spark.cluster import until
from tests.spark.harness import Streams, shown, write_events
from viewlet.spark.chain import Manifest
from viewlet.spark.manifest import newest_manifest
from viewlet.spark.store import Store
from viewlet.workloads.streams import Event


@dataclass
class Job:
    """A query that is started again and again: each time it takes what is there, and ends."""

    spark: SparkSession
    streams: Streams
    checkpoint: Path
    cells: int = CELLS

    def run(self) -> dict[str, list[tuple[object, ...]]]:
        views = self.streams.maintain(self.spark, checkpoint=self.checkpoint, cells=self.cells)
        try:
            views.query.awaitTermination()
            return {view: shown(frame) for view, frame in views.at().items()}
        finally:
            views.stop()

    def run_with(self, batches: int) -> dict[str, list[tuple[object, ...]]]:
        """The stream has this many files from now on."""
        there = len(list((self.streams.folder / "bids").glob("*.parquet")))
        give(self.streams, range(there, batches))
        return self.run()

    def is_refused(self, *reasons: str) -> None:
        with pytest.raises(StreamingQueryException) as refusal:
            self.run()
        for reason in reasons:
            assert reason in str(refusal.value)

    @property
    def newest(self) -> Manifest:
        found = newest_manifest(Store.of(str(self.checkpoint)))
        assert found is not None
        return found

    def file(self, path: str) -> Path:
        return self.checkpoint / "viewlet" / path

    def uncommit(self, batch: int) -> None:
        """As if the driver had ended between the manifest and Spark's commit."""
        self._forget("commits", batch)

    def forget_offsets(self, batch: int) -> None:
        self._forget("offsets", batch)

    def _forget(self, directory: str, batch: int) -> None:
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / directory / name).unlink(missing_ok=True)


@contextmanager
def flipped(file: Path) -> Iterator[None]:
    """One bit in the middle of the file is wrong; afterwards it is right again."""
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    yield
    file.write_bytes(whole)


BAD_ROWS: tuple[tuple[Event, str, str], ...] = (
    (("-", "bids", (1.0, 1, 1, 1.0, 1.0)), "bids, row", "is not there"),
    (("+", "bids", (1.0, 1, None, 1.0, 1.0)), "bids.broker_id, row", "NULL"),
)


def test_broken_files_and_bad_rows_are_refused_by_name_and_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Each time the query ends before the batch; with the file whole again, or the row gone, it goes on."""
    job = Job(spark, bids_streams(tmp_path / "in", 4), tmp_path / "checkpoint")
    job.run_with(2)
    give(job.streams, range(2, 3))
    for path in ("batches/1.json", job.newest.cells["c0"].logs[-1].file.path):
        with flipped(job.file(path)):
            job.is_refused("CorruptError", path)
    for bad, *reasons in BAD_ROWS:
        rewrite(job.streams, 2, [*job.streams.batches[2], bad])
        job.is_refused(*reasons)
    assert job.newest.batch == 1
    rewrite(job.streams, 2, job.streams.batches[2])
    check(job.streams, job.checkpoint, job.run_with(4))


def rewrite(streams: Streams, number: int, events: Sequence[Event]) -> None:
    write_events(streams.relations["bids"], events, streams.folder / "bids" / f"{number:05}.parquet", number)


def test_a_batch_that_spark_has_not_committed_is_done_again_where_it_must_be(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Once its manifest is broken; once Spark has lost its offsets too, and makes one batch of all that is new."""
    job = Job(spark, bids_streams(tmp_path / "in", 5), tmp_path / "checkpoint")
    job.run_with(3)
    job.uncommit(2)
    with flipped(job.file("batches/2.json")):
        job.run()
        assert job.newest.batch == 2
        made_anew = job.file("batches/2.json").read_bytes()
    job.file("batches/2.json").write_bytes(made_anew)
    job.uncommit(2)
    job.forget_offsets(2)
    found = job.run_with(5)
    first, second, third, fourth, fifth = job.streams.batches
    check(replace(job.streams, batches=[first, second, [*third, *fourth], fifth]), job.checkpoint, found)


# -- snapshots ---------------------------------------------------------------------------------------------------------

NOTES = "CREATE STREAM notes (id BIGINT NOT NULL, body VARCHAR NOT NULL);\n"
BODIES = "SELECT body, COUNT(*) AS n, SUM(id) AS ids FROM notes GROUP BY body"
MOST = 30  # batches: a snapshot is made beside them, and they are not waited for
LENGTH, ROWS = 1 << 15, 40  # of a body, and of a batch: enough for a snapshot to be due


def notes_streams(folder: Path) -> Streams:
    """Every batch has bodies of its own, and takes back some of the batch before."""
    rng = Random(3)
    rows = [(i, f"{rng.getrandbits(4 * LENGTH):x}") for i in range(MOST * ROWS)]
    batches = [[("+", "notes", row) for row in rows[start : start + ROWS]] for start in range(0, len(rows), ROWS)]
    for number in range(1, MOST):
        batches[number] += [("-", "notes", row) for row in rows[number * ROWS - 3 : number * ROWS]]
    (folder / "notes").mkdir(parents=True)
    case = Case(NOTES, f"CREATE MATERIALIZED VIEW bodies AS {BODIES};", {"bodies": BODIES}, [])
    return Streams(case, batches, folder)  # type: ignore[arg-type]


def test_a_broken_snapshot_is_passed_over_for_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    streams = notes_streams(tmp_path / "in")
    job = Job(spark, streams, tmp_path / "checkpoint", cells=1)
    given = run_until_two_snapshots(job)
    older, newer = job.newest.cells["c0"].snapshots
    assert older.version.batch < newer.version.batch
    give(streams, range(given, given + 1), "notes")
    with flipped(job.file(newer.file.path)):
        with flipped(job.file(older.file.path)):
            job.is_refused("CorruptError", newer.file.path, older.file.path)
        found = job.run()
    check(replace(streams, batches=streams.batches[: given + 1]), job.checkpoint, found)


def run_until_two_snapshots(job: Job) -> int:
    """How many batches that took."""
    views = job.streams.maintain(job.spark, checkpoint=job.checkpoint, cells=1, trigger=None)
    try:
        for batch in range(MOST - 1):
            give(job.streams, range(batch, batch + 1), "notes")
            until(f"batch {batch}", (job.checkpoint / "commits" / str(batch)).exists)
            if len(job.newest.cells["c0"].snapshots) == 2:
                return batch + 1
    finally:
        views.stop()
    raise AssertionError(f"no two snapshots within {MOST} batches")
