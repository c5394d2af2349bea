"""What keeping views fresh on Spark costs: ``python -m bench.spark``.

Every measurement has a process and a Spark of its own, and ends with an answer that DuckDB checks. A wrong one, or a
limit that is missed, ends in exit code 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pyspark
from rich.console import Console

from bench.engine.answers import WrongAnswerError
from bench.options import among, numbers
from bench.ordered.plot import require_matplotlib
from bench.spark import report
from bench.spark.latency import latency
from bench.spark.overhead import overhead
from bench.spark.plot import plot
from bench.spark.recompute import STATES, recompute
from bench.spark.run import Stretch
from bench.spark.scale import scale
from bench.spark.throughput import (
    CELLS,
    FIRST,
    LARGER,
    LARGER_ON_ONE_CORE,
    THROUGHPUT,
    Setup,
    Stream,
    side_by_side,
    stream_of,
    throughput,
)

QUERIES = ("bsv", "q3")
GROUPS = (100_000, 1_000_000, 10_000_000)
FEWER = 4  # times, where batches are larger


class Bench:
    """The parts of a run; each says whether its limits were kept."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.progress = Console(stderr=True)
        self.console = Console(width=None if sys.stdout.isatty() else 120)

    def throughput(self) -> bool:
        warm, batches = self.options.warm, self.options.batches
        rates: dict[tuple[str, Setup], Stretch] = {}
        for stream in self._streams(1, warm + batches):
            rates |= self._rates(stream, THROUGHPUT, warm, batches)
        report.show_throughput(rates, warm, self.console)
        return all(report.is_fast(setup, stretch) for (_, setup), stretch in rates.items())

    def cells(self) -> bool:
        warm, batches = -(-self.options.warm // FEWER), -(-self.options.batches // FEWER)
        rates: dict[tuple[str, Setup], Stretch] = {}
        apart: dict[str, report.Pair] = {}
        for stream in self._streams(LARGER, warm + batches):
            rates |= self._rates(stream, CELLS, warm, batches)
            with self.progress.status(f"{stream.name}: twice side by side, a core each"):
                apart[stream.name] = side_by_side(stream, LARGER_ON_ONE_CORE, warm, batches)
            for one in apart[stream.name]:
                self._say(f"{stream.name}, {LARGER_ON_ONE_CORE.title}, another beside it", one)
        report.show_cells(rates, apart, self.console)
        return report.scales_out(rates)

    def _streams(self, many: int, batches: int) -> Iterator[Stream]:
        """Of each query so many micro-batches of ``many`` files."""
        for name in self.options.queries:
            with self._scratch() as folder:
                with self.progress.status(f"{name}: writing events"):
                    stream = stream_of(name, batches * many, folder, FIRST * many)
                yield stream

    def _rates(self, stream: Stream, setups: tuple[Setup, ...], warm: int, batches: int) -> report.Rates:
        rates = {}
        for setup in setups:
            with self.progress.status(f"{stream.name}: {setup.title}, {warm} + {batches} micro-batches"):
                rates[stream.name, setup] = throughput(stream, setup, warm, batches)
            self._say(f"{stream.name}, {setup.title}", rates[stream.name, setup])
        return rates

    def overhead(self) -> bool:
        overheads = {}
        for name in self.options.queries:
            with self.progress.status(f"{name}: micro-batches of few rows"):
                overheads[name] = overhead(name, FIRST + self.options.warm, self.options.batches, self.folder)
            self._say(f"{name}, few rows", overheads[name].kept)
        report.show_overhead(overheads, self.console)
        return all(map(report.is_light, overheads.values()))

    def latency(self) -> bool:
        latencies = {}
        for name in self.options.queries:
            title = f"{name}: micro-batches, in turns with a query that does nothing"
            with self.progress.status(title), self._scratch() as folder:
                latencies[name] = latency(name, self.options.warm, self.options.batches, folder)
            self._say(f"{name}, in turns", latencies[name].kept)
        report.show_latency(latencies, self.console)
        return all(map(report.is_close, latencies.values()))

    def scale(self) -> bool:
        sizes = []
        for groups in sorted(self.options.groups):
            with self.progress.status(f"{groups:,} groups of state"):
                sizes.append(scale(groups, self.options.warm, self.options.batches, self.folder))
            self._say(f"{groups:,} groups", sizes[-1].stretch)
        report.show_scale(sizes, self.console)
        if self.options.plot is not None:
            plot(sizes, self.options.plot)
        return report.is_flat(sizes)

    def recompute(self) -> bool:
        recomputed = {}
        for name, state in product(self.options.queries, self.options.states):
            title = f"{name}, {state:,} rows of state"
            with self.progress.status(f"{title}: maintained, and run again as Spark SQL"), self._scratch() as folder:
                recomputed[name, state] = recompute(name, state, self.options.warm, self.options.batches, folder)
            self._say(title, recomputed[name, state].kept)
        report.show_recompute(recomputed, self.console)
        return all(map(report.is_worth_it, recomputed.values()))

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield Path(folder)

    def _say(self, title: str, stretch: Stretch) -> None:
        self.progress.print(f"{title}: {report.line(stretch)}", highlight=False, soft_wrap=True)


PARTS: dict[str, Callable[[Bench], bool]] = {
    "throughput": Bench.throughput,
    "overhead": Bench.overhead,
    "latency": Bench.latency,
    "scale": Bench.scale,
    "recompute": Bench.recompute,
    "cells": Bench.cells,
}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.plot is not None:
        require_matplotlib()
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as folder:
        bench = Bench(options, Path(folder))
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        where = f"{os.cpu_count()} cores, load {load}, Python {platform.python_version()}, Spark {pyspark.__version__}"
        bench.console.print(where, highlight=False)
        try:
            kept = [PARTS[part](bench) for part in options.parts]
        except WrongAnswerError as wrong:
            bench.progress.print(f"[bold red]wrong answer:[/] {wrong}", highlight=False)
            return 1
    return 0 if all(kept) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=among(PARTS), default=list(PARTS), help="default: %(default)s")
    parser.add_argument("--queries", type=among(QUERIES), default=list(QUERIES), help="default: %(default)s")
    parser.add_argument("--warm", type=int, default=60, help="micro-batches before the measured ones")
    parser.add_argument("--batches", type=int, default=25, help="micro-batches that are measured")
    parser.add_argument("--groups", type=numbers, default=list(GROUPS), help="of the view (default: %(default)s)")
    parser.add_argument("--states", type=numbers, default=list(STATES), help="rows of tables (default: %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the scale of cost there: .svg, .png, .pdf")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
