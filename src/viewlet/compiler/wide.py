"""Views whose joins have too many parts for a map of each (§4: the transform keeps every part that a delta leaves)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Value,
    children,
    inputs,
    join,
    outputs,
    relations,
    sum_,
    variables,
)
from viewlet.compiler.context import Context
from viewlet.program.trigger import Result

MOST_PARTS = 80  # of all joins of one view; SSB4, the widest of the paper, has 64
LEAST_OF_A_STAR = 8  # parts of one product: from three streams on, a row would change more maps than it meets rows

Factors = tuple[Query, ...]


def is_wide(result: Result, static: frozenset[str]) -> bool:
    """The joins of the view have more parts than maps may be kept for it."""
    return sum(parts(q, static) for q in result.reads) > MOST_PARTS


def is_star(result: Result, static: frozenset[str]) -> bool:
    """A product has so many parts that a row would change more maps than it meets rows, and nothing is nested."""
    nested = any(isinstance(q, (Bind, Exists)) and relations(q) for read in result.reads for q in parts_of(read))
    return not nested and any(parts(q, static) >= LEAST_OF_A_STAR for q in result.reads)


def parts_of(q: Query) -> Iterator[Query]:
    yield q
    for child in children(q):
        yield from parts_of(child)


def parts(q: Query, static: frozenset[str]) -> int:
    """2ⁿ for a product of n relations that change, added up over all products, nested ones too."""
    match q:
        case Rel(name, _):
            return 1 if name in static else 2
        case Join(factors):
            nested = [f for f in factors if isinstance(f, (Bind, Exists))]
            linear = (parts(f, static) for f in factors if f not in nested)
            return prod(linear) + sum(parts(f, static) for f in nested if relations(f))
        case _:
            return sum(parts(child, static) for child in children(q)) or 1


def goes_over_rows(group: frozenset[str], product: Factors, context: Context) -> bool:
    """A map of the product would be read entry by entry, since it has keys that the event does not give.

    So the event is O(matches) with such a map and without it. Each relation stands there once, and each test is of one
    of them: what an event meets on its way from row to row is then no more than what the map sums up.
    """
    names = [f.name for f in product if isinstance(f, Rel) and f.name not in context.static]
    if len(names) < 2 or len(set(names)) < len(names) or group <= context.bound:
        return False
    tables, scalars = tables_of(product, context)
    within = [f for f in scalars if any(inputs(f) <= outputs(table) for table in tables)]
    return all(isinstance(f, Value) or (isinstance(f, Compare) and f in within) for f in scalars)


def row_by_row(group: frozenset[str], product: Factors, context: Context) -> list[Query]:
    """Sum_A(R ⋈ S ⋈ θ_R ⋈ f_S) as Sum_B(R ⋈ θ_R) ⋈ Sum_C(S ⋈ f_S), where B and C are what the rest needs of each."""
    tables, scalars = tables_of(product, context)
    places = {f: next((table for table in tables if inputs(f) <= outputs(table)), None) for f in scalars}
    between = [f for f, place in places.items() if place is None]
    apart: list[Query] = list(between)
    for table in tables:
        others = [other for other in tables if other is not table]
        needed = (group | context.bound).union(*map(variables, (*others, *between)))
        own = join(table, *(f for f, place in places.items() if place is table))
        apart.append(Materialize(sum_(needed & outputs(own), own), context.bound))
    return apart


def tables_of(product: Factors, context: Context) -> tuple[list[Query], list[Query]]:
    """The relations that change, each with what it alone leads to, and the factors that are left.

    A relation leads to the static tables that share a column with it and with no other one, since their rows never
    make a map change, and to what is computed of its columns.
    """
    tables: list[Query] = [f for f in product if isinstance(f, Rel) and f.name not in context.static]
    rest = [f for f in product if f not in tables]
    while True:
        for f in rest:
            near = [i for i, table in enumerate(tables) if _leads_to(table, f, context)]
            if len(near) == 1:
                tables[near[0]] = join(tables[near[0]], f)
                rest.remove(f)
                break
        else:
            return tables + [f for f in rest if isinstance(f, Rel)], [f for f in rest if not isinstance(f, Rel)]


def _leads_to(table: Query, f: Query, context: Context) -> bool:
    if isinstance(f, Rel):
        return bool((outputs(table) & outputs(f)) - context.bound)
    return isinstance(f, Bind) and inputs(f) <= outputs(table)
