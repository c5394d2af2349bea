"""Batches are taken back: the query goes on as if they had never been, and nobody is left with what they told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from tests.oracle.oracle import Row, difference
from tests.spark.harness import shown, write_events
from tests.spark.test_change import BOTH, BY_BROKER, OVERALL, Life, script_of
from viewlet.cli.main import app
from viewlet.durable.manifest import manifest_names, path_of
from viewlet.durable.store import Store
from viewlet.durable.taken_back import TakenBack, begin_to_take_back, times_taken_back
from viewlet.errors import CorruptError, Error
from viewlet.spark import Views, back, maintain, register, upserts
from viewlet.spark.driver.rewind import rewind_spark
from viewlet.spark.sinks import parquet, read_view
from viewlet.workloads.streams import order_book

VIEWS = {"by_broker": BY_BROKER, "overall": OVERALL}
INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


@pytest.fixture
def life(spark: SparkSession, tmp_path: Path) -> Life:
    return Life(spark, tmp_path)


@pytest.fixture
def deep(soaking: bool, spark: SparkSession) -> Iterator[None]:
    """Logs of sources are noted once more every third time."""
    if not soaking:
        pytest.skip("several queries each: pytest --soak 2")
    spark.conf.set(INTERVAL, "3")
    yield
    spark.conf.unset(INTERVAL)


def mistake(life: Life, number: int = 0) -> list[Path]:
    """A file of each stream, as others would give it. Nobody tells the referee."""
    book = order_book(77 + number, 60, brokers=9, live=60)
    events = [event for event in book if event[0] == "+"]
    files = [life.folder / side / f"{life.files:05}-wrong-{number}.parquet" for side in life.relations]
    for file in files:
        write_events(life.relations[file.parent.name], events, file, life.files)
    return files


def ran(life: Life, views: dict[str, str] = VIEWS) -> dict[str, list[Row]]:
    """What the views are then, right or wrong."""
    running = life.start(script_of(views), ("bids",))
    try:
        running.query.awaitTermination()
        return {name: shown(frame) for name, frame in running.at().items()}
    finally:
        running.stop()


def unlink(files: list[Path]) -> None:
    for file in files:
        file.unlink()


def test_a_mistaken_batch_never_was(life: Life) -> None:
    """The one with it is gone for who reads the views, who follows them, and the source, which has another file."""
    life.give()
    assert life.run(VIEWS) == [0]
    wrong = mistake(life)
    assert difference(ran(life)["overall"], list(life.oracle.rows(OVERALL))) is not None
    done = CliRunner().invoke(app, ["back", life.checkpoint])
    assert done.exit_code == 0, done.output
    assert "batch 1 taken back: the query goes on after batch 0" in done.output
    unlink(wrong)
    life.give()
    assert life.run(VIEWS)[-1] == 1


# -- several batches, and what sources noted ---------------------------------------------------------------------------


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("batches", [1, 3, 4])
def test_several_batches_go_with_what_sources_noted_of_them(life: Life, batches: int) -> None:
    """Entries 2 and 5 of the source's log are all entries up to them, and those below the last such are deleted."""
    for _ in range(7 - batches):
        life.give()
    life.run(VIEWS)
    wrong = [mistake(life, number) for number in range(batches)]
    ran(life)
    log = life.folder / "checkpoint" / "sources" / "0"
    for number in range(5):  # as Spark does, after ten minutes
        for name in (str(number), f"{number}.compact"):
            (log / name).unlink(missing_ok=True)
            (log / f".{name}.crc").unlink(missing_ok=True)
    back(life.checkpoint, batches)
    for files in wrong:
        unlink(files)
    for _ in range(batches):
        life.give()
    assert life.run(VIEWS)[-1] == 6


@pytest.mark.usefixtures("deep")
def test_back_to_before_the_first_batch(life: Life) -> None:
    wrong = mistake(life)
    ran(life)
    assert "the query goes on before the first batch" in str(back(life.checkpoint))
    unlink(wrong)
    life.give()
    assert life.run(VIEWS) == [0]
    life.give()
    assert life.run(VIEWS)[-1] == 1
    with pytest.raises(Error, match=r"there is no batch -3 to go back to: the oldest that is retained is -1"):
        back(life.checkpoint, 4)


SCRIPT = """
CREATE STREAM held (k INT NOT NULL, v INT NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT v, count(*) AS n FROM held GROUP BY v;
"""
ROWS = "k int, v int, place long"


@pytest.mark.usefixtures("deep")
def test_the_state_of_a_source_goes_back_with_it(spark: SparkSession, tmp_path: Path) -> None:
    """Upserts: Spark holds the row of each key, which a batch that never was must not have changed."""

    def give(number: int, *rows: tuple[int, int]) -> None:
        placed = [(*row, number) for row in rows]
        spark.createDataFrame(placed, ROWS).coalesce(1).write.parquet(str(tmp_path / "in" / str(number)))

    def run() -> list[Row]:
        stream = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in" / "*"))
        held = upserts(stream, ["k"], "place")
        views = maintain(spark, SCRIPT, {"held": held}, tmp_path / "ck", cells=2, trigger={"availableNow": True})
        views.query.awaitTermination()
        views.stop()
        return sorted(shown(views["sums"]))

    give(0, (1, 10), (2, 10))
    give(1, (1, 11))
    assert run() == [(10, 1), (11, 1)]
    give(2, (1, 99))
    give(3, (2, 99))
    assert run() == [(99, 2)]
    back(tmp_path / "ck", 2)
    for number in (2, 3):
        for file in (tmp_path / "in" / str(number)).iterdir():
            file.unlink()
    give(4, (1, 12))
    assert run() == [(10, 1), (12, 1)], "11 goes, which was before the batches that never were"


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("what", ["logs", "batches"])
def test_the_newest_batch_is_damaged(life: Life, what: str) -> None:
    life.give()
    life.run(VIEWS)
    life.give()
    life.run(VIEWS)
    for file in (life.job.parent / what).glob("1-*"):
        file.write_bytes(file.read_bytes()[:-10] + b"something ")
    life.give()
    with pytest.raises((StreamingQueryException, CorruptError)):
        ran(life)
    back(life.checkpoint)
    assert life.run(VIEWS)[-1] == 2
    assert len(times_taken_back(Store.of(life.checkpoint))) == 1


@pytest.mark.usefixtures("deep")
def test_a_batch_that_is_not_whole_is_not_gone_back_to(life: Life) -> None:
    for _ in range(3):
        life.give()
    life.run(VIEWS)
    before = sorted(path for path in Path(life.checkpoint).rglob("*") if path.is_file())
    for file in (life.job.parent / "logs").glob("1-*"):
        file.write_bytes(b"something")
    with pytest.raises(CorruptError, match=r"batch 1 is not whole either: cell c\d: .*not what was written"):
        back(life.checkpoint)
    assert sorted(path for path in Path(life.checkpoint).rglob("*") if path.is_file()) == before
    back(life.checkpoint, 2)
    assert life.run(VIEWS)[-1] == 2


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("removed", [0, 1, 100])
def test_what_is_cut_short_is_finished_and_nothing_starts_before(life: Life, removed: int) -> None:
    """After the note, after a manifest, and after all that is ours."""
    for _ in range(4):
        life.give()
    life.run(VIEWS)
    store = Store.of(life.checkpoint)
    begin_to_take_back(store, TakenBack(1, 3))
    later = sorted((name for name in manifest_names(store) if name.batch > 1), reverse=True)
    store.delete(path_of(*name) for name in later[:removed])
    if removed > len(later):
        rewind_spark(Store(life.checkpoint), 2)
    with pytest.raises(Error, match=r"batches 2 to 3 of .* are being taken back, .* viewlet back once more"):
        ran(life)
    assert back(life.checkpoint, 1).taken == TakenBack(1, 3)
    assert life.run(VIEWS)[-1] == 3


@pytest.mark.usefixtures("deep")
def test_a_batch_that_changed_the_script_stays(life: Life) -> None:
    life.give()
    life.run({"by_broker": BY_BROKER})
    life.give()
    life.run(VIEWS)
    with pytest.raises(Error, match="batch 1 changed the script or its cells, and cannot be taken back"):
        back(life.checkpoint, 2)
    back(life.checkpoint, 1)
    assert life.run(VIEWS)[-1] == 2
    both = {**VIEWS, "both": BOTH}
    assert life.run(both, ("bids", "asks"))[-1] == 5, "Spark's own checkpoint is another one from here on"
    back(life.checkpoint)
    assert life.run(both, ("bids", "asks"))[-1] == 5


# -- followers ---------------------------------------------------------------------------------------------------------


def followed(views: Views, folder: Path, name: str) -> DataFrame:
    sink = parquet(str(folder / name))
    writer = views.changes("by_broker").writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / f"{name}-marks")).start().awaitTermination()
    return read_view(views._spark, str(folder / name))


@pytest.mark.usefixtures("deep")
def test_a_sink_that_is_ahead_is_refused_and_one_that_is_not_goes_on(life: Life, tmp_path: Path) -> None:
    def run(*sinks: str) -> None:
        views = life.start(script_of(VIEWS), ("bids",))
        views.query.awaitTermination()
        for sink in sinks:
            followed(views, tmp_path, sink)
        views.stop()

    life.give()
    run("ahead", "behind")
    wrong = mistake(life)
    run("ahead")
    marks = [tmp_path / f"{name}-marks" for name in ("ahead", "behind")]
    told = back(life.checkpoint, followers=marks)
    assert (told.ahead, told.behind) == ((str(marks[0]),), (str(marks[1]),))
    assert f"{marks[0]}: has read batch 1, and must begin again" in str(told)
    unlink(wrong)
    sinks = ["ahead", "behind", "new"]
    for _ in range(2):  # before batch 1 is there once more, and after
        with pytest.raises(StreamingQueryException, match=r"batch 1 of .* were taken back, .* has read batch 1"):
            run("ahead")
        run(*sinks[1:])
        expected = list(life.oracle.rows(BY_BROKER))
        for name in sinks[1:]:
            assert difference(shown(read_view(life.spark, str(tmp_path / name))), expected) is None
        life.give()
    register(life.spark)
    changes = life.spark.read.format("viewlet").options(checkpoint=life.checkpoint, changes=True).load("by_broker")
    assert Counter(row["batch"] for row in changes.collect()).keys() == {0, 1}


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(Error, match="batches is 0: it counts those to take back"):
        back(tmp_path, 0)
    with pytest.raises(Error, match="holds no state of a maintained script"):
        back(tmp_path)
    (tmp_path / "viewlet").mkdir()
    (tmp_path / "viewlet" / "job.txt").write_text(json.dumps(_job()))
    with pytest.raises(Error, match="has no batch that could be taken back"):
        back(tmp_path)


def _job() -> dict[str, Any]:
    lists: dict[str, Any] = {name: [] for name in ("order", "sources", "code", "kept")}
    return {"identity": "", "script": "", "cells": 1, "strategy": "optimized", "dialect": "sql", **lists}
