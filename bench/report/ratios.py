"""Who is how many times as fast as whom, taken where both stood at the same point of the stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.report.digits import is_rate
from bench.results import Measurement, Results

OURS = "optimized"
STRATEGIES = "figure-7"
PEERS = "peers"
RECOMPUTED = "spark-recompute"
SAME_POINT = "same-point"  # ratios of our strategy over others, measured over the very same events
PRINTED = "paper"  # how the names of printed figures begin
EVERY_EVENT = "every event"


Identity = tuple[str, str, str, str, str]


def identity(measurement: Measurement) -> Identity:
    """What is measured: two runs, or two files of results, may have it twice."""
    return *measurement.key, measurement.unit, measurement.freshness


@dataclass(frozen=True, slots=True)
class Ratio:
    """``ours`` over ``theirs``, in the unit of both."""

    query: str
    ours: Measurement
    theirs: Measurement
    value: float
    at: float | None = None  # how far into the stream both were when they were compared; None: each over all it took

    @property
    def over(self) -> str:
        return name_with_freshness(self.theirs)


def name_with_freshness(measurement: Measurement) -> str:
    """A contestant by the event and by the batch are two."""
    return (
        measurement.contestant
        if measurement.freshness in ("", EVERY_EVENT)
        else f"{measurement.contestant}, {measurement.freshness}"
    )


def is_printed(measurement: Measurement) -> bool:
    return measurement.contestant == PRINTED or measurement.contestant.startswith(f"{PRINTED} ")


def is_cut(measurement: Measurement) -> bool:
    """Stopped by the clock with some of its stream still to come."""
    return measurement.bounded and measurement.reached < 1


def is_viewlet(measurement: Measurement) -> bool:
    return measurement.contestant.startswith("viewlet")


def over_strategies(results: Results) -> list[Ratio]:
    """The optimized strategy over every other contestant of Figure 7, for each query."""
    same = {(m.query, m.contestant): m for m in results.of(SAME_POINT)}
    return [
        ratio
        for query, group in by_query(results.of(STRATEGIES)).items()
        if (ours := next((m for m in group if m.contestant == OURS), None)) is not None
        for theirs in group
        if theirs is not ours and not is_printed(theirs)
        if (ratio := _at_the_same_point(ours, theirs, same.get((query, theirs.contestant)))) is not None
    ]


def printed_ratios(results: Results) -> list[Ratio]:
    """The same, of the figures that the paper prints."""
    return [
        Ratio(query, ours, theirs, ours.value / theirs.value)
        for query, group in by_query(results.of(STRATEGIES)).items()
        if (ours := next((m for m in group if m.contestant == PRINTED), None)) is not None and ours.value
        for theirs in group
        if theirs is not ours and is_printed(theirs) and theirs.value
    ]


def over_peers(results: Results, experiment: str = PEERS) -> list[Ratio]:
    """viewlet over every other contestant of an experiment, as fresh as that or fresher."""
    return [
        Ratio(query, ours, theirs, speed(ours.value, theirs.value, theirs.unit))
        for query, group in by_query(results.of(experiment)).items()
        for theirs in group
        if not is_viewlet(theirs) and theirs.value
        if (ours := _as_fresh(theirs, filter(is_viewlet, group))) is not None and ours.value
    ]


def speed(ours: float, theirs: float, unit: str) -> float:
    """How many times as fast: of rates, more is better, of times and sizes, less."""
    return ours / theirs if is_rate(unit) else theirs / ours


def by_query(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    queries: dict[str, list[Measurement]] = {}
    for one in measurements:
        queries.setdefault(one.query, []).append(one)
    return queries


def _as_fresh(theirs: Measurement, ours: Iterator[Measurement]) -> Measurement | None:
    """The fastest of ours that is as fresh; if none is just so, one that is fresh after every event."""
    measured = [m for m in ours if m.value and m.unit == theirs.unit]
    measured.sort(key=lambda m: m.value or 0.0, reverse=is_rate(theirs.unit))
    alike = [m for m in measured if m.freshness == theirs.freshness]
    return next(iter(alike or [m for m in measured if m.freshness == EVERY_EVENT]), None)


def _at_the_same_point(ours: Measurement, theirs: Measurement, same: Measurement | None) -> Ratio | None:
    """What was measured over the very same events, if it was; else what each did over all that it took."""
    if same is not None and same.value:
        return Ratio(theirs.query, ours, theirs, same.value, same.reached)
    if not ours.value or not theirs.value:
        return None
    return Ratio(theirs.query, ours, theirs, ours.value / theirs.value)
