"""Columns that nobody reads, left out of a view's definition before it is simplified.

Simplification goes from the leaves to the root, and a binding is known to be unused only where its Sum ends. A view
over a grouped subquery of forty sums would so bring all forty to rest for each sum that it keeps one of.
"""

from __future__ import annotations

from collections import Counter

from viewlet.algebra.query import (
    Bind,
    Exists,
    Join,
    Query,
    Sum,
    Union,
    inputs,
    join,
    map_children,
    outputs,
    sum_,
    union,
    variables,
)
from viewlet.algebra.remembered import remembered


def narrow(q: Query) -> Query:
    """Q without the bindings and columns that its own columns do not need."""
    return _narrow(q, outputs(q))


@remembered(1 << 14)
def _narrow(q: Query, needed: frozenset[str]) -> Query:
    """Sum_{needed}(Q), where Q may keep a column more."""
    match q:
        case Sum(group, inner):
            kept = group & needed
            after = _narrow(inner, kept)
            return sum_((kept | inputs(inner)) & outputs(after), after)
        case Join(parts):
            return join(*_read_parts(parts, needed))
        case Union(parts):
            seen = needed | inputs(q)  # what only some branches give is not theirs to leave out
            return union(*(_summed(_narrow(b, seen), seen) for b in parts))
        case Bind() | Exists():
            return map_children(q, narrow)
    return q


def _summed(q: Query, kept: frozenset[str]) -> Query:
    return sum_(kept & outputs(q), q)


def _read_parts(parts: tuple[Query, ...], needed: frozenset[str]) -> list[Query]:
    """The factors of a product whose columns are ``needed``: a binding that nobody reads has multiplicity 1."""
    uses = Counter(name for f in parts for name in variables(f))
    read = list(parts)
    while unread := [f for f in read if isinstance(f, Bind) and f.var not in needed and uses[f.var] == 1]:
        for f in unread:
            uses.subtract(variables(f))
        read = [f for f in read if f not in unread]
    shared = needed | {name for name, count in uses.items() if count > 1}
    return [_narrow(f, shared) for f in read]
