"""Types that engines hold as others (:attr:`viewlet.schema.Type.held`): REAL, TIME, ENUM, BLOB, lists and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from viewlet.algebra.functions.calendar import time_of_day
from viewlet.algebra.functions.numbers import nearest_single
from viewlet.algebra.terms import NULL, Const, Term, number, op, string
from viewlet.schema import BITS, BLOB, DOUBLE, NESTED, REAL, TIME, VARCHAR, Type
from viewlet.sql.expr import Expr, constant, loose, rounded, strict

BY_DUCKDB = frozenset({"REAL", "TIME", "ENUM", "BLOB", *NESTED})  # whose functions DuckDB computes when a row arrives
_EXACT_BITS = 32  # integers that are doubles
_BYTES = re.compile(r"(?:[\x00-\x5b\x5d-\x7f]|\\x[0-9A-Fa-f]{2})*")


# -- REAL --------------------------------------------------------------------------------------------------------------


def may_be_single(expr: Expr) -> bool:
    """Whether the nearest REAL of an exact number is known: of a column of more than 32 bits only DuckDB knows it."""
    if expr.type is None or expr.type == REAL or isinstance(expr.term, Const):
        return True
    return expr.type == DOUBLE or BITS.get(expr.type.kind, _EXACT_BITS + 1) <= _EXACT_BITS


def to_single(expr: Expr) -> Expr:
    """The nearest REAL."""
    if expr.type is None or expr.type == REAL:
        return replace(expr, type=REAL)
    if isinstance(expr.term, Const) and isinstance(expr.term.value, (int, Fraction)):
        try:
            return constant(number(Fraction(nearest_single(float(expr.term.value)))), REAL)
        except OverflowError:  # for the row that meets it to refuse
            pass
    return strict("single", REAL, rounded(expr))


def as_doubles(parts: Sequence[Expr]) -> list[Expr]:
    """A REAL is a double."""
    return [replace(part, type=DOUBLE) if part.type == REAL else part for part in parts]


# -- ENUM --------------------------------------------------------------------------------------------------------------


def enum_text(expr: Expr) -> Expr:
    """CASE e WHEN 'first' THEN 'first' …"""
    assert expr.type is not None
    places: list[Term] = []
    for place, value in enumerate(expr.type.values):
        places += [op("=", expr.term, number(place)), string(value)]
    default = NULL if expr.nullable else places.pop()
    return loose(op("case", *places[: None if expr.nullable else -1], default), VARCHAR, expr.nullable, [expr])


def as_texts(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides of a comparison of which one is an ENUM, and the other a text or another ENUM."""
    left, right = (enum_text(e) if e.type is not None and e.type.kind == "ENUM" else e for e in (left, right))
    return left, right


# -- constants ---------------------------------------------------------------------------------------------------------


def literal(text: str, type_: Type) -> Expr | None:
    """A text as a constant of one of these types; None where it reads as none."""
    match type_.kind:
        case "TIME":
            microseconds = time_of_day(text)
            return None if microseconds is None else constant(number(microseconds), TIME)
        case "BLOB" if _BYTES.fullmatch(text):
            shown = re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), text)
            return constant(string(shown.encode("latin-1").hex()), BLOB)
        case "ENUM" if text in type_.values:
            return constant(number(type_.values.index(text)), type_)
    return None


def enum_place(text: str, type_: Type) -> Expr:
    """What an ENUM is equal to where it equals a text: no place, where it has no such value."""
    return literal(text, type_) or constant(number(-1), type_)
