"""Which sums are over the rows that a count counts."""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.algebra.query import (
    Bind,
    Compare,
    Delta,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    View,
    children,
    join,
    map_children,
    rename,
)
from viewlet.algebra.terms import Op, Term, Var
from viewlet.loops.names import columns_of


def skeleton(q: Query) -> str:
    """The query without its summed values and its names: equal for a sum and the count of its rows.

    Variables are numbered as they occur. Two skeletons that should be equal may differ; then a sum is just not known
    to be over nothing.
    """
    bare = _without_values(q)
    return rename(bare, {v: f"v{i}" for i, v in enumerate(dict.fromkeys(_occurrences(bare)))}).text


def sums_nothing(q: Query) -> bool:
    """Nothing is summed up but how often rows are there."""
    return _without_values(q) == q


def _occurrences(q: Query) -> Iterator[str]:
    """The variables of a query, from left to right."""
    match q:
        case Rel() | Delta() | View():
            yield from columns_of(q)
        case Value(term):
            yield from _in_term(term)
        case Compare(_, left, right):
            yield from (*_in_term(left), *_in_term(right))
        case Bind(var, _):
            yield var
        case Sum(group, _):
            yield from sorted(group)
    for child in children(q):
        yield from _occurrences(child)


def _in_term(term: Term) -> Iterator[str]:
    match term:
        case Var(name):
            yield name
        case Op(_, args):
            for a in args:
                yield from _in_term(a)


def _without_values(q: Query) -> Query:
    match q:
        case Join(factors):
            return join(*(_without_values(f) for f in factors if not isinstance(f, Value)))
        case Sum():
            return map_children(q, _without_values)
        case _:
            return q


def is_within(part: Query, count: Query) -> bool:
    """Whether a map has entries only where a count has: Sum[A](Q ⋈ f) is over no rows where Sum[A](Q) is 0.

    Q must have no row less than no times. False may also mean that this is not known.
    """
    if not isinstance(part, Sum) or not isinstance(count, Sum) or set(part.group) != set(count.group):
        return part == count
    counted = _factors(count.query)
    return counted <= _factors(part.query) and all(isinstance(f, (Rel, Compare)) for f in counted)


def _factors(q: Query) -> set[Query]:
    return set(q.factors) if isinstance(q, Join) else {q}
