"""What ordered access paths are worth: ``python -m bench.ordered``.

Measures how the time per event grows with the book, beside the paper's own strategy, and the rates on the paper's
streams, beside programs by hand. A wrong answer or a missed limit ends in exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench.engine.answers import WrongAnswerError
from bench.options import among, numbers
from bench.ordered import report
from bench.ordered.growth import growth
from bench.ordered.plot import plot, require_matplotlib
from bench.ordered.rates import LEAST_RATE, rates

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
PARTS = ("growth", "rates")


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.plot is not None:
        require_matplotlib()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        kept = [_growth(options, progress, console)] if "growth" in options.parts else []
        kept += [_rates(options, progress, console)] if "rates" in options.parts else []
    except WrongAnswerError as wrong:
        progress.print(f"[bold red]wrong answer:[/] {wrong}", highlight=False)
        return 1
    return 0 if all(kept) else 1


def _growth(options: argparse.Namespace, progress: Console, console: Console) -> bool:
    curves = {}
    with progress.status("") as status:
        for name in options.queries:
            curves[name] = growth(name, options.sizes, options.seconds, status.update)
            progress.print(report.growth_line(name, curves[name]), highlight=False, soft_wrap=True)
    report.show_growth(curves, console)
    if options.plot is not None:
        plot(curves, options.plot)
    return all(map(report.is_flat, curves.values()))


def _rates(options: argparse.Namespace, progress: Console, console: Console) -> bool:
    measured = {}
    with progress.status("") as status:
        for name in options.queries:
            measured[name] = rates(name, options.events, status.update)
            progress.print(report.rates_line(name, measured[name]), highlight=False, soft_wrap=True)
    report.show_rates(measured, console)
    return all(report.is_fast(name, r) for name, r in measured.items())


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.ordered", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=among(LEAST_RATE), default=list(LEAST_RATE), help="default: %(default)s")
    parser.add_argument("--parts", type=among(PARTS), default=list(PARTS), help="default: %(default)s")
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="live rows (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each program and size")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth there: .svg, .png, .pdf")
    parser.add_argument("--events", type=int, help="length of the rates' stream (default: as in the paper)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
