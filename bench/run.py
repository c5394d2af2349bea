"""Suites of experiments, run one after the other: what they find is shown, kept, and written down whatever happens."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn, TimeElapsedColumn

from bench.engine.answers import WrongAnswerError
from bench.report import write_report
from bench.report.digits import amount, percent
from bench.report.document import WRONG
from bench.report.ratios import is_cut, name_with_freshness
from bench.results import About, Grid, Measurement, Results, Series
from bench.suite import Found, Say, Settings, Suite
from viewlet.cli.bench import UsageError
from viewlet.workloads.queries import PAPER_QUERIES

RESULTS = "results.json"
ALL = "all"
SUITES = ("paper", "peers", "spark")


def measure(name: str, settings: Settings, folder: Path, console: Console) -> int:
    """A suite, or all of them; the exit code. The folder gets results and report, of what there is by then."""
    suites = {one: load(one) for one in (SUITES if name == ALL else (name,))}
    return run(suites, command(name, settings), settings, folder, console)


def load(name: str) -> Suite:
    """Imported when it is wanted: each suite needs packages that the others do not."""
    suite: Suite = import_module(f"bench.{name}.suite").measure
    return suite


def run(suites: Mapping[str, Suite], told: Sequence[str], settings: Settings, folder: Path, console: Console) -> int:
    results = Results(About.now(told))
    try:
        with _kept(results, folder, console), _progress(console) as progress:
            for name, suite in suites.items():
                _run_suite(name, suite, settings, results, progress)
    except WrongAnswerError as wrong:
        _print(console, f"wrong answer: {wrong}", style="bold red")
        return 1
    return 0


def command(name: str, settings: Settings) -> list[str]:
    """What to type to get the same again."""
    words = ["viewlet", "bench", name]
    if settings.queries != Settings().queries:
        words += ["--queries", ",".join(settings.queries)]
    if settings.seconds != Settings().seconds:
        words += ["--seconds", f"{settings.seconds:g}"]
    return [*words, "--full"] if settings.full else words


def chosen_queries(text: str) -> tuple[str, ...]:
    """Names between commas, in the paper's order."""
    names = {name.strip().lower() for name in text.split(",") if name.strip()}
    if unknown := sorted(names - set(PAPER_QUERIES)):
        raise UsageError(f"there is no query {unknown[0]!r}: choose from {', '.join(PAPER_QUERIES)}")
    if not names:
        raise UsageError(f"no query is named: choose from {', '.join(PAPER_QUERIES)}")
    return tuple(name for name in PAPER_QUERIES if name in names)


def read_results(path: Path) -> Results:
    """Of a file, or of the folder that a run has written."""
    file = path / RESULTS if path.is_dir() else path
    try:
        return Results.read(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; name a results.json or its folder") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no file of results: {error}; `viewlet bench` writes such files") from error


def report(paths: Sequence[Path], folder: Path) -> tuple[Path, Path]:
    """Written anew from files of results, which may have measured different things."""
    return write_report([read_results(path) for path in paths], folder)


# -- at work -----------------------------------------------------------------------------------------------------------


def _run_suite(name: str, suite: Suite, settings: Settings, results: Results, progress: Progress) -> None:
    task = progress.add_task(f"{name}: starting", total=None)
    say = _sayer(name, task, progress)
    try:
        for item in suite(settings, say):
            results.add([item])
            if told := line(item):
                _print(progress.console, f"{name}: {told}")
    except WrongAnswerError as wrong:
        results.add([f"{WRONG}: {wrong}. The run ended there."])
        raise
    finally:
        progress.remove_task(task)


def _sayer(name: str, task: TaskID, progress: Progress) -> Say:
    """On a terminal, the line that moves; elsewhere a line for each, since whoever reads a log may want to know
    where it stands."""

    def say(what: str) -> None:
        if progress.console.is_terminal:
            progress.update(task, description=f"{name}: {what}")
        else:
            _print(progress.console, f"{name}: {what} …")

    return say


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """Drawn once a second: CPU seconds of this process are counted in some experiments."""
    columns = (TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown, refresh_per_second=1) as progress:
        yield progress


@contextmanager
def _kept(results: Results, folder: Path, console: Console) -> Iterator[None]:
    """However it ends, by an error or by Ctrl-C, what was found is written down."""
    started = time.monotonic()
    try:
        yield
    finally:
        took, load = round(time.monotonic() - started, 1), round(os.getloadavg()[0], 2)
        results.about = dataclasses.replace(results.about, seconds=took, load_after=load)
        results.write(folder / RESULTS)
        html, _ = write_report([results], folder)
        _print(console, f"{took / 60:.1f} minutes; the report: {html}")


def _print(console: Console, text: str, style: str = "") -> None:
    """As it is: names and messages of others may look like markup."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def line(item: Found) -> str:
    """What was found, for a person who waits; curves are for the report."""
    match item:
        case Measurement():
            return f"{item.experiment}, {item.query}, {name_with_freshness(item)}: {_value(item)}"
        case Grid():
            return f"{item.experiment}: {item.title}"
        case Series():
            return ""
        case str():
            return f"note: {item}"


def _value(measurement: Measurement) -> str:
    if measurement.outcome != "measured":
        return f"{measurement.outcome}: {measurement.note}"
    told = [f"{amount(measurement.value, measurement.unit)} {measurement.unit}"]
    told += [f"noise {percent(measurement.noise)}"] * (measurement.repetitions > 1)
    told += [f"stopped at {percent(measurement.reached)} of the stream"] * is_cut(measurement)
    return ", ".join(told)
