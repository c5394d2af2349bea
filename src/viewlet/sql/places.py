"""Windows by the numbers of rows, in the calculus: where no two rows are equal, a number counts the rows before.

LAG takes its value from the row with that other number, (m := how many come before it) ⋈ [m = n − 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Query, Value, join, sum_, union
from viewlet.algebra.terms import NEGATED, NULL, ONE_TERM, ZERO_TERM, Term, Var, number, op
from viewlet.schema import BIGINT
from viewlet.sql.expr import Expr, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.frames import UNBOUNDED, Frame, Key, Place, Spec, before, excluded_of, up_to
from viewlet.sql.frames import Window as Framed
from viewlet.sql.functions import whole_constant
from viewlet.sql.grouping import Grouping
from viewlet.sql.row_windows import Shift, parts_of, place_of, shift_of
from viewlet.sql.scope import Names

_FRAME = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"


Order = Callable[[Sequence[Key]], Query]  # which rows come before one, or up to it


class Collecting(Protocol):
    """What collects the windows of a block."""

    @property
    def names(self) -> Names: ...
    def argument(self, expr: Expr) -> Term: ...
    def this_of(self, var: str) -> str: ...
    def grouping(self, partition: Sequence[str], frame: Frame = None) -> Grouping: ...
    def counted(
        self,
        partition: Sequence[str],
        keys: Sequence[Key],
        values: Sequence[str],
        which: Callable[[Sequence[Key]], Query],
    ) -> tuple[str, Query]: ...


class Window(Framed, Protocol):
    """One call."""

    @property
    def windows(self) -> Collecting: ...
    @property
    def spec(self) -> Spec: ...
    def partition(self) -> tuple[str, ...]: ...
    def count(self, frame: Frame = None) -> Term: ...


def _row_number(window: Window) -> Expr:
    """ROW_NUMBER() = 1 + how many rows come before."""
    place = op("+", _own(window), ONE_TERM)
    return Expr(place, BIGINT, place)


def _own(window: Window) -> Term:
    keys = window.total()
    return window.count(before(keys)) if keys else ZERO_TERM


def _ntile(window: Window) -> Expr:
    """The first r of n parts have q + 1 rows, the others q, where count = q · n + r."""
    parts, own, rows = number(parts_of(window.node, window.scope)), _own(window), window.count()
    size, larger = op("quotient", rows, parts), op("remainder", rows, parts)
    longer = op("+", size, ONE_TERM)
    some = op("case", op("=", size, ZERO_TERM), ONE_TERM, size)
    tile = op(
        "case",
        op("<", own, op("*", larger, longer)),
        op("quotient", own, longer),
        op("quotient", op("-", own, larger), some),
    )
    tile = op("+", tile, ONE_TERM)
    return Expr(tile, BIGINT, tile)


def _shifted(window: Window) -> Expr:
    """LAG(x, k): the x of the row with the number n − k; where there is none, the default."""
    shift = shift_of(window.node, window.scope)
    by = shift.by if isinstance(window.node.this, exp.Lead) else -shift.by
    if abs(by) == 1 and len(window.total()) == 1 and not window.total()[0].expr.nullable:
        return _beside(window, shift, by)
    place = window.place("ROWS")
    wanted = op("+", place.own, number(by))
    outside = Compare("<", wanted, ZERO_TERM) if by < 0 else Compare(">=", wanted, window.count())
    return _at(window, place, wanted, (shift.x, _of_this(window, shift.default)), outside, shift.nullable)


def _beside(window: Window, shift: Shift, by: int) -> Expr:
    """The row before, as an ASOF JOIN finds it: [u < t] ⋈ (c := those before t) ⋈ (d := those up to u) ⋈ [d >= c].

    An event in between moves two rows, where numbers move all that come behind.
    """
    (key,) = window.total()
    key, x = key if by < 0 else key.reversed, rounded(shift.x)
    before_this, partition = window.count(before([key])), window.partition()
    grouping, var = window.windows.grouping(partition), window.windows.names.fresh("other")
    other, upto = window.windows.counted(partition, [key], (), up_to)
    last = join(before([key]), upto, Compare(">=", Var(other), before_this))
    found = sum_({*partition, var}, join(*grouping.factors, *x.binds, last, Bind(var, Value(x.term))))
    nothing = join(Compare("=", before_this, ZERO_TERM), Bind(var, Value(_of_this(window, shift.default))))
    grouping.picks[union(found, nothing)] = var
    return variable(var, x.type, shift.nullable)


def _of_this(window: Window, expr: Expr) -> Term:
    term = window.windows.argument(expr)
    return Var(window.windows.this_of(term.name)) if isinstance(term, Var) else term


def _at(window: Window, place: Place, wanted: Term, shown: tuple[Expr, Term], outside: Compare, nullable: bool) -> Expr:
    """The x of the row that has the wanted number, and the ``default`` where no row can have it."""
    (x, default), partition = (rounded(shown[0]), shown[1]), window.partition()
    grouping, var = window.windows.grouping(partition), window.windows.names.fresh("other")
    inside = Compare(NEGATED[outside.op], outside.left, outside.right)
    here = join(*grouping.factors, *x.binds, place.count, Compare("=", Var(place.other), wanted), inside)
    found = sum_({*partition, var}, join(here, Bind(var, Value(x.term))))
    grouping.picks[union(found, join(outside, Bind(var, Value(default))))] = var
    return variable(var, x.type, nullable)


def _nth(window: Window) -> Expr:
    """The row of the frame with the number of its first row + n − 1, or with that of its last row."""
    source = window.scope.session.source
    if excluded_of(window.node) is not None or not (window.spec.unit == "ROWS" or _is_from_start(window.spec)):
        raise source.unsupported(window.node, "the n-th value of this frame below the top of a view", _FRAME)
    x, n = expression(window.node.this.this, window.scope), place_of(window.node, window.scope)
    place = window.place("ROWS")
    first, last = _first(window, place.own), _last(window, place.own)
    wanted = last if n < 0 else op("+", first, number(n - 1))
    outside = Compare("<", wanted, first) if n < 0 else Compare(">", wanted, last)
    return _at(window, place, wanted, (x, NULL), outside, True)


def _is_from_start(spec: Spec) -> bool:
    return spec.start[0] == UNBOUNDED and not spec.has_distance


def _first(window: Window, own: Term) -> Term:
    bound, direction = window.spec.start
    return ZERO_TERM if bound == UNBOUNDED else _clipped("<", _moved(window, own, bound, direction), ZERO_TERM)


def _last(window: Window, own: Term) -> Term:
    """The number of the last row of the frame."""
    (bound, direction), last = window.spec.end, op("-", window.count(), ONE_TERM)
    if bound == UNBOUNDED or not window.keys():
        return last
    if window.spec.unit != "ROWS":
        return op("-", window.count(up_to(window.keys())), ONE_TERM)
    return _clipped(">", _moved(window, own, bound, direction), last)


def _moved(window: Window, own: Term, bound: object, direction: str) -> Term:
    if not isinstance(bound, exp.Expr):
        return own
    distance = whole_constant(bound, window.scope, "a distance of ROWS")
    return op("-" if direction == "PRECEDING" else "+", own, number(distance or 0))


def _clipped(sign: str, term: Term, end: Term) -> Term:
    return op("case", op(sign, term, end), end, term)


PLACES: dict[type[exp.Expr], Callable[[Window], Expr]] = {
    exp.RowNumber: _row_number,
    exp.Ntile: _ntile,
    exp.Lag: _shifted,
    exp.Lead: _shifted,
    exp.NthValue: _nth,
    exp.FirstValue: _nth,
    exp.LastValue: _nth,
}
