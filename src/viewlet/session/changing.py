"""The changes of a view as a user iterates over them, with ``for`` or with ``async for``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress

from viewlet.errors import Error
from viewlet.rows.boundary import at_least
from viewlet.session.changes import Change, Feed

MOST_WAITING = 1_000_000
Subscribe = Callable[[Callable[[list[Change]], object], Callable[[], None], Feed], Callable[[], None]]


class Changes(Iterator[Change], AsyncIterator[Change]):
    """An iterator of ``(weight, row)``, made by :meth:`View.changes`.

    ``for`` stops when no change is waiting, and goes on when it is used again. ``async for`` waits for the next change.
    It stops after ``close()``, when the view is dropped, and when the database is closed. A reader that is too slow is
    told: the changes that wait are bounded by ``most``, and once there are more, they are dropped and the next step
    raises an :class:`Error`.
    """

    def __init__(self, view: str, most: int) -> None:
        self._view, self._most = view, at_least(1, most, "most")
        self._waiting: deque[Change] = deque()
        self._sleepers: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._closed = self._lost = False
        self._end: Callable[[], None] | None = None

    def _start(self, snapshot: Iterable[Change], subscribe: Subscribe) -> None:
        """Begin with the rows that are there, and go on with each change."""
        self._waiting.extend(snapshot)
        feed = Feed(self._waiting, self._waiting.extend, self._sleepers, self._wake, self._most)
        self._end = subscribe(self._put, self._gone, feed)

    def close(self) -> None:
        """End it. What waits can still be read."""
        if self._end is not None:
            self._end()
        self._gone()

    def _gone(self) -> None:
        """No change will come any more."""
        self._closed = True
        self._wake()

    def _put(self, changes: list[Change]) -> None:
        """All changes of an update."""
        if len(self._waiting) + len(changes) > self._most:
            self._lost = True
            self._waiting.clear()
            self.close()
            return
        self._waiting.extend(changes)
        if self._sleepers:
            self._wake()

    def _wake(self) -> None:
        while self._sleepers:
            loop, sleeper = self._sleepers.popleft()
            with suppress(RuntimeError):  # a loop that is closed
                loop.call_soon_threadsafe(_done, sleeper)

    def __iter__(self) -> Iterator[Change]:
        """Faster than a call for each change."""
        waiting = self._waiting
        while waiting:
            yield waiting.popleft()
        if self._lost:
            self._check()

    def __next__(self) -> Change:
        self._check()
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            self._check()
            if self._closed:
                raise StopAsyncIteration
            loop = asyncio.get_running_loop()
            sleeper = loop.create_future()
            self._sleepers.append((loop, sleeper))
            if self._waiting or self._closed:  # since it was looked at, and so without waking anybody
                continue
            await sleeper
        return self._waiting.popleft()

    def _check(self) -> None:
        if self._lost:
            raise Error(
                f"more than {self._most:,} changes of view {self._view} were waiting, so they were dropped: start "
                "again with view.changes(snapshot=True), and read more often or let more of them wait (most=…)"
            )


def _done(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
