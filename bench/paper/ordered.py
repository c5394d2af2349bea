"""Ordered access paths against the paper's scans: time per event as the book grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.ordered.growth import growth
from bench.ordered.rates import LEAST_RATE
from bench.results import Measurement, Series
from bench.suite import Found, Say

EXPERIMENT = "ordered"
QUERIES = tuple(LEAST_RATE)
SIZES, LARGE = (100, 1_000, 10_000, 100_000), (1_000_000,)
SHARE = 0.05  # of a contestant's seconds, for each program and size


def measure(queries: Sequence[str], seconds: float, full: bool, say: Say) -> Iterator[Found]:
    for name in (name for name in QUERIES if name in queries):
        course = growth(name, SIZES + (LARGE if full else ()), SHARE * seconds, say)
        live = "live customers" if name == "q22" else "live orders"
        for who, curve in course.curves.items():
            points = tuple((float(point.live), 1e6 * point.per_event) for point in curve)
            yield Series(EXPERIMENT, name, who, live, "CPU µs per event", points)
            for point in curve:
                yield Measurement(
                    EXPERIMENT,
                    name,
                    f"{who}, {point.live:,} live",
                    1e6 * point.per_event,
                    unit="CPU µs per event",
                    events=point.events,
                    seconds=point.events * point.per_event,
                    rows_checked=point.rows,
                    note="checked against a program by hand, which DuckDB vouches for at up to 1,000 live rows",
                )
        if course.ended:
            yield f"Ordered access paths, {name}: the scans were {course.ended}."
