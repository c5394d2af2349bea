"""Who wants to know what changes in which view, and what to tell them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Row = tuple[Any, ...]
Change = tuple[int, Row]  # weight (how often the row came, or went if negative) and row
Callback = Callable[[Change], object]


class Subscriptions:
    """Compares a view's rows before and after an update, for views that somebody listens to and no others."""

    def __init__(self, weights: Callable[[str], Counter[Row]]) -> None:
        """``weights`` gives the rows that a view has now, and how often each is there."""
        self._weights = weights
        self._callbacks: dict[str, list[Callback]] = {}
        self._rows: dict[str, Counter[Row]] = {}
        self._waiting: deque[tuple[Callback, Change]] = deque()
        self._delivering = False

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def look(self) -> dict[str, Counter[Row]]:
        """The rows of the views that somebody listens to, for :meth:`publish`."""
        return {view: self._weights(view) for view in self._callbacks}

    def add(self, view: str, callback: Callback) -> Callable[[], None]:
        """Tell ``callback`` of every change from now on; returns a function that ends it."""
        if view not in self._rows:
            self._rows[view] = self._weights(view)
        callbacks = self._callbacks.setdefault(view, [])
        callbacks.append(callback)

        def end() -> None:
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks and self._callbacks.get(view) is callbacks:
                del self._callbacks[view], self._rows[view]

        return end

    def publish(self, rows: Mapping[str, Counter[Row]]) -> None:
        """Tell every listener. A callback that updates the database itself is told of that after all of this."""
        for view, after in rows.items():
            for change in differences(self._rows[view], after):
                self._waiting.extend((callback, change) for callback in self._callbacks[view])
            self._rows[view] = after
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._waiting:
                callback, change = self._waiting.popleft()
                callback(change)
        finally:
            self._delivering = False


def differences(before: Counter[Row], after: Counter[Row]) -> list[Change]:
    """What went, then what came: a group whose value changed reads (-1, old), (+1, new)."""
    went = [(after[row] - n, row) for row, n in before.items() if after[row] < n]
    came = [(n - before[row], row) for row, n in after.items() if before[row] < n]
    return went + came


class Changes:
    """An iterator that stops where nothing has happened yet and goes on when iterated again; close it when done."""

    def __init__(self, subscribe: Callable[[Callback], Callable[[], None]]) -> None:
        self._waiting: deque[Change] = deque()
        self.close = subscribe(self._waiting.append)

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()
