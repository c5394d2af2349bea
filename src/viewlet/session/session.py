"""A program at work on an engine: updates in, checked whole before they change anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from viewlet.engines.base import Engine
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.errors import DataError, Error, NotThereError, OutOfRangeError, at_row, in_short
from viewlet.program.encoding import Row, Stored
from viewlet.program.trigger import Program
from viewlet.rows import arrow
from viewlet.rows.boundary import Encoder, encoder, is_one_row, is_wild, to_key, values_of
from viewlet.rows.defaults import Defaults
from viewlet.rows.door import doors, widened_events
from viewlet.rows.elements import Numbered, elements_of, with_elements
from viewlet.rows.keys import Event, Given, Keys
from viewlet.rows.ledger import OPS
from viewlet.rows.unstored import check_static
from viewlet.schema import CLOCK, Relation
from viewlet.session.changes import Subscriptions

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
        self.doors, self._elements = doors(program.relations), elements_of(program.relations)
        self._defaults = Defaults(program.relations)
        self.unstored = frozenset(relation.name for relation in program.relations if not relation.stored)
        self._came: frozenset[str] = frozenset()
        self.engine = start(program, tables)
        self.keys = Keys(program.relations, lambda name: self.engine.table(name))
        plain = (name for name in self._encoders if name not in self.keys and name != CLOCK.name)
        self._plain = {name: self._encoders[name] for name in plain}

    def tables(self) -> dict[str, Counter[Row]]:
        return {r.name: Counter(self.engine.table(r.name)) for r in self.program.relations}

    @property
    def came(self) -> frozenset[str]:
        """The streams that store no rows and had one: what needs their rows is refused from then on."""
        return self._came

    def follow(self, before: Session) -> None:
        """Go on from a session over the same rows."""
        self.keys.follow(before.keys)
        self._came = before.came & self.unstored

    # -- updates -------------------------------------------------------------------------------------------------------

    def change(self, name: str, data: Any, times: int) -> None:
        """Rows of one relation come (``times`` = 1) or go (-1)."""
        self._check_tables((name,))
        data = self._defaults.filled(name, data)
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
        data = self._defaults.filled(name, data)
        given = rows_of(self.doors[name].widened(data) if name in self.doors else data, relation)
        self.update(*self.keys.upserts(name, [self.row(relation, row, number) for number, row in enumerate(given)]))

    def tick(self, moment: Stored, clock: str = CLOCK.name) -> None:
        """The one row of the clock gives way to another."""
        shown = [(clock, row, -times) for row, times in self.engine.table(clock).items()]
        self.update([(clock, (moment,), 1), *shown])

    def update(self, changes: list[Event], numbers: Sequence[int] | None = None) -> None:
        """Rows that were checked before, all or none; ``numbers`` are those of the rows that the user gave."""

        def given(number: int) -> object:
            name, row, _ = changes[number]
            return values_of(self.relations[name], row)

        self._check(changes, given, numbers)
        names = list({name for name, _, _ in changes})
        if len(names) == 1:
            self._run_bulk(self.relations[names[0]], changes, given)
        else:
            self._run(changes, given)

    def _at_the_doors(self, events: Any) -> Any:
        """The events, their rows with all columns. In Arrow each relation has a column of its rows."""
        events = self._defaults.filled_events(events)
        triples = arrow.events(events) if self.doors and arrow.is_arrow(events) else events
        return widened_events(self.doors, triples) if self.doors and isinstance(triples, Iterable) else events

    def _one_row(self, relation: str, data: Any) -> Row | None:
        """A single event that needs no closer look."""
        encode = self._plain.get(relation) if type(data) is tuple and type(relation) is str else None
        return None if encode is None else encode(data)

    def _change_checked(self, name: str, data: Any, times: int) -> None:
        relation = self.relation(name)
        given = rows_of(data, relation)
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
        if known is not None and not known.is_hidden:
            return known
        if known is not None and not known.of:
            raise DataError("is the clock: db.tick moves it", relation=CLOCK.name, row=number, value=name)
        if any(result.name == name for result in self.program.results):
            raise DataError("is a view: it follows from its tables", relation=str(name), row=number, value=name)
        there = ", ".join(sorted(name for name, r in self.relations.items() if not r.is_hidden)) or "none"
        message = f"there is no such stream or table; there are: {there}"
        raise DataError(message, relation=str(name), row=number, value=name)

    def _check_tables(self, names: Iterable[str]) -> None:
        """Where a static table changes, views are computed again, which takes the rows of all streams."""
        there = [self.relations[name] for name in names if name in self.relations] if self.unstored else []
        for table in (relation for relation in there if relation.static):
            check_static(self.came | {relation.name for relation in there if not relation.stored}, table.name)

    def _check(self, changes: list[Event], given: Given, numbers: Sequence[int] | None = None) -> None:
        self._check_tables({name for name, _, _ in changes})
        if self.keys:
            self.keys.check(changes, given, numbers)
        self._check_deletes(changes, given)

    def _check_deletes(self, changes: list[Event], given: Given) -> None:
        """In the batch's own order: what it inserted before, it may delete."""
        deleted_from = {name for name, _, times in changes if times < 0} - self.unstored
        there: dict[str, dict[Row, int]] = {name: {} for name in deleted_from}
        for number, (name, row, times) in enumerate(changes):
            if name in there:
                counts = there[name]
                count = counts.get(row)
                counts[row] = count = times + (self.engine.count(name, row) if count is None else count)
                if count < 0:
                    culprit = given(number)
                    raise NotThereError(f"{in_short(culprit)} is not there", relation=name, row=number, value=culprit)

    # -- all or nothing ------------------------------------------------------------------------------------------------

    def _run(self, events: list[Event], given: Given) -> None:
        """All events or, should one fail, none: the views are then built again from the tables as they were."""
        every = with_elements(self._elements, events)
        done, noted, before = 0, self._subscriptions.noted, self._counts([event for event, _ in every])
        try:
            for event, _ in every:
                self._apply(self.engine, event)
                done += 1
            looks = self._subscriptions.look()
            self._subscriptions.note(lambda log: log.events(self.relations, events))
        except BaseException as error:
            self._subscriptions.take_back(noted)
            number = every[done][1] if done < len(every) else None
            culprit = None if number is None else (events[number][0], number, given(number))
            self._refuse(before, error, culprit)
        self._is_in(events)
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
        every = with_elements(self._elements, events)
        done, noted, before = False, self._subscriptions.noted, self._counts([event for event, _ in every])
        entries: dict[str, dict[Row, int]] = {}
        for (name, row, times), _ in every:
            mine = entries.setdefault(name, {})
            mine[row] = mine.get(row, 0) + times
        try:
            for name, rows in entries.items():
                (self.engine.load if relation.static else self.engine.apply_bulk)(name, rows)
            done = True
            looks = self._subscriptions.look()
            self._subscriptions.note(lambda log: log.events(self.relations, events))
        except BaseException as error:
            self._subscriptions.take_back(noted)
            self._refuse(before, error, None if done else self._culprit(every, error, given))
        self._is_in(events)
        if looks:
            self._subscriptions.publish(looks)

    def _is_in(self, events: list[Event]) -> None:
        self.keys.commit()
        if self.unstored:
            self._came |= self.unstored & {name for name, _, _ in events}

    def _culprit(self, every: list[Numbered], error: BaseException, given: Given) -> Culprit | None:
        """The first of many rows that is refused on its own, with no others around."""
        if not isinstance(error, NUMBERS) or self.relations[every[0][0][0]].static:
            return None
        static = {name: self.engine.table(name) for name, relation in self.relations.items() if relation.static}
        alone = PythonEngine(self.program, static)
        for (name, row, times), number in every:
            try:
                self._apply(alone, (name, row, abs(times)))
            except NUMBERS:
                return self.relations[name].of or name, number, given(number)
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
        self._go_back({name: {row: n for row, n in rows.items() if n} for name, rows in tables.items()})
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


def finite_row(relation: Relation, cells: Row, number: int) -> Row:
    """Cells as they are, unless a static table cannot have them."""
    for column, cell in zip(relation.columns, cells if relation.static else (), strict=False):
        if is_wild(cell):
            raise DataError(NOT_STATIC, relation=relation.name, row=number, column=column.name, value=cell)
    return cells


def rows_of(data: Any, relation: Relation) -> list[Any]:
    """The rows of whatever a user calls rows."""
    rows = [data] if is_one_row(data, relation) else arrow.rows(data, relation.name) if arrow.is_arrow(data) else data
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DataError(f"{rows!r} is neither a row nor rows", relation=relation.name, value=rows)
    return list(rows)
