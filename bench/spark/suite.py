"""The Spark part of ``viewlet bench``: what a micro-batch costs, beside Spark's own and beside running the query again.

``python -m bench.spark`` measures the same at length and holds it against its limits; here it takes minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.results import Measurement, Series
from bench.spark import overhead as few
from bench.spark import recompute as again
from bench.spark import scale as sizes
from bench.spark.executors import executors
from bench.spark.run import Stretch
from bench.spark.throughput import ON_ONE_CORE, ROWS, stream_of, throughput
from bench.suite import Found, Say, Settings

QUERIES = ("bsv", "q3")
EXECUTORS = (1, 2)
MS, PER_CORE, PER_SECOND = "ms a micro-batch", "events/s and core", "events/s"


@dataclass(frozen=True, slots=True)
class Length:
    """Micro-batches: first those in which the JVM compiles its code, few rows and many, then those that count."""

    first: int
    warm: int
    batches: int
    groups: tuple[int, ...]


MINUTES = Length(first=20, warm=8, batches=8, groups=(100_000, 1_000_000))
HOURS = Length(first=200, warm=60, batches=40, groups=(100_000, 1_000_000, 10_000_000))
SMALL = 3  # times as many of the micro-batches that have few rows: they are short, and compiled code matters more


def measure(settings: Settings, say: Say) -> Iterator[Found]:
    length = HOURS if settings.full else MINUTES
    queries = [name for name in QUERIES if name in settings.queries]
    for name in queries:
        for part in (_throughput, _recompute):
            yield from _with_scratch(part, name, length, say)
    for name in queries if settings.full else queries[:1]:
        for part in (_overhead, _executors):
            yield from _with_scratch(part, name, length, say)
    if queries:
        yield from _with_scratch(_scale, "totals", length, say)


Part = Callable[[str, Length, Path, Say], Iterator[Found]]


def _with_scratch(part: Part, name: str, length: Length, say: Say) -> Iterator[Found]:
    with tempfile.TemporaryDirectory(prefix="viewlet-bench-") as folder:
        yield from part(name, length, Path(folder), say)


def _throughput(name: str, length: Length, folder: Path, say: Say) -> Iterator[Found]:
    say(f"{name} on Spark: {ROWS:,} rows to a micro-batch, all on one core")
    stream = stream_of(name, length.warm + length.batches, folder, length.first)
    stretch = throughput(stream, ON_ONE_CORE, length.warm, length.batches)
    yield _measured("spark-throughput", name, "viewlet on Spark", stretch, stretch.rate, PER_CORE, ROWS)


def _overhead(name: str, length: Length, folder: Path, say: Say) -> Iterator[Found]:
    say(f"{name} on Spark: {few.ROWS} rows to a micro-batch, {few.CELLS} cells")
    overhead = few.overhead(name, SMALL * length.warm, SMALL * length.batches, folder)
    for who, stretch in (("viewlet on Spark", overhead.kept), ("Spark's own, without views", overhead.empty)):
        yield _measured("spark-overhead", name, who, stretch, stretch.typical * 1000, MS, few.ROWS)


def _recompute(name: str, length: Length, folder: Path, say: Say) -> Iterator[Found]:
    (state,) = again.STATES
    say(f"{name} on Spark: maintained, and run again as Spark SQL, over {state:,} rows")
    recomputed = again.recompute(name, state, length.warm, length.batches, folder, again.FEW_BIDS)
    experiment = "spark-recompute"
    yield _measured(
        experiment, name, "viewlet on Spark", recomputed.kept, recomputed.kept.typical * 1000, MS, again.ROWS
    )
    for who, seconds, note in (
        ("Spark SQL run again", recomputed.seconds, "over cached tables, taking in the batch not counted"),
        ("Spark SQL with its batch", recomputed.with_batch, "over cached tables and the events since"),
    ):
        yield Measurement(
            experiment,
            name,
            who,
            seconds * 1000,
            MS,
            events=again.ROWS,
            seconds=seconds,
            freshness=f"every {again.ROWS:,} events",
            rows_checked=recomputed.kept.answer_rows,
            note=f"settings: {recomputed.settings}; {note}",
        )


def _executors(name: str, length: Length, folder: Path, say: Say) -> Iterator[Found]:
    stream = stream_of(name, length.warm + length.batches, folder, length.first)
    points = []
    for count in EXECUTORS:
        say(f"{name} on Spark: {count} executors of one core, as many cells")
        stretch = executors(stream, count, length.warm, length.batches)
        points.append((float(count), stretch.rate))
        who = f"{count} executor{'s' * (count > 1)}"
        yield _measured("spark-executors", name, who, stretch, stretch.rate, PER_SECOND, ROWS)
    yield Series("spark-executors", name, "viewlet on Spark", "executors", PER_SECOND, tuple(points))


def _scale(name: str, length: Length, folder: Path, say: Say) -> Iterator[Found]:
    points = []
    for groups in length.groups:
        say(f"{groups:,} groups of state on Spark, {sizes.ROWS:,} rows to a micro-batch")
        stretch = sizes.scale(groups, length.warm, length.batches, folder).stretch
        points.append((float(groups), stretch.typical * 1000))
        yield _measured("spark-scale", name, f"{groups:,} groups", stretch, points[-1][1], MS, sizes.ROWS)
    yield Series("spark-scale", name, "viewlet on Spark", "groups of state", MS, tuple(points))


def _measured(
    experiment: str, query: str, who: str, stretch: Stretch, value: float, unit: str, rows: int
) -> Measurement:
    return Measurement(
        experiment,
        query,
        who,
        value,
        unit,
        events=stretch.rows,
        seconds=stretch.took.wall,
        noise=_spread(stretch),
        repetitions=len(stretch.batches),
        freshness=f"every {rows:,} events",
        rows_checked=stretch.answer_rows,
        note=f"{stretch.took.others:.1f} cores were busy for others" if stretch.took.others > 0.3 else "",
    )


def _spread(stretch: Stretch) -> float:
    """Between the quarters of the micro-batches, as a share of the typical one."""
    lower, _, upper = quantiles(stretch.seconds, n=4)
    return (upper - lower) / stretch.typical
