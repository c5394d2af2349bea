"""The script that every cell runs: each atom reads the copy of its relation that is routed as the atom needs it.

Atoms of one relation that are routed alike share a copy. A copy has the columns that are read: a variable that occurs
nowhere else is summed out, and Sum_A(R(A, b)) is Sum_A of R with b projected away, rows being counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from types import MappingProxyType

from viewlet.algebra.query import Bind, Exists, Join, Query, Rel, Sum, Union, atoms, inputs, map_children, outputs
from viewlet.cells.routing import All, Copy, Route
from viewlet.program.trigger import Result, Script
from viewlet.schema import Relation, TypeName

Routes = tuple[Route, ...]  # along each dimension
SIZE: dict[TypeName, int] = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "UTINYINT": 1,
    "SMALLINT": 1,
    "USMALLINT": 1,
    "INTEGER": 2,
    "UINTEGER": 2,
    "DATE": 2,
    "BIGINT": 3,
    "TIMESTAMP": 3,
    "DOUBLE": 3,
}


@dataclass(frozen=True, slots=True)
class Use:
    """An atom of the script, the routes of its rows, and which of its columns are read."""

    relation: str
    routes: Routes
    read: tuple[bool, ...]


def uses(script: Script, routes: Sequence[Routes]) -> list[Use]:
    """Of every atom of the results in their order; ``routes`` are in the same."""
    queries = [q for result in script.results for q in result.reads]
    names = [a.name for q in queries for a in atoms(q)]
    read = [columns for q in queries for columns in _columns_read(q, outputs(q))]
    return [Use(*use) for use in zip(names, routes, read, strict=True)]


def _columns_read(q: Query, needed: frozenset[str]) -> Iterator[tuple[bool, ...]]:
    """For each atom of Q, which of its variables are ``needed`` around it or occur in Q a second time."""
    match q:
        case Rel(_, names):
            yield tuple(name in needed or names.count(name) > 1 for name in names)
        case Join(parts):
            for i, part in enumerate(parts):
                others = (inputs(p) | outputs(p) for p in parts[:i] + parts[i + 1 :])
                yield from _columns_read(part, needed.union(*others))
        case Union(parts):
            for part in parts:  # what one branch needs, all must give
                yield from _columns_read(part, needed | outputs(q))
        case Sum(_, inner):
            yield from _columns_read(inner, needed)
        case Bind(_, inner) | Exists(inner):  # not linear: none of its columns is as good as summed out
            yield from _columns_read(inner, needed | inputs(inner) | outputs(inner))


def copies(script: Script, used: Sequence[Use], shares: Sequence[int]) -> dict[tuple[str, Routes], Copy]:
    """By relation and routes; the first copy of a relation has its name."""
    reads: dict[tuple[str, Routes], list[bool]] = {}
    for use in used:
        known = reads.setdefault((use.relation, use.routes), [False] * len(use.read))
        known[:] = [a or b for a, b in zip(known, use.read, strict=True)]
    taken = {r.name for r in script.relations} | {r.name for r in script.results}
    made: dict[tuple[str, Routes], Copy] = {}
    for relation in script.relations:
        name = relation.name
        for (read_from, routes), read in reads.items():
            if read_from == relation.name:
                made[read_from, routes] = _copy(relation, name, routes, read, shares)
                name = next(n for i in count(2) if (n := f"{relation.name}_{i}") not in taken)
                taken.add(name)
    return made


def _copy(relation: Relation, name: str, routes: Routes, read: Sequence[bool], shares: Sequence[int]) -> Copy:
    columns = tuple(c.name for c, is_read in zip(relation.columns, read, strict=True) if is_read)
    if not columns:  # to count rows takes one column
        columns = (min(relation.columns, key=lambda c: SIZE.get(c.type.kind, 4)).name,)
    replication = prod(share for route, share in zip(routes, shares, strict=True) if isinstance(route, All))
    return Copy(name, relation.name, columns, routes, replication, relation.rate, relation.static)


def over_copies(
    script: Script, used: Sequence[Use], made: Mapping[tuple[str, Routes], Copy], whole: frozenset[str]
) -> Script:
    """The script of a cell. A view that is not ``whole`` in a cell has no columns there: they wait for the sum."""
    schema = {r.name: r for r in script.relations}
    relations = {copy.name: _relation(schema[copy.relation], copy) for copy in made.values()}
    replacements = iter([(schema[use.relation], made[use.relation, use.routes]) for use in used])

    def rewritten(q: Query) -> Query:
        if not isinstance(q, Rel):
            return map_children(q, rewritten)
        relation, copy = next(replacements)
        named = zip(relation.columns, q.vars, strict=True)
        return Rel(copy.name, tuple(v for c, v in named if c.name in copy.columns))

    results = tuple(_over(result, rewritten, result.name in whole) for result in script.results)
    return replace(script, relations=tuple(relations.values()), results=results)


def _over(result: Result, rewritten: Callable[[Query], Query], whole: bool) -> Result:
    """In the order of ``Result.reads``, which is that of the uses."""
    after = replace(
        result,
        rows=None if result.rows is None else rewritten(result.rows),
        lookups=tuple((var, rewritten(q)) for var, q in result.lookups),
        extremes=tuple(replace(e, query=rewritten(e.query)) for e in result.extremes),
        gathers=tuple(replace(g, query=rewritten(g.query)) for g in result.gathers),
    )
    return after if whole else replace(after, columns=(), having=None, order=(), limit=None, offset=0, windows=())


def _relation(relation: Relation, copy: Copy) -> Relation:
    """The relation that a copy is in a cell."""
    return replace(
        relation,
        name=copy.name,
        columns=tuple(replace(c, derived="") for c in relation.columns if c.name in copy.columns),  # rows come with it
        distinct=MappingProxyType({c: n for c, n in relation.distinct.items() if c in copy.columns}),
        hot=MappingProxyType({}),  # rows have been routed by now
    )
