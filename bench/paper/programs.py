"""The generated programs: twelve queries under five strategies, with ordered access paths and with the paper's scans.

C++ takes seconds for each, so all are built ahead on every core; programs with the same text are built and run once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import viewlet
from bench.compile import children_cpu
from bench.engine.triggers import driven, generated_source
from viewlet.compiler.strategy import STRATEGIES
from viewlet.engines.native.build import build
from viewlet.errors import Error
from viewlet.workloads.queries import PAPER_QUERIES

SCANS = "-scans"
CONTESTANTS = (*STRATEGIES, *(f"{strategy}{SCANS}" for strategy in STRATEGIES))


@dataclass(frozen=True, slots=True)
class Generated:
    """One program; ``names`` are all contestants of its query that come out as this very text."""

    query: str
    names: tuple[str, ...]
    source: str

    @property
    def strategy(self) -> str:
        return self.names[0].removesuffix(SCANS)


@dataclass(frozen=True, slots=True)
class Built:
    """CPU seconds of the C++ compiler; 0 where the cache had the program."""

    program: Generated
    seconds: float


def generated(query: str, contestants: Sequence[str] = CONTESTANTS) -> list[Generated]:
    """The programs of a query, each text once."""
    names: dict[str, list[str]] = {}
    for contestant in contestants:
        strategy, ordered = contestant.removesuffix(SCANS), not contestant.endswith(SCANS)
        program = viewlet.compile(PAPER_QUERIES[query].script(), strategy=strategy, ordered=ordered)
        names.setdefault(generated_source(program), []).append(contestant)
    return [Generated(query, tuple(same), source) for source, same in names.items()]


def built(programs: Sequence[Generated]) -> Iterator[Built]:
    """As they are ready; the longest first, so that no core waits for it at the end."""
    build("")  # the half that is the same for all: else every core would begin with it
    order = sorted(programs, key=lambda program: len(program.source), reverse=True)
    with ProcessPoolExecutor(_cores(), get_context("spawn")) as pool:
        for ready in as_completed([pool.submit(_build, program) for program in order]):
            yield ready.result()


def _build(program: Generated) -> Built:
    before = children_cpu()
    if build(driven(program.source)) is None:
        raise Error("the paper's experiments need a C++ compiler: install g++ or clang++, or pip install ziglang")
    return Built(program, children_cpu() - before)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
