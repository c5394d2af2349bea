"""What a user sees is within its column: the bounds that C++ must watch, and the tests that do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from viewlet.algebra.terms import Term, free
from viewlet.engines.native.emit.keys import column, view_constant
from viewlet.engines.native.emit.layout import MapLayout, Member
from viewlet.engines.native.emit.pointers import Pointer
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.values import Scope, integer
from viewlet.loops.infer import Kinds
from viewlet.loops.lower import counts_rows
from viewlet.loops.steps import Factor
from viewlet.program.kinds import REAL, WIDEST, Exact, Kind, term_kind
from viewlet.program.limits import KeyLimits, Limit, key_limits, limits, multiplied
from viewlet.program.trigger import Program


@dataclass(frozen=True)
class Check:
    """C++ that reports what a column cannot show; ``reads``: how many columns of an entry's key are in it."""

    text: str
    reads: int


@dataclass(frozen=True)
class Limits:
    """Of views, by name: the bounds of sums, those of keys, and the names of their columns.

    ``finite`` are the views that may hold no infinity.
    """

    sums: Mapping[str, tuple[int, int]]
    keys: Mapping[str, KeyLimits]
    columns: Mapping[str, tuple[str, ...]]
    finite: frozenset[str]

    @staticmethod
    def of(program: Program, kinds: Kinds) -> Limits:
        columns = {v.name: v.outputs for v in program.views}
        counts = frozenset(v.name for v in program.views if counts_rows(v.definition))
        return Limits(_sum_bounds(program, kinds), _key_bounds(program, kinds), columns, multiplied(program, counts))

    def sum_checks(self, member: Member, slot: str) -> list[str]:
        if member.view not in self.sums:
            return []
        return [f"within(faults, {view_constant(member.view)}, {slot}, {_bounds_text(self.sums[member.view])})"]

    def key_checks(self, terms: Terms, map_: MapLayout, member: Member, entry: Pointer) -> list[Check]:
        """Of what a user sees of an entry's key."""
        if member.view not in self.keys:
            return []
        fields = zip(self.columns[member.view], map_.key, strict=True)
        scope = {n: column(f"{entry.member}key", f) for n, f in fields}
        view = view_constant(member.view)
        return [_key_check(terms, view, term, limit, scope) for term, limit in self.keys[member.view].items()]


def _key_check(terms: Terms, view: str, term: Term, limit: Limit, scope: Scope) -> Check:
    terms.view = view
    value = terms.factor(Factor(term, True, False), scope)
    if not isinstance(value.kind, Exact):
        return Check(terms.bounded(value).text, len(free(term)))
    bounds = _bounds_text(limit.units(value.kind.scale))
    return Check(f"within(faults, {view}, {value.text}, {bounds})", len(free(term)))


def _sum_bounds(program: Program, kinds: Kinds) -> dict[str, tuple[int, int]]:
    """Of the sums that a user sees and that could leave their columns: the integers of last places that fit."""
    bounds = {}
    for view, limit in limits(program).items():
        kind = kinds.values[view]
        if _may_leave(kind, limit):
            bounds[view] = limit.units(kind.scale)
    return bounds


def _key_bounds(program: Program, kinds: Kinds) -> dict[str, KeyLimits]:
    """Of the keys that a user sees and that could leave their columns."""
    bounds = {}
    for view, of in key_limits(program).items():
        columns = dict(zip(program.view(view).outputs, kinds.columns[view], strict=True))
        terms = {term: (term_kind(term, columns), limit) for term, limit in of.items()}
        bounds[view] = {term: limit for term, (kind, limit) in terms.items() if kind == REAL or _may_leave(kind, limit)}
    return bounds


def _may_leave(kind: Kind, limit: Limit) -> TypeGuard[Exact]:
    if not isinstance(kind, Exact):
        return False
    low, high = limit.units(kind.scale)
    return high < (1 << kind.bits) - 1 or low > -(1 << kind.bits)


def _bounds_text(bounds: tuple[int, int]) -> str:
    return ", ".join(integer(n, Exact(0, WIDEST)) for n in bounds)
