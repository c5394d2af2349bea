"""The tables: rates side by side, what was skipped and why, and what a live group takes in memory."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench.engine.contestants import BATCH, CONTESTANTS, Measured
from bench.engine.workload import SHRUNK

Results = dict[str, Measured | str]  # contestant → what it did, or why it did not
BOUND, NATIVE, WITH_TABLES = "hand", "triggers", "arrow"
HEADINGS = {
    "hand": "by hand",
    "trick": "by hand,\na trick",
    "triggers": "native\ntriggers",
    "arrow": "native\nArrow",
    "fill": "native\nfill",
    "lists": "native\nlists",
    "single": "native\nsingle",
    "python": "Python\ntier",
    "interpreter": "inter-\npreter",
    "duckdb": "DuckDB",
}

NOTES = f"""\
native triggers: the generated program without base tables and checks, as by hand; Arrow: apply with batches of \
{BATCH:,}; fill: insert with Arrow tables; lists: apply with lists of tuples; single: a call for each tuple.
Python tier and DuckDB (which evaluates anew after each event): from the steady state on, for a few seconds. \
Interpreter: the same with a {SHRUNK}th of the live rows."""


def line(measured: Measured | str) -> str:
    if isinstance(measured, str):
        return f"skipped: {measured}"
    return f"{rate(measured.rate):>8}/s over {measured.events:,} events, {len(measured.rows):,} rows right"


def rate(events_a_second: float) -> str:
    """Three digits: 1.23 M, 45.6 k, 789."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if events_a_second >= size:
            return f"{events_a_second / size:.3g} {unit}"
    return f"{events_a_second:.3g}"


def show(results: dict[str, Results], console: Console) -> None:
    _rates(results, console)
    _memory(results, console)
    console.print(NOTES, highlight=False)
    reasons = {f"{who}: {why}" for row in results.values() for who, why in row.items() if isinstance(why, str)}
    for reason in sorted(reasons):
        console.print(f"skipped — {reason}", highlight=False)


def _rates(results: dict[str, Results], console: Console) -> None:
    present = [who for who in CONTESTANTS if any(who in row for row in results.values())]
    table = Table(title="events per CPU second, the view fresh after every one, every answer checked")
    table.add_column("query")
    for who in present:
        table.add_column(HEADINGS[who], justify="right")
        if who == NATIVE:
            table.add_column("of by\nhand", justify="right")
    for query, row in results.items():
        cells = [query]
        for who in present:
            measured = row.get(who, "")
            cells.append("–" if isinstance(measured, str) else rate(measured.rate))
            if who == NATIVE:
                cells.append(_ratio(row))
        table.add_row(*cells)
    console.print(table)


def _ratio(row: Results) -> str:
    bound, native = row.get(BOUND), row.get(NATIVE)
    if not isinstance(bound, Measured) or not isinstance(native, Measured):
        return "–"
    return f"{native.rate / bound.rate:.2f}"


def _memory(results: dict[str, Results], console: Console) -> None:
    """A map's bytes include its indexes; the JSON has every map."""
    table = Table("query", "program", "maps", "MB", "largest map", "entries", "bytes each")
    table.title = "memory at the end of the stream; native Arrow: with base tables and texts"
    for query, row in results.items():
        for who in (BOUND, NATIVE, WITH_TABLES):
            measured = row.get(who)
            if isinstance(measured, Measured):
                largest = max(measured.kept, key=lambda kept: kept.bytes)
                megabytes = sum(kept.bytes for kept in measured.kept) / 1e6
                each = f"{largest.bytes / max(largest.entries, 1):.0f}"
                title = HEADINGS[who].replace("\n", " ")
                table.add_row(
                    query,
                    title,
                    str(len(measured.kept)),
                    f"{megabytes:.1f}",
                    largest.name,
                    f"{largest.entries:,}",
                    each,
                )
    if table.row_count:
        console.print(table)
