"""A grid of 10, 100, 1,000 cells, on paper: ``python -m bench.simulate``.

The planner, the routing of rows and the driver's manifests are the real ones, and are timed. What there is no cluster
for is a model: network, disks, Spark's own work, the triggers. Its figures are below, each with where it is from. A
micro-batch has one second's rows; it keeps up while it takes less than a second.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bench.manifests import Query
from viewlet.cells.router import GOLDEN
from viewlet.cells.routing import Hash, Routing
from viewlet.durable.store import Store
from viewlet.spark.pipeline import Pipeline, pipeline_of
from viewlet.workloads.queries import PAPER_QUERIES

RATE = 1_000_000  # rows a second, one micro-batch
KEYS = 1_000_000  # different values of each column by which rows are routed
MANIFESTS = 12  # batches of which the driver's part is timed
# The model.
CELLS_OF_EXECUTOR = 8
ROW_BYTES = 40  # of a row on its way, as Arrow
NETWORK = 1.25e9  # bytes a second, in and out of an executor: 10 Gbit/s
DISK = 300e6  # bytes a second that an executor writes
SYNC = 10e-3  # seconds to force a file to a disk in a network
TRIGGER = 0.3e-6  # seconds a row: BSV and Q3 in docs/spark.md, "in the cells"
SPARK = 60e-3  # seconds of an empty micro-batch, from there
TASK = 0.3e-3  # seconds of the driver's to launch a task and hear of its end: some thousands a second
BLOCK = 20e-6  # seconds of an executor's to find one block of a shuffle
STRAGGLER = 5  # times as slow as the others
STATE = 100e6  # bytes of a cell's snapshot
READ = 200e6  # bytes a second at which a cell is opened again


Columns = set[tuple[str, str]]  # relation and column


@dataclass(frozen=True)
class Situation:
    """``hot`` is the share of rows that have one and the same key; the script may say so."""

    name: str
    hot: float = 0.0
    declared: bool = False
    slow_cells: int = 0
    lost_executors: int = 0


SITUATIONS = (
    Situation("even"),
    Situation("a tenth of the rows has one key", hot=0.1),
    Situation("that is declared", hot=0.1, declared=True),
    Situation("one cell is five times as slow", slow_cells=1),
    Situation("an executor is lost", lost_executors=1),
)


@dataclass(frozen=True)
class Costs:
    """Seconds of a micro-batch, one part after the other."""

    spark: float
    tasks: float
    network: float
    busiest: float
    logs: float
    driver: float
    opened: float

    @property
    def total(self) -> float:
        return sum(vars(self).values())

    @property
    def most(self) -> str:
        names = {
            "spark": "Spark's own work",
            "tasks": "launching tasks",
            "network": "moving rows",
            "busiest": "the busiest cell",
            "logs": "writing logs",
            "driver": "manifests",
            "opened": "opening cells again",
        }
        return names[max(vars(self), key=lambda part: getattr(self, part))]


@dataclass(frozen=True)
class Routed:
    """How many rows each cell has in a batch."""

    rows: np.ndarray

    @property
    def copies(self) -> float:
        return float(self.rows.sum()) / RATE

    @property
    def skew(self) -> float:
        """The busiest cell's share beside the mean."""
        return float(self.rows.max() / self.rows.mean())


def declared_hot(script: str, columns: Columns, hot: float) -> str:
    """The script, which says of each of these columns that one value has so many of the rows."""
    for name in {relation for relation, _ in columns}:
        options = ", ".join(f"hot_{column} = {hot}" for relation, column in sorted(columns) if relation == name)
        script = re.sub(rf"(CREATE STREAM {name} [^;]*);", rf"\1 WITH ({options});", script)
    return script


def hashed(pipeline: Pipeline) -> Columns:
    """The columns by which rows are routed."""
    return {(c.relation, route.column) for c in pipeline.grid.copies for route in c.routes if isinstance(route, Hash)}


def routed(pipeline: Pipeline, hot: float, columns: Columns, seed: int) -> Routed:
    """By the real grid. Relations have their rows in proportion to their declared rates; ``columns`` may be hot."""
    rng, grid = np.random.default_rng(seed), pipeline.grid
    rows = np.zeros(grid.cells, dtype=np.int64)
    read = dict.fromkeys(copy.relation for copy in grid.copies if not copy.static)
    rates = {name: float(pipeline.relations[name].rate) for name in read}
    for name, rate in rates.items():
        routings = [grid.routing(copy) for copy in grid.copies if copy.relation == name]
        names = {term.column for routing in routings for term in routing.terms}
        count = int(RATE * rate / sum(rates.values()))
        keys = {column: _keys(rng, count, hot if (name, column) in columns else 0.0) for column in sorted(names)}
        for routing in routings:
            rows += _cells(routing, keys, count, grid.cells)
    return Routed(rows)


def _keys(rng: np.random.Generator, count: int, hot: float) -> np.ndarray:
    values = rng.integers(1, KEYS, count).astype(np.uint64)
    values[: int(hot * count)] = 7
    return values


def _cells(routing: Routing, keys: Mapping[str, np.ndarray], count: int, cells: int) -> np.ndarray:
    """How many rows each has. A product takes the place of Spark's hash."""
    bases = np.zeros(count, dtype=np.int64)
    for term in routing.terms:
        spread = (keys[term.column] * np.uint64(GOLDEN)) >> np.uint64(32)
        bases += (spread % np.uint64(term.share)).astype(np.int64) * term.stride
    counts = np.bincount(bases, minlength=cells)
    return sum((np.roll(counts, offset) for offset in routing.offsets), np.zeros(cells, dtype=np.int64))


def costs(cells: int, routed: Routed, driver: float, situation: Situation) -> Costs:
    executors = max(1, cells // CELLS_OF_EXECUTOR)
    moved = float(routed.rows.sum()) * ROW_BYTES / executors
    busiest = float(routed.rows.max()) * TRIGGER
    if situation.slow_cells:
        busiest = max(busiest, STRAGGLER * float(routed.rows.mean()) * TRIGGER)
    beside = (CELLS_OF_EXECUTOR - 1) * float(
        routed.rows.mean()
    )  # rows of the other cells of the busiest one's executor
    written = (float(routed.rows.max()) + beside) * ROW_BYTES / DISK
    opened = CELLS_OF_EXECUTOR / max(1, executors - 1) * STATE / READ if situation.lost_executors else 0.0
    return Costs(
        SPARK,
        2 * cells * TASK,  # those that read, and those that have cells
        moved / NETWORK + cells * CELLS_OF_EXECUTOR * BLOCK,  # each task asks for a block of each of the readers
        busiest,
        written + SYNC,
        driver + SYNC,
        max(opened, STATE / READ) if situation.lost_executors else 0.0,
    )


def driver_seconds(cells: int) -> float:
    """Of CPU for each batch, all cells busy: tickets, manifest, note."""
    with tempfile.TemporaryDirectory() as root:
        seconds = list(Query(Store(root), cells, cells, 100).batches(MANIFESTS))[2:]
    return sum(seconds) / len(seconds)


def lines(queries: list[str], grids: list[int]) -> Iterator[str]:
    driver = {cells: driver_seconds(cells) for cells in grids}
    for name in queries:
        query = PAPER_QUERIES[name]
        for cells in grids:
            script, columns = query.schema + query.sql("sql"), Columns()
            for situation in SITUATIONS:
                begun = time.process_time()
                said = declared_hot(script, columns, situation.hot) if situation.declared else script
                pipeline = pipeline_of(said, cells, "optimized", "sql")
                planned = time.process_time() - begun
                columns = columns or hashed(pipeline)
                at = routed(pipeline, situation.hot, columns, seed=cells)
                yield _line(name, pipeline.grid.cells, planned, situation, at, driver[cells])


def _line(name: str, cells: int, planned: float, situation: Situation, at: Routed, driver: float) -> str:
    of = costs(cells, at, driver, situation)
    parts = (of.tasks, of.network, of.busiest, of.logs, of.driver, of.opened)
    shown = " | ".join(f"{1e3 * part:.0f}" for part in parts)
    plan = f"{planned:.1f} s" if planned else ""
    keeps = f"{1e3 * of.total:.0f}" if of.total < 1 else f"**{1e3 * of.total:.0f}**"
    return (
        f"| {name.upper()} | {cells} | {situation.name} | {plan} | {at.copies:.1f} | {at.skew:.1f}× | {shown} "
        f"| {keeps} | {of.most} |"
    )


HEAD = (
    "| query | cells | situation | planned in | copies of a row | busiest : mean | tasks | network | busiest cell "
    "| logs | driver | opened again | a batch | most of it |\n|" + "---|" * 14
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__)
    parser.add_argument("--queries", default="bsv,q3", help="of the paper's (bsv,q3)")
    parser.add_argument("--cells", default="10,100,1000", help="how many (10,100,1000)")
    given = parser.parse_args()
    print(HEAD)
    for line in lines(given.queries.split(","), [int(cells) for cells in given.cells.split(",")]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
