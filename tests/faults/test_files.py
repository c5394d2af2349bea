"""Damage on the disk, and rows that cannot be: put right again, or refused by name, and never a wrong view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.faults.disks import flipped
from tests.faults.feed import bids_streams, check, give
from tests.faults.job import Job
from tests.oracle.oracle import difference
from tests.spark.cluster import until
from tests.spark.harness import Streams, shown, write_events
from viewlet.durable.manifest import write_manifest
from viewlet.durable.store import Store
from viewlet.spark.process.snapshot import MOST_LOGS
from viewlet.spark.sinks import parquet, read_view
from viewlet.workloads.streams import Event

pytestmark = pytest.mark.xdist_group("spark")


BAD_ROWS: tuple[tuple[Event, str, str], ...] = (
    (("-", "bids", (1.0, 1, 1, 1.0, 1.0)), "bids, row", "is not there"),
    (("+", "bids", (1.0, 1, None, 1.0, 1.0)), "bids.broker_id, row", "NULL"),
)


def test_broken_files_and_bad_rows_are_refused_by_name_and_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Each time the query ends before the batch; with the file whole again, or the row gone, it goes on."""
    job = Job(bids_streams(tmp_path / "in", 4), tmp_path / "checkpoint")
    job.run_with(spark, 2)
    give(job.streams, range(2, 3))
    (manifest,) = job.manifests(1)
    for path in (f"batches/{manifest.name}", job.newest.cells["c0"].logs[-1].file.path):
        with flipped(job.state(path)):
            job.is_refused(spark, "CorruptError", path)
    for bad, *reasons in BAD_ROWS:
        rewrite(job.streams, 2, [*job.streams.batches[2], bad])
        job.is_refused(spark, *reasons)
    assert job.newest.batch == 1
    rewrite(job.streams, 2, job.streams.batches[2])
    check(job.streams, job.checkpoint, job.run_with(spark, 4))


def rewrite(streams: Streams, number: int, events: Sequence[Event]) -> None:
    write_events(streams.relations["bids"], events, streams.folder / "bids" / f"{number:05}.parquet", number)


def test_a_batch_without_commit_is_done_again_where_its_manifest_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(bids_streams(tmp_path / "in", 4), tmp_path / "checkpoint")
    job.run_with(spark, 3)
    job.lose("commits", 2)
    (manifest,) = job.manifests(2)
    with flipped(manifest):
        job.run(spark)
        assert job.newest.batch == 2
    check(job.streams, job.checkpoint, job.run_with(spark, 4))


def lose_two_batches(job: Job, newest: int) -> None:
    """As a host does that crashes: of what Spark has not forced to the disk, files are empty, or not there."""
    for batch in (newest - 1, newest):
        job.lose("commits", batch)
    job.lose("offsets", newest - 1)
    (job.checkpoint / "offsets" / str(newest)).write_bytes(b"")


def test_batches_that_were_told_to_a_sink_stay_what_they_were_when_spark_forgets_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark would make one batch of all that is new: what the sink never hears of again would be lost to it."""
    job = Job(bids_streams(tmp_path / "in", 6), tmp_path / "checkpoint")
    job.run_with(spark, 4)
    follow(spark, job, "by_price", tmp_path / "sink")
    lose_two_batches(job, newest=3)
    answers = job.run_with(spark, 6)
    check(job.streams, job.checkpoint, answers)
    follow(spark, job, "by_price", tmp_path / "sink")
    kept = shown(read_view(spark, str(tmp_path / "sink" / "rows")))
    assert difference(kept, answers["by_price"]) is None


def test_a_batch_that_was_told_is_never_another_one(spark: SparkSession, tmp_path: Path) -> None:
    """Where nobody knows any more what Spark had noted, as with manifests of earlier versions."""
    job = Job(bids_streams(tmp_path / "in", 4), tmp_path / "checkpoint")
    job.run_with(spark, 3)
    write_manifest(Store.of(str(job.checkpoint)), replace(job.newest, noted=""))
    before = job.newest
    job.lose("commits", 2)
    job.lose("offsets", 2)
    give(job.streams, range(3, 4))
    for _ in range(2):
        job.is_refused(
            spark, "batch 2 was done and told", "Restore that file as it was, or start with a new checkpoint"
        )
    assert job.newest == before


def follow(spark: SparkSession, job: Job, view: str, sink: Path) -> None:
    """Until the sink has heard of all batches."""
    views = job.streams.maintain(spark, checkpoint=job.checkpoint, cells=job.cells)
    views.query.awaitTermination()
    stream = views.changes(view).writeStream.foreachBatch(parquet(str(sink / "rows"))).trigger(availableNow=True)
    stream.option("checkpointLocation", str(sink / "checkpoint")).start().awaitTermination()
    views.stop()


# -- snapshots ---------------------------------------------------------------------------------------------------------

NOTES = "CREATE STREAM notes (id BIGINT NOT NULL, body VARCHAR NOT NULL);\n"
BODIES = "SELECT body, COUNT(*) AS n, SUM(id) AS ids FROM notes GROUP BY body"
MOST = 2 * MOST_LOGS + 20  # batches: a snapshot is made beside them, and they are not waited for
LENGTH, ROWS = 1 << 7, 5  # of a body, and of a batch


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
    job = Job(streams, tmp_path / "checkpoint", cells=1)
    given = run_until_two_snapshots(spark, job)
    older, newer = job.newest.cells["c0"].snapshots
    assert older.version.batch < newer.version.batch
    give(streams, range(given, given + 1), "notes")
    assert newer.rows is not None
    assert older.rows is not None
    with flipped(job.state(newer.file.path)), flipped(job.state(newer.rows.path)):
        with flipped(job.state(older.file.path)), flipped(job.state(older.rows.path)):
            job.is_refused(spark, "CorruptError", newer.rows.path, older.rows.path)
        answers = job.run(spark)
    check(replace(streams, batches=streams.batches[: given + 1]), job.checkpoint, answers)


def run_until_two_snapshots(spark: SparkSession, job: Job) -> int:
    """How many batches that took."""
    views = job.streams.maintain(spark, checkpoint=job.checkpoint, cells=1, trigger=None, retain=MOST)
    try:
        for batch in range(MOST - 1):
            give(job.streams, range(batch, batch + 1), "notes")
            until(f"batch {batch}", (job.checkpoint / "commits" / str(batch)).exists)
            if len(job.newest.cells["c0"].snapshots) == 2:
                return batch + 1
    finally:
        views.stop()
    raise AssertionError(f"no two snapshots within {MOST} batches")
