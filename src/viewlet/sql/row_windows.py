"""Window functions that go by the numbers of rows: ROW_NUMBER, NTILE, LAG, LEAD, NTH_VALUE, and ROWS frames.

Rows are numbered when a view is read. Where rows tie, their columns decide, on every engine alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from viewlet.algebra.terms import NULL, ONE_TERM, Const, Term, Var, number, op
from viewlet.program.trigger import FrameUnit, Order, RowFunction, RowWindow
from viewlet.schema import BIGINT, DOUBLE
from viewlet.sql.expr import Expr, constant, variable
from viewlet.sql.expression import expression
from viewlet.sql.frames import UNBOUNDED, Key, Side, Spec, excluded_of
from viewlet.sql.functions import whole_constant
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert, sum_type
from viewlet.sql.unsupported import only

Rows = tuple[int | None, int | None]
_FRAME = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
_ALWAYS = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.NthValue)
_AGGREGATES = (exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max)
_SHAPED = (exp.Distinct, exp.Order, exp.Tuple)
_EXTREMES: dict[type[exp.Expr], RowFunction] = {exp.Min: "min", exp.Max: "max"}


class Numbering(Protocol):
    """What collects the windows of a block."""

    def argument(self, expr: Expr) -> Term: ...
    def numbered(self, window: RowWindow, name: str) -> str: ...


def is_by_rows(node: exp.Window, spec: Spec) -> bool:
    """An aggregate over the whole partition needs no numbers, whatever its frame is called."""
    if isinstance(node.this, _ALWAYS):
        return True
    if isinstance(node.this, (exp.FirstValue, exp.LastValue)):
        order = node.args.get("order")
        return spec.unit == "ROWS" or order is None or len(order.expressions) != 1
    return not spec.is_whole and (spec.unit == "ROWS" or (spec.unit == "GROUPS" and spec.has_distance))


def is_for_reader(node: exp.Window, spec: Spec) -> bool:
    """Whether a reader that sorts the rows has less to do than triggers that keep a frame of each row."""
    return excluded_of(node) is not None or (spec.unit == "GROUPS" and spec.has_distance)


def by_rows(
    node: exp.Window, spec: Spec, windows: Numbering, partition: Sequence[str], keys: Sequence[Key], scope: Scope
) -> Expr | None:
    """None where the calculus has to count."""
    order = tuple(Order(Var(k.var), k.descending, k.nulls_first) for k in keys)
    frame = _frame(spec, node, scope)
    if frame is None:
        return None
    window = RowWindow("", "row_number", (), tuple(map(Var, partition)), order, *frame, excluded_of(node), len(order))
    return _Call(node, windows, scope, window).value()


def _frame(spec: Spec, node: exp.Window, scope: Scope) -> tuple[Rows, FrameUnit] | None:
    """From how many rows or groups behind, to how many: a RANGE without a distance goes by groups."""
    if spec.unit == "RANGE" and spec.has_distance:
        return None
    sides = [_side(side, scope, spec.unit) for side in (spec.start, spec.end)]
    if (spec.start[0], spec.start[1]) == (UNBOUNDED, "FOLLOWING") or spec.end == (UNBOUNDED, "PRECEDING"):
        raise scope.session.source.error(node, "a frame that ends before it starts", _FRAME)
    return (sides[0], sides[1]), "rows" if spec.unit == "ROWS" else "groups"


def _side(side: Side, scope: Scope, unit: str) -> int | None:
    bound, direction = side
    if not isinstance(bound, exp.Expr):
        return None if bound == UNBOUNDED else 0
    distance = whole_constant(bound, scope, f"a distance of {unit}")
    if distance is None or distance < 0:
        raise scope.session.source.error(bound, f"a distance of {unit} is a number from 0 on", _FRAME)
    return -distance if direction == "PRECEDING" else distance


class _Call:
    def __init__(self, node: exp.Window, windows: Numbering, scope: Scope, window: RowWindow) -> None:
        self.node, self.windows, self.scope, self.window = node, windows, scope, window
        self.source, self.call = scope.session.source, _filtered(node.this)

    def value(self) -> Expr | None:
        match self.call:
            case exp.RowNumber():
                return variable(self.added("row_number"), BIGINT, False)
            case exp.Ntile():
                return variable(self.added("ntile", number(parts_of(self.node, self.scope))), BIGINT, False)
            case exp.Lag() | exp.Lead():
                shift = shift_of(self.node, self.scope)
                terms = self.windows.argument(shift.x), number(shift.by), self.windows.argument(shift.default)
                function: RowFunction = "lag" if isinstance(self.call, exp.Lag) else "lead"
                return variable(self.added(function, *terms), shift.x.type, shift.nullable)
            case exp.FirstValue() | exp.LastValue() | exp.NthValue():
                x, place = expression(self.call.this, self.scope), place_of(self.node, self.scope)
                return variable(self.added("nth_value", self.windows.argument(x), number(place)), x.type, True)
        return self.aggregate() if isinstance(self.call, _AGGREGATES) else None

    def added(self, function: RowFunction, *arguments: Term) -> str:
        return self.windows.numbered(replace(self.window, function=function, arguments=arguments), function)

    def aggregate(self) -> Expr | None:
        only(self.source, self.call, frozenset({"this", "big_int"}), {})
        argument = self.call.this
        if isinstance(argument, _SHAPED):
            return None
        if isinstance(self.call, exp.Count) and (argument is None or isinstance(argument, exp.Star)):
            return variable(self.added("count", ONE_TERM), BIGINT, False)
        x = expression(argument, self.scope)
        term = self.windows.argument(x)
        if isinstance(self.call, exp.Count):
            return variable(self.added("count", term), BIGINT, False)
        if type(self.call) in _EXTREMES:
            return variable(self.added(_EXTREMES[type(self.call)], term), x.type, True)
        if x.type is None or not x.type.is_numeric:
            return None
        total = self.added("sum", term)
        if isinstance(self.call, exp.Sum):
            return variable(total, sum_type(x.type), True)
        mean = op("/", Var(total), Var(self.added("count", term)))
        return Expr(mean, DOUBLE, mean, variable(total, DOUBLE, True).guards, unrounded=True)


def _filtered(call: exp.Expr) -> exp.Expr:
    """SUM(x) FILTER (WHERE c) as SUM(CASE WHEN c THEN x END)."""
    inner = call.this
    if not isinstance(call, exp.Filter) or not isinstance(inner, _AGGREGATES) or isinstance(inner.this, _SHAPED):
        return call
    x = exp.Literal.number(1) if inner.this is None or isinstance(inner.this, exp.Star) else inner.this.copy()
    kept = inner.copy()
    kept.set("this", exp.Case(ifs=[exp.If(this=call.expression.this.copy(), true=x)]))
    return kept


# -- how a call is written ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shift:
    """LAG(x, by, default)."""

    x: Expr
    by: int
    default: Expr
    nullable: bool


def shift_of(node: exp.Window, scope: Scope) -> Shift:
    call, source = node.this, scope.session.source
    only(source, call, frozenset({"this", "offset", "default"}), {})
    given, default, word = call.args.get("offset"), call.args.get("default"), call.key.upper()
    by = 1 if given is None else whole_constant(given, scope, f"{word} by a number")
    x = expression(call.this, scope)
    other = constant(NULL, None) if default is None else expression(default, scope)
    if by is None or (other.type not in (None, x.type) and not isinstance(other.term, Const)):
        hint = f"write {word}(x, 1, y) with an x and a y of one type"
        raise source.unsupported(node, f"{word} with these arguments", hint)
    is_there = default is not None and not x.nullable and not other.nullable
    return Shift(x, by, convert(other, x.type), not is_there)


def parts_of(node: exp.Window, scope: Scope) -> int:
    """NTILE(parts)."""
    parts = whole_constant(node.this.this, scope, "NTILE with a number")
    if parts is None or parts < 1:
        raise scope.session.source.error(node, "NTILE takes a number of parts from 1 on", "write NTILE(4)")
    return parts


def place_of(node: exp.Window, scope: Scope) -> int:
    """FIRST_VALUE is the first of its frame, LAST_VALUE the first from its end on."""
    only(scope.session.source, node.this, frozenset({"this", "offset"}), {})
    if not isinstance(node.this, exp.NthValue):
        return 1 if isinstance(node.this, exp.FirstValue) else -1
    n = whole_constant(node.this.args["offset"], scope, "NTH_VALUE with a number")
    if n is None or n < 1:
        raise scope.session.source.error(node, "NTH_VALUE takes a number from 1 on", "write NTH_VALUE(x, 2)")
    return n
