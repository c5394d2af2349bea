"""LIST and STRING_AGG where the rows of a view are read: the entries of each group, sorted and put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from viewlet.algebra.evaluate import Env, Key, Reader, evaluate
from viewlet.algebra.query import outputs
from viewlet.algebra.terms import Scalar, evaluate_term
from viewlet.engines.ordering import after, one_nan
from viewlet.program.trigger import Gather, Order

Entry = tuple[int, Env]  # how often a value is there, and the variables that it has


def gathered(gather: Gather, read: Reader, key: Mapping[str, Scalar], keys: frozenset[str]) -> Callable[[Env], Scalar]:
    """The list of the group that an environment names: one pass over the entries that agree with ``key``."""
    names = tuple(sorted(outputs(gather.query)))
    shared = tuple(name for name in names if name in keys)
    groups: dict[Key, list[Entry]] = {}
    for values, m in evaluate(gather.query, read, names, key).items():
        env = dict(zip(names, values, strict=True))
        times = 1 if gather.distinct else cast(int, m)
        groups.setdefault(tuple([one_nan(env[n]) for n in shared]), []).append((times, env))
    lists = {group: _together(gather, entries) for group, entries in groups.items()}
    return lambda env: lists.get(tuple([one_nan(env[n]) for n in shared]))


def _together(gather: Gather, entries: list[Entry]) -> Scalar:
    """Sorted by the last term first: a sort keeps the order of what is equal."""
    for order in reversed(gather.order):
        entries.sort(key=_rank(order), reverse=order.descending)
    values = [value for times, env in entries for value in [evaluate_term(gather.term, env)] * times]
    if gather.separator is not None:
        return gather.separator.join(cast(list[str], values))
    return cast(Scalar, tuple(values))  # a column that nothing is computed from


def _rank(order: Order) -> Callable[[Entry], tuple[bool, object]]:
    def rank(entry: Entry) -> tuple[bool, object]:
        value = evaluate_term(order.term, entry[1])
        if value is None:
            return order.nulls_first == order.descending, None
        return order.nulls_first != order.descending, after(value)

    return rank
