"""``viewlet check``: which views of a script can be maintained, and at what cost."""

from __future__ import annotations

import typer

from viewlet.check import ViewCheck, check
from viewlet.cli.options import (
    DialectOption,
    JobArgument,
    StrategyOption,
    errors_as_messages,
    read_job,
)

EXAMPLES = """\
[bold]Examples[/bold]

viewlet check job.sql [dim]# exit code 1 if some view cannot be maintained[/dim]

viewlet check job.sql --strategy classical [dim]# what an update would cost without higher-order views[/dim]
"""


def check_command(job: JobArgument, strategy: StrategyOption = "optimized", dialect: DialectOption = "sql") -> None:
    """Say for each view whether it can be maintained, what an update costs, and if not or not well, why."""
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


def _line(result: ViewCheck) -> str:
    if not result.maintainable:
        return f"✗ {result.view}: cannot be maintained"
    return f"{'!' if result.findings else '✓'} {result.view}: an update costs {result.cost_class}"
