"""A maintained script whose micro-batches come one by one, when the test says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.engines.conformance import Case
from tests.faults.processes import cell_process, stopped, waiting_client
from tests.oracle.oracle import difference
from tests.spark import drive
from tests.spark.cluster import until
from tests.spark.drive import Driver
from tests.spark.harness import Streams, write_events
from viewlet.workloads.queries import FINANCE
from viewlet.workloads.streams import order_book

SCHEMA = FINANCE.partition("CREATE STREAM asks")[0]
SELECTS = {
    # whole in the cell of the broker
    "by_broker": "SELECT broker_id, COUNT(*) AS n, SUM(price * volume) AS worth FROM bids GROUP BY broker_id",
    "pairs": "SELECT a.broker_id, SUM(a.price - b.price) AS gap FROM bids a, bids b "
    "WHERE a.broker_id = b.broker_id AND a.volume < b.volume GROUP BY a.broker_id",
    # summed across cells: by merge cells that share the prices, and by one of them
    "by_price": "SELECT price, SUM(volume) AS volume FROM bids GROUP BY price",
    "overall": "SELECT COUNT(*) AS n, AVG(price) AS mean, MIN(volume) AS least FROM bids",
}
CELLS = 2
SIZE = 20  # events of a micro-batch: enough for every cell to have some


def bids_streams(folder: Path, batches: int, seed: int = 7) -> Streams:
    """A stream of bids and views of each kind; none of its files is there yet."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in SELECTS.items())
    events = list(order_book(seed, batches * SIZE, brokers=6, live=30, sides=("bids",), duplicates=0.1))
    (folder / "bids").mkdir(parents=True)
    cut = [events[start : start + SIZE] for start in range(0, len(events), SIZE)]
    return Streams(Case(SCHEMA, views, SELECTS, events), cut, folder)


def give(streams: Streams, numbers: range, relation: str = "bids") -> None:
    """Files appear, each whole at once; Spark passes over those whose names begin with a dot."""
    for number in numbers:
        file = streams.folder / relation / f"{number:05}.parquet"
        draft = file.with_name(f".{file.name}")
        write_events(streams.relations[relation], streams.batches[number], draft, number)
        draft.rename(file)


def attempts(checkpoint: Path, batch: int, cell: str) -> list[Path]:
    """The logs of all who had the cell apply a batch, winners and losers."""
    return sorted((checkpoint / "viewlet" / "logs").glob(f"{batch}-{cell}-*"))


@dataclass
class Feed:
    """A running query. ``mark`` is that of the processes in which its cells are."""

    driver: Driver
    mark: str
    streams: Streams
    checkpoint: Path
    given: int = 0
    over: bool = False  # it failed, or has ended
    cells: int = CELLS

    def start(self) -> None:
        options = {"checkpoint": self.checkpoint, "cells": self.cells, "trigger": None}
        self.driver.call(drive.start, str(self.checkpoint), self.streams, **options)

    def give(self) -> int:
        give(self.streams, range(self.given, self.given + 1))
        self.given += 1
        return self.given - 1

    def committed(self) -> None:
        """All that was given."""
        self.driver.call(drive.committed, str(self.checkpoint), self.checkpoint, self.given - 1)

    def run(self, batches: int) -> None:
        for _ in range(batches):
            self.give()
            self.committed()

    @contextmanager
    def mid_batch(self, last: str = "c1", done: str = "c0") -> Iterator[int]:
        """The next batch, half done: cell ``done`` has taken its share, ``last`` is stopped before it can take its own.

        Yields the Python worker whose task waits for it. The cell goes on afterwards, if there still is one.
        """
        with stopped(cell_process(self.mark, self.checkpoint, last)):
            batch = self.give()
            until(f"cell {done} to take batch {batch}", lambda: attempts(self.checkpoint, batch, done))
            yield waiting_client(self.mark, self.checkpoint, last)

    def is_right(self) -> bool:
        """The views that Spark shows are the referee's, after all that was given and was committed."""
        if self.over:
            return False
        self.over = True
        rows = self.rows()
        answer = next(islice(self.streams.answers(), self.given - 1, None))
        self.over = any(difference(rows[view], expected) is not None for view, expected in answer.items())
        return not self.over

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        return self.driver.call(drive.rows, str(self.checkpoint))

    def end(self) -> None:
        """After the rest of the stream every batch was right, and so are the views that Spark shows."""
        self.run(len(self.streams.batches) - self.given)
        rows = self.rows()
        self.stop()
        check(self.streams, self.checkpoint, rows)

    def stop(self) -> None:
        self.over = True
        self.driver.call(drive.stop, str(self.checkpoint))


def check(streams: Streams, checkpoint: Path, answers: dict[str, list[tuple[object, ...]]]) -> None:
    for vacuity in streams.check(checkpoint).values():
        vacuity.check()
    *_, last = streams.answers()
    for view, expected in last.items():
        assert difference(answers[view], expected) is None, view
