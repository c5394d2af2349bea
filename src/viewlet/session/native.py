"""A session on the native engine: rows go straight to the program, which checks them itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from viewlet.engines.base import Engine
from viewlet.engines.native.bridge import ArrowRows, Cells
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.engine import NativeEngine
from viewlet.engines.native.module import REPLACES, Guard, Point, Report, Way
from viewlet.engines.native.spoiled import KeyTakenError, SpoiledError
from viewlet.errors import Error
from viewlet.program.encoding import Row
from viewlet.program.trigger import Program
from viewlet.rows import arrow
from viewlet.rows.boundary import is_one_row, to_key
from viewlet.rows.elements import with_elements
from viewlet.rows.keys import Event, Given
from viewlet.rows.ledger import Ledger, opposite
from viewlet.schema import Relation
from viewlet.session.changes import Feed, Feeds, Look, Subscriptions
from viewlet.session.session import Session, Tables, rows_of
from viewlet.session.told import Teller
from viewlet.session.turn import Turn

Ways = Mapping[str, Way]  # of a single row, by stream


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
        self._teller: Teller | None = None
        plain = (r.name for r in relations if not r.static and not r.derived and not r.is_hidden)
        self.keys.find([r for r in relations if r.name in self.engine.keyed], self.engine.holder)
        handled = {*self._elements, *(r.name for r in relations if r.name in self._defaults)}
        self._streams = frozenset(name for name in plain if name not in handled)

    def change(self, name: str, data: Any, times: int) -> None:
        data = self._widened(name, data)
        with suppress(KeyTakenError):
            return self._change(name, data, times)
        self._change_checked(name, data, times)  # which says what is taken

    def _widened(self, name: str, data: Any) -> Any:
        """With all columns."""
        data = self._defaults.filled(name, data)
        return self.doors[name].widened(data) if name in self.doors else data

    def _change(self, name: str, data: Any, times: int) -> None:
        if self.relation(name).static or name in self._elements:
            self._change_checked(name, data, times)
        elif is_one_row(data, self.relations[name]):
            self._change_one(name, data, times)
        elif not arrow.is_arrow(data) or not self._change_batch(name, data, times):
            self._change_many(name, rows_of(data, self.relations[name]), times)

    def straight(self, times: int, guards: Sequence[Guard], turn: Turn, otherwise: Callable[[str], Way]) -> Ways:
        """By stream: the call for a single row, where nothing is done to rows before they reach the program.

        Python takes back an upsert that somebody listens to and that cannot be shown.
        """
        told, state = self._subscriptions, self.engine.state
        if times == REPLACES:
            guards = (*guards, (told, "anybody", False))
        listening: tuple[Guard, Guard] = (told, "anybody", True), (told, "feeds", None)
        after = (turn.line, turn.call_next, listening, told.tell)
        return {
            name: state.straight(
                name, times, guards, turn.free, otherwise(name), partial(self._heed, name, times), *after
            )
            for name in self._streams
            if times != REPLACES or (name in self.engine.keyed and self.relations[name].key)
        }

    def _heed(self, name: str, times: int, report: Report, row: object) -> None:
        """What such a call reported, and what those who listen are to be told."""
        if report is not None:
            try:
                self.engine.state.heed_one(report, name, times, row)
            except SpoiledError as error:
                self.engine.recover(error)
        subscriptions = self._subscriptions
        if not subscriptions.anybody:
            return
        try:
            looks = subscriptions.look()
        except BaseException:  # a row that somebody listens to cannot be shown
            self.engine.state.one(name, -times, row)
            subscriptions.overlook()
            raise
        subscriptions.publish(looks)

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

    def upsert(self, name: str, data: Any) -> None:
        if name not in self.engine.keyed or name in self._elements or not self.relations[name].key:
            return super().upsert(name, data)
        given = self._widened(name, data)
        rows = arrow.batch(given, name) if arrow.is_arrow(given) else rows_of(given, self.relations[name])
        with suppress(KeyTakenError):
            if self._upsert(name, rows):
                return None
        super().upsert(name, data)

    def _upsert(self, name: str, rows: Any) -> bool:
        """False where the rows have columns that only Python can read."""
        state, relation, shown = self.engine.state, self.relations[name], list[Any]()

        def change() -> bool:
            done = state.upsert(name, rows, shown=self._subscriptions.anybody)
            shown.append(done)
            return done is not False

        def undo() -> None:
            went, came = shown[0]
            state.arrow_rows(name, -1, came)
            state.arrow_rows(name, 1, went)

        return bool(self._do(change, undo, lambda log: log.replaced(relation, *shown[0])))

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
        if self._elements:
            super().apply(events)
            return None
        given = events if isinstance(events, (list, tuple)) or arrow.is_arrow(events) else self._listed(events)
        with suppress(KeyTakenError):
            return self._apply_events(given)
        super().apply(given)  # which says what is taken

    def _listed(self, events: Any) -> Any:
        return list(events) if isinstance(events, Iterable) else events

    def _apply_events(self, events: Any) -> None:
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
                lambda: state.events([(opposite(op), name, row) for op, name, row in given[::-1]]),
                lambda log: log.mixed(self.relations, given),
            )
            is not None
        ):
            super().apply(given)  # a static table, or what is no event: Python knows what to say

    def _run(self, events: list[Event], given: Given) -> None:
        if self._undoes(events):
            return self._run_as_one(events)
        self._point = self.engine.state.point()
        super()._run(events, given)
        self._point = None

    def _run_bulk(self, relation: Relation, events: list[Event], given: Given) -> None:
        if self._undoes(events):
            return self._run_as_one(events)
        self._point = self.engine.state.point()
        super()._run_bulk(relation, events, given)
        self._point = None

    def _undoes(self, events: list[Event]) -> bool:
        """The program undoes a batch as a whole. Tables would not do for going back event by event."""
        return bool(self.unstored) and not any(self.relations[name].static for name, _, _ in events)

    def _run_as_one(self, events: list[Event]) -> None:
        every = with_elements(self._elements, events)
        cells = [(times, name, Cells(row)) for (name, row, times), _ in every if times]
        try:
            self._do(
                lambda: self.engine.apply_events(cells),
                lambda: self.engine.apply_events([(-times, name, row) for times, name, row in cells[::-1]]),
                lambda log: log.events(self.relations, events),
            )
        except BaseException:
            self.keys.forget()
            raise
        self.keys.commit()

    @property
    def came(self) -> frozenset[str]:
        if not self.unstored:
            return self._came
        return frozenset(name for name in self.engine.came if not self.relations[name].of)

    def follow(self, before: Session) -> None:
        super().follow(before)
        self.engine.follow(before.came)

    def _go_back(self, tables: Tables) -> None:
        self.engine.go_back(tables, self._point)

    def changes(self, views: tuple[str, ...]) -> list[Look]:
        """What changed in views that the program watches, since this was asked last. The others tell nothing more."""
        teller = self._teller
        if teller is None or teller.views is not views:
            teller = self._teller = Teller(self.engine, self.program, views)
        looks = teller.changes()
        if len(views) < len(self.engine.watched.results):
            self.engine.all_told()
        return looks

    def feeds(self, pending: Collection[object], takers: Mapping[str, tuple[Feed, ...]]) -> Feeds | None:
        """How the program itself hands changes to those who iterate over them; None if it does not know all views."""
        if not all(map(self.engine.watches, takers)):
            return None
        return Teller(self.engine, self.program, tuple(takers)).feeds(pending, takers)

    def _look(self) -> list[Look]:
        """What is to be published of an update: nothing, where the program has handed it over."""
        feeds = self._subscriptions.feeds
        return [] if feeds is not None and self.engine.state.feed(feeds) else self._subscriptions.look()

    def _take_back(self) -> None:
        """An update was undone; who was told of it already is told of that, too."""
        looks = list[Look]()
        if self._subscriptions.feeds is not None:
            with suppress(Error):
                looks = self._look()
        self._subscriptions.overlook()
        self._subscriptions.publish(looks)

    def _do(self, update: Callable[[], Any], undo: Callable[[], Any], note: Callable[[Ledger], None]) -> Any:
        """All or nothing, also where a view that somebody listens to can no longer be shown, or the disk is full.

        Or where Ctrl-C comes: Python then raises behind the call that took the update.
        """
        state, looks = self.engine.state, list[Look]()
        point, noted, before = state.point(), self._subscriptions.noted, state.updates()
        try:
            done = update()
            if self._subscriptions.anybody:
                looks = self._look()
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
            self._take_back()
            raise
        if looks:
            self._subscriptions.publish(looks)
        return done
