"""``viewlet check``: which views of a script can be maintained, and at what cost; or whether a directory is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viewlet.check import ViewCheck, check
from viewlet.cli.options import DialectOption, StrategyOption, errors_as_messages, read_job
from viewlet.durable.check import check_directory

EXAMPLES = """\
[bold]Examples[/bold]

viewlet check job.sql [dim]# exit code 1 if some view cannot be maintained[/dim]

viewlet check job.sql --strategy classical [dim]# what an update would cost without higher-order views[/dim]

viewlet check data/ [dim]# of viewlet.connect("data/"): is every byte what was written?[/dim]
"""
CheckedArgument = Annotated[
    Path,
    typer.Argument(metavar="JOB.SQL|DIRECTORY", help="A script (- reads it from stdin), or a database's directory."),
]


def check_command(job: CheckedArgument, strategy: StrategyOption = "optimized", dialect: DialectOption = "sql") -> None:
    """Say for each view whether it can be maintained, what an update costs, and if not or not well, why.

    Of the directory of a database, read every byte and say whether it is what was written.
    """
    if job.is_dir():
        _check_directory(job)
        return
    with errors_as_messages():
        checks = check(read_job(job), strategy=strategy, dialect=dialect)
    for result in checks:
        typer.echo(_line(result))
        for finding in result.findings:
            typer.echo(f"    {finding}")
    if not checks:
        typer.echo("the script creates no view")
    if not all(result.maintainable for result in checks):
        raise typer.Exit(1)


def _check_directory(path: Path) -> None:
    with errors_as_messages():
        checked = check_directory(path)
    typer.echo(f"✓ {path}: {checked.bytes:,} bytes in {checked.records:,} records are what was written")
    if checked.torn:
        typer.echo(f"    the last {checked.torn:,} bytes are of an update that was not acknowledged: opening cuts them")


def _line(result: ViewCheck) -> str:
    if not result.maintainable:
        return f"✗ {result.view}: cannot be maintained"
    tick = f", a tick of the clock {result.tick_class}" if result.tick_class else ""
    return f"{'!' if result.findings else '✓'} {result.view}: an update costs {result.cost_class}{tick}"
