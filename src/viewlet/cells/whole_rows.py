"""The grid of cells that also store the rows: each relation goes one way, with all its columns.

So every row is in the cells that its own columns name. One of them can say whether it is there, and all cells together
have the tables. Cells of one process are like that, since a database answers for its rows as well as for its views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod

from viewlet.algebra.query import Query, atoms
from viewlet.cells.dimensions import Monomial, monomials
from viewlet.cells.plan import Axes, Planner, local_views, routes_of
from viewlet.cells.routing import All, Copy, Dimension, First, Grid, Hash, Route
from viewlet.program.trigger import Result, Script
from viewlet.schema import Relation, Type

Ways = Mapping[str, tuple[Route, ...]]  # of each relation that some view reads, along every dimension
ONE_WAY = "no dimension sends the rows of each stream one way, by whole numbers, dates, moments or texts"


def plan_whole_rows(script: Script, cells: int) -> Grid:
    """The cheapest grid of this kind with at most ``cells`` cells; one cell where no other grid asks less of it."""
    if why := _why_one_cell(script):
        return grid_of(script, (), {}, why)
    planner = Planner(script, cells)
    ways = [(axes, ways) for axes in planner.axes() if (ways := _ways(script, axes)) is not None]
    best, chosen = min(ways, key=lambda way: (_load(planner, way[1], way[0]), planner.cost(way[0])))
    why = "" if best else planner.why_one_cell() if len(ways) > 1 or not planner.candidates else ONE_WAY
    return grid_of(script, best, chosen, why)


def _load(planner: Planner, ways: Ways, axes: Axes) -> Fraction:
    """Of the busiest cell, a relation counted for each atom that reads it: each has triggers of its own."""
    reads = Counter(atom.name for monomial in planner.monomials for atom in monomial.atoms)
    return sum((planner.busiest(name, ways[name], axes) * times for name, times in reads.items()), Fraction(0))


def grid_of(script: Script, axes: Axes, ways: Ways, why: str = "") -> Grid:
    copies = tuple(_copy(r, ways.get(r.name) or _unread(r, len(axes)), axes) for r in script.relations)
    dimensions = tuple(Dimension(share, spread.what) for spread, share in axes)
    return Grid(dimensions, copies, script, script, local_views(script, axes), why=why)


def _unread(relation: Relation, dimensions: int) -> tuple[Route, ...]:
    """What no view reads is divided as well, by any column: it takes its time, too."""
    column = next((c for c in relation.columns if is_plain(c.type)), None)
    start: tuple[Route, ...] = (First(),) * dimensions
    if column is None or relation.static or relation.is_hidden or not dimensions:
        return start
    return (Hash(column.name, column.type), *start[1:])


def _copy(relation: Relation, routes: tuple[Route, ...], axes: Axes) -> Copy:
    replication = prod(share for route, (_, share) in zip(routes, axes, strict=True) if isinstance(route, All))
    columns = tuple(column.name for column in relation.columns)
    return Copy(relation.name, relation.name, columns, routes, replication, relation.rate, relation.static)


def _why_one_cell(script: Script) -> str:
    for relation in script.relations:
        if not relation.stored:
            return f"{relation.name} stores no rows, so that there would be none to divide when cells take over"
    for result in script.results:
        if result.single:
            return f"{result.name} has a subquery as a value, whose rows no cell could count alone"
    return ""


def _ways(script: Script, axes: Axes) -> Ways | None:
    """None where two atoms of one relation need it routed in two ways, or by what has no plain hash."""
    types = {(r.name, c.name): c.type for r in script.relations for c in r.columns}
    ways: dict[str, tuple[Route, ...]] = {}
    names = (a.name for result in script.results for q in result.reads for a in atoms(q))
    for name, routes in zip(names, routes_of(script, axes), strict=True):
        if ways.setdefault(name, routes) != routes:
            return None
        if not all(is_plain(types[name, route.column]) for route in routes if isinstance(route, Hash)):
            return None
    return ways


def is_plain(type_: Type) -> bool:
    """Values that are equal, perhaps as another type of their family, are held as the same integer or text."""
    return type_.is_integer or (type_ == type_.held and type_.kind in ("DATE", "TIMESTAMP", "VARCHAR"))


# -- maps --------------------------------------------------------------------------------------------------------------


def sums_up(grid: Grid, definitions: Iterable[Query]) -> bool:
    """Whether each map with such a definition is the sum of what the cells have in its place."""
    as_results = tuple(Result(str(number), (), q) for number, q in enumerate(definitions))
    parts = monomials(replace(grid.original, results=as_results))
    ways = {copy.relation: copy.routes for copy in grid.copies}
    return all(_is_divided(part, ways, d) for part in parts for d in range(len(grid.dimensions)))


def _is_divided(part: Monomial, ways: Ways, dimension: int) -> bool:
    routes = [_column(ways[a.name][dimension]) for a in part.atoms]
    return any(routes == list(map(_column, split.routes)) for split in part.splits)


def _column(route: Route) -> Route | str:
    """Types are settled when the grid is planned."""
    return route.column if isinstance(route, Hash) else route
