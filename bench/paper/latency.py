"""How long a single event takes: percentiles, for a mean says nothing of the slowest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.engine.triggers import Triggers
from bench.paper.course import Course, Part
from bench.paper.programs import Generated
from bench.paper.strategies import Race
from bench.results import Measurement

EXPERIMENT = "latency"
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
MOST = 1_000_000  # events that are timed


def measured(race: Race, optimized: Generated) -> Iterator[Measurement]:
    """On the wall, event by event from the steady state on; what reading the clock takes is taken off."""
    w = race.w
    stop = min(len(w.stream), w.warm + MOST)
    with Triggers(optimized.source, w, optimized.strategy).at_work() as program:
        program.take(0, w.warm)
        took = program.nanoseconds(w.warm, stop)
        clock, rows = program.clock(), program.rows()
    checked = race.checked(f"{w.name}, event by event,", Course([Part(stop, 0.0, rows=rows)], len(w.stream)))
    for name, percentile in PERCENTILES.items():
        yield Measurement(
            EXPERIMENT,
            w.name,
            name,
            max(float(np.percentile(took, percentile)) - clock, 0.0),
            unit="ns",
            events=len(took),
            seconds=float(took.sum()) / 1e9,
            reached=stop / len(w.stream),
            rows_checked=checked,
            note=f"optimized; less {clock:.0f} ns for reading the clock, of which each event has one; on the wall, so "
            "that the slowest are those during which the system did something else",
        )
