"""Nested aggregates that are equal but for names become one query.

A view that is read twice, the sets of a ROLLUP, and a group with SUM and AVG of the same rows state one subquery many
times, each time with names of its own. What the compiler remembers of a query (its delta, its normal form, its maps) is
then known for all. So a nested aggregate takes the names of the first that looks like it. What it reads from outside,
or gives to it, can have those names only where a Sum around it has all uses of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewlet.algebra.canonical import canonical
from viewlet.algebra.query import (
    Bind,
    Exists,
    Query,
    Sum,
    atoms,
    factors,
    inputs,
    map_children,
    outputs,
    relations,
    rename,
    sum_,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.sessions import is_sessions

Nested = Bind | Exists
Alike = dict[tuple[str, ...], list[Nested]]  # the relations that are read ↦ the nested aggregates over them

_shape = remembered(1 << 12)(canonical)


def with_one_of_each(q: Query, known: Alike, around: frozenset[str] = frozenset()) -> Query:
    """Q with each nested aggregate as the first that was met of those that are equal but for names.

    ``around`` are the names in use outside: none of them is summed out inside.
    """
    if is_sessions(q):
        return q  # it is known by the names that it gives to its parts
    inside = around | outputs(q)
    after = map_children(q, lambda child: with_one_of_each(child, known, inside))
    if isinstance(after, Sum):
        return _with_names_of_others(after, known, around)
    return _first(after, known, inside) if _is_nested(after) else after


def _is_nested(q: Query) -> bool:
    return isinstance(q, Nested) and bool(relations(q))


def _first(q: Query, known: Alike, around: frozenset[str]) -> Query:
    """The first that looks like Q, with the names of Q where others see them."""
    assert isinstance(q, Nested)
    found = _like(q, known)
    if found is None:
        known.setdefault(_signature(q), []).append(q)
        return q
    other, theirs = found
    if not _local(other.query).isdisjoint(around | inputs(q) | outputs(q)):
        return q
    ours = {their: our for our, their in theirs.items() if our not in _local(q.query)}
    same = rename(other.query, ours)
    return Bind(q.var, same) if isinstance(q, Bind) else Exists(same)


def _with_names_of_others(q: Sum, known: Alike, around: frozenset[str]) -> Query:
    """Q with what it sums out named as around the first of each nested aggregate in it."""
    own = outputs(q.query) - q.group
    taken = variables(q) | around
    names: dict[str, str] = {}
    for f in factors(q.query):
        found = _like(f, known) if isinstance(f, Nested) and own & variables(f) and relations(f) else None
        for our, their in () if found is None else found[1].items():
            if our in own and our not in names and their not in taken:
                names[our] = their
                taken |= {their}
    return sum_(q.group, rename(q.query, names)) if names else q


def _like(q: Nested, known: Alike) -> tuple[Nested, Mapping[str, str]] | None:
    """Another that differs in names only, and its name for each name of Q."""
    for other in known.get(_signature(q), ()):
        if type(other) is type(q) and (found := _names(q.query, other.query)) is not None:
            if not (isinstance(q, Bind) and isinstance(other, Bind)):
                return other, found
            if _agree(q.var, other.var, found):
                return other, {**found, q.var: other.var}
    return None


def _agree(ours: str, theirs: str, names: Mapping[str, str]) -> bool:
    """Whether the two values may have one name, too: (g := Sum[g](R(g))), a key that is its own count, is another."""
    same = {our for our, their in names.items() if their == theirs}
    return names.get(ours, theirs) == theirs and same <= {ours}


def _names(q: Query, other: Query) -> Mapping[str, str] | None:
    if q is other:
        return {v: v for v in variables(q)}
    (text, ours), (same, theirs) = _shape(q), _shape(other)
    named = {label: v for v, label in theirs.items()}
    return {v: named[label] for v, label in ours.items()} if text == same else None


def _signature(q: Query) -> tuple[str, ...]:
    return tuple(sorted(atom.name for atom in atoms(q)))


def _local(q: Query) -> frozenset[str]:
    return variables(q) - inputs(q) - outputs(q)
