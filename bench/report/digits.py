"""Numbers as people read them: three digits that mean something, and a unit."""

from __future__ import annotations

import math

DIGITS = 3
SIZES = ((1e9, " G"), (1e6, " M"), (1e3, " k"))
NOTHING = "–"


def significant(value: float) -> str:
    """Three digits, more only before the point: 0.0123, 4.56, 78.9, 12,345."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    before = math.floor(math.log10(abs(value))) + 1
    rounded = round(value, DIGITS - before)
    before = math.floor(math.log10(abs(rounded))) + 1  # 9.996 has become 10.0
    return f"{rounded:,.{max(DIGITS - before, 0)}f}" if before > -DIGITS else f"{value:.2e}"


def scaled(value: float) -> str:
    """27.4 M, 8.24 k, 266: what is said of rates."""
    for size, suffix in SIZES:
        if abs(value) >= size * 0.9995:
            return f"{significant(value / size)}{suffix}"
    return significant(value)


def amount(value: float | None, unit: str) -> str:
    """A rate with k and M; a time, a size or a count in digits."""
    if value is None:
        return NOTHING
    return scaled(value) if is_rate(unit) else significant(value)


def times(ratio: float) -> str:
    """12,300×, 45.6×, 0.87×."""
    return f"{scaled(ratio) if abs(ratio) >= 1e6 else significant(ratio)}×"


def percent(fraction: float) -> str:
    """Two digits: 45 %, 3.4 %, 0.012 %."""
    shown = 100 * fraction
    if shown >= 10 or shown == round(shown):
        return f"{shown:.0f} %"
    return f"{shown:.1f} %" if shown >= 1 else f"{float(f'{shown:.2g}'):.10f}".rstrip("0") + " %"


def is_rate(unit: str) -> bool:
    """Of a rate, more is better; of a time or a size, less is."""
    return "/" in unit


def tick(value: float) -> str:
    """On an axis: 0.1, 1, 10, 1 k, 10 M."""
    for size, suffix in SIZES:
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"
