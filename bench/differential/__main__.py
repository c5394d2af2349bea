"""viewlet beside differential dataflow: ``python -m bench.differential``.

Both are fresh after every 1, 100, 1,000 and 10,000 events, and both take the changes of the view after each batch.
viewlet is used as users use it, in Python, and stores no rows but where it says so. The other is a Rust program
(``program/``) with its rows decoded beforehand, built once by cargo. Rates are in CPU seconds from the steady state on,
the better of several rounds in turn, and every answer is checked.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import viewlet
from bench.bars import at_least
from bench.batches import unstored
from bench.differential.events import QUERIES, answered, numbers
from bench.engine.answers import answer, check
from bench.engine.workload import Workload, workload
from bench.options import among
from viewlet.engines.native.build import cache_directory
from viewlet.workloads.bulk import BulkStream

PROGRAM = Path(__file__).with_name("program")
SIZES = {1: 20.0, 100: 3.0, 1_000: 1.2, 10_000: 1.2}  # events in a batch, and how many times the other's rate is asked
STORED = 0.6  # of the other's rate with stored rows, in the largest batches
BUILD_SECONDS, SECONDS = 900, 5
FEW = 100_000  # events one by one


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.differential", description="beside differential dataflow")
    parser.add_argument("--queries", type=among(QUERIES), default=list(QUERIES), help="default: %(default)s")
    parser.add_argument("--events", type=int, default=300_000, help="length of the stream (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts (default: %(default)s)")
    options = parser.parse_args(arguments)
    other = built()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; events per CPU second")
    for name in options.queries:
        w = workload(name, options.events)
        with tempfile.NamedTemporaryFile(suffix=".events") as file:
            numbers(w).tofile(file.name)
            for size, bar in SIZES.items():
                _show(w, size, bar, options.rounds, partial(theirs, other, w, Path(file.name), size))


def built() -> Path:
    """The Rust program; cargo fetches its crates once."""
    place = cache_directory() / "peers" / "differential"
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(place)]
    subprocess.run(command, cwd=PROGRAM, check=True, timeout=BUILD_SECONDS)
    return place / "release" / "fresh"


def theirs(program: Path, w: Workload, events: Path, size: int) -> float:
    """Its rate; it may not reach the end of the stream in its time."""
    command = [program, w.name, events, str(w.warm), str(size), str(SECONDS)]
    first, *rows = subprocess.run(map(str, command), capture_output=True, text=True, check=True).stdout.splitlines()
    taken, nanoseconds = map(int, first.split())
    check("differential dataflow", answered(w.name, rows), answer(w, w.stream.between(0, w.warm + taken)))
    return taken / nanoseconds * 1e9


def ours(w: Workload, size: int, script: str) -> float:
    stream = w.stream.between(w.warm, w.warm + FEW if size == 1 else len(w.stream))
    with viewlet.connect(wait_native=True) as db:
        db.execute(script)
        for name, table in w.static_tables.items():
            db.insert(name, table)
        for batch in w.stream.between(0, w.warm).batches(10_000):
            db.apply(batch)
        changes = db.view(w.name).changes()
        feeds = _feeds(db, stream, size)
        started = time.process_time()
        for feed, rows in feeds:
            feed(rows)
            for _ in changes:
                pass
        seconds = time.process_time() - started
        check("viewlet", db.view(w.name).rows(), answer(w, w.stream.between(0, w.warm + len(stream))))
    return len(stream) / seconds


def _feeds(db: viewlet.Database, stream: BulkStream, size: int) -> list[tuple[Callable[[object], object], object]]:
    if size > 1:
        return [(db.apply, batch) for batch in stream.batches(size)]
    ways = {("+", s.name): s.insert for s in db.streams.values()} | {
        ("-", s.name): s.delete for s in db.streams.values()
    }
    return [(ways[op, name], row) for op, name, row in stream.events()]


def _show(w: Workload, size: int, bar: float, rounds: int, other: Callable[[], float]) -> None:
    best = {"theirs": 0.0, "ours": 0.0, "stored": 0.0}
    for _ in range(rounds):
        best["theirs"] = max(best["theirs"], other())
        best["ours"] = max(best["ours"], ours(w, size, unstored(w.script)))
        if size == max(SIZES):
            best["stored"] = max(best["stored"], ours(w, size, w.script))
    ratio = best["ours"] / best["theirs"]
    print(
        f"{w.name:4} every {size:6,}: differential dataflow {best['theirs']:12,.0f}, viewlet {best['ours']:12,.0f}, "
        f"{ratio:6.2f} times{at_least(ratio, bar)}",
        flush=True,
    )
    if best["stored"]:
        ratio = best["stored"] / best["theirs"]
        print(f"     with stored rows {best['stored']:12,.0f}, {ratio:6.2f} times{at_least(ratio, STORED)}", flush=True)


if __name__ == "__main__":
    main()
