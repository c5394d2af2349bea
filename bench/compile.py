"""How long the compiler takes: each of the paper's twelve queries under each strategy.

``python -m bench.compile`` prints CPU milliseconds, the best of several runs, and fails where the default strategy
takes longer than a query may. Every run starts with empty caches, as in a new process.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import sys
import time
from pathlib import Path

from viewlet.compilation import compile
from viewlet.compiler.strategy import STRATEGIES
from viewlet.workloads.queries import PAPER_QUERIES

DEFAULT = "optimized"
LIMIT = 1.0  # seconds
LIMITS = {"ssb4": 2.0}  # seven relations joined

Times = dict[str, dict[str, float]]  # query → strategy → seconds


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [query for query in options.queries if query not in PAPER_QUERIES]:
        parser.error(f"no query {unknown[0]}: choose from {', '.join(PAPER_QUERIES)}")
    times: Times = {}
    print(f"{'CPU ms':8}" + "".join(f"{name:>12}" for name in STRATEGIES) + f"  {DEFAULT} within")
    for query in options.queries:
        times[query] = {strategy: best_time(query, strategy, options.runs) for strategy in STRATEGIES}
        row = "".join(f"{1000 * seconds:12.1f}" for seconds in times[query].values())
        print(f"{query:8}{row}  {limit(query):.0f} s: {'yes' if is_in_time(query, times) else 'NO'}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(report(times, options.runs), indent=2) + "\n", encoding="utf-8")
    return 0 if all(is_in_time(query, times) for query in times) else 1


def best_time(query: str, strategy: str, runs: int) -> float:
    script = PAPER_QUERIES[query].script()
    return min(_time(script, strategy) for _ in range(runs))


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


def limit(query: str) -> float:
    return LIMITS.get(query, LIMIT)


def is_in_time(query: str, times: Times) -> bool:
    return times[query][DEFAULT] < limit(query)


def report(times: Times, runs: int) -> dict[str, object]:
    limits = {query: limit(query) for query in times}
    return {"unit": "CPU seconds", "python": sys.version.split()[0], "runs": runs, "limits": limits, "times": times}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.compile", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="the best of so many runs counts (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the times there, too")
    parser.add_argument("queries", nargs="*", default=list(PAPER_QUERIES), help="default: all twelve")
    return parser


if __name__ == "__main__":
    sys.exit(main())
