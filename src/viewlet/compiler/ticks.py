"""Deltas of views that compare rows with the clock: a tick costs the rows that it lets in or out.

now() is a nested aggregate n over a relation of one row, and a tick moves n to n'. A test T(n) changes only for the
rows between the two:

    Δ[t > f(n)] = [t > f(n')] ⋈ [t <= f(n)] − [t > f(n)] ⋈ [t <= f(n')]

One of the two ranges is empty, and an order of t has the other one. The general rule cannot restrict a nested aggregate
without equalities, and evaluates every group again (§5.1).
"""

from __future__ import annotations

from collections.abc import Sequence

from viewlet.algebra.query import (
    Bind,
    Compare,
    Join,
    Query,
    Sum,
    Union,
    inputs,
    join,
    negate,
    outputs,
    relations,
    rename,
    sum_,
    union,
    variables,
)
from viewlet.algebra.terms import COMPARISONS, NEGATED, Op
from viewlet.compiler.delta import delta
from viewlet.program.trigger import Event
from viewlet.schema import CLOCK

_LOGIC = frozenset({"and", "or", "not", *COMPARISONS})


def delta_of_tick(q: Query, e: Event) -> Query | None:
    """ΔQ under a tick; None where Q does more with the clock than to compare rows with it."""
    if CLOCK.name not in relations(q):
        return union()
    match q:
        case Union(parts):
            changes = [delta_of_tick(b, e) for b in parts]
            known = [change for change in changes if change is not None]
            return union(*known) if len(known) == len(changes) else None
        case Sum(group, inner):
            change = delta_of_tick(inner, e)
            return None if change is None else sum_((group | inputs(q)) & outputs(change), change)
        case Join(parts):
            return _of_product(parts, e)
    return None


def _of_product(parts: tuple[Query, ...], e: Event) -> Query | None:
    """Δ(Q ⋈ T₁(n) ⋈ T₂(n)) := Q ⋈ ΔT₁ ⋈ T₂(n') + Q ⋈ T₁(n) ⋈ ΔT₂"""
    shown = [f for f in parts if isinstance(f, Bind) and relations(f) == {CLOCK.name} and not inputs(f)]
    names = {f.var: f"{f.var}.next" for f in shown}
    others = [f for f in parts if f not in shown]
    tests = [f for f in others if variables(f) & names.keys()]
    rest = [f for f in others if f not in tests]
    moved = [Bind(names[f.var], union(f.query, delta(f.query, e))) for f in shown]
    comparisons = [f for f in tests if isinstance(f, Compare) and _is_plain(f)]
    if len(comparisons) < len(tests) or CLOCK.name in relations(join(*rest)):
        return None
    after = [_renamed(f, names) for f in comparisons]
    kept = outputs(join(*rest)) | inputs(join(*parts))
    terms = []
    for i, (old, new) in enumerate(zip(comparisons, after, strict=True)):
        around = join(*rest, *shown, *moved, *comparisons[:i], *after[i + 1 :])
        terms += [join(around, change) for change in _crossed(old, new)]
    return union(*(sum_(kept & outputs(term), term) for term in terms))


def _is_plain(test: Compare) -> bool:
    """A comparison of two values, not the truth of a term."""
    return not any(isinstance(side, Op) and side.name in _LOGIC for side in (test.left, test.right))


def _renamed(test: Compare, names: dict[str, str]) -> Compare:
    after = rename(test, names)
    assert isinstance(after, Compare)
    return after


def _crossed(old: Compare, new: Compare) -> Sequence[Query]:
    """T(n') − T(n), as products that only the rows between n and n' are in."""
    if old.op == "=":
        return new, negate(old)
    if old.op == "<>":
        return Compare("=", old.left, old.right), negate(Compare("=", new.left, new.right))
    return join(new, _negated(old)), negate(join(old, _negated(new)))


def _negated(test: Compare) -> Compare:
    """A NULL meets neither; with it, no change is there to be found."""
    return Compare(NEGATED[test.op], test.left, test.right)
