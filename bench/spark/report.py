"""The tables, and whether the limits were kept."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.engine.report import rate
from bench.spark import latency as few_rows
from bench.spark import overhead as few
from bench.spark import recompute as again
from bench.spark.latency import MOST_TIMES, Latency
from bench.spark.overhead import Overhead
from bench.spark.recompute import Recomputed
from bench.spark.run import Batch, Stretch
from bench.spark.scale import ROWS as SCALE_ROWS
from bench.spark.scale import Size
from bench.spark.throughput import LARGER_ON_ONE_CORE, LARGER_ONE_CELL, LARGER_TWO_CELLS, Setup

LEAST_RATE = 300e3  # events a second and core
MOST_OVERHEAD = 0.1  # seconds
MOST_GROWTH = 1.5
LEAST_TIMES = 20.0
LEAST_GAIN = 1.5  # of a second cell on a second core
FREE = 0.2  # cores: what others may take of two that are called free

Rates = Mapping[tuple[str, Setup], Stretch]
Pair = tuple[Stretch, Stretch]
Apart = Mapping[str, Pair]  # by query: two jobs at once that know nothing of each other, a core each


def line(stretch: Stretch) -> str:
    rates = f"{rate(stretch.rate)}/s, {rate(stretch.rate_of_cpu)} a CPU second"
    others = f"others took {stretch.took.others:.2f} cores"
    return f"{stretch.typical * 1000:.0f} ms a micro-batch, {rates}, {stretch.rows:,} events, answers right; {others}"


# -- throughput --------------------------------------------------------------------------------------------------------


def show_throughput(rates: Rates, left_out: int, console: Console) -> None:
    table = Table(title="events per second from Parquet files to durable state, every answer as DuckDB's")
    headings = ("rows to a\nbatch", "batches", "events/s", "events/s\nand core", "at least", "cores\nbusy", "others'")
    for heading in ("query", "set up", *headings):
        table.add_column(heading, justify="left" if heading in ("query", "set up") else "right")
    for (name, setup), stretch in rates.items():
        table.add_row(
            name,
            setup.title,
            f"{setup.rows:,}",
            str(len(stretch.batches)),
            rate(stretch.rate),
            rate(per_core(setup, stretch)),
            f"{rate(LEAST_RATE)}{_verdict(is_fast(setup, stretch))}",
            f"{stretch.took.cores:.2f}",
            f"{stretch.took.others:.2f}",
        )
    console.print(table)
    console.print(
        f"events/s: of the wall. and core: of CPU time, that of driver, JVM, Python workers and cells together; where "
        f"all of them share one core, of the wall. {left_out} micro-batches before these are left out: the JVM "
        f"compiles its code. others': cores that were busy for somebody else meanwhile.",
        highlight=False,
    )
    show_parts({f"{name}, {setup.title}": stretch for (name, setup), stretch in rates.items()}, console)


def per_core(setup: Setup, stretch: Stretch) -> float:
    return stretch.rate if setup.pinned is not None and len(setup.pinned) == 1 else stretch.rate_of_cpu


def is_fast(setup: Setup, stretch: Stretch) -> bool:
    return per_core(setup, stretch) >= LEAST_RATE


def show_parts(stretches: Mapping[str, Stretch], console: Console) -> None:
    """Where the time of a micro-batch goes."""
    table = Table(title="milliseconds of a micro-batch, medians", padding=(0, 0))
    table.add_column("", no_wrap=True)
    shown = {title: _parts(stretch) for title, stretch in stretches.items()}
    for heading in next(iter(shown.values()), {}):
        table.add_column(heading, justify="right")
    for title, parts in shown.items():
        table.add_row(title, *(f"{seconds * 1000:.0f}" for seconds in parts.values()))
    console.print(table)
    console.print(
        "job: Spark's job in foreachBatch, of which the slowest cell takes, of which all engines together take; "
        "around: the rest of foreachBatch (manifest, calls between JVM and driver). Left of job: Spark's own. "
        "CPU: the average of a micro-batch.",
        highlight=False,
    )


def _parts(stretch: Stretch) -> dict[str, float]:
    def typical(name: str) -> float:
        return median(batch.parts.get(name, 0.0) for batch in stretch.batches)

    def own(name: str) -> float:
        return median(_own(batch, name) for batch in stretch.batches)

    return {
        "whole": stretch.typical,
        "find files": typical("latestOffset") + typical("getBatch"),
        "plan": typical("queryPlanning"),
        "write\noffsets": typical("walCommit"),
        "commit": typical("commitOffsets"),
        "job": own("job_seconds"),
        "slowest\ncell": own("slowest_cell_seconds"),
        "engines": own("engine_seconds"),
        "around": typical("addBatch") - own("job_seconds"),
        **{f"CPU\n{role}": seconds / len(stretch.batches) for role, seconds in stretch.took.roles.items()},
    }


def _own(batch: Batch, name: str) -> float:
    return float(batch.own.get(name, 0.0))


# -- overhead ----------------------------------------------------------------------------------------------------------


def show_overhead(overheads: Mapping[str, Overhead], console: Console) -> None:
    table = Table(title=f"milliseconds of a micro-batch of {few.ROWS} rows, {few.CELLS} cells on {few.CORES} cores")
    headings = ("Spark's own", "with the view", "more", f"at most {MOST_OVERHEAD * 1000:.0f}", "worst", "others'")
    for heading in ("query", *headings):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for name, both in overheads.items():
        table.add_row(
            name,
            f"{both.empty.typical * 1000:.0f}",
            f"{both.kept.typical * 1000:.0f}",
            f"{both.seconds * 1000:.0f}",
            _verdict(is_light(both)).strip(),
            f"{both.kept.worst * 1000:.0f}",
            f"{both.kept.took.others:.2f}",
        )
    console.print(table)
    console.print("Spark's own: the same sources into a foreachBatch that does nothing. Medians.", highlight=False)
    show_parts({name: both.kept for name, both in overheads.items()}, console)


def is_light(both: Overhead) -> bool:
    return both.seconds <= MOST_OVERHEAD


# -- latency -----------------------------------------------------------------------------------------------------------


def show_latency(latencies: Mapping[str, Latency], console: Console) -> None:
    table = Table(title=f"milliseconds of a micro-batch of {few_rows.ROWS:,} rows, {few_rows.STATE:,} rows of state")
    for heading in ("query", "Spark's own", "with the view", "times", f"at most {MOST_TIMES:g}×", "others'"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for name, both in latencies.items():
        table.add_row(
            name,
            f"{both.empty.typical * 1000:.0f}",
            f"{both.kept.typical * 1000:.0f}",
            f"{both.times:.2f}×",
            _verdict(is_close(both)).strip(),
            f"{both.kept.took.others:.2f}",
        )
    console.print(table)
    console.print(
        f"Spark's own: the same sources into a foreachBatch that does nothing, in turns with the view, "
        f"{few_rows.ROUNDS} times each. Medians.",
        highlight=False,
    )
    show_parts(
        {
            f"{name}, {what}": stretch
            for name, both in latencies.items()
            for what, stretch in (("Spark's own", both.empty), ("with the view", both.kept))
        },
        console,
    )


def is_close(both: Latency) -> bool:
    return both.times <= MOST_TIMES


# -- scale -------------------------------------------------------------------------------------------------------------


def show_scale(sizes: list[Size], console: Console) -> None:
    table = Table(title=f"milliseconds of a micro-batch of {SCALE_ROWS:,} rows, by the groups that are there")
    headings = ("groups", "MB of state", "median", "average", "worst", "growth", f"at most {MOST_GROWTH}", "others'")
    for heading in headings:
        table.add_column(heading, justify="right")
    for size in sizes:
        stretch = size.stretch
        growth = stretch.typical / sizes[0].stretch.typical
        table.add_row(
            f"{size.groups:,}",
            f"{size.state_bytes / 1e6:.0f}",
            *(f"{seconds * 1000:.0f}" for seconds in (stretch.typical, stretch.average, stretch.worst)),
            f"{growth:.2f}×",
            _verdict(growth <= MOST_GROWTH).strip(),
            f"{stretch.took.others:.2f}",
        )
    console.print(table)
    console.print("average and worst: with the snapshots that are written meanwhile.", highlight=False)


def is_flat(sizes: list[Size]) -> bool:
    return sizes[-1].stretch.typical <= MOST_GROWTH * sizes[0].stretch.typical


# -- recompute ---------------------------------------------------------------------------------------------------------


def show_recompute(recomputed: Mapping[tuple[str, int], Recomputed], console: Console) -> None:
    table = Table(title=f"milliseconds until the view is fresh again, micro-batches of {again.ROWS:,} rows, 2 cores")
    headings = ("rows of\nstate", "maintained", "Spark SQL", "times", f"at least {LEAST_TIMES:g}×")
    more = ("Spark SQL\nand the batch", "times", "settings", "others'")
    for heading in ("query", *headings, *more):
        table.add_column(heading, justify="left" if heading in ("query", "settings") else "right")
    for (name, state), both in recomputed.items():
        table.add_row(
            name,
            f"{state:,}",
            f"{both.kept.typical * 1000:.0f}",
            f"{both.seconds * 1000:,.0f}",
            f"{both.times:.1f}×",
            _verdict(is_worth_it(both)).strip(),
            f"{both.with_batch * 1000:,.0f}",
            f"{both.times_with_batch:.1f}×",
            both.settings,
            f"{both.kept.took.others:.2f}",
        )
    console.print(table)
    console.print(
        f"Spark SQL: the best run under the best of {len(again.SETTINGS)} settings, over cached tables of the rows "
        f"that are there, nothing else counted. and the batch: the best run that reads the micro-batch first and minds "
        f"its deletes. bsv: {again.BIDS:,} bids of each broker.",
        highlight=False,
    )


def is_worth_it(both: Recomputed) -> bool:
    return both.times >= LEAST_TIMES


# -- cells -------------------------------------------------------------------------------------------------------------


def show_cells(rates: Rates, apart: Apart, console: Console) -> None:
    table = Table(title=f"events per second, micro-batches of {LARGER_TWO_CELLS.rows:,} rows")
    headings = ("1 cell\non 1 core", "1 cell\non 2 cores", "2 cells\non 2 cores", "gain by\nthe core", "by the\ncell")
    for heading in ("query", *headings, f"at least {LEAST_GAIN}×", "of two\napart", "others'"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for name, pair in apart.items():
        core, one, two = (rates[name, s] for s in (LARGER_ON_ONE_CORE, LARGER_ONE_CELL, LARGER_TWO_CELLS))
        table.add_row(
            name,
            *(rate(stretch.rate) for stretch in (core, one, two)),
            f"{two.rate / core.rate:.2f}×",
            f"{two.rate / one.rate:.2f}×",
            _verdict(_gains(core, two)).strip() + ("" if _is_free(two) else " cores not free"),
            f"{_together(pair) / core.rate:.2f}×",
            f"{two.took.others:.2f}",
        )
    console.print(table)
    console.print(
        "of two apart: what the same job on one core, run twice at the same time on a core each, does in all, by what "
        "it does alone. No program can gain more.",
        highlight=False,
    )


def scales_out(rates: Rates) -> bool:
    """A second core that somebody else used proves nothing either way."""
    pairs = [(rates[name, LARGER_ON_ONE_CORE], rates[name, LARGER_TWO_CELLS]) for name in {name for name, _ in rates}]
    return all(_gains(one, two) or not _is_free(two) for one, two in pairs)


def _gains(one: Stretch, two: Stretch) -> bool:
    return two.rate >= LEAST_GAIN * one.rate


def _is_free(stretch: Stretch) -> bool:
    return stretch.took.others <= FREE


def _together(pair: Pair) -> float:
    return sum(stretch.rate for stretch in pair)


def _verdict(kept: bool) -> str:
    return " [green]✓[/]" if kept else " [bold red]✗[/]"
