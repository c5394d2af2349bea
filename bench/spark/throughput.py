"""Events per second, end to end: from Parquet files to views whose state is durable, on one core and on two."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing import Manager
from pathlib import Path

from bench.engine.answers import answer, check
from bench.engine.workload import SEED, Row, Workload
from bench.spark.events import EventFiles, event_tables, write_events
from bench.spark.machine import apart
from bench.spark.run import Stretch, maintained, script_of, shown, spark_with
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

ROWS = 100_000  # to a file
FEW, FIRST = 100, 200  # rows to each of the first files, in which the JVM compiles what plans a micro-batch; how many
NOT_READ = 101_000  # rows of part, supplier and partsupp, which come first


@dataclass(frozen=True, slots=True)
class Setup:
    """``pinned`` are the cores that all processes together may use; None: all that there are."""

    title: str
    cores: int
    cells: int
    pinned: range | None = None
    files_to_a_batch: int = 1

    @property
    def rows(self) -> int:
        return ROWS * self.files_to_a_batch


FIRST_CORE, SECOND_CORE = range(1), range(1, 2)
LARGER = 8  # times as many rows to a batch
ON_ONE_CORE = Setup("1 cell, 1 core", 1, 1, pinned=FIRST_CORE)
ONE_CELL = Setup("1 cell", 1, 1)
TWO_CELLS = Setup("2 cells", 2, 2)
THROUGHPUT = (ON_ONE_CORE, ONE_CELL, TWO_CELLS)
LARGER_ON_ONE_CORE = Setup("1 cell, 1 core", 1, 1, pinned=FIRST_CORE, files_to_a_batch=LARGER)
LARGER_ONE_CELL = Setup("1 cell", 2, 1, files_to_a_batch=LARGER)
LARGER_TWO_CELLS = Setup("2 cells", 2, 2, files_to_a_batch=LARGER)
CELLS = (LARGER_ON_ONE_CORE, LARGER_ONE_CELL, LARGER_TWO_CELLS)


@dataclass(frozen=True)
class Stream:
    """A query's stream, and the files that it is in: ``first`` ones of few rows, then those that count."""

    workload: Workload
    files: EventFiles
    first: int

    @property
    def name(self) -> str:
        return self.workload.name

    def until(self, files: int) -> BulkStream:
        """The events up to the end of so many files of those that count."""
        return self.workload.stream.between(0, self.first * FEW + files * ROWS)


def stream_of(name: str, files: int, folder: Path, first: int = FIRST) -> Stream:
    few = first * FEW
    w = _workload(name, few + files * ROWS)
    small, large = w.stream.between(0, few), w.stream.between(few, len(w.stream))
    tables = chain(event_tables(small, FEW), event_tables(large, ROWS))
    return Stream(w, write_events(folder / name, tables), first)


def _workload(name: str, events: int) -> Workload:
    """As in the paper: some ten thousand bids, some thirty thousand orders with their lineitems."""
    query = PAPER_QUERIES[name]
    if query.schema == FINANCE:
        return Workload(query, bulk.order_book(SEED, events, sides=query.relations), warm=0)
    mine = bulk.tpch(SEED, events + NOT_READ).only(query.relations)
    return Workload(query, mine.between(0, events), warm=0)


def throughput(stream: Stream, setup: Setup, warm: int, batches: int) -> Stretch:
    """The micro-batches after ``warm`` others, in which the JVM compiles its code."""
    return _checked(stream, setup, warm + batches, *_run(stream, setup, warm, batches, _at_once))


def side_by_side(stream: Stream, setup: Setup, warm: int, batches: int) -> tuple[Stretch, Stretch]:
    """Two that know nothing of each other, each on a core of its own, measured at the same time.

    No program can gain more by a second core than these do: it is what the machine has to give.
    """
    first, second = (replace(setup, pinned=core) for core in (FIRST_CORE, SECOND_CORE))
    with Manager() as manager, ThreadPoolExecutor(2) as pool:
        both = manager.Barrier(2)
        runs = [pool.submit(_run, stream, each, warm, batches, both.wait) for each in (first, second)]
        pairs = [run.result() for run in runs]
    one, other = (_checked(stream, setup, warm + batches, *each) for each in pairs)
    return one, other


def _at_once() -> None:
    """Nobody to wait for."""


def _run(
    stream: Stream, setup: Setup, warm: int, batches: int, begin: Callable[[], object]
) -> tuple[Stretch, list[Row]]:
    before = stream.first // setup.files_to_a_batch
    return apart(setup.pinned, _measured, stream.name, stream.files, setup, (before, warm, batches), begin)


def _checked(stream: Stream, setup: Setup, batches: int, stretch: Stretch, rows: list[Row]) -> Stretch:
    events = stream.until(batches * setup.files_to_a_batch)
    check(f"{stream.name} on Spark, {setup.title}, after {len(events):,} events", rows, answer(stream.workload, events))
    return replace(stretch, answer_rows=len(rows))


def _measured(
    name: str, files: EventFiles, setup: Setup, batches: tuple[int, int, int], begin: Callable[[], object]
) -> tuple[Stretch, list[Row]]:
    """The last of three stretches; ``begin`` is called before it."""
    script, many = script_of(PAPER_QUERIES[name]), setup.files_to_a_batch
    few, warm, measured = batches
    with (
        tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch,
        spark_with(setup.cores) as spark,
        maintained(spark, script, files, Path(scratch), cells=setup.cells, files_to_a_batch=many) as (running, views),
    ):
        running.take(few)
        running.take(warm)
        begin()
        return running.take(measured), shown(views[name])
