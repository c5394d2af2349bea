"""Products of many nested aggregates: the groups that an event is about, evaluated once (§5.1, rule (4) R, by group).

    Q[k] += D[k] ⋈ (Q'[k] − Q[k])

The delta of a product of n nested aggregates that change has up to n terms with n factors each, before and after the
change. Its program would grow with n². Here D has the groups k in which a factor may change, Q' is read over views that
the trigger has refreshed already, and Q from the view itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.algebra.query import (
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    children,
    factors,
    inputs,
    join,
    outputs,
    relations,
    sum_,
    union,
)
from viewlet.algebra.terms import Var, free
from viewlet.compiler.delta import implies, support, with_plain_locals
from viewlet.program.trigger import Event

MOST_TERMS = 4  # nested aggregates of one product that change together and still have a delta each


def groups_that_change(q: Query, e: Event) -> Query | None:
    """D[k]: 1 on a superset of the groups of Q in which it changes; None where a delta says it better

    That is so where few nested aggregates change, where a change of some factor is about no group, or where no factor
    changes in whole groups: the rows of such a group would be visited for the sake of one of them.
    """
    product = factors(q.query if isinstance(q, Sum) else q)
    if sum(isinstance(f, (Bind, Exists)) and e.relation in relations(f) for f in product) <= MOST_TERMS:
        return None
    domains = [_with_equals(d, product) for f in product for d in changes(f, e)]
    key = outputs(q).intersection(*map(outputs, domains))
    if not key or not any(outputs(d) & outputs(q) == key for d in domains):
        return None
    return union_of([with_plain_locals(Exists(sum_(key, d))) for d in domains])


def changes(q: Query, e: Event) -> Iterator[Query]:
    """Domains that have together all tuples where Q changes, whether they are read before the event or after it."""
    if e.relation not in relations(q):
        return
    match q:
        case Rel():
            yield update(q, e)
        case Join(parts):
            around = [(f, s) for f in parts if (s := _around(f, e)) is not None]
            for f in parts:
                for change in changes(f, e):
                    yield _with_connected(change, [s for g, s in around if g is not f], frozenset(e.params))
        case Sum(group, inner):
            for change in changes(inner, e):
                yield Exists(sum_((group | inputs(q)) & outputs(change), change))
        case _:
            for child in children(q):
                yield from changes(child, e)


def _around(f: Query, e: Event) -> Query | None:
    """What a factor leaves of the others' changes: for a relation that changes itself, the rows of both versions."""
    if isinstance(f, Rel) and f.name == e.relation:
        return Exists(union(f, update(f, e)))
    return None if e.relation in relations(f) else support(f, frozenset(e.params))


def update(q: Rel, e: Event) -> Query:
    """The tuple of an event, or those of a bulk update, each once."""
    if e.kind == "Δ":
        return Exists(Delta(q.name, q.vars))
    return join(*(Bind(x, Value(Var(p))) for x, p in zip(q.vars, e.params, strict=True)))


def _with_connected(change: Query, around: list[Query], params: frozenset[str]) -> Query:
    """The change with each factor of ``around`` that a shared column leads to from there, and that can be evaluated."""
    rest = list(around)
    while True:
        given = outputs(change)
        near = [f for f in rest if inputs(f) <= given | params and (outputs(f) | inputs(f)) & given]
        if not near:
            return change
        change = join(change, *near)
        rest = [f for f in rest if f not in near]


def _with_equals(domain: Query, product: tuple[Query, ...]) -> Query:
    """D ⋈ (x := t) for each x that the product sets equal to a term t over what D gives."""
    for f in product:
        match f:
            case Compare("=", Var(x), t) | Compare("=", t, Var(x)) if x not in outputs(domain):
                if free(t) and free(t) <= outputs(domain):
                    domain = join(domain, Bind(x, Value(t)))
    return domain


def union_of(domains: list[Query]) -> Query:
    """Exists(D₁ + D₂ + …), without those that lie in another."""
    widest: list[Query] = []
    for d in domains:
        if not any(implies(d, w) for w in widest):
            widest = [*(w for w in widest if not implies(w, d)), d]
    return widest[0] if len(widest) == 1 else Exists(union(*widest))
