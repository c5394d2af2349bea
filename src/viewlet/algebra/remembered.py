"""Facts about nodes that are asked for again and again while a program is made, and never once it runs."""

from __future__ import annotations

from collections.abc import Callable
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
