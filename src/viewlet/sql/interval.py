"""INTERVAL literals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
_ONE_PART = "add its parts one after the other, months first: + INTERVAL '1' MONTH + INTERVAL '2' DAY"
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
    if is_text and _PARTS.fullmatch(value.text):
        hint = _AGO if value.text.lower().rstrip().endswith("ago") else _ONE_PART
        raise source.unsupported(value, f"INTERVAL '{shortened(value.text)}'", hint)
    if is_text and not _NUMBER_AND_UNIT.fullmatch(value.text):
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


def interval(source: Source, node: exp.Interval) -> tuple[int, int]:
    """INTERVAL '3' MONTH as (months, microseconds)."""
    count = _count(source, node)
    unit = _unit(node.text("unit"))
    if unit not in _MONTHS and unit not in _MICROSECONDS:
        raise source.unsupported(node, f"INTERVAL with {f'the unit {unit}' if unit else 'no unit'}", _UNITS)
    microseconds, divisible = count * _MICROSECONDS.get(unit, 1), unit in _DIVISIBLE
    if (microseconds if divisible else count).denominator != 1:  # in DuckDB '1.5' DAY is a day, '1.5 days' are 36 hours
        part = f"a fraction of one {'MICROSECOND' if divisible else unit} in an INTERVAL"
        hint = "databases differ in what it means: write whole units"
        raise source.unsupported(node, part, hint)
    return (int(count) * _MONTHS[unit], 0) if unit in _MONTHS else (0, int(microseconds))


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
