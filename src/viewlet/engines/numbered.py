"""Window functions that go by the numbers of rows, where the rows of a view are read: each partition is sorted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, partial
from itertools import accumulate, chain
from typing import Any

from viewlet.algebra.evaluate import Env, Key
from viewlet.algebra.terms import Scalar, evaluate_term
from viewlet.engines.ordering import Ranked, Weighed, after, compared, one_nan
from viewlet.program.trigger import RowWindow

Values = Sequence[Scalar]
Pieces = list[tuple[int, int]]  # from which row on, and before which; in order, none empty


def numbered(windows: Sequence[RowWindow], rows: Iterable[Weighed]) -> Iterator[Weighed]:
    """Each copy of each row with its own values."""
    copies = [dict(env) for weight, env in rows for _ in range(weight)]
    for window in windows:
        partitions: dict[Key, list[Env]] = {}
        for env in copies:
            key = tuple([one_nan(evaluate_term(term, env)) for term in window.partition])
            partitions.setdefault(key, []).append(env)
        for partition in partitions.values():
            _fill(window, partition)
    return ((1, env) for env in copies)


def _fill(window: RowWindow, partition: list[Env]) -> None:
    ranked = [(tuple([evaluate_term(o.term, env) for o in window.order]), 1, env) for env in partition]
    ranked.sort(key=cmp_to_key(partial(compared, window.order)))
    rows = [env for _, _, env in ranked]
    arguments = [[evaluate_term(term, env) for env in rows] for term in window.arguments]
    places = Places(window, ranked)
    for env, value in zip(rows, _FUNCTIONS[window.function](places, arguments), strict=True):
        env[window.var] = value


class Places:
    """The sorted rows of a partition by their numbers, from 0 on, and which of them the frame of each has."""

    def __init__(self, window: RowWindow, ranked: Sequence[Ranked]) -> None:
        self.window, self.count = window, len(ranked)
        self._starts, self._group = [0], list[int]()  # where each group begins, and the group of each row
        if window.unit == "groups" or window.excluded in ("group", "ties"):
            self._find_groups(ranked)

    def _find_groups(self, ranked: Sequence[Ranked]) -> None:
        order = self.window.order[: self.window.peers]
        for place, row in enumerate(ranked):
            before: Ranked = (ranked[place - 1][0][: len(order)], 1, {})
            if place and compared(order, before, (row[0][: len(order)], 1, {})):
                self._starts.append(place)
            self._group.append(len(self._starts) - 1)
        self._starts.append(self.count)

    def frame(self, place: int) -> tuple[int, int]:
        """Before anything is excluded."""
        first, last = self.window.frame
        if self.window.unit == "rows":
            return self._between(place, self.count, first, last)
        group, groups = self._group[place], len(self._starts) - 1
        start, end = self._between(group, groups, first, last)
        return self._starts[start], self._starts[end]

    def _between(self, place: int, count: int, first: int | None, last: int | None) -> tuple[int, int]:
        start = 0 if first is None else min(max(place + first, 0), count)
        return start, count if last is None else max(min(place + last + 1, count), start)

    def pieces(self, place: int) -> Pieces:
        """The frame of a row, without what it excludes."""
        start, end = self.frame(place)
        if self.window.excluded is None:
            return [(start, end)] if start < end else []
        low, high = place, place + 1
        if self.window.excluded != "current":
            low, high = (self._starts[self._group[place] + i] for i in (0, 1))
        itself = [(place, place + 1)] if self.window.excluded == "ties" and start <= place < end else []
        around = [(start, min(end, low)), *itself, (max(start, high), end)]
        return [(a, b) for a, b in around if a < b]


Function = Callable[[Places, list[list[Any]]], Iterable[Scalar]]


def _row_number(places: Places, _: list[list[Any]]) -> Iterable[Scalar]:
    return range(1, places.count + 1)


def _ntile(places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
    """As many parts as the first argument says; the first ones have a row more."""
    parts: int = arguments[0][0]
    size, larger = divmod(places.count, parts)
    for place in range(places.count):
        in_larger = place < larger * (size + 1)
        yield place // (size + 1) + 1 if in_larger else (place - larger) // size + 1


@dataclass(frozen=True)
class _Shifted:
    sign: int

    def __call__(self, places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
        values, by, default = arguments
        for place in range(places.count):
            other = place + self.sign * by[place]
            yield values[other] if 0 <= other < places.count else default[place]


def _summed(places: Places, values: Values) -> Iterator[tuple[int, Any]]:
    """How many values each frame has, and their sum: differences of running sums."""
    known = [v is not None for v in values]
    counts = [0, *accumulate(known)]
    sums: list[Any] = [0, *accumulate(0 if v is None else v for v in values)]
    for place in range(places.count):
        pieces = places.pieces(place)
        yield sum(counts[b] - counts[a] for a, b in pieces), sum(sums[b] - sums[a] for a, b in pieces)


def _sum(places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
    return (total if n else None for n, total in _summed(places, arguments[0]))


def _count(places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
    return (n for n, _ in _summed(places, arguments[0]))


@dataclass(frozen=True)
class _End:
    """MIN and MAX."""

    better: Callable[..., Scalar]

    def __call__(self, places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
        values = arguments[0]
        if places.window.frame[0] is None and places.window.excluded is None:  # a frame that only grows
            best = list(accumulate(values, self._of_two))
            ends = (places.frame(place)[1] for place in range(places.count))
            yield from (best[end - 1] if end else None for end in ends)
            return
        for place in range(places.count):
            framed = chain.from_iterable(values[a:b] for a, b in places.pieces(place))
            yield self.better((v for v in framed if v is not None), key=after, default=None)

    def _of_two(self, a: Scalar, b: Scalar) -> Scalar:
        return b if a is None else a if b is None else self.better(a, b, key=after)


def _nth(places: Places, arguments: list[list[Any]]) -> Iterator[Scalar]:
    """The n-th value of the frame; a negative n counts from its end."""
    values, numbers = arguments
    for place in range(places.count):
        pieces, n = places.pieces(place), numbers[place]
        at = n - 1 if n > 0 else sum(b - a for a, b in pieces) + n
        yield _at(values, pieces, at) if at >= 0 else None


def _at(values: Values, pieces: Pieces, at: int) -> Scalar:
    for a, b in pieces:
        if at < b - a:
            return values[a + at]
        at -= b - a
    return None


_FUNCTIONS: dict[str, Function] = {
    "row_number": _row_number,
    "ntile": _ntile,
    "lag": _Shifted(-1),
    "lead": _Shifted(1),
    "sum": _sum,
    "count": _count,
    "min": _End(min),
    "max": _End(max),
    "nth_value": _nth,
}
