"""Deltas in two halves: what the places that change had before the event, and what they have after it.

    ΔQ = Q_before + Q_after        Q = L ⋈ N, N nested aggregates that change in the places D, L the rest
    Q_before = ΔL ⋈ N − (L + ΔL) ⋈ D ⋈ N        over old versions of maps
    Q_after  = L ⋈ D ⋈ N                        over new ones

The delta of one nested aggregate inside another has the new version of the inner one written out, as the old one and
its delta. Nothing has an order then: MAX over Q + ΔQ would be a loop. In halves each aggregate is read from a map.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from viewlet.algebra.query import (
    ZERO,
    Bind,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    children,
    factors,
    inputs,
    join,
    negate,
    outputs,
    relations,
    sum_,
    union,
)
from viewlet.algebra.sessions import is_sessions
from viewlet.algebra.terms import Var
from viewlet.algebra.turns import is_turns
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta, with_plain_locals
from viewlet.compiler.refresh import union_of, update
from viewlet.compiler.simplify import simplify
from viewlet.compiler.values import is_running
from viewlet.program.trigger import Event

Halves = tuple[Query, Query]


def halves(q: Query, e: Event) -> Halves | None:
    """(Q_before, Q_after); None where nothing runs inside Q, or where it may change anywhere."""
    return _halves(q, e) if runs_inside(q, e) else None


def runs_inside(q: Query, e: Event) -> bool:
    """At some depth, a nested aggregate that the event changes runs with the row around it."""
    if e.relation not in relations(q) or is_sessions(q):
        return False
    return (isinstance(q, Bind) and is_running(q)) or any(runs_inside(child, e) for child in children(q))


def _halves(q: Query, e: Event) -> Halves | None:
    match q:
        case Union(parts):
            split = [_halves(b, e) for b in parts]
            known = [s for s in split if s is not None]
            if len(known) < len(parts):
                return None
            return union(*(before for before, _ in known)), union(*(after for _, after in known))
        case Sum(group, inner):
            found = _halves(inner, e)
            if found is None:
                return None
            before, after = (sum_((group | inputs(q)) & outputs(half), half) for half in found)
            return before, after
        case Join() | Bind() | Exists():
            return _of_product(factors(q), e)
        case _:
            return delta(q, e), ZERO


def _of_product(parts: tuple[Query, ...], e: Event) -> Halves | None:
    nested = [f for f in parts if isinstance(f, (Bind, Exists)) and e.relation in relations(f)]
    rest = join(*(f for f in parts if f not in nested))
    change = delta(rest, e)
    domain = _places(parts, nested, e)
    if domain is None:
        return None
    old = join(change, *nested) if change != ZERO else ZERO
    gone = join(union(rest, change), domain, *nested)
    return union(old, negate(gone)), join(rest, domain, *nested)


def _places(parts: tuple[Query, ...], nested: Sequence[Query], e: Event) -> Query | None:
    """D, over the columns that the event names for each aggregate; None where one may change anywhere.

    It is also None where the event itself has a column of D: the other rules aim at that one group.
    """
    params = frozenset(e.params)
    found = [_with_computed(c, parts) for f in nested for c in _changes(f, e)]
    shown = outputs(join(*parts)).intersection(*map(outputs, found))
    if not found or not shown:
        return None
    around = Context(bound=params, event=e)
    domains = [simplify(Exists(sum_(shown, c)), around) for c in found]
    return None if any(map(_is_aimed, domains)) else union_of([with_plain_locals(d) for d in domains])


def _changes(q: Query, e: Event) -> Iterator[Query]:
    """The event's row wherever Q reads it, with what is computed from it; outside a sum only what is shown there."""
    if e.relation not in relations(q):
        return
    match q:
        case Rel():
            yield update(q, e)
        case Join(parts):
            for f in parts:
                yield from (_with_computed(c, parts) for c in _changes(f, e))
        case Sum(group, inner):
            for c in _changes(inner, e):
                yield sum_((group | inputs(q)) & outputs(c), c)
        case _:
            for child in children(q):
                yield from _changes(child, e)


def _with_computed(change: Query, parts: tuple[Query, ...]) -> Query:
    waiting = [f for f in parts if is_turns(f) or (isinstance(f, Bind) and isinstance(f.query, Value))]
    while near := [f for f in waiting if inputs(f) <= outputs(change) and not outputs(f) <= outputs(change)]:
        change = join(change, *near[:1])
    return change


def _is_aimed(domain: Query) -> bool:
    """(x := @p) is a factor."""
    bindings = [f for f in factors(domain) if isinstance(f, Bind) and isinstance(f.query, Value)]
    return any(isinstance(f.query, Value) and isinstance(f.query.term, Var) for f in bindings)
