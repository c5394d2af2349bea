"""LIST and STRING_AGG where the rows of a view are read: the entries of each group, sorted and put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import cast

from viewlet.algebra.evaluate import Env, Key, Reader, evaluate
from viewlet.algebra.query import outputs
from viewlet.algebra.terms import Scalar, Term, Var, evaluate_term
from viewlet.engines.ordering import after, one_nan
from viewlet.program.trigger import Gather, Order

Entry = tuple[int, Key]  # how often a value is there, and the values of the variables


def gathered(gather: Gather, read: Reader, key: Mapping[str, Scalar], keys: frozenset[str]) -> Callable[[Env], Scalar]:
    """The list of the group that an environment names: one pass over the entries that agree with ``key``."""
    names = tuple(sorted(outputs(gather.query)))
    shared = tuple(name for name in names if name in keys)
    places = [names.index(name) for name in shared]
    groups: dict[Key, list[Entry]] = {}
    for values, m in evaluate(gather.query, read, names, key).items():
        times = 1 if gather.distinct else cast(int, m)
        groups.setdefault(tuple([one_nan(values[i]) for i in places]), []).append((times, values))
    lists = {group: _together(gather, names, entries) for group, entries in groups.items()}
    return lambda env: lists.get(tuple([one_nan(env[n]) for n in shared]))


def _together(gather: Gather, names: tuple[str, ...], entries: list[Entry]) -> Scalar:
    """Sorted by the last term first: a sort keeps the order of what is equal."""
    for order in reversed(gather.order):
        entries.sort(key=_rank(order, names), reverse=order.descending)
    value = _value(gather.term, names)
    together = [v for times, values in entries for v in [value(values)] * times]
    if gather.separator is not None:
        return gather.separator.join(cast(list[str], together))
    return cast(Scalar, tuple(together))  # a column that nothing is computed from


def _rank(order: Order, names: tuple[str, ...]) -> Callable[[Entry], tuple[bool, object]]:
    value = _value(order.term, names)

    def rank(entry: Entry) -> tuple[bool, object]:
        known = value(entry[1])
        if known is None:
            return order.nulls_first == order.descending, None
        return order.nulls_first != order.descending, after(known)

    return rank


def _value(term: Term, names: tuple[str, ...]) -> Callable[[Key], Scalar]:
    """A term over the values of the variables; most terms are one of these."""
    if isinstance(term, Var):
        return itemgetter(names.index(term.name))
    return lambda values: evaluate_term(term, dict(zip(names, values, strict=True)))
