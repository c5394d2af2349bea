"""The pages' figures, from the committed file of results: ``python -m bench.report.readme`` writes them again.

docs/benchmarks.md has all of them, the README a few rows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.report.blocks import Cell
from bench.report.digits import NOTHING, amount, times
from bench.report.document import best_peers
from bench.report.experiments import EXPERIMENTS
from bench.report.markdown import table_lines
from bench.report.ratios import OURS, STRATEGIES, Ratio, is_cut, over_peers, over_strategies
from bench.report.tables import BOUNDED, shown_query
from bench.results import ROOT, Results

LATEST = ROOT / "bench" / "results" / "latest.json"
README = ROOT / "README.md"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"
FEW = ("q3", "bsv", "vwap")  # a join, a self-join, nested aggregates with inequalities
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
WIDTH = 120
HEADER = ("query", "events per CPU second", "over re-evaluation", "over DuckDB", "over the best peer")
SPARK = "Spark: "  # how the titles of its experiments begin
ON_SPARK = "On Spark, in a JVM that has just started ([spark.md](spark.md) has figures of a warm one):"


def few_figures(results: Results) -> str:
    """What stands between the markers of the README."""
    rows = tuple(row for row in _rows(results) if row[0].text in map(shown_query, FEW))
    about = results.about
    where = (
        f"Measured on {about.started[:10]} at commit {about.commit}, on {about.machine.cores} cores of a machine with "
        f"{about.machine.processor}. The view is fresh after every event, and every answer was compared with DuckDB's."
    )
    return "\n\n".join([_filled(where), table_lines(HEADER, rows)])


def figures(results: Results) -> str:
    """What stands between the markers of docs/benchmarks.md."""
    parts = [_where(results), table_lines(HEADER, tuple(_rows(results))), _meaning(results)]
    if spark := list(_spark(results)):
        parts += [_filled(ON_SPARK), "\n".join(spark)]
    return "\n\n".join(parts)


PAGES: Mapping[Path, Callable[[Results], str]] = {README: few_figures, BENCHMARKS: figures}


def with_figures(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def _where(results: Results) -> str:
    about, machine = results.about, results.about.machine
    return _filled(
        f"Measured by `{about.command}` on {about.started[:10]}, commit {about.commit}, on a machine with "
        f"{machine.cores} cores ({machine.processor}, {machine.compiler}); {about.load_before:.1f} processes wanted a "
        f"core in the minute before, {about.load_after:.1f} in the last one. The view is fresh after every event, and "
        "every answer was compared with DuckDB's."
    )


def _rows(results: Results) -> Iterable[tuple[Cell, ...]]:
    ratios = {(ratio.query, ratio.over): ratio for ratio in over_strategies(results)}
    closest = best_peers(over_peers(results))
    for ours in (m for m in results.of(STRATEGIES) if m.contestant == OURS):
        yield (
            Cell(shown_query(ours.query), is_word=True),
            Cell(amount(ours.value, ours.unit) + BOUNDED * is_cut(ours)),
            _cell(ratios.get((ours.query, "reevaluate"))),
            _cell(ratios.get((ours.query, "duckdb"))),
            _cell(closest.get(ours.query), is_named=True),
        )


def _cell(ratio: Ratio | None, is_named: bool = False) -> Cell:
    if ratio is None:
        return Cell(NOTHING)
    return Cell(times(ratio.value) + BOUNDED * is_cut(ratio.theirs), ratio.over if is_named else "")


def _meaning(results: Results) -> str:
    said = (
        "The first columns are the bare triggers, as the paper measured them, and how many times as fast they are as "
        "the same program running the query again, and as DuckDB doing so."
    )
    if over_peers(results):
        said += (
            " The last one is a database as you use it, fed from Python, and how many times as fast it is as the peer "
            "that comes closest, where peers were run."
        )
    if any(is_cut(ratio.theirs) for ratio in over_strategies(results)):
        said += f" {BOUNDED} One was stopped by the clock; triggers are compared over the events that both took."
    return _filled(said)


def _spark(results: Results) -> Iterable[str]:
    """One line for each experiment: who, and the figure of each query."""
    for experiment in (e for e in EXPERIMENTS if e.title.startswith(SPARK)):
        measured = [m for m in results.measurements if m.experiment in experiment.names and m.value is not None]
        if measured:
            told = (f"{m.contestant}, {shown_query(m.query)}: {amount(m.value, m.unit)}" for m in measured)
            of = f"{experiment.title.removeprefix(SPARK)}, {measured[0].unit}, fresh after {measured[0].freshness}"
            yield _filled(f"- {of}: {'; '.join(told)}", indent="  ")


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    results = Results.read(LATEST)
    for page, told in PAGES.items():
        page.write_text(with_figures(page.read_text("utf-8"), told(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
