"""INTERVAL literals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.algebra.functions.calendar import MICROSECONDS_PER_DAY
from viewlet.errors import SqlError, shortened
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
_GREATEST = 2.0**63  # in DuckDB, of the smallest unit
_DIVISIBLE = ("SECOND", "MILLISECOND")
_ABBREVIATIONS = exp.Interval.UNABBREVIATED_UNIT_NAME
_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(E[-+]?[0-9]+)?\s*", re.IGNORECASE)
_EXPONENT = re.compile(r"[-+0-9.\s]+e[-+]?[0-9]+\s*", re.IGNORECASE)
_NUMBER_AND_UNIT = re.compile(r"\s*-?[0-9]+(\.[0-9]+)?\s*[A-Za-z]+\s*")
# '1 year 2 months', '1 day ago', '02:03:04': several, or one that is not a number and its unit
_PART = r"\s*[-+]?(?:[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+|[0-9]+:[0-9]+(?::[0-9]+(?:\.[0-9]+)?)?)"
_PARTS = re.compile(rf"(?!\s*-?[0-9.]+\s*[A-Za-z]+\s*$)(?:{_PART})+(?:\s+ago)?\s*", re.IGNORECASE)
_EACH_PART = re.compile(
    r"\s*([-+]?)(?:([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)|([0-9]+):([0-9]+)(?::([0-9]+(?:\.[0-9]{1,6})?))?)"
)
_ONE_PART = "add its parts one after the other: + INTERVAL '1' MONTH + INTERVAL '02:03:04'"
_AGO = "subtract it: - INTERVAL '1' DAY for + INTERVAL '1 day ago'"
_UNITS = "the units are DECADE, YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND and MICROSECOND"
_SHAPE = "write one number and one unit: INTERVAL '3' MONTH"


def check_intervals(source: Source, tokens: Sequence[Token]) -> list[Token]:
    """sqlglot reads a number and a word out of '1 day ago' and drops the rest, and takes any name for a unit.

    An INTERVAL that is refused here is one day in the tokens that come back: where all refusals are wanted, nothing
    else is to be refused because of it.
    """
    bare = [t for t in tokens if t.token_type not in (TokenType.L_PAREN, TokenType.R_PAREN)]
    instead: dict[int, Token] = {}  # by where they begin
    for word, value, unit in zip(bare, bare[1:], [*bare[2:], *bare[-1:]], strict=False):
        if word.token_type == TokenType.INTERVAL and value.token_type in (TokenType.STRING, TokenType.NUMBER):
            try:
                _check_interval(source, value, unit)
            except SqlError as error:
                source.refuse(error)
                instead |= {t.start: t for t in _one_day(value, unit)}
    return [instead.get(t.start, t) for t in tokens]


def _check_interval(source: Source, value: Token, unit: Token) -> None:
    if value.token_type == TokenType.STRING and _EXPONENT.fullmatch(value.text):  # 1 and the unit E, to sqlglot
        raise source.unsupported(value, f"INTERVAL '{shortened(value.text)}'", "write the number out")
    is_text = value.token_type == TokenType.STRING and not _NUMBER.fullmatch(value.text)
    if is_text and value.text.lower().rstrip().endswith("ago") and _PARTS.fullmatch(value.text):
        raise source.unsupported(value, f"INTERVAL '{shortened(value.text)}'", _AGO)
    if is_text and _PARTS.fullmatch(value.text) and len(re.findall(r"[0-9]\s*[A-Za-z]+", value.text)) == 1:
        raise source.unsupported(value, f"INTERVAL '{shortened(value.text)}'", _ONE_PART)  # sqlglot drops the time
    if is_text and not _NUMBER_AND_UNIT.fullmatch(value.text) and not _PARTS.fullmatch(value.text):
        raise source.error(value, f"INTERVAL '{shortened(value.text)}' is not understood", _SHAPE)
    if not is_text and _is_no_unit(unit):
        raise source.unsupported(unit, f"{unit.text}, a name, for the unit of an INTERVAL", _UNITS)


def _is_no_unit(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER or token.text.upper() in _ABBREVIATIONS


def _one_day(value: Token, unit: Token) -> Iterator[Token]:
    """In the place of a value and of its unit, if it has one."""
    if _is_no_unit(unit):
        yield Token(TokenType.VAR, "DAY", unit.line, unit.col, unit.start, unit.end)
    has_unit = _is_no_unit(unit) or _unit(unit.text) in {*_MONTHS, *_MICROSECONDS}
    yield Token(TokenType.STRING, "1" if has_unit else "1 day", value.line, value.col, value.start, value.end)


@dataclass(frozen=True)
class Span:
    """A constant INTERVAL."""

    months: int = 0
    microseconds: int = 0

    def __add__(self, other: Span) -> Span:
        return Span(self.months + other.months, self.microseconds + other.microseconds)

    def times(self, count: int) -> Span:
        return Span(count * self.months, count * self.microseconds)

    @property
    def length(self) -> int:
        """In microseconds, as DuckDB compares intervals: a month is 30 days."""
        return self.months * 30 * MICROSECONDS_PER_DAY + self.microseconds


_TO_UNITS = frozenset(f"to_{unit.lower()}s" for unit in (*_MONTHS, *_MICROSECONDS))


def span(source: Source, node: exp.Expr) -> Span | None:
    """INTERVAL '3' MONTH, also with a sign, in a sum or multiplied by a whole number; None for anything else."""
    match node:
        case exp.Interval():
            return interval(source, node)
        case exp.Paren():
            return span(source, node.this)
        case exp.Neg():
            length = span(source, node.this)
            return length and length.times(-1)
        case exp.Add() | exp.Sub():
            first, second = span(source, node.this), span(source, node.expression)
            return first and second and first + second.times(1 if isinstance(node, exp.Add) else -1)
        case exp.Mul():
            first, second = span(source, node.this), span(source, node.expression)
            counts = _whole(node.this), _whole(node.expression)
            length, count = (first, counts[1]) if first else (second, counts[0])
            return None if length is None or count is None else length.times(count)
        case exp.ToDays() | exp.Anonymous():
            return _called(source, node)
    return None


def _called(source: Source, node: exp.Expr) -> Span | None:
    """TO_HOURS(3)."""
    name = "to_days" if isinstance(node, exp.ToDays) else node.name.lower()
    given = node.this if isinstance(node, exp.ToDays) else next(iter(node.expressions), None)
    count = _whole(given) if name in _TO_UNITS and given is not None else None
    return None if count is None else _of_unit(source, node, Fraction(count), name[3:])


def _whole(node: exp.Expr) -> int | None:
    """A whole number that is written out."""
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal() and len(node.this) < 19
    return int(node.this) if is_number else None


def interval(source: Source, node: exp.Interval) -> Span:
    """INTERVAL '3' MONTH, or INTERVAL '1 day 02:30:00'."""
    text = node.this.this if isinstance(node.this, exp.Literal) and node.this.is_string else ""
    if not node.text("unit") and _PARTS.fullmatch(text):
        return sum((_part(source, node, *part.groups()) for part in _EACH_PART.finditer(text)), Span())
    return _of_unit(source, node, _count(source, node), node.text("unit"))


def _part(source: Source, node: exp.Expr, sign: str, count: str, unit: str, h: str, m: str, s: str) -> Span:
    """One part of a longer text."""
    length = _of_unit(source, node, Fraction(count), unit) if count else Span()
    if h:
        length = Span(0, int((int(h) * 3600 + int(m) * 60 + Fraction(s or 0)) * 1_000_000))
    return length.times(-1 if sign == "-" else 1)


def _of_unit(source: Source, node: exp.Expr, count: Fraction, written: str) -> Span:
    unit = _unit(written)
    if unit not in _MONTHS and unit not in _MICROSECONDS:
        raise source.unsupported(node, f"INTERVAL with {f'the unit {unit}' if unit else 'no unit'}", _UNITS)
    microseconds, divisible = count * _MICROSECONDS.get(unit, 1), unit in _DIVISIBLE
    if (microseconds if divisible else count).denominator != 1:  # in DuckDB '1.5' DAY is a day, '1.5 days' are 36 hours
        part = f"a fraction of one {'MICROSECOND' if divisible else unit} in an INTERVAL"
        hint = "databases differ in what it means: write whole units"
        raise source.unsupported(node, part, hint)
    return Span(int(count) * _MONTHS[unit]) if unit in _MONTHS else Span(0, int(microseconds))


def _unit(name: str) -> str:
    """In the singular."""
    return name.upper().removesuffix("S")


def _count(source: Source, node: exp.Interval) -> Fraction:
    literal, sign = node.this, 1
    while isinstance(literal, (exp.Neg, exp.Paren)):
        sign = -sign if isinstance(literal, exp.Neg) else sign
        literal = literal.this
    if not isinstance(literal, exp.Literal):
        raise source.unsupported(node, "an INTERVAL that is not a literal", "write INTERVAL '3' MONTH")
    if not _NUMBER.fullmatch(literal.this):
        raise source.error(node, f"INTERVAL '{shortened(literal.this)}' is not understood", _SHAPE)
    if not -_GREATEST < float(literal.this) < _GREATEST:  # before Python writes it out
        raise source.unsupported(node, "an INTERVAL this long", "use a shorter INTERVAL")
    return sign * Fraction(literal.this)
