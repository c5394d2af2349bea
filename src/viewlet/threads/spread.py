"""A script in the threads of one process: cells with a program of their own, and a program that sums up.

Each cell has its share of the rows and runs the triggers of the whole script on it. A view whose rows are whole in a
cell is read off all cells. The maps of every other view are summed up beside them (:mod:`viewlet.cells.merge`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewlet.algebra.query import View, atoms, outputs
from viewlet.algebra.terms import free
from viewlet.cells.merge import Merge, merge_of
from viewlet.cells.routing import Grid
from viewlet.cells.whole_rows import grid_of, plan_whole_rows, sums_up
from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.loops.infer import program_kinds
from viewlet.program.kinds import Inexact, Unfit
from viewlet.program.limits import key_limits
from viewlet.program.trigger import Program, Result, Script


@dataclass(frozen=True)
class Spread:
    """``cell`` is what each cell runs; ``merge`` sums up what no cell has whole. ``program`` is the one of all views.

    All three have the same maps under the same names, so a reader of ``program`` need not know of cells.
    """

    grid: Grid
    program: Program
    cell: Program
    merge: Merge | None

    @property
    def sent(self) -> tuple[str, ...]:
        """The maps whose changes go from the cells to the sums."""
        return tuple(partial.view for partial in self.merge.partials) if self.merge else ()


def spread_over(script: Script, program: Program, threads: int) -> Spread:
    """At most so many cells; one where the script has no dimension, and the grid then says why."""
    grid = plan_whole_rows(script, threads)
    try:
        if grid.cells > 1 and (why := _why_one_cell(grid, program)):
            grid = grid_of(script, (), {}, why)
        merge = merge_of(program, grid)
    except Unfit as unfit:
        grid, merge = grid_of(script, (), {}, f"what cells would sum up has no fixed width: {unfit}"), None
    own = (r if r.name in grid.local else _keys_alone(r, program) for r in program.results)
    return Spread(grid, program, replace(program, results=tuple(r for r in own if r is not None)), merge)


def _keys_alone(result: Result, program: Program) -> Result | None:
    """What a cell checks of a view that it has not whole: the keys that are computed. The sums are for the merge."""
    if key_limits(program).keys().isdisjoint(atom.name for q in result.reads for atom in atoms(q)):
        return None
    keys = frozenset() if result.rows is None else outputs(result.rows)
    seen = keys | {extreme.var for extreme in result.extremes}
    bare = replace(result, lookups=(), having=None, gathers=(), order=(), limit=None, offset=0, windows=())
    return replace(bare, columns=tuple(column for column in result.columns if free(column.term) <= seen))


def _why_one_cell(grid: Grid, program: Program) -> str:
    """What the script allows, the program that was made of it may not."""
    read = [atom for result in program.results for q in result.reads for atom in atoms(q)]
    if odd := next((atom for atom in read if not isinstance(atom, View) or atom.inputs), None):
        return f"rows are read off what is no map of all cells: {odd.text}"
    if not sums_up(grid, [program.view(name).definition for name in dict.fromkeys(atom.name for atom in read)]):
        return "a map is no sum of what the cells would have of it"
    values = program_kinds(program).values
    summed = (a.name for r in program.results if r.name not in grid.local for q in r.reads for a in atoms(q))
    if rounded := next((name for name in summed if isinstance(values[name], Inexact)), None):
        return f"{rounded} sums up DOUBLEs, which each cell would round"
    return ""


@dataclass(frozen=True)
class CompiledCells:
    """As loaded modules."""

    spread: Spread
    cell: Compiled
    merge: Compiled | None
    watched: Watched

    @property
    def program(self) -> Program:
        return self.spread.program


def compile_cells(spread: Spread, watched: Watched = UNWATCHED) -> CompiledCells | None:
    """None where there is no compiler. ``watched`` are results, each told by the cells or by what sums them up."""
    local = tuple(name for name in watched.results if name in spread.grid.local)
    cell = compile_program(spread.cell, Watched(local, spread.sent))
    if cell is None or spread.merge is None:
        return None if cell is None else CompiledCells(spread, cell, None, watched)
    summed = tuple(name for name in watched.results if name not in spread.grid.local)
    merge = compile_program(spread.merge.program, Watched(summed))
    return None if merge is None else CompiledCells(spread, cell, merge, watched)
