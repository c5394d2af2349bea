"""Views that are not whole in a cell: the cells' partial maps are summed, and what is not linear is done on the sums.

Where an entry of a root map changes in a cell, the cell sends (−1, key, old value) and (+1, key, new value). A merge
cell keeps M[key] = Σ value over ``partial_M(key, value)`` by the same triggers as any sum, and reads the results off
these maps as the single engine does off its own. A DOUBLE that is taken back is bit for bit the one that was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from viewlet.algebra.query import ONE, Delta, Query, Rel, Value, View, atoms, join, negate, sum_
from viewlet.algebra.terms import Var
from viewlet.cells.routing import Grid
from viewlet.loops.infer import Kinds, program_kinds
from viewlet.program.kinds import COUNT_BITS, Exact, Inexact, Kind, Other
from viewlet.program.trigger import Event, MapDefinition, Program, Result, Statement, Trigger
from viewlet.program.verify import verify_program
from viewlet.schema import BIGINT, BOOLEAN, DOUBLE, VARCHAR, Column, Relation, Type, decimal

VALUE = "value"
PRECISION = 38
Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """What cells send of one of their maps. Rows go to the merge cell that the columns at ``partition`` hash to.

    No columns: all to merge cell 0.
    """

    view: str
    relation: Relation
    partition: Positions


@dataclass(frozen=True)
class Merge:
    """``single`` are the views that have all their rows in merge cell 0; what other merge cells say of them is void."""

    program: Program
    partials: tuple[Partial, ...]
    single: frozenset[str]


def merge_of(program: Program, grid: Grid) -> Merge | None:
    """What is summed across the cells that run ``program``, the compiled script of ``grid``; None where nothing is.

    Raises ``Unfit`` where the program has values that no fixed width holds: such a program is for one cell.
    """
    original = {r.name: r for r in grid.original.results if r.name not in grid.local}
    if not original:
        return None
    results = tuple(_finished(r, original[r.name]) for r in program.results if r.name in original)
    kinds = program_kinds(program)
    roots = [program.view(name) for name in dict.fromkeys(read.name for r in results for read in _reads(r))]
    taken = {v.name for v in program.views}
    relations = _relations(roots, kinds, taken)
    views = {root.name: _views(root, relations[root.name], taken) for root in roots}
    partition = _partition(results, relations)
    merged = replace(
        program,
        relations=tuple(relations.values()),
        views=tuple(view for made in views.values() for view in made),
        triggers=tuple(t for name, made in views.items() for t in _triggers(relations[name], made)),
        results=results,
        source="",
    )
    verify_program(merged)
    return Merge(
        merged,
        tuple(Partial(root.name, relations[root.name], partition[root.name]) for root in roots),
        frozenset(r.name for r in results if not all(partition[read.name] for read in _reads(r))),
    )


def _finished(result: Result, original: Result) -> Result:
    """The result of a cell with what waits for the sum."""
    return replace(
        result,
        columns=original.columns,
        having=original.having,
        windows=original.windows,
        order=original.order,
        limit=original.limit,
        offset=original.offset,
    )


def _reads(result: Result) -> Iterator[View]:
    for q in result.reads:
        yield from (atom for atom in atoms(q) if isinstance(atom, View))


# -- maps that sum -----------------------------------------------------------------------------------------------------


def _relations(roots: Iterable[MapDefinition], kinds: Kinds, taken: set[str]) -> dict[str, Relation]:
    """For each root map the relation of its partial values."""
    return {
        root.name: Relation(
            _free_name(f"partial_{root.name}", taken),
            (
                *(Column(f"k{i}", _type(kind)) for i, kind in enumerate(kinds.columns[root.name])),
                Column(VALUE, _type(kinds.values[root.name]), nullable=False),
            ),
        )
        for root in roots
    }


def _free_name(stem: str, taken: set[str]) -> str:
    name = next(n for i in count(1) if (n := stem if i == 1 else f"{stem}_{i}") not in taken)
    taken.add(name)
    return name


def _type(kind: Kind) -> Type:
    """The column that holds all of a kind; sums of doubles are sent rounded to one."""
    match kind:
        case Exact(0, bits) if bits <= COUNT_BITS:
            return BIGINT
        case Exact(scale, _):
            return decimal(PRECISION, scale)
        case Inexact():
            return DOUBLE
        case Other("text"):
            return VARCHAR
        case Other("boolean"):
            return BOOLEAN
        case Other():  # a column of nothing but NULL
            return BIGINT


def _views(root: MapDefinition, relation: Relation, taken: set[str]) -> tuple[MapDefinition, ...]:
    """M[k⃗] := Sum_k⃗(partial_M(k⃗, v) ⋈ v); of doubles also how many there are, so that the sum of none is exactly 0."""
    names = tuple(c.name for c in relation.columns)
    *keys, value = names
    rows = Rel(relation.name, names)
    total = MapDefinition(root.name, (), tuple(keys), sum_(keys, join(rows, Value(Var(value)))), root.why)
    if relation.columns[-1].type != DOUBLE:
        return (total,)
    name = _free_name(f"{root.name}_parts", taken)
    return total, MapDefinition(name, (), tuple(keys), sum_(keys, rows), f"how many values {root.name} is the sum of")


def _triggers(relation: Relation, views: Sequence[MapDefinition]) -> Iterator[Trigger]:
    """±partial_M(k⃗, v): M[k⃗] ±= v, and the same summed over an update."""
    params = relation.params
    keys, summands = params[:-1], (Value(Var(params[-1])), ONE)
    row, update = Event("+", relation.name, params), Delta(relation.name, params)
    changes: list[tuple[Event, Callable[[Query], Query]]] = [
        (row, lambda summand: summand),
        (replace(row, kind="-"), negate),
        (replace(row, kind="Δ", params=()), lambda summand: sum_(keys, join(update, summand))),
    ]
    for event, change in changes:
        targets = zip(views, summands, strict=False)
        yield Trigger(event, tuple(Statement(View(v.name, (), keys), "+=", change(s)) for v, s in targets))


# -- where they meet ---------------------------------------------------------------------------------------------------


def _partition(results: Sequence[Result], relations: Mapping[str, Relation]) -> dict[str, Positions]:
    """Map ↦ positions of key columns that all maps of a result have in common, so that a row's entries meet.

    A map that would be needed in two places is in merge cell 0, with all that is read beside it.
    """
    wanted = {r.name: _wanted(r, relations) for r in results}
    single = set[str]()
    while True:
        places: dict[str, set[Positions]] = {}
        for name, reads in wanted.items():
            for view, positions in reads:
                places.setdefault(view, set()).add(() if name in single else positions)
        torn = {name for name, reads in wanted.items() if any(len(places[view]) > 1 for view, _ in reads)}
        if not torn:
            return {view: positions for view, (positions,) in places.items()}
        single |= torn


def _wanted(result: Result, relations: Mapping[str, Relation]) -> list[tuple[str, Positions]]:
    """Each map that a result reads, and where it has the keys that all of them have, of one type.

    The first rows of an order are found where all rows are.
    """
    reads = list(_reads(result))
    if result.is_cut:
        return [(read.name, ()) for read in reads]
    columns = [dict(zip(read.outputs, relations[read.name].columns, strict=False)) for read in reads]
    keys = () if result.rows is None else reads[0].outputs
    common = [k for k in keys if len({named[k].type if k in named else None for named in columns}) == 1]
    return [(read.name, tuple(map(read.outputs.index, common))) for read in reads]
