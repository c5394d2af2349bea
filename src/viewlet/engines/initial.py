"""How views start from rows that are there already, and which way is the cheapest.

By their definitions, which are nested loops: fine for few rows, and hopeless where a nested aggregate is correlated by
an inequality. Or by the triggers, from empty streams on: all rows of a stream as one update, or one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from viewlet.algebra.evaluate import Entries, evaluate, join_order
from viewlet.algebra.query import (
    ZERO,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    children,
    map_children,
    outputs,
    relations,
)
from viewlet.engines.tables import tables_reader
from viewlet.loops.cost_class import StatementCost, statement_access
from viewlet.loops.names import columns_of
from viewlet.program.encoding import Row
from viewlet.program.trigger import MapDefinition, Program

Tables = Mapping[str, Mapping[Row, int]]
Way = Literal["definitions", "batches", "rows"]
Rank = tuple[int, int, int]  # what n rows cost: powers of n, loops over groups, loops over matches
KINDS: dict[Way, Literal["Δ", "+"]] = {"batches": "Δ", "rows": "+"}
FEW_STEPS = 10_000  # that the living definition takes in the time in which a trigger's code is written


# -- by the definitions ------------------------------------------------------------------------------------------------


def evaluated(
    program: Program, views: Iterable[MapDefinition], tables: Tables
) -> Iterator[tuple[MapDefinition, Entries]]:
    """What the definitions come to over the tables. View caches have no extent and are left out."""
    empty = frozenset(r.name for r in program.relations if not tables.get(r.name))
    definitions = [(v, without(v.definition, empty)) for v in views if not v.is_cache]
    read_at_all = frozenset().union(*(relations(q) for _, q in definitions))
    read = tables_reader((r for r in program.relations if r.name in read_at_all), tables)
    for view, definition in definitions:
        yield view, evaluate(definition, read, view.outputs)


def without(q: Query, empty: frozenset[str]) -> Query:
    """Q where these relations are empty: nothing is joined with what is not there."""
    if empty.isdisjoint(relations(q)):
        return q
    if isinstance(q, Rel):
        return ZERO
    rest = map_children(q, lambda child: without(child, empty))
    return ZERO if isinstance(rest, Exists) and rest.query == ZERO else rest


# -- which way ---------------------------------------------------------------------------------------------------------


def cheapest_way(program: Program, views: Iterable[MapDefinition], tables: Tables) -> Way:
    """How to compute these views from the tables. By triggers it is all views that are computed."""
    return min(_ranks(program, views, tables), key=lambda ranked: ranked[1])[0]


def fewest_steps(program: Program, tables: Tables) -> int:
    """About how many steps the cheapest way takes for all views, beyond what follows from static tables alone."""
    rank = min(rank for _, rank in _ranks(program, program.views, tables))
    steps: int = _size(tables) ** rank[0]
    return steps


def _ranks(program: Program, views: Iterable[MapDefinition], tables: Tables) -> list[tuple[Way, Rank]]:
    """The ways that there are, the better ones of those that cost the same first."""
    empty = frozenset(r.name for r in program.relations if not tables.get(r.name))
    streams = frozenset(r.name for r in program.relations if not r.static) - empty
    if not streams:
        return [("definitions", (0, 0, 0))]
    nests = [nest(without(v.definition, empty), frozenset()) for v in views if not v.is_cache]
    scans, matches = max(nests, default=(0, 0))
    definitions: tuple[Way, Rank] = "definitions", (scans, 0, matches)
    if _size(tables) ** max(map(sum, nests), default=0) <= FEW_STEPS:
        return [definitions]
    by_triggers = [(way, _rank(program, streams, way)) for way, kind in KINDS.items() if _has(program, streams, kind)]
    return [*by_triggers, definitions]


def _size(tables: Tables) -> int:
    return sum(sum(rows.values()) for rows in tables.values())


def _has(program: Program, streams: frozenset[str], kind: str) -> bool:
    """Whatever changes some view has a trigger of this kind."""
    kinds = {name: {t.event.kind for t in program.triggers if t.event.relation == name} for name in streams}
    return all(kind in there for there in kinds.values() if there)


def _rank(program: Program, streams: frozenset[str], way: Way) -> Rank:
    ranks = [
        _whole(statement_access(s, t.event, program), way)
        for t in program.triggers
        if t.event.relation in streams and t.event.kind == KINDS[way]
        for s in t.statements
    ]
    return max(ranks, default=(1, 0, 0))


def _whole(cost: StatementCost, way: Way) -> Rank:
    """What a statement costs for all rows of a stream. Within a batch what agrees may be all there is."""
    scans, batches, groups, matches, _ = cost.rank
    each = way == "rows" or cost.unit == "tuple of the batch"
    own = sum(path == "own" for _, path in cost.paths)
    return scans + batches + each, groups, matches + own


# -- what the living definition loops over -----------------------------------------------------------------------------

Nest = tuple[int, int]  # loops inside each other: over all entries of an atom, over those that agree with what is bound


def nest(q: Query, bound: frozenset[str]) -> Nest:
    """The deepest loops of :func:`viewlet.algebra.evaluate.plan`."""
    if not isinstance(q, Join):
        return max((_turns(q, bound), *(nest(child, bound) for child in children(q))))
    deepest = around = (0, 0)
    for factor in join_order(q.factors, bound):
        deepest = max(deepest, _inside(around, nest(factor, bound)))
        around = _inside(around, _turns(factor, bound))
        bound |= outputs(factor)
    return deepest


def _turns(q: Query, bound: frozenset[str]) -> Nest:
    """How often whatever follows is done: once, or for each row of these loops."""
    match q:
        case Rel() | Delta() | View():
            free = frozenset(columns_of(q)) - bound
            return (0, 0) if not free else (0, 1) if frozenset(columns_of(q)) & bound else (1, 0)
        case Value() | Compare() | Bind():
            return 0, 0
        case Sum(group, _) if group <= bound:
            return 0, 0
        case Join(factors):
            around = (0, 0)
            for factor in join_order(factors, bound):
                around = _inside(around, _turns(factor, bound))
                bound |= outputs(factor)
            return around
        case Sum() | Exists() | Union() | Materialize():
            return max((_turns(child, bound) for child in children(q)), default=(0, 0))


def _inside(around: Nest, inner: Nest) -> Nest:
    return around[0] + inner[0], around[1] + inner[1]
