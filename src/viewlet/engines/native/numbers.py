"""Numbers between the algebra, whose values are exact, and the machine code, which has kinds for them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

from viewlet.algebra.terms import Number, Scalar
from viewlet.engines.native.module import Sum
from viewlet.program.encoding import Stored, decode
from viewlet.program.kinds import DOUBLE, Exact, Kind, Unfit


def encode_cell(value: Scalar, kind: Kind) -> Any:
    """A cell of a key; a Fraction where the key cannot hold the value."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if kind == DOUBLE:
        return float(value)
    scaled = value * 10**kind.scale if isinstance(kind, Exact) else value
    return int(scaled) if scaled == int(scaled) else Fraction(scaled)


def decode_cell(cell: Stored, scale: int) -> Scalar:
    return cast(Scalar, cell) if isinstance(cell, float) and not math.isfinite(cell) else decode(cell, scale)


def encode_sum(value: Number, kind: Kind) -> Sum:
    if isinstance(kind, Exact):
        return int(value * 10**kind.scale)
    if isinstance(value, float):
        return value, 0.0
    try:
        hi = float(value)
    except OverflowError:
        raise Unfit("a sum of doubles is beyond the greatest of them") from None
    return hi, float(Fraction(value) - Fraction(hi))


def decode_sum(value: Sum, kind: Kind) -> Number:
    if isinstance(value, int):
        assert isinstance(kind, Exact)
        return cast(Number, decode(value, kind.scale))
    hi, lo = value
    if not math.isfinite(hi):
        return cast(Number, hi)
    return cast(Number, decode(Fraction(hi) + Fraction(lo)))
