"""Events per CPU second on the paper's streams at full size, the generated program beside one written by hand."""

from __future__ import annotations

from dataclasses import dataclass

from bench.engine.answers import answer, check
from bench.engine.triggers import Triggers
from bench.engine.workload import Row, workload
from bench.ordered.growth import Say
from bench.ordered.programs import hand_source, ordered_source

REPETITIONS = 5  # the best counts
LEAST_OF_HAND = 0.3
LEAST_RATE = {"vwap": 2e6, "mst": 5e5, "psp": 2e6, "axf": 1e6, "bsp": 1e6, "q22": 1e6}  # on a quiet machine


@dataclass(frozen=True, slots=True)
class Rates:
    events: int
    native: float
    hand: float

    @property
    def of_hand(self) -> float:
        return self.native / self.hand


def rates(name: str, events: int | None, say: Say) -> Rates:
    """Both programs must be right in the end and a third of the way."""
    w = workload(name, events)
    stops = (len(w.stream) // 3, len(w.stream))
    say(f"{name}, {len(w.stream):,} events: DuckDB's answers")
    right = {stop: answer(w, w.stream.between(0, stop)) for stop in stops}
    say(f"{name}, {len(w.stream):,} events: by hand")
    by_hand = _best(f"{name} by hand", Triggers(hand_source(w), w), right)
    say(f"{name}, {len(w.stream):,} events: native")
    native = _best(f"{name}, the native program,", Triggers(ordered_source(w), w), right)
    return Rates(len(w.stream), len(w.stream) / native, len(w.stream) / by_hand)


def _best(who: str, triggers: Triggers, right: dict[int, list[Row]]) -> float:
    """The least CPU seconds for the whole stream."""
    runs = []
    for _ in range(REPETITIONS):
        with triggers.at_work() as program:
            seconds, start = 0.0, 0
            for stop, rows in right.items():
                seconds += program.take(start, stop)
                check(who, program.rows(), rows)
                start = stop
        runs.append(seconds)
    return min(runs)
