"""Which texts are in no base row: a map holds those of its keys, or they would be forgotten with the next batch.

A base row holds its texts. An entry of a map is there because of rows, so a column of its key that some relation gives
needs no holder of its own. A text that a query computes or names does, one that a view cache was asked for, and one of
a stream that stores no rows.
"""

from __future__ import annotations

from viewlet.algebra.query import Bind, Exists, Join, Query, Rel, Sum, Union, Value
from viewlet.algebra.terms import Const, Op, Term, Var
from viewlet.program.trigger import MapDefinition


def held_columns(view: MapDefinition, unstored: frozenset[str] = frozenset()) -> frozenset[int]:
    """The positions in the key of a map whose values may be in no base row."""
    given = values_of_rows(view.definition, unstored)
    names = view.inputs + view.outputs
    return frozenset(i for i, v in enumerate(names) if i < len(view.inputs) or v not in given)


def values_of_rows(q: Query, unstored: frozenset[str]) -> frozenset[str]:
    """The variables whose value, in every tuple of Q, is a cell of a base row, or NULL."""
    match q:
        case Rel(name, names):
            return frozenset() if name in unstored else frozenset(names)
        case Union(parts):
            return frozenset.intersection(*(values_of_rows(part, unstored) for part in parts))
        case Sum(group, inner):
            return values_of_rows(inner, unstored) & group
        case Exists(inner):
            return values_of_rows(inner, unstored)
        case Bind(var, Value(term)):
            return frozenset({var} if is_picked(term, frozenset()) else ())
        case Join(parts):
            return _of_product(parts, unstored)
        case _:
            return frozenset()


def _of_product(parts: tuple[Query, ...], unstored: frozenset[str]) -> frozenset[str]:
    picked = frozenset[str]().union(*(values_of_rows(part, unstored) for part in parts))
    bound = {p.var: p.query.term for p in parts if isinstance(p, Bind) and isinstance(p.query, Value)}
    for _ in bound:  # one may be picked from another
        picked |= {var for var, term in bound.items() if is_picked(term, picked)}
    return picked


def is_picked(term: Term, known: frozenset[str]) -> bool:
    """Whether a term has no value of its own, but that of a variable in ``known``, or NULL."""
    match term:
        case Var(name):
            return name in known
        case Const(value):
            return value is None
        case Op("coalesce", args):
            return all(is_picked(a, known) for a in args)
        case Op("case", (*conditional, otherwise)):
            return all(is_picked(a, known) for a in (*conditional[1::2], otherwise))
        case _:
            return False


def is_computed(term: Term) -> bool:
    """Whether the value of a term may be neither that of a variable nor a constant of the program."""
    match term:
        case Var() | Const():
            return False
        case Op("coalesce", args):
            return any(map(is_computed, args))
        case Op("case", (*conditional, otherwise)):
            return any(map(is_computed, (*conditional[1::2], otherwise)))
        case _:
            return True
