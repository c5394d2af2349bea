"""GROUPING SETS, ROLLUP and CUBE: every row stands once in each grouping, with NULL for the keys that this one lacks.

So all groupings are one: Sum_{K, L, set}(rows ⋈ ((K := k)(L := l)(set := 0) + (K := k)(L := NULL)(set := 1) + …)).
Every aggregate is one map, as under a plain GROUP BY.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product

from sqlglot import exp

from viewlet.algebra.query import Bind, Query, Value, join, union
from viewlet.algebra.terms import NULL, Term, number
from viewlet.sql.expr import Expr, rounded, variable
from viewlet.sql.grouping import Grouping, Keys
from viewlet.sql.scope import Names
from viewlet.sql.source import Source

MOST_SETS = 64
GROUP_HINTS = {
    "rollup": ("WITH ROLLUP", "write GROUP BY ROLLUP (a, b)"),
    "cube": ("WITH CUBE", "write GROUP BY CUBE (a, b)"),
    "totals": ("WITH TOTALS", "write GROUP BY GROUPING SETS ((a, b), ())"),
}
Nodes = tuple[exp.Expr, ...]


def expanded(names: Names, rows: Query, sets: Sequence[Sequence[Expr]]) -> tuple[Grouping, Keys]:
    """The rows times the sets that each of them is grouped in; the set () has a group also where there are no rows."""
    by_term = {key.term: key for key in chain.from_iterable(sets)}
    variables, place = {term: names.fresh("key") for term in by_term}, names.fresh("set")
    has = tuple(frozenset(key.term for key in keys) for keys in sets)
    branches = [_branch(variables, by_term, here, place, i) for i, here in enumerate(has)]
    inner = join(rows, *chain.from_iterable(key.binds for key in by_term.values()))
    sides = [join(inner, branch) for branch in branches]
    always = tuple(branch for branch, here in zip(branches, has, strict=True) if not here)
    others = tuple(side for side, here in zip(sides, has, strict=True) if here)
    values = {
        term: variable(variables[term], key.type, key.nullable or not all(term in here for here in has))
        for term, key in by_term.items()
    }
    keys = (*variables.values(), place)
    grouping = Grouping(names, keys, (union(*sides),), True, sparse=bool(always), sets=others, always=always)
    return grouping, Keys(values, has, place)


def _branch(
    variables: Mapping[Term, str], by_term: Mapping[Term, Expr], here: frozenset[Term], place: str, i: int
) -> Query:
    """(K := k)(L := NULL)(set := i)."""
    values = {var: rounded(by_term[term]).term if term in here else NULL for term, var in variables.items()}
    return join(*(Bind(var, Value(value)) for var, value in values.items()), Bind(place, Value(number(i))))


# -- how they are written ----------------------------------------------------------------------------------------------


def grouping_sets(source: Source, clause: exp.Group) -> list[Nodes]:
    """GROUP BY a, ROLLUP (b, c) is the product of its items: (a, b, c), (a, b), (a)."""
    choices = [list(_choices(item)) for item in clause.expressions]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_SETS:
        message = f"GROUP BY with {count} grouping sets"
        raise source.unsupported(clause, message, f"write at most {MOST_SETS} in one view", "BY")
    return [tuple(chain.from_iterable(parts)) for parts in product(*choices)]


def _choices(item: exp.Expr) -> Iterator[Nodes]:
    match item:
        case exp.Rollup():
            parts = [_part(p) for p in item.expressions]
            yield from (_flat(parts[:n]) for n in range(len(parts), -1, -1))
        case exp.Cube():
            parts = [_part(p) for p in item.expressions]
            yield from (_flat(some) for n in range(len(parts), -1, -1) for some in combinations(parts, n))
        case exp.GroupingSets():
            for inner in item.expressions:
                yield from _choices(inner)
        case _:
            yield _part(item)


def _part(item: exp.Expr) -> Nodes:
    """(a, b) stands for both, (a) for a, and () for none."""
    return tuple(item.expressions) if isinstance(item, exp.Tuple) else (item.unnest(),)


def _flat(parts: Sequence[Nodes]) -> Nodes:
    return tuple(chain.from_iterable(parts))
