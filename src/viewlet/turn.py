"""One thread at a time is inside a database. Readers wait for their turn; a second writer is refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, get_ident
from typing import ParamSpec

from viewlet.errors import Error

TWO_WRITERS = (
    "the database is in use by another thread, which writes; nothing was done. One thread at a time may write, any "
    "number may read: let your writers share a lock, or send their rows to one by a queue"
)
Given = ParamSpec("Given")
OWN_CALL = "the database is in use by the call that this one comes from; nothing was done"


class BusyError(Error):
    """Another thread writes, or this call comes from inside of another one. Nothing was done."""


class Turn:
    """Whose turn it is: ``free`` holds one token, or none while somebody is inside.

    ``pop`` takes it and ``append`` gives it back; both are atomic. A single row that goes straight to machine code does
    not even take it: while Python is not asked, no other thread comes in. Readers say that they come before they take
    the token. One that somebody waits for is passed on in line: a writer who never pauses keeps no reader out.
    """

    def __init__(self, afterwards: Callable[[], None]) -> None:
        """``afterwards`` is called when an update is over, outside its turn."""
        self.free: list[None] = [None]
        self.line: deque[Lock] = deque()
        self._afterwards = afterwards
        self._readers: list[None] = []  # one for each that is inside or wants to be
        self._visits = 0  # of readers, until now
        self._thread = 0  # that is inside

    # -- taking it -----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """For updates that are not counted in nanoseconds."""
        with self._inside(writes=True):
            yield
        self._afterwards()

    def write(self, update: Callable[Given, None], *given: Given.args, **named: Given.kwargs) -> None:
        """The same for one call, at a third of the price."""
        try:
            self.free.pop()
        except IndexError:
            self.wait(writes=True)
        except KeyboardInterrupt:
            self.mend()
            raise
        try:
            self._thread = get_ident()
            update(*given, **named)
        finally:
            self._thread = 0
            self.give_back()
        self._afterwards()

    @contextmanager
    def reading(self) -> Iterator[None]:
        self._readers.append(None)
        try:
            with self._inside(writes=False):
                self._visits += 1
                yield
        finally:
            self._readers.pop()

    @contextmanager
    def _inside(self, *, writes: bool) -> Iterator[None]:
        try:
            self.free.pop()
        except IndexError:
            self.wait(writes=writes)
        except KeyboardInterrupt:
            self.mend()
            raise
        try:
            self._thread = get_ident()
            yield
        finally:
            self._thread = 0
            self.give_back()

    def give_back(self) -> None:
        self.free.append(None)
        if self.line:
            self.call_next()

    # -- somebody is inside --------------------------------------------------------------------------------------------

    def wait(self, *, writes: bool) -> None:
        """After a ``pop`` from nothing: wait for the token, or be refused. When this returns, the token is taken."""
        if self._thread == get_ident():  # a function that an update calls must not use the database
            raise BusyError(OWN_CALL)
        while writes and not self._readers:
            visits = self._visits
            with suppress(IndexError):
                return self.free.pop()  # a reader has left meanwhile
            if not self._readers and visits == self._visits:
                raise BusyError(TWO_WRITERS)
        mine = Lock()
        mine.acquire()
        self.line.append(mine)
        self.call_next()  # the one inside may have left before there was a line
        try:
            mine.acquire()
        except BaseException:
            self._step_out(mine)
            raise

    def call_next(self) -> None:
        """Pass the token to the first in line, unless somebody is inside: they see the line when they leave."""
        while self.line:
            try:
                self.free.pop()
            except IndexError:
                return None
            with suppress(IndexError):
                return self.line.popleft().release()
            self.free.append(None)

    def _step_out(self, mine: Lock) -> None:
        try:
            self.line.remove(mine)
        except ValueError:  # the token had been passed on already
            self.give_back()

    def mend(self) -> None:
        """Ctrl-C came between taking the token and knowing it: where nobody has it, it is given back."""
        if not self.free and not self._thread and not self._readers:
            self.give_back()
