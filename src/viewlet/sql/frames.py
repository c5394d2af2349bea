"""Frames: which rows of a partition a window function goes over, as factors that compare them with the row itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.algebra.query import ONE, Compare, Query, join, union
from viewlet.algebra.terms import FALSE, TRUE, Var, op
from viewlet.sql.expr import Expr, variable
from viewlet.sql.expression import computed
from viewlet.sql.scope import Field, Scope
from viewlet.sql.types import comparable
from viewlet.sql.unsupported import only

Frame = Query | None  # None: all rows of the partition
_RANGE = "RANGE and ROWS frames are taken: choose when you read"
_BOUND = "write RANGE BETWEEN x PRECEDING AND CURRENT ROW"


@dataclass(frozen=True)
class Key:
    """A term of the ORDER BY: ``var`` has its value for a row of the frame, ``this`` for the row itself."""

    var: str
    this: str
    expr: Expr
    descending: bool = False
    nulls_first: bool = False

    @property
    def reversed(self) -> Key:
        return replace(self, descending=not self.descending, nulls_first=not self.nulls_first)

    def earlier(self) -> Query:
        """Disjoint cases: a smaller value, and NULL beside a value."""
        smaller = Compare(">" if self.descending else "<", Var(self.var), Var(self.this))
        if not self.expr.nullable:
            return smaller
        first, second = (self.var, self.this) if self.nulls_first else (self.this, self.var)
        return union(smaller, join(_is_null(first, True), _is_null(second, False)))

    def same(self) -> Query:
        """Disjoint cases. Two names that are equal may become one, by which NULL meets NULL, so NULL is ruled out."""
        equal = Compare("=", Var(self.var), Var(self.this))
        if not self.expr.nullable:
            return equal
        return union(join(equal, _is_null(self.var, False)), join(_is_null(self.var, True), _is_null(self.this, True)))


def _is_null(var: str, wanted: bool) -> Query:
    return Compare("=", op("is_null", Var(var)), TRUE if wanted else FALSE)


def before(keys: Sequence[Key]) -> Query:
    """The rows that come before this one: by the first key, or of those that agree in it, by the others."""
    first, *others = keys
    return union(first.earlier(), join(first.same(), before(others))) if others else first.earlier()


def peers(keys: Sequence[Key]) -> Query:
    return join(*(key.same() for key in keys))


def up_to(keys: Sequence[Key]) -> Query:
    """The rows before this one and its peers, which are one range where there is one key and no NULL."""
    if len(keys) == 1 and not keys[0].expr.nullable:
        return Compare(">=" if keys[0].descending else "<=", Var(keys[0].var), Var(keys[0].this))
    return union(before(keys), peers(keys))


def frame_of(node: exp.Window, keys: tuple[Key, ...], scope: Scope) -> Frame:
    """The rows that a window function goes over: without a frame, those up to the row and its peers."""
    spec, source = node.args.get("spec"), scope.session.source
    if spec is None:
        return up_to(keys) if keys else None
    only(source, spec, frozenset({"kind", "start", "start_side", "end", "end_side"}), {})
    start, end = _side(spec, "start"), _side(spec, "end") if spec.args.get("end") else ("CURRENT ROW", "")
    if start == ("UNBOUNDED", "PRECEDING") and end == ("UNBOUNDED", "FOLLOWING"):
        return None
    if str(spec.args["kind"]).upper() != "RANGE":
        raise source.unsupported(node, f"a {str(spec.args['kind']).upper()} frame", _RANGE)
    if not keys:
        return None
    reach = [_from(start, spec, keys, node, scope), _until(end, spec, keys, node, scope)]
    return _both([part for part in reach if part is not None])


def has_row(node: exp.Window) -> bool:
    """Whether the row itself is in its frame, so that no frame is empty."""
    spec = node.args.get("spec")
    if spec is None:
        return True
    start, end = _side(spec, "start"), _side(spec, "end") if spec.args.get("end") else ("CURRENT ROW", "")
    return start[1] != "FOLLOWING" and end[1] != "PRECEDING"


def _side(spec: exp.Expr, name: str) -> tuple[object, str]:
    bound = spec.args[name]
    word = bound.upper() if isinstance(bound, str) else bound
    return word, str(spec.args.get(f"{name}_side") or "").upper()


def _both(parts: list[Query]) -> Query:
    return join(*parts) if parts else ONE


Side = tuple[object, str]


def _until(side: Side, spec: exp.Expr, keys: tuple[Key, ...], node: exp.Window, scope: Scope) -> Frame:
    """The rows that do not come behind the end of the frame."""
    if side == ("UNBOUNDED", "FOLLOWING"):
        return None
    if side[0] == "CURRENT ROW":
        return up_to(keys)
    return _offset(spec.args["end"], side[1] == "FOLLOWING", keys, node, scope)


def _from(side: Side, spec: exp.Expr, keys: tuple[Key, ...], node: exp.Window, scope: Scope) -> Frame:
    """The same from the other end."""
    if side == ("UNBOUNDED", "PRECEDING"):
        return None
    backwards = tuple(key.reversed for key in keys)
    if side[0] == "CURRENT ROW":
        return up_to(backwards)
    return _offset(spec.args["start"], side[1] == "PRECEDING", backwards, node, scope)


def _offset(bound: exp.Expr, is_further: bool, keys: tuple[Key, ...], node: exp.Window, scope: Scope) -> Query:
    """[t <= this + x], for ``x FOLLOWING``; in a descending order [t >= this - x]."""
    source = scope.session.source
    key = keys[0]
    if len(keys) != 1 or key.expr.nullable:
        hint = "order by one expression that is never NULL: coalesce(t, …)"
        raise source.unsupported(node, "a RANGE with a distance", hint)
    if bound.find(exp.Column, exp.Query, exp.Neg):
        raise source.unsupported(node, "a RANGE with a computed distance", _BOUND)
    here = Scope(scope.session, (Field("#", "this", variable(key.this, key.expr.type, False)),))
    symbol = "-" if key.descending == is_further else "+"
    edge = computed(bound, here, symbol, exp.column("this", table="#"), bound)
    sides = comparable(variable(key.var, key.expr.type, False), edge, by_order=True)
    if sides is None or edge.nullable:
        raise source.error(node, f"a distance of {bound.sql('duckdb')} does not fit the ORDER BY", _BOUND)
    return Compare(">=" if key.descending else "<=", sides[0].bare, sides[1].bare)
