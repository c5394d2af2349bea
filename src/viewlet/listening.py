"""The part of a database that others listen to: who is told what changed, and by which program."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable

from viewlet.changes import Change, Row
from viewlet.engines.native.engine import NativeEngine
from viewlet.errors import Error
from viewlet.inventory import Inventory
from viewlet.program.trigger import Result
from viewlet.session import NativeSession, Session
from viewlet.tiers import WORTH_HANDING_OVER


class Listening(Inventory):
    """The native program tells what changed. It is compiled for that when the first listener comes."""

    @property
    @abstractmethod
    def _running(self) -> Session: ...
    @abstractmethod
    def _compile_natively(self) -> None: ...

    def subscribe(self, view: str, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Call back with each ``(weight, row)`` by which a view changes; see :meth:`View.subscribe`."""
        with self._turn.reading():
            return self._subscribe(view, callback)

    def _subscribe(
        self, view: str, callback: Callable[[Change], object], gone: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        self._result(self.program.results, view)
        end = self._subscriptions.add(view, callback, gone)
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
        many = isinstance(session, NativeSession) and session.engine.rows() >= WORTH_HANDING_OVER
        if self._build is not None and many:
            self._build.wait()
        self._fresh()
        self._subscriptions.settle()

    def _weights(self, view: str) -> Counter[Row]:
        return self.view(view)._weights()

    def _tells(self, view: str | None = None) -> bool:
        engine = self._running.engine
        if not isinstance(engine, NativeEngine):
            return False
        return bool(engine.watched.results) if view is None else engine.watches(view)

    def _changed(self, view: str) -> list[Change]:
        session = self._running
        assert isinstance(session, NativeSession)
        return session.changes(view)

    def _all_told(self) -> None:
        engine = self._running.engine
        if isinstance(engine, NativeEngine) and engine.watched.results:
            engine.all_told()

    def _result(self, results: tuple[Result, ...], name: str) -> Result:
        for result in results:
            if result.name == name:
                return result
        if name in self._translation.catalog.views:
            hint = "a plain view, which only other views read: write CREATE MATERIALIZED VIEW to read it"
            raise Error(f"{name} is {hint}")
        there = ", ".join(result.name for result in results) or "none"
        raise Error(f"there is no view {name}; there are: {there}")
