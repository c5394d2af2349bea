"""INTERVAL literals."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from viewlet.algebra.terms import MICROSECONDS_PER_DAY
from viewlet.sql.source import Source

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120}
_MICROSECONDS = {
    "WEEK": 7 * MICROSECONDS_PER_DAY,
    "DAY": MICROSECONDS_PER_DAY,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def interval(source: Source, node: exp.Interval) -> tuple[int, int]:
    """INTERVAL '3' MONTH as (months, microseconds)."""
    count = _count(source, node)
    unit = node.text("unit").upper()
    unit = unit if unit in _MONTHS or unit in _MICROSECONDS else unit.removesuffix("S")
    if unit in _MONTHS and count.denominator == 1:
        return int(count) * _MONTHS[unit], 0
    if unit in _MICROSECONDS and (count * _MICROSECONDS[unit]).denominator == 1:
        return 0, int(count * _MICROSECONDS[unit])
    raise source.error(
        node, f"INTERVAL {count} {unit or '?'} is not understood", "write INTERVAL '3' MONTH, or DAY, HOUR, …"
    )


def _count(source: Source, node: exp.Interval) -> Fraction:
    literal, sign = node.this, 1
    while isinstance(literal, (exp.Neg, exp.Paren)):
        sign = -sign if isinstance(literal, exp.Neg) else sign
        literal = literal.this
    if not isinstance(literal, exp.Literal):
        raise source.unsupported(node, "an INTERVAL that is not a literal", "write INTERVAL '3' MONTH")
    try:
        return sign * Fraction(literal.this)
    except ValueError:
        message = f"INTERVAL '{literal.this}' is not understood"
        raise source.error(node, message, "write one number and one unit: INTERVAL '3' MONTH") from None
