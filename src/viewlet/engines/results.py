"""The rows of a SQL view, read off its maps: what is not linear at the top of a query happens here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from viewlet.algebra.evaluate import Env, Key, Reader, evaluate, plan, scalar
from viewlet.algebra.query import View, outputs
from viewlet.algebra.terms import Number, Scalar, Term, Var, evaluate_term, exact
from viewlet.engines.gathered import gathered
from viewlet.engines.numbered import numbered
from viewlet.engines.ordering import after, in_order, one_nan, shown_count
from viewlet.errors import OutOfRangeError
from viewlet.program.trigger import Extreme, Result, ResultColumn

CountedRow = tuple[int, Key]  # how often, and the columns' values


def result_rows(result: Result, read: Reader, key: Mapping[str, Scalar] | None = None) -> Iterator[CountedRow]:
    """The rows whose key variables have the values in ``key``: without it all rows, with a whole key one lookup.

    They come in the view's order. Which rows are among the first depends on all of them, so there is no lookup then.
    The number of a row depends on its partition: that is looked up.
    """
    given = key or {}
    for weight, env in in_order(result, _environments(result, read, _looked_up(result, given))):
        if not result.is_cut or _agrees(env, given):
            yield weight, _columns(result, env)


def row_count(result: Result, read: Reader) -> int:
    """How many rows there are, also where a value in one can no longer be shown."""
    counted = _keys(result, read, {}) if result.having is None else _environments(result, read, {})
    return shown_count(result, sum(weight for weight, _ in counted))


def _looked_up(result: Result, key: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """The part of a key that all rows share which have a say in the rows of the key."""
    if result.limit is not None or result.offset:
        return {}
    shared = [{term.name for term in window.partition if isinstance(term, Var)} for window in result.windows]
    return {name: value for name, value in key.items() if all(name in names for names in shared)}


def _agrees(env: Env, key: Mapping[str, Scalar]) -> bool:
    return all(one_nan(env[name]) is one_nan(value) or env[name] == value for name, value in key.items())


def _environments(result: Result, read: Reader, key: Mapping[str, Scalar]) -> Iterator[tuple[int, Env]]:
    rows = _found(result, read, key)
    for weight, env in numbered(result.windows, rows) if result.windows else rows:
        if result.having is None or evaluate_term(result.having, env) is True:
            yield weight, env


def _found(result: Result, read: Reader, key: Mapping[str, Scalar]) -> Iterator[tuple[int, Env]]:
    ends = [(e.var, _ends(e, read, key)) for e in result.extremes]
    ends += [(g.var, gathered(g, read, key, _key_names(result))) for g in result.gathers]
    for weight, env in _keys(result, read, key):
        env |= {name: scalar(q, frozenset(env))(env, read) for name, q in result.lookups}
        for name, end in ends:
            env[name] = end(env)
        yield weight, env


def _keys(result: Result, read: Reader, key: Mapping[str, Scalar]) -> Iterator[tuple[int, Env]]:
    """Those of one view one by one, so that who wants a few does not pay for all."""
    if result.rows is None:
        yield 1, dict(key)
    elif isinstance(result.rows, View):
        for env, m in plan(result.rows, frozenset(key))(dict(key), read):
            yield _weight(result, exact(m)), dict(env)
    else:
        names = tuple(sorted(outputs(result.rows)))
        for values, m in evaluate(result.rows, read, names, key).items():
            yield _weight(result, m), dict(zip(names, values, strict=True))


def key_columns(result: Result) -> tuple[ResultColumn, ...]:
    """The columns that are key variables themselves, first ones where a variable is shown twice."""
    keys = _key_names(result)
    shown: dict[str, ResultColumn] = {}
    for column in result.columns:
        if isinstance(column.term, Var) and column.term.name in keys:
            shown.setdefault(column.term.name, column)
    return tuple(shown.values())


def _key_names(result: Result) -> frozenset[str]:
    return frozenset() if result.rows is None else outputs(result.rows)


def _ends(extreme: Extreme, read: Reader, key: Mapping[str, Scalar]) -> Callable[[Env], Scalar]:
    """The extreme of the group that an environment names: one pass over the entries that agree with ``key``."""
    names = tuple(sorted(outputs(extreme.query) - {extreme.key}))
    if extreme.place is not None:
        return _placed(extreme, extreme.place, names, read, key)
    better = max if extreme.end == "greatest" else min
    ends: dict[Key, Scalar] = {}
    for (value, *group), _ in evaluate(extreme.query, read, (extreme.key, *names), key).items():
        same = tuple(map(one_nan, group))
        ends[same] = better(ends.get(same, value), value, key=after)
    return lambda env: ends.get(tuple([one_nan(env[n]) for n in names]))


def _placed(
    extreme: Extreme, place: Term, names: tuple[str, ...], read: Reader, key: Mapping[str, Scalar]
) -> Callable[[Env], Scalar]:
    """The first key from one end on, up to which there are more rows than ``place`` says."""
    groups: dict[Key, list[tuple[Scalar, Number]]] = {}
    for (value, *group), times in evaluate(extreme.query, read, (extreme.key, *names), key).items():
        groups.setdefault(tuple(map(one_nan, group)), []).append((value, times))
    for entries in groups.values():
        entries.sort(key=lambda entry: after(entry[0]), reverse=extreme.end == "greatest")
    sums = {group: list(accumulate(times for _, times in entries)) for group, entries in groups.items()}

    def at_place(env: Env) -> Scalar:
        group, wanted = tuple([one_nan(env[n]) for n in names]), evaluate_term(place, env)
        at = bisect_right(sums.get(group, []), wanted) if wanted is not None else len(groups.get(group, []))
        return groups[group][at][0] if at < len(groups.get(group, [])) else None

    return at_place


def _columns(result: Result, env: Env) -> Key:
    return tuple([_cell(result, c, env) for c in result.columns])


def _cell(result: Result, column: ResultColumn, env: Env) -> Scalar:
    try:
        return evaluate_term(column.term, env)
    except (OverflowError, ValueError) as error:
        raise OutOfRangeError(f"{result.name}.{column.name}: {error}") from None


def _weight(result: Result, m: object) -> int:
    """How many rows a key stands for; SQL knows no other numbers than 1, 2, …"""
    if not isinstance(m, int) or m < 1:
        raise ValueError(f"view {result.name} counts {m} rows under one key: its program is wrong")
    return 1 if result.distinct else m
