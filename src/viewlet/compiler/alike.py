"""Nested aggregates that are equal but for the names of what they sum out become one query.

A view that is read twice, and a group with SUM and AVG of the same rows, state one subquery many times, each time with
names of its own. What the compiler remembers of a query (its delta, its normal form, its maps) is then known for all.
"""

from __future__ import annotations

from viewlet.algebra.query import Bind, Exists, Query, inputs, map_children, outputs, relations, variables
from viewlet.compiler.delta import with_plain_locals

Alike = dict[Query, list[Query]]  # a nested aggregate with its locals named by their place ↦ those that look like this


def with_one_of_each(q: Query, known: Alike, around: frozenset[str] = frozenset()) -> Query:
    """Q with each nested aggregate as the first that was met of those that are equal but for names.

    ``around`` are the names in use outside: none of them is summed out inside.
    """
    inside = around | outputs(q)
    after = map_children(q, lambda child: with_one_of_each(child, known, inside))
    match after:
        case Bind(var, inner) if relations(inner):
            return Bind(var, _first(inner, known, inside | {var}))
        case Exists(inner) if relations(inner):
            return Exists(_first(inner, known, inside))
    return after


def _first(q: Query, known: Alike, around: frozenset[str]) -> Query:
    if not _local(q):
        return q
    alike = known.setdefault(with_plain_locals(q), [])
    for other in alike:
        if _local(other).isdisjoint(around):
            return other
    alike.append(q)
    return q


def _local(q: Query) -> frozenset[str]:
    return variables(q) - inputs(q) - outputs(q)
