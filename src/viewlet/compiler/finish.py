"""Finished when read: rule (1) of Figure 2 at the root of a view.

Sum_A(Q₁ ⋈ Q₂), whose parts have no variable in common but A, is M₁[A] · M₂[A]. The triggers keep both maps anyway, to
refresh the product. So nobody keeps the product: the reader of a row multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from viewlet.algebra.query import (
    Materialize,
    Query,
    Value,
    View,
    branches,
    children,
    factors,
    inputs,
    map_children,
    outputs,
    relations,
)
from viewlet.algebra.rewrite import Rule, rule
from viewlet.algebra.terms import ZERO_TERM, Term, Var, op
from viewlet.compiler.aggregates import more_than_tested, only_tested, shows_all
from viewlet.compiler.context import Context
from viewlet.compiler.delta import with_plain_locals
from viewlet.compiler.materialize import (
    expand_term,
    expand_union,
    is_nested,
    leave_constants,
    leave_scalars,
    monomial,
    nested_aggregates_and_decorrelation,
    query_decomposition,
)
from viewlet.compiler.simplify import simplify
from viewlet.program.limits import shown_variable
from viewlet.program.trigger import Result

MOST_TERMS = 4  # that a reader adds up


@rule("Figure 2 (4) without an outer query: 𝓜(Sum(σ_{θ(Q_N)})) ⇒ Sum(σ_{θ(𝓜(Q_N))})")
def tests_alone(q: Query, context: Context) -> Query | None:
    _, parts = monomial(q, context)
    if any(relations(f) and not is_nested(f) for f in parts):
        return None
    return nested_aggregates_and_decorrelation.apply(q, context)


AT_THE_ROOT: tuple[Rule[Context], ...] = (
    leave_constants,
    expand_union,
    expand_term,  # before (1), as in Figure 2
    leave_scalars,
    query_decomposition,
    tests_alone,
)


def apart(q: Query, context: Context) -> Query | None:
    """Q with 𝓜 around each of its parts; None where some product of it has no two maps that change.

    The key of the row that is read is bound. ``context`` binds nothing. A test alone is no reason to take Q apart. Nor
    is a part that compares with the key: R(a) ⋈ Sum(S(b) ⋈ [a < b]) has no map for it.
    """
    if context.strategy.depth != "recursive" or context.strategy.caches:
        return None
    parts = _parts(q, outputs(q), context)
    products = branches(parts)
    if not 0 < len(products) <= MOST_TERMS or any(_changing(p, context) < 2 for p in products):
        return None
    return parts if _are_closed(parts) else None


def _parts(q: Query, key: frozenset[str], context: Context) -> Query:
    q = simplify(q, context)
    for r in AT_THE_ROOT:
        after = r.apply(q, context.binding(key))
        if after is not None:
            return _inside(after, key, context)
    return Materialize(q, frozenset())


def _inside(q: Query, key: frozenset[str], context: Context) -> Query:
    if isinstance(q, Materialize):
        return _parts(q.query, key, context)
    return map_children(q, lambda child: _inside(child, key, context))


def _are_closed(q: Query) -> bool:
    """Whether no part needs a variable from outside: only then is there a map for each."""
    return not inputs(q.query) if isinstance(q, Materialize) else all(map(_are_closed, children(q)))


def _changing(product: Query, context: Context) -> int:
    return sum(isinstance(f, Materialize) and bool(relations(f) - context.static) for f in factors(product))


def with_maps(q: Query, name: Callable[[Query], View]) -> Query:
    """Q with a map for each 𝓜."""
    if isinstance(q, Materialize):
        return name(q.query)
    return map_children(q, lambda child: with_maps(child, name))


# -- of which results --------------------------------------------------------------------------------------------------


def may_multiply(result: Result) -> bool:
    """Whether readers may multiply all numbers of a result: doubles that it shows as they are, and those it only tests.

    An update may not take a number of another type out of its column, so that one is kept and watched. Not where rows
    are kept in order or numbered, or where cells add numbers up.
    """
    if shows_all(result) or result.order or result.is_cut or result.extremes or result.gathers or result.single:
        return False
    plain = [c for c in result.columns if c.type.held.kind == "DOUBLE" and shown_variable(c)]
    terms: list[Term] = [c.term for c in result.columns if c not in plain]
    terms += [] if result.having is None else [result.having]
    elsewhere = frozenset[str]().union(*map(more_than_tested, terms))
    multiplied = (frozenset(map(shown_variable, plain)) - elsewhere) | only_tested(result)
    return all(var in multiplied for var, _ in result.lookups)


# -- which rows there are ----------------------------------------------------------------------------------------------


def rows_apart(q: Query, context: Context) -> tuple[Query, list[Query]] | None:
    """A count of rows as the part with their keys, and the parts without keys that must not be 0 either.

    None where two parts have keys: a reader would look at those of one that the other has not.
    """
    parts = apart(q, context)
    if parts is None or len(branches(parts)) > 1:
        return None
    read = list({with_plain_locals(f): f for f in factors(parts) if relations(f)}.values())
    keyed = [f for f in read if outputs(f)]
    if len(keyed) != 1 or outputs(keyed[0]) != outputs(q) or not isinstance(keyed[0], Materialize):
        return None
    is_closed = all(not inputs(f) and (relations(f) or isinstance(f, Value)) for f in factors(parts))
    return (keyed[0].query, [f for f in read if f is not keyed[0]]) if is_closed else None


def only_where(result: Result, numbers: Sequence[Query]) -> Result:
    """The result with rows only where each of these numbers is not 0."""
    known = {var for var, _ in result.lookups}
    names = [name for i in range(len(known) + len(numbers)) if (name := f"factor_{i + 1}") not in known]
    lookups = tuple(zip(names, numbers, strict=False))
    having = result.having
    for name, _ in lookups:
        test = op("<>", Var(name), ZERO_TERM)
        having = test if having is None else op("and", having, test)
    return replace(result, lookups=(*result.lookups, *lookups), having=having)
