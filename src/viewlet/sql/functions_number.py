"""Functions of numbers: their SQL and their types."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from viewlet.algebra.functions.numbers import MOST_PLACES
from viewlet.algebra.query import Compare
from viewlet.algebra.terms import NULL, ZERO_TERM, Const, op
from viewlet.algebra.terms import number as constant_number
from viewlet.schema import BIGINT, DOUBLE, INTEGER, SIGNED, UNSIGNED, Type, decimal
from viewlet.sql.expr import Expr, an, constant, divide, loose, rounded, strict
from viewlet.sql.expression import boolean, expression, refuse_rounding, translates, unified
from viewlet.sql.functions import call, number, whole_constant
from viewlet.sql.scope import Scope
from viewlet.sql.types import MAX_PRECISION, common_type, limits_of, to_double, with_literals
from viewlet.sql.unsupported import only


def as_double(expr: Expr) -> Expr:
    """The double that a function of doubles computes with."""
    return rounded(to_double(expr))


def whole(value: int, type_: Type = BIGINT) -> Expr:
    return constant(constant_number(value), type_)


# -- division with rest ------------------------------------------------------------------------------------------------


@translates(exp.Mod)
def _mod(node: exp.Expr, scope: Scope) -> Expr:
    """The rest has the sign of the dividend; x % 0 is NULL."""
    left, right, type_ = _two(node, scope, "%")
    if type_ == DOUBLE:
        return _unless_zero("fmod_double", DOUBLE, as_double(left), as_double(right))
    refuse_rounding(node, scope, [left, right], type_)
    return _unless_zero("remainder", type_, left, right)


@translates(exp.IntDiv)
def _quotient(node: exp.Expr, scope: Scope) -> Expr:
    """Of integers, towards zero. Of other numbers // is / in DuckDB."""
    left, right, type_ = _two(node, scope, "//")
    if not type_.is_integer:
        return divide(left, right, DOUBLE)
    return _unless_zero("quotient", type_, left, right)


def _two(node: exp.Expr, scope: Scope, sign: str) -> tuple[Expr, Expr, Type]:
    left, right = with_literals([number(node.this, scope, sign), number(node.expression, scope, sign)])
    type_ = common_type(left.type, right.type)
    assert type_ is not None
    return left, right, type_


def _unless_zero(name: str, type_: Type, left: Expr, right: Expr) -> Expr:
    """NULL also where the divisor is 0."""
    quotient = replace(strict(name, type_, left, right), unrounded=False)
    if isinstance(right.bare, Const) and right.bare.value not in (0, None):
        return quotient
    return replace(quotient, guards=(*quotient.guards, Compare("<>", right.bare, ZERO_TERM)))


# -- rounding ----------------------------------------------------------------------------------------------------------


@translates(exp.Round, exp.Trunc)
def _round(node: exp.Expr, scope: Scope) -> Expr:
    """Half away from zero, or towards zero, at so many places; before the point where they are negative."""
    only(scope.session.source, node, frozenset({"this", "decimals"}), {})
    name = "round" if isinstance(node, exp.Round) else "trunc"
    value = number(node.this, scope, name.upper())
    assert value.type is not None
    given = node.args.get("decimals")
    if value.type == DOUBLE:
        return _round_double(node, scope, name, value)
    places = 0 if given is None else whole_constant(given, scope, f"{name.upper()} to a number of places")
    if places is None:
        return strict("*", value.type, value, constant(NULL, INTEGER))
    if value.type.kind == "DECIMAL" and -places > value.type.precision - value.type.scale:
        construct = f"{name.upper()} of a {value.type} to {places} places"
        raise scope.session.source.unsupported(node, construct, "write 0, which it is in DuckDB, even of NULL")
    is_wider = name == "round" and value.type.kind in UNSIGNED  # 255 becomes 260
    return _round_exact(name, value, BIGINT if is_wider else value.type, places)


def _round_double(node: exp.Expr, scope: Scope, name: str, value: Expr) -> Expr:
    given = node.args.get("decimals")
    if given is None:
        return _doubles(node, scope, f"{name}_double", value)
    places = number(given, scope, name.upper())
    if places.type is None or not places.type.is_integer:
        hint = "write a whole number of places"
        raise scope.session.source.error(given, f"{name.upper()} to {an(places)}", hint)
    return replace(call(node, scope, f"{name}_places", DOUBLE, as_double(value), places), unrounded=False)


def _round_exact(name: str, value: Expr, type_: Type, places: int) -> Expr:
    if places >= type_.scale and (places >= 0 or type_.kind == "DECIMAL"):
        return replace(value, type=type_)
    if places >= 0:
        return strict(f"{name}_number_{places}", decimal(type_.precision, places), value)
    given = decimal(_widened(type_), 0) if type_.kind == "DECIMAL" else type_
    if -places > MOST_PLACES:
        return strict("*", given, value, whole(0))
    unit = 10**-places
    tens = strict("*", given, value, constant(constant_number(Fraction(1, unit)), given))
    scaled = strict("*", given, strict(f"{name}_number_0", given, tens), whole(unit))
    return strict("within", given, scaled, *limits_of(given))


def _widened(type_: Type) -> int:
    """The digits of a DECIMAL that is rounded before the point: without places, one more."""
    return min(type_.precision + (type_.scale == 0), MAX_PRECISION)


@translates(exp.Floor, exp.Ceil)
def _floor(node: exp.Expr, scope: Scope) -> Expr:
    """Of an integer, a DOUBLE in DuckDB."""
    name = "floor" if isinstance(node, exp.Floor) else "ceil"
    only(scope.session.source, node, frozenset({"this"}), {})
    value = number(node.this, scope, name.upper())
    assert value.type is not None
    if value.type.is_integer:
        return as_double(value)
    if value.type == DOUBLE:
        return _doubles(node, scope, f"{name}_double", value)
    type_ = decimal(value.type.precision, 0)
    return strict(f"{name}_number", type_, value) if value.type.scale else replace(value, type=type_)


@translates(exp.Sign)
def _sign(node: exp.Expr, scope: Scope) -> Expr:
    """DuckDB's TINYINT is an INTEGER here."""
    return strict("sign", INTEGER, rounded(number(node.this, scope, "SIGN")))


# -- functions of doubles ----------------------------------------------------------------------------------------------


def _doubles(node: exp.Expr, scope: Scope, name: str, *args: Expr) -> Expr:
    return replace(call(node, scope, name, DOUBLE, *map(as_double, args)), unrounded=False)


def _one_double(name: str, node: exp.Expr, scope: Scope) -> Expr:
    only(scope.session.source, node, frozenset({"this"}), {})
    return _doubles(node, scope, f"{name}_double", number(node.this, scope, name.upper()))


_OF_ONE: dict[str, type[exp.Expr]] = {
    "sqrt": exp.Sqrt,
    "cbrt": exp.Cbrt,
    "exp": exp.Exp,
    "log": exp.Ln,
    "sin": exp.Sin,
    "cos": exp.Cos,
    "tan": exp.Tan,
    "asin": exp.Asin,
    "acos": exp.Acos,
    "atan": exp.Atan,
    "sinh": exp.Sinh,
    "cosh": exp.Cosh,
    "tanh": exp.Tanh,
    "asinh": exp.Asinh,
    "acosh": exp.Acosh,
    "atanh": exp.Atanh,
}
for _name, _kind in _OF_ONE.items():
    translates(_kind)(partial(_one_double, _name))


@translates(exp.Log)
def _log(node: exp.Expr, scope: Scope) -> Expr:
    """LOG(x) is that to the base 10, LOG(b, x) that to the base b."""
    first = number(node.this, scope, "LOG")
    if node.expression is None:
        return _doubles(node, scope, "log10_double", first)
    value = number(node.expression, scope, "LOG")
    if isinstance(first.term, Const) and first.term.value in (2, 10):
        return _doubles(node, scope, f"log{first.term.value}_double", value)
    return _doubles(node, scope, "log_base", first, value)


@translates(exp.Pow, exp.Atan2)
def _two_doubles(node: exp.Expr, scope: Scope) -> Expr:
    name = "pow" if isinstance(node, exp.Pow) else "atan2"
    args = (number(n, scope, name.upper()) for n in (node.this, node.expression))
    return _doubles(node, scope, f"{name}_double", *args)


@translates(exp.Pi)
def _pi(node: exp.Expr, scope: Scope) -> Expr:
    return constant(constant_number(Fraction(math.pi)), DOUBLE)


@translates(exp.Degrees, exp.Radians)
def _angle(node: exp.Expr, scope: Scope) -> Expr:
    """A factor, so that sums of angles are sums of numbers."""
    factor = 180 / math.pi if isinstance(node, exp.Degrees) else math.pi / 180
    value = as_double(number(node.this, scope, node.key.upper()))
    return strict("*", DOUBLE, value, constant(constant_number(Fraction(factor)), DOUBLE))


# -- bits --------------------------------------------------------------------------------------------------------------

_BIT_OPERATORS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
}


@translates(*_BIT_OPERATORS)
def _bits(node: exp.Expr, scope: Scope) -> Expr:
    name = _BIT_OPERATORS[type(node)]
    left, right = with_literals([_integer(n, scope) for n in (node.this, node.expression)])
    type_ = common_type(left.type, right.type)
    assert type_ is not None
    if not name.startswith("shift"):
        return strict(name, type_, left, right)
    _refuse_unsigned(node, scope, type_)
    return call(node, scope, name, type_, left, right, whole(SIGNED[type_.kind]))


@translates(exp.BitwiseNot)
def _not(node: exp.Expr, scope: Scope) -> Expr:
    """~x is -1 - x. In DuckDB ~x + y is ~(x + y)."""
    if isinstance(node.parent, exp.Binary):
        raise scope.session.source.unsupported(node, "~ next to another operator", "put it in parentheses: (~x)")
    inner = _integer(node.this, scope)
    assert inner.type is not None
    _refuse_unsigned(node, scope, inner.type)
    return strict("-", inner.type, whole(-1), inner)


def _refuse_unsigned(node: exp.Expr, scope: Scope, type_: Type) -> None:
    if type_.kind not in SIGNED:
        raise scope.session.source.unsupported(node, f"this operator of bits on {type_}", "cast it to BIGINT")


def _integer(node: exp.Expr, scope: Scope) -> Expr:
    value = number(node, scope, "an operator of bits")
    if value.type is None or not value.type.is_integer:
        raise scope.session.source.error(node, f"an operator of bits takes an integer, not {an(value)}", "cast it")
    return value


# -- choices -----------------------------------------------------------------------------------------------------------


@translates(exp.Greatest, exp.Least)
def _extreme(node: exp.Expr, scope: Scope) -> Expr:
    """Of those that are not NULL."""
    parts, type_ = unified(node, scope, [expression(n, scope) for n in (node.this, *node.expressions)])
    if type_ is None:
        return constant(NULL, None)
    suffix = "_text" if type_.held.kind == "VARCHAR" else ""
    return _tournament(f"{node.key}{suffix}", type_, [rounded(p) if type_ == DOUBLE else p for p in parts])


def _tournament(name: str, type_: Type, parts: list[Expr]) -> Expr:
    """Halves against halves: a part that may be NULL is written as often as there are rounds."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    a, b = _tournament(name, type_, parts[:half]), _tournament(name, type_, parts[half:])
    both = replace(strict(name, type_, a, b), unrounded=False)
    others = [other.term for part, other in ((a, b), (b, a)) if part.nullable]
    if not others:
        return both
    return loose(op("coalesce", both.term, *others), type_, a.nullable and b.nullable, [a, b])


@translates(exp.If)
def _if(node: exp.Expr, scope: Scope) -> Expr:
    """IF(condition, value, otherwise)."""
    condition = boolean(node.this, scope)
    default = node.args.get("false")
    given = [expression(node.args["true"], scope), expression(default, scope) if default else constant(NULL, None)]
    values, type_ = unified(node, scope, given)
    term = op("case", condition.term, values[0].term, values[1].term)
    return loose(term, type_, any(v.nullable for v in values), [condition, *values])
