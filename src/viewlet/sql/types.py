"""Typing rules: DuckDB's, on the types of :mod:`viewlet.schema`."""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from viewlet.algebra.functions.calendar import EPOCH, MICROSECONDS_PER_DAY
from viewlet.algebra.terms import Const, Op, Term, date, nearest_double, number, string, timestamp
from viewlet.program.limits import unscaled_range
from viewlet.schema import (
    BIGINT,
    BITS,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SIGNED,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNSIGNED,
    UUID,
    VARCHAR,
    Type,
    decimal,
)
from viewlet.sql.expr import Expr, constant, rounded, strict
from viewlet.sql.other_types import as_doubles, as_texts, enum_place, enum_text, literal, may_be_single, to_single

MAX_PRECISION = 38
LONGEST_SHIFT = (dt.date.max - dt.date.min).days  # that a date can take and still be one
# DuckDB's SUM of integers has 38 digits: for us a BIGINT, but a DECIMAL beside it has as many places as in DuckDB
_WIDE = Type("BIGINT", MAX_PRECISION)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMESTAMP = re.compile(_DATE.pattern + r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?", re.ASCII)
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # of an integer by its bits
_OF_BITS: dict[int, Type] = {bits: Type(kind) for kind, bits in SIGNED.items()}


def as_decimal(type_: Type) -> Type:
    """INTEGER is DECIMAL(10,0), BIGINT DECIMAL(19,0) and a SUM of them DECIMAL(38,0) next to a DECIMAL."""
    return type_ if type_.kind == "DECIMAL" else decimal(type_.precision or _DIGITS[BITS[type_.kind]], 0)


def shown(type_: Type) -> Type:
    """A type as a view has it, or as the user writes it."""
    return BIGINT if type_ == _WIDE else type_


def arithmetic_type(symbol: str, left: Type, right: Type) -> Type | None:
    """The type of l + r, l - r, l * r, l / r of numbers, or None where DECIMAL cannot hold the digits."""
    kinds = {left.kind, right.kind}
    if symbol == "/" or "DOUBLE" in kinds:
        return DOUBLE
    if "DECIMAL" not in kinds:
        return _wider(left, right) or BIGINT
    a, b = as_decimal(left), as_decimal(right)
    if symbol == "*":
        precision, scale = a.precision + b.precision, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    return decimal(min(precision, MAX_PRECISION), scale) if scale <= MAX_PRECISION else None


def _wider(left: Type, right: Type) -> Type | None:
    """The one of two integer types that holds all of the other; None where a sign is in the way."""
    wide, narrow = sorted((left, right), key=lambda t: as_decimal(t).precision, reverse=True)
    if (wide.kind in SIGNED) == (narrow.kind in SIGNED):
        return wide
    signed, unsigned = (wide, narrow) if wide.kind in SIGNED else (narrow, wide)
    return signed if SIGNED[signed.kind] > UNSIGNED[unsigned.kind] else None


def _common_integer(left: Type, right: Type) -> Type:
    """Where a sign is in the way, the signed type of twice the bits of the other."""
    return _wider(left, right) or _OF_BITS[2 * max(UNSIGNED.get(left.kind, 0), UNSIGNED.get(right.kind, 0))]


def with_literals(parts: Sequence[Expr]) -> list[Expr]:
    """Beside other integers a whole number that is written out has their type, if it fits: ``small + 1`` is small."""
    others = [p.type for p in parts if not _is_written(p) and p.type is not None]
    if not others or not all(t.is_integer for t in others):
        return list(parts)
    type_ = reduce(_common_integer, others)
    low, high = unscaled_range(shown(type_))

    def fits(part: Expr) -> bool:
        value = part.term.value if isinstance(part.term, Const) else None
        return _is_written(part) and isinstance(value, int) and low <= value <= high

    return [replace(p, type=type_) if fits(p) else p for p in parts]


def _is_written(part: Expr) -> bool:
    return part.is_literal and not part.is_column


def common_type(left: Type | None, right: Type | None) -> Type | None:
    """The type of both together (CASE, COALESCE, UNION ALL), or None where there is none; None fits everything.

    Two DECIMALs that need more than 38 digits keep those before the point: see :func:`is_exact_as`.
    """
    if left is None or right is None or left == right:
        return left or right
    if REAL in (left, right):
        other = right if left == REAL else left
        return DOUBLE if other == DOUBLE else REAL if other.is_numeric else None
    if "ENUM" in (left.kind, right.kind) and {left.held.kind, right.held.kind} <= {"INTEGER", "VARCHAR"}:
        return VARCHAR if all(t.kind == "ENUM" or t == VARCHAR for t in (left, right)) else None
    if left.is_numeric and right.is_numeric:
        kinds = {left.kind, right.kind}
        if "DOUBLE" in kinds:
            return DOUBLE
        if "DECIMAL" not in kinds:
            return _common_integer(left, right)
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        if kinds == {"DECIMAL"}:  # an integer takes no places from a DECIMAL
            scale = min(scale, MAX_PRECISION - whole)
        return decimal(min(whole + scale, MAX_PRECISION), scale)
    if {left.kind, right.kind} <= {"DATE", "TIMESTAMP"}:
        return TIMESTAMPTZ if left.zoned or right.zoned else TIMESTAMP
    return None


def is_exact_as(expr: Expr, type_: Type | None) -> bool:
    """No digit after the point is lost where ``expr`` becomes a DECIMAL; of a constant, only those it has count.

    A REAL has fewer digits than most, and it is known to which of them a number is rounded.
    """
    if type_ == REAL:
        return may_be_single(expr)
    if expr.type is None or type_ is None or {expr.type.kind, type_.kind} != {"DECIMAL"}:
        return True
    if isinstance(expr.term, Const):
        value = expr.term.value
        return not isinstance(value, Fraction) or (value * 10**type_.scale).denominator == 1
    return expr.type.scale <= type_.scale


def limits_of(type_: Type) -> tuple[Expr, Expr]:
    """The least and the greatest number of an exact type."""
    low, high = unscaled_range(shown(type_))
    return tuple(constant(number(Fraction(n, 10**type_.scale)), type_) for n in (low, high))  # type: ignore[return-value]


def sum_type(type_: Type) -> Type:
    match type_.kind:
        case "DECIMAL":
            return decimal(MAX_PRECISION, type_.scale)
        case "DOUBLE":
            return DOUBLE
        case _:
            return _WIDE


def number_literal(text: str) -> Expr | None:
    """1 is INTEGER or BIGINT, 1.5 DECIMAL, 1e3 DOUBLE; None where it does not fit."""
    text = text.replace("_", "")
    if "e" in text.lower():
        value = float(text)
        return constant(number(Fraction(value)), DOUBLE) if math.isfinite(value) else None
    whole, _, places = text.partition(".")
    digits = max(len(whole) + len(places), 1)  # 0.5 is a DECIMAL(2,1)
    if digits > MAX_PRECISION:  # looked at first: Python reads no number of thousands of digits
        return None
    exact = Fraction(text)
    if "." in text:
        return constant(number(exact), decimal(digits, len(places)))
    if exact >= 2**63:
        return None
    return replace(constant(number(exact), INTEGER if exact < 2**31 else BIGINT), is_literal=True)


def string_literal(text: str) -> Expr:
    return constant(Const(text, "string"), VARCHAR)


def date_literal(text: str) -> Expr | None:
    """YYYY-MM-DD."""
    match = _DATE.fullmatch(text.strip())
    try:
        return match and constant(date((dt.date(*map(int, match.groups())) - EPOCH).days), DATE)
    except ValueError:
        return None


def timestamp_literal(text: str) -> Expr | None:
    """YYYY-MM-DD, or YYYY-MM-DD HH:MM:SS with up to six places."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, places = match.groups(default="0")
    micro = int(places.ljust(6, "0"))
    try:
        moment = dt.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro)
    except ValueError:
        return None
    return constant(timestamp((moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)), TIMESTAMP)


def uuid_literal(text: str) -> Expr | None:
    try:
        return constant(string(str(uuid.UUID(text))), UUID)
    except ValueError:
        return None


_OFFSET = re.compile(r"(.*?)\s*(Z|[-+]\d{2}(?::\d{2})?)", re.ASCII)


def zoned_literal(text: str) -> Expr | None:
    """The same, behind it perhaps how far its place is ahead of UTC: +02, -03:30 or Z."""
    match = _OFFSET.fullmatch(text.strip())
    local = timestamp_literal(match[1]) if match and ":" in match[1] else None
    if match is None or local is None:
        known = timestamp_literal(text)
        return known and replace(known, type=TIMESTAMPTZ)
    hours, _, minutes = match[2].removeprefix("Z").partition(":")
    ahead = 60 * int(hours or 0) + int(minutes or 0) * (-1 if hours.startswith("-") else 1)
    if abs(ahead) >= 24 * 60 or int(minutes or 0) >= 60:
        return None
    return retagged(replace(shift(local, 0, -ahead * 60_000_000), type=TIMESTAMPTZ))


def retag(term: Term, type_: Type) -> Term:
    """A constant that was computed as a number shows as the date or time it is, if there is such a day."""
    if not isinstance(term, Const) or not isinstance(term.value, int) or type_.kind not in ("DATE", "TIMESTAMP"):
        return term
    if not is_in_calendar(term, type_):
        return term
    return date(term.value) if type_.kind == "DATE" else timestamp(term.value)


def is_in_calendar(term: Term, type_: Type) -> bool:
    """No constant day before the year 1 or after 9999, which no value can be."""
    if not isinstance(term, Const) or not isinstance(term.value, int) or type_.kind not in ("DATE", "TIMESTAMP"):
        return True
    days = term.value if type_.kind == "DATE" else term.value // MICROSECONDS_PER_DAY
    return dt.date.min.toordinal() <= days + EPOCH.toordinal() <= dt.date.max.toordinal()


def retagged(expr: Expr) -> Expr:
    assert expr.type is not None
    return replace(expr, term=retag(expr.term, expr.type), bare=retag(expr.bare, expr.type))


def to_timestamp(expr: Expr) -> Expr:
    """A DATE as the TIMESTAMP of its midnight."""
    return retagged(strict("*", TIMESTAMP, expr, constant(number(MICROSECONDS_PER_DAY), BIGINT)))


def to_double(expr: Expr) -> Expr:
    """The double nearest to an exact number; an INTEGER is one."""
    if expr.type is not None and expr.type.kind in ("BIGINT", "DECIMAL"):
        return strict("double", DOUBLE, expr)
    return replace(expr, type=DOUBLE)


def convert(expr: Expr, type_: Type | None) -> Expr:
    """``expr`` as a ``type_`` that it fits (see :func:`common_type`)."""
    if expr.type is not None and type_ is not None and expr.type.kind == "DATE" and type_.kind == "TIMESTAMP":
        return replace(to_timestamp(expr), type=type_)
    if type_ == VARCHAR and expr.type is not None and expr.type.kind == "ENUM":
        return enum_text(expr)
    if type_ == REAL:
        return to_single(expr)
    return to_double(expr) if type_ == DOUBLE else replace(expr, type=type_)


def comparable(left: Expr, right: Expr, by_order: bool) -> tuple[Expr, Expr] | None:
    """Both sides of a comparison as numbers or strings that may be compared, or None.

    ``by_order``: the comparison is more than one of equality.
    """
    left, right = _read_literal(left, right, by_order), _read_literal(right, left, by_order)
    match left.type, right.type:
        case None, _:
            return left, right
        case _, None:
            return left, right
        case Type("DATE"), Type("TIMESTAMP"):
            return _at_day(left, right)
        case Type("TIMESTAMP"), Type("DATE"):
            day, moment = _at_day(right, left)
            return moment, day
        case a, b if REAL in (a, b) and DOUBLE in (a, b):
            return _as_doubles(*as_doubles([left, right]))
        case a, b if REAL in (a, b) and (a.is_numeric or b.is_numeric):
            return (to_single(left), to_single(right)) if may_be_single(left) and may_be_single(right) else None
        case a, b if "ENUM" in (a.kind, b.kind) and a != b:
            return as_texts(left, right) if common_type(a, b) == VARCHAR else None
        case a, b if DOUBLE in (a, b) and a.is_numeric and b.is_numeric:
            return _as_doubles(left, right)
        case a, b if a.uuid != b.uuid or (a.is_nested and a != b):
            return None
        case a, b if a.kind == b.kind or (a.is_numeric and b.is_numeric):
            return left, right
    return None


def alike(operands: list[Expr]) -> list[Expr]:
    """The operands of BETWEEN or IN, which are compared as one type: next to one DOUBLE every number becomes one.

    Where the first is a DOUBLE, each comparison with it sees to that. Without a DOUBLE, a REAL is such a neighbour.
    """
    types = [e.type for e in operands]
    if REAL in types and DOUBLE in types:
        return alike(as_doubles(operands))
    if REAL in types and all(e.type == REAL or e.type is None or e.type.is_numeric for e in operands):
        return [to_single(e) for e in operands] if all(map(may_be_single, operands)) else operands
    if operands[0].type == DOUBLE or all(e.type != DOUBLE for e in operands):
        return operands
    return [to_double(e) if e.type is not None and e.type.is_numeric else e for e in operands]


def _as_doubles(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Sums and products of doubles stay exact, for the compiler to see, unless they meet a literal with places."""
    places = any(isinstance(e.term, Const) and isinstance(e.term.value, Fraction) for e in (left, right))
    left, right = (rounded(e) if places or e.is_column or _is_between(e.bare) else e for e in (left, right))
    return to_double(left), to_double(right)


def summands(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both as doubles. A quotient beside what is one is rounded as well: ``x - avg(x)`` of one x is 0."""
    exact = _is_between(left.bare), _is_between(right.bare)
    if exact == (True, False) and not isinstance(right.term, Const):
        left = rounded(left)
    if exact == (False, True) and not isinstance(left.term, Const):
        right = rounded(right)
    return to_double(left), to_double(right)


def _is_between(term: Term) -> bool:
    """A quotient, or a multiple of 0.1, lies between two doubles and would never be equal to one."""
    match term:
        case Const(int() | Fraction() as value):
            return nearest_double(value) != value
        case Op(name, args):
            return name == "/" or (name != "double" and any(map(_is_between, args)))
    return False


def _at_day(day: Expr, moment: Expr) -> tuple[Expr, Expr]:
    """Against a constant midnight the DATE stays a plain column, which the compiler can look up."""
    match moment.term:
        case Const(int() as microseconds) if microseconds % MICROSECONDS_PER_DAY == 0:
            return day, constant(date(microseconds // MICROSECONDS_PER_DAY), DATE)
    return to_timestamp(day), moment


def _read_literal(expr: Expr, other: Expr, by_order: bool) -> Expr:
    """A string literal next to a DATE or TIMESTAMP is read as one."""
    if expr.is_string_literal and isinstance(expr.term, Const) and isinstance(expr.term.value, str):
        text = expr.term.value
        if other.type == DATE:
            return date_literal(text) or expr
        if other.type == TIMESTAMP:
            return timestamp_literal(text) or expr
        if other.type == TIMESTAMPTZ:
            return zoned_literal(text) or expr
        if other.type == UUID:
            return uuid_literal(text) or expr
        if other.type is not None and other.type.kind == "ENUM":  # it has the order of the texts beside one
            return expr if by_order else enum_place(text, other.type)
        if other.type is not None and other.type != other.type.held:
            return literal(text, other.type) or expr
    return expr


def shift(expr: Expr, months: int, microseconds: int) -> Expr:
    """DATE or TIMESTAMP + INTERVAL: a TIMESTAMP, with a time zone where that has one."""
    moment, type_ = to_timestamp(expr) if expr.type == DATE else expr, TIMESTAMP
    if expr.type == TIMESTAMPTZ:
        type_ = TIMESTAMPTZ
    if months:
        moment = strict("add_months", type_, moment, constant(number(months), INTEGER))
    if microseconds:
        moment = strict("+", type_, moment, constant(number(microseconds), BIGINT))
    return retagged(moment)


def negated(expr: Expr) -> Expr:
    assert expr.type is not None
    return replace(strict("*", expr.type, constant(number(-1), INTEGER), expr), is_literal=expr.is_literal)


_BOOLEANS = frozenset({"true", "false", "t", "f", "1", "0", "yes", "no", "y", "n", "on", "off"})
_LIKE_A_DATE = re.compile(r"-?\d+[-/ ]\d+[-/ ]\d+.*|[-+]?inf(inity)?|epoch", re.ASCII | re.IGNORECASE)


def casts_implicitly(left: Expr, right: Expr) -> bool:
    """Whether DuckDB casts one of two types that have nothing in common to the other: valid there, not taken here."""
    if left.is_string_literal or right.is_string_literal:
        literal, other = (left, right) if left.is_string_literal else (right, left)
        assert isinstance(literal.term, Const)
        return _reads_as(str(literal.term.value), other.type)
    kinds = {e.type.kind for e in (left, right) if e.type is not None}
    return not kinds & {"DATE", "TIMESTAMP", "TIME", "INTERVAL"}


def _reads_as(text: str, type_: Type | None) -> bool:
    if type_ is None or type_ == VARCHAR:
        return True
    if type_.kind in ("DATE", "TIMESTAMP"):
        return is_other_moment(text)
    if type_.is_numeric:
        return re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", text, re.ASCII | re.IGNORECASE) is not None
    return text.strip().lower() in _BOOLEANS


def is_other_moment(text: str) -> bool:
    """A date or time in a form, or of a year, that DuckDB has and we have not; '1995-02-30' is none."""
    parts = _TIMESTAMP.fullmatch(text.strip())
    return _LIKE_A_DATE.fullmatch(text.strip()) is not None and (
        parts is None or parts[1] == "0000" or parts[4] == "24"
    )
