"""How long the compiler takes: each of the paper's twelve queries under each strategy.

``python -m bench.compile`` prints CPU milliseconds, the best of several runs, and fails where the default strategy
takes longer than a query may. Every run starts with empty caches, as in a new process.

``first answer``: from CREATE MATERIALIZED VIEW to its first rows, in the Python tier, where the streams are there
already. Each run has a process of its own, which has imported viewlet and collected the garbage of that.

``native``: what the C++ compiler takes for the program, past the cache; NaN where there is none.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import viewlet
from viewlet.compilation import compile
from viewlet.compiler.strategy import STRATEGIES
from viewlet.engines.native.build import build
from viewlet.engines.native.compiled import BRIDGE
from viewlet.engines.native.emit.program import cpp_source
from viewlet.workloads.queries import PAPER_QUERIES

DEFAULT = "optimized"
FIRST = "first answer"
NATIVE = "native"
LIMITS = {DEFAULT: 1.0, FIRST: 0.1, NATIVE: 3.0}  # seconds

Times = dict[str, dict[str, float]]  # query → strategy, FIRST or NATIVE → seconds; NaN: no compiler


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [query for query in options.queries if query not in PAPER_QUERIES]:
        parser.error(f"no query {unknown[0]}: choose from {', '.join(PAPER_QUERIES)}")
    times: Times = {}
    print(f"{'CPU ms':8}" + "".join(f"{name:>14}" for name in (*STRATEGIES, FIRST, NATIVE)) + "  in time")
    for query in options.queries:
        times[query] = {strategy: best_time(query, strategy, options.runs) for strategy in STRATEGIES}
        times[query][FIRST] = min(in_new_process(query) for _ in range(options.runs))
        times[query][NATIVE] = min(compiler_run(query) for _ in range(options.runs))
        row = "".join(f"{1000 * seconds:14.1f}" for seconds in times[query].values())
        print(f"{query:8}{row}  {', '.join(f'{what}: too slow' for what in late(query, times)) or 'yes'}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(report(times, options.runs), indent=2) + "\n", encoding="utf-8")
    return 1 if any(late(query, times) for query in times) else 0


def best_time(query: str, strategy: str, runs: int) -> float:
    return min(run_times(query, strategy, runs))


def run_times(query: str, strategy: str, runs: int) -> list[float]:
    """CPU seconds from SQL to triggers, each run from empty caches."""
    script = PAPER_QUERIES[query].script()
    return [_time(script, strategy) for _ in range(runs)]


def _time(script: str, strategy: str) -> float:
    _forget()
    start = time.process_time()
    compile(script, strategy=strategy)
    return time.process_time() - start


def _forget() -> None:
    """Empty what viewlet remembers between compilations."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.startswith("viewlet."):
            thing.cache_clear()


def in_new_process(query: str) -> float:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(first_answer, (query,))


def first_answer(name: str) -> float:
    query = PAPER_QUERIES[name]
    with viewlet.connect(engine="python", strategy=DEFAULT) as database:
        database.execute(query.schema)
        gc.collect()
        start = time.process_time()
        database.execute(query.sql())
        database.view(query.name).rows()
        return time.process_time() - start


def compiler_run(name: str) -> float:
    """CPU seconds of the C++ compiler, not of the part of the module that is compiled once for all programs."""
    source = cpp_source(compile(PAPER_QUERIES[name].script(), strategy=DEFAULT)) + BRIDGE.format(name="viewlet_bench")
    with empty_cache():
        if build("") is None:  # makes that part
            return math.nan
        start = children_cpu()
        build(source)
        return children_cpu() - start


@contextmanager
def empty_cache() -> Iterator[None]:
    """Of built programs: what is built meanwhile is built in earnest, and forgotten afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="viewlet-") as directory,
        mock.patch.dict(os.environ, {"VIEWLET_CACHE": directory}),
    ):
        yield


def children_cpu() -> float:
    """CPU seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def late(query: str, times: Times) -> list[str]:
    """What took longer than it may."""
    return [what for what, limit in LIMITS.items() if times[query][what] >= limit]


def report(times: Times, runs: int) -> dict[str, object]:
    return {"unit": "CPU seconds", "python": sys.version.split()[0], "runs": runs, "limits": LIMITS, "times": times}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.compile", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="the best of so many runs counts (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the times there, too")
    parser.add_argument("queries", nargs="*", default=list(PAPER_QUERIES), help="default: all twelve")
    return parser


if __name__ == "__main__":
    sys.exit(main())
