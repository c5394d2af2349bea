"""Unions that make several rows of one: the windows of a HOP, or the rows of LATERAL (VALUES (a), (b)).

    T(x; w) = (w := t₁(x)) + (w := t₂(x)) + …

R ⋈ T is one relation with more rows. Multiplied out, it would be n: a sum over it n maps, and a group of it n groups.
"""

from __future__ import annotations

from viewlet.algebra.query import Bind, Query, Union, Value, factors, inputs, outputs
from viewlet.algebra.remembered import remembered


@remembered(1 << 14)
def is_turns(q: Query) -> bool:
    """Each branch gives the same columns a value, each by a term of the row."""
    if not isinstance(q, Union):
        return False
    given = outputs(q)
    return bool(given) and all(_gives(b, given) for b in q.branches)


def _gives(q: Query, given: frozenset[str]) -> bool:
    parts = factors(q)
    named = [f.var for f in parts if isinstance(f, Bind) and isinstance(f.query, Value) and inputs(f)]
    return len(named) == len(parts) and len(set(named)) == len(named) and given == frozenset(named)
