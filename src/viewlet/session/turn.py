"""One thread at a time is inside a database. Readers wait for their turn; a second writer is refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock, get_ident
from typing import Any, Generic, ParamSpec, TypeVar

from viewlet.errors import Error

TWO_WRITERS = (
    "the database is in use by another thread, which writes; nothing was done. One thread at a time may write, any "
    "number may read: let your writers share a lock, or send their rows to one by a queue"
)
Given = ParamSpec("Given")
Seen = TypeVar("Seen")
OWN_CALL = "the database is in use by the call that this one comes from; nothing was done"


class BusyError(Error):
    """Another thread writes, or this call comes from inside of another one. Nothing was done."""


class Place(Generic[Seen]):
    """A place in line. Who comes only to ``look`` need not come inside: the one who leaves looks for them."""

    def __init__(self, look: Callable[[], Seen] | None) -> None:
        self.look = look
        self.called = Lock()
        self.called.acquire()
        self.has_token = False
        self._seen: list[Seen] = []
        self._failure: Exception | None = None

    def pass_token(self) -> None:
        self.has_token = True
        self.called.release()

    def serve(self, look: Callable[[], Seen]) -> None:
        """Their error is theirs. Ctrl-C is for this thread: the one in line then gets the token, and looks itself."""
        try:
            self._seen.append(look())
        except Exception as failure:
            self._failure = failure
        except BaseException:
            self.pass_token()
            raise
        self.called.release()

    def seen(self) -> Seen:
        if self._failure is not None:
            raise self._failure
        return self._seen[0]


class Turn:
    """Whose turn it is: ``free`` holds one token, or none while somebody is inside.

    ``pop`` takes it and ``append`` gives it back; both are atomic. A single row that goes straight to machine code does
    not even take it: while Python is not asked, no other thread comes in. Readers say that they come before they take
    the token. One that somebody waits for is passed on in line: a writer who never pauses keeps no reader out. The one
    who leaves reads for those in line: to wake their threads, which then wake the writer, takes longer than most reads.
    """

    def __init__(self, afterwards: Callable[[], None]) -> None:
        """``afterwards`` is called when an update is over, outside its turn."""
        self.free: list[None] = [None]
        self.line: deque[Place[Any]] = deque()
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

    def read(self, look: Callable[Given, Seen], *given: Given.args, **named: Given.kwargs) -> Seen:
        """What a reader sees. The one who is inside may be the one who looks, in its own thread."""
        self._readers.append(None)
        try:
            try:
                self.free.pop()
            except IndexError:
                place = self.wait(partial(look, *given, **named))
                if not place.has_token:
                    return place.seen()
            except KeyboardInterrupt:
                self.mend()
                raise
            return self._look(partial(look, *given, **named))
        finally:
            self._readers.pop()

    def _look(self, look: Callable[[], Seen]) -> Seen:
        """With the token, which is given back."""
        try:
            self._thread = get_ident()
            self._visits += 1
            return look()
        finally:
            self._thread = 0
            self.give_back()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For reads of several steps, all in this thread."""
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

    def wait(self, look: Callable[[], Seen] | None = None, *, writes: bool = False) -> Place[Seen]:
        """After a ``pop`` from nothing: wait for the token, or be refused.

        When this returns, the token is taken. With ``look``, the place in line may be served instead.
        """
        if self._thread == get_ident():  # a function that an update calls must not use the database
            raise BusyError(OWN_CALL)
        place = Place(look)
        while writes and not self._readers:
            visits = self._visits
            with suppress(IndexError):
                self.free.pop()  # a reader has left meanwhile
                return place
            if not self._readers and visits == self._visits:
                raise BusyError(TWO_WRITERS)
        self.line.append(place)
        self.call_next()  # the one inside may have left before there was a line
        try:
            place.called.acquire()
        except BaseException:
            self._step_out(place)
            raise
        return place

    def call_next(self) -> None:
        """Serve those in line, or pass the token to the first who must come inside.

        Unless somebody is inside: they see the line when they leave.
        """
        while self.line:
            try:
                self.free.pop()
            except IndexError:
                return
            try:
                place = self.line.popleft()
            except IndexError:  # who was in line has stepped out
                self.free.append(None)
                continue
            if place.look is None:
                place.pass_token()
                return
            self._serve(place, place.look)

    def _serve(self, place: Place[Seen], look: Callable[[], Seen]) -> None:
        """With the token, which is given back, unless the one in line gets it after all."""
        self._thread = get_ident()
        try:
            place.serve(look)
        finally:
            self._thread = 0
            if not place.has_token:
                self.free.append(None)

    def _step_out(self, place: Place[Any]) -> None:
        try:
            self.line.remove(place)
        except ValueError:  # called already
            if place.has_token:
                self.give_back()

    def mend(self) -> None:
        """Ctrl-C came between taking the token and knowing it: where nobody has it, it is given back."""
        if not self.free and not self._thread and not self._readers:
            self.give_back()
