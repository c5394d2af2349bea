"""``viewlet demo``: the paper's finance views, live over a generated order book, and proven right at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from viewlet.cli.options import StrategyOption, errors_as_messages
from viewlet.compiler.strategy import StrategyName
from viewlet.database import Database
from viewlet.directory import connect
from viewlet.loops.cost_class import program_cost_class
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES
from viewlet.workloads.streams import order_book

FINANCE_VIEWS = tuple(name for name, query in PAPER_QUERIES.items() if query.schema == FINANCE)
SHOWN_ROWS = 3
REPORTS = 10  # lines of plain output
EXAMPLES = """\
[bold]Examples[/bold]

viewlet demo [dim]# five views over fifty thousand events of an order book[/dim]

viewlet demo --views bsv,bsp --events 1000000 --live 10000 [dim]# a bigger book, the cheaper views[/dim]

viewlet demo --views vwap --strategy reevaluate [dim]# the same answers, without the compiler's work[/dim]
"""


def demo_command(
    events: Annotated[int, typer.Option(min=1, help="How many orders, fills and cancellations.")] = 50_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same events.")] = 1,
    strategy: StrategyOption = "optimized",
    views: Annotated[str, typer.Option(help=f"Which views, of {', '.join(FINANCE_VIEWS)}.")] = "axf,bsp,bsv,psp,vwap",
    live: Annotated[int, typer.Option(min=1, help="About how many orders rest on each side of the book.")] = 40,
) -> None:
    """Keep several views of an order book fresh, event by event, then compare them with their queries run again."""
    demo = _Demo(_chosen(views), events, seed, strategy, live)
    console = Console()
    with errors_as_messages():
        if console.is_terminal:
            demo.run_live(console)
        else:
            demo.run_plain()
        demo.verify()


def _chosen(views: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip().lower() for name in views.split(",") if name.strip()))
    unknown = [name for name in names if name not in FINANCE_VIEWS]
    if unknown or not names:
        raise typer.BadParameter(f"{unknown[0] if unknown else 'no view'}: choose from {', '.join(FINANCE_VIEWS)}")
    return names


@dataclass
class _Demo:
    names: tuple[str, ...]
    events: int
    seed: int
    strategy: StrategyName
    live: int
    done: int = 0
    started: float = 0.0
    db: Database = field(init=False)
    refreshes: dict[str, int] = field(init=False)
    costs: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.db = connect(strategy=self.strategy)
        self.db.execute(FINANCE + "".join(PAPER_QUERIES[name].sql() for name in self.names))
        self.refreshes = dict.fromkeys(self.names, 0)
        self.costs = {name: program_cost_class(self.db.program, name, "+-") for name in self.names}

    def stream(self) -> Iterator[None]:
        self.started = time.monotonic()
        for event in order_book(self.seed, self.events, live=self.live, brokers=5):
            self.db.apply([event])
            self.done += 1
            for name in self.names:
                self.refreshes[name] += event[1] in PAPER_QUERIES[name].relations
            yield

    @property
    def rate(self) -> float:
        return self.done / max(time.monotonic() - self.started, 1e-9)

    # -- on a terminal -------------------------------------------------------------------------------------------------

    def run_live(self, console: Console) -> None:
        progress = Progress(
            TextColumn("events"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeRemainingColumn(),
            console=console,
        )
        task = progress.add_task("events", total=self.events, rate=0.0)
        with Live(console=console, auto_refresh=False) as screen:
            shown = 0.0
            for _ in self.stream():
                if time.monotonic() - shown >= 0.25 or self.done == self.events:
                    shown = time.monotonic()
                    progress.update(task, completed=self.done, rate=self.rate)
                    screen.update(Group(self.table(), progress), refresh=True)

    def table(self) -> Table:
        book = f"an order book of about {self.live} orders a side"
        table = Table(title=f"{book}, strategy {self.strategy}, {self.db.tier} engine")
        table.add_column("view")
        table.add_column("fresh rows")
        table.add_column("refreshes", justify="right")
        table.add_column("an event costs")
        for name in self.names:
            table.add_row(name, self.now(name), f"{self.refreshes[name]:,}", self.costs[name])
        return table

    # -- piped ---------------------------------------------------------------------------------------------------------

    def run_plain(self) -> None:
        for name in self.names:
            typer.echo(f"{name}: an event costs {self.costs[name]}")
        step = max(self.events // REPORTS, 1)
        for _ in self.stream():
            if self.done % step == 0 or self.done == self.events:
                left = (self.events - self.done) / self.rate
                values = "  ".join(f"{name}: {self.now(name)}" for name in self.names)
                rate = f"{self.rate:,.0f}/s ({self.db.tier})"
                typer.echo(f"{self.done}/{self.events} events  {rate}  {left:.0f} s left  {values}")

    def now(self, name: str) -> str:
        """The first rows as text."""
        rows = self.db.view(name).rows()
        rows = rows if self.db.program.result(name).order else sorted(rows, key=str)
        shown = " | ".join(" ".join(map(_value, row)) for row in rows[:SHOWN_ROWS])
        return f"{shown or 'empty'}{' | …' * (len(rows) > SHOWN_ROWS)}"

    # -- the end -------------------------------------------------------------------------------------------------------

    def verify(self) -> None:
        total = sum(self.refreshes.values())
        typer.echo(f"{self.done:,} events, {total:,} refreshes, {self.rate:,.0f} events/s")
        different = {name: wrong for name in self.names if (wrong := self.db.verify(name))}
        for name, wrong in different.items():
            typer.echo(f"different: {name} has {len(wrong)} wrong rows, the first {wrong[0]}", err=True)
        if different:
            raise typer.Exit(1)
        typer.echo(f"verified: {', '.join(self.names)} equal their queries, evaluated again over the orders that rest")


def _value(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
