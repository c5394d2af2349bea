"""Functions of numbers: an exact function stays exact, and one of doubles computes with the doubles that it is given.

Values that only the native engine takes, infinities and NaN, come as ``float``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import and_, or_, xor
from struct import pack, unpack
from typing import Any

from viewlet.algebra.functions.base import Function, ValueKind

MOST_PLACES = 38
NO_VALUE = "a function of numbers has no value for some argument"
Number = int | Fraction


def exact_double(value: float) -> Number:
    """A finite double as the number that it is."""
    return int(value) if value.is_integer() else Fraction(value)


def _computed(value: float, given: tuple[float, ...]) -> Number:
    """Only an infinity or a NaN may lead to one."""
    if math.isfinite(value):
        return exact_double(value)
    if all(map(math.isfinite, given)) or (math.isnan(value) and not any(map(math.isnan, given))):
        raise ValueError(NO_VALUE)
    return value  # type: ignore[return-value]


def of_doubles(compute: Callable[..., float]) -> Callable[..., Number]:
    """A function of exact numbers that computes with doubles."""

    def meaning(*args: Number) -> Number:
        given = tuple(map(float, args))
        try:
            return _computed(compute(*given), given)
        except (ValueError, OverflowError):
            raise ValueError(NO_VALUE) from None

    return meaning


# -- rounding ----------------------------------------------------------------------------------------------------------


def half_away(value: Number) -> int:
    """The nearest integer; of two, the one farther from zero."""
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return size if value >= 0 else -size


def round_number(places: int, value: Number) -> Number:
    return _shortened(Fraction(half_away(value * 10**places), 10**places))


def trunc_number(places: int, value: Number) -> Number:
    return _shortened(Fraction(math.trunc(value * 10**places), 10**places))


def _shortened(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value


def _away(value: float) -> float:
    """C's ``round``; from 2⁵² on every double is whole."""
    if not math.isfinite(value) or abs(value) >= 2.0**52:
        return value
    whole = float(math.floor(abs(value)))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


def _ceil(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


def _truncated(value: float) -> float:
    return float(math.trunc(value)) if math.isfinite(value) else value


def power_of_ten(places: float) -> float:
    """10ⁿ as C's ``pow`` has it."""
    try:
        return math.pow(10.0, places)
    except OverflowError:
        return math.inf


def _at_places(nearest: Callable[[float], float], value: float, places: float) -> float:
    """DuckDB's ROUND and TRUNC of a DOUBLE: scaled, made whole and scaled back, all in doubles."""
    unit = power_of_ten(abs(places))
    if places < 0:
        scaled = nearest(value / unit) * unit
        return scaled if math.isfinite(scaled) else 0.0
    scaled = nearest(value * unit) / unit
    return scaled if math.isfinite(scaled) else value


# -- doubles -----------------------------------------------------------------------------------------------------------


def _log(base: float, value: float) -> float:
    below = math.log10(base)
    if below == 0:
        raise ValueError("there is no logarithm to the base 1")
    return math.log10(value) / below


def nearest_single(value: float) -> float:
    """The nearest REAL. A sum, product or quotient of two is none the worse for being rounded to a double first."""
    return value if not math.isfinite(value) else float(unpack("<f", pack("<f", value))[0])


def _cbrt(value: float) -> float:
    """``math.cbrt`` is there from Python 3.11 on."""
    if value == 0 or not math.isfinite(value):
        return value
    root = math.copysign(math.pow(abs(value), 1 / 3), value)
    return root - (root * root * root - value) / (3 * root * root)


def fmod(value: Number, divisor: Number) -> Number | None:
    return None if divisor == 0 else of_doubles(math.fmod)(value, divisor)


# -- integers ----------------------------------------------------------------------------------------------------------

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def within(value: Number, low: Number, high: Number) -> Number:
    """A cast to a type that holds the numbers from ``low`` to ``high``."""
    if not low <= value <= high:
        raise ValueError("a number does not fit the type of a cast or a function")
    return value


def try_within(value: Number, low: Number, high: Number) -> Number | None:
    return value if low <= value <= high else None


def quotient(value: int, divisor: int) -> int | None:
    """Towards zero."""
    if divisor == 0:
        return None
    size = abs(value) // abs(divisor)
    return int(within(size if (value < 0) == (divisor < 0) else -size, _LEAST, _GREATEST))


def remainder(value: Number, divisor: Number) -> Number | None:
    """With the sign of the value."""
    if divisor == 0:
        return None
    size = abs(Fraction(value)) % abs(Fraction(divisor))
    return _shortened(size if value >= 0 else -size)


def sign(value: Number) -> int:
    return (value > 0) - (value < 0)


def shift_left(value: int, by: int, bits: int) -> int:
    """Of an integer with so many bits."""
    if value < 0 or by < 0:
        raise ValueError("cannot shift a negative number, or by one, to the left")
    if value == 0:
        return 0
    if by >= bits or value >= 1 << (bits - 1 - by):
        raise ValueError("a number shifted to the left does not fit its type")
    return value << by


def shift_right(value: int, by: int, bits: int) -> int:
    return value >> by if 0 <= by < bits else 0


def greatest(a: Any, b: Any) -> Any:
    return b if a < b else a


def least(a: Any, b: Any) -> Any:
    return b if b < a else a


# -- the table ---------------------------------------------------------------------------------------------------------

HEADER = "functions_number"
_OF_ONE_DOUBLE: dict[str, Callable[..., float]] = {  # by the names that C has for them
    "sqrt": math.sqrt,
    "cbrt": getattr(math, "cbrt", _cbrt),
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
}


def _doubles(name: str, compute: Callable[..., float], *takes: ValueKind, cpp: str = "") -> Function:
    return Function(name, of_doubles(compute), takes, "double", HEADER, can_fail=True, cpp=cpp)


def _whole(name: str, compute: Callable[[float], float]) -> Function:
    """A double made whole."""
    meaning = of_doubles(compute)
    return Function(name, meaning, ("double",), "double", HEADER, rises=True, cpp=f"::{name.removesuffix('_double')}")


def _integers(name: str, meaning: Callable[..., int | None], arguments: int, fails: bool, null: bool) -> Function:
    return Function(name, meaning, _INTEGERS[:arguments], "integer", HEADER, can_fail=fails, can_be_null=null)


_INTEGERS: tuple[ValueKind, ...] = ("integer", "integer", "integer")
_SAME: tuple[ValueKind, ...] = ("same", "same")
_LIMITS: tuple[ValueKind, ...] = ("same", "same", "same")
NUMBERS = (
    *(_doubles(f"{n}_double", f, "double", cpp=f"computed<::{n}>") for n, f in _OF_ONE_DOUBLE.items()),
    _doubles("atan2_double", math.atan2, "double", "double", cpp="computed<::atan2>"),
    _doubles("pow_double", math.pow, "double", "double", cpp="computed<::pow>"),
    _doubles("log_base", _log, "double", "double"),
    replace(_doubles("single", nearest_single, "double"), rises=True),
    Function("fmod_double", fmod, ("double", "double"), "double", HEADER, can_fail=True, can_be_null=True),
    _whole("floor_double", _floor),
    _whole("ceil_double", _ceil),
    _whole("trunc_double", _truncated),
    _whole("round_double", _away),
    _doubles("round_places", partial(_at_places, _away), "double", "integer"),
    _doubles("trunc_places", partial(_at_places, _truncated), "double", "integer"),
    Function("floor_number", math.floor, ("number",), "number", HEADER, rises=True),
    Function("ceil_number", math.ceil, ("number",), "number", HEADER, rises=True),
    *(
        Function(f"{name}_{n}", partial(meaning, n), ("number",), "number", HEADER, places=n, rises=True, cpp=name)
        for name, meaning in (("round_number", round_number), ("trunc_number", trunc_number))
        for n in range(MOST_PLACES)
    ),
    Function("within", within, _LIMITS, "last", HEADER, can_fail=True),
    Function("try_within", try_within, _LIMITS, "last", HEADER, can_be_null=True),
    Function("remainder", remainder, _SAME, "same", HEADER, can_be_null=True),
    _integers("quotient", quotient, 2, fails=True, null=True),
    Function("sign", sign, ("same",), "integer", HEADER, rises=True, cpp="sign_of"),
    _integers("bit_and", and_, 2, fails=False, null=False),
    _integers("bit_or", or_, 2, fails=False, null=False),
    _integers("bit_xor", xor, 2, fails=False, null=False),
    _integers("shift_left", shift_left, 3, fails=True, null=False),
    _integers("shift_right", shift_right, 3, fails=False, null=False),
    Function("greatest", greatest, _SAME, "same", HEADER),
    Function("least", least, _SAME, "same", HEADER),
    Function("greatest_text", greatest, ("text", "text"), "text", HEADER),
    Function("least_text", least, ("text", "text"), "text", HEADER),
)
