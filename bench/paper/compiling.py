"""What compiling takes: from SQL to triggers under each strategy, and the C++ compiler for each program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.compile import run_times
from bench.results import Measurement
from bench.suite import Say
from viewlet.compiler.strategy import STRATEGIES

EXPERIMENT = "compile"
RUNS = 3


def measure(queries: Sequence[str], cpp: Mapping[tuple[str, str], float], say: Say) -> Iterator[Measurement]:
    """``cpp``: query, contestant ↦ CPU seconds of the C++ compiler, which ran while the programs were built."""
    for query in queries:
        say(f"compile: {query}")
        for strategy in STRATEGIES:
            took = run_times(query, strategy, RUNS)
            noise = 1 - min(took) / max(took)
            note = "SQL to triggers, from empty caches"
            yield _measurement(query, strategy, min(took), note, noise, RUNS)
        for strategy in STRATEGIES:
            if seconds := cpp.get((query, strategy)):
                note = f"triggers to machine code, with the bench's harness, {strategy}"
                yield _measurement(query, f"C++, {strategy}", seconds, note)


def _measurement(
    query: str, contestant: str, seconds: float, note: str, noise: float = 0.0, runs: int = 1
) -> Measurement:
    return Measurement(
        EXPERIMENT, query, contestant, 1000 * seconds, "CPU ms", seconds=seconds, noise=noise, repetitions=runs,
        freshness="", note=note,
    )  # fmt: skip
