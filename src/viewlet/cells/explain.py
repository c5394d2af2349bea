"""A grid for people: its dimensions, where every relation goes, what is summed across cells and finished after that."""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.cells.routing import All, Copy, First, Grid, Hash, Route
from viewlet.program.trigger import Result


def explain_grid(grid: Grid) -> str:
    return "\n".join([*_dimensions(grid), *_copies(grid), *_hot_columns(grid), *_views(grid)])


def _dimensions(grid: Grid) -> Iterator[str]:
    if not grid.dimensions:
        yield f"grid: one cell; {grid.why}" if grid.why else "grid: one cell"
        if grid.preaggregate:
            yield "  equal rows are common, so a batch is summed up before it goes there"
        return
    shares = " × ".join(str(d.share) for d in grid.dimensions)
    yield f"grid: {shares} cells" + (f" = {grid.cells}" if len(grid.dimensions) > 1 else "")
    for number, dimension in enumerate(grid.dimensions, 1):
        yield f"  dimension {number}, {dimension.share} coordinates: {dimension.what}"


def _copies(grid: Grid) -> Iterator[str]:
    yield "rows:"
    for copy in grid.copies:
        name = copy.name if copy.name == copy.relation else f"{copy.name} = {copy.relation}"
        yield f"  {name}({', '.join(copy.columns)}): {_way(copy, grid)}"


def _way(copy: Copy, grid: Grid) -> str:
    if not grid.dimensions:
        return "to the one cell"
    reach = f"{copy.replication} of {grid.cells} cells"
    if copy.static:
        return f"loaded into {reach}"
    return f"{', '.join(_route(r, i) for i, r in enumerate(copy.routes, 1))}; each to {reach}"


def _route(route: Route, dimension: int) -> str:
    match route:
        case Hash(column, type_):
            return f"by {column} as {type_}"
        case All():
            return f"copied along dimension {dimension}"
        case First():
            return f"at the start of dimension {dimension}"


def _hot_columns(grid: Grid) -> Iterator[str]:
    """Of relations that some view reads, where rows are divided at all."""
    read = {copy.relation for copy in grid.copies if not copy.static} if grid.dimensions else set()
    hot = [(r.name, column, part) for r in grid.original.relations if r.name in read for column, part in r.hot.items()]
    if hot:
        yield "hot columns:"
    for relation, column, part in hot:
        by_it = [copy.name for copy in grid.copies if copy.relation == relation and _is_hashed(copy, column)]
        why = f"{', '.join(by_it)} routed by it, no other division that was weighed asks less of the busiest cell"
        what = f"{relation}.{column}, one value in {float(part):g} of the rows"
        yield f"  {what}: {why if by_it else 'not routed by it'}"


def _is_hashed(copy: Copy, column: str) -> bool:
    return any(isinstance(route, Hash) and route.column == column for route in copy.routes)


def _views(grid: Grid) -> Iterator[str]:
    yield "views:"
    for result in grid.original.results:
        if result.name in grid.local:
            yield f"  {result.name}: each row is whole in one cell"
        else:
            yield f"  {result.name}: {_summed(result)} summed across cells; {_finished(result)} after the sum"


def _summed(result: Result) -> str:
    parts = [] if result.rows is None else ["row counts"]
    parts += [var for var, _ in result.lookups]
    parts += [f"the counts under {e.var}" for e in result.extremes]
    parts += [f"the counts under {g.var}" for g in result.gathers]
    return ", ".join(parts)


def _finished(result: Result) -> str:
    parts = [] if result.rows is None else ["which rows there are"]
    parts += [f"{e.var} (the {e.end})" for e in result.extremes]
    parts += [g.var for g in result.gathers]
    parts += ["HAVING"] if result.having is not None else []
    parts += ["which rows come first"] if result.is_cut else []
    return ", ".join([*parts, "the columns"])
