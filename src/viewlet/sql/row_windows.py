"""Window functions that go by the numbers of rows: ROW_NUMBER, NTILE, LAG, LEAD, NTH_VALUE, and ROWS frames.

Rows are numbered when a view is read. Where rows tie, their columns decide, on every engine alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from viewlet.algebra.terms import NULL, ONE_TERM, Const, Term, Var, number, op
from viewlet.program.trigger import Order, RowFunction, RowWindow
from viewlet.schema import BIGINT, DOUBLE
from viewlet.sql.expr import Expr, constant, variable
from viewlet.sql.expression import expression
from viewlet.sql.frames import Key
from viewlet.sql.functions import whole_constant
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert, sum_type
from viewlet.sql.unsupported import only

Rows = tuple[int | None, int | None]
_AT_TOP = "select it in the outermost SELECT of a materialized view, without DISTINCT"
_PLAIN = "the aggregates of ROWS frames are SUM, COUNT, AVG, MIN and MAX, without DISTINCT and FILTER"
_FRAME = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
_ALWAYS = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.NthValue)
_EXTREMES: dict[type[exp.Expr], RowFunction] = {exp.Min: "min", exp.Max: "max"}


class Numbering(Protocol):
    """What collects the windows of a block."""

    @property
    def at_top(self) -> bool: ...
    def argument(self, expr: Expr) -> Term: ...
    def numbered(self, window: RowWindow, name: str) -> str: ...


def is_by_rows(node: exp.Window) -> bool:
    """An aggregate over the whole partition needs no numbers, whatever its frame is called."""
    spec = node.args.get("spec")
    if isinstance(node.this, _ALWAYS):
        return True
    if spec is None or str(spec.args["kind"]).upper() != "ROWS":
        return False
    return _rows(spec) != (None, None) or isinstance(node.this, (exp.FirstValue, exp.LastValue))


def by_rows(node: exp.Window, windows: Numbering, partition: Sequence[str], keys: Sequence[Key], scope: Scope) -> Expr:
    source = scope.session.source
    name = source.called(node.this)
    word = name.text.upper() if name else node.this.key.upper()
    if not windows.at_top:
        raise source.unsupported(node, f"{word} by the numbers of rows, below the top of a view", _AT_TOP)
    order = tuple(Order(Var(k.var), k.descending, k.nulls_first) for k in keys)
    return _Call(node, windows, scope, RowWindow("", "row_number", (), tuple(map(Var, partition)), order)).value()


class _Call:
    def __init__(self, node: exp.Window, windows: Numbering, scope: Scope, window: RowWindow) -> None:
        self.node, self.windows, self.scope, self.window = node, windows, scope, window
        self.source, self.call = scope.session.source, node.this

    def value(self) -> Expr:
        match self.call:
            case exp.RowNumber():
                return variable(self.added("row_number"), BIGINT, False)
            case exp.Ntile():
                return self.ntile()
            case exp.Lag() | exp.Lead():
                return self.shifted("lag" if isinstance(self.call, exp.Lag) else "lead")
            case exp.FirstValue() | exp.LastValue() | exp.NthValue():
                return self.nth()
            case exp.Sum() | exp.Count() | exp.Avg() | exp.Min() | exp.Max():
                return self.aggregate()
        raise self.source.unsupported(self.node, "this in a ROWS frame", _PLAIN)

    def added(self, function: RowFunction, *arguments: Term, frame: Rows = (None, None)) -> str:
        w = self.window
        return self.windows.numbered(RowWindow("", function, arguments, w.partition, w.order, frame), function)

    def ntile(self) -> Expr:
        parts = whole_constant(self.call.this, self.scope, "NTILE with a number")
        if parts is None or parts < 1:
            raise self.source.error(self.node, "NTILE takes a number of parts from 1 on", "write NTILE(4)")
        return variable(self.added("ntile", number(parts)), BIGINT, False)

    def shifted(self, function: RowFunction) -> Expr:
        """LAG(x, n, default)."""
        only(self.source, self.call, frozenset({"this", "offset", "default"}), {})
        given, default = self.call.args.get("offset"), self.call.args.get("default")
        by = 1 if given is None else whole_constant(given, self.scope, f"{function.upper()} by a number")
        x = expression(self.call.this, self.scope)
        other = constant(NULL, None) if default is None else expression(default, self.scope)
        if by is None or (other.type not in (None, x.type) and not isinstance(other.term, Const)):
            hint = f"write {function.upper()}(x, 1, y) with an x and a y of one type"
            raise self.source.unsupported(self.node, f"{function.upper()} with these arguments", hint)
        terms = self.windows.argument(x), number(by), self.windows.argument(convert(other, x.type))
        is_there = default is not None and not x.nullable and not other.nullable
        return variable(self.added(function, *terms), x.type, not is_there)

    def nth(self) -> Expr:
        """FIRST_VALUE is the first of its frame, LAST_VALUE the first from its end on."""
        only(self.source, self.call, frozenset({"this", "offset"}), {})
        place = {exp.FirstValue: ONE_TERM, exp.LastValue: number(-1)}.get(type(self.call))
        if place is None:
            n = whole_constant(self.call.args["offset"], self.scope, "NTH_VALUE with a number")
            if n is None or n < 1:
                raise self.source.error(self.node, "NTH_VALUE takes a number from 1 on", "write NTH_VALUE(x, 2)")
            place = number(n)
        x = expression(self.call.this, self.scope)
        return variable(self.added("nth_value", self.windows.argument(x), place, frame=self.frame()), x.type, True)

    def aggregate(self) -> Expr:
        only(self.source, self.call, frozenset({"this", "big_int"}), {})
        argument = self.call.this
        if isinstance(argument, (exp.Distinct, exp.Order)):
            raise self.source.unsupported(self.node, "this in a ROWS frame", _PLAIN)
        if isinstance(self.call, exp.Count) and (argument is None or isinstance(argument, exp.Star)):
            return variable(self.added("count", ONE_TERM, frame=self.frame()), BIGINT, False)
        x = expression(argument, self.scope)
        term = self.windows.argument(x)
        if isinstance(self.call, exp.Count):
            return variable(self.added("count", term, frame=self.frame()), BIGINT, False)
        if type(self.call) in _EXTREMES:
            return variable(self.added(_EXTREMES[type(self.call)], term, frame=self.frame()), x.type, True)
        if x.type is None or not x.type.is_numeric:
            raise self.source.error(self.node, f"{self.call.key.upper()} takes a number", "use a numeric column")
        total = self.added("sum", term, frame=self.frame())
        if isinstance(self.call, exp.Sum):
            return variable(total, sum_type(x.type), True)
        mean = op("/", Var(total), Var(self.added("count", term, frame=self.frame())))
        return Expr(mean, DOUBLE, mean, variable(total, DOUBLE, True).guards, unrounded=True)

    def frame(self) -> Rows:
        """NTH_VALUE goes by ROWS, or over all rows of the partition."""
        spec = self.node.args.get("spec")
        if spec is None and not self.window.order:
            return None, None
        frame = None if spec is None else _rows(spec)
        is_rows = spec is not None and str(spec.args["kind"]).upper() == "ROWS"
        if spec is None or frame is None or (not is_rows and frame != (None, None)):
            raise self.source.unsupported(self.node, "this frame by the numbers of rows", _FRAME)
        only(self.source, spec, frozenset({"kind", "start", "start_side", "end", "end_side"}), {})
        return frame


def _rows(spec: exp.Expr) -> Rows | None:
    """From how many rows behind, to how many; None where that is no constant."""
    sides = list[int | None]()
    for name, without_end in (("start", "PRECEDING"), ("end", "FOLLOWING")):
        bound, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
        if bound is None or (isinstance(bound, str) and bound.upper() == "CURRENT ROW"):
            sides.append(0)
        elif isinstance(bound, str):
            if side != without_end:
                return None
            sides.append(None)
        elif isinstance(bound, exp.Literal) and bound.is_int:
            sides.append(int(bound.this) * (-1 if side == "PRECEDING" else 1))
        else:
            return None
    return sides[0], sides[1]
