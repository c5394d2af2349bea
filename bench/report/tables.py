"""Measurements, curves and grids as tables and charts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from bench.report.blocks import Bar, BarPanel, Bars, Block, Bullets, Cell, Curve, LinePanel, Lines, Prose, Table
from bench.report.digits import NOTHING, amount, is_rate, percent, significant
from bench.report.ratios import EVERY_EVENT, by_query, is_cut, is_printed
from bench.results import Grid, Measurement, Series
from viewlet.workloads.queries import PAPER_QUERIES

FIRST = ("optimized", "cost", "naive", "classical", "reevaluate")  # after viewlet itself, before all others
SCANS = "-scans"  # how the names of strategies end that do without ordered access paths
OTHER_COLOURS = 5
CURVE_TITLE = "The beginning, the middle and the end of each curve"
CURVE_HEADER = ("query", "contestant", "what", "first", "middle", "last")
BOUNDED = "†"
EXPLAINED = "The small print says by how much the worst repetition fell behind the best, which is the one shown."
BOUNDED_EXPLAINED = f"{BOUNDED} stopped by the clock, at the share of the stream in the small print."


def shown_query(query: str) -> str:
    """The paper's queries as the paper writes them."""
    return query.upper() if query in PAPER_QUERIES else query


def in_order(contestants: Iterable[str]) -> list[str]:
    """viewlet, its strategies, then the others as they came; what the paper printed last."""

    def rank(name: str) -> int:
        if name in FIRST:
            return FIRST.index(name)
        return -1 if name.startswith("viewlet") else len(FIRST) + name.startswith("paper")

    return sorted(dict.fromkeys(contestants), key=rank)


def bar_kinds(contestants: Sequence[str]) -> dict[str, str]:
    """Ours and the strategies have their colours, all others one: they are told apart by their names."""
    kinds = {name: _known_kind(name) or "plain" for name in contestants}
    return kinds if set(kinds.values()) - {"plain"} else dict.fromkeys(contestants, "ours")


def curve_kinds(contestants: Sequence[str]) -> dict[str, str]:
    """A colour for each, as far as they go."""
    others = [name for name in contestants if not _known_kind(name)]
    return {name: _known_kind(name) or f"other-{others.index(name) % OTHER_COLOURS + 1}" for name in contestants}


def _known_kind(name: str) -> str:
    if name == "optimized" or name.startswith("viewlet"):
        return "ours"
    if name.startswith("paper"):
        return "paper"
    if name.endswith(SCANS):
        return f"{_known_kind(name.removesuffix(SCANS))} pale"
    return name if name in FIRST else ""


# -- measurements ------------------------------------------------------------------------------------------------------


def measured_blocks(measurements: Sequence[Measurement], drawn: Collection[str]) -> list[Block]:
    """A chart and a table for each unit and freshness, then the reasons and the notes; of units that are ``drawn`` as
    curves, the table only."""
    blocks: list[Block] = []
    for (unit, freshness), group in _groups(measurements).items():
        title = f"{unit}, the view fresh after {freshness}" if is_rate(unit) else unit
        blocks += [table_of(group)] if unit in drawn else [bars_of(group, title), table_of(group)]
    measured = [m for m in measurements if m.outcome == "measured"]
    if any(m.repetitions > 1 for m in measured):
        blocks.append(Prose(EXPLAINED))
    if any(map(is_cut, measured)):
        blocks.append(Prose(BOUNDED_EXPLAINED))
    return blocks + reasons(measurements)


def _groups(measurements: Sequence[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """By unit and freshness. What the paper printed stands beside what was measured, whatever it calls the unit."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for one in sorted(measurements, key=lambda m: (is_printed(m), m.freshness != EVERY_EVENT)):
        key = next(iter(groups)) if is_printed(one) and groups else (one.unit, one.freshness)
        groups.setdefault(key, []).append(one)
    return groups


def bars_of(measurements: Sequence[Measurement], title: str) -> Bars:
    """A panel for each query; where there is but one contestant, a bar for each query."""
    names = in_order(m.contestant for m in measurements)
    colours = bar_kinds(names)
    unit = measurements[0].unit
    if len(names) == 1:
        bars = tuple(Bar(shown_query(m.query), m.value, _bar_text(m), colours[m.contestant]) for m in measurements)
        return Bars(title, unit, (BarPanel(names[0], bars),))
    panels = []
    for query, group in by_query(measurements).items():
        ranked = sorted(group, key=lambda m: names.index(m.contestant))
        bars = tuple(Bar(m.contestant, m.value, _bar_text(m), colours[m.contestant]) for m in ranked)
        panels.append(BarPanel(shown_query(query), bars))
    return Bars(title, unit, tuple(panels))


def _bar_text(measurement: Measurement) -> str:
    return (
        amount(measurement.value, measurement.unit) + BOUNDED * is_cut(measurement)
        if measurement.value is not None
        else measurement.outcome
    )


def table_of(measurements: Sequence[Measurement]) -> Table:
    names = in_order(m.contestant for m in measurements)
    rows = []
    for query, group in by_query(measurements).items():
        there = {m.contestant: m for m in group}
        rows.append((Cell(shown_query(query), is_word=True), *(cell_of(there.get(name)) for name in names)))
    return Table("", ("query", *names), tuple(rows))


def cell_of(measurement: Measurement | None) -> Cell:
    if measurement is None:
        return Cell(NOTHING, is_faint=True)
    if measurement.value is None:
        return Cell(measurement.outcome, is_faint=True)
    aside = [f"noise {percent(measurement.noise)}"] if measurement.repetitions > 1 else []
    if is_cut(measurement):
        aside.append(f"at {percent(measurement.reached)}")
    return Cell(_bar_text(measurement), ", ".join(aside))


def reasons(measurements: Iterable[Measurement], title: str = "Notes on single figures") -> list[Block]:
    """Why something is not there, in full view; what else must be known, folded."""
    told = [m for m in measurements if m.note or m.outcome != "measured"]
    absent = _grouped(m for m in told if m.outcome != "measured")
    notes = _grouped(m for m in told if m.outcome == "measured")
    blocks: list[Block] = []
    if absent:
        blocks += [Prose("Not measured, and why:"), Bullets(absent)]
    return [*blocks, Bullets(notes, title)] if notes else blocks


def _grouped(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """What is said of several queries or contestants alike is said once."""
    queries: dict[tuple[str, str], list[str]] = {}
    for one in measurements:
        said = one.note if one.outcome == "measured" else f"{one.outcome}: {one.note or 'no reason was recorded'}"
        queries.setdefault((f"`{one.contestant}`", said), []).append(shown_query(one.query))
    alike: dict[tuple[str, str], list[str]] = {}
    for (who, said), of in queries.items():
        alike.setdefault((", ".join(dict.fromkeys(of)), said), []).append(who)
    return tuple(f"{', '.join(who)}, {of}: {said}" for (of, said), who in alike.items())


# -- curves and grids --------------------------------------------------------------------------------------------------


def curve_blocks(series: Sequence[Series], told: Collection[str]) -> list[Block]:
    """For each quantity a panel for every query, and one table of all that is not ``told`` in another."""
    shown = [one for one in series if one.points]
    if not shown:
        return []
    colours = curve_kinds(in_order(one.contestant for one in shown))
    panels: dict[tuple[str, str, str], list[Series]] = {}
    for one in shown:
        panels.setdefault((one.y, one.x, one.query), []).append(one)
    blocks: list[Block] = []
    for y, x in dict.fromkeys((y, x) for y, x, _ in panels):
        drawn = tuple(
            LinePanel(shown_query(query), x, y, tuple(_curves(group, colours)))
            for (of, by, query), group in panels.items()
            if (of, by) == (y, x)
        )
        blocks.append(Lines(f"{y} by {x}", drawn))
    rows = [_curve_rows(query, y, x, group) for (y, x, query), group in panels.items() if y not in told]
    return [*blocks, Table(CURVE_TITLE, CURVE_HEADER, tuple(chain(*rows)), is_folded=True)] if rows else blocks


def _curves(group: Sequence[Series], colours: dict[str, str]) -> Iterable[Curve]:
    for name in in_order(one.contestant for one in group):
        yield from (Curve(name, colours[name], one.points) for one in group if one.contestant == name)


def _curve_rows(query: str, y: str, x: str, group: Sequence[Series]) -> Iterable[tuple[Cell, ...]]:
    for curve in _curves(group, dict.fromkeys((one.contestant for one in group), "")):
        places = sorted({0, len(curve.points) // 2, len(curve.points) - 1})
        cells = [_point(curve.points[place], x, y) for place in places]
        cells += [Cell("")] * (3 - len(cells))
        names = (Cell(shown_query(query), is_word=True), Cell(curve.label, is_word=True), Cell(y, is_word=True))
        yield (*names, *cells)


def _point(point: tuple[float, float], x: str, y: str) -> Cell:
    where = percent(point[0]) if x.startswith("fraction") else significant(point[0])
    return Cell(amount(point[1], y), f"at {where}")


def grid_blocks(grids: Iterable[Grid]) -> list[Block]:
    blocks: list[Block] = []
    for grid in grids:
        rows = tuple(tuple(Cell(shown_query(cell), is_word=True) for cell in row) for row in grid.rows)
        blocks += [Table(grid.title, grid.columns, rows)] if rows else [Prose(grid.title)]
        blocks += [Prose(grid.note)] if grid.note else []
    return blocks


def count_of_checked(measurements: Iterable[Measurement]) -> tuple[int, int]:
    """How many answers were compared with the referee's, and how many rows they had."""
    checked = [m for m in measurements if m.rows_checked and not is_printed(m)]
    return len(checked), sum(m.rows_checked for m in checked)
