"""What it costs to live with a database: to be told of changes, to read beside a writer, to add a view.

``python -m bench.live`` prints, on the native engine and through the public API:

* ``told``: a single insert while somebody listens to the view, by how many groups the view has;
* ``readers``: batches of a writer alone, and beside threads that each read the view a hundred times a second, in turns;
* ``added``: a stream, a view over it, and a view over all rows, added to a database that holds many rows: how long it
  takes, and how much memory at its peak. The compiler has done its work before: each script is executed once on a small
  database, which fills the cache.

``bar`` is what should be reached.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import threading
import time

import numpy as np
import pyarrow as pa

import viewlet
from bench.bars import at_least, below
from viewlet import Database

SCRIPT = """
CREATE STREAM trades (k BIGINT NOT NULL, name VARCHAR, price DOUBLE);
CREATE MATERIALIZED VIEW totals AS SELECT k, sum(price) AS total, count(*) AS n FROM trades GROUP BY k;
"""
STREAM = "CREATE STREAM other (a BIGINT)"
EMPTY = "CREATE MATERIALIZED VIEW others AS SELECT a, count(*) AS n FROM other GROUP BY a"
VIEW = "CREATE MATERIALIZED VIEW names AS SELECT name, sum(price) AS total FROM trades GROUP BY name"
BATCH = 1000
ROUNDS = 5
PAUSE = 0.01  # seconds between two reads of a thread


def rows(count: int, groups: int, seed: int = 7) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = np.concatenate([np.arange(groups), rng.integers(0, groups, max(count - groups, 0))])[:count]
    names = pa.array([f"name {i}" for i in range(100)]).take(pa.array(rng.integers(0, 100, count)))
    return pa.table({"k": keys, "name": names, "price": rng.random(count)})


def opened(count: int, groups: int) -> Database:
    database = viewlet.connect(wait_native=True)
    database.execute(SCRIPT)
    database.insert("trades", rows(count, groups))
    assert database.tier == "native"
    return database


# -- told --------------------------------------------------------------------------------------------------------------


def told(groups: int, inserts: int = 3000) -> float:
    """Microseconds of an insert and of telling its changes."""
    with opened(groups, groups) as database:
        changes: list[object] = []
        database.view("totals").subscribe(changes.append)
        each = []
        for i in range(inserts):
            row = (i * 7919 % groups, "a", 1.0)
            start = time.perf_counter()
            database.insert("trades", row)
            each.append(time.perf_counter() - start)
        assert len(changes) == 2 * inserts, "each group loses a row and gets another"
        return 1e6 * statistics.median(each)


# -- readers -----------------------------------------------------------------------------------------------------------


def written(readers: int, batches: int) -> tuple[float, int]:
    """Rows a second of the writer, and how many reads there were meanwhile."""
    with opened(10_000, 1000) as database:
        ended, reads, failures = threading.Event(), [0] * readers, list[BaseException]()

        def read(number: int) -> None:
            try:
                while not ended.wait(PAUSE):
                    counted = sum(database.view("totals").arrow()["n"].to_pylist())
                    assert (counted - 10_000) % BATCH == 0, "a part of a batch was seen"
                    reads[number] += 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read, args=(i,)) for i in range(readers)]
        for thread in threads:
            thread.start()
        work = [rows(BATCH, 1000, seed) for seed in range(20)]
        start = time.perf_counter()
        for i in range(batches):
            database.insert("trades", work[i % len(work)])
        seconds = time.perf_counter() - start
        ended.set()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return batches * BATCH / seconds, sum(reads)


def beside_readers(readers: int, batches: int) -> None:
    ratios = []
    for _ in range(ROUNDS):
        alone, _ = written(0, batches)
        beside, reads = written(readers, batches)
        ratios.append(beside / alone)
        print(f"readers   alone {alone:,.0f} rows/s; beside {readers} readers {beside:,.0f} rows/s, {reads} reads")
    ratio = statistics.median(ratios)
    each = " ".join(f"{r:.2f}" for r in sorted(ratios))
    print(f"          ratio {ratio:.2f}, the median of {each}{at_least(ratio, 0.8)}", flush=True)


# -- added -------------------------------------------------------------------------------------------------------------


def memory(what: str) -> float:
    """Megabytes: ``VmRSS`` are those of now, ``VmHWM`` those of the peak."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) / 1024


def forget_the_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def added(count: int) -> None:
    scripts = {"a stream": STREAM, "a view over an empty stream": EMPTY, "a view over all rows": VIEW}
    for size in (10, 30_000):  # the program as a whole, and that part of it which is new
        with opened(size, 10) as small:
            for script in scripts.values():
                small.execute(script)
    with viewlet.connect(wait_native=True) as alone:
        alone.execute("CREATE STREAM trades (k BIGINT NOT NULL, name VARCHAR, price DOUBLE);" + VIEW)
        table = rows(count, min(count, 100_000))
        start = time.process_time()
        alone.insert("trades", table)
        loaded = time.process_time() - start
    del table, alone
    with opened(count, min(count, 100_000)) as database:
        for name, script in scripts.items():
            gc.collect()
            before = memory("VmRSS")
            forget_the_peak()
            start = time.process_time()
            database.execute(script)
            seconds, more = time.process_time() - start, memory("VmHWM") / before
            share = seconds / loaded
            bar = f", {share:.2f} of it alone{below(share, 1)}" if script is VIEW else below(1000 * seconds, 300)
            print(f"added     {count:,} rows: {name} {1000 * seconds:,.0f} ms{bar}")
            print(f"          memory at the peak {more:.2f} of {before:,.0f} MB{below(more, 1.1)}", flush=True)
        assert len(database.view("names")) == 100
    print(f"          that view alone, loaded: {1000 * loaded:,.0f} ms")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the database that a view is added to")
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--batches", type=int, default=2000)
    options = parser.parse_args(arguments)
    figures = {groups: told(groups) for groups in options.groups}
    for groups, microseconds in figures.items():
        print(f"told      {groups:>9,} groups {microseconds:8.1f} µs an insert{below(microseconds, 20)}", flush=True)
    growth = max(figures.values()) / min(figures.values())
    print(f"          growth {growth:.2f}{below(growth, 2)}")
    beside_readers(options.readers, options.batches)
    added(options.rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
