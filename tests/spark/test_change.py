"""A checkpoint outlives its script: another one, on other cells, goes on from the rows that it has stored."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import viewlet
from tests.oracle.oracle import DuckOracle, Row, difference
from tests.spark.harness import plain, shown, write_events
from viewlet.errors import Error
from viewlet.spark import Views, explain_change, maintain, register
from viewlet.spark.driver.explain import SAME
from viewlet.workloads.queries import FINANCE
from viewlet.workloads.streams import order_book

COLUMNS = "t double, id long, broker_id long, volume double, price double, op int"
BY_BROKER = "SELECT broker_id, COUNT(*) AS n, SUM(price * volume) AS worth FROM bids GROUP BY broker_id"
BY_PRICE = "SELECT price, SUM(volume) AS volume FROM bids GROUP BY price"
LARGE = "SELECT price, SUM(volume) AS volume FROM bids WHERE volume > 50 GROUP BY price"
OVERALL = "SELECT COUNT(*) AS n, AVG(price) AS mean, MIN(volume) AS least FROM bids"
BOTH = (
    "SELECT b.broker_id, COUNT(*) AS n, SUM(a.volume - b.volume) AS more FROM bids b, asks a "
    "WHERE b.broker_id = a.broker_id GROUP BY b.broker_id"
)
TRIES = 10
Selects = Mapping[str, str]


def script_of(selects: Selects, schema: str = FINANCE) -> str:
    return schema + "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())


@dataclass
class Life:
    """One checkpoint, on which one script follows another; each has a file more of each stream than the one before."""

    spark: SparkSession
    folder: Path
    files: int = 0
    progress: list[Mapping[str, Any]] = field(default_factory=list)  # of all its batches
    relations: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.relations = {r.name: r for r in viewlet.compile(FINANCE).relations}
        self.oracle = DuckOracle(tuple(self.relations.values()))
        self.book = order_book(5, 10**6, brokers=5, live=30, duplicates=0.2)
        for side in self.relations:
            (self.folder / side).mkdir(parents=True)

    @property
    def checkpoint(self) -> str:
        return str(self.folder / "checkpoint")

    def give(self) -> None:
        events = [next(self.book) for _ in range(60)]
        for op, side, row in events:
            self.oracle.apply(op, side, row)
        for side, relation in self.relations.items():
            write_events(relation, events, self.folder / side / f"{self.files:05}.parquet", self.files)
        self.files += 1

    def start(self, script: str, sides: tuple[str, ...], **options: Any) -> Views:
        stream = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        sources = {side: stream.parquet(str(self.folder / side)) for side in sides}
        chosen = {"trigger": {"availableNow": True}, **options}
        return maintain(self.spark, script, sources, self.checkpoint, **chosen)

    @property
    def job(self) -> Path:
        return self.folder / "checkpoint" / "viewlet" / "job.txt"

    def forget(self, batch: int, job: bytes) -> None:
        """All that follows the manifest of a batch that changed the job."""
        for directory in ("commits", "offsets"):
            for name in (f"{batch}", f".{batch}.crc"):
                (self.folder / "checkpoint" / directory / name).unlink(missing_ok=True)
        (self.job.parent / "published" / f"{batch}.json").unlink()
        self.job.write_bytes(job)

    def run(self, selects: Selects, sides: tuple[str, ...] = ("bids",), **options: Any) -> list[int]:
        """The batches that it made. Its views are right, and so is what followers were told of them since ever."""
        views = self.start(options.pop("script", script_of(selects)), sides, **options)
        views.query.awaitTermination()
        try:
            rows = {name: shown(frame) for name, frame in views.at().items()}
            assert rows.keys() == selects.keys()
            for name, select in selects.items():
                expected = [*map(plain, self.oracle.rows(select))]
                assert expected
                assert difference(rows[name], expected) is None, name
                assert +self.followed(name) == Counter(rows[name]), name
            self.progress += views.progress
            return [int(p["batch"]) for p in views.progress]
        finally:
            views.stop()

    def followed(self, view: str) -> Counter[Row]:
        register(self.spark)
        reader = self.spark.read.format("viewlet").option("checkpoint", self.checkpoint).option("changes", True)
        rows: Counter[Row] = Counter()
        for row in reader.load(view).collect():
            rows[plain(tuple(row)[2:])] += row["weight"]
        assert all(n >= 0 for n in rows.values())
        return rows


@pytest.fixture
def life(spark: SparkSession, tmp_path: Path) -> Life:
    return Life(spark, tmp_path)


FIRST = {"by_broker": BY_BROKER, "by_price": BY_PRICE}
SECOND = {"overall": OVERALL, "by_price": LARGE, "by_broker": BY_BROKER}
SIDES = ("bids", "asks")


def test_another_script_on_other_cells_goes_on(life: Life) -> None:
    """Views are dropped, added and replaced, a stream is added, and the work is cut again."""
    life.give()
    assert life.run(FIRST, cells=2) == [0]
    life.give()
    told = explain_change(life.spark, script_of({**SECOND, "both": BOTH}), life.checkpoint, cells=3)
    assert told.split("\n") == [
        "stream bids: its stored rows are taken over; its source goes on where it stopped",
        "stream asks: new; its source is read from the beginning",
        "view by_broker: as before",
        "view by_price: another query; its followers are told how its rows differ",
        "view overall: new",
        "view both: new",
        "3 cells filled from the stored rows of 2, in a batch of its own",
    ]
    assert life.run({**SECOND, "both": BOTH}, SIDES, cells=3, strategy="classical")[0] == 1
    assert (
        explain_change(life.spark, script_of({**SECOND, "both": BOTH}), life.checkpoint, strategy="classical") == SAME
    )
    life.give()
    life.run({"overall": BY_BROKER, "by_price": LARGE}, cells=1)
    with pytest.raises(AnalysisException, match="overall has its columns since batch"):
        life.spark.read.format("viewlet").option("checkpoint", life.checkpoint).option("batch", 1).load("overall")


def test_cells_that_have_every_column_take_any_script(life: Life) -> None:
    life.give()
    life.run({"by_price": BY_PRICE}, cells=2, every_column=True)
    life.give()
    life.run({"by_broker": BY_BROKER, "ids": "SELECT id % 3 AS k, MAX(t) AS t FROM bids GROUP BY id % 3"})


def test_a_key_that_has_become_hot_is_declared_and_its_rows_are_split(life: Life, soaking: bool) -> None:
    """Most rows are of one broker, whose cell was the busiest; inserts and deletes of a row meet elsewhere since."""
    if not soaking:
        pytest.skip("make soak runs it")
    hot = FINANCE.replace(");", ") WITH (hot_broker_id = 0.6);")
    life.book = (event for event in life.book if event[2][2] == 1 or event[2][1] % 4 == 0)
    by_broker = {"by_broker": BY_BROKER, "overall": OVERALL}
    life.give()
    life.run(by_broker, cells=4, every_column=True)
    life.give()
    assert life.run(by_broker, script=script_of(by_broker, hot)) == [1, 2]
    before, *_, after = (p["skew"] for p in life.progress)
    assert after < before / 1.5
    life.give()
    both = {**by_broker, "both": BOTH}
    life.run(both, SIDES, script=script_of(both, hot))


def test_a_driver_that_dies_in_a_change_leaves_the_old_job_or_the_new_one(life: Life) -> None:
    """The files are as they are just after the manifest of the change was written, and just before."""
    life.give()
    life.run(FIRST, cells=2)
    before = life.job.read_bytes()
    assert life.run(SECOND) == [1]
    life.forget(1, before)
    life.give()
    assert life.run(SECOND) == [1, 2], "it counted already"

    before = life.job.read_bytes()
    assert life.run(FIRST) == [3]
    life.forget(3, before)
    (manifest,) = (life.job.parent / "batches").glob("3-*.json")
    manifest.unlink()
    life.give()
    assert life.run(SECOND) == [3], "it never counted"


def test_a_query_that_was_stopped_at_its_first_offsets_goes_on(life: Life) -> None:
    """Spark writes a file under a hidden name, and its checksum before it; a crash may leave the name alone."""
    views = life.start(script_of(FIRST), ("bids",), cells=2)
    views.query.awaitTermination()
    views.stop()
    checkpoint = life.folder / "checkpoint"
    (checkpoint / "offsets" / ".0.1b2c.tmp").write_bytes(b"v1\n{")
    (checkpoint / "offsets" / "..0.1b2c.tmp.crc").write_bytes(b"crc")
    (checkpoint / "offsets" / "0").touch()
    (checkpoint / "state" / "0").mkdir(parents=True)
    life.give()
    assert life.run(FIRST) == [0]


@dataclass
class FirstOffsets:
    """Waits for the moment at which Spark writes its first offsets, and keeps the checkpoint as it is right then.

    So a ``kill -9`` of the whole process would leave it. Spark stands still meanwhile.
    """

    java: int
    checkpoint: Path
    copy: Path
    found: list[str] = field(default_factory=list)
    is_over: bool = False

    def watch(self) -> None:
        while not self.found and not self.is_over:
            with suppress(FileNotFoundError):
                self.found = os.listdir(self.checkpoint / "offsets")
        os.kill(self.java, signal.SIGSTOP)
        try:
            shutil.copytree(self.checkpoint, self.copy)
        finally:
            os.kill(self.java, signal.SIGCONT)

    @property
    def is_half(self) -> bool:
        """Spark has begun, and has not ended."""
        names = os.listdir(self.copy / "offsets")
        return bool(names) and "0" not in names


def test_a_query_goes_on_whose_process_died_or_was_stopped_at_its_first_offsets(life: Life) -> None:
    """Spark itself refuses the one and the other from then on. How far it comes until it stops is left to chance."""
    java, checkpoint, kept = life.spark.sparkContext._gateway.proc.pid, Path(life.checkpoint), life.folder / "kept"
    life.give()
    for attempt in range(TRIES):
        shutil.rmtree(checkpoint, ignore_errors=True)
        moment = FirstOffsets(java, checkpoint, life.folder / f"copy{attempt}")
        with ThreadPoolExecutor(1) as beside:
            watching = beside.submit(moment.watch)
            views = life.start(script_of(FIRST), ("bids",), cells=2, trigger={"processingTime": "0 seconds"})
            watching.result()
            views.stop()
        if moment.is_half:
            break
    assert moment.is_half, f"not seen in {TRIES} tries"
    is_done = (checkpoint / "commits" / "0").exists()
    assert life.run(FIRST) == ([] if is_done else [0])
    checkpoint.rename(kept)
    moment.copy.rename(checkpoint)
    assert life.run(FIRST) == [0]


def test_a_query_evolves_while_it_runs(life: Life) -> None:
    """Stopped in the middle of whatever it did, and with a column that is not stored refused."""
    life.give()
    views = life.start(script_of({"by_price": BY_PRICE}), ("bids",), cells=2, trigger={"processingTime": "0 seconds"})
    life.give()
    with pytest.raises(Error, match=r"^bids.broker_id is read now, and its values are not stored: .* new checkpoint"):
        views.evolve(script_of(FIRST))
    life.give()
    views = life.start(script_of({"by_price": BY_PRICE}), ("bids",), trigger={"processingTime": "0 seconds"})
    with pytest.raises(Error, match=r"^a query runs on .*: stop it before"):
        life.start(script_of({"by_price": LARGE}), ("bids",))
    views = views.evolve(script_of({"by_price": LARGE}), trigger={"availableNow": True})
    views.query.awaitTermination()
    assert difference(shown(views["by_price"]), [*map(plain, life.oracle.rows(LARGE))]) is None
    views.stop()


def test_a_checkpoint_outlives_many_scripts(life: Life, soaking: bool) -> None:
    if not soaking:
        pytest.skip("make soak runs it")
    life.give()
    assert life.run(FIRST, cells=2) == [0]
    life.give()
    bids, asks, *views = script_of(FIRST).split(";\n")[:-1]
    other_way = ";\n".join(["-- the same\n" + asks, bids, *reversed(views), ""])
    assert life.run(FIRST, script=other_way) == [1], "another order of statements is the same script"
    life.give()
    assert life.run(SECOND) == [2, 3], "a batch for the change, and one for the file"
    life.give()
    assert life.run({**SECOND, "both": BOTH}, SIDES)[0] == 4, "asks is read from its beginning"
    for options in ({"cells": 3}, {"strategy": "classical"}, {"cells": 1}, {"cells": 4, "strategy": "naive"}):
        life.give()
        life.run({**SECOND, "both": BOTH}, SIDES, **options)
    life.give()
    life.run(SECOND)
    life.give()
    life.run({**SECOND, "both": BOTH}, SIDES)
