"""Casts from and to text, and of doubles to exact numbers, as DuckDB does them.

A text that is no value of a type raises ``Unreadable``, for which TRY_CAST gives NULL. One that DuckDB reads in a form
that is not taken here raises a plain ``ValueError``: TRY_CAST fails, too, as NULL would be wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from viewlet.algebra.functions.base import Function, ValueKind
from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY
from viewlet.algebra.functions.moments import make_date
from viewlet.algebra.functions.numbers import MOST_PLACES, Number, exact_double, half_away

HEADER = "functions_cast"
_SPACE = r"[ \t\n\v\f\r]*"
_DIGITS = r"\d+(?:_\d+)*"
_NUMERAL = re.compile(
    rf"{_SPACE}(?P<sign>[-+]?)(?:(?P<whole>{_DIGITS})(?:\.(?P<places>{_DIGITS})?)?|\.(?P<only>{_DIGITS}))"
    rf"(?:[eE](?P<exponent>[-+]?\d+))?{_SPACE}",
    re.ASCII,
)
_NUMERIC = frozenset("0123456789+-_.eE")
_BINARY = re.compile(rf"{_SPACE}[-+]?0[xXbB][0-9a-fA-F_]+{_SPACE}", re.ASCII)
_WILD = re.compile(rf"{_SPACE}[-+]?(nan|inf|infinity){_SPACE}", re.ASCII | re.IGNORECASE)
_DAY = r"(?P<year>\d{1,9})(?P<dash>[-/\\ ])(?P<month>\d{1,2})(?P=dash)(?P<day>\d{1,2})"
_DATE = re.compile(rf"{_SPACE}{_DAY}{_SPACE}", re.ASCII)
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<places>\d*))?)?"
_TIMESTAMP = re.compile(rf"{_SPACE}{_DAY}(?:(?:T| +){_TIME}{_SPACE})?", re.ASCII)
_LIKE_A_MOMENT = re.compile(rf"{_SPACE}(?:-?\d+[-/\\ ].*|[-+]?inf.*|epoch.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_MOST_DIGITS, _MOST_EXPONENT = 18, 99  # of an integer with an exponent
_TRUE, _FALSE = frozenset({"true", "t", "1", "yes", "y"}), frozenset({"false", "f", "0", "no", "n"})


class Unreadable(ValueError):
    """No value of the type."""


def _unreadable(text: str, type_: str) -> Unreadable:
    return Unreadable(f"{text!r} is no {type_}")


def _untaken(text: str, type_: str) -> ValueError:
    return ValueError(f"{text!r} as {type_} is in a form that is not taken")


# -- numbers -----------------------------------------------------------------------------------------------------------


def _numeral(text: str, type_: str) -> tuple[int, int, str | None]:
    """The digits of a number with their sign, how many of them are places, and the exponent."""
    parts = _NUMERAL.fullmatch(text)
    if parts is None:
        odd = _is_odd(text) or (type_ == "an integer" and _BINARY.fullmatch(text))
        raise (_untaken if odd else _unreadable)(text, type_)
    whole, places = ((parts[name] or "").replace("_", "") for name in ("whole", "places"))
    places = places or (parts["only"] or "").replace("_", "")
    return int(parts["sign"] + whole + places), len(places), parts["exponent"]


def _is_odd(text: str) -> bool:
    """DuckDB reads 1e5., 1e1_0 and, as a DOUBLE, +-5."""
    stripped = text.strip(" \t\n\v\f\r")
    return set(stripped) <= _NUMERIC and ("e" in stripped[1:].lower() or stripped[1:2] in ("+", "-"))


def read_integer(text: str) -> int:
    """A BIGINT: rounded half away from zero."""
    digits, places, exponent = _numeral(text, "an integer")
    power = -places
    if exponent is not None:
        if abs(digits) >= 10**_MOST_DIGITS or abs(int(exponent)) > _MOST_EXPONENT:
            raise _untaken(text, "an integer")
        power += int(exponent)
    value = half_away(digits * Fraction(10) ** power)
    if not -(1 << 63) <= value < 1 << 63:
        raise _unreadable(text, "a BIGINT")
    return value


def read_number(places: int, text: str) -> Number:
    """A DECIMAL of so many places, rounded half away from zero."""
    digits, given, exponent = _numeral(text, "a DECIMAL")
    if exponent is not None:
        raise _untaken(text, "a DECIMAL")
    units = half_away(Fraction(digits, 10**given) * 10**places)
    if abs(units) >= 10**MOST_PLACES:
        raise _unreadable(text, "a DECIMAL")
    value = Fraction(units, 10**places)
    return value.numerator if value.denominator == 1 else value


def read_double(text: str) -> Number:
    if _WILD.fullmatch(text):
        raise _untaken(text, "a DOUBLE")
    digits, places, exponent = _numeral(text, "a DOUBLE")
    value = float(f"{digits}e{int(exponent or 0) - places}")
    if math.isinf(value):
        raise ValueError(f"{text!r} is beyond the greatest double")
    return exact_double(value)


def read_boolean(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise _unreadable(text, "BOOLEAN")
    return text.lower() in _TRUE


def double_to_integer(value: Number) -> int:
    """The nearest BIGINT; of two, the even one."""
    whole = round(value) if math.isfinite(value) else 1 << 63
    if not -(1 << 63) <= whole < 1 << 63:
        raise Unreadable("a DOUBLE does not fit an integer")
    return whole


def double_to_number(places: int, value: Number) -> Number:
    """DOUBLE to DECIMAL: the product with a power of ten is a double, and is rounded half away from zero."""
    units = float(value) * 10.0**places
    if not abs(units) < 10.0**MOST_PLACES:
        raise Unreadable("a DOUBLE does not fit a DECIMAL")
    exact = Fraction(half_away(Fraction(units)), 10**places)
    return exact.numerator if exact.denominator == 1 else exact


def show_number(value: Number, places: int) -> str:
    """A DECIMAL with all its places."""
    units = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    point = len(units) - places
    return ("-" if value < 0 else "") + units[:point] + ("." + units[point:] if places else "")


def show_double(value: Number) -> str:
    """The fewest digits that are read back as the same double."""
    return repr(float(value) + 0.0)


# -- days and moments --------------------------------------------------------------------------------------------------


def _day(text: str, parts: re.Match[str], type_: str) -> int:
    year = int(parts["year"])
    if not 1 <= year <= 9999:
        raise _untaken(text, type_)
    try:
        return make_date(year, int(parts["month"]), int(parts["day"]))
    except ValueError:
        raise _unreadable(text, type_) from None


def read_date(text: str) -> int:
    parts = _DATE.fullmatch(text)
    return _day(text, parts, "DATE") if parts else read_timestamp(text) // MICROSECONDS_PER_DAY


def read_timestamp(text: str) -> int:
    parts = _TIMESTAMP.fullmatch(text)
    if parts is None:
        raise (_untaken if _LIKE_A_MOMENT.fullmatch(text) else _unreadable)(text, "TIMESTAMP")
    day = _day(text, parts, "TIMESTAMP")
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if hour == 24:
        raise _untaken(text, "TIMESTAMP")
    if hour > 23 or minute > 59 or second > 59:
        raise _unreadable(text, "TIMESTAMP")
    places = int((parts["places"] or "")[:6].ljust(6, "0"))
    return day * MICROSECONDS_PER_DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + places


# -- the table ---------------------------------------------------------------------------------------------------------


def trying(read: Callable[..., Any]) -> Callable[..., Any]:
    """NULL where there is no value."""

    def attempt(*args: Any) -> Any:
        try:
            return read(*args)
        except Unreadable:
            return None

    return attempt


def _both(
    name: str, read: Callable[..., Any], takes: ValueKind, gives: ValueKind, places: int = 0, cpp: str = ""
) -> tuple[Function, Function]:
    """A cast, and the same for TRY_CAST, which can fail, too."""
    plain = Function(name, read, (takes,), gives, HEADER, can_fail=True, places=places, cpp=cpp)
    return plain, replace(plain, name=f"try_{name}", meaning=trying(read), can_be_null=True, cpp=cpp and f"try_{cpp}")


_TO_NUMBERS: tuple[tuple[str, Callable[..., Any], ValueKind], ...] = (
    ("read_number", read_number, "text"),
    ("double_to_number", double_to_number, "double"),
)
CASTS = (
    *_both("read_integer", read_integer, "text", "integer"),
    *_both("read_double", read_double, "text", "double"),
    *_both("read_boolean", read_boolean, "text", "boolean"),
    *_both("read_date", read_date, "text", "integer"),
    *_both("read_timestamp", read_timestamp, "text", "integer"),
    *_both("double_to_integer", double_to_integer, "double", "integer"),
    *(
        function
        for name, read, takes in _TO_NUMBERS
        for n in range(MOST_PLACES + 1)
        for function in _both(f"{name}_{n}", partial(read, n), takes, "number", n, name)
    ),
    Function("show_number", show_number, ("number", "integer"), "text", HEADER),
    Function("show_double", show_double, ("double",), "text", HEADER),
)
