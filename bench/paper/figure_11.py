"""Figure 11: do the rates of the TPC-H queries stay as the database grows?

As in the paper the customers, parts, suppliers and partsupps of a scale factor come first, as part of the stream, and
stay; about 30 thousand orders are there at a time. One rate is of the whole stream, one of what follows them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.engine.answers import answer, check
from bench.engine.triggers import Triggers
from bench.engine.workload import SEED, Row, Workload
from bench.paper.printed import CONSTANT_WITH_SCALE
from bench.paper.programs import generated
from bench.report.digits import scaled
from bench.results import Measurement, Series
from bench.suite import Found, Say
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import PAPER_QUERIES, TPCH

EXPERIMENT = "figure-11"
SCALES = (0.1, 0.5, 1.0, 5.0, 10.0)
FIRST_ROWS = 1_160_000  # of the four relations that come first, for a scale factor of 1
EVENTS = 600_000  # of orders and lineitems after them
ALL_EVENTS = 15_000_000  # for a scale factor of 1: each of DBGEN's orders and lineitems comes, and most go
BYTES = 200  # of memory for an event at the most: while it is made, as Arrow, and decoded
REPETITIONS, LARGE = 2, 5.0  # once from this scale factor on: the streams are long
ROUGHLY = 2.0  # times: rates that differ by no more are roughly constant
WHOLE, STEADY = "whole stream", "steady state"


@dataclass(frozen=True, slots=True)
class Point:
    """One query at one scale factor, over one part of its stream; the maps' megabytes are of the end."""

    scale: float
    part: str
    megabytes: float
    measured: Measurement

    @property
    def rate(self) -> float:
        assert self.measured.value is not None
        return self.measured.value


def measure(queries: Sequence[str], full: bool, say: Say) -> Iterator[Found]:
    chosen = [name for name in queries if PAPER_QUERIES[name].schema == TPCH]
    curves: dict[tuple[str, str], list[Point]] = {}
    for scale in SCALES if chosen else ():
        wanted, memory = int(ALL_EVENTS * scale) if full else EVENTS, _memory()
        events = as_many_as_fit(scale, wanted, memory)
        yield from shortened(scale, wanted, events, memory)
        if events is None:
            continue
        say(f"figure 11: a stream of {events:,} events at scale factor {scale:g}")
        stream = bulk.tpch(SEED, events, scale=scale)
        for name in chosen:
            say(f"figure 11: {name} at scale factor {scale:g}")
            for point in measured(name, scale, stream):
                curves.setdefault((name, point.part), []).append(point)
                yield point.measured
    for (name, part), curve in curves.items():
        rates = tuple((point.scale, point.rate) for point in curve)
        yield Series(EXPERIMENT, name, part, "scale factor", "events/CPU s", rates)
        yield from deviation(name, curve)


def as_many_as_fit(scale: float, wanted: int, memory: int) -> int | None:
    """The rows that come first, and as many of the events after them as memory allows; None: too few."""
    first = int(FIRST_ROWS * scale)
    events = min(first + wanted, memory // BYTES)
    return events if events >= first + EVENTS else None


def shortened(scale: float, wanted: int, events: int | None, memory: int) -> Iterator[str]:
    """What the report says of a stream that memory cut short."""
    whole, free = int(FIRST_ROWS * scale) + wanted, f"{memory / 1e9:.1f} GB of memory were free."
    if events is None:
        yield f"Figure 11: scale factor {scale:g} was left out: {free}"
    elif events < whole:
        yield f"Figure 11: scale factor {scale:g} has {events:,} events, not all {whole:,}: {free}"


def measured(name: str, scale: float, stream: BulkStream) -> Iterator[Point]:
    """Q11 reads nothing that ever leaves, so all of its stream is the beginning."""
    query = PAPER_QUERIES[name]
    mine = stream.only(query.relations)
    leaving = np.flatnonzero(mine.ops < 0)
    w = Workload(query, mine, warm=int(leaving[0]) if len(leaving) else len(mine))
    (program,) = generated(name, ("optimized",))
    right = answer(w, mine)
    triggers = Triggers(program.source, w)
    runs = [_run(w, triggers, right) for _ in range(REPETITIONS if scale < LARGE else 1)]
    megabytes = runs[0][2] / 1e6
    wholes, steadies = [first + then for first, then, _ in runs], [then for _, then, _ in runs]
    for part, events, took in ((WHOLE, len(mine), wholes), (STEADY, len(mine) - w.warm, steadies)):
        if events:
            at_scale = Measurement(
                EXPERIMENT,
                name,
                f"SF {scale:g}, {part}",
                events / min(took),
                events=events,
                seconds=min(took),
                noise=1 - min(took) / max(took),
                repetitions=len(runs),
                rows_checked=len(right),
                note=f"optimized; {megabytes:.1f} MB of maps at the end",
            )
            yield Point(scale, part, megabytes, at_scale)


def _run(w: Workload, triggers: Triggers, right: list[Row]) -> tuple[float, float, int]:
    """CPU seconds to the steady state and in it, and the bytes of all maps."""
    with triggers.at_work() as program:
        first, then = program.take(0, w.warm), program.take(w.warm, len(w.stream))
        check(f"{w.name}, optimized, {len(w.stream):,} events,", program.rows(), right)
        return first, then, sum(kept.bytes for kept in program.kept())


def deviation(name: str, curve: Sequence[Point]) -> Iterator[str]:
    """Where §6.2 is not borne out: rates are roughly constant but for Q22, of which the whole stream gets slower."""
    rates, low, high = [point.rate for point in curve], curve[0], curve[-1]
    if len(curve) < 2:
        return
    told = (
        f"Figure 11, {name.upper()}, {low.part}: {scaled(low.rate)} events per CPU second at scale factor "
        f"{low.scale:g}, {scaled(high.rate)} at {high.scale:g}. The paper, {CONSTANT_WITH_SCALE}"
    )
    constant = max(rates) <= ROUGHLY * min(rates)
    if name == "q22" and low.part == WHOLE and constant:
        yield f"{told} Here Q22 is none: a customer comes without a scan over all others (experiment ordered, q22)."
    elif name != "q22" and not constant:
        yield f"{told} Meanwhile the program's maps grew from {low.megabytes:.1f} to {high.megabytes:.1f} MB."


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
