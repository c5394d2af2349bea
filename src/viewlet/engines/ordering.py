"""ORDER BY, LIMIT and OFFSET of a view, where its rows are read."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from functools import cmp_to_key, partial

from viewlet.algebra.evaluate import Env
from viewlet.algebra.terms import Scalar, evaluate_term
from viewlet.errors import OutOfRangeError
from viewlet.program.trigger import Order, Result

Weighed = tuple[int, Env]  # how often a row is there, and the values of its variables
Ranked = tuple[tuple[Scalar, ...], int, Env]


def in_order(result: Result, rows: Iterable[Weighed]) -> Iterable[Weighed]:
    """The rows as the view orders them, and of these only the first ``limit`` after ``offset``."""
    if not result.order:
        return rows
    ranked = ((_values(result, env), weight, env) for weight, env in rows)
    by_order = cmp_to_key(partial(compared, result.order))
    if result.limit is None:
        first = sorted(ranked, key=by_order)
    else:  # each row is there once or more often
        first = heapq.nsmallest(result.offset + result.limit, ranked, key=by_order)
    return _cut(result, ((weight, env) for _, weight, env in first))


def shown_count(result: Result, rows: int) -> int:
    """How many of so many rows a view shows."""
    rest = max(rows - result.offset, 0)
    return rest if result.limit is None else min(rest, result.limit)


def after(value: Scalar) -> tuple[bool, Scalar]:
    """NaN is the greatest number, and NULL the greatest of a list; texts go by code points, as their UTF-8 bytes do."""
    if isinstance(value, tuple):
        value = tuple([(v is None, after(v)) for v in value])
    return value != value, value


def one_nan(value: Scalar) -> Scalar:
    """NaN equals NaN as a key of the native engine, and only the very same one does here."""
    return math.nan if value != value else value  # type: ignore[return-value]  # a NaN is no rational number


def _cut(result: Result, rows: Iterable[Weighed]) -> Iterator[Weighed]:
    """A row that is there n times is n rows."""
    seen = 0
    for weight, env in rows:
        shown = shown_count(result, seen + weight) - shown_count(result, seen)
        seen += weight
        if shown:
            yield shown, env


def _values(result: Result, env: Env) -> tuple[Scalar, ...]:
    try:
        return tuple([evaluate_term(order.term, env) for order in result.order])
    except OverflowError as error:
        raise OutOfRangeError(f"{result.name}, ORDER BY: {error}") from None


def compared(orders: tuple[Order, ...], left: Ranked, right: Ranked) -> int:
    """Negative where ``left`` comes first."""
    for order, mine, other in zip(orders, left[0], right[0], strict=True):
        if mine is None or other is None:
            if (mine is None) != (other is None):
                return -1 if (mine is None) == order.nulls_first else 1
        elif (x := after(mine)) != (y := after(other)) and not (x[0] and y[0]):
            return -1 if (x < y) != order.descending else 1
    return 0
