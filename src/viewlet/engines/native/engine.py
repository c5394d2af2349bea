"""The native engine: a program compiled to machine code, its state outside Python, behind the protocol of engines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Literal, NoReturn, cast

from viewlet.algebra.evaluate import UNBOUND, Entries, Key, Pattern
from viewlet.algebra.query import Atom, Rel, View, relations
from viewlet.algebra.terms import Number, Scalar
from viewlet.engines.base import Engine
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.initial import evaluated
from viewlet.engines.native.answers import Answers
from viewlet.engines.native.bridge import ArrowRows, Cells, NativeState
from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.emit.layout import Layout
from viewlet.engines.native.emit.watch import Watched as Watched
from viewlet.engines.native.handover import filled, handover
from viewlet.engines.native.module import Point, Sum
from viewlet.engines.native.numbers import decode_cell, decode_sum, encode_cell, encode_sum
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.engines.tables import tables_reader
from viewlet.errors import OutOfRangeError
from viewlet.loops.skeletons import is_within
from viewlet.program.encoding import Row
from viewlet.program.graph import part_for, part_of
from viewlet.program.kinds import COUNT, REAL, Unfit, kind_scale
from viewlet.program.limits import Limit, key_limits, limits
from viewlet.program.trigger import Program

MOST_BITS = 62  # columns of a key that a number has bits for
MOST_COPIES = 1 << 20  # of a row in one event: the trigger fires for each


RowConverter = Callable[[int, object, int], Row]  # relation, a user's row, its number ↦ cells, or DataError


class NativeEngine:
    """``convert`` makes cells of the rows that are not plain tuples of plain values."""

    takes_wild = True

    def __init__(
        self,
        compiled: Compiled,
        tables: Mapping[str, Mapping[Row, int]],
        convert: RowConverter | None = None,
        *,
        keep_tables: bool = True,
    ) -> None:
        self._compiled = compiled
        self._program, self._kinds = compiled.program, compiled.kinds
        self._limits = limits(self._program)
        self._static = frozenset(r.name for r in self._program.relations if r.static)
        self._unstored = frozenset(r.name for r in self._program.relations if not r.stored)
        self.state = NativeState(
            compiled.module, self._program, _cells_or(convert), keep_tables=keep_tables, watched=compiled.watched
        )
        self._sized: dict[str, int | None] = {}  # by view: see `size`
        self._answers, self._digest = Answers(self.state, compiled.watched), compiled.digest
        self._fill(tables)

    @staticmethod
    def adopt(compiled: Compiled, engine: Engine, convert: RowConverter) -> NativeEngine:
        """Take over tables and views as they are from an engine that ran the same program so far."""
        adopted = NativeEngine(compiled, {}, convert)
        try:
            adopted._take_over(engine)
        except Unfit:  # a sum that only exact numbers hold; row by row the infinite ones are kept apart
            adopted._refill({r.name: engine.table(r.name) for r in compiled.program.relations})
        adopted._answers.forget()
        return adopted

    def _take_over(self, engine: Engine) -> None:
        self._reset()
        for relation in self._program.relations:
            if relation.stored:
                self._load(relation.name, engine.table(relation.name))
        for view in sorted(self._program.views, key=lambda v: self._kinds.values[v.name] != COUNT):
            if not view.is_cache:  # counts first: a sum over no rows is nothing
                self._put(view.name, engine.entries(view.name))

    @staticmethod
    def following(compiled: Compiled, engine: NativeEngine, convert: RowConverter) -> NativeEngine:
        """Go on from an engine that ran another program over the same rows. That one is of no use afterwards.

        Tables and maps that both programs have change hands at no cost. The other maps are filled from the stored rows
        by a part of the program that keeps nothing else. SpoiledError or Unfit: a number in a new map cannot be held,
        or there are infinities and NaN, which have a history of their own. Then nothing changed.
        """
        if engine.has_wild:
            raise Unfit("the tables hold NaN or infinities")
        plan = handover(compiled, engine._compiled)
        if any(engine.came & relations(compiled.program.view(name).definition) for name in plan.missing):
            raise Unfit("a new map would miss rows that are not stored")
        part = NativeEngine.part_to_fill(compiled, engine)
        after = NativeEngine(compiled, {}, convert)
        filler = None if part is None else NativeEngine._filler(part, engine, after._limits)
        after.state.inherit(engine.state if filler is None else filler.state)
        after.state.take(engine.state, plan.maps, plan.views)
        if part is not None and filler is not None:
            more = filled(compiled, part, plan.missing)
            after.state.take(filler.state, more.maps, more.views)
            after.state.leave(filler.state)
        after.state.leave(engine.state)
        engine.state.reset()  # what it still has names texts that are not there any more
        after._answers.forget()
        return after

    @staticmethod
    def part_to_fill(compiled: Compiled, engine: NativeEngine) -> Compiled | None:
        """The part of a program that fills the maps which an engine does not have."""
        missing = handover(compiled, engine._compiled).missing
        return _compiled_part(part_of(compiled.program, missing)) if missing else None

    @staticmethod
    def _filler(part: Compiled, engine: NativeEngine, limits: Mapping[str, Limit]) -> NativeEngine:
        """An engine that has the texts of another one, and the maps of a part of a program over its rows."""
        filler = NativeEngine(part, {}, keep_tables=False)
        static = {name: engine.table(name) for name in filler._static}
        filler.state.inherit(engine.state)
        try:
            filler._fill(static)
            filler.state.replay(engine.state)
            filler._check_single(limits)
        except BaseException:
            filler.state.give_back(engine.state)
            raise
        return filler

    @property
    def has_wild(self) -> bool:
        """Whether there was an infinity or NaN in its rows."""
        return self.state.journal is not None

    @property
    def watched(self) -> Watched:
        """What :meth:`changes` and :meth:`partials` know."""
        return self._compiled.watched

    @property
    def keyed(self) -> frozenset[str]:
        """The streams whose tables check PRIMARY KEY and UNIQUE."""
        return self._compiled.keyed

    @property
    def came(self) -> frozenset[str]:
        """The streams that store no rows and had one."""
        return frozenset(name for name in self._unstored if self.state.came(name))

    def follow(self, came: Iterable[str]) -> None:
        """Go on from an engine before that took rows of these streams."""
        names = set(came)
        for relation in self._program.relations:  # elements of a list came with their rows
            if not relation.stored and not names.isdisjoint((relation.name, relation.of)):
                names.add(relation.name)
                self.state.came(relation.name, also=True)

    # -- updates -------------------------------------------------------------------------------------------------------

    def apply(self, kind: Literal["+", "-"], relation: str, row: Row) -> None:
        self._do(lambda: self.state.one(relation, 1 if kind == "+" else -1, Cells(row)))

    def apply_bulk(self, relation: str, entries: Mapping[Row, int]) -> None:
        """One after the other: with triggers of a few nanoseconds there is nothing to gain from ΔR as a whole."""
        events = [(times, relation, Cells(row)) for row, times in entries.items() if times]
        goes_first = relation in self.keyed  # a row may come with the key of one that goes
        self._do(lambda: self.apply_events(sorted(events, key=lambda e: e[0], reverse=not goes_first)))

    def apply_events(self, events: list[tuple[int, str, Cells]]) -> None:
        if (number := self.state.events(events)) is not None:
            times, relation, _ = events[number]
            raise OutOfRangeError(f"{relation}: {times} copies of a row in one event; at most {MOST_COPIES} are taken")

    def load(self, relation: str, entries: Mapping[Row, int]) -> None:
        before, point = self._tables(), self.state.point()
        after = Counter(before[relation])
        after.update(entries)
        try:
            try:
                self._refill({**before, relation: after})
            except SpoiledError:
                if point is not None:
                    raise
                exact = PythonEngine(self._program, before)  # perhaps by a number in between
                exact.load(relation, entries)
                self._take_over(exact)
        except BaseException as error:
            self.go_back(before, point)
            if isinstance(error, SpoiledError):
                self.tell(error)
            raise

    def _tables(self) -> dict[str, dict[Row, int]]:
        return {r.name: self.table(r.name) for r in self._program.relations}

    def recover(self, error: SpoiledError) -> NoReturn:
        """A view cannot hold what an update came to: tables and views are as before it, and the user is told why.

        A program with a stream that stores no rows has undone the update itself.
        """
        if not self._unstored:
            self.go_back(self._tables(), self.state.point())
        self.tell(error)

    def tell(self, error: SpoiledError) -> NoReturn:
        """Raise it by the names that the user knows."""
        limit, keys = self._limits.get(error.view), key_limits(self._program).get(error.view, {})
        if isinstance(error, OutOfRangeError) and len(keys) == 1:  # no machine counts so far that the count overflows
            (limit,) = keys.values()
            raise OutOfRangeError(f"{limit.refusal('a number')}{error.at}") from None
        if isinstance(error, OutOfRangeError) and limit is not None and not keys:
            raise OutOfRangeError(f"{limit.refusal('a sum')}{error.at}") from None
        parts = {r.name: part_for(self._program, r.name).views for r in self._program.results}
        shown = [name for name, views in parts.items() if any(v.name == error.view for v in views)]
        raise error.under(", ".join(shown) or error.view) from None

    def _do(self, change: Callable[[], object]) -> None:
        try:
            change()
        except SpoiledError as error:
            self.recover(error)

    # -- filling -------------------------------------------------------------------------------------------------------

    def _refill(self, tables: Mapping[str, Mapping[Row, int]]) -> None:
        self._reset()
        self._fill(tables)

    def _reset(self) -> None:
        self._answers.set_aside()
        self.state.reset()

    def go_back(self, tables: Mapping[str, Mapping[Row, int]], point: Point | None) -> None:
        """As it was. The rows fit together, though perhaps not in every order: exact numbers know no overflow.

        Infinities and NaN they do not know either; where there were any, there is a point to go back to.
        """
        if point is not None:
            self._answers.set_aside()
            self.state.go_back(point)
            return
        try:
            self._refill(tables)
        except SpoiledError:
            self._take_over(PythonEngine(self._program, tables))

    def _fill(self, tables: Mapping[str, Mapping[Row, int]]) -> None:
        """The views over static tables and empty streams, which need not be empty; then every row comes again."""
        static = {name: tables.get(name, {}) for name in self._static}
        for name, rows in static.items():
            self._load(name, rows)
        for view, entries in evaluated(self._program, self._program.views, static):
            self._put(view.name, entries)
        for name, rows in tables.items():
            if name not in self._static:
                self._replay(name, rows)
        self._check_single(self._limits)

    def _check_single(self, limits: Mapping[str, Limit]) -> None:
        """Triggers check what they change. Counts of rows of static tables, and of rows that were there, have none."""
        for view in self._program.views:
            limit = limits.get(view.name)
            if limit is not None and limit.type is None and any(m > 1 for m in self.entries(view.name).values()):
                raise OutOfRangeError(limit.refusal("a count"))

    def _replay(self, relation: str, rows: Mapping[Row, int]) -> None:
        """Every row comes as an event, as often as it is there."""
        for times, same in _by_times(rows).items():
            cells = list(map(Cells, same))
            for done in range(0, abs(times), MOST_COPIES):  # of a trusted delete there may be less than none
                self.state.many(relation, min(abs(times) - done, MOST_COPIES) * (1 if times > 0 else -1), cells)

    def _load(self, relation: str, rows: Mapping[Row, int]) -> None:
        for times, same in _by_times(rows).items():
            self.state.load(relation, same, times)

    def _put(self, view: str, entries: Entries) -> None:
        columns, value = self._kinds.columns[view], self._kinds.values[view]
        for key, m in entries.items():
            cells = tuple([encode_cell(v, kind) for v, kind in zip(key, columns, strict=True)])
            self.state.put(view, cells, encode_sum(m, value))

    # -- reads ---------------------------------------------------------------------------------------------------------

    def read(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        if isinstance(atom, Rel):
            relation = next(r for r in self._program.relations if r.name == atom.name)
            return tables_reader((relation,), {atom.name: self.table(atom.name)})(atom, pattern)
        assert isinstance(atom, View), f"{atom.text} is there only while a trigger fires"
        if UNBOUND not in pattern:
            return self._find(atom.name, cast(Key, pattern))
        return self._slice(atom.name, pattern)

    def _find(self, view: str, key: Key) -> Iterator[tuple[Key, Number]]:
        cells = [encode_cell(v, kind) for v, kind in zip(key, self._kinds.columns[view], strict=True)]
        if any(isinstance(c, Fraction) for c in cells):
            return  # a number between two that the key can hold
        sum_ = self.state.find(view, tuple(cells))
        if sum_ is not None:
            yield key, decode_sum(sum_, self._kinds.values[view])

    def _slice(self, view: str, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        """The entries that agree with a pattern."""
        kinds = self._kinds.columns[view]
        cells = [None if v is UNBOUND else encode_cell(cast(Scalar, v), k) for v, k in zip(pattern, kinds, strict=True)]
        if any(isinstance(c, Fraction) for c in cells):
            return ()  # a number between two that the key can hold
        bound = [(i, v) for i, v in enumerate(pattern) if v is not UNBOUND]
        bits, beyond = sum(1 << i for i, _ in bound if i < MOST_BITS), [(i, v) for i, v in bound if i >= MOST_BITS]
        entries = self._decoded(view, self.state.slice(view, tuple(cells), bits))
        return ((key, m) for key, m in entries.items() if all(key[i] == v for i, v in beyond))

    def entries(self, view: str) -> Entries:
        return self._decoded(view, self.state.entries(view))

    def _decoded(self, view: str, entries: Iterable[tuple[Row, Sum]]) -> Entries:
        columns, value = self._kinds.columns[view], self._kinds.values[view]
        scales = list(map(kind_scale, columns))
        return {
            tuple([decode_cell(c, s) for c, s in zip(key, scales, strict=True)]): decode_sum(m, value)
            for key, m in entries
        }

    def result(self, name: str, most: int | None = None) -> ArrowRows | None:
        return self.state.rows(name, most) if self.state.has_result(name) else None

    def result_row(self, name: str, key: Mapping[str, Scalar]) -> ArrowRows | None:
        rows = self._program.result(name).rows
        if rows is None:
            return self.result(name)
        if not isinstance(rows, View) or not self.state.has_result(name) or not key.keys() >= {*rows.outputs}:
            return None
        kinds = zip(rows.outputs, self._kinds.columns[rows.name], strict=True)
        cells = tuple([encode_cell(key[v], kind) for v, kind in kinds])
        between = any(isinstance(c, Fraction) for c in cells)  # two that the key can hold
        return None if between else self.state.row(name, rows.name, cells)

    def rows(self) -> int:
        """How many different rows the base tables hold."""
        return sum(entries for _, entries, _ in self.memory()[: len(self._program.relations)])

    def size(self, view: str) -> int:
        if view not in self._sized:
            self._sized[view] = self._sized_by(view)
        place = self._sized[view]
        return self.weigh(view)[0] if place is None else self.memory()[place][1]

    def _sized_by(self, view: str) -> int | None:
        """The place of the map that has exactly a view's entries: views that share it have none where it has none."""
        map_, _ = self.layout[view]
        count = self._program.view(view).definition
        for member in map_.members:
            known = member.kind != REAL or member.counted_by is not None  # else a sum of nothing may not be 0
            if not known or not is_within(self._program.view(member.view).definition, count):
                return None
        return None if map_.is_single else len(self._program.relations) + self.layout.maps.index(map_)

    def weigh(self, view: str) -> tuple[int, int]:
        return self.state.weigh(view)

    # -- changes -------------------------------------------------------------------------------------------------------

    def watches(self, result: str) -> bool:
        """Whether :meth:`changes` knows a result: not if its rows are more than one pass over one view."""
        return self._answers.knows("result", result)

    def changes(self, result: str) -> ArrowRows:
        """What changed since the last call: ``weight`` (how many came, or went if negative), then the columns.

        No two rows of it are equal. The first call tells all rows.
        """
        return self._answers.changes("result", result)

    @property
    def answers(self) -> Answers:
        """Who tells some results at once, and as tuples."""
        return self._answers

    def all_told(self) -> None:
        """Tell no more of what changed until now."""
        self._answers.forget()

    def partials(self, view: str) -> ArrowRows:
        """What changed in a map since the last call: ``weight``, ``k0``, ``k1``, …, ``value``.

        Where an entry has another value, (-1, key, old) if it was not 0, and (+1, key, new) if it is not 0. Sums of
        doubles are rounded to one; the old value is bit for bit the one that was told before.
        """
        return self._answers.changes("view", view)

    def standing_partials(self, view: str) -> ArrowRows:
        """All that :meth:`partials` told so far comes to."""
        return self._answers.standing("view", view)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def save(self, file: int) -> int:
        """The whole state, to a file descriptor, in large blocks; bytes written.

        It takes no lock and starts no thread: a forked child may do it while its parent goes on.
        """
        return self.state.save(file, self._digest)

    def restore(self, file: int) -> None:
        """What an engine of the same program saved, to the last bit; what is watched counts as told.

        CorruptError where that is not what the file holds: the engine is then of no use any more.
        """
        self.state.restore(file, self._digest)
        self._answers.all_told()

    def table(self, relation: str) -> dict[Row, int]:
        return self.state.table(relation)

    def count(self, relation: str, row: Row) -> int:
        return self.state.count(relation, tuple(row))

    def holder(self, relation: str, key: int, cells: Row) -> Row | None:
        """The row of a keyed stream that has a value of a key: see :meth:`NativeState.holder`."""
        return self.state.holder(relation, key, cells)

    def total(self, relation: str) -> int:
        """How many rows a base table has."""
        return self.state.total(relation)

    def stored(self, relation: str, most: int) -> Iterator[ArrowRows | None]:
        """The rows of a base table as Arrow, so many at a time: see :meth:`NativeState.stored`."""
        return self.state.stored(relation, most)

    @property
    def layout(self) -> Layout:
        return self._compiled.layout

    def memory(self) -> tuple[tuple[str, int, int], ...]:
        """Of each relation, then of each map of the layout, then of what is beside these: name, entries, bytes."""
        return self.state.memory()


def _compiled_part(program: Program) -> Compiled:
    compiled = compile_program(program)
    if compiled is None:
        raise Unfit("there is no compiler any more")
    return compiled


def _by_times(rows: Mapping[Row, int]) -> dict[int, list[Row]]:
    by_times: dict[int, list[Row]] = defaultdict(list)
    for row, times in rows.items():
        by_times[times].append(tuple(row))
    return by_times


def _cells_or(convert: RowConverter | None) -> RowConverter:
    """Refers to no engine: the module's state holds on to it."""

    def cells(relation: int, row: object, number: int) -> Row:
        if isinstance(row, Cells):
            return tuple(row)
        assert convert is not None, "an engine without a converter takes cells only"
        return convert(relation, row, number)

    return cells
