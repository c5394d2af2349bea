"""The part of a database that rows go into, and that others listen to: who is told what changed."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from viewlet.compiler.script import compile_script
from viewlet.compiler.strategy import StrategyName
from viewlet.database.inventory import Inventory
from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.engines.native.engine import NativeEngine
from viewlet.engines.native.module import REPLACES, Guard, Way
from viewlet.errors import Error, refusing_depth
from viewlet.program.trigger import Program, Result
from viewlet.rows import arrow
from viewlet.rows.boundary import WildError
from viewlet.session.changes import Change, Feed, Feeds, Look, Row
from viewlet.session.native import NativeSession
from viewlet.session.session import Session
from viewlet.session.threads import ThreadsSession
from viewlet.session.tiers import WORTH_HANDING_OVER, warm
from viewlet.sql.source import before_the_next
from viewlet.threads.engine import Machine

WORTH_WAITING = 100_000  # rows that take generated Python about as long as a compiler run


class Listening(Inventory):
    """The native program tells what changed. It is compiled for that when the first listener comes."""

    _strategy: StrategyName

    @property
    @abstractmethod
    def _running(self) -> Session: ...
    @abstractmethod
    def _compile_natively(self) -> None: ...

    def subscribe(
        self, view: str, callback: Callable[[Change], object], gone: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """Call back with each ``(weight, row)`` by which a view changes; see :meth:`View.subscribe`."""
        if not callable(callback) or not (gone is None or callable(gone)):
            wrong = gone if callable(callback) else callback
            raise Error(f"subscribe takes functions, the first to call with each change, not {wrong!r}")
        self._warm_listening()
        with self._turn.reading():
            return self._subscribe(view, callback, gone)

    def _watched_in(self, program: Program) -> Watched:
        """Where somebody listens to one view, the program tells the changes of all: the next needs no other one."""
        return Watched(tuple(r.name for r in program.results)) if self._subscriptions.listening else UNWATCHED

    def _warm(self, script: str) -> None:
        """The compiler's work for a large database, while others go on; what is wrong with the script is told later."""
        engine = self._large() if self._turn.free else None  # a second writer is refused, and does not wait
        with suppress(Error, ValueError, ArithmeticError), refusing_depth():
            if engine is None or self._translation.changes(script) is not None:
                return
            before = before_the_next(self._translation.script.source)
            translation = self._translation.followed(before + script)
            if not translation.steps:
                program = compile_script(translation.script, self._strategy)
                warm(program, self._watched_in(program), engine)

    def _warm_listening(self) -> None:
        """The program that tells what changes, before anybody waits for it."""
        engine = self._large()
        if engine is not None and not engine.watched.results:
            program = self.program
            warm(program, Watched(tuple(result.name for result in program.results)), engine)

    def _large(self) -> NativeEngine | None:
        """The native engine, if it has so many rows that a call waits for the compiler instead of computing again."""
        with self._turn.reading():
            engine = self._running.engine
            return engine if isinstance(engine, NativeEngine) and engine.rows() >= WORTH_HANDING_OVER else None

    def _subscribe(
        self,
        view: str,
        callback: Callable[[Any], object],
        gone: Callable[[], None] | None = None,
        feed: Feed | None = None,
    ) -> Callable[[], None]:
        self._result(self.program.results, view)
        end = self._subscriptions.add(view, callback, gone, feed)
        try:
            self._listen()
        except BaseException:
            end()
            raise

        def ended() -> None:
            with self._turn.reading():
                end()
                if self._session is not None:
                    self._compile_natively()
                    self._subscriptions.settle()

        return ended

    def _listen(self) -> None:
        """The native program for those who listen now. Rows by the thousand are worth waiting for it."""
        self._compile_natively()
        session = self._running
        many = isinstance(session.engine, Machine) and session.engine.rows() >= WORTH_HANDING_OVER
        if self._build is not None and many:
            self._build.wait()
        self._fresh()
        self._subscriptions.settle()

    def _weights(self, view: str) -> Counter[Row]:
        return self.view(view)._weights()

    def _tells(self, view: str | None = None) -> bool:
        engine = self._running.engine
        if not isinstance(engine, Machine):
            return False
        return bool(engine.watched.results) if view is None else engine.watches(view)

    def _changed(self, views: tuple[str, ...]) -> list[Look]:
        session = self._running
        assert isinstance(session, (NativeSession, ThreadsSession))
        return session.changes(views)

    def _all_told(self) -> None:
        engine = self._running.engine
        if isinstance(engine, Machine) and engine.watched.results:
            engine.all_told()

    def _feeds(self, pending: Collection[object], takers: Mapping[str, tuple[Feed, ...]]) -> Feeds | None:
        session = self._session
        return session.feeds(pending, takers) if isinstance(session, NativeSession) else None

    def _result(self, results: tuple[Result, ...], name: str) -> Result:
        for result in results:
            if result.name == name:
                return result
        if name in self._translation.catalog.views:
            hint = "a plain view, which only other views read: write CREATE MATERIALIZED VIEW to read it"
            raise Error(f"{name} is {hint}")
        there = ", ".join(result.name for result in results) or "none"
        raise Error(f"there is no view {name}; there are: {there}{self._elsewhere(name)}")


class Updating(Listening):
    """Single rows go straight to machine code by one call. It falls back on the way of all others."""

    _updating: bool
    _schemas: arrow.Schemas

    def insert(self, relation: str, rows: Any) -> None:
        """Insert one row or many into a stream or table. The views over it are fresh when this returns.

        One row is a tuple in the order of the columns, or a dict. Many rows are a list of those, an Arrow table, batch
        or reader, a pandas or polars frame, or anything with ``__arrow_c_stream__``. A row that does not fit raises
        :class:`DataError`, and no row of the call is inserted.
        """
        way = self._inserts.get(relation) if type(rows) is tuple else None
        if way is None:
            self._update(relation, 1, rows)
        else:
            way(rows)

    def delete(self, relation: str, rows: Any) -> None:
        """Delete one row or many, given in the same forms as to :meth:`insert`.

        A row that is not there raises a :class:`DataError` that names it, and no row of the call is deleted. Of equal
        rows one goes.
        """
        way = self._deletes.get(relation) if type(rows) is tuple else None
        if way is None:
            self._update(relation, -1, rows)
        else:
            way(rows)

    def upsert(self, relation: str, rows: Any) -> None:
        """Insert rows, given as to :meth:`insert`, in place of those that have the same PRIMARY KEY.

        Of several rows with one key the last one stays. All of it is one update: the views never show a key without
        its row. A stream or table without a PRIMARY KEY raises :class:`DataError`.
        """
        way = self._upserts.get(relation) if type(rows) is tuple else None
        if way is None:
            self._upsert(relation, rows)
        else:
            way(rows)

    def apply(self, events: Any) -> None:
        """Apply an ordered mix of inserts and deletes, all or none.

        ``events`` is an iterable of ``(op, relation, row)``. ``op`` is ``"+"``, ``"-"``, or an integer that says how
        often the row comes (negative: goes). It may also be one Arrow table with the columns ``op``, ``relation`` and a
        struct column for each relation.
        """
        self._do(lambda session, events: session.apply(events), arrow.settled(events, "events"))

    def _update(self, relation: str, times: int, rows: Any) -> None:
        """Insert rows, or delete them, in any form."""
        if self._straight_in is not self._session:
            self._go_straight()
        self._do(lambda session, rows: session.change(relation, rows, times), self._settled(relation, rows))

    def _upsert(self, relation: str, rows: Any) -> None:
        if self._straight_in is not self._session:
            self._go_straight()
        self._do(lambda session, rows: session.upsert(relation, rows), self._settled(relation, rows))

    def _settled(self, relation: str, rows: Any) -> Any:
        """Before the turn begins: code that makes the rows may itself ask the database."""
        if type(rows) is tuple:
            return rows
        if type(rows) is pa.RecordBatch and self._schemas.know(self._running.relation(relation), rows.schema):
            return rows
        data = arrow.settled(rows, relation)
        is_columns = isinstance(data, (pa.Table, pa.RecordBatch))
        return self._schemas.fitted(data, self._running.relation(relation)) if is_columns else data

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _do(self, update: Callable[[Session, Any], None], data: Any) -> None:
        self._turn.write(self._meanwhile, update, data)

    def _meanwhile(self, update: Callable[[Session, Any], None], data: Any) -> None:
        """While the native program is compiled, an update that is large, or has NaN or infinities, waits for it."""
        build = self._build
        if build is None:
            return update(self._running, data)
        if _length(data) >= WORTH_WAITING:
            build.wait()
        try:
            self._alone(update, self._fresh(), data)
        except WildError:
            build.wait()
            if not self._fresh().engine.takes_wild:
                raise
            self._alone(update, self._running, data)

    def _alone(self, update: Callable[[Session, Any], None], session: Session, data: Any) -> None:
        """The engine stays the same for the whole of an update."""
        self._updating = True
        try:
            update(session, data)
        finally:
            self._updating = False

    # -- single rows ---------------------------------------------------------------------------------------------------

    def _go_straight(self) -> None:
        """The calls for single rows of the session of now, for the database and its handles."""
        session = self._session
        self._let_go()
        self._straight_in = session
        if isinstance(session, NativeSession):
            told: Guard = (self._subscriptions, "compares", False)
            guards = ((self, "_session", session), (self, "_build", None), told)
            self._inserts, self._deletes, self._upserts = (
                session.straight(times, guards, self._turn, self._otherwise(times)) for times in (1, -1, REPLACES)
            )

    def _otherwise(self, times: int) -> Callable[[str], Way]:
        if times == REPLACES:
            return lambda name: partial(self._upsert, name)
        return lambda name: partial(self._update, name, times)

    def _let_go(self) -> None:
        """Of the session before: nothing may keep its rows."""
        self._straight_in, self._inserts, self._deletes, self._upserts = None, {}, {}, {}
        for handle in self._handles:
            handle._let_go()
        self._handles.clear()


def _length(data: Any) -> int:
    return len(data) if hasattr(data, "__len__") else 0
