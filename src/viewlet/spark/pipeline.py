"""What a maintained script is on Spark: the grid, its programs, and who sums and publishes which view.

Made from the script alone, in the same way at every start, so that a restart finds its own state again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from math import prod
from operator import mul

from viewlet.algebra.functions.python import PREFIX, SIGNATURES
from viewlet.cells.merge import Merge, merge_of
from viewlet.cells.plan import plan
from viewlet.cells.routing import Copy, Grid, Hash
from viewlet.compiler.script import compile_script
from viewlet.durable.store import Store, digest
from viewlet.errors import Error, refusing_depth
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program, Result, Script
from viewlet.rows.unstored import ON_SPARK, refuse_all
from viewlet.schema import BIGINT, CLOCK, INTEGER, Dialect, Relation, Type
from viewlet.spark.expiry import Expiries, Expiry
from viewlet.spark.process.artefact import Artefact, publish
from viewlet.spark.process.client import Run, Split
from viewlet.sql.define import Changed
from viewlet.sql.translate import Translation, nothing

WIDEST_DECIMAL = 38


@dataclass(frozen=True)
class Pipeline:
    """A script cut into cells."""

    source: str
    strategy: str
    asked: int  # how many cells the user wanted; the grid has as many as help
    every_column: bool  # cells have all columns of streams, not those alone that a view reads
    relations: Mapping[str, Relation]
    results: Mapping[str, Result]
    grid: Grid
    program: Program  # of every cell
    merge: Merge | None  # of the cells that sum what no cell has whole

    @property
    def clocks(self) -> tuple[Copy, ...]:
        """The copies of the clock. No source has its rows: each batch brings its own moment."""
        return tuple(copy for copy in self.grid.copies if copy.relation == CLOCK.name)

    @property
    def read(self) -> frozenset[str]:
        """The relations that some view reads."""
        return frozenset(copy.relation for copy in self.grid.copies)

    @property
    def local(self) -> tuple[str, ...]:
        return tuple(name for name in self.results if name in self.grid.local)

    @property
    def merged(self) -> tuple[str, ...]:
        return tuple(name for name in self.results if name not in self.grid.local)

    @property
    def identity(self) -> str:
        """Equal for two pipelines only if one can go on where the other stopped; how a script is written is left out.

        Snapshots belong to generated code. So this is what code is generated from, rather than all that means the same.
        """
        return self._digest(_meaning)

    @property
    def identity_with_text(self) -> str:
        """As checkpoints had it whose identity depended on every letter of the script."""
        return self._digest(Program.to_text)

    def _digest(self, described: Callable[[Program], str]) -> str:
        programs = [described(self.program), described(self.merge.program) if self.merge else ""]
        shares = [d.share for d in self.grid.dimensions]
        routes = [(c.name, c.relation, c.columns, c.routes) for c in self.grid.copies]
        derived = [(r.name, c.name, c.derived) for r in self.relations.values() for c in r.derived]
        return digest(repr((programs, shares, routes, self.local, *derived)).encode())


def _meaning(program: Program) -> str:
    """Without what is for people, and without estimates: what they decided shows in the rest."""
    bare = replace(
        program,
        relations=tuple(
            Relation(r.name, r.columns, r.static, options=dict(sorted(r.options.items()))) for r in program.relations
        ),
        views=tuple(replace(view, why="") for view in program.views),
        results=tuple(replace(result, sql="") for result in program.results),
        source="",
    )
    return bare.to_text()


def pipeline_of(
    script: str,
    cells: int,
    strategy: str,
    dialect: Dialect,
    order: tuple[str, ...] = (),
    *,
    every_column: bool = False,
) -> Pipeline:
    """``order`` names relations and views that come first, whatever their order in the script."""
    with refusing_depth():
        translation = nothing(dialect).followed(script)
        translated = _in_order(translation.script, order)
        _refuse_what_needs_one_process(translation)
        refuse_all(translated.relations, ON_SPARK)
        if not translated.results:
            raise Error("the script has no view to maintain: add CREATE MATERIALIZED VIEW … AS SELECT …")
        for result in translated.results:
            _check_types(result)
            _check_order(result)
        grid, program, merge = _cut(_as_cells_hold_it(translated), cells, strategy, every_column)
    relations = {r.name: r for r in translated.relations}
    results = {r.name: r for r in translated.results}
    return Pipeline(script, strategy, cells, every_column, relations, results, grid, program, merge)


def _in_order(script: Script, order: tuple[str, ...]) -> Script:
    places = {name: place for place, name in enumerate(order)}

    def place(named: Relation | Result) -> int:
        return places.get(named.name, len(places))

    relations, results = sorted(script.relations, key=place), sorted(script.results, key=place)
    return replace(script, relations=tuple(relations), results=tuple(results))


def _refuse_what_needs_one_process(translation: Translation) -> None:
    """Rows come from sources alone, each to the cells that need it: no cell knows all keys."""
    for step in translation.steps:
        if isinstance(step, Changed):
            raise Error(f"the script changes rows of {step.statement.name}: on Spark they come from its source alone")
    for result in translation.script.results:
        if result.single:
            what = "a subquery as a value that may have several rows, which no cell on Spark can count"
            raise Error(f"{result.name} has {what}: aggregate it, (SELECT MAX(x) FROM …)")
        texts = [q.text for q in result.reads] + [c.term.text for c in result.columns]
        if name := next((n for n in SIGNATURES if any(f"{PREFIX}{n}(" in text for text in texts)), None):
            raise Error(f"{result.name} calls {name}, a function of Python, which no cell on Spark has")
    for relation in translation.script.relations:
        if relation.of:
            raise Error(f"a view takes a list of {relation.of} apart by UNNEST, which Spark does before: F.explode")
        if nested := next((c for c in relation.columns if c.type.is_nested), None):
            what = f"{relation.name}.{nested.name} is a {nested.type}, which no row on Spark can have"
            raise Error(f"{what}: declare its parts, or explode it before")
    for relation in translation.script.relations:
        if relation.key or relation.unique:
            word = "PRIMARY KEY" if relation.key else "UNIQUE"
            raise Error(
                f"{relation.name} has a {word}, which no cell on Spark can check, since none has all rows: leave it "
                f"out where the source keeps it (declare the columns NOT NULL), or run the script in one process"
            )


def cell_type(type_: Type) -> Type:
    """The type that cells have in place of one: the one that engines hold it as, and of integers the two wide ones."""
    if type_.is_integer:
        return BIGINT if type_.kind in ("BIGINT", "UINTEGER") else INTEGER
    return type_.held


def _as_cells_hold_it(script: Script) -> Script:
    """What views show keeps its type: it is made of what cells hold when they show it."""
    columns = {r.name: tuple(replace(c, type=cell_type(c.type)) for c in r.columns) for r in script.relations}
    return replace(script, relations=tuple(replace(r, columns=columns[r.name]) for r in script.relations))


def _check_types(result: Result) -> None:
    for column in result.columns:
        if column.name in ("batch", "weight"):
            raise Error(f"{result.name} has a column {column.name}, as its changes have: rename it with AS")
        if column.type.precision > WIDEST_DECIMAL:
            raise Error(
                f"{result.name}.{column.name} is {column.type}, wider than Spark's DECIMAL(38): cast it in the view"
            )


def _check_order(result: Result) -> None:
    if any(result.column_of(order) is None for order in result.order):
        raise Error(f"{result.name} is ordered by what it does not show, which a DataFrame cannot be: select it too")


def _cut(script: Script, cells: int, strategy: str, every_column: bool) -> tuple[Grid, Program, Merge | None]:
    """What cells send each other has fixed widths; a program that needs more runs whole, in one cell."""
    grid = plan(script, cells, every_column=every_column)
    program = compile_script(grid.script, strategy)
    try:
        merge = merge_of(program, grid)
    except Unfit as unfit:
        grid, program, merge = _cut(script, 1, strategy, every_column)
        why = f"what cells would send each other has no fixed width: {unfit}"
        return replace(grid, why=why), program, merge
    shown = tuple(r for r in program.results if r.name in grid.local)  # the others are read off the sum
    return grid, replace(program, results=shown), merge


# -- what runs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """A copy of a relation as its rows arrive at a cell: which slots hold which columns."""

    relation: str
    columns: tuple[str, ...]
    slots: tuple[str, ...]
    static: bool


@dataclass(frozen=True)
class Absent:
    """Of a copy of a relation whose deletes of what is not there are letters: the relation, and the cells that tell."""

    of: str
    cells: tuple[int, ...]


@dataclass(frozen=True)
class Works:
    """All that the tasks of a query need, small enough to travel with each of them."""

    run: Run
    cells: int
    clocks: Mapping[str, tuple[int, ...]]  # copy of the clock ↦ the cells that have it
    tasks: int  # at most so many to a stage: each costs some milliseconds, and can feed several cells
    in_one_task: bool  # nobody asked for more than one cell: no shuffle, and no parallel reading either
    preaggregate: bool  # equal rows of a batch are common: they are added up before they reach the cell
    arrivals: tuple[Arrival, ...]
    cell: Artefact
    local: tuple[str, ...]
    merge_cells: int
    merge: Artefact | None
    splits: tuple[Split, ...]
    partials: Mapping[str, str]  # view ↦ relation of the merge program
    merged: tuple[str, ...]  # views that every merge cell has a share of
    global_: tuple[str, ...]  # views that merge cell 0 has whole
    absent: Mapping[str, Absent] = field(default_factory=dict)  # by copy; none where a job keeps no letters
    expiries: Expiries = field(default_factory=dict)  # by copy


Artefacts = tuple[Artefact, Artefact | None]  # of the cells, and of the merge cells


def published(checkpoint: str, pipeline: Pipeline) -> Artefacts:
    """Where the checkpoint is: put there what the cells run."""
    store = Store.of(checkpoint)
    views = tuple(p.view for p in pipeline.merge.partials) if pipeline.merge else ()
    cell = publish(store, pipeline.program, pipeline.local, views)
    merge = publish(store, pipeline.merge.program, pipeline.merged) if pipeline.merge else None
    return cell, merge


def _cells_of(grid: Grid, clock: Copy) -> tuple[int, ...]:
    routing = grid.routing(clock)
    assert not routing.terms, "no dimension cuts the clock"
    return routing.offsets


def cells_once(grid: Grid, copy: Copy) -> tuple[int, ...]:
    """The cells that have each row of a copy once: along a dimension that rows are copied along, the first ones."""
    shares = [dimension.share for dimension in grid.dimensions]
    strides = [prod(shares[place + 1 :]) for place in range(len(shares))]
    spread = [range(share if isinstance(route, Hash) else 1) for share, route in zip(shares, copy.routes, strict=True)]
    return tuple(sum(map(mul, coordinates, strides)) for coordinates in product(*spread))


def absent(pipeline: Pipeline) -> dict[str, Absent]:
    """The copies whose deletes of what is not there can be left out: all of a relation store the same columns.

    Otherwise one copy may have a row of which another has some columns, with other values in the rest.
    """
    copies: dict[str, list[Copy]] = {}
    for copy in pipeline.grid.copies:
        copies.setdefault(copy.relation, []).append(copy)
    found = dict[str, Absent]()
    for name, its in copies.items():
        relation = pipeline.relations[name]
        plain = not relation.static and not relation.derived and relation != CLOCK
        if plain and len({frozenset(copy.columns) for copy in its}) == 1:
            nobody = {copy.name: Absent(name, ()) for copy in its}
            found |= {**nobody, its[0].name: Absent(name, cells_once(pipeline.grid, its[0]))}
    return found


def expiries(pipeline: Pipeline, given: Expiries) -> dict[str, Expiry]:
    """By copy. Each must store the column that says when a row was, or it could not let the same rows go."""
    found = dict[str, Expiry]()
    for name, expiry in given.items():
        relation = pipeline.relations.get(name)
        column = relation.column(expiry.column) if relation is not None and not relation.static else None
        if column is None or column.type.kind != "TIMESTAMP":
            raise Error(f"expire: {name} has to be a stream with a TIMESTAMP {expiry.column}")
        if expiry.after <= timedelta(0):
            raise Error(f"expire: {name} is to expire after {expiry.after}: give a time above 0")
        for copy in pipeline.grid.copies:
            if copy.relation == name and expiry.column not in copy.columns:
                what = f"no view reads {name}.{expiry.column}, so no cell stores it"
                raise Error(f"expire: {what}: say every_column=True, with a new checkpoint")
            if copy.relation == name:
                found[copy.name] = expiry
    return found


def works(pipeline: Pipeline, run: Run, tasks: int, slots: Callable[[str], list[str]], artefacts: Artefacts) -> Works:
    """``slots`` says which slots of a routed row hold the columns of a copy."""
    merge = pipeline.merge
    partials = merge.partials if merge else ()
    spread = any(p.partition for p in partials)
    merge_cells = 0 if merge is None else pipeline.grid.cells if spread else 1
    whole = merge.single if merge else frozenset()
    return Works(
        run=run,
        cells=pipeline.grid.cells,
        clocks={copy.name: _cells_of(pipeline.grid, copy) for copy in pipeline.clocks},
        tasks=tasks,
        in_one_task=pipeline.asked == 1,
        preaggregate=pipeline.grid.preaggregate,
        arrivals=tuple(
            Arrival(c.name, c.columns, tuple(slots(c.name)), pipeline.relations[c.relation].static)
            for c in pipeline.grid.copies
        ),
        cell=artefacts[0],
        local=pipeline.local,
        merge_cells=merge_cells,
        merge=artefacts[1],
        splits=tuple(Split(p.view, p.partition, merge_cells) for p in partials),
        partials={p.view: p.relation.name for p in partials},
        merged=tuple(v for v in pipeline.merged if v not in whole),
        global_=tuple(v for v in pipeline.merged if v in whole),
    )
