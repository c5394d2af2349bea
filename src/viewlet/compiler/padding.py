"""Unions that outer joins make: rows with partners, and a row of NULLs where there are none.

A product of n such unions is 2ⁿ products. Where it has many of them, they stay whole: each is a lookup of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.algebra.query import Bind, Compare, Query, Sum, Union, Value, factors, outputs, relations
from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import NULL, ZERO_TERM, Var

MOST_EXPANDED = 1  # unions of one product that are multiplied out


def stay_whole(parts: tuple[Query, ...]) -> bool:
    return sum(map(is_padded, parts)) > MOST_EXPANDED


@remembered(1 << 14)
def is_padded(q: Query) -> bool:
    """Q = S + (n := Sum(S)) ⋈ [n = 0] ⋈ (c := NULL) …; no change of such a union is one itself."""
    if not isinstance(q, Union) or len(q.branches) != 2:
        return False
    return any(relations(a) and _is_padding(b, a) for a, b in (q.branches, q.branches[::-1]))


def _is_padding(q: Query, partners: Query) -> bool:
    counts, nulls, tests, others = list[Bind](), set[str](), list[Query](), 0
    for f in _flat(q):
        match f:
            case Bind(var, Value(term)) if term == NULL:
                nulls.add(var)
            case Bind() if relations(f):
                counts.append(f)
            case Compare("=", Var(), right) if right == ZERO_TERM:
                tests.append(f)
            case _:
                others += 1
    return (
        len(counts) == 1
        and tests == [Compare("=", Var(counts[0].var), ZERO_TERM)]
        and not others
        and (nulls <= outputs(partners))
    )


def _flat(q: Query) -> Iterator[Query]:
    for f in factors(q.query if isinstance(q, Sum) else q):
        yield from _flat(f) if isinstance(f, Sum) else (f,)
