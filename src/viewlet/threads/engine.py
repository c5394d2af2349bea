"""The engine of several cells: native engines over shares of the rows, run by threads, behind the protocol of engines.

An update is done in every cell that it concerns, or in none, and then summed up for the views that no cell has whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.algebra.evaluate import Entries, Key, Pattern
from viewlet.algebra.query import Atom, Rel
from viewlet.algebra.terms import Number, Scalar
from viewlet.cells.router import ways
from viewlet.engines.native.bridge import ArrowRows, Cells
from viewlet.engines.native.emit.layout import Layout
from viewlet.engines.native.emit.watch import Watched
from viewlet.engines.native.engine import NativeEngine, RowConverter
from viewlet.engines.native.module import Point
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.engines.tables import tables_reader
from viewlet.program.encoding import Row
from viewlet.threads.spread import CompiledCells
from viewlet.threads.update import Update, Work, events_work, load_work

Tables = Mapping[str, Mapping[Row, int]]
WORTH_A_THREAD = 256  # rows: fewer are done before a thread has begun


class ThreadsEngine:
    """``cells`` are those of the grid, in its order; ``merge`` has the maps that are sums over all cells."""

    takes_wild = True

    def __init__(
        self, compiled: CompiledCells, tables: Tables, convert: RowConverter, before: ThreadsEngine | None = None
    ) -> None:
        """``before`` is an engine whose cells have the same rows; it is of no use afterwards."""
        self._compiled, spread = compiled, compiled.spread
        self._program = spread.program
        self._ways = ways(spread.grid)
        self._pool = ThreadPoolExecutor(spread.grid.cells, "viewlet cell")
        if before is None:
            shares = self._shares(tables)
            self.cells = list(self._pool.map(lambda share: NativeEngine(compiled.cell, share, convert), shares))
        else:
            self.cells = [NativeEngine.following(compiled.cell, cell, convert) for cell in before.cells]
        for number, cell in enumerate(self.cells):
            cell.state.divide(number, {name: way.numbers for name, way in self._ways.items()})
        self.merge: NativeEngine | None = None
        self._summed = frozenset(spread.sent)
        self._begin_sums()
        self.all_told()

    # -- which cells ---------------------------------------------------------------------------------------------------

    def _shares(self, tables: Tables) -> list[dict[str, dict[Row, int]]]:
        """The rows of each cell."""
        shares: list[dict[str, dict[Row, int]]] = [{} for _ in range(self._compiled.spread.grid.cells)]
        for name, rows in tables.items():
            way = self._ways[name]
            for row, times in rows.items():
                for cell in way.cells(row):
                    shares[cell].setdefault(name, {})[row] = times
        return shares

    def _holding(self, relation: str) -> list[NativeEngine]:
        """Cells that have each row of a relation once."""
        way = self._ways[relation]
        return self.cells if way.turns and len(way.offsets) == 1 else self._divided(relation)

    def _divided(self, relation: str) -> list[NativeEngine]:
        """Along the dimensions that it is hashed by: of those that it is copied along, the first coordinate."""
        places = [0]
        for turn in self._ways[relation].turns:
            places = [place + turn.stride * i for place in places for i in range(turn.share)]
        return [self.cells[place] for place in places]

    # -- updates -------------------------------------------------------------------------------------------------------

    def apply(self, kind: Literal["+", "-"], relation: str, row: Row) -> None:
        self.update(self.works([(1 if kind == "+" else -1, relation, row)])).run()

    def apply_bulk(self, relation: str, entries: Mapping[Row, int]) -> None:
        events = [(times, relation, row) for row, times in entries.items() if times]
        self.update(self.works(sorted(events, key=lambda event: -event[0])), len(events)).run()

    def works(self, events: Iterable[tuple[int, str, Row]]) -> dict[int, Work]:
        """Each cell its events, in their order."""
        mine: dict[int, list[tuple[int, str, Cells]]] = defaultdict(list)
        for times, name, row in events:
            cells = Cells(row)
            for cell in self._ways[name].cells(row):
                mine[cell].append((times, name, cells))
        return {cell: events_work(its) for cell, its in mine.items()}

    def each(self, work: Work) -> dict[int, Work]:
        """The same for every cell, which finds what is its own."""
        return dict.fromkeys(range(len(self.cells)), work)

    def update(self, works: Mapping[int, Work], rows: int = 1) -> Update:
        return Update(self, works, self._pool if rows >= WORTH_A_THREAD and len(works) > 1 else None)

    def load(self, relation: str, entries: Mapping[Row, int]) -> None:
        """Each cell computes its views again."""
        shares = enumerate(self._shares({relation: entries}))
        works = {cell: load_work(relation, share[relation]) for cell, share in shares if share}
        self.update(works).run()

    # -- sums ----------------------------------------------------------------------------------------------------------

    def _begin_sums(self) -> None:
        """A fresh engine sums up what the cells have told so far."""
        if self._compiled.merge is None:
            return
        self.merge = None
        self.sum_up()  # so that all is told
        self.merge = NativeEngine(self._compiled.merge, {}, keep_tables=False)
        for cell in self.cells:
            self._add(cell, cell.standing_partials)
        self.merge.all_told()

    def sum_up(self) -> None:
        """What changed in the cells since the last time."""
        for cell in self.cells if self._summed else ():
            self._add(cell, cell.partials)

    def _add(self, cell: NativeEngine, told: Callable[[str], ArrowRows]) -> None:
        assert self._compiled.spread.merge is not None
        for partial in self._compiled.spread.merge.partials:
            changed = pa.RecordBatch.from_struct_array(pa.array(told(partial.view)))
            if self.merge is None or not changed.num_rows:
                continue
            weights, rows = changed.column(0), changed.select(range(1, changed.num_columns))
            names = [column.name for column in partial.relation.columns]
            for times in (1, -1):
                part = rows.filter(pc.equal(weights, times)).rename_columns(names)
                if part.num_rows and not self.merge.state.arrow_rows(partial.relation.name, times, part):
                    raise AssertionError("what cells send is plain")

    def recover_sums(self, error: BaseException) -> None:
        """The cells are as they were before an update that could not be summed up."""
        self._begin_sums()
        if isinstance(error, SpoiledError) and self.merge is not None:
            self.merge.tell(error)

    def go_back(self, tables: Tables, points: Sequence[Point | None]) -> None:
        """As it was: see :meth:`NativeEngine.go_back`."""
        for cell, share, point in zip(self.cells, self._shares(tables), points, strict=True):
            cell.go_back(share, point)
        self._begin_sums()

    def points(self) -> list[Point | None]:
        return [cell.state.point() for cell in self.cells]

    # -- reads ---------------------------------------------------------------------------------------------------------

    def _readers(self, view: str) -> list[NativeEngine]:
        return [self.merge] if self.merge is not None and view in self._summed else self.cells

    def read(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        if isinstance(atom, Rel):
            relation = self._program.relation(atom.name)
            return tables_reader((relation,), {atom.name: self.table(atom.name)})(atom, pattern)
        readers = self._readers(atom.name)
        if len(readers) == 1:
            return readers[0].read(atom, pattern)
        return _summed(chain.from_iterable(cell.read(atom, pattern) for cell in readers)).items()

    def entries(self, view: str) -> Entries:
        return _summed(chain.from_iterable(cell.entries(view).items() for cell in self._readers(view)))

    def _is_local(self, result: str) -> bool:
        return result in self._compiled.spread.grid.local

    def result(self, name: str, most: int | None = None) -> object | None:
        """Cells sort their own rows only: where there is an order, rows are read off the maps."""
        if not self._is_local(name):
            return None if self.merge is None else self.merge.result(name, most)
        if self._program.result(name).order:
            return None
        parts, missing = list[pa.Array](), most
        for cell in self.cells:
            rows = cell.result(name, missing)
            if rows is None:
                return None
            parts.append(pa.array(rows))
            missing = None if missing is None else max(0, missing - len(parts[-1]))
        return _together(parts)

    def result_row(self, name: str, key: Mapping[str, Scalar]) -> object | None:
        if not self._is_local(name):
            return None if self.merge is None else self.merge.result_row(name, key)
        rows = [cell.result_row(name, key) for cell in self.cells]
        return None if None in rows else _together(map(pa.array, rows))

    def size(self, view: str) -> int:
        return sum(cell.size(view) for cell in self._readers(view))

    def weigh(self, view: str) -> tuple[int, int]:
        entries, sums = zip(*(cell.weigh(view) for cell in self._readers(view)), strict=True)
        return sum(entries), sum(sums)

    # -- tables --------------------------------------------------------------------------------------------------------

    def table(self, relation: str) -> dict[Row, int]:
        return {row: times for cell in self._holding(relation) for row, times in cell.table(relation).items()}

    def count(self, relation: str, row: Row) -> int:
        return self.cells[self._ways[relation].cells(row)[0]].count(relation, row)

    def total(self, relation: str) -> int:
        return sum(cell.total(relation) for cell in self._holding(relation))

    def stored(self, relation: str, most: int) -> Iterator[ArrowRows | None]:
        return chain.from_iterable(cell.stored(relation, most) for cell in self._holding(relation))

    # -- changes -------------------------------------------------------------------------------------------------------

    @property
    def watched(self) -> Watched:
        return self._compiled.watched

    def tellers(self, result: str) -> list[NativeEngine]:
        """Those who together know what changed in a result; nobody where its rows must be compared."""
        there = self.cells if self._is_local(result) else [self.merge] if self.merge is not None else []
        return [engine for engine in there if engine.watches(result)]

    def watches(self, result: str) -> bool:
        return bool(self.tellers(result))

    def all_told(self) -> None:
        for engine in (*self.cells, *([self.merge] if self.merge is not None else ())):
            engine.all_told()

    # -- the whole -----------------------------------------------------------------------------------------------------

    def goes_on_as(self, compiled: CompiledCells) -> bool:
        """Whether cells can run other machine code for the same program: see :meth:`NativeEngine.following`."""
        same = compiled.spread.cell is self._compiled.spread.cell or compiled.program is self._program
        return same and ways(compiled.spread.grid) == self._ways and not self.has_wild

    def rows(self) -> int:
        """How many different rows the base tables hold."""
        return sum(cell.rows() for cell in self.cells)

    @property
    def has_wild(self) -> bool:
        return any(cell.has_wild for cell in self.cells)

    @property
    def layout(self) -> Layout:
        return self.cells[0].layout

    def memory(self) -> tuple[tuple[str, int, int], ...]:
        """As :meth:`NativeEngine.memory`, all cells together, and then what sums them up. Copies of a row are one."""
        together = list[tuple[str, int, int]]()
        memories = [cell.memory() for cell in self.cells]
        holding = [self._holding(relation.name) for relation in self._program.relations]
        for place, same in enumerate(zip(*memories, strict=True)):
            having = holding[place] if place < len(holding) else self.cells
            entries = sum(held[1] for held, cell in zip(same, self.cells, strict=True) if cell in having)
            together.append((same[0][0], entries, sum(size for _, _, size in same)))
        sums = () if self.merge is None else self.merge.memory()
        return (*together, *((f"sum of {name}", entries, size) for name, entries, size in sums))


Machine = NativeEngine | ThreadsEngine  # engines of machine code


def _together(parts: Iterable[pa.Array]) -> object:
    return pa.concat_arrays(list(parts))


def _summed(entries: Iterable[tuple[Key, Number]]) -> Entries:
    total: Counter[Key] = Counter()
    for key, value in entries:
        total[key] += value  # type: ignore[assignment]
    return dict(total)
