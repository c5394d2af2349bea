"""What it costs to last: ingest into a directory beside ingest into memory, snapshots, and how long a restart takes.

``python -m bench.durable`` feeds an order book (BSV and VWAP) in batches of 1,000 rows at each level of durability, as
Arrow and as tuples, and single rows. It then takes in ``--rows`` rows (ten million) while snapshots are made beside it,
and opens the directory again. Times are of the CPU, but those of level ``machine`` and of the disk's own sync, which
wait. The best of some rounds counts. Every answer is compared with that in memory. ``bar`` is what should be reached.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import viewlet
from bench.bars import at_least, below
from viewlet.database.directory import Durability, StoredDatabase
from viewlet.database.memory import Database
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

BATCH, BATCHES, ROUNDS = 1_000, 200, 3
ROW_BYTES = 40
LEVELS: tuple[Durability | None, ...] = (None, "none", "process", "machine")
SCRIPT = FINANCE + PAPER_QUERIES["bsv"].sql() + PAPER_QUERIES["vwap"].sql()


def batch(start: int, size: int) -> pa.Table:
    chance, ids = np.random.default_rng(start), np.arange(start, start + size)
    columns = [chance.integers(0, 10, size), chance.integers(1, 100, size) * 1.0, chance.integers(1, 400, size) / 4]
    return pa.table([ids * 1.0, ids, *columns], ["t", "id", "broker_id", "volume", "price"])


def opened(directory: Path, level: Durability | None) -> Database:
    if level is None:
        return viewlet.connect(wait_native=True)
    return viewlet.connect(directory, durability=level, wait_native=True)


def answers(db: Database) -> list[list[tuple[Any, ...]]]:
    return [sorted(db.view(name).rows()) for name in ("bsv", "vwap")]


def ingest(level: Durability | None, batches: Sequence[Any], expected: list[Any] | None) -> tuple[float, list[Any]]:
    """Seconds that all batches take, and the answers then."""
    clock: Callable[[], float] = time.perf_counter if level == "machine" else time.process_time
    with tempfile.TemporaryDirectory() as directory:
        db = opened(Path(directory), level)
        db.execute(SCRIPT)
        start = clock()
        for rows in batches:
            db.insert("bids", rows)
        seconds, answer = clock() - start, answers(db)
        db.close()
        assert expected in (None, answer), "another answer than in memory"
        if level is not None:
            with viewlet.connect(directory, wait_native=True) as again:
                assert answers(again) == answer, "another answer after a restart"
    return seconds, answer


def own_sync(size: int) -> float:
    """Seconds that the disk takes for so many bytes at the end of a file."""
    with tempfile.TemporaryFile(buffering=0) as file:
        start = time.perf_counter()
        for _ in range(BATCHES):
            file.write(bytes(size))
            os.fsync(file.fileno())
        return (time.perf_counter() - start) / BATCHES


def compare(kind: str, batches: Sequence[Any]) -> None:
    best: dict[Durability | None, float] = {}
    expected: list[Any] | None = None
    for _ in range(ROUNDS):
        for level in LEVELS:
            seconds, expected = ingest(level, batches, expected)
            best[level] = min(seconds, best.get(level, seconds))
    for level, seconds in best.items():
        rate, share = len(batches) * BATCH / seconds / 1e6, best[None] / seconds
        bar = at_least(share, 0.8) if level == "process" else ""
        print(f"{kind:7} {level or 'memory':8} {rate:6.2f} M rows/s   {share:5.2f} of memory{bar}", flush=True)
    waited, alone = best["machine"] / len(batches) * 1e3, own_sync(BATCH * ROW_BYTES) * 1e3
    print(f"{kind:7} machine  {waited:6.2f} ms a batch, of which the disk's own sync takes {alone:.2f}")


def single(inserts: int = 4000) -> None:
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory), "process") as db:
        db.execute(SCRIPT)
        rows = [tuple(row.values()) for row in batch(0, inserts).to_pylist()]
        start = time.process_time()
        for row in rows:
            db.insert("bids", row)
        print(f"single  process  {1e6 * (time.process_time() - start) / inserts:6.2f} µs a row", flush=True)


def beside(db: Database, rows: int) -> None:
    """Batches by the CPU time of the writer's thread, while a snapshot is made and while none is."""
    assert isinstance(db, StoredDatabase)
    times: dict[bool, list[float]] = {False: [], True: []}
    clock = time.thread_time
    for start in range(0, rows, BATCH):
        given = batch(start, BATCH)
        begin = clock()
        db.insert("bids", given)
        times[db._beside is not None].append(clock() - begin)
    (alone, most), (beside, worst) = ((float(np.median(t)) * 1e3, max(t) * 1e3) for t in times.values())
    print(f"a batch alone {alone:.2f} ms (worst {most:.1f}), beside a snapshot {beside:.2f} ms (worst {worst:.1f})")
    print(f"    {len(times[True]):,} of {rows // BATCH:,} beside one{below(beside / alone, 2)}", flush=True)


def restart(rows: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        db = viewlet.connect(directory, wait_native=True)
        db.execute(SCRIPT)
        beside(db, rows)
        expected = answers(db)
        begin = time.perf_counter()
        db.close()
        print(f"close, with the snapshot in the making: {time.perf_counter() - begin:.2f} s by the clock")
        files = ", ".join(f"{p.name} {p.stat().st_size:,}" for p in sorted(Path(directory).iterdir()) if "-" in p.name)
        print(f"    {files}", flush=True)
        del db
        gc.collect()
        begin, wall = time.process_time(), time.perf_counter()
        with viewlet.connect(directory, wait_native=True) as db:
            seconds, wall = time.process_time() - begin, time.perf_counter() - wall
            figures = f"{seconds:.2f} CPU s{below(seconds, 10)}, {wall:.2f} s by the clock, on {db.tier}"
            print(f"restart with {rows:,} rows: {figures}", flush=True)
            assert answers(db) == expected, "another answer after the restart"
            begin = time.process_time()
            db.checkpoint()
            print(f"checkpoint of {rows:,} rows: {time.process_time() - begin:.2f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the restart")
    options = parser.parse_args()
    tables = [batch(start * BATCH, BATCH) for start in range(BATCHES)]
    tuples = [list(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables]
    gc.freeze()
    compare("arrow", tables)
    compare("tuples", tuples)
    single()
    restart(options.rows)


if __name__ == "__main__":
    main()
