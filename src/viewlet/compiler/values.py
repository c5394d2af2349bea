"""Maps by the values of groups: an event moves one group from its old value to its new one.

A grouped subquery inside another query is a nested aggregate for each group k. Rule (4) of Figure 2 would keep the
groups, and go over all of them to compare their values. Instead the value is a key of its own:

    V[k, s] = Sum_{k,s}(Q_k ⋈ (s := Q_s[k]))

Its delta is D ⋈ (new − old), where D is the one group that the event names (§5.2): two entries of V change. Whatever
compares, ranks or adds up the values reads V as it would read a relation: by a lookup, a slice or an order.
"""

from __future__ import annotations

from typing import TypeGuard

from viewlet.algebra.query import (
    Bind,
    Exists,
    Query,
    Rel,
    inputs,
    join,
    outputs,
    reads_update,
    relations,
    variables,
)
from viewlet.compiler.context import Context
from viewlet.compiler.restriction import incremental


def value_map(group: frozenset[str], parts: tuple[Query, ...], context: Context) -> frozenset[Query]:
    """The nested factors of 𝓜(Sum_A(f₁ ⋈ f₂ ⋈ …)) that stay in the map, since it is read by a value of theirs."""
    if not context.by_value or not context.ordered or context.strategy.caches:
        return frozenset()
    groups = [f for f in parts if isinstance(f, Rel) or _is_group(f, context)]
    values = _values(groups, [f for f in parts if f not in groups], context)
    rest = [f for f in parts if f not in groups and f not in values]
    kept = [*groups, *values] if any(_is_key(f.var, group, [*groups, *values], rest) for f in values) else []
    kept += [f for f in parts if _is_counted(f, group, parts, context)]
    return frozenset(f for f in kept if not isinstance(f, Rel))


def _is_counted(f: Query, group: frozenset[str], parts: tuple[Query, ...], context: Context) -> bool:
    """Sum_A(Exists(Q_{A,k})): a number of groups, which changes by one at most."""
    if not isinstance(f, Exists) or not relations(f) or inputs(f) or reads_update(f):
        return False
    used = group.union(context.bound, *(variables(g) for g in parts if g is not f))
    return not outputs(f) <= used and incremental(f, context)


def _is_group(f: Query, context: Context) -> bool:
    """Exists(Q_k): the groups, of which an event changes few."""
    return isinstance(f, Exists) and bool(relations(f)) and _is_apart(f, context) and incremental(f, context)


def _values(groups: list[Query], others: list[Query], context: Context) -> list[Bind]:
    """Each (s := Q_s[k]) whose k is a group, or a value of one; not where something else leads to few k."""
    found: list[Bind] = []
    waiting = [f for f in others if _is_value(f, context)]
    while more := [f for f in waiting if f not in found and inputs(f) <= outputs(join(*groups, *found))]:
        found += more
    rest = outputs(join(*(f for f in others if f not in found)))
    return [f for f in found if not inputs(f) <= rest]


def _is_value(f: Query, context: Context) -> TypeGuard[Bind]:
    if not isinstance(f, Bind) or not relations(f) or not inputs(f):
        return False
    return _is_apart(f.query, context) and incremental(f, context)


def _is_apart(q: Query, context: Context) -> bool:
    """A parameter would lead to the group itself: a lookup."""
    return not variables(q) & context.bound and not reads_update(q)


def _is_key(value: str, group: frozenset[str], kept: list[Query], rest: list[Query]) -> bool:
    """The value is looked up or compared by itself: beside other columns of its rows, it has no order.

    A test with nothing but columns of its rows makes no key of it, unless there is one value for each group.
    """
    given = outputs(join(*kept))
    users = [f for f in rest if value in inputs(f) | outputs(f)]
    outside = [f for f in users if relations(f) or not inputs(f) <= given]
    if any((inputs(f) | outputs(f)) & given != {value} for f in outside):
        return False
    one_each = bool(users) and not any(isinstance(f, Rel) for f in kept)
    return value in group or bool(outside) or one_each
