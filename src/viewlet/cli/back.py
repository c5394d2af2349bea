"""``viewlet back``: the newest batches of a checkpoint on Spark never were."""

from __future__ import annotations

from typing import Annotated

import typer

from viewlet.cli.options import errors_as_messages
from viewlet.errors import Error

EXAMPLES = """\
[bold]Examples[/bold]

viewlet back /shared/job [dim]# the last micro-batch was a mistake, or its files are damaged[/dim]

viewlet back /shared/job --batches 3 --follower /shared/sink [dim]# and is what this stream feeds ahead then?[/dim]
"""


def back_command(
    checkpoint: Annotated[
        str, typer.Argument(help="The directory that viewlet.spark.maintain was given; no query may run on it.")
    ],
    batches: Annotated[int, typer.Option(min=1, help="How many micro-batches to take back.")] = 1,
    follower: Annotated[
        list[str] | None, typer.Option(help="The checkpoint of a stream of changes: is it ahead? May come repeatedly.")
    ] = None,
) -> None:
    """Take the newest micro-batches of a query on Spark back: it goes on as if they had never been.

    Their rows come again when the query is started again, as its sources have them by then. Who follows its views and
    has read one of those batches must begin again, and is refused until then.
    """
    with errors_as_messages():
        try:
            from viewlet.spark import back
        except ImportError as missing:
            raise Error(str(missing)) from missing
        typer.echo(str(back(checkpoint, batches, follower or ())))
