"""What a user sees is within its column: the bounds that C++ must watch, and the tests that do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from viewlet.engines.native.emit.keys import view_constant
from viewlet.engines.native.emit.places import member_of
from viewlet.engines.native.emit.values import integer
from viewlet.loops.infer import Kinds
from viewlet.loops.steps import Factor
from viewlet.program.kinds import REAL, WIDEST, Exact, Kind, term_kind
from viewlet.program.limits import KeyLimits, Limit, key_limits, limits
from viewlet.program.trigger import Program

if TYPE_CHECKING:
    from viewlet.engines.native.emit.layout import MapLayout, Member
    from viewlet.engines.native.emit.nest import Nest


def sum_bounds(program: Program, kinds: Kinds) -> dict[str, tuple[int, int]]:
    """Of the sums that a user sees and that could leave their columns: the integers of last places that fit."""
    found = {}
    for view, limit in limits(program).items():
        kind = kinds.values[view]
        if _may_leave(kind, limit):
            found[view] = limit.units(kind.scale)
    return found


def key_bounds(program: Program, kinds: Kinds) -> dict[str, KeyLimits]:
    """Of the keys that a user sees and that could leave their columns."""
    found = {}
    for view, of in key_limits(program).items():
        columns = dict(zip(program.view(view).outputs, kinds.columns[view], strict=True))
        terms = {term: (term_kind(term, columns), limit) for term, limit in of.items()}
        found[view] = {term: limit for term, (kind, limit) in terms.items() if kind == REAL or _may_leave(kind, limit)}
    return found


def _may_leave(kind: Kind, limit: Limit) -> TypeGuard[Exact]:
    if not isinstance(kind, Exact):
        return False
    low, high = limit.units(kind.scale)
    return high < (1 << kind.bits) - 1 or low > -(1 << kind.bits)


def bounds_text(bounds: tuple[int, int]) -> str:
    return ", ".join(integer(n, Exact(0, WIDEST)) for n in bounds)


def key_checks(nest: Nest, found: MapLayout, member: Member, entry: str) -> list[str]:
    """For what a user sees of an entry's key, a C++ expression that reports what its column cannot show."""
    if member.view not in nest.key_limits:
        return []
    view, terms = view_constant(member.view), nest.terms
    fields = zip(nest.columns[member.view], found.key, strict=True)
    scope = {n: nest.column(f"{member_of(entry)}key", f) for n, f in fields}
    checks = []
    for term, limit in nest.key_limits[member.view].items():
        terms.view = view
        value = terms.factor(Factor(term, True, False), scope)
        if isinstance(value.kind, Exact):
            checks.append(f"within(faults, {view}, {value.text}, {bounds_text(limit.units(value.kind.scale))})")
        else:
            checks.append(terms.bounded(value).text)
    return checks
