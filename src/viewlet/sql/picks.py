"""ARG_MIN, ARG_MAX, FIRST, LAST and ANY_VALUE: a value of the row that comes first in an order.

Where SQL leaves the choice open (rows that tie, no ORDER BY), it is the least value, on every engine alike.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Value
from viewlet.algebra.terms import NULL, ONE_TERM, ZERO_TERM, Var, free, op
from viewlet.program.trigger import End
from viewlet.schema import BOOLEAN
from viewlet.sql.aggregate import Call, aggregates, as_number, extreme, one_argument
from viewlet.sql.expr import Expr, constant, holds, loose, null_test, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.grouping import Grouping


@aggregates(exp.ArgMin, exp.ArgMax)
def _arg(call: Call) -> Expr:
    """ARG_MAX(x, y): x of the row with the greatest y; rows in which x or y is NULL do not count."""
    for item in call.order:
        expression(item.this, call.scope)
    x, y = call.argument(0), call.argument(1)
    grouping = call.grouping.where(*x.binds, *x.guards, *y.binds, *y.guards)
    return at_end("least" if isinstance(call.node, exp.ArgMin) else "greatest", x, y, grouping)


@aggregates(exp.First, exp.Last, exp.AnyValue)
def _first(call: Call) -> Expr:
    """FIRST(x ORDER BY y); ANY_VALUE goes by the rows in which x is not NULL."""
    items = call.order
    one_argument(call)
    x, grouping = call.argument(), call.grouping
    if not items or call.distinct:
        return _without_order(call, x)
    if len(items) > 1:
        raise call.unsupported(f"{call.name} with several expressions in ORDER BY", "order by one expression")
    if isinstance(call.node, exp.AnyValue):
        grouping = grouping.where(*x.binds, *x.guards)
    y, last = expression(items[0].this, call.scope), isinstance(call.node, exp.Last)
    if not grouping.at_top and grouping.grouped and _is_computed(y) and x.bare != y.bare:
        what = f"{call.name} by a computed value that may be NULL, below the top of a view"
        raise call.unsupported(what, "at the top of a view it may be ordered so")
    descending, nulls_first = bool(items[0].args.get("desc")), bool(items[0].args.get("nulls_first"))
    return _ordered(x, y, grouping, "greatest" if descending != last else "least", nulls_first != last)


def _is_computed(y: Expr) -> bool:
    """No column and no number: its greatest value would be found by a loop that needs itself to be found first."""
    return not isinstance(y.bare, Var) and y.nullable and y.type is not None and not y.type.is_numeric


def _without_order(call: Call, x: Expr) -> Expr:
    if call.order:
        hint = "leave DISTINCT out: the first of some values is the first of the distinct ones"
        raise call.unsupported(f"{call.name} with DISTINCT and ORDER BY", hint)
    return extreme("least", x, call.grouping)


def _ordered(x: Expr, y: Expr, grouping: Grouping, end: End, nulls_first: bool) -> Expr:
    """Rows in which y is NULL come before all others, or after them."""
    known = grouping.where(*y.binds, *y.guards)
    picked = at_end(end, x, y, known)
    if not y.nullable or picked.type is None:
        return picked
    unknown = grouping.where(*holds(null_test(y)))
    other = extreme("least", x, unknown)
    first, rows = (other, unknown) if nulls_first else (picked, known)
    second = picked if nulls_first else other
    empty = op("=", Var(rows.lookup("count")), ZERO_TERM)
    return loose(op("case", empty, second.term, first.term), x.type, True, [first, second])


def at_end(end: End, x: Expr, y: Expr, grouping: Grouping) -> Expr:
    """The least x of the rows with the least or greatest y."""
    if x.type is None or y.type is None:
        return constant(NULL, x.type)
    if x.type == BOOLEAN:
        number = at_end(end, as_number(x), y, grouping)
        return loose(op("=", number.term, ONE_TERM), BOOLEAN, True, [number])
    y = as_number(y) if y.type == BOOLEAN else rounded(y)
    x = rounded(x)
    return _read(end, x, y, grouping) if grouping.at_top else _nested(end, x, y, grouping)


def _read(end: End, x: Expr, y: Expr, grouping: Grouping) -> Expr:
    """At the top of a view: the end of the y, then the least x under that y."""
    last = grouping.extreme(end, y, "min" if end == "least" else "max")
    here = grouping.where(*y.binds, *y.guards, Bind(last, Value(y.bare)))
    here = replace(here, keys=(*grouping.keys, last))
    return variable(here.extreme("least", x, "x"), x.type, True)


def _nested(end: End, x: Expr, y: Expr, grouping: Grouping) -> Expr:
    if free(y.bare) <= frozenset(grouping.keys):  # one y in each group, or NULL
        return extreme("least", x, grouping.where(*y.binds, *y.guards))
    if x.bare == y.bare:
        return extreme(end, x, grouping)
    last = extreme(end, y, grouping)
    same = Compare("=", y.bare, last.bare)
    return extreme("least", x, grouping.where(*y.binds, *y.guards, same))
