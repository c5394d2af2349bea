"""A session over several cells: rows are checked as in any other, and each goes to its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from viewlet.engines.base import Engine
from viewlet.engines.native.module import Point
from viewlet.program.encoding import Row
from viewlet.program.trigger import Program
from viewlet.rows import arrow
from viewlet.rows.boundary import is_one_row, to_key
from viewlet.rows.elements import with_elements
from viewlet.rows.keys import Event, Given
from viewlet.rows.ledger import Ledger
from viewlet.schema import Relation
from viewlet.session.changes import Change, Look, Subscriptions
from viewlet.session.changes import Row as ChangedRow
from viewlet.session.session import Session, Tables, rows_of
from viewlet.session.told import Teller
from viewlet.threads.engine import ThreadsEngine
from viewlet.threads.spread import CompiledCells
from viewlet.threads.update import Work, arrow_events_work, many_work, mixed_work, rows_work


class ThreadsSession(Session):
    """Each cell finds its own rows in what is given. Rows with keys or derived columns are encoded here, one by one."""

    engine: ThreadsEngine

    def __init__(
        self, compiled: CompiledCells, tables: Tables, subscriptions: Subscriptions, before: Engine | None = None
    ) -> None:
        """``before`` is an engine over the same rows, which go on in the cells; without it there are ``tables``."""
        relations = compiled.program.relations

        def convert(index: int, row: object, number: int) -> Row:
            return to_key(relations[index], row, number)

        def start(program: Program, tables: Tables) -> Engine:
            if isinstance(before, ThreadsEngine) and before.goes_on_as(compiled):
                return ThreadsEngine(compiled, {}, convert, before)
            there = tables if before is None else {r.name: before.table(r.name) for r in relations}
            return ThreadsEngine(compiled, there, convert)

        super().__init__(compiled.program, start, tables, subscriptions)
        del self._start  # it would hold on to the engine before
        self._tellers: dict[str, list[Teller]] = {}
        self._points: list[Point | None] = []  # before the update
        handled = {*self._elements, *self.doors, *(r.name for r in relations if r.name in self._defaults)}
        plain = (r.name for r in relations if not r.static and not r.is_hidden and r.name not in self.keys)
        self._streams = frozenset(name for name in plain if name not in handled)
        self._all_plain = all(r.static or r.is_hidden or r.name in self._streams for r in relations)

    def change(self, name: str, data: Any, times: int) -> None:
        if name not in self._streams:
            super().change(name, data, times)
        elif is_one_row(data, self.relations[name]):
            self._change_many(name, [data], times)
        elif not arrow.is_arrow(data) or not self._change_batch(name, data, times):
            self._change_many(name, rows_of(data, self.relations[name]), times)

    def _change_many(self, name: str, rows: list[Any], times: int) -> None:
        works = self.engine.each(many_work(name, times, rows))
        self._do(works, len(rows), lambda log: log.rows(self.relations[name], times, rows))

    def _change_batch(self, name: str, data: Any, times: int) -> bool:
        """False where the batch has columns that only Python can read."""
        batch = arrow.batch(data, name)
        works = self.engine.each(rows_work(name, times, batch))
        return self._do(works, batch.num_rows, lambda log: log.batch(self.relations[name], times, batch))

    def apply(self, events: Any) -> None:
        given = list(events) if isinstance(events, Iterable) and not arrow.is_arrow(events) else events
        if not self._all_plain or not self._apply_all(given):
            super().apply(given)

    def _apply_all(self, events: Any) -> bool:
        """Events are in the order of the batch in every cell. False where Python must look at them."""
        if isinstance(events, list):
            works = self.engine.each(mixed_work(events))
            return self._do(works, len(events), lambda log: log.mixed(self.relations, events))
        if not arrow.is_arrow(events):
            return False
        batch = arrow.batch(events, "events")
        works = self.engine.each(arrow_events_work(batch))
        return self._do(works, batch.num_rows, lambda log: log.arrow_events(self.relations, batch))

    def _run(self, events: list[Event], given: Given) -> None:
        if not any(self.relations[name].static for name, _, _ in events):
            return self._run_together(events)
        self._points = self.engine.points()
        super()._run(events, given)

    def _run_bulk(self, relation: Relation, events: list[Event], given: Given) -> None:
        if not relation.static:
            return self._run_together(events)
        self._points = self.engine.points()
        super()._run_bulk(relation, events, given)

    def _run_together(self, events: list[Event]) -> None:
        every = [event for event, _ in with_elements(self._elements, events)]
        works = self.engine.works((times, name, row) for name, row, times in every if times)
        try:
            self._do(works, len(every), lambda log: log.events(self.relations, events))
        except BaseException:
            self.keys.forget()
            raise
        self._is_in(events)

    def _go_back(self, tables: Tables) -> None:
        self.engine.go_back(tables, self._points)

    def changes(self, views: tuple[str, ...]) -> list[Look]:
        """What changed in views that the program watches, since this was asked last. The others tell nothing more."""
        looks = [(view, changes) for view in views if (changes := self._changes(view))]
        self.engine.all_told()
        return looks

    def _changes(self, view: str) -> list[Change]:
        """A row may go in one cell and an equal one come in another: then nothing changed."""
        engines, tellers = self.engine.tellers(view), self._tellers.get(view, [])
        if [teller.engine for teller in tellers] != engines:  # the one that sums up may be another one
            tellers = self._tellers[view] = [Teller(engine, self.program, (view,)) for engine in engines]
        parts = [changes for teller in tellers for _, changes in teller.changes()]
        if len(parts) < 2:
            return parts[0] if parts else []
        total: Counter[ChangedRow] = Counter()
        for weight, row in chain.from_iterable(parts):
            total[row] += weight
        return sorted(((weight, row) for row, weight in total.items() if weight), key=lambda change: change[0] > 0)

    def _do(self, works: Mapping[int, Work], rows: int, note: Callable[[Ledger], None]) -> bool:
        """All cells or none, also where a view that somebody listens to cannot be shown, or the disk is full."""
        looks, noted = list[Look](), self._subscriptions.noted
        update = self.engine.update(works, rows)
        try:
            if not update.run():
                return False
            if self._subscriptions.anybody:
                looks = self._subscriptions.look()
                self._subscriptions.note(note)
        except BaseException:
            self._subscriptions.take_back(noted)
            update.undo()
            self._subscriptions.overlook()
            raise
        if looks:
            self._subscriptions.publish(looks)
        return True
