"""``viewlet explain``: how the views of a script are kept fresh."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from viewlet.cli.options import (
    DialectOption,
    JobArgument,
    StrategyOption,
    errors_as_messages,
    read_job,
)
from viewlet.compilation import compile
from viewlet.explain import Explanation, explain

EXAMPLES = """\
[bold]Examples[/bold]

viewlet explain job.sql --view vwap [dim]# one view, from its SQL to what every statement costs[/dim]

viewlet explain job.sql --stage program [dim]# the triggers only[/dim]

viewlet explain job.sql --stage loops [dim]# the loop nests that the triggers become[/dim]

viewlet explain job.sql --stage cpp [dim]# the C++ that the native engine runs[/dim]

viewlet explain job.sql --stage decision --trace [dim]# every rewrite, before and after[/dim]

viewlet explain job.sql --format dot | dot -Tsvg > views.svg [dim]# who maintains whom, drawn[/dim]
"""


class Stage(str, Enum):
    algebra = "algebra"
    delta = "delta"
    decision = "decision"
    program = "program"
    loops = "loops"
    cpp = "cpp"


class Format(str, Enum):
    text = "text"
    html = "html"
    dot = "dot"
    json = "json"


def explain_command(
    job: JobArgument,
    view: Annotated[str | None, typer.Option(help="Only this view and what it needs.")] = None,
    stage: Annotated[Stage | None, typer.Option(help="Only this stage (as text).")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Every step of the compiler, before and after.")] = False,
    strategy: StrategyOption = "optimized",
    dialect: DialectOption = "sql",
    format: Annotated[Format, typer.Option(help="dot is the graph of who maintains whom.")] = Format.text,
) -> None:
    """Show what is kept for each view and why, the triggers that refresh it, and what an update costs."""
    if stage is not None and format is not Format.text:
        raise typer.BadParameter(f"a single stage is text; leave out --stage or --format {format.value}")
    with errors_as_messages():
        program = compile(read_job(job), strategy=strategy, dialect=dialect)
        explanation = explain(program, view.lower() if view else None, trace=trace)
        typer.echo(explanation.stage(stage.value) if stage is not None else _formatted(explanation, format))


def _formatted(explanation: Explanation, format: Format) -> str:
    match format:
        case Format.text:
            return str(explanation)
        case Format.html:
            return explanation._repr_html_()
        case Format.dot:
            return explanation.graph.to_dot()
        case Format.json:
            return json.dumps(explanation.to_dict(), indent=2, ensure_ascii=False)
