"""Two threads beside one, in one run: ``python -m bench.threads``.

Wall time says what a user gets where the cores are free. CPU time says what it would be: that of the calling thread is
the serial share, and the busiest cell's is the rest of the way. Batches are of 100,000 events, and answers are checked.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

import viewlet
from bench.bars import at_least
from bench.engine.answers import answer, check
from bench.engine.workload import Workload, workload
from bench.options import among
from viewlet.threads.update import Update, Work
from viewlet.workloads.queries import PAPER_QUERIES

QUERIES, BATCH, FIRST = ("q3", "q18", "bsv"), 100_000, 10_000
TWICE = 1.6  # times as fast by the wall, where two cores are free


@dataclass
class Times:
    """Seconds, of all events; ``cells`` are those of each cell's thread."""

    wall: float
    calling: float
    cells: dict[int, float] = field(default_factory=dict)

    @property
    def way(self) -> float:
        """What is left of it where each thread has a core."""
        return self.calling + max(self.cells.values(), default=0.0)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.threads", description="two threads beside one")
    parser.add_argument("--queries", type=among(PAPER_QUERIES), default=list(QUERIES), help="default: %(default)s")
    parser.add_argument("--events", type=int, default=1_000_000, help="length of the stream (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; nanoseconds an event")
    for name in options.queries:
        w = workload(name, options.events)
        _show(name, len(w.stream) - w.warm, _measured(w, 1), _measured(w, options.threads))


def _measured(w: Workload, threads: int) -> Times:
    with viewlet.connect(wait_native=True, threads=threads) as db:
        db.execute(w.script)
        for name, table in w.static_tables.items():
            db.insert(name, table)
        for batch in w.stream.between(0, w.warm).batches(FIRST):
            db.apply(batch)
        parts = list(w.stream.between(w.warm, len(w.stream)).batches(BATCH))
        with _cells_timed() as cells:
            wall, calling = time.perf_counter(), time.thread_time()
            for part in parts:
                db.apply(part)
            times = Times(time.perf_counter() - wall, time.thread_time() - calling, cells)
        check(f"{threads} threads", db.view(w.name).rows(), answer(w, w.stream))
    return times


@contextmanager
def _cells_timed() -> Iterator[dict[int, float]]:
    """The CPU time of each cell's part of an update, which its own thread takes."""
    cells, untimed = dict[int, float](), Update._one

    def timed(update: Update, cell: int, work: Work) -> bool | None:
        start = time.thread_time()
        try:
            return untimed(update, cell, work)
        finally:
            cells[cell] = cells.get(cell, 0.0) + time.thread_time() - start

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Update, "_one", timed)
        yield cells


def _show(name: str, events: int, one: Times, several: Times) -> None:
    def each(seconds: float) -> str:
        return f"{seconds / events * 1e9:.0f}"

    cells = ", ".join(each(seconds) for _, seconds in sorted(several.cells.items())) or "none"
    faster = round(one.wall / several.wall, 2)
    print(f"{name}: wall {each(one.wall)} → {each(several.wall)}, {faster} times as fast{at_least(faster, TWICE)}")
    ratio = f"at best {one.way / several.way:.2f} times as fast"
    print(f"  CPU {each(one.way)} → {each(several.calling)} serial, then {cells} in cells: {ratio}", flush=True)


if __name__ == "__main__":
    main()
