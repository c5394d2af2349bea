"""Frames: which rows of a partition a window function goes over, as factors that compare them with the row itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from viewlet.algebra.query import Compare, Query, join, union
from viewlet.algebra.terms import FALSE, ONE_TERM, TRUE, ZERO_TERM, Term, Var, number, op
from viewlet.program.trigger import Excluded
from viewlet.sql.expr import Expr, variable
from viewlet.sql.expression import computed
from viewlet.sql.functions import whole_constant
from viewlet.sql.scope import Field, Scope
from viewlet.sql.source import Source
from viewlet.sql.types import comparable
from viewlet.sql.unsupported import only

Frame = Query | None  # None: all rows of the partition
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


def apart(keys: Sequence[Key]) -> Query:
    """The rows that are no peers; without an ORDER BY all are."""
    if not keys:
        return Compare("=", ZERO_TERM, ONE_TERM)
    return union(before(keys), before([key.reversed for key in keys]))


def up_to(keys: Sequence[Key]) -> Query:
    """The rows before this one and its peers, which are one range where there is one key and no NULL."""
    if len(keys) == 1 and not keys[0].expr.nullable:
        return Compare(">=" if keys[0].descending else "<=", Var(keys[0].var), Var(keys[0].this))
    return union(before(keys), peers(keys))


@dataclass(frozen=True)
class Place:
    """How many rows or groups come before: ``own`` before the row itself, ``other`` before a row of its frame.

    ``count`` is the factor that gives ``other`` its value.
    """

    own: Term
    other: str
    count: Query


class Window(Protocol):
    """What a frame asks of its window: the order in which no two rows tie, and numbers in it or of groups."""

    @property
    def node(self) -> exp.Window: ...
    @property
    def scope(self) -> Scope: ...
    def keys(self) -> tuple[Key, ...]: ...
    def total(self) -> tuple[Key, ...]: ...
    def place(self, unit: str) -> Place: ...


Side = tuple[object, str]
UNBOUNDED = "UNBOUNDED"


@dataclass(frozen=True)
class Spec:
    """``unit BETWEEN start AND end``."""

    unit: str
    start: Side
    end: Side

    @property
    def is_whole(self) -> bool:
        return self.start == (UNBOUNDED, "PRECEDING") and self.end == (UNBOUNDED, "FOLLOWING")

    @property
    def has_distance(self) -> bool:
        return any(isinstance(bound, exp.Expr) for bound, _ in (self.start, self.end))

    @property
    def has_row(self) -> bool:
        """Whether the row itself is in its frame, so that no frame is empty."""
        return self.start[1] != "FOLLOWING" and self.end[1] != "PRECEDING"


def spec_of(node: exp.Window, source: Source) -> Spec:
    """Without a frame, the rows up to the row and its peers."""
    spec = node.args.get("spec")
    if spec is None:
        return Spec("RANGE", (UNBOUNDED, "PRECEDING"), ("CURRENT ROW", ""))
    only(source, spec, frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}), {})
    end = _side(spec, "end") if spec.args.get("end") else ("CURRENT ROW", "")
    return Spec(str(spec.args["kind"]).upper(), _side(spec, "start"), end)


def _side(spec: exp.Expr, name: str) -> Side:
    bound = spec.args[name]
    word = bound.upper() if isinstance(bound, str) else bound
    return word, str(spec.args.get(f"{name}_side") or "").upper()


def excluded_of(node: exp.Window) -> Excluded | None:
    """EXCLUDE CURRENT ROW, GROUP or TIES; NO OTHERS says nothing."""
    spec = node.args.get("spec")
    word = spec.args.get("exclude") if spec is not None else None
    return None if word is None else _EXCLUDED.get(word.name.upper())


_EXCLUDED: dict[str, Excluded] = {"CURRENT ROW": "current", "GROUP": "group", "TIES": "ties"}


def frame_of(window: Window) -> Frame:
    """The rows that a window function goes over."""
    spec = spec_of(window.node, window.scope.session.source)
    keys = window.total() if spec.unit == "ROWS" and not spec.is_whole else window.keys()
    if not keys and not spec.has_row:  # all rows of the partition are peers, and none may be in the frame
        what, hint = "a frame without its own row, ordered by columns of PARTITION BY alone,", "order by another column"
        raise window.scope.session.source.unsupported(window.node, what, hint)
    if spec.is_whole or not keys:
        return None
    backwards = tuple(key.reversed for key in keys)
    reach = [_edge(window, spec, spec.start, backwards, "PRECEDING"), _edge(window, spec, spec.end, keys, "FOLLOWING")]
    return join(*(part for part in reach if part is not None))


def _edge(window: Window, spec: Spec, side: Side, keys: tuple[Key, ...], away: str) -> Frame:
    """The rows that do not come behind the end of the frame, or with the order ``reversed``, before its start."""
    bound, direction = side
    if side == (UNBOUNDED, away):
        return None
    if bound == "CURRENT ROW":
        return up_to(keys)
    if not isinstance(bound, exp.Expr):
        raise window.scope.session.source.error(window.node, "a frame that ends before it starts", _BOUND)
    if spec.unit == "RANGE":
        return _offset(bound, direction == away, keys, window.node, window.scope)
    return _numbered(window, spec.unit, bound, direction, away)


def _numbered(window: Window, unit: str, bound: exp.Expr, direction: str, away: str) -> Query:
    """(m := the number of the other row) ⋈ [m <= n + x], for ``x FOLLOWING``."""
    distance = whole_constant(bound, window.scope, f"a distance of {unit}")
    if distance is None or distance < 0:
        raise window.scope.session.source.error(window.node, f"a distance of {unit} is a number from 0 on", _BOUND)
    place = window.place(unit)
    edge = op("+" if direction == "FOLLOWING" else "-", place.own, number(distance))
    return join(place.count, Compare("<=" if away == "FOLLOWING" else ">=", Var(place.other), edge))


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
