"""Window functions that go by the numbers of rows, where the rows of a view are read: each partition is sorted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cmp_to_key, partial
from itertools import accumulate
from typing import Any

from viewlet.algebra.evaluate import Env, Key
from viewlet.algebra.terms import Scalar, evaluate_term
from viewlet.engines.ordering import Weighed, after, compared, one_nan
from viewlet.program.trigger import RowWindow

Values = Sequence[Scalar]


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
    for env, value in zip(rows, _FUNCTIONS[window.function](window, len(rows), arguments), strict=True):
        env[window.var] = value


Function = Callable[[RowWindow, int, list[list[Scalar]]], Iterable[Scalar]]


def _row_number(_: RowWindow, count: int, __: list[list[Scalar]]) -> Iterable[Scalar]:
    return range(1, count + 1)


def _ntile(_: RowWindow, count: int, arguments: list[list[Any]]) -> Iterator[Scalar]:
    """As many parts as the first argument says; the first ones have a row more."""
    parts: int = arguments[0][0]
    size, larger = divmod(count, parts)
    for place in range(count):
        in_larger = place < larger * (size + 1)
        yield place // (size + 1) + 1 if in_larger else (place - larger) // size + 1


def _shifted(sign: int) -> Function:
    def value(_: RowWindow, count: int, arguments: list[list[Any]]) -> Iterator[Scalar]:
        values, by, default = arguments
        for place in range(count):
            other = place + sign * by[place]
            yield values[other] if 0 <= other < count else default[place]

    return value


def _bounds(window: RowWindow, place: int, count: int) -> tuple[int, int]:
    """From which row on, and before which, the frame of a row is."""
    first, last = window.frame
    start = 0 if first is None else min(max(place + first, 0), count)
    return start, count if last is None else max(min(place + last + 1, count), start)


def _summed(window: RowWindow, count: int, values: Values) -> Iterator[tuple[int, Any]]:
    """How many values each frame has, and their sum: differences of running sums."""
    known = [v is not None for v in values]
    counts = [0, *accumulate(known)]
    sums: list[Any] = [0, *accumulate(0 if v is None else v for v in values)]
    for place in range(count):
        start, end = _bounds(window, place, count)
        yield counts[end] - counts[start], sums[end] - sums[start]


def _sum(window: RowWindow, count: int, arguments: list[list[Scalar]]) -> Iterator[Scalar]:
    return (total if n else None for n, total in _summed(window, count, arguments[0]))


def _count(window: RowWindow, count: int, arguments: list[list[Scalar]]) -> Iterator[Scalar]:
    return (n for n, _ in _summed(window, count, arguments[0]))


def _end(better: Callable[..., Scalar]) -> Function:
    def best_of(a: Scalar, b: Scalar) -> Scalar:
        return b if a is None else a if b is None else better(a, b, key=after)

    def value(window: RowWindow, count: int, arguments: list[list[Scalar]]) -> Iterator[Scalar]:
        values = arguments[0]
        if window.frame[0] is None:  # a frame that only grows
            best = list(accumulate(values, best_of))
            ends = (_bounds(window, place, count)[1] for place in range(count))
            yield from (best[end - 1] if end else None for end in ends)
            return
        for place in range(count):
            start, end = _bounds(window, place, count)
            yield better((v for v in values[start:end] if v is not None), key=after, default=None)

    return value


def _nth(window: RowWindow, count: int, arguments: list[list[Any]]) -> Iterator[Scalar]:
    """The n-th value of the frame; a negative n counts from its end."""
    values, numbers = arguments
    for place in range(count):
        start, end = _bounds(window, place, count)
        at = start + numbers[place] - 1 if numbers[place] > 0 else end + numbers[place]
        yield values[at] if start <= at < end else None


_FUNCTIONS: dict[str, Function] = {
    "row_number": _row_number,
    "ntile": _ntile,
    "lag": _shifted(-1),
    "lead": _shifted(1),
    "sum": _sum,
    "count": _count,
    "min": _end(min),
    "max": _end(max),
    "nth_value": _nth,
}
