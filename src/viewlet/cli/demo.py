"""``viewlet demo``: the paper's finance views, live over a generated order book, and proven right at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Console

from viewlet.cli.options import INTERRUPTED, StrategyOption, errors_as_messages, stopping_after_the_batch
from viewlet.cli.screen import Screen, first_rows
from viewlet.compiler.strategy import StrategyName
from viewlet.database.directory import connect
from viewlet.database.looking import Window, window
from viewlet.database.memory import Database
from viewlet.jobs.run import LOOK_SHARE, Progress, Stop
from viewlet.loops.cost_class import program_cost_class
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES
from viewlet.workloads.streams import order_book

FINANCE_VIEWS = tuple(name for name, query in PAPER_QUERIES.items() if query.schema == FINANCE)
REPORTS = 10  # lines of plain output
EACH = 500  # events that make up a batch on the screen
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
        screen = Screen(demo, console, f"an order book of about {live} orders a side, strategy {strategy}")
        if screen.is_live:
            with stopping_after_the_batch(demo.stop):
                screen.show()
            screen.show_views()
        else:
            demo.run_plain()
        demo.verify()
        if demo.stop.asked:
            raise typer.Exit(INTERRUPTED)


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
    views: Mapping[str, Window] = field(init=False)
    stop: Stop = field(default_factory=Stop)
    is_endless: bool = False
    look_share: float = LOOK_SHARE

    def __post_init__(self) -> None:
        self.db = connect(strategy=self.strategy)
        self.db.execute(FINANCE + "".join(PAPER_QUERIES[name].sql() for name in self.names))
        self.refreshes = dict.fromkeys(self.names, 0)
        self.costs = {name: program_cost_class(self.db.program, name, "+-") for name in self.names}
        notes = {name: f"an event costs {cost}" for name, cost in self.costs.items()}
        self.views = {name: window(self.db, name, notes[name]) for name in self.names}

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

    def batches(self) -> Iterator[Progress]:
        """For the screen: some events each, one by one."""
        started = time.perf_counter()
        for _ in self.stream():
            if self.done % EACH == 0 or self.done == self.events:
                now = time.perf_counter()
                yield Progress(-(-self.done // EACH), -(-self.events // EACH), self.done, now - started, self.db.tier)
                started = now
                if self.stop.asked:
                    return

    # -- piped ---------------------------------------------------------------------------------------------------------

    def run_plain(self) -> None:
        for name in self.names:
            typer.echo(f"{name}: an event costs {self.costs[name]}")
        step = max(self.events // REPORTS, 1)
        for _ in self.stream():
            if self.done % step == 0 or self.done == self.events:
                left = (self.events - self.done) / self.rate
                values = "  ".join(f"{name}: {first_rows(window)}" for name, window in self.views.items())
                rate = f"{self.rate:,.0f}/s ({self.db.tier})"
                typer.echo(f"{self.done}/{self.events} events  {rate}  {left:.0f} s left  {values}")

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
