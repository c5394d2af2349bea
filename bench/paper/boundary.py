"""What it costs to get events into the native engine: Arrow batches, lists of tuples, calls; beside bare triggers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.engine.contestants import CONTESTANTS, Limits
from bench.engine.workload import Workload
from bench.results import Measurement

EXPERIMENT = "boundary"
QUERIES = ("bsv", "vwap", "q3")
FORMS = {
    "triggers": "the generated program alone: no base tables, no checks",
    "arrow": "Database.apply with Arrow batches of 10,000 events",
    "lists": "Database.apply with lists of 10,000 tuples",
    "single": "Database.insert and delete, a call for each tuple",
}
EVENTS, TUPLES = 500_000, 100_000


def measured(w: Workload, seconds: float) -> Iterator[Measurement]:
    """From the beginning of the stream."""
    short = replace(w, stream=w.stream.between(0, EVENTS))
    for name, what in FORMS.items():
        ran = CONTESTANTS[name](short, Limits(repetitions=3, seconds=seconds, tuples=TUPLES))
        reached = ran.events / len(w.stream)
        yield Measurement(
            EXPERIMENT,
            w.name,
            name,
            ran.rate,
            events=ran.events,
            seconds=ran.seconds,
            bounded=reached < 1,
            reached=reached,
            freshness="every 10,000 events" if name in ("arrow", "lists") else "every event",
            rows_checked=len(ran.rows),
            note=what,
        )
