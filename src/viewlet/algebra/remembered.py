"""Facts about nodes that are asked for again and again while a program is made, and never once it runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from typing_extensions import ParamSpec

P = ParamSpec("P")
R = TypeVar("R")

_forgetting: list[Callable[[], None]] = []


def remembered(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like ``lru_cache``, until :func:`forget`: a cache keeps every node that it was asked about alive."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize=most)(function)
        _forgetting.append(cached.cache_clear)
        return cached  # type: ignore[return-value]  # typeshed forgets the parameters

    return decorate


def forget() -> None:
    """A program is made: what its nodes were may go."""
    for clear in _forgetting:
        clear()


@contextmanager
def uncollected() -> Iterator[None]:
    """Python does not look for cycles meanwhile.

    The nodes of a compilation have none, and there are so many that the search took two fifths of its time.
    One search at the end would still take a sixth, so what is left goes to the oldest generation without one.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:  # what the user froze stays frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
