"""Damage on the disk, and rows that cannot be: put right again, or refused by name, and never a wrong view."""

from __future__ import annotations

from collections.abc import Iterator
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
from viewlet.spark.manifest import newest_manifest, read_manifest
from viewlet.spark.store import Store


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

    def run_with(self, batches: int) -> None:
        """The stream has this many files from now on."""
        there = len(list((self.streams.folder / "bids").glob("*.parquet")))
        give(self.streams, range(there, batches))
        self.run()

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
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    return Job(spark, bids_streams(tmp_path / "in", 6), tmp_path / "checkpoint")


@contextmanager
def flipped(file: Path) -> Iterator[None]:
    """One bit in the middle of the file is wrong; afterwards it is right again."""
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    yield
    file.write_bytes(whole)


def test_a_broken_manifest_or_log_is_refused_by_name_and_nothing_is_published(job: Job) -> None:
    job.run_with(3)
    log = job.newest.cells["c0"].logs[-1].file.path
    give(job.streams, range(3, 4))
    for path in ("batches/2.json", log):
        with flipped(job.file(path)):
            job.is_refused("CorruptError", path)
        assert job.newest.batch == 2
    job.run_with(6)
    check(job.streams, job.checkpoint, job.run())


def test_a_broken_manifest_of_a_batch_that_is_not_committed_is_made_anew(job: Job) -> None:
    job.run_with(3)
    job.uncommit(2)
    with flipped(job.file("batches/2.json")):
        job.run()
        assert read_manifest(Store.of(str(job.checkpoint)), 2) is not None
        made_anew = job.file("batches/2.json").read_bytes()
    job.file("batches/2.json").write_bytes(made_anew)
    job.run_with(6)
    check(job.streams, job.checkpoint, job.run())


def test_a_batch_whose_offsets_are_gone_is_done_again_with_other_rows(job: Job) -> None:
    """Spark makes one batch of all that it has not committed; what the manifest of its first attempt says is void."""
    job.run_with(4)
    job.uncommit(3)
    for name in ("3", ".3.crc"):
        (job.checkpoint / "offsets" / name).unlink(missing_ok=True)
    job.run_with(6)
    together = [*job.streams.batches[:3], [*job.streams.batches[3], *job.streams.batches[4]], job.streams.batches[5]]
    check(replace(job.streams, batches=together), job.checkpoint, job.run())


# -- rows that cannot be -----------------------------------------------------------------------------------------------


BAD_ROWS = {
    "a delete of what is not there": (("-", "bids", (1.0, 1, 1, 1.0, 1.0)), ["bids, row", "is not there"]),
    "no value where there must be one": (("+", "bids", (1.0, 1, None, 1.0, 1.0)), ["bids.broker_id, row", "NULL"]),
}


def test_a_batch_with_a_bad_row_changes_nothing_and_the_query_goes_on_without_it(job: Job) -> None:
    job.run_with(3)
    file = job.streams.folder / "bids" / "00003.parquet"
    for bad, reasons in BAD_ROWS.values():
        events = [*job.streams.batches[3], bad]
        write_events(job.streams.relations["bids"], events, file, 3)  # type: ignore[arg-type]
        job.is_refused(*reasons)
        assert job.newest.batch == 2
    give(job.streams, range(3, 6))
    check(job.streams, job.checkpoint, job.run())


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
