"""The charts, as SVG for a page: colours are the page's variables, words are text, each says what it shows."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from bench.report.blocks import Bar, BarPanel, Bars, Curve, LinePanel, Lines
from bench.report.digits import amount, percent, significant, tick
from bench.report.scale import Scale, bar_scale, fitting_scale, log_scale

WIDTH = 360  # about a phone: so letters have their size there, and panels stand side by side on a desk
LETTER = 6.6  # as wide as one is on average
AFTER_BARS = 74  # room for the value after the longest bar
ROW = 20
HEAD, FOOT = 6, 22
LINE_HEIGHT = 190
LEFT, RIGHT, BOTTOM = 46, 20, 34
LONGEST_LABEL = 20


def bars_svg(bars: Bars) -> list[str]:
    """One drawing for each panel, all on one scale."""
    values = [bar.value for panel in bars.panels for bar in panel.bars if bar.value]
    longest = max((len(_short(bar.label)) for panel in bars.panels for bar in panel.bars), default=0)
    scale = bar_scale(values, 14 + LETTER * longest, WIDTH - AFTER_BARS, bars.baseline)
    return [_bar_panel(panel, bars, scale) for panel in bars.panels]


def lines_svg(lines: Lines) -> list[str]:
    return [_line_panel(panel) for panel in lines.panels]


# -- bars --------------------------------------------------------------------------------------------------------------


def _bar_panel(panel: BarPanel, bars: Bars, scale: Scale) -> str:
    bottom = HEAD + ROW * len(panel.bars)
    parts = [_upright(scale.place(value), HEAD, bottom, tick(value)) for value in scale.ticks()]
    if bars.baseline is not None:
        place = scale.place(bars.baseline)
        parts.append(f'<line class="base" x1="{place:.1f}" y1="{HEAD}" x2="{place:.1f}" y2="{bottom}"/>')
    for row, bar in enumerate(panel.bars):
        parts += _bar(bar, HEAD + ROW * row, bars, scale)
    return _drawing(f"{panel.title}: {bars.title}", bars.unit, bottom + FOOT, parts)


def _bar(bar: Bar, top: float, bars: Bars, scale: Scale) -> Iterable[str]:
    middle = top + ROW / 2
    yield _text(scale.start - 8, middle, _short(bar.label), "label", "end")
    if bar.value is None:
        yield _text(scale.start + 4, middle, bar.text, "none")
        return
    start, end = sorted((scale.place(bars.baseline or scale.low), scale.place(bar.value)))
    told = escape(f"{bar.label}: {bar.text} {bars.unit}")
    behind = "" if bars.baseline is None or bar.value >= bars.baseline else " behind"
    shape = f'x="{start:.1f}" y="{top + 3:.1f}" width="{max(end - start, 1):.1f}" height="{ROW - 6}" rx="1.5"'
    yield f'<rect class="bar k-{bar.kind}{behind}" {shape}><title>{told}</title></rect>'
    yield _text(end + 5, middle, bar.text, "value")


def _upright(x: float, top: float, bottom: float, label: str) -> str:
    line = f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
    return line + _text(x, bottom + 12, label, "tick", "middle")


# -- lines -------------------------------------------------------------------------------------------------------------


def _line_panel(panel: LinePanel) -> str:
    points = [point for curve in panel.curves for point in curve.points]
    bottom = LINE_HEIGHT - BOTTOM
    across = _across(panel, [x for x, _ in points])
    up = fitting_scale([y for _, y in points if y > 0], bottom, HEAD + 14)
    parts = [_level(up.place(value), tick(value)) for value in up.ticks()]
    shown = _percent_tick if _is_fraction(panel.x) else tick
    parts += [_text(across.place(value), bottom + 13, shown(value), "tick", "middle") for value in across.ticks()]
    parts.append(_text(LEFT, HEAD + 3, panel.y, "axis"))
    parts.append(_text(WIDTH - RIGHT, LINE_HEIGHT - 6, panel.x, "axis", "end"))
    for curve in reversed(panel.curves):  # the first is ours, and is to lie on top
        parts += _curve(curve, panel, across, up)
    return _drawing(f"{panel.title}: {panel.y} by {panel.x}", panel.y, LINE_HEIGHT, parts)


def _across(panel: LinePanel, values: list[float]) -> Scale:
    """A stream's beginning is where the slow are stopped, so it has most of the room."""
    of = log_scale if _is_fraction(panel.x) else fitting_scale
    return of(values, LEFT, WIDTH - RIGHT)


def _percent_tick(fraction: float) -> str:
    return f"{100 * fraction:g} %"


def _is_fraction(axis: str) -> bool:
    return axis.startswith("fraction")


def _level(y: float, label: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
    return line + _text(LEFT - 5, y, label, "tick", "end")


def _curve(curve: Curve, panel: LinePanel, across: Scale, up: Scale) -> Iterable[str]:
    places = [(across.place(x), up.place(y)) for x, y in curve.points]
    last_x, last_y = curve.points[-1]
    where = percent(last_x) if _is_fraction(panel.x) else significant(last_x)
    told = escape(f"{curve.label}: {amount(last_y, panel.y)} {panel.y} at {where}")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="curve k-{curve.kind}" points="{path}"><title>{told}</title></polyline>'
    x, y = places[-1]
    yield f'<circle class="end k-{curve.kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{told}</title></circle>'


# -- both --------------------------------------------------------------------------------------------------------------


def _drawing(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    says = f"<title>{escape(title)}</title><desc>{escape(description)}; the figures are in the table.</desc>"
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img">{says}{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dy=".33em">{escape(text)}</text>'


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
