"""A compiled program's state behind typed functions; what the module reports becomes an error that a user can read."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.engines.native.journal import Journal
from viewlet.engines.native.module import (
    Again,
    ArrowChange,
    Asked,
    Capsule,
    Changed,
    Convert,
    Feeds,
    Guard,
    Module,
    Pairs,
    Point,
    Report,
    Sum,
    Way,
)
from viewlet.engines.native.spoiled import KeyTakenError, SpoiledError, SpoiledOverflowError, SpoiledRowError
from viewlet.errors import CorruptError, DataError, NotThereError, OutOfRangeError, at_row, in_short
from viewlet.program.encoding import Row, Stored
from viewlet.program.trigger import Program, ResultColumn

WIDEST = 39  # digits of 128 bits
ALL = (1 << 63) - 2  # rows of a result, which are fewer


UNREADABLE = {
    "magic": "this file is no saved state of viewlet",
    "format": "this state was saved in a format of another version of viewlet: let that version read it",
    "program": "this state was saved by another program, or by this one in another version of viewlet",
    "damaged": "this saved state fails its checksum: a part of it was changed since it was written",
    "truncated": "this saved state ends too early: not all of it was written, or its end is lost",
    "longer": "this saved state has bytes behind its end",
}


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """A result as a struct array; every Arrow library takes it without a copy, but only once."""

    schema: Capsule
    array: Capsule

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Capsule, Capsule]:
        return self.schema, self.array


class Cells(tuple[Stored, ...]):
    """A row that is in cells already, which no fast path mistakes for one of the user's values."""

    __slots__ = ()


class NativeState:
    """Relations and views go by name. An update is done whole, or raises and (but for ``SpoiledError``) did nothing.

    ``convert`` is asked for the rows that are not plain tuples of plain values. No garbage collector sees through the
    module's state, so it must not refer to this object or to its engine.
    """

    def __init__(
        self,
        module: Module,
        program: Program,
        convert: Convert,
        *,
        keep_tables: bool = True,
        watched: Watched = UNWATCHED,
    ) -> None:
        self._module, self._program, self._watched, self._convert = module, program, watched, convert
        self._state = module.create(convert, keep_tables)
        self.journal: Journal | None = None  # from the first infinity or NaN on
        relations, views, results = module.names()
        self._relations = {name: i for i, name in enumerate(relations)}
        self._given = {relation.name: len(relation.given) for relation in program.relations}
        self._views = {name: i for i, name in enumerate(views)}
        self._results = {name: i for i, name in enumerate(results)}

    # -- updates -------------------------------------------------------------------------------------------------------

    def one(self, relation: str, times: int, row: object) -> None:
        report = self._module.one(self._state, self._relations[relation], times, row)
        if report or self.journal is not None:
            self.heed_one(report, relation, times, row)

    def straight(
        self,
        relation: str,
        times: int,
        guards: Sequence[Guard],
        free: list[None],
        otherwise: Way,
        heed: Callable[[Report, object], None],
        line: Collection[object],
        pass_on: Callable[[], None],
        listening: tuple[Guard, Guard],
        afterwards: Callable[[], None],
    ) -> Way:
        """:meth:`one` as one call, while each guard is what it was, and ``free`` has the token of who may be inside.

        Else the row goes ``otherwise``. ``listening`` says whether somebody listens, and who is fed by machine code.
        Where that cannot be, the update goes to ``heed``, and ``afterwards`` is called at its end. For both the token
        is taken; when it is back, and somebody is in ``line``, it is time to ``pass_on``.
        """
        asked = (*guards, (self, "journal", None), *listening)
        *kept, heard, fed = ((vars(owner), name, value) for owner, name, value in asked)
        ways = (otherwise, heed, line, pass_on, heard, fed, afterwards)
        return self._module.straight(self._state, self._relations[relation], times, tuple(kept), free, *ways)

    def heed_one(self, report: Report, relation: str, times: int, row: object) -> None:
        self._heed(report, lambda number: (relation, row), lambda: self._rows_again(relation, times, [row]))

    def many(self, relation: str, times: int, rows: Sequence[object]) -> None:
        report = self._module.many(self._state, self._relations[relation], times, rows)
        if report or self.journal is not None:
            self._heed(report, lambda number: (relation, rows[number]), lambda: self._rows_again(relation, times, rows))

    def many_shown(self, relation: str, times: int, rows: Sequence[object]) -> ArrowRows | None:
        """The same; the rows as Arrow, as they were given. None where Arrow cannot hold one."""
        number = self._relations[relation]
        report, shown = self._module.many_shown(self._state, number, times, rows, self._given[relation])
        if report or self.journal is not None:
            self._heed(report, lambda number: (relation, rows[number]), lambda: self._rows_again(relation, times, rows))
        return None if shown is None else ArrowRows(*shown)

    def events(self, events: Sequence[Any]) -> int | None:
        """The number of an event that is no (op, relation, row) or is for a static table: then nothing was done."""
        report = self._module.events(self._state, events)
        if isinstance(report, tuple) and report[0] in ("event", "static"):
            return int(report[1])
        if report or self.journal is not None:

            def given(number: int) -> tuple[str, object]:
                return self._named(events[number][1]), events[number][2]

            self._heed(report, given, lambda: self._events_again(events))
        return None

    def arrow_rows(self, relation: str, times: int, batch: Any) -> bool:
        """False, and nothing done, where the batch must be taken row by row."""
        change = partial(self._module.arrow_rows, self._state, self._relations[relation], times)
        return self._arrow_done(change, batch, lambda number: (relation, batch.slice(number, 1).to_pylist()[0]))

    def arrow_events(self, batch: Any) -> bool:
        def given(number: int) -> tuple[str, object]:
            event = batch.slice(number, 1).to_pylist()[0]
            return event["relation"], event["row"] if "row" in event else event[event["relation"]]

        return self._arrow_done(partial(self._module.arrow_events, self._state), batch, given)

    def _arrow_done(self, change: ArrowChange, batch: Any, given: Callable[[int], tuple[str, object]]) -> bool:
        report = change(*batch.__arrow_c_array__())
        if isinstance(report, str):
            assert report == "slow"
            return False
        if report or self.journal is not None:
            self._heed(report, given, lambda: (_on_a_copy(change, batch), batch.num_rows))
        return True

    def _heed(self, report: Report, given: Callable[[int], tuple[str, object]], again: Again) -> None:
        """What was reported, and what must be done again to come here again."""
        if isinstance(report, tuple):
            self._refuse(report, given)
        if self.journal is not None:
            self.journal.note(*again())
        begins = bool(report) if self.journal is None else self.journal.is_full
        if begins:
            self.journal = Journal(self._module, self._state)

    def _rows_again(self, relation: str, times: int, rows: Sequence[object]) -> tuple[Callable[[], object], int]:
        kept = [self._kept(relation, row) for row in rows]
        return partial(self._module.many, self._state, self._relations[relation], times, kept), len(kept)

    def _events_again(self, events: Sequence[Any]) -> tuple[Callable[[], object], int]:
        kept = [(op, relation, self._kept(self._named(relation), row)) for op, relation, row in events]
        return partial(self._module.events, self._state, kept), len(kept)

    def _kept(self, relation: str, row: object) -> object:
        """What the row is now: only a tuple stays as it is."""
        return row if type(row) is tuple else Cells(self._convert(self._relations[relation], row, 0))

    def _named(self, relation: str | int) -> str:
        return list(self._relations)[relation] if isinstance(relation, int) else relation

    def _refuse(self, report: tuple[Any, ...], given: Callable[[int], tuple[str, object]]) -> NoReturn:
        match report:
            case ("missing", number):
                relation, row = given(number)
                raise NotThereError(f"{in_short(row)} is not there", relation=relation, row=number, value=row)
            case ("taken", number):
                relation, row = given(number)
                raise KeyTakenError("a row with its key is there already", relation=relation, row=number, value=row)
            case ("static", number):
                relation, row = given(number)
                raise DataError("a static table has no triggers: load it", relation=relation, row=number, value=row)
            case ("overflow", view, number):
                why = "a number no longer fits its type, or is beyond the greatest double"
                raise SpoiledOverflowError(view, why, _at(number, given))
            case ("inexact", view, number):
                raise SpoiledError(view, "a number has more decimals than its place", _at(number, given))
            case ("wild", view, number):
                why = "an infinity or NaN in what other sums depend on could not be taken out again, so nothing changed"
                raise SpoiledError(view, why, _at(number, given))
            case (str() as why, view, number) if number >= 0:
                relation, row = given(number)
                message = f"{why}{'' if isinstance(row, Cells) else f', in {in_short(row)}'}"
                raise SpoiledRowError(view, message, relation, number, row)
            case (str() as why, view, _):
                raise SpoiledError(view, why)
        raise AssertionError(f"the native module reports {report}")

    def upsert(
        self, relation: str, rows: Sequence[object] | pa.RecordBatch, *, shown: bool
    ) -> tuple[pa.RecordBatch, pa.RecordBatch] | bool:
        """Rows come in place of those with their primary keys: True, or, if ``shown``, what went and what came.

        False where Python must do it.
        """
        number = self._relations[relation]
        given, array = rows.__arrow_c_array__() if isinstance(rows, pa.RecordBatch) else (rows, None)
        done = self._module.upsert(self._state, number, given, array, self._given[relation] if shown else 0)
        if isinstance(done, str):
            assert done == "slow"
            return False
        report, went, came = done
        if report or self.journal is not None:
            listed = rows.to_pylist() if isinstance(rows, pa.RecordBatch) else rows
            again = partial(
                self._module.upsert, self._state, number, [self._kept(relation, r) for r in listed], None, 0
            )
            self._heed(report, lambda place: (relation, listed[place]), lambda: (again, len(listed)))
        return True if went is None or came is None else (_batch(went), _batch(came))

    @contextmanager
    def any_order(self) -> Iterator[None]:
        """Rows come in another order than they did, so no key is checked."""
        self._module.check_keys(self._state, False)
        try:
            yield
        finally:
            self._module.check_keys(self._state, True)

    def holder(self, relation: str, key: int, cells: Row) -> Row | None:
        """The row that is there with this value of a key; the cells that the key does not have are None."""
        return self._module.holder(self._state, self._relations[relation], key, tuple(cells))

    def divide(self, cell: int, ways: Mapping[str, Sequence[int]]) -> None:
        """From now on batches of Arrow are of several cells, and this one takes its own rows of them.

        Each relation has the bits of the cells behind the first that its rows go to, and then, for each column that
        they are divided by, its place, how many coordinates there are, and how far apart their cells are.
        """
        self._module.divide(self._state, cell, tuple(tuple(ways[name]) for name in self._relations))

    def updates(self) -> int:
        """How many were taken."""
        return self._module.updates(self._state)

    def came(self, relation: str, also: bool = False) -> bool:
        """Whether a row of a stream that stores none was ever taken here, or, ``also``, by an engine before."""
        return self._module.came(self._state, self._relations[relation], also)

    # -- base tables ---------------------------------------------------------------------------------------------------

    def load(self, relation: str, rows: Sequence[Row], times: int = 1) -> None:
        """Into the base table alone: no trigger fires."""
        report = self._module.load(self._state, self._relations[relation], rows, times)
        if isinstance(report, tuple):
            self._refuse(report, lambda number: (relation, rows[number]))

    def count(self, relation: str, row: Row) -> int:
        return self._module.count(self._state, self._relations[relation], row)

    def total(self, relation: str) -> int:
        """Rows, each as often as it is there."""
        return self._module.total(self._state, self._relations[relation])

    def table(self, relation: str) -> dict[Row, int]:
        """A NaN in it is ``math.nan`` itself: the rows are keys, and Python finds a NaN by the object alone."""
        rows = self._module.table(self._state, self._relations[relation])
        if all(column.type.held.kind != "DOUBLE" for column in self._program.relation(relation).columns):
            return dict(rows)
        return {tuple([math.nan if cell != cell else cell for cell in row]): times for row, times in rows}

    def stored(self, relation: str, most: int) -> Iterator[ArrowRows | None]:
        """The same as Arrow, ``most`` rows at a time, behind a column of how often each is there.

        None for a row that Arrow cannot hold. No update may come in between.
        """
        place: int | None = 0
        while place is not None:
            rows, end = self._module.stored(self._state, self._relations[relation], place, most)
            if rows is None and end is not None and most > 1:
                most //= 2  # their texts are too long for one array
                continue
            place = end
            if end is not None:
                yield None if rows is None else ArrowRows(*rows)

    # -- views ---------------------------------------------------------------------------------------------------------

    def find(self, view: str, key: Row) -> Sum | None:
        """None where the multiplicity is 0."""
        return self._module.find(self._state, self._views[view], key)

    def entries(self, view: str) -> list[tuple[Row, Sum]]:
        return self._module.entries(self._state, self._views[view])

    def slice(self, view: str, cells: Row, bits: int) -> list[tuple[Row, Sum]]:
        """The entries whose key has these cells where the bits are 1."""
        return self._module.slice(self._state, self._views[view], cells, bits)

    def put(self, view: str, key: Row, value: Sum) -> None:
        """Add to an entry; base rows hold the texts of most keys, so load them before the next update."""
        report = self._module.put(self._state, self._views[view], key, value)
        if isinstance(report, tuple):
            self._refuse(report, lambda number: (view, key))

    def weigh(self, view: str) -> tuple[int, int]:
        """How many entries there are, and what whole numbers come to."""
        return self._module.weigh(self._state, self._views[view])

    def has_result(self, name: str) -> bool:
        return name in self._results

    def rows(self, result: str, most: int | None = None) -> ArrowRows:
        """The rows of a result; a value that its column's type cannot hold is an error, never another number.

        ``most``: only so many, the first that are met.
        """
        exported = self._module.rows(self._state, self._results[result], ALL if most is None else most)
        return _arrow(result, self._program.result(result).columns, exported)

    def row(self, result: str, view: str, key: Row) -> ArrowRows | None:
        """The row of one key of ``view``, which enumerates the rows; None where they can only be read together."""
        exported = self._module.read_one(self._state, self._results[result], self._views[view], key)
        return None if exported is None else _arrow(result, self._program.result(result).columns, exported)

    # -- what changed --------------------------------------------------------------------------------------------------

    def changes(self, watched: int) -> ArrowRows:
        """Of what is watched under this number: what changed since the last call. If it raises, that stays to tell."""
        return self._told(watched, self._module.changes(self._state, watched))

    def told(self, asked: Asked) -> list[Changed]:
        """The same of several, as (weight, row), what went first. If it raises, all of it stays to tell."""
        told = self._module.told(self._state, asked)
        if isinstance(told, list):
            return told
        place, report = told
        self._told(asked[place][0], report)
        raise AssertionError("a report is an error")

    def feeds(self, aside: Mapping[int, object], pending: Collection[object], views: tuple[Any, ...]) -> Feeds:
        """What :meth:`feed` takes. ``aside`` and ``pending`` must be empty when it does."""
        return self._state, aside, pending, views

    def feed(self, feeds: Feeds) -> bool:
        """Hand what changed over to all who iterate over it. False where :meth:`told` must see to it: nothing is done.

        Of other views nothing is told any more.
        """
        return self._module.feed(self._state, feeds)

    def forget(self) -> None:
        """Nothing of what changed until now is to be told."""
        self._module.forget(self._state)

    def standing(self, watched: int) -> ArrowRows:
        """What all changes told so far come to."""
        return self._told(watched, self._module.standing(self._state, watched))

    def _told(self, watched: int, exported: tuple[Any, ...]) -> ArrowRows:
        if watched >= len(self._watched.results):
            return _arrow(self._watched.views[watched - len(self._watched.results)], (), exported)
        result = self._program.result(self._watched.results[watched])
        return _arrow(result.name, (None, *result.columns), exported)

    # -- from one program to the next ----------------------------------------------------------------------------------

    def inherit(self, other: NativeState) -> None:
        """Take the texts of another state, and start from nothing. The other is left to be taken from."""
        self._module.inherit(self._state, other._state)

    def give_back(self, other: NativeState) -> None:
        """The texts go back to the state that they were inherited from: it is as it was."""
        self._module.give_back(self._state, other._state)

    def replay(self, other: NativeState) -> None:
        """Every row of the other's streams comes as an event. The tables are not touched."""
        streams = [r.name for r in self._program.relations if not r.static]
        pairs = [(self._relations[name], other._relations[name]) for name in streams if name in other._relations]
        report = self._module.replay(self._state, other._state, pairs)
        if isinstance(report, tuple):
            self._refuse(report, lambda number: ("", Cells()))

    def take(self, other: NativeState, maps: Pairs, views: Iterable[tuple[str, str]]) -> None:
        """Maps change hands, by their numbers; the entries of views are copied."""
        pairs = [(self._views[mine], other._views[theirs]) for mine, theirs in views]
        self._module.take(self._state, other._state, maps, pairs)

    def leave(self, other: NativeState) -> None:
        """Nothing more is taken from the other: the texts that only it held may go."""
        self._module.leave(self._state, other._state)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def memory(self) -> tuple[tuple[str, int, int], ...]:
        """(map, entries, bytes), the texts last."""
        return self._module.memory(self._state)

    def reset(self) -> None:
        self.journal = None
        self._module.reset(self._state)

    def point(self) -> Point | None:
        """Where this state is now, if there may be infinities or NaN in it."""
        return None if self.journal is None else (self.journal, len(self.journal))

    def go_back(self, point: Point) -> None:
        self.journal, updates = point
        self.journal.go_back(updates)

    def save(self, file: int, digest: str) -> int:
        """Everything, to a file descriptor, from where it stands; how many bytes that took."""
        return self._module.save(self._state, file, digest)

    def restore(self, file: int, digest: str) -> None:
        """What was saved, in place of what is there; where it cannot be read, nothing is left."""
        self.journal = None
        if problem := self._module.restore(self._state, file, digest):
            raise CorruptError(UNREADABLE[problem])


def _batch(shown: tuple[Capsule, Capsule]) -> pa.RecordBatch:
    return pa.record_batch(ArrowRows(*shown))


def _at(number: int, given: Callable[[int], tuple[str, object]]) -> str:
    """The row that an update failed at. A user knows no stored values: the caller names the row."""
    relation, row = given(number) if number >= 0 else ("", Cells())
    return "" if isinstance(row, Cells) else at_row(relation, number, row)


def _on_a_copy(change: ArrowChange, batch: pa.RecordBatch) -> Callable[[], object]:
    """In memory of its own: who gave the rows may write over them."""
    copy, schema = batch.serialize(), batch.schema
    return lambda: change(*pa.ipc.read_record_batch(copy, schema).__arrow_c_array__())


def _arrow(name: str, columns: Sequence[ResultColumn | None], exported: tuple[Any, ...]) -> ArrowRows:
    """Rows, or why they cannot be shown; ``columns`` are those of a result."""
    match exported:
        case ("unfit", column, value):
            raise _unfit(name, columns[column] if columns else None, value)
        case ("overflow" | "inexact" | "wild" as kind, _, _):
            raise OutOfRangeError(f"view {name}: {kind}: a number cannot be computed exactly")
        case (str() as why, _, _):
            raise OutOfRangeError(f"view {name}: {why}")
        case (schema, array):
            return ArrowRows(schema, array)
    raise AssertionError("a result is two capsules or a report")


def _unfit(result: str, column: ResultColumn | None, value: int) -> OutOfRangeError:
    if column is None:
        return OutOfRangeError(f"view {result}: {value} units of its last place are more than 38 digits")
    shown: Stored | Decimal = value
    if column.type.kind == "DECIMAL":
        shown = Decimal(value).scaleb(-column.type.scale, Context(prec=WIDEST))
    return OutOfRangeError(f"{result}.{column.name}: {shown} no longer fits {column.type}")
