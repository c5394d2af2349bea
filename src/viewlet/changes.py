"""Who wants to know what changes in which view, and what to tell them."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewlet.ledger import Ledger

Row = tuple[Any, ...]
Change = tuple[int, Row]  # weight (how often the row came, or went if negative) and row
Callback = Callable[[Change], object]
LOG = logging.getLogger("viewlet")


@dataclass(eq=False)  # two with the same callback are two
class Subscription:
    view: str
    callback: Callback
    ended: bool = False


class Subscriptions:
    """Who must hear of an update: the log of a durable database, and then those who listen to a view.

    Compares a view's rows before and after an update, for views that somebody listens to and no others.
    """

    def __init__(self, weights: Callable[[str], Counter[Row]]) -> None:
        """``weights`` gives the rows that a view has now, and how often each is there."""
        self._weights = weights
        self.anybody = False
        """A log, or somebody who listens. A single insert asks, so it is an attribute and no call."""
        self._listening: dict[str, list[Subscription]] = {}  # by view
        self._rows: dict[str, Counter[Row]] = {}
        self._waiting: deque[tuple[Subscription, Change]] = deque()
        self.teller: int | None = None
        """The thread that calls back now."""
        self.log: Ledger | None = None

    # -- the log -------------------------------------------------------------------------------------------------------

    def tell_first(self, log: Ledger | None) -> None:
        """The log of a durable database, from now on."""
        self.log = log
        self._count()

    def _count(self) -> None:
        self.anybody = bool(self._listening) or self.log is not None

    @property
    def noted(self) -> int:
        """How far the log goes."""
        return 0 if self.log is None else self.log.size

    def note(self, tell: Callable[[Ledger], None]) -> None:
        """An update that is done, before anybody else hears of it. If this raises, it must be undone."""
        if self.log is not None:
            tell(self.log)

    def take_back(self, noted: int) -> None:
        """What was noted since is undone."""
        if self.log is not None:
            self.log.take_back(noted)

    # -- those who listen ----------------------------------------------------------------------------------------------

    def look(self) -> dict[str, Counter[Row]]:
        """The rows of the views that somebody listens to, for :meth:`publish`."""
        return {view: self._weights(view) for view in self._listening}

    def add(self, view: str, callback: Callback) -> Callable[[], None]:
        """Tell ``callback`` of every change from now on; returns a function that ends it."""
        if view not in self._rows:
            self._rows[view] = self._weights(view)
        subscription = Subscription(view, callback)
        self._listening.setdefault(view, []).append(subscription)
        self._count()
        return lambda: self._end(subscription)

    def _end(self, subscription: Subscription) -> None:
        """Also for what it has not been told yet."""
        if subscription.ended:
            return
        subscription.ended, view = True, subscription.view
        self._listening[view].remove(subscription)
        if not self._listening[view]:
            del self._listening[view], self._rows[view]
        self._count()

    def keep(self, views: Collection[str]) -> None:
        """There are only these views from now on: the others have nothing more to tell."""
        for view in [view for view in self._listening if view not in views]:
            for subscription in list(self._listening[view]):
                self._end(subscription)

    def publish(self, rows: Mapping[str, Counter[Row]]) -> None:
        """Tell every listener. A callback that updates the database itself is told of that after all of this.

        The update is in. So a callback that raises is none of its caller's business, nor of the other listeners'.
        """
        for view, after in rows.items():
            for change in differences(self._rows[view], after):
                self._waiting.extend((subscription, change) for subscription in self._listening[view])
            self._rows[view] = after
        if self.teller is not None:
            return
        self.teller = get_ident()
        try:
            self._tell()
        except BaseException:  # Ctrl-C or an exit: the others hear first; another one is not kept waiting
            self._tell()
            raise
        finally:
            self.teller = None

    def _tell(self) -> None:
        while self._waiting:
            subscription, change = self._waiting.popleft()
            if subscription.ended:
                continue
            try:
                subscription.callback(change)
            except Exception:
                LOG.exception("a subscriber of view %s raised; the update is in, others were told", subscription.view)


def differences(before: Counter[Row], after: Counter[Row]) -> list[Change]:
    """What went, then what came: a group whose value changed reads (-1, old), (+1, new)."""
    went = [(after[row] - n, row) for row, n in before.items() if after[row] < n]
    came = [(n - before[row], row) for row, n in after.items() if before[row] < n]
    return went + came


class Changes:
    """An iterator of ``(weight, row)``, made by :meth:`View.changes`.

    It stops when no change is waiting, and goes on when it is iterated again. ``close()`` ends it.
    """

    def __init__(self, subscribe: Callable[[Callback], Callable[[], None]]) -> None:
        self._waiting: deque[Change] = deque()
        self.close = subscribe(self._waiting.append)

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()
