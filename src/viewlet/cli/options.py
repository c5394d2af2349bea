"""What several commands take, and how they end when the script is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from viewlet.compiler.strategy import StrategyName
from viewlet.errors import Error
from viewlet.schema import Dialect

STDIN = Path("-")


JobArgument = Annotated[
    Path,
    typer.Argument(
        metavar="JOB.SQL",
        help="A script of CREATE STREAM, CREATE TABLE and CREATE MATERIALIZED VIEW statements; - reads it from stdin.",
    ),
]
StrategyOption = Annotated[
    StrategyName,
    typer.Option(help="What to keep: the paper's heuristics, its cost model, or one of its three baselines."),
]
DialectOption = Annotated[Dialect, typer.Option(help="sql: SUM of nothing is NULL. paper: it is 0.")]


def read_job(job: Path) -> str:
    if job == STDIN:
        return sys.stdin.read()
    try:
        return job.read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{job}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{job} is not UTF-8 text: byte {error.start} cannot be read") from error


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """What the user can put right is told in its own words, on stderr, with exit code 1."""
    try:
        yield
    except Error as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
