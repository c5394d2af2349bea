"""The ``viewlet`` command."""

from __future__ import annotations

from typing import Annotated

import typer

from viewlet import __version__
from viewlet.cli import back, bench, check, demo, explain, run, shell

app = typer.Typer(
    name="viewlet",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with [bold]viewlet demo[/bold], [bold]viewlet run[/bold], [bold]viewlet explain job.sql[/bold].",
)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain_command)
app.command("check", epilog=check.EXAMPLES)(check.check_command)
app.command("run", epilog=run.EXAMPLES)(run.run_command)
app.command("shell", epilog=shell.EXAMPLES)(shell.shell_command)
app.command("back", epilog=back.EXAMPLES)(back.back_command)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo_command)
app.add_typer(bench.bench, name="bench", hidden=not bench.is_checkout())


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"viewlet {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """SQL views that are fresh after every event: scripts are compiled into triggers that update the views in place."""
