"""Unions that outer joins make: rows with partners, and a row of NULLs where there are none.

A product of n such unions is 2ⁿ products. Where it has many of them, they stay whole: each is a lookup of its own.
The same holds for a relation beside the update to it, of which the delta of a long self-join has many.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.algebra.query import (
    Bind,
    Compare,
    Delta,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    factors,
    outputs,
    relations,
    union,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import NULL, ZERO_TERM, Var

MOST_EXPANDED = 1  # unions of one product that are multiplied out


def stay_whole(parts: tuple[Query, ...]) -> bool:
    return sum(map(is_lookup, parts)) > MOST_EXPANDED


def is_lookup(q: Query) -> bool:
    return is_padded(q) or is_updated(q)


@remembered(1 << 14)
def is_updated(q: Query) -> bool:
    """Q = R + ΔR, the version of R after the event."""
    if not isinstance(q, Union):
        return False
    return sum(isinstance(b, Rel) for b in q.branches) == 1 and all(map(_is_update, q.branches))


def _is_update(q: Query) -> bool:
    """R itself, or what an event adds to it."""
    if isinstance(q, (Rel, Delta)):
        return True
    return all(isinstance(f, Value) or _is_parameter(f) for f in factors(q))


def _is_parameter(f: Query) -> bool:
    return isinstance(f, Bind) and isinstance(f.query, Value) and isinstance(f.query.term, Var)


@remembered(1 << 14)
def is_padded(q: Query) -> bool:
    """Q = S + (n := Sum(S)) ⋈ [n = 0] ⋈ (c := NULL) …; no change of such a union is one itself."""
    if not isinstance(q, Union):
        return False
    padding = [b for b in q.branches if _is_padding(b)]
    rest = [b for b in q.branches if b not in padding]
    return len(padding) == 1 and bool(relations(union(*rest))) and all(_nulls(padding[0]) <= outputs(b) for b in rest)


def _is_padding(q: Query) -> bool:
    counts, tests, others = list[Bind](), list[Query](), 0
    for f in _flat(q):
        match f:
            case Bind(_, Value(term)) if term == NULL:
                pass
            case Bind() if relations(f):
                counts.append(f)
            case Compare("=", Var(), right) if right == ZERO_TERM:
                tests.append(f)
            case _:
                others += 1
    return len(counts) == 1 and tests == [Compare("=", Var(counts[0].var), ZERO_TERM)] and not others


def _nulls(padding: Query) -> set[str]:
    return {f.var for f in _flat(padding) if isinstance(f, Bind) and f.query == Value(NULL)}


def _flat(q: Query) -> Iterator[Query]:
    for f in factors(q.query if isinstance(q, Sum) else q):
        yield from _flat(f) if isinstance(f, Sum) else (f,)
