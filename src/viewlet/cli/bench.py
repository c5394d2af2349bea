"""``viewlet bench``: the experiments, their report, and two runs side by side.

The benchmarks stand beside ``src`` in a checkout. An installed package has none and does not list the command.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

import viewlet
from viewlet.errors import Error

USAGE = 2
OURS = ("bench", "viewlet")  # whose modules are missing only by mistake
INTERRUPTED = 130  # as shells have it
CHECKOUT = Path(viewlet.__file__).parents[2]
WHOLE_RUNS = Path("bench-results")
EXAMPLES = """\
[bold]Examples[/bold]

viewlet bench all [dim]# everything, in about 20 minutes on two quiet cores; what make bench does[/dim]

viewlet bench paper --queries q3,vwap --seconds 0.5 [dim]# two queries, in a minute or two[/dim]

viewlet bench report bench-results/*/results.json --out report [dim]# one report of several runs[/dim]

viewlet bench compare before after --fail [dim]# exit code 1 if something got slower beyond the noise of both[/dim]
"""


class UsageError(Error):
    """What was asked for is not there: the benchmarks, a query, a file of results."""


bench = typer.Typer(
    rich_markup_mode="rich",
    epilog=EXAMPLES,
    help="Measure viewlet on this machine: the paper's experiments, peers, Spark. Every answer is checked by DuckDB; "
    "a wrong one ends the run with exit code 1. Results, a report in HTML and one in Markdown are written to a folder.",
)
SUITES = {
    "paper": "Figures 3 and 5 to 11 of the paper, latency, ordered access paths, compile times, boundary costs.",
    "peers": "DuckDB, SQLite, PostgreSQL, chDB, Pathway, Flink and Spark Structured Streaming on the same events.",
    "spark": "viewlet on Spark: throughput, and what a micro-batch costs.",
    "all": "All of them.",
}

OutOption = Annotated[
    Path | None,
    typer.Option(show_default=f"{WHOLE_RUNS}/<time>", help="The folder for results.json, report.html and report.md."),
]


def _measuring(suite: str) -> Callable[..., None]:
    """The four commands that measure take the same options."""

    def command(
        queries: Annotated[
            str | None, typer.Option(show_default="all twelve", help="Names of the paper's queries between commas.")
        ] = None,
        seconds: Annotated[
            float | None,
            typer.Option(min=0.01, show_default="1", help="CPU seconds for what is too slow for the whole stream."),
        ] = None,
        full: Annotated[bool, typer.Option("--full", help="Whole streams, and Spark at length: hours.")] = False,
        out: OutOption = None,
    ) -> None:
        with _errors_as_messages():
            run, settings_of = _part("run"), _part("suite").Settings
            given = {"queries": queries and run.chosen_queries(queries), "seconds": seconds}
            settings = settings_of(full=full, **{name: value for name, value in given.items() if value is not None})
            code = run.measure(suite, settings, out or _new_folder(), Console(stderr=True))
        raise typer.Exit(code)

    return command


for name, says in SUITES.items():
    bench.command(name, help=says)(_measuring(name))


@bench.command("report")
def report_command(
    results: Annotated[list[Path], typer.Argument(help="Files of results, or the folders that runs have written.")],
    out: Annotated[Path, typer.Option(help="The folder for report.html and report.md.")] = Path("."),
) -> None:
    """Write the report again, of one run or of several that measured different things."""
    with _errors_as_messages():
        for path in _part("run").report(results, out):
            typer.echo(path)


@bench.command("compare")
def compare_command(
    before: Annotated[Path, typer.Argument(help="A file of results, or the folder that a run has written.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit code 1 if something got slower, or is refused now.")
    ] = False,
    threshold: Annotated[
        float, typer.Option(min=0.0, help="What counts as a change, beyond the noise of both runs: 0.1 is 10 %.")
    ] = 0.1,
) -> None:
    """Two runs side by side, with the noise of both; what changed beyond it is marked."""
    with _errors_as_messages():
        compare, read = _part("compare"), _part("run").read_results
        old, new = read(before), read(after)
        changes = compare.compare(old, new, threshold)
        compare.show(old, new, changes, Console(width=None if sys.stdout.isatty() else 160))
    if fail and compare.is_worse(changes):
        raise typer.Exit(1)


def is_checkout() -> bool:
    """Whether the benchmarks are there."""
    return (CHECKOUT / "bench" / "run.py").exists()


def _part(name: str) -> ModuleType:
    """A module of the benchmarks."""
    if not is_checkout():
        raise UsageError(
            "the benchmarks are not part of the installed package: clone viewlet's repository, and there run `make "
            "bench`, or `viewlet bench` after `make setup`"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    return import_module(f"bench.{name}")


def _new_folder() -> Path:
    return WHOLE_RUNS / dt.datetime.now().strftime("%Y-%m-%d-%H%M%S")


@contextmanager
def _errors_as_messages() -> Iterator[None]:
    """What the user can put right, in its own words; and Ctrl-C, after which a run has kept what it found."""
    try:
        yield
    except Error as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(USAGE if isinstance(error, UsageError) else 1) from error
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in OURS:
            raise
        typer.echo(f"error: the benchmarks need {missing.name}: run `make setup`", err=True)
        raise typer.Exit(USAGE) from missing
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None
