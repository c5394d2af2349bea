"""``viewlet run``: a job at work, its views live in the terminal, and proven right at the end if asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from viewlet.cli.options import (
    EXIT_CODES,
    INTERRUPTED,
    STDIN,
    WRONG,
    DialectOption,
    StrategyOption,
    errors_as_messages,
    read_job,
    stopping_after_the_batch,
)
from viewlet.cli.screen import Screen
from viewlet.jobs.kept import KeptRun
from viewlet.jobs.results import Format, json_lines, save
from viewlet.jobs.run import Options, Run, start, wrong_views
from viewlet.jobs.verify import referee

EXAMPLES = f"""\
{EXIT_CODES}

[bold]Examples[/bold]

viewlet run [dim]# the order book that comes with viewlet, on the engine in this process[/dim]

viewlet run --engine spark --verify [dim]# the same on Spark inside this process, checked by DuckDB at the end[/dim]

viewlet run job.sql --engine spark --master spark://host:7077 --checkpoint /shared/job [dim]# on a cluster[/dim]

viewlet run job.sql --out results/ [dim]# results/VIEW.parquet for each view[/dim]

viewlet run job.sql --db data/ --watch [dim]# reads files as they grow; Ctrl-C, and the same command goes on[/dim]

viewlet run job.sql --json | jq .row [dim]# for pipes[/dim]
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
    out: Annotated[Path | None, typer.Option(help="A directory for the rows of each view, a file each.")] = None,
    format: Annotated[Format, typer.Option(help="Of the files in --out.")] = Format.parquet,
    json: Annotated[
        bool, typer.Option("--json", help="Print each row as a line of JSON, and nothing else on stdout.")
    ] = False,
    db: Annotated[
        Path | None, typer.Option(help="A directory that keeps streams and views; the next run goes on from there.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Read on as files grow and arrive, until Ctrl-C.")] = False,
) -> None:
    """Keep the views of a job fresh until its sources end: rates, latency and the first rows of each view."""
    if engine is Engine.native and (master or cells or checkpoint):
        raise typer.BadParameter("--master, --cells and --checkpoint are for --engine spark")
    if engine is Engine.spark and (db or watch):
        raise typer.BadParameter("--db and --watch are for --engine native; Spark goes on from its --checkpoint")
    script = read_job(job) if job is not None else files("viewlet.workloads").joinpath("orderbook.sql").read_text()
    options = Options(strategy, dialect, master, cells, checkpoint)

    def begin() -> Run:
        return KeptRun(script, options, db, watch) if db or watch else start(script, engine.value, options)

    title = "order book" if job is None else "stdin" if job == STDIN else job.name
    starting = "compiling" if engine is Engine.native else "starting Spark"
    wanted = _Wanted(title, starting, out, format, json, verify, "; the same command goes on from there" if db else "")
    with errors_as_messages(), _stopped_by_the_user():
        if verify:
            referee()  # a job may take hours: whether it can be verified is known before
        _run(begin, wanted, lambda run: wrong_views(run, script, dialect))


@dataclass(frozen=True)
class _Wanted:
    """What becomes of the results; ``stopped`` is the end of the sentence that says where the user stopped the job."""

    title: str
    starting: str
    out: Path | None
    format: Format
    json: bool
    verify: bool
    stopped: str


def _run(begin: Callable[[], Run], wanted: _Wanted, wrong: Callable[[Run], dict[str, str]]) -> None:
    console = Console(stderr=wanted.json)
    with console.status(wanted.starting) if console.is_terminal else nullcontext():
        run = begin()
    with closing(run):
        screen = Screen(run, console, wanted.title)
        with stopping_after_the_batch(run.stop):
            screen.show()
        screen.show_views()
        _keep(run, wanted)
        if wanted.verify and (isinstance(run, KeptRun) or not run.stop.asked):
            _verify(wrong(run), wanted.json)
        if run.stop.asked:
            last = screen.last
            where = f"after batch {last.batches}, {last.rows:,} rows read" if last else "before the first batch"
            typer.echo(f"stopped {where}{wanted.stopped}", err=True)
            raise typer.Exit(INTERRUPTED)


def _keep(run: Run, wanted: _Wanted) -> None:
    for view in run.views if wanted.out is not None or wanted.json else ():
        rows = run.arrow(view)
        if wanted.out is not None:
            save(rows, wanted.out, view, wanted.format)
        if wanted.json:
            for line in json_lines(rows):
                typer.echo(f'{{"view": {json.dumps(view, ensure_ascii=False)}, "row": {line}}}')


@contextmanager
def _stopped_by_the_user() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _verify(wrong: dict[str, str], quietly: bool) -> None:
    for view, what in wrong.items():
        typer.echo(f"different: {view} {what}", err=True)
    if wrong:
        raise typer.Exit(WRONG)
    typer.echo("verified: every view equals its query, evaluated by DuckDB over the rows that are left", err=quietly)
