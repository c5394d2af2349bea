"""Deep queries cost what one event changes: ``python -m bench.deep`` measures how that grows with the rows.

A database holds so many rows and takes events one by one through the public API, on the native engine. With each step
a new row comes, the oldest one goes, and the user reads what the view is for. A figure is CPU time for one step. A
small database comes first, whose view is compared with its query (``verify``). A view whose step takes more than
``MOST`` times as long at the greatest size as at the least ends in exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random

import viewlet
from bench.options import among, numbers
from bench.ordered.plot import require_matplotlib
from viewlet.database.memory import Database
from viewlet.workloads.written import suite

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MOST = 8.0
LEAST_STEPS = 200
VERIFIED = 50  # rows: a query is evaluated by its definition, which takes time
NOON = datetime(2026, 1, 1, 12)

Row = tuple[object, ...]
Curve = dict[int, float]  # rows → microseconds for a step


@dataclass(frozen=True)
class Deep:
    """A view ``v`` over ``stream``: its rows without end, what stands beside them, and what a user reads after each."""

    script: str
    stream: str
    rows: Callable[[int, Random], Iterator[Row]]
    read: Callable[[Database, Row], object]
    beside: Mapping[str, Callable[[int], Sequence[Row]]] = field(default_factory=dict)


def lineitems(size: int, rng: Random) -> Iterator[Row]:
    day = date(1996, 2, 1)
    while True:
        supplier, price = rng.randrange(size // 10), rng.randrange(1000, 100_000)
        yield (1, 1, supplier, 1, 1, price, 0, 0, "R", "F", day, day, day, "NONE", "MAIL", "x")


def suppliers(size: int) -> Sequence[Row]:
    return [(n, f"s{n}", "street", 1, "31", 0, "fine") for n in range(size // 10)]


def sales(size: int, rng: Random) -> Iterator[Row]:
    while True:
        yield (rng.randrange(size // 5),)


def samples(size: int, rng: Random) -> Iterator[Row]:
    while True:
        yield rng.randrange(10), rng.randrange(size)


def entries(size: int, rng: Random) -> Iterator[Row]:
    for number in range(sys.maxsize):
        yield rng.randrange(10), number, rng.randrange(-100, 100)


def clicks(size: int, rng: Random) -> Iterator[Row]:
    """As many in five minutes as the database holds."""
    for number in range(sys.maxsize):
        yield rng.randrange(100), NOON + number * timedelta(minutes=5) / size


def visits(size: int, rng: Random) -> Iterator[Row]:
    """Ten rows of each person are there; about two of three come within the gap."""
    for number in range(sys.maxsize):
        yield rng.randrange(size // 10), NOON + number * timedelta(minutes=200) / size, number % 7


def trades(size: int, rng: Random) -> Iterator[Row]:
    while True:
        yield rng.randrange(10), rng.randrange(size)


def quotes(size: int) -> Sequence[Row]:
    return [(n % 10, n, n % 97) for n in range(size)]


def all_rows(database: Database, row: Row) -> object:
    return database.view("v").rows()


def after_a_tick(database: Database, row: Row) -> object:
    assert isinstance(row[1], datetime)
    database.tick(row[1])
    return database.view("v").rows()


def at_its_key(*columns: str) -> Callable[[Database, Row], object]:
    """One row of the view, by columns that are the first ones of the event."""
    return lambda database, row: database.view("v").get(**dict(zip(columns, row, strict=False)))


def _view(schema: str, select: str) -> str:
    return f"{schema};\nCREATE MATERIALIZED VIEW v AS {select};"


DEEP: Mapping[str, Deep] = {
    "greatest sum (TPC-H Q15)": Deep(
        _view(suite("tpch").schema.rstrip().rstrip(";"), suite("tpch").questions["q15"].rstrip().rstrip(";")),
        "lineitem",
        lineitems,
        all_rows,
        {"supplier": suppliers},
    ),
    "histogram of counts": Deep(
        _view(
            "CREATE STREAM sales (shop INTEGER NOT NULL)",
            "SELECT sold, count(*) AS shops FROM"
            " (SELECT shop, count(*) AS sold FROM sales GROUP BY shop) c GROUP BY sold",
        ),
        "sales",
        sales,
        all_rows,
    ),
    "median per group": Deep(
        _view(
            "CREATE STREAM samples (host INTEGER NOT NULL, millis INTEGER NOT NULL)",
            "SELECT host, median(millis) AS half FROM samples GROUP BY host",
        ),
        "samples",
        samples,
        at_its_key("host"),
    ),
    "running balance (one row)": Deep(
        _view(
            "CREATE STREAM entries (account INTEGER NOT NULL, number BIGINT NOT NULL, amount INTEGER NOT NULL)",
            "SELECT account, number, sum(amount) OVER (PARTITION BY account ORDER BY number) AS balance FROM entries",
        ),
        "entries",
        entries,
        at_its_key("account", "number"),
    ),
    "five minutes with ticks": Deep(
        _view(
            "CREATE STREAM clicks (page INTEGER NOT NULL, at TIMESTAMP NOT NULL)",
            "SELECT sum(page) AS s, count(*) AS n FROM clicks WHERE at > now() - INTERVAL '5 minutes'",
        ),
        "clicks",
        clicks,
        after_a_tick,
    ),
    "sessions": Deep(
        _view(
            "CREATE STREAM clicks (person INTEGER NOT NULL, at TIMESTAMP NOT NULL, x INTEGER NOT NULL)",
            "SELECT person, SESSION_START(at, INTERVAL '20' MINUTE) AS s, SESSION_END(at, INTERVAL '20' MINUTE) AS e,"
            " count(*) AS n, sum(x) AS sx FROM clicks GROUP BY person, SESSION(at, INTERVAL '20' MINUTE)",
        ),
        "clicks",
        visits,
        at_its_key("person", "s"),
    ),
    "as-of join": Deep(
        _view(
            "CREATE STREAM trades (symbol INTEGER NOT NULL, at INTEGER NOT NULL);\n"
            "CREATE STREAM quotes (symbol INTEGER NOT NULL, at INTEGER NOT NULL, price INTEGER NOT NULL)",
            "SELECT t.symbol, sum(q.price) AS worth FROM trades t ASOF JOIN quotes q USING (symbol, at)"
            " GROUP BY t.symbol",
        ),
        "trades",
        trades,
        at_its_key("symbol"),
        {"quotes": quotes},
    ),
}


def step_time(deep: Deep, size: int, seconds: float) -> float:
    """Microseconds of CPU for a row that comes, one that goes, and a read."""
    database = viewlet.connect(wait_native=True)
    database.tick(NOON)
    database.execute(deep.script)
    source = deep.rows(size, Random(size))
    for relation, beside in deep.beside.items():
        database.insert(relation, list(beside(size)))
    live = deque(islice(source, size))
    database.insert(deep.stream, list(live))
    steps, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds or steps < LEAST_STEPS:
        row = next(source)
        database.insert(deep.stream, row)
        database.delete(deep.stream, live.popleft())
        live.append(row)
        deep.read(database, row)
        steps += 1
    if size == VERIFIED:
        database.verify("v")
    return spent / steps * 1e6


def measured(names: Sequence[str], sizes: Sequence[int], seconds: float) -> dict[str, Curve]:
    curves: dict[str, Curve] = {}
    for name in names:
        step_time(DEEP[name], VERIFIED, 0.0)
        curves[name] = {n: step_time(DEEP[name], n, seconds) for n in sizes}
        print(line(name, curves[name]), flush=True)
    return curves


def growth(curve: Curve) -> float:
    return curve[max(curve)] / curve[min(curve)]


def line(name: str, curve: Curve) -> str:
    return f"{name:26}" + "".join(f"{per_step:12.1f}" for per_step in curve.values()) + f"{growth(curve):9.1f}×"


def plot(curves: Mapping[str, Curve], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    for name, curve in curves.items():
        panel.loglog(list(curve), list(curve.values()), marker="o", label=f"{name}: ×{growth(curve):.2g}")
    panel.set_xlabel("rows")
    panel.set_ylabel("µs of CPU for an event in, one out, and a read")
    panel.grid(True, which="major", alpha=0.3)
    panel.legend(frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.deep", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=among(DEEP), default=list(DEEP), help="default: all")
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="rows (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU for each query and size")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves there: .svg, .png, .pdf")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        require_matplotlib()
    print(f"{'µs for a step at':26}" + "".join(f"{size:12,}" for size in options.sizes) + f"{'growth':>10}")
    curves = measured(options.queries, options.sizes, options.seconds)
    if options.plot is not None:
        plot(curves, options.plot)
    return 0 if all(growth(curve) <= MOST for curve in curves.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
