"""From results to a report: ratios first, then what was measured, then what is to be known about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from bench.report.blocks import Bar, BarPanel, Bars, Block, Bullets, Cell, Document, Fact, Prose, Section, Table
from bench.report.digits import NOTHING, percent, significant, times
from bench.report.experiments import Experiment, experiments
from bench.report.ratios import (
    OURS,
    PEERS,
    RECOMPUTED,
    SAME_POINT,
    STRATEGIES,
    Ratio,
    identity,
    is_cut,
    over_peers,
    over_strategies,
    printed_ratios,
)
from bench.report.tables import (
    BOUNDED,
    FIRST,
    SCANS,
    count_of_checked,
    curve_blocks,
    grid_blocks,
    in_order,
    measured_blocks,
    reasons,
    shown_query,
)
from bench.results import About, Results

WRONG = "WRONG ANSWER"  # how a note begins that says so
HEADLINES = {"reevaluate": "over re-evaluation", "classical": "over classical maintenance", "duckdb": "over DuckDB"}
RATIOS_SAY = (
    f"How many times as many events `{OURS}` takes in a CPU second as the others do. More than 1 is faster. "
    f"{BOUNDED} The other was stopped by the clock."
)
SAME_POINT_SAYS = (
    "What begins with empty tables and is stopped early has seen only small ones, on which everything is fast. So both "
    "are compared over the latter half of the events that both took; the small print says where in the stream that "
    "half ended, unless it was at the end."
)
PEERS_SAY = (
    "How many times as many events viewlet takes in a CPU second as the peers do, when both show a fresh answer "
    "equally often; where viewlet was not measured at a peer's freshness, it is fresh after every event."
)

SPARK_SAYS = (
    "How many times sooner a view is fresh after a micro-batch on Spark when viewlet maintains it than when Spark SQL "
    "runs its query again."
)


def document(runs: Sequence[Results]) -> Document:
    """The report of one run, or of several that measured different things."""
    results = combined(runs)
    alarms = tuple(note for note in results.notes if note.startswith(WRONG))
    return Document(
        "viewlet, measured", _subtitle(runs), alarms, tuple(_facts(results)), tuple(_sections(results, runs))
    )


def combined(runs: Sequence[Results]) -> Results:
    """All that was found; what was measured again counts as it was last."""
    whole = Results(runs[-1].about)
    measurements = {identity(m): m for run in runs for m in run.measurements}
    series = {(s.experiment, s.query, s.contestant, s.y): s for run in runs for s in run.series}
    grids = {(g.experiment, g.title): g for run in runs for g in run.grids}
    whole.add([*measurements.values(), *series.values(), *grids.values()])
    whole.add(dict.fromkeys(note for run in runs for note in run.notes))
    return whole


def _subtitle(runs: Sequence[Results]) -> str:
    said = (
        f"{run.about.machine.processor}, {run.about.machine.cores} cores, {run.about.started[:10]}, commit "
        f"{run.about.commit}, `{run.about.command}`"
        for run in runs
    )
    return "; ".join(said)


# -- the head ----------------------------------------------------------------------------------------------------------


def _facts(results: Results) -> Iterable[Fact]:
    ratios = over_strategies(results)
    for name, meaning in HEADLINES.items():
        yield from _fact([r.value for r in ratios if r.over == name], meaning)
    yield from _fact([ratio.value for ratio in best_peers(over_peers(results)).values()], "over the best peer")
    answers, rows = count_of_checked(results.measurements)
    if answers:
        yield Fact(f"{answers:,}", "answers checked", f"of {rows:,} rows")


def _fact(ratios: Sequence[float], meaning: str) -> Iterable[Fact]:
    if len(ratios) > 1:
        yield Fact(
            times(median(ratios)),
            meaning,
            f"median of {len(ratios)} queries, {times(min(ratios))} to {times(max(ratios))}",
        )
    elif ratios:
        yield Fact(times(ratios[0]), meaning, "one query")


def best_peers(ratios: Iterable[Ratio]) -> dict[str, Ratio]:
    """For each query the peer that comes closest."""
    closest: dict[str, Ratio] = {}
    for ratio in ratios:
        if ratio.query not in closest or ratio.value < closest[ratio.query].value:
            closest[ratio.query] = ratio
    return closest


# -- sections ----------------------------------------------------------------------------------------------------------


def _sections(results: Results, runs: Sequence[Results]) -> Iterable[Section]:
    blocks = _strategy_ratios(results)
    blocks += _peer_ratios(results, PEERS, PEERS_SAY, "viewlet over each peer, for each query")
    blocks += _peer_ratios(results, RECOMPUTED, SPARK_SAYS, "viewlet on Spark over Spark SQL, for each query")
    if blocks:
        yield Section("ratios", "Ratios", tuple(blocks))
    present = {m.experiment for m in results.measurements} - {SAME_POINT}
    present |= {s.experiment for s in results.series} | {g.experiment for g in results.grids}
    for experiment in experiments(present):
        yield Section(experiment.anchor, experiment.title, tuple(_blocks(results, experiment)))
    if results.notes:
        title = "Deviations from the paper, and limits of this run"
        yield Section("deviations", title, (Bullets(tuple(results.notes)),))
    yield Section("how", "How it was measured", (HOW, *(_about(run.about) for run in runs)))


def _strategy_ratios(results: Results) -> list[Block]:
    ratios = over_strategies(results)
    if not ratios:
        return []
    printed = [(f"{ratio.over.removeprefix('paper ')} (the paper's)", ratio) for ratio in printed_ratios(results)]
    names = _furthest_first(ratio.over for ratio in ratios)
    columns = [(name, {r.query: r for r in ratios if r.over == name}) for name in names]
    beside = dict.fromkeys(name for name, _ in printed)
    columns += [(name, {r.query: r for n, r in printed if n == name}) for name in beside]
    queries = list(dict.fromkeys(m.query for m in results.of(STRATEGIES)))
    bars = _ratio_bars(f"`{OURS}` over each of the others, for each query", ratios, names)
    table = _ratio_table(queries, columns)
    same = results.of(SAME_POINT)
    said = f"{RATIOS_SAY} {SAME_POINT_SAYS}" if same else RATIOS_SAY
    return [Prose(said), bars, table, *reasons(same, "Where these ratios were taken")]


def _furthest_first(contestants: Iterable[str]) -> list[str]:
    """The strategies from the paper's depth 0 up, then the databases, then the strategies without ordered maps."""
    names = in_order(contestants)
    strategies = [name for name in names if name in FIRST]
    scanning = [name for name in names if name.endswith(SCANS)]
    return strategies[::-1] + [name for name in names if name not in (*strategies, *scanning)] + scanning


def _peer_ratios(results: Results, experiment: str, says: str, title: str) -> list[Block]:
    ratios = over_peers(results, experiment)
    if not ratios:
        return []
    names = in_order(ratio.over for ratio in ratios)
    columns = [(name, {r.query: r for r in ratios if r.over == name}) for name in names]
    queries = list(dict.fromkeys(m.query for m in results.of(experiment)))
    return [Prose(says), _ratio_bars(title, ratios, names), _ratio_table(queries, columns)]


def _ratio_bars(title: str, ratios: Sequence[Ratio], names: Sequence[str]) -> Bars:
    panels = [
        BarPanel(f"over {name}", tuple(_ratio_bar(ratio) for ratio in ratios if ratio.over == name)) for name in names
    ]
    return Bars(title, "", tuple(panels), baseline=1.0)


def _ratio_bar(ratio: Ratio) -> Bar:
    return Bar(shown_query(ratio.query), ratio.value, times(ratio.value) + BOUNDED * is_cut(ratio.theirs), "ours")


def _ratio_table(queries: Sequence[str], columns: Sequence[tuple[str, dict[str, Ratio]]]) -> Table:
    rows = tuple(
        (Cell(shown_query(query), is_word=True), *(_ratio_cell(ratios.get(query)) for _, ratios in columns))
        for query in queries
    )
    return Table("", ("query", *(f"over {name}" for name, _ in columns)), rows)


def _ratio_cell(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return Cell(NOTHING, is_faint=True)
    where = f"at {percent(ratio.at)}" if ratio.at is not None and ratio.at < 1 else ""
    return Cell(times(ratio.value) + BOUNDED * is_cut(ratio.theirs), where)


def _blocks(results: Results, experiment: Experiment) -> Iterable[Block]:
    if experiment.says:
        yield Prose(experiment.says)
    measurements = [m for m in results.measurements if m.experiment in experiment.names]
    series = [s for s in results.series if s.experiment in experiment.names]
    yield from curve_blocks(series, told={m.unit for m in measurements})
    if measurements:
        yield from measured_blocks(measurements, drawn={s.y for s in series})
    yield from grid_blocks(g for g in results.grids if g.experiment in experiment.names)


# -- how ---------------------------------------------------------------------------------------------------------------

HOW = Prose(
    "Every answer was compared with the one that DuckDB gives when it runs the SQL over the rows that are left, or, "
    "where a note says so, with that of a program that DuckDB vouches for. A wrong one ends the run. Events are made "
    "from a seed, the same for all contestants. Where one process does the work, its CPU seconds are counted, since "
    "other programs may want the cores as well: the load says how many did."
)


def _about(about: About) -> Table:
    machine = about.machine
    rows = {
        "started": about.started,
        "took": f"{about.seconds / 60:.1f} minutes",
        "command": f"`{about.command}`",
        "commit": about.commit,
        "seed": str(about.seed),
        "processor": f"{machine.processor}, {machine.cores} cores",
        "memory": f"{significant(machine.memory_gb)} GB",
        "system": machine.system,
        "compiler": machine.compiler,
        "Python": about.python,
        "packages": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
        "load before and after": f"{about.load_before:.2f} and {about.load_after:.2f} processes that wanted a core",
    }
    cells = tuple((Cell(name, is_word=True), Cell(value, is_word=True)) for name, value in rows.items())
    return Table("", ("what", "which"), cells)
