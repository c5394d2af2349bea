"""MEDIAN, QUANTILE and PERCENTILE, MODE and MAD: values by their place among the values of a group.

A group's map counts its values, so a place in it is found by counts: where rows are read by going down a tree, below
the top of a view as a nested aggregate. Between two places DuckDB computes with doubles, and so do we.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists
from viewlet.algebra.terms import NULL, ONE_TERM, Const, Term, number, op
from viewlet.program.trigger import End
from viewlet.schema import BIGINT, BOOLEAN, DATE, DOUBLE, HELD, REAL, TIMESTAMP, Type
from viewlet.sql.aggregate import WITHIN, Call, aggregates, as_number, extreme, one_argument
from viewlet.sql.expr import Expr, an, constant, loose, merge, rounded, strict, variable
from viewlet.sql.expression import expression
from viewlet.sql.grouping import Grouping, Place, aggregate_factors
from viewlet.sql.parse import Mad
from viewlet.sql.picks import at_end
from viewlet.sql.scope import Scope
from viewlet.sql.types import retagged, to_double, to_timestamp

_FRACTION = "write a number from -1 to 1: quantile_cont(x, 0.5)"
_NARROW = 18  # digits of a DECIMAL that DuckDB holds in 64 bits, and moves as a double


@dataclass(frozen=True)
class _Fraction:
    """Which part of the values comes before the one that is wanted, from one end on."""

    value: Fraction
    is_double: bool
    end: End


_HALF = _Fraction(Fraction(1, 2), False, "least")


@aggregates(exp.Median)
def _median(call: Call) -> Expr:
    """MEDIAN(x): of what cannot be halved, the lower of the two in the middle."""
    one_argument(call)
    x = _refuse_other(call, call.argument())
    is_continuous = x.type is None or x.type.is_numeric or x.type.kind in ("DATE", "TIMESTAMP")
    return (_continuous if is_continuous else _discrete)(call, *_values(call, x), _HALF)


@aggregates(exp.PercentileCont)
def _quantile_cont(call: Call) -> Expr:
    x, grouping = _values(call, _refuse_other(call, call.argument()))
    if x.type is not None and not x.type.is_numeric and x.type.kind not in ("DATE", "TIMESTAMP"):
        raise call.error(f"{call.name} takes numbers and moments, not {x.type}", "take QUANTILE_DISC, or MEDIAN")
    return _continuous(call, x, grouping, _fraction(call))


@aggregates(exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
def _quantile_disc(call: Call) -> Expr:
    """APPROX_QUANTILE is the exact one here."""
    return _discrete(call, *_values(call, call.argument()), _fraction(call))


def _refuse_other(call: Call, x: Expr) -> Expr:
    """Between two REALs DuckDB computes with few digits, and between two TIMEs with microseconds."""
    if x.type is not None and x.type.kind in HELD:
        hint = "cast it: CAST(x AS DOUBLE)" if x.type == REAL else "take QUANTILE_DISC"
        raise call.unsupported(f"{call.name} of {an(x)}", hint)
    return x


def _values(call: Call, x: Expr) -> tuple[Expr, Grouping]:
    if call.order and not call.node.meta.get(WITHIN):
        raise call.unsupported(
            f"{call.name} with ORDER BY", f"leave ORDER BY out: {call.name} goes by the value itself"
        )
    if x.type is None:
        return x, call.grouping
    grouping, x = call.grouping.over_distinct(x) if call.distinct else (call.grouping, rounded(x))
    return x, grouping


def _fraction(call: Call) -> _Fraction:
    """The second argument: from -1 to 1. A negative one counts from the greatest value down, as DESC does."""
    node = call.node.args.get("quantile") or (call.arguments[1] if len(call.arguments) > 1 else None)
    if isinstance(node, exp.Array):
        raise call.unsupported(f"{call.name} with a list of fractions", f"write {call.name} once for each of them")
    if node is None or node.find(exp.Column):
        raise call.error(f"{call.name} takes a constant fraction", _FRACTION)
    given = expression(node, Scope(call.scope.session))
    if not (isinstance(given.term, Const) and isinstance(given.term.value, (int, Fraction))) or given.type == BOOLEAN:
        raise call.error(f"{call.name} takes a constant fraction", _FRACTION)
    value = Fraction(given.term.value)
    if not -1 <= value <= 1:
        raise call.error(f"{call.name} takes a fraction from -1 to 1", _FRACTION)
    descending = bool(call.order and call.order[0].args.get("desc")) != (value < 0)
    return _Fraction(abs(value), given.type == DOUBLE, "greatest" if descending else "least")


# -- by place ----------------------------------------------------------------------------------------------------------


def _discrete(call: Call, x: Expr, grouping: Grouping, fraction: _Fraction) -> Expr:
    """The value up to which there are at least f·n values."""
    if x.type == BOOLEAN:
        one = extreme(fraction.end, as_number(x), grouping, _least_place(fraction))
        return loose(op("=", one.term, ONE_TERM), BOOLEAN, True, [one])
    return extreme(fraction.end, x, grouping, _least_place(fraction))


def _least_place(fraction: _Fraction) -> Place:
    """max(1, n − ⌊n − f·n⌋) − 1, in doubles where the fraction is one."""

    def place(count: Term) -> Term:
        part = op("*", count, number(fraction.value))
        if fraction.is_double:
            rest = op("floor_double", op("double", op("-", count, op("double", part))))
            reached = op("-", count, rest)
        else:
            reached = op("ceil_number", part)
        return op("case", op("<", reached, ONE_TERM), number(0), op("-", reached, ONE_TERM))

    return place


def _continuous(call: Call, x: Expr, grouping: Grouping, fraction: _Fraction) -> Expr:
    """Between the values at ⌊f·(n − 1)⌋ and ⌈f·(n − 1)⌉, as far as f·(n − 1) is from the first."""
    if x.type is None:
        return constant(NULL, DOUBLE)
    whole = Fraction(float(fraction.value))

    def exactly(count: Term) -> Term:
        return op("double", op("*", op("-", count, ONE_TERM), number(whole)))

    low, high = (
        extreme(fraction.end, x, grouping, lambda count, f=f: op(f, exactly(count)))  # type: ignore[misc]
        for f in ("floor_double", "ceil_double")
    )
    place = exactly(op_count := _count(x, grouping))
    return _between(x.type, low, high, op("-", place, op("floor_double", place)), op_count)


def _count(x: Expr, grouping: Grouping) -> Term:
    return variable(grouping.count(x), BIGINT, False).term


def _between(type_: Type, low: Expr, high: Expr, share: Term, count: Term) -> Expr:
    """low + (high − low) · share: what is no DOUBLE is computed in its last places, and made whole again."""
    if type_ == DATE:
        return _between(TIMESTAMP, to_timestamp(low), to_timestamp(high), share, count)
    a, b = low.term, high.term
    if type_.kind in ("DECIMAL", "TIMESTAMP"):
        unit = 10**type_.scale if type_.kind == "DECIMAL" else 1
        a, b = (op("*", side, number(unit)) for side in (a, b))
        value = op("*", _moved(type_, a, b, share), number(Fraction(1, unit)))
        result_type = type_
    else:
        value = op("+", op("*", a, op("-", ONE_TERM, share)), op("*", b, share))
        result_type = DOUBLE
    term = op("case", op("=", a, b), low.term, value)
    result = loose(term, result_type, low.nullable or high.nullable, [low, high])
    return replace(retagged(result) if type_.kind == "TIMESTAMP" else result, unrounded=result_type == DOUBLE)


def _moved(type_: Type, a: Term, b: Term, share: Term) -> Term:
    """a + (b − a) · share as a whole number. Of a wide DECIMAL only the distance is a double: a keeps its digits."""
    distance = op("double", op("*", op("-", b, a), share))
    if type_.kind == "DECIMAL" and type_.precision > _NARROW:
        return op("+", a, op("double_to_number_0", op("trunc_double", distance)))
    made_whole = "trunc_double" if type_.kind == "DECIMAL" else "round_double"
    return op("double_to_integer", op(made_whole, op("double", op("+", a, distance))))


# -- MODE and MAD ------------------------------------------------------------------------------------------------------


@aggregates(exp.Mode)
def _mode(call: Call) -> Expr:
    """MODE(x): ARG_MAX(x, how often x is there); of values that are there equally often the least."""
    one_argument(call)
    x, grouping = _values(call, call.argument())
    if x.type is None or x.type == BOOLEAN:
        number_ = x if x.type is None else _most_often(as_number(x), grouping)
        return x if x.type is None else loose(op("=", number_.term, ONE_TERM), BOOLEAN, True, [number_])
    return _most_often(x, grouping)


def _most_often(x: Expr, grouping: Grouping) -> Expr:
    var, counted = grouping.by_value(x)
    often = grouping.names.fresh("often")
    copy = grouping.names.apart([counted, counted], (*grouping.keys, var))[1]
    by_count = replace(grouping, factors=(Exists(counted), Bind(often, copy)), sparse=True)
    return at_end("greatest", variable(var, x.type, False), variable(often, BIGINT, False), by_count)


@aggregates(Mad)
def _mad(call: Call) -> Expr:
    """MAD(x) = MEDIAN(ABS(x - MEDIAN(x))): when the median moves, so does every distance from it."""
    one_argument(call)
    _refuse_other(call, call.argument())
    x = call.number()
    if call.distinct:
        raise call.unsupported(f"{call.name} with DISTINCT", "take the distinct values in a subquery")
    if x.type is None:
        return constant(NULL, DOUBLE)
    below = Grouping(call.grouping.names, call.grouping.keys, call.grouping.factors, call.grouping.grouped, sparse=True)
    x = x if x.type.kind == "DECIMAL" else rounded(to_double(x))
    middle = _continuous(call, x, below, _HALF)
    beside = aggregate_factors(below, *call.grouping.factors)
    here = call.grouping.where(*merge([x.binds, x.guards]), *beside)
    distance = strict("abs", x.type, strict("-", x.type, x, replace(middle, guards=(), hidden=())))  # type: ignore[arg-type]
    return _continuous(call, rounded(distance), here, _HALF)
