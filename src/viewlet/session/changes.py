"""Who wants to know what changes in which view, and what to tell them."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from viewlet.rows.ledger import Ledger

Row = tuple[Any, ...]
Change = tuple[int, Row]  # weight (how often the row came, or went if negative) and row
Callback = Callable[[Change], object]
Feeds = tuple[Any, ...]  # of the engine
Look = tuple[str, list[Change]]  # a view, and what an update changed in it
LOG = logging.getLogger("viewlet")


class Feed(NamedTuple):
    """Where the changes go that somebody iterates over; machine code puts them there itself (runtime/feeds.hpp)."""

    waiting: deque[Change]
    extend: Callable[[Iterable[Change]], object]  # of what waits
    sleepers: deque[Any]
    wake: Callable[[], None]  # those who sleep until a change comes
    most: int  # changes that may wait


@dataclass(eq=False)  # two with the same callback are two
class Subscription:
    view: str
    callback: Callable[[Any], object]
    gone: Callable[[], None] | None  # is called when the view goes, or the database is closed
    feed: Feed | None = None  # then the callback is told all changes of an update at once, else one change
    ended: bool = False


class Told(Protocol):
    """What subscriptions ask of the database."""

    def _weights(self, view: str) -> Counter[Row]:
        """The rows that a view has now, and how often each is there."""

    def _tells(self, view: str | None = None) -> bool:
        """Whether the engine of this moment knows what changes in a view, or in any."""

    def _changed(self, views: tuple[str, ...]) -> list[Look]:
        """What changed in such views since this was asked last. Of others nothing is asked for any more."""

    def _all_told(self) -> None:
        """Nothing that changed until now is asked for any more."""

    def _feeds(self, pending: Collection[object], takers: Mapping[str, tuple[Feed, ...]]) -> Feeds | None:
        """How the engine hands changes over by itself, while nothing is pending; None if it does not."""


class Subscriptions:
    """Who must hear of an update: the log of a durable database, and then those who listen to a view.

    An engine that knows what changed in a view is asked for that. Else the rows before and after are compared. Views
    that nobody listens to cost nothing.
    """

    def __init__(self, database: Told | None) -> None:
        """None: nobody will ever listen."""
        self._given = database
        self.anybody = False
        """A log, somebody who listens, or an engine that takes notes: each update is looked at.

        A single insert asks this and the next, so they are attributes and no calls.
        """
        self.feeds: Feeds | None = None
        """Where only such listen who iterate over changes, and the engine hands them over by itself: how it does."""
        self.compares = False
        """A log, or a view of which all rows are compared: each update is looked at from before it."""
        self.listening: dict[str, list[Subscription]] = {}  # by view
        self._rows: dict[str, Counter[Row]] = {}  # of the views whose rows are compared
        self._rows_after: dict[str, Counter[Row]] = {}  # the update that is looked at; they count when it is published
        self._told: tuple[str, ...] = ()  # the others that somebody listens to
        self._takes_notes = False
        self._waiting: deque[tuple[Subscription, Change | list[Change]]] = deque()
        self._telling = Lock()
        self.log: Ledger | None = None

    # -- the log -------------------------------------------------------------------------------------------------------

    def tell_first(self, log: Ledger | None) -> None:
        """The log of a durable database, from now on."""
        self.log = log
        self._count()

    def _count(self) -> None:
        self.anybody = bool(self.listening) or self.log is not None or self._takes_notes
        self.compares = self.log is not None or bool(self._rows)
        self._told = tuple(view for view in self.listening if view not in self._rows)
        takers = {view: tuple(s.feed for s in some if s.feed) for view, some in self.listening.items()}
        fed = not self.compares and all(len(takers[view]) == len(some) for view, some in self.listening.items())
        self.feeds = self._database._feeds(self._waiting, takers) if fed and takers else None

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

    @property
    def _database(self) -> Told:
        assert self._given is not None
        return self._given

    def look(self) -> list[Look]:
        """What an update changed in the views that somebody listens to, for :meth:`publish`."""
        if self._told:
            looks = self._database._changed(self._told)
        else:
            looks = []
            self.overlook()
        return [*looks, *self._compared()] if self._rows else looks

    def _compared(self) -> Iterator[Look]:
        self._rows_after.clear()
        for view, before in self._rows.items():
            after = self._rows_after[view] = self._database._weights(view)
            yield view, differences(before, after)

    def overlook(self) -> None:
        """Nobody is told of what changed until now: nobody listens to it, or the update was undone."""
        if self._takes_notes:
            self._database._all_told()

    def look_back(self, views: Collection[str]) -> None:
        """Before an engine comes that does not tell what changes in them: the rows of now, to be compared with."""
        for view in (self.listening.keys() & views) - self._rows.keys():
            self._rows[view] = self._database._weights(view)
        self._count()

    def add(
        self,
        view: str,
        callback: Callable[[Any], object],
        gone: Callable[[], None] | None = None,
        feed: Feed | None = None,
    ) -> Callable[[], None]:
        """Tell ``callback`` of every change from now on, once :meth:`settle` was called; what it returns ends that."""
        subscription = Subscription(view, callback, gone, feed)
        self.listening.setdefault(view, []).append(subscription)
        self._count()
        return lambda: self._end(subscription)

    def _end(self, subscription: Subscription) -> None:
        """Also for what it has not been told yet."""
        if subscription.ended:
            return
        subscription.ended, view = True, subscription.view
        self.listening[view].remove(subscription)
        if not self.listening[view]:
            del self.listening[view]
            self._rows.pop(view, None)
        self._count()

    def keep(self, views: Collection[str]) -> None:
        """There are only these views from now on: the others have nothing more to tell."""
        for view in [view for view in self.listening if view not in views]:
            for subscription in list(self.listening[view]):
                self._end(subscription)
                if subscription.gone is not None:
                    subscription.gone()

    def settle(self) -> None:
        """Another engine may know more, or less: the rows of those views are kept whose changes it does not tell."""
        for view in self.listening:
            if self._database._tells(view):
                self._rows.pop(view, None)
            elif view not in self._rows:
                self._rows[view] = self._database._weights(view)
        self._takes_notes = self._database._tells()
        self._count()

    def publish(self, looks: Iterable[Look]) -> None:
        """The update is in: note what its listeners are to be told."""
        for view, changes in looks:
            one_by_one = []
            for subscription in self.listening[view]:
                if subscription.feed is not None:
                    self._waiting.append((subscription, changes))
                else:
                    one_by_one.append(subscription)
            if one_by_one:
                self._waiting.extend((subscription, change) for change in changes for subscription in one_by_one)
        if self._rows:
            self._rows.update(self._rows_after)

    def tell(self) -> None:
        """Tell every listener, outside the turn of the update: a callback may use the database like any other code.

        A callback that updates the database itself is told of that after all of this. While one thread tells, it tells
        what others have published, too.
        """
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                self._tell()
            except BaseException:  # Ctrl-C or an exit: the others hear first; another one is not kept waiting
                self._tell()
                raise
            finally:
                self._telling.release()

    def _tell(self) -> None:
        """The updates are in. So a callback that raises is none of their business, nor of the other listeners'."""
        while self._waiting:
            subscription, what = self._waiting[0]
            try:
                if not subscription.ended:
                    subscription.callback(what)
            except Exception:
                LOG.exception("a subscriber of view %s raised; the update is in, others were told", subscription.view)
            finally:
                self._waiting.popleft()  # now: until then nothing that changed later may overtake it


def differences(before: Counter[Row], after: Counter[Row]) -> list[Change]:
    """What went, then what came: a group whose value changed reads (-1, old), (+1, new)."""
    went = [(after[row] - n, row) for row, n in before.items() if after[row] < n]
    came = [(n - before[row], row) for row, n in after.items() if before[row] < n]
    return went + came
