"""What several commands take, and how they end when the script is wrong."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from viewlet.compiler.strategy import StrategyName
from viewlet.errors import CorruptError, DataError, Error, OutOfRangeError, StorageError
from viewlet.jobs.run import FailedBatchError, Stop
from viewlet.schema import Dialect

STDIN = Path("-")
WRONG = 1
BAD_USAGE = 2
BAD_DATA = 3
INTERRUPTED = 130  # as shells have it
EXIT_CODES = """\
[bold]Exit codes[/bold]

0 fine · 1 a view is wrong (--verify) · 2 the command or the SQL is wrong · 3 rows, files or stored data are wrong \
· 130 stopped by Ctrl-C, with the results of the batches before
"""

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
    """What the user can put right is told in its own words, on stderr, with the exit code of its kind."""
    try:
        yield
    except Error as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(exit_code(error)) from error


def exit_code(error: Error) -> int:
    """
    >>> exit_code(Error("no such view")), exit_code(CorruptError("torn"))
    (2, 3)
    """
    of_data = (DataError, OutOfRangeError, StorageError, CorruptError, FailedBatchError)
    return BAD_DATA if isinstance(error, of_data) else BAD_USAGE


@contextmanager
def stopping_after_the_batch(what: Stop) -> Iterator[None]:
    """The first Ctrl-C waits for the batch at work, the second does not."""

    def stop(number: int, frame: FrameType | None) -> None:
        if what.asked:
            raise KeyboardInterrupt
        what.asked = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
