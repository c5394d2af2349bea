"""Maps by the values of groups: an event moves one group from its old value to its new one.

A grouped subquery inside another query is a nested aggregate for each group k. Rule (4) of Figure 2 would keep the
groups, and go over all of them to compare their values. Instead the value is a key of its own:

    V[k, s] = Sum_{k,s}(Q_k ⋈ (s := Q_s[k]))

Its delta is D ⋈ (new − old), where D is the one group that the event names (§5.2): two entries of V change. Whatever
compares, ranks or adds up the values reads V as it would read a relation: by a lookup, a slice or an order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    children,
    different_atoms,
    factors,
    inputs,
    join,
    map_children,
    outputs,
    reads_update,
    relations,
    variables,
)
from viewlet.algebra.terms import Term, Var, free
from viewlet.algebra.turns import is_turns
from viewlet.compiler.context import Context
from viewlet.compiler.restriction import incremental
from viewlet.loops.monotone import direction


def value_map(group: frozenset[str], parts: tuple[Query, ...], context: Context) -> frozenset[Query]:
    """The nested factors of 𝓜(Sum_A(f₁ ⋈ f₂ ⋈ …)) that stay in the map, since it is read by a value of theirs."""
    if not context.by_value or not context.ordered or context.strategy.caches:
        return frozenset()
    groups = [f for f in parts if isinstance(f, Rel) or _is_group(f, context)]
    groups += _computed(groups, parts)
    values = _finest(_values(groups, [f for f in parts if f not in groups], context))
    values += _of_values(groups, values, parts)
    groups = [g for g in groups if not _is_coarse(g, groups, values)]
    rest = [f for f in parts if f not in groups and f not in values]
    kept = [*groups, *values] if any(_is_key(f.var, group, [*groups, *values], rest) for f in values) else []
    kept += [f for f in parts if _is_counted(f, group, parts, context)]
    return frozenset(f for f in kept if not isinstance(f, Rel))


def _computed(groups: list[Query], parts: tuple[Query, ...]) -> list[Query]:
    """Columns of the groups that are computed: the window of a row."""
    found: list[Query] = []
    waiting = [f for f in parts if is_turns(f) or (isinstance(f, Bind) and isinstance(f.query, Value))]
    while more := [f for f in waiting if f not in found and inputs(f) and inputs(f) <= outputs(join(*groups, *found))]:
        found += more
    return found


def _of_values(groups: list[Query], values: list[Bind], parts: tuple[Query, ...]) -> list[Bind]:
    """Numbers that are computed of values alone: an average."""
    given, names = outputs(join(*groups, *values)), {f.var for f in values}
    computed = [f for f in parts if isinstance(f, Bind) and isinstance(f.query, Value) and f not in groups]
    return [f for f in computed if inputs(f) & names and inputs(f) <= given]


def with_names(group: frozenset[str], parts: tuple[Query, ...], context: Context) -> tuple[Query, ...]:
    """Q_k ⋈ (s := …) ⋈ [f(s) θ y]  ⇒  Q_k ⋈ (s := …) ⋈ (v := f(s)) ⋈ [v θ y], where the map is kept by v.

    The comparison may stand in a nested aggregate, which runs with v.
    """
    values = frozenset(f.var for f in parts if isinstance(f, Bind) and relations(f))
    known = {f.query.term: f.var for f in parts if isinstance(f, Bind) and isinstance(f.query, Value)}
    taken, sides = group.union(context.bound, *map(variables, parts)), dict[Term, str]()
    for term in dict.fromkeys(term for f in parts for term in _computed_sides(f, values)):
        sides[term] = known.get(term) or _name(term, taken)
        taken |= {sides[term]}
    while sides:
        new = [Bind(var, Value(term)) for term, var in sides.items() if term not in known]
        renamed = (*(_with_sides(f, sides) for f in parts), *new)
        kept = value_map(group, renamed, context)
        by_value = {term: var for term, var in sides.items() if Bind(var, Value(term)) in kept}
        if by_value == sides:
            return renamed
        sides = by_value
    return parts


def _computed_sides(f: Query, values: frozenset[str]) -> Iterator[Term]:
    """The sides of comparisons that are computed of values, where nothing of them is on the other side."""
    if isinstance(f, Compare):
        for side, other in ((f.left, f.right), (f.right, f.left)):
            if _is_computed(side, values) and free(other) and not free(side) & free(other):
                yield side
    elif isinstance(f, (Bind, Sum, Join)) and values & inputs(f):
        for child in children(f):
            yield from (side for side in _computed_sides(child, values) if free(side) <= inputs(f))


def _is_computed(side: Term, values: frozenset[str]) -> bool:
    """The term is made of values alone. One that rises or falls with a single value has the order of that value."""
    own = free(side)
    return bool(own) and own <= values and (len(own) > 1 or direction(side, min(own)) is None)


def _with_sides(f: Query, sides: Mapping[Term, str]) -> Query:
    if isinstance(f, Compare):
        return Compare(f.op, *(Var(sides[side]) if side in sides else side for side in (f.left, f.right)))
    return map_children(f, lambda child: _with_sides(child, sides)) if isinstance(f, (Bind, Sum, Join)) else f


def _name(term: Term, taken: frozenset[str]) -> str:
    """After a variable of the term: no other query has one of that name."""
    base = f"{min(free(term))}_value"
    return next(name for n in range(len(taken) + 1) if (name := f"{base}_{n + 1}" if n else base) not in taken)


def _is_counted(f: Query, group: frozenset[str], parts: tuple[Query, ...], context: Context) -> bool:
    """Sum_A(Exists(Q_{A,k})): a number of groups, which changes by one at most."""
    if not isinstance(f, Exists) or not relations(f) or inputs(f) or reads_update(f):
        return False
    used = group.union(context.bound, *(variables(g) for g in parts if g is not f))
    return not outputs(f) <= used and incremental(f, context)


def _is_group(f: Query, context: Context) -> bool:
    """Exists(Q_k): the groups, of which an event changes few."""
    if not isinstance(f, Exists) or not relations(f):
        return False
    return _is_apart(f, outputs(f), context) and incremental(f, context)


def _values(groups: list[Query], others: list[Query], context: Context) -> list[Bind]:
    """Each (s := Q_s[k]) whose k is a group, or a value of one; not where something else leads to few k."""
    found: list[Bind] = []
    waiting = [f for f in others if _is_value(f, context)]
    while more := [f for f in waiting if f not in found and inputs(f) <= outputs(join(*groups, *found))]:
        found += more
    rest = outputs(join(*(f for f in others if f not in found)))
    return [f for f in found if not inputs(f) <= rest]


def _finest(values: list[Bind]) -> list[Bind]:
    """Without each extremum of what some other value belongs to: that is compared with it, in order."""
    return [f for f in values if not (runs(f) and any(inputs(f) < inputs(g) for g in values if not runs(g)))]


def _is_coarse(group: Query, groups: list[Query], values: list[Bind]) -> bool:
    """Another group has all its columns and more, and no value is its own: it is looked up."""
    finer = any(isinstance(g, Exists) and outputs(group) < outputs(g) for g in groups)
    return isinstance(group, Exists) and finer and not any(inputs(f) <= outputs(group) for f in values)


def runs(q: Query) -> bool:
    """At some depth, a nested aggregate runs with the row around it."""
    return (isinstance(q, Bind) and is_running(q)) or any(map(runs, children(q)))


def _is_value(f: Query, context: Context) -> TypeGuard[Bind]:
    if not isinstance(f, Bind) or not relations(f) or not inputs(f):
        return False
    return _is_apart(f.query, inputs(f), context) and incremental(f, context)


def _is_apart(q: Query, group: frozenset[str], context: Context) -> bool:
    """A parameter would lead to the group itself, a lookup; a computed column leads to all groups of a window."""
    known = variables(q) & context.bound
    if not known:
        return not reads_update(q)
    stored = frozenset(x for atom in different_atoms(q) if isinstance(atom, Rel) for x in atom.vars)
    return known < group - stored and not runs(q) and not reads_update(q)


def _is_key(value: str, group: frozenset[str], kept: list[Query], rest: list[Query]) -> bool:
    """The value is looked up or compared by itself: beside other columns of its rows, it has no order.

    A test with nothing but columns of its rows makes no key of it, unless there is one value for each group.
    """
    given = outputs(join(*kept))
    users = [f for f in rest if value in inputs(f) | outputs(f)]
    outside = [f for f in users if relations(f) or not inputs(f) <= given]
    if any((inputs(f) | outputs(f)) & given != {value} for f in outside):
        return False
    one_each = bool(users) and (all(isinstance(f, Value) for f in users) or not any(isinstance(f, Rel) for f in kept))
    return value in group or bool(outside) or one_each


def is_running(f: Bind) -> bool:
    """A nested aggregate that compares rows with the outer row, and so runs as that one moves on."""
    body = f.query.query if isinstance(f.query, Sum) else f.query
    outer = inputs(f)
    return any(isinstance(c, Compare) and inputs(c) & outer and inputs(c) - outer for c in factors(body))
