"""A grid of 10, 100, 1,000 cells, on paper: ``python -m bench.simulate``.

The planner, the routing of rows and the driver's manifests are the real ones, and are timed. What there is no cluster
for is a model: network, disks, Spark's own work, the triggers. Its figures are below, each with where it is from. A
micro-batch has one second's rows; it keeps up while it takes less than a second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.manifests import Query
from viewlet.cells.router import Way, ways
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


@dataclass(frozen=True)
class Situation:
    """``hot`` is the share of rows that have one and the same key."""

    name: str
    hot: float = 0.0
    slow_cells: int = 0
    lost_executors: int = 0


SITUATIONS = (
    Situation("even"),
    Situation("a tenth of the rows has one key", hot=0.1),
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


def routed(pipeline: Pipeline, hot: float, seed: int) -> Routed:
    """By the real router. Relations have their rows in proportion to their declared rates."""
    rng, rows = np.random.default_rng(seed), np.zeros(pipeline.grid.cells, dtype=np.int64)
    found = ways(pipeline.grid)
    rates = {name: float(pipeline.relations[name].rate) for name in found if not pipeline.relations[name].static}
    for name, rate in rates.items():
        count = int(RATE * rate / sum(rates.values()))
        rows += _cells(found[name], _keys(rng, found[name], count, hot), pipeline.grid.cells)
    return Routed(rows)


def _keys(rng: np.random.Generator, way: Way, count: int, hot: float) -> pa.RecordBatch:
    columns = {turn.column: rng.integers(1, KEYS, count) for turn in way.turns}
    for values in columns.values():
        values[: int(hot * count)] = 7
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def _cells(way: Way, keys: pa.RecordBatch, cells: int) -> np.ndarray:
    bases = way.bases(keys)
    assert bases is not None, "keys are integers"
    counts = np.bincount(bases.to_numpy().astype(np.int64), minlength=cells)
    return sum((np.roll(counts, offset) for offset in way.offsets), np.zeros(cells, dtype=np.int64))


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
            begun = time.process_time()
            pipeline = pipeline_of(query.schema + query.sql("sql"), cells, "optimized", "sql")
            planned = time.process_time() - begun
            for situation in SITUATIONS:
                at = routed(pipeline, situation.hot, seed=cells)
                yield _line(name, pipeline.grid.cells, planned, situation, at, driver[cells])
                planned = 0.0


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
