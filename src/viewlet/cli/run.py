"""``viewlet run``: a job at work, its views live in the terminal, and proven right at the end if asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from viewlet.cli.options import (
    DialectOption,
    StrategyOption,
    errors_as_messages,
    read_job,
)
from viewlet.jobs.run import Options, Progress, Run, start, wrong_views
from viewlet.jobs.verify import referee

SHOWN_ROWS = 3
LOOK_EVERY = 2.0  # seconds: on Spark, looking at a view is a query of its own
INTERRUPTED = 130  # as shells have it
EXAMPLES = """\
[bold]Examples[/bold]

viewlet run [dim]# the order book that comes with viewlet, on the engine in this process[/dim]

viewlet run --engine spark --verify [dim]# the same on Spark inside this process, checked by DuckDB at the end[/dim]

viewlet run job.sql --engine spark --master spark://host:7077 --checkpoint /shared/job [dim]# on a cluster[/dim]
"""


class Engine(str, Enum):
    native = "native"
    spark = "spark"


def run_command(
    job: Annotated[
        Path | None,
        typer.Argument(
            metavar="[JOB.SQL]",
            show_default=False,
            help="A script whose streams and tables say WITH (connector = …): parquet, csv, orderbook or tpch; - reads "
            "it from stdin. Without one, the order book that comes with viewlet.",
        ),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="native: in this process. spark: through PySpark.")] = Engine.native,
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs: local[*] unless told, spark://…, sc://… (Connect).")
    ] = None,
    cells: Annotated[int | None, typer.Option(min=1, help="How many shares Spark cuts the work into.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Where Spark keeps what a restart goes on from; without one, it starts again.")
    ] = None,
    strategy: StrategyOption = "optimized",
    dialect: DialectOption = "sql",
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the views with DuckDB's answers at the end.")
    ] = False,
) -> None:
    """Keep the views of a job fresh until its sources end: rates, latency and the first rows of each view."""
    if engine is Engine.native and (master or cells or checkpoint):
        raise typer.BadParameter("--master, --cells and --checkpoint are for --engine spark")
    script = read_job(job) if job is not None else files("viewlet.workloads").joinpath("orderbook.sql").read_text()
    options = Options(strategy, dialect, master, cells, checkpoint)
    console = Console()
    with errors_as_messages(), _stopped_by_the_user():
        if verify:
            referee()  # a job may take hours: whether it can be verified is known before
        with console.status("starting") if console.is_terminal else nullcontext():
            run = start(script, engine.value, options)
        with closing(run):
            _Display(run, console).show()
            if verify:
                _verify(wrong_views(run, script, dialect))


@contextmanager
def _stopped_by_the_user() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _verify(wrong: dict[str, str]) -> None:
    for view, what in wrong.items():
        typer.echo(f"different: {view} {what}", err=True)
    if wrong:
        raise typer.Exit(1)
    typer.echo("verified: every view equals its query, evaluated by DuckDB over the rows that are left")


@dataclass
class _Display:
    run: Run
    console: Console
    started: float = field(default_factory=time.monotonic)
    looked: float = 0.0
    first_rows: dict[str, str] = field(default_factory=dict)

    def show(self) -> None:
        if self.console.is_terminal:
            self._live()
        else:
            for progress in self.run.batches():
                typer.echo(self._line(progress))
        for view in self.run.views:
            typer.echo(f"{view}: {self._first_rows(view)}")

    def _live(self) -> None:
        with Live(console=self.console, auto_refresh=False, transient=True) as screen:
            for progress in self.run.batches():
                if time.monotonic() - self.looked >= LOOK_EVERY:
                    self.first_rows = {view: self._first_rows(view) for view in self.run.views}
                    self.looked = time.monotonic()
                screen.update(Group(self._table(), Text(self._line(progress))), refresh=True)

    def _table(self) -> Table:
        table = Table("view", "fresh rows")
        for view, rows in self.first_rows.items():
            table.add_row(view, rows)
        return table

    def _first_rows(self, view: str) -> str:
        rows = self.run.rows(view, SHOWN_ROWS + 1)
        shown = " | ".join(" ".join(map(_value, row)) for row in rows[:SHOWN_ROWS])
        return f"{shown or 'empty'}{' | …' * (len(rows) > SHOWN_ROWS)}"

    def _line(self, progress: Progress) -> str:
        rate = progress.rows / max(time.monotonic() - self.started, 1e-9)
        parts = [
            f"batch {progress.batches}/{progress.of}",
            f"{progress.rows:,} rows read",
            f"{rate:,.0f} rows/s",
            f"last batch {1000 * progress.seconds:,.0f} ms",
            progress.cells and f"{progress.cells} cells",
            progress.state_bytes and f"{progress.state_bytes / 1e6:,.1f} MB of state",
            progress.engine,
        ]
        return "  ".join(str(part) for part in parts if part)


def _value(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
