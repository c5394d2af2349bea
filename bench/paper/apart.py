"""A contestant in a process of its own: whatever becomes of it, the bench goes on.

The process is forked, so it has the streams without copying them. What it tells arrives while it works: if it is ended
because its time is up, what it told until then counts.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

T = TypeVar("T")


class ContestantError(Exception):
    """It failed in its process; the message is its traceback."""


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """All that it told, and whether it came to its end by itself."""

    words: list[T]
    ended: bool


@dataclass(frozen=True, slots=True)
class _Last:
    failure: str | None


def apart(work: Callable[[Callable[[T], None]], None], silence: float) -> Told[T]:
    """``work`` gets a function to tell with; after so many seconds on the wall without a word it is killed."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_worked, args=(work, theirs), daemon=True)
    with warnings.catch_warnings():  # from Python 3.12 on, of forks beside threads; the work needs none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    try:
        return _heard(ours, silence)
    finally:
        process.kill()
        process.join()
        ours.close()


def _worked(work: Callable[[Callable[[T], None]], None], tell: Connection) -> None:
    try:
        work(tell.send)
        tell.send(_Last(None))
    except Exception:
        tell.send(_Last(traceback.format_exc()))
    os._exit(0)  # what the parent set up is not this process's to take down


def _heard(ours: Connection, silence: float) -> Told[T]:
    words: list[T] = []
    while ours.poll(silence):
        try:
            word = ours.recv()
        except EOFError:
            raise ContestantError("it died without a word: out of memory, perhaps") from None
        if not isinstance(word, _Last):
            words.append(word)
        elif word.failure is not None:
            raise ContestantError(word.failure)
        else:
            return Told(words, ended=True)
    return Told(words, ended=False)
