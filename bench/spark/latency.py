"""Where a micro-batch's time goes: a kept view, and a query that does nothing with the same sources, in turns.

Both run in one Spark, over the same files, so that a slow hour of the machine is slow for both.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bench.engine.answers import answer, check
from bench.engine.workload import Row, survivors
from bench.spark.events import EventFiles, event_tables, write_events
from bench.spark.machine import Clock, apart
from bench.spark.overhead import doing_nothing
from bench.spark.recompute import standing, written
from bench.spark.run import Stretch, maintained, script_of, shown, spark_with
from viewlet.workloads.queries import PAPER_QUERIES

STATE = 1_000_000  # rows
ROWS = 10_000  # to a micro-batch
BIDS = 1_000  # of a broker
CORES, CELLS = 2, 2
ROUNDS = 5
MOST_TIMES = 2.0
IDLE = {"spark.sql.streaming.pollingDelay": "2s"}  # a query whose turn it is not does not look for files all the time


@dataclass(frozen=True)
class Latency:
    """The same micro-batches: Spark's own, and with the view kept."""

    empty: Stretch
    kept: Stretch

    @property
    def times(self) -> float:
        return self.kept.typical / self.empty.typical


def latency(name: str, warm: int, batches: int, folder: Path) -> Latency:
    """``batches`` are measured in rounds of equal length."""
    turns = [warm, *([-(-batches // ROUNDS)] * ROUNDS)]
    w = standing(name, STATE, ROWS * sum(turns), BIDS)
    before = w.stream.between(0, w.warm)
    files = write_events(folder / "more", event_tables(w.stream.between(w.warm, len(w.stream)), ROWS))
    history = written(folder / "history", survivors(before))
    measured, rows = apart(None, _measured, name, files, history, turns)
    check(f"{name} on Spark, {CELLS} cells, micro-batches of {ROWS:,}", rows, answer(w, w.stream))
    return replace(measured, kept=replace(measured.kept, answer_rows=len(rows)))


def _measured(name: str, files: EventFiles, history: Path, turns: list[int]) -> tuple[Latency, list[Row]]:
    with tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch, spark_with(CORES, **IDLE) as spark:
        earlier = {relation: spark.read.parquet(str(history / relation)) for relation in files.relations}
        script, kept, empty = script_of(PAPER_QUERIES[name]), Path(scratch, "kept"), Path(scratch, "empty")
        with (
            maintained(spark, script, files, kept, cells=CELLS, history=earlier) as (ours, views),
            doing_nothing(spark, files, empty) as theirs,
        ):
            rounds = [(theirs.take(turn), ours.take(turn)) for turn in turns][1:]
            return Latency(*map(_together, zip(*rounds, strict=True))), shown(views[name])


def _together(stretches: tuple[Stretch, ...]) -> Stretch:
    took = Clock.total(stretch.took for stretch in stretches)
    return Stretch(tuple(b for s in stretches for b in s.batches), sum(s.rows for s in stretches), took)
