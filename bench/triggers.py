"""Bare triggers beside programs by hand and, if one is named, an earlier state: ``python -m bench.triggers``.

    python -m bench.triggers --before ../before     # a checkout of the commit to compare with, e.g. by git worktree

All take the same stream in turns, in one process, the view fresh after every event. The best of several rounds counts,
in CPU seconds of the triggers alone, and every answer is checked. "by hand" is the same algorithm; the sums of the six
queries over inequalities are plain doubles there, which are cheaper and not exact.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import viewlet
from bench.bars import at_least
from bench.engine.answers import answer, check
from bench.engine.triggers import Triggers, declared, generated_source, hand_source, hand_written
from bench.engine.workload import Workload, workload
from bench.options import among
from bench.ordered import programs as ordered
from viewlet.workloads.queries import PAPER_QUERIES

OF_HAND = {name: 0.9 if name in ("bsv", "q3", "q11") else 0.6 for name in PAPER_QUERIES}
OF_BEFORE = dict.fromkeys(PAPER_QUERIES, 0.97) | {"bsv": 2.0, "ssb4": 5.0, "mst": 1.7}
BUILD = """
import sys, viewlet
from bench.engine.triggers import build, driven, generated_source
from viewlet.workloads.queries import PAPER_QUERIES
print(build(driven(generated_source(viewlet.compile(PAPER_QUERIES[sys.argv[1]].script())))))
"""


class Built(Triggers):
    """A program that another checkout has built."""

    def __init__(self, path: Path, w: Workload) -> None:
        self.library = declared(ctypes.CDLL(str(path)))
        self._workload, self._strategy = w, "optimized"


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; events per CPU second of the triggers")
    for name in options.queries:
        w = workload(name, options.events)
        _show(name, _measured(w, _contestants(w, options.before), options.rounds))


def _contestants(w: Workload, before: Path | None) -> dict[str, Triggers]:
    by_hand = hand_source(w.name) if hand_written(w.name).exists() else ordered.hand_source(w)
    contestants = {"now": Triggers(generated_source(viewlet.compile(w.script)), w), "by hand": Triggers(by_hand, w)}
    if before is not None:
        contestants["before"] = Built(_built_there(before, w.name), w)
    return contestants


def _built_there(checkout: Path, name: str) -> Path:
    path = os.pathsep.join([str(checkout.resolve() / "src"), str(checkout.resolve())])
    command = [sys.executable, "-c", BUILD, name]
    environment = os.environ | {"PYTHONPATH": path}
    built = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    return Path(built.stdout.strip())


def _measured(w: Workload, contestants: dict[str, Triggers], rounds: int) -> dict[str, float]:
    right, rates = answer(w, w.stream), dict[str, float]()
    for _ in range(rounds):
        for who, triggers in contestants.items():
            run = triggers.run(w.stream)
            check(f"{w.name} {who}", run.rows, right)
            rates[who] = max(rates.get(who, 0.0), len(w.stream) / run.seconds)
    return rates


def _show(name: str, rates: dict[str, float]) -> None:
    print(f"{name:4} " + ", ".join(f"{who} {rate / 1e6:6.2f} M" for who, rate in rates.items()))
    for who, bars in (("by hand", OF_HAND), ("before", OF_BEFORE)):
        if who in rates:
            ratio = round(rates["now"] / rates[who], 2)
            print(f"     {ratio:5.2f} of {who}{at_least(ratio, bars[name])}", flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.triggers", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=among(PAPER_QUERIES), default=list(PAPER_QUERIES), help="default: all")
    parser.add_argument("--events", type=int, help="length of the stream (default: as in the paper)")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many counts (default: %(default)s)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="compare with the triggers of that one, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
