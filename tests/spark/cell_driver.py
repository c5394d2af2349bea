"""A cell as its driver sees it: batches in, files out, and what the views must be."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import viewlet
from viewlet.durable.chain import START, Chain
from viewlet.durable.store import Store
from viewlet.spark.process.artefact import publish
from viewlet.spark.process.client import Answer, Artefact, Rows, Run, Split, Ticket, apply, new_run
from viewlet.spark.process.process import _look
from viewlet.spark.process.snapshot import is_due

LOOPBACK = "127.0.0.1"
DEADLINE = 30.0  # seconds for something to happen that happens at once on an idle machine
SCRIPT = """
CREATE TABLE names (a INT NOT NULL, name VARCHAR NOT NULL);
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s, count(*) AS n FROM r GROUP BY a;
CREATE MATERIALIZED VIEW t AS SELECT sum(b) AS s, count(*) AS n FROM r;
CREATE MATERIALIZED VIEW w AS SELECT name, b FROM r, names WHERE r.a = names.a;
"""
VIEWS = ("v", "t", "w")
NAMES = [(a, f"name {a}") for a in range(0, 8, 2)]
Row = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A store, a run and the programs in it, which many cells share."""

    store: Store
    run: Run
    artefact: Artefact
    program: viewlet.Program

    @property
    def root(self) -> Path:
        return Path(self.store.uri)


def place_at(uri: str, *, idle: float = 600.0, views: Sequence[str] = (), pem: str = "") -> Place:
    store, program = Store.of(uri), viewlet.compile(SCRIPT)
    return Place(store, new_run(store, LOOPBACK, idle, pem=pem), publish(store, program, VIEWS, views), program)


numbers = itertools.count()


@dataclass
class Driver:
    """What the driver knows of one cell, and what the cell's views must be."""

    place: Place
    splits: tuple[Split, ...] = ()
    chain: Chain = field(default_factory=Chain)
    answer: Answer | None = None
    expected: Counter[Row] = field(default_factory=Counter)
    batch: int = 0
    name: str = field(default_factory=lambda: f"c{next(numbers)}")
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def events(self) -> list[tuple[int, Row]]:
        """Some rows come, and some that are there go."""
        come = [(self.random.randrange(8), self.random.randrange(-5, 100)) for _ in range(self.random.randrange(1, 6))]
        there = list(self.expected.elements())
        gone = self.random.sample(there, min(len(there), self.random.randrange(3)))
        return [*((1, row) for row in come), *((-1, row) for row in gone)]

    def rows(self, events: Sequence[tuple[int, Row]]) -> list[Rows]:
        static = [Rows("names", 1, batch(("a", "name"), NAMES))] if self.chain.version == START else []
        parts = [(times, [row for n, row in events if n == times]) for times in (1, -1)]
        return static + [Rows("r", times, batch(("a", "b"), rows)) for times, rows in parts if rows]

    @property
    def ticket(self) -> Ticket:
        """Of the next batch."""
        address, chain = None if self.answer is None else self.answer.address, self.chain
        run, artefact = self.place.run, self.place.artefact
        return Ticket(run, artefact, self.name, self.batch, chain.version, lambda: chain, address, VIEWS, self.splits)

    def ask(self, events: Sequence[tuple[int, Row]]) -> Answer:
        """One attempt of the next batch; whether it counts is decided by :meth:`commit`."""
        return apply(self.ticket, self.rows(events))

    def commit(self, answer: Answer, events: Sequence[tuple[int, Row]]) -> Answer:
        self.chain, self.answer = self.chain.followed(answer.log, answer.snapshot, answer.merged), answer
        for times, row in events:
            self.expected[row] += times
        self.batch += 1
        return answer

    def go_on(self, batches: int = 1, check: bool = True) -> Answer:
        for _ in range(batches):
            events = self.events()
            answer = self.commit(self.ask(events), events)
        if check:
            self.check()
        return answer

    def check(self) -> None:
        """The views, put together from bases and changes, are those of the rows that counted."""
        names, rows = dict(NAMES), Counter({row: n for row, n in self.expected.items() if n})
        groups = {a for a, _ in rows}
        sums = {a: sum(b * n for (k, b), n in rows.items() if k == a) for a in groups}
        counts = {a: sum(n for (k, _), n in rows.items() if k == a) for a in groups}
        assert self.shown("v") == Counter((a, sums[a], counts[a]) for a in groups)
        assert self.shown("t") == Counter([(sum(sums.values()) if groups else None, sum(counts.values()))])
        joined = Counter[tuple[Any, ...]]()
        for (a, b), n in rows.items():
            joined[names.get(a), b] += n if a in names else 0
        assert self.shown("w") == +joined

    def shown(self, view: str) -> Counter[tuple[Any, ...]]:
        files, rows = self.chain.view(view), Counter[tuple[Any, ...]]()
        for file in filter(None, (files.base, *files.changes)):
            table = pq.read_table(pa.BufferReader(self.place.store.checked(file)))
            names = [name for name in table.column_names if name not in ("batch", "weight")]
            columns = [table[name].to_pylist() for name in ("weight", *names)]
            for weight, *row in zip(*columns, strict=True):
                rows[tuple(row)] += weight
        assert all(weight >= 0 for weight in rows.values())
        return +rows

    def kill(self) -> None:
        assert self.answer is not None
        os.kill(self.answer.pid, signal.SIGKILL)
        gone(self.answer.pid)

    def snapshotting(self) -> int:
        """Batches until a snapshot is due; the process that writes it, which may be over, but not buried yet."""
        self.go_on(check=False)
        while not is_due(self.chain):
            self.go_on(check=False)
        assert self.answer is not None
        path, until = Path(f"/proc/{self.answer.pid}/task/{self.answer.pid}/children"), time.monotonic() + DEADLINE
        while not (children := path.read_text().split()):
            assert time.monotonic() < until, "no snapshot is being made"
        return int(children[0])

    def snapshotted(self) -> None:
        """Batches until the chain has one more snapshot."""
        before = self.chain.base
        gone(self.snapshotting())
        until = time.monotonic() + DEADLINE
        while self.chain.base == before:
            self.go_on(check=False)
            assert time.monotonic() < until, "no snapshot came about"
        self.check()


def batch(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    types = {"a": pa.int32(), "b": pa.int32(), "name": pa.string()}
    arrays = [pa.array([row[i] for row in rows], types[name]) for i, name in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def gone(*pids: int) -> None:
    """Wait until processes have ended."""
    until = time.monotonic() + DEADLINE
    while alive := [pid for pid in pids if _look(pid) is not None]:
        assert time.monotonic() < until, f"still there: {alive}"
        time.sleep(0.01)
