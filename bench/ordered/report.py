"""The tables, and whether the limits were kept."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from bench.engine.report import rate
from bench.ordered.growth import HAND, ORDERED, SCAN, Growth, Point
from bench.ordered.rates import LEAST_OF_HAND, LEAST_RATE, Rates

FROM = 1_000  # live rows: below, everything is in the nearest cache
MOST_GROWTH = 8.0
NOTES = f"""\
growth: from {FROM:,} live rows to the largest book measured; with ordered access paths at most {MOST_GROWTH:g}×. \
scan: the paper's own strategy, the same program without ordered access paths. \
ev.: events measured, where they were few."""
HEADINGS = {ORDERED: "ordered", SCAN: "scan", HAND: "by hand"}


def show_growth(growths: Mapping[str, Growth], console: Console) -> None:
    table = Table(title="CPU time per event, the view fresh after every one, every answer checked")
    table.add_column("query")
    table.add_column("program")
    sizes = sorted({point.live for growth in growths.values() for point in growth.curves[ORDERED]})
    for size in sizes:
        table.add_column(f"{size:,}\nlive", justify="right")
    table.add_column("growth", justify="right")
    for name, growth in growths.items():
        for who, curve in growth.curves.items():
            cells = {point.live: _cell(point) for point in curve}
            mark = _verdict(is_flat(growth)) if who == ORDERED else ""
            shown = [cells.get(size, "–") for size in sizes]
            table.add_row(name if who == ORDERED else "", HEADINGS[who], *shown, f"{_times(factor(curve))}{mark}")
        table.add_section()
    console.print(table)
    console.print(NOTES, highlight=False)
    for name, growth in growths.items():
        if growth.ended:
            console.print(f"{name}: scan {growth.ended}", highlight=False)


def show_rates(measured: Mapping[str, Rates], console: Console) -> None:
    table = Table(title="events per CPU second on the paper's stream, fresh after every one, answers as DuckDB's")
    for heading in ("query", "events", "native", "at least", "by hand", "of by hand", f"at least {LEAST_OF_HAND}"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for name, r in measured.items():
        least = LEAST_RATE[name]
        table.add_row(
            name,
            f"{r.events:,}",
            rate(r.native),
            f"{rate(least)}{_verdict(r.native >= least)}",
            rate(r.hand),
            f"{r.of_hand:.2f}",
            _verdict(r.of_hand >= LEAST_OF_HAND).strip(),
        )
    console.print(table)


def growth_line(name: str, growth: Growth) -> str:
    last = {who: curve[-1] for who, curve in growth.curves.items() if curve}
    return f"{name:5} " + ", ".join(f"{HEADINGS[w]} {_time(p.per_event)} at {p.live:,}" for w, p in last.items())


def rates_line(name: str, r: Rates) -> str:
    return f"{name:5} native {rate(r.native)}/s, by hand {rate(r.hand)}/s over {r.events:,} events, answers right"


def factor(curve: list[Point]) -> float:
    """From 10³ live rows to the largest book measured; from the smallest one where all are smaller."""
    from_there = [point for point in curve if point.live >= FROM] or curve
    return from_there[-1].per_event / from_there[0].per_event if curve else float("nan")


def is_flat(growth: Growth) -> bool:
    return factor(growth.curves[ORDERED]) <= MOST_GROWTH


def is_fast(name: str, rates: Rates) -> bool:
    return rates.native >= LEAST_RATE[name] and rates.of_hand >= LEAST_OF_HAND


def _verdict(kept: bool) -> str:
    return " [green]✓[/]" if kept else " [bold red]✗[/]"


def _times(growth: float) -> str:
    return f"{growth:,.0f}×" if growth >= 100 else f"{growth:.3g}×"


def _cell(point: Point) -> str:
    """With the number of events where there were few."""
    return _time(point.per_event) + (f"\n({point.events:,} ev.)" if point.events < 1000 else "")


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
