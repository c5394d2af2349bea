"""How fast each engine keeps the paper's views fresh, beside a program written by hand: ``python -m bench.engine``.

Every contestant's answer is checked against DuckDB's; a wrong one ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from bench.engine import endurance, report
from bench.engine.answers import WrongAnswerError, checksum
from bench.engine.contestants import CONTESTANTS, Limits, Measured, SkippedError
from bench.engine.report import Results
from bench.engine.workload import workload
from bench.options import among
from viewlet.workloads.queries import PAPER_QUERIES

DEFAULT = ("bsv", "q3", "q11", "q17", "q18", "ssb4")


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    progress = Console(stderr=True)
    try:
        if options.churn or options.doubles:
            return _endure(options, progress)
        results = {name: _race(name, options, progress) for name in options.queries}
    except WrongAnswerError as wrong:
        progress.print(f"[bold red]wrong answer:[/] {wrong}", highlight=False)
        return 1
    report.show(results, Console(width=None if sys.stdout.isatty() else 120))
    if options.json is not None:
        options.json.write_text(json.dumps(_json(results), indent=2) + "\n", encoding="utf-8")
    return 0


def _race(name: str, options: argparse.Namespace, progress: Console) -> Results:
    w = workload(name, options.events)
    limits = Limits(options.repetitions, options.seconds)
    results: Results = {}
    for who in options.contestants:
        with progress.status(f"{name}: {who}, {len(w.stream):,} events"):
            try:
                results[who] = CONTESTANTS[who](w, limits)
            except SkippedError as skipped:
                results[who] = str(skipped)
            except WrongAnswerError as wrong:
                raise WrongAnswerError(f"{name}, {who}: {wrong}") from wrong
        progress.print(f"{name:5} {who:12} {report.line(results[who])}", highlight=False)
    return results


def _endure(options: argparse.Namespace, progress: Console) -> int:
    try:
        if options.churn:
            endurance.churn(options.queries, options.events or endurance.CHURN_EVENTS, progress)
        if options.doubles:
            endurance.doubles(options.events or endurance.DOUBLES_EVENTS, progress)
    except SkippedError as skipped:
        progress.print(f"skipped: {skipped}", highlight=False)
    return 0


def _json(results: dict[str, Results]) -> dict[str, object]:
    return {
        "unit": "events per CPU second",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "queries": {name: {who: _entry(m) for who, m in row.items()} for name, row in results.items()},
    }


def _entry(measured: Measured | str) -> dict[str, object]:
    if isinstance(measured, str):
        return {"skipped": measured}
    kept = [asdict(k) for k in measured.kept]
    rows = {"rows": len(measured.rows), "checksum": checksum(measured.rows)}
    return {"events": measured.events, "seconds": measured.seconds, "rate": measured.rate, "view": rows, "maps": kept}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=among(PAPER_QUERIES), default=list(DEFAULT), help="default: %(default)s")
    parser.add_argument("--contestants", type=among(CONTESTANTS), default=list(CONTESTANTS), help="default: all")
    parser.add_argument("--events", type=int, help="length of the stream (default: as in the paper)")
    parser.add_argument("--repetitions", type=int, default=5, help="the best of so many runs of the triggers counts")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each contestant that is too slow for them all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--churn", action="store_true", help="instead: does memory grow over 50 million events?")
    parser.add_argument("--doubles", action="store_true", help="instead: do 10 million doubles leave no residue?")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
