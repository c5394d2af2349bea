"""A program at work on an engine: updates in, checked whole before they change anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from viewlet import arrow
from viewlet.boundary import Encoder, encoder, is_one_row, is_wild, to_key, values_of
from viewlet.changes import Change, Look, Subscriptions
from viewlet.door import doors, widened_events
from viewlet.engines.base import Engine
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.native.bridge import ArrowRows, Guard, Point, Report, SpoiledError, Way
from viewlet.engines.native.engine import Compiled, NativeEngine
from viewlet.errors import DataError, Error, OutOfRangeError, at_row, in_short
from viewlet.keys import Event, Given, Keys
from viewlet.ledger import OPS, Ledger
from viewlet.program.encoding import Row, Stored
from viewlet.program.trigger import Program
from viewlet.schema import CLOCK, Relation
from viewlet.told import Teller
from viewlet.turn import Turn

Ways = Mapping[str, Way]  # of a single row, by stream
Tables = Mapping[str, Mapping[Row, int]]
Start = Callable[[Program, Tables], Engine]
Counts = dict[tuple[str, Row], int]
Culprit = tuple[str, int, object]  # the row that cannot be taken: its relation, its number, itself
NUMBERS = (OutOfRangeError, ArithmeticError, ValueError)  # what a row may have that no view can hold
NO_KEY = "has no PRIMARY KEY, by which a row would replace another: declare one, or delete and insert"
NOT_STATIC = "a static table takes no NaN and no infinity, since views over it are evaluated exactly; a stream does"


class Session:
    """Every row is checked and encoded here. An update that fails leaves everything as it was."""

    def __init__(self, program: Program, start: Start, tables: Tables, subscriptions: Subscriptions) -> None:
        self.program = program
        self._start = start
        self._subscriptions = subscriptions
        self.relations = {relation.name: relation for relation in program.relations}
        self._encoders: dict[str, Encoder] = {r.name: encoder(r) for r in program.relations}
        self.doors = doors(program.relations)
        self.engine = start(program, tables)
        self.keys = Keys(program.relations, lambda name: self.engine.table(name))
        plain = (name for name in self._encoders if name not in self.keys and name != CLOCK.name)
        self._plain = {name: self._encoders[name] for name in plain}

    def tables(self) -> dict[str, Counter[Row]]:
        return {r.name: Counter(self.engine.table(r.name)) for r in self.program.relations}

    # -- updates -------------------------------------------------------------------------------------------------------

    def change(self, name: str, data: Any, times: int) -> None:
        """Rows of one relation come (``times`` = 1) or go (-1)."""
        if name in self.doors:
            data = self.doors[name].widened(data)
        row = self._one_row(name, data)
        if row is not None and (times > 0 or self.engine.count(name, row) > 0):
            self._run([(name, row, times)], lambda number: data)
        else:
            self._change_checked(name, data, times)

    def apply(self, events: Any) -> None:
        """An ordered mix of (op, relation, row)."""
        events = self._at_the_doors(events)
        triples = arrow.events(events) if arrow.is_arrow(events) else events
        if not isinstance(triples, Iterable):
            raise Error(f"apply takes events (op, relation, row), not {events!r}")
        given = list(triples)
        changes = [self._event(event, number) for number, event in enumerate(given)]
        self._check(changes, lambda number: given[number][2])
        self._run(changes, lambda number: given[number][2])

    def upsert(self, name: str, data: Any) -> None:
        """Rows come, and those with the same primary keys go."""
        relation = self.relation(name)
        if not relation.key:
            raise DataError(NO_KEY, relation=name)
        given = rows_of(self.doors[name].widened(data) if name in self.doors else data, name)
        self.update(self.keys.upserts(name, [self.row(relation, row, number) for number, row in enumerate(given)]))

    def tick(self, moment: Stored) -> None:
        """The one row of the clock gives way to another."""
        shown = [(CLOCK.name, row, -times) for row, times in self.engine.table(CLOCK.name).items()]
        self.update([(CLOCK.name, (moment,), 1), *shown])

    def update(self, changes: list[Event]) -> None:
        """Rows that were checked before, all or none."""

        def given(number: int) -> object:
            name, row, _ = changes[number]
            return values_of(self.relations[name], row)

        self._check(changes, given)
        names = list({name for name, _, _ in changes})
        if len(names) == 1:
            self._run_bulk(self.relations[names[0]], changes, given)
        else:
            self._run(changes, given)

    def _at_the_doors(self, events: Any) -> Any:
        """The events, their rows with derived columns. In Arrow each relation has a column of its rows."""
        triples = arrow.events(events) if self.doors and arrow.is_arrow(events) else events
        return widened_events(self.doors, triples) if self.doors and isinstance(triples, Iterable) else events

    def _one_row(self, relation: str, data: Any) -> Row | None:
        """A single event that needs no closer look."""
        encode = self._plain.get(relation) if type(data) is tuple and type(relation) is str else None
        return None if encode is None else encode(data)

    def _change_checked(self, name: str, data: Any, times: int) -> None:
        relation = self.relation(name)
        given = rows_of(data, name)
        changes = [(name, self.row(relation, row, number), times) for number, row in enumerate(given)]
        self._check(changes, given.__getitem__)
        if len(changes) < 2:
            self._run(changes, given.__getitem__)
        else:
            self._run_bulk(relation, changes, given.__getitem__)

    def _event(self, event: Any, number: int) -> Event:
        if not isinstance(event, (tuple, list)) or len(event) != 3:
            raise Error(f"event {number} is {event!r}, not (op, relation, row)")
        op, name, row = event
        relation = self.relation(name, number)
        times = OPS.get(op) if isinstance(op, str) else op
        if not isinstance(times, int) or isinstance(times, bool):
            raise DataError('op is "+", "-" or an integer', relation=name, row=number, column="op", value=op)
        return name, self.row(relation, row, number), times

    def row(self, relation: Relation, row: object, number: int) -> Row:
        """A row of an update, checked."""
        cells = self._encoders[relation.name](row)
        takes_wild = relation.static or self.engine.takes_wild
        return finite_row(relation, cells or to_key(relation, row, number, takes_wild=takes_wild), number)

    def relation(self, name: object, number: int | None = None) -> Relation:
        known = self.relations.get(name) if isinstance(name, str) else None
        if known is not None and name != CLOCK.name:
            return known
        if known is not None:
            raise DataError("is the clock: db.tick moves it", relation=CLOCK.name, row=number, value=name)
        if any(result.name == name for result in self.program.results):
            raise DataError("is a view: it follows from its tables", relation=str(name), row=number, value=name)
        there = ", ".join(sorted(self.relations.keys() - {CLOCK.name})) or "none"
        message = f"there is no such stream or table; there are: {there}"
        raise DataError(message, relation=str(name), row=number, value=name)

    def _check(self, changes: list[Event], given: Given) -> None:
        if self.keys:
            self.keys.check(changes, given)
        self._check_deletes(changes, given)

    def _check_deletes(self, changes: list[Event], given: Given) -> None:
        """In the batch's own order: what it inserted before, it may delete."""
        deleted_from = {name for name, _, times in changes if times < 0}
        there: dict[str, dict[Row, int]] = {name: {} for name in deleted_from}
        for number, (name, row, times) in enumerate(changes):
            if name in there:
                counts = there[name]
                count = counts.get(row)
                counts[row] = count = times + (self.engine.count(name, row) if count is None else count)
                if count < 0:
                    culprit = given(number)
                    raise DataError(f"{in_short(culprit)} is not there", relation=name, row=number, value=culprit)

    # -- all or nothing ------------------------------------------------------------------------------------------------

    def _run(self, events: list[Event], given: Given) -> None:
        """All events or, should one fail, none: the views are then built again from the tables as they were."""
        done, noted, before = 0, self._subscriptions.noted, self._counts(events)
        try:
            for event in events:
                self._apply(self.engine, event)
                done += 1
            looks = self._subscriptions.look()
            self._subscriptions.note(lambda log: log.events(self.relations, events))
        except BaseException as error:
            self._subscriptions.take_back(noted)
            culprit = None if done == len(events) else (events[done][0], done, given(done))
            self._refuse(before, error, culprit)
        self.keys.commit()
        if looks:
            self._subscriptions.publish(looks)

    def _apply(self, engine: Engine, event: Event) -> None:
        name, row, times = event
        if self.relations[name].static:
            engine.load(name, {row: times})
        elif times == 1:
            engine.apply("+", name, row)
        elif times == -1:
            engine.apply("-", name, row)
        elif times:
            engine.apply_bulk(name, {row: times})

    def _run_bulk(self, relation: Relation, events: list[Event], given: Given) -> None:
        """The same for rows that one trigger takes at once."""
        done, noted, before = False, self._subscriptions.noted, self._counts(events)
        entries: dict[Row, int] = {}
        for _, row, times in events:
            entries[row] = entries.get(row, 0) + times
        try:
            (self.engine.load if relation.static else self.engine.apply_bulk)(relation.name, entries)
            done = True
            looks = self._subscriptions.look()
            self._subscriptions.note(lambda log: log.events(self.relations, events))
        except BaseException as error:
            self._subscriptions.take_back(noted)
            self._refuse(before, error, None if done else self._culprit(events, error, given))
        self.keys.commit()
        if looks:
            self._subscriptions.publish(looks)

    def _culprit(self, events: list[Event], error: BaseException, given: Given) -> Culprit | None:
        """The first of many rows that is refused on its own, with no others around."""
        if not isinstance(error, NUMBERS) or self.relations[events[0][0]].static:
            return None
        static = {name: self.engine.table(name) for name, relation in self.relations.items() if relation.static}
        alone = PythonEngine(self.program, static)
        for number, (name, row, times) in enumerate(events):
            try:
                self._apply(alone, (name, row, abs(times)))
            except NUMBERS:
                return name, number, given(number)
        return None

    def _counts(self, events: list[Event]) -> Counts:
        """How often each row is there. Ctrl-C may come anywhere, so what is done of an update does not say."""
        count = self.engine.count
        return {(name, row): count(name, row) for name, row, _ in events}

    def _refuse(self, before: Counts, error: BaseException, culprit: Culprit | None) -> NoReturn:
        self.keys.forget()
        tables = self.tables()
        for (name, row), times in before.items():
            tables[name][row] = times
        self._go_back({name: +rows for name, rows in tables.items()})
        self._subscriptions.overlook()
        at = at_row(*culprit) if culprit else ""
        if isinstance(error, OutOfRangeError):
            raise OutOfRangeError(f"{error}{at}") from error
        why = f"a view cannot be computed with these rows, so nothing changed: {error}"
        if isinstance(error, ValueError) and culprit:
            relation, number, refused = culprit
            raise DataError(f"{why}: {in_short(refused)}", relation=relation, row=number, value=refused) from error
        if isinstance(error, (ValueError, ArithmeticError, RecursionError)):
            raise (OutOfRangeError if isinstance(error, OverflowError) else Error)(f"{why}{at}") from error
        raise error

    def _go_back(self, tables: Tables) -> None:
        """To before the update."""
        self.engine = self._start(self.program, tables)


class NativeSession(Session):
    """Rows go straight to the native program, which checks them itself; what it leaves to Python is done as above."""

    engine: NativeEngine

    def __init__(
        self, compiled: Compiled, tables: Tables, subscriptions: Subscriptions, before: Engine | None = None
    ) -> None:
        """``before`` is the engine to take over from, tables and views; without it the views follow from ``tables``.

        A native engine may have run another program over the same rows; Unfit if its NaN and infinities stop that.
        """
        relations = compiled.program.relations

        def convert(index: int, row: object, number: int) -> Row:
            return to_key(relations[index], row, number)

        def start(program: Program, tables: Tables) -> Engine:
            if before is None:
                return NativeEngine(compiled, tables, convert)
            if isinstance(before, NativeEngine):
                return NativeEngine.following(compiled, before, convert)
            return NativeEngine.adopt(compiled, before, convert)

        super().__init__(compiled.program, start, tables, subscriptions)
        del self._start  # it would hold on to the engine before
        self._point: Point | None = None  # before the update
        self._tellers: dict[str, Teller] = {}
        plain = (r.name for r in relations if not r.static and not r.derived and r.name != CLOCK.name)
        self._streams = frozenset(name for name in plain if name not in self.keys)
        self._keyed = frozenset(r.name for r in relations if not r.static and r.name in self.keys)

    def change(self, name: str, data: Any, times: int) -> None:
        if name in self.doors:
            data = self.doors[name].widened(data)
        if name in self._keyed and type(data) is tuple and self._change_one_keyed(name, data, times):
            return
        if self.relation(name).static or name in self.keys:
            self._change_checked(name, data, times)
        elif is_one_row(data):
            self._change_one(name, data, times)
        elif not arrow.is_arrow(data) or not self._change_batch(name, data, times):
            self._change_many(name, rows_of(data, name), times)

    def straight(self, times: int, guards: Sequence[Guard], turn: Turn, otherwise: Callable[[str], Way]) -> Ways:
        """By stream: the call for a single row, where nothing is done to rows before they reach the program."""
        state = self.engine.state
        return {
            name: state.straight(
                name, times, guards, turn.free, otherwise(name), partial(self._heed, name, times), turn.call_next
            )
            for name in self._streams
        }

    def _heed(self, name: str, times: int, report: Report, row: object) -> None:
        """What such a call reported."""
        try:
            self.engine.state.heed_one(report, name, times, row)
        except SpoiledError as error:
            self.engine.recover(error)

    def _change_many(self, name: str, rows: list[Any], times: int) -> None:
        """Where there is a log, the program gives it the rows as it decoded them."""
        state, relation, shown = self.engine.state, self.relations[name], list[ArrowRows | None]()

        def change() -> None:
            if self._subscriptions.log is None:
                state.many(name, times, rows)
            else:
                shown.append(state.many_shown(name, times, rows))

        def note(log: Ledger) -> None:
            if shown[0] is None:
                log.rows(relation, times, rows)
            else:
                log.shown(relation, times, shown[0])

        self._do(change, lambda: state.many(name, -times, rows[::-1]), note)

    def _change_one(self, name: str, row: Any, times: int) -> None:
        """Without the calls of :meth:`_do` where nobody listens."""
        state = self.engine.state
        if self._subscriptions.anybody:
            self._do(
                lambda: state.one(name, times, row),
                lambda: state.one(name, -times, row),
                lambda log: log.rows(self.relations[name], times, [row]),
            )
            return
        try:
            state.one(name, times, row)
        except SpoiledError as error:
            self.engine.recover(error)

    def _change_one_keyed(self, name: str, data: tuple[Any, ...], times: int) -> bool:
        """A single row of plain values where nobody listens; False for all others."""
        row = None if self._subscriptions.anybody else self._encoders[name](data)
        if row is None:
            return False
        self.keys.check([(name, row, times)], lambda number: data)
        try:
            self._change_one(name, data, times)
        except BaseException:
            self.keys.forget()
            raise
        self.keys.commit()
        return True

    def _change_batch(self, name: str, data: Any, times: int) -> bool:
        """False where the batch has columns that only Python can read."""
        state, batch = self.engine.state, arrow.batch(data, name)
        return bool(
            self._do(
                lambda: state.arrow_rows(name, times, batch),
                lambda: state.arrow_rows(name, -times, arrow.backwards(batch)),
                lambda log: log.batch(self.relations[name], times, batch),
            )
        )

    def apply(self, events: Any) -> None:
        if self.keys:
            super().apply(events)
            return
        state, events = self.engine.state, self._at_the_doors(events)
        if arrow.is_arrow(events):
            batch = arrow.batch(events, "events")
            if not self._do(
                lambda: state.arrow_events(batch),
                lambda: state.arrow_events(arrow.undone(batch)),
                lambda log: log.arrow_events(self.relations, batch),
            ):
                super().apply(events)
            return
        given = list(events) if isinstance(events, Iterable) and not isinstance(events, (list, tuple)) else events
        if (
            not isinstance(given, (list, tuple))
            or self._do(
                lambda: state.events(given),
                lambda: state.events([(_opposite(op), name, row) for op, name, row in given[::-1]]),
                lambda log: log.mixed(self.relations, given),
            )
            is not None
        ):
            super().apply(given)  # a static table, or what is no event: Python knows what to say

    def _run(self, events: list[Event], given: Given) -> None:
        self._point = self.engine.state.point()
        super()._run(events, given)
        self._point = None

    def _run_bulk(self, relation: Relation, events: list[Event], given: Given) -> None:
        self._point = self.engine.state.point()
        super()._run_bulk(relation, events, given)
        self._point = None

    def _go_back(self, tables: Tables) -> None:
        self.engine.go_back(tables, self._point)

    def changes(self, view: str) -> list[Change]:
        """What changed in a view that the program watches, since this was asked last."""
        if view not in self._tellers:
            self._tellers[view] = Teller(self.program.result(view))
        return self._tellers[view].changes(self.engine)

    def _do(self, update: Callable[[], Any], undo: Callable[[], Any], note: Callable[[Ledger], None]) -> Any:
        """All or nothing, also where a view that somebody listens to can no longer be shown, or the disk is full.

        Or where Ctrl-C comes: Python then raises behind the call that took the update.
        """
        state, looks = self.engine.state, dict[str, Look]()
        point, noted, before = state.point(), self._subscriptions.noted, state.updates()
        try:
            done = update()
            if self._subscriptions.anybody:
                looks = self._subscriptions.look()
                if done is None or done is True:  # and not left to Python
                    self._subscriptions.note(note)
        except BaseException as error:
            self._subscriptions.take_back(noted)
            if state.updates() == before:
                if isinstance(error, SpoiledError):
                    self.engine.recover(error)
            elif point is None:
                undo()
            else:
                self.engine.go_back({}, point)
            self._subscriptions.overlook()
            raise
        if looks:
            self._subscriptions.publish(looks)
        return done


def finite_row(relation: Relation, cells: Row, number: int) -> Row:
    """Cells as they are, unless a static table cannot have them."""
    for column, cell in zip(relation.columns, cells if relation.static else (), strict=False):
        if is_wild(cell):
            raise DataError(NOT_STATIC, relation=relation.name, row=number, column=column.name, value=cell)
    return cells


def _opposite(op: Any) -> Any:
    return -OPS[op] if isinstance(op, str) else -op


def rows_of(data: Any, relation: str) -> list[Any]:
    """The rows of whatever a user calls rows."""
    rows = [data] if is_one_row(data) else arrow.rows(data, relation) if arrow.is_arrow(data) else data
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DataError(f"{rows!r} is neither a row nor rows", relation=relation, value=rows)
    return list(rows)
