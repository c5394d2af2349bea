"""A grid of cells without Spark: every event routed by hand, an engine in each cell, partial maps summed by others.

What a cluster does with the same plan, in one process and in exact arithmetic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from zlib import crc32

from tests.oracle.oracle import Row, difference
from viewlet.algebra.evaluate import Entries, Key
from viewlet.algebra.terms import Scalar
from viewlet.cells import Grid, Partial, merge_of
from viewlet.cells.dimensions import monomials
from viewlet.cells.plan import Axes, assemble
from viewlet.cells.spread import Spread
from viewlet.compiler.script import compile_script
from viewlet.engines.base import Engine
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.results import result_rows
from viewlet.program.encoding import row_codec
from viewlet.program.trigger import Program, Result, Script
from viewlet.rows.boundary import to_key
from viewlet.schema import Relation, Type
from viewlet.workloads.streams import Event

MERGE_CELLS = 2


class Disagreement(AssertionError):
    """The sum over the cells is not what one engine has."""


def hash_of(value: Scalar, type_: Type) -> int:
    """As a router would: of the value as its type writes it, so that equal numbers of two types hash apart."""
    match value:
        case None:
            return 1
        case str():
            return crc32(value.encode())
        case bool():
            return 5 + value
    match type_.kind:
        case "DOUBLE":
            return crc32(struct.pack("d", float(value) or 0.0))
        case "DECIMAL":
            units = value * 10**type_.scale
            assert units.denominator == 1, f"{value} does not fit {type_}"
            return crc32(b"%d of %d" % (units, type_.scale))
        case _:
            assert value.denominator == 1, f"{value} does not fit {type_}"
            return crc32(b"%d" % value)


class Cells:
    """``engines[c]`` is cell c; ``summing`` are the merge cells."""

    def __init__(self, grid: Grid, static: Mapping[str, Sequence[Row]], engine: type[Engine] = Interpreter) -> None:
        self.grid = grid
        self.program = compile_script(grid.script)
        self.merge = merge_of(self.program, grid)
        self.engines = [engine(self.program) for _ in range(grid.cells)]
        self.summing = [engine(self.merge.program) for _ in range(MERGE_CELLS)] if self.merge else []
        self._relations = {r.name: r for r in grid.original.relations}
        self._sent = {(c, p.view): Entries() for c in range(grid.cells) for p in self._partials}
        for relation, rows in static.items():
            for row in rows:
                self._deliver(relation, row, 1)

    @property
    def _partials(self) -> tuple[Partial, ...]:
        return self.merge.partials if self.merge else ()

    def apply(self, batch: Iterable[Event]) -> None:
        for op, relation, row in batch:
            self._deliver(relation, row, 1 if op == "+" else -1)
        for partial in self._partials:
            for number, engine in enumerate(self.engines):
                self._send(partial, number, engine.entries(partial.view))

    def _deliver(self, name: str, row: Row, times: int) -> None:
        relation = self._relations[name]
        cells = to_key(relation, row)
        scalars = dict(zip((c.name for c in relation.columns), row_codec(relation).decode_key(cells), strict=True))
        for copy in (c for c in self.grid.copies if c.relation == name):
            routing = self.grid.routing(copy)
            hashes = {(t.column, t.type): hash_of(scalars[t.column], t.type) for t in routing.terms}
            read = tuple(v for c, v in zip(relation.columns, cells, strict=True) if c.name in copy.columns)
            for cell in routing.cells(hashes):
                engine = self.engines[cell]
                if relation.static:
                    engine.load(copy.name, {read: times})
                else:
                    engine.apply("+" if times > 0 else "-", copy.name, read)

    def _send(self, partial: Partial, cell: int, now: Entries) -> None:
        before, self._sent[cell, partial.view] = self._sent[cell, partial.view], now
        for key in before.keys() | now.keys():
            old, new = before.get(key, 0), now.get(key, 0)
            if old != new:
                engine = self.summing[self._merge_cell(partial, key)]
                for value, kind in ((old, "-"), (new, "+")):
                    if value != 0:
                        engine.apply(kind, partial.relation.name, _sendable(partial.relation, (*key, value)))

    def _merge_cell(self, partial: Partial, key: Key) -> int:
        types = [partial.relation.columns[i].type for i in partial.partition]
        return sum(hash_of(key[i], t) for i, t in zip(partial.partition, types, strict=True)) % MERGE_CELLS

    def rows(self, view: str) -> list[Row]:
        if view in self.grid.local:
            return [row for engine in self.engines for row in shown(engine, self.program.result(view))]
        assert self.merge is not None
        engines = self.summing[:1] if view in self.merge.single else self.summing
        return [row for engine in engines for row in shown(engine, self.merge.program.result(view))]


def _sendable(relation: Relation, scalars: Key) -> tuple[object, ...]:
    """The cells of a row of partial values: decimals in units, sums of doubles rounded to one."""
    return tuple(
        float(v) if c.type.kind == "DOUBLE" and v is not None else v
        for c, v in zip(relation.columns, row_codec(relation).encode_key(scalars), strict=True)
    )


def shown(engine: Engine, result: Result) -> list[Row]:
    """(how often, columns …), doubles as such."""
    types = [column.type for column in result.columns]
    return [
        (weight, *(float(v) if t.kind == "DOUBLE" and v is not None else v for v, t in zip(row, types, strict=True)))
        for weight, row in result_rows(result, engine.read)
    ]


class Single:
    """The engine that the cells must equal."""

    def __init__(self, script: Script, static: Mapping[str, Sequence[Row]]) -> None:
        self.program: Program = compile_script(script)
        self.engine = PythonEngine(self.program)
        self._relations = {r.name: r for r in script.relations}
        for name, rows in static.items():
            for row in rows:
                self.engine.load(name, {to_key(self._relations[name], row): 1})

    def apply(self, batch: Iterable[Event]) -> None:
        for op, name, row in batch:
            self.engine.apply(op, name, to_key(self._relations[name], row))

    def rows(self, view: str) -> list[Row]:
        return shown(self.engine, self.program.result(view))


def compare(single: Single, cells: Cells, when: str) -> None:
    for result in single.program.results:
        if wrong := difference(cells.rows(result.name), single.rows(result.name)):
            raise Disagreement(f"{result.name} {when}: {wrong}")


def random_axes(script: Script, rng: Random, dimensions: int, shares: Sequence[int] = (2, 3)) -> Axes:
    """Any legal dimensions, whatever they cost; none where the script cannot be divided."""
    parts = monomials(script)
    if not all(m.splits for m in parts):
        return ()
    chosen = [Spread(parts, tuple(rng.choice(m.splits) for m in parts)) for _ in range(dimensions)]
    return tuple((spread, rng.choice(shares)) for spread in chosen)


def random_grid(script: Script, rng: Random, dimensions: int) -> Grid:
    return assemble(script, random_axes(script, rng, dimensions))
