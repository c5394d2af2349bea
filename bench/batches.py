"""What the way in costs beside the triggers, in one run: ``python -m bench.batches``.

``trades`` has rows of an int, a float and a str, which come and go; the others are the paper's queries. Each is fed by
Arrow and by lists, with stored rows and without (``stored = false``), in turn with its bare triggers. The best of
several rounds counts, in CPU seconds, from the steady state on. Every answer is checked.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

import viewlet
from bench.bars import at_least, below
from bench.engine.answers import answer, check
from bench.engine.triggers import Triggers, generated_source
from bench.engine.workload import Workload, workload
from bench.options import among
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import PAPER_QUERIES, PaperQuery

QUERIES = ("trades", "q3", "q18", "bsv", "vwap")
TRADES = PaperQuery(
    "trades",
    "CREATE STREAM trade (id BIGINT NOT NULL, price DOUBLE NOT NULL, name VARCHAR NOT NULL);\n",
    ("trade",),
    "SELECT name, sum(price) AS total, count(*) AS trades FROM trade GROUP BY name",
)
BYTES = {"q3": 68}  # 0.6 of what a row took at first
NAMES, LIVE = 1_000, 10_000  # trades that are there at a time
LARGE, SMALL, TUPLES = 10_000, 100, 100_000
STREAM = re.compile(r"(CREATE STREAM [^;]*?\));", re.DOTALL)
Feed = Callable[[viewlet.Database], tuple[int, float]]  # how many events, and the seconds that they took


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; nanoseconds of CPU time an event")
    for name in options.queries:
        w = trades(options.events) if name == "trades" else workload(name, options.events)
        _show(name, _measured(w, options.rounds))
        held = round(_bytes_a_row(w))
        print(f"  bytes a live row: {held}{below(held, BYTES[name]) if name in BYTES else ''}", flush=True)


def trades(events: int) -> Workload:
    """Trades come until enough are there. From then on, each that comes is followed by the oldest that goes."""
    count = (events + LIVE) // 2
    ids = np.arange(count)
    table = pa.table({"id": ids, "price": ids % 977 / 4, "name": [f"name {i * 7919 % NAMES}" for i in range(count)]})
    turns = np.ravel((ids[LIVE:], ids[:-LIVE]), order="F")
    ops = np.concatenate([np.ones(LIVE), np.tile([1, -1], count - LIVE)]).astype(np.int8)
    places = np.concatenate([ids[:LIVE], turns])
    return Workload(TRADES, BulkStream({"trade": table}, ops, np.zeros(len(ops), np.int8), places), warm=2 * LIVE)


def unstored(script: str) -> str:
    return STREAM.sub(r"\1 WITH (stored = false);", script)


def _measured(w: Workload, rounds: int) -> dict[str, float]:
    bare, best = Triggers(generated_source(viewlet.compile(w.script)), w), dict[str, float]()
    contestants: dict[str, tuple[str, Feed]] = {
        "Arrow of 10,000": (w.script, _batches(w, LARGE)),
        "Arrow of 10,000, stored = false": (unstored(w.script), _batches(w, LARGE)),
        "Arrow of 100": (w.script, _batches(w, SMALL)),
        "lists of 100": (w.script, _lists(w)),
        "single tuples by handle": (w.script, _single(w)),
        "single tuples by handle, stored = false": (unstored(w.script), _single(w)),
    }
    for _ in range(rounds):
        best["triggers"] = min(best.get("triggers", 1.0), bare.run(w.stream).seconds / len(w.stream))
        for who, (script, feed) in contestants.items():
            best[who] = min(best.get(who, 1.0), _through(w, script, feed))
    return best


def _through(w: Workload, script: str, feed: Feed) -> float:
    with viewlet.connect(wait_native=True) as db:
        db.execute(script)
        for name, table in w.static_tables.items():
            db.insert(name, table)
        for batch in w.stream.between(0, w.warm).batches(LARGE):
            db.apply(batch)
        events, seconds = feed(db)
        check("the database", db.view(w.name).rows(), answer(w, w.stream.between(0, w.warm + events)))
    return seconds / events


def _bytes_a_row(w: Workload) -> float:
    """All that the program holds at the end of the stream, by the rows that are stored then."""
    with viewlet.connect(wait_native=True) as db:
        db.execute(w.script)
        for name, table in w.static_tables.items():
            db.insert(name, table)
        for batch in w.stream.batches(LARGE):
            db.apply(batch)
        memory = db.engine.memory()  # type: ignore[attr-defined]
        return sum(size for *_, size in memory) / sum(len(stream) for stream in db.streams.values())


def _batches(w: Workload, size: int) -> Feed:
    stream = w.stream.between(w.warm, len(w.stream) if size == LARGE else w.warm + TUPLES)
    parts = list(stream.batches(size))
    return lambda db: (len(stream), _timed(lambda: [db.apply(part) for part in parts]))


def _lists(w: Workload) -> Feed:
    stream = w.stream.between(w.warm, w.warm + TUPLES)
    events = stream.events()
    parts = list(iter(lambda: list(islice(events, SMALL)), []))
    return lambda db: (len(stream), _timed(lambda: [db.apply(part) for part in parts]))


def _single(w: Workload) -> Feed:
    stream = w.stream.between(w.warm, w.warm + TUPLES)
    events = list(stream.events())

    def feed(db: viewlet.Database) -> tuple[int, float]:
        ways: dict[tuple[str, str], Any] = {}
        for handle in db.streams.values():
            ways["+", handle.name], ways["-", handle.name] = handle.insert, handle.delete
        return len(events), _timed(lambda: [ways[op, name](row) for op, name, row in events])

    return feed


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _show(name: str, best: dict[str, float]) -> None:
    bare, large = best["triggers"], "Arrow of 10,000"
    of_triggers = {
        large: at_least(round(bare / best[large], 2), 0.5),
        f"{large}, stored = false": at_least(round(bare / best[f"{large}, stored = false"], 2), 0.8),
    }
    bars = {
        **(of_triggers if name in PAPER_QUERIES else {}),
        "Arrow of 100": at_least(round(best["lists of 100"] / best["Arrow of 100"], 2), 1),
        "single tuples by handle": below(round((best["single tuples by handle"] - bare) * 1e9), 300),
    }
    print(f"\n{name}")
    for who, seconds in best.items():
        beyond = (
            "" if who == "triggers" else f"{bare / seconds:6.2f} of the triggers, {(seconds - bare) * 1e9:5.0f} beyond"
        )
        print(f"  {who:40} {seconds * 1e9:6.0f} {beyond}{bars.get(who, '')}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.batches", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=among([TRADES.name, *PAPER_QUERIES]), default=list(QUERIES))
    parser.add_argument("--events", type=int, default=500_000, help="length of the stream (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts (default: %(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
