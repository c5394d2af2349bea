"""Which ordered access path a join can take: the entries of one view, found by the order of one of its keys.

===========  ==========================================================  ========================================
path         the key k of V                                              what is read
===========  ==========================================================  ========================================
range sum    is compared, and summed out                                 Σ V over a range of k
range        is compared, and used or shown                              the entries in a range of k
threshold    is compared through a running sum, [c θ Σ_{k₂ > k} W[k₂]]   the runs of k where the running sum is so
===========  ==========================================================  ========================================

A comparison may have any form that is monotone in k (:mod:`viewlet.loops.monotone`), and several may be combined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

from viewlet.algebra.evaluate import LOOP, SCAN, effort, join_order
from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Query,
    Sum,
    Value,
    View,
    atoms,
    factors,
    inputs,
    outputs,
)
from viewlet.algebra.terms import COMPARISONS, ZERO_TERM, Const, Op, Term, Var, evaluate_term, free, substitute_term
from viewlet.loops.determined import Determined, is_determined
from viewlet.loops.monotone import Ranges, both, holds_upwards, is_known, ranges_of
from viewlet.loops.names import columns_of
from viewlet.loops.steps import Cut, InRun

Totals = Mapping[str, frozenset[str]]  # variables that stand for nested aggregates: the columns that these are found by


@dataclass(frozen=True, slots=True)
class Running:
    """s(k) = Σ W[k₂] over the k₂ for which [C(k₂, k)]: those ``after`` some key, or those before one.

    ``up``: C holds for k from some key on. ``summed``: columns of W that are neither k₂ nor given.
    """

    source: View
    inner: str
    summed: frozenset[str]
    within: Compare
    after: bool
    up: bool


@dataclass(frozen=True, slots=True)
class Threshold:
    """[s(k) θ c], as a comparison of ``total``, which stands for s(k); ``also_read``: s(k) is used otherwise, too."""

    total: str
    running: Running
    test: Compare
    also_read: bool = False

    @property
    def holds_upwards(self) -> bool | None:
        """Whether it holds from some k on, where W has nothing negative."""
        up = holds_upwards(self.test, self.total)
        return None if up is None else up == self.running.up

    @property
    def needs(self) -> frozenset[str]:
        """What must have a value besides k."""
        columns = frozenset(self.running.source.outputs) - self.running.summed
        return (columns | inputs(self.running.within)) - {self.running.inner} | inputs(self.test) - {self.total}


@dataclass(frozen=True, slots=True)
class OrderPath:
    """The entries of ``view``, a factor of the join (``atom``), by the order of ``key``.

    ``conditions`` and ``thresholds`` say which keys; they take the place of the factors ``replaced``. Of the other
    columns that have no value yet, ``open_`` are those that something uses and ``summed`` the others. ``is_sum``: only
    the sum over the keys is wanted. ``needs``: variables that must have a value before.
    """

    atom: Query
    view: View
    key: str
    conditions: tuple[Compare, ...]
    thresholds: tuple[Threshold, ...]
    replaced: tuple[Query, ...]
    open_: frozenset[str]
    summed: frozenset[str]
    is_sum: bool
    needs: frozenset[str]


def ordered_path(
    parts: Sequence[Query],
    bound: frozenset[str],
    needed: frozenset[str],
    totals: Mapping[str, frozenset[str]] = {},
    opened: frozenset[str] = frozenset(),
    by_rows: bool = False,
    determined: Determined = MappingProxyType({}),
) -> OrderPath | None:
    """The path of a join of ``parts`` whose variables ``needed`` are wanted outside; a sum rather than a loop.

    A slice whose keys are only compared with ``totals`` of its own (Q17: a part's quantities with their sum) is gone
    over: it is taken to be short, and its order would be kept for this alone. ``opened``: bound variables that name a
    slice because its order is wanted. ``by_rows``: not a sum for each of several groups. ``determined``: columns of
    views that are values of groups.
    """
    totals = {**totals, **{f.var: found_by(f) for f in parts if isinstance(f, Bind) and not isinstance(f.query, Value)}}
    paths = [
        p
        for p in _paths(parts, bound, needed, by_rows, determined)
        if _is_value(p, determined) or not _is_short(p, bound - opened, totals)
    ]
    return max(paths, key=lambda path: (path.is_sum, len(path.replaced)), default=None)


def found_by(total: Bind) -> frozenset[str]:
    """The variables from outside by whose values a nested aggregate finds what it adds up, as keys of its reads."""
    return inputs(total) & frozenset(column for atom in atoms(total) for column in columns_of(atom))


def _is_value(path: OrderPath, determined: Determined) -> bool:
    """The map is kept by this value, for its order."""
    return path.view.outputs.index(path.key) in determined.get(path.view.name, {})


def _is_short(path: OrderPath, bound: frozenset[str], totals: Totals) -> bool:
    """A slice whose every comparison is with a total that is found by the slice's own columns."""
    sliced = frozenset(path.view.outputs) & bound
    own = frozenset(total for total, columns in totals.items() if columns & sliced)
    return not path.thresholds and all(inputs(c) & own for c in path.conditions)


def _paths(
    parts: Sequence[Query], bound: frozenset[str], needed: frozenset[str], by_rows: bool, determined: Determined
) -> Iterator[OrderPath]:
    if not any(isinstance(f, Compare) for f in parts):
        return
    for atom in dict.fromkeys(parts):
        view = atom.query if isinstance(atom, Exists) else atom
        if not isinstance(view, View) or view.inputs or len(set(view.outputs)) < len(view.outputs):
            continue  # V(x, x) is a test, too
        if parts.count(atom) == 1:
            others = [f for f in parts if f is not atom]
            for key in view.outputs:
                if key not in bound:
                    path = _path(atom, view, key, others, bound, needed, by_rows, determined)
                    if path is not None:
                        yield path


def _path(
    atom: Query,
    view: View,
    key: str,
    others: list[Query],
    bound: frozenset[str],
    needed: frozenset[str],
    by_rows: bool,
    determined: Determined,
) -> OrderPath | None:
    if any(key in outputs(f) for f in others if not _is_nested(f)):
        return None  # joined by equality: a slice does better
    columns = frozenset(view.outputs) - bound
    known = bound.union(columns, *(outputs(f) for f in others))
    conditions = [f for f in others if isinstance(f, Compare) and key in inputs(f) and is_cut(f, key)]
    shown = needed | bound
    sums = [t for t in _thresholds(key, others, known) if t.total not in bound and _gives(others, t.total) == 1]
    thresholds = [replace(t, also_read=t.also_read or t.total in shown) for t in sums]
    totals = frozenset(t.total for t in thresholds if not t.also_read)
    replaced = [*conditions, *(f for f in others if totals & (inputs(f) | outputs(f)))]
    rest = [f for f in others if f not in replaced]
    asked = frozenset[str]().union(*map(inputs, conditions), *(t.needs for t in thresholds)) - {key}
    is_sum = isinstance(atom, View) and key not in needed and not any(key in inputs(f) | outputs(f) for f in rest)
    used = asked.union(needed, *(inputs(f) | outputs(f) for f in rest))
    open_, needs = (columns & used) - {key}, asked - columns
    groups = needed.union(*map(outputs, rest))
    is_sum &= open_ <= groups  # a column that is only measured or compared is no group: it has as many values as rows
    is_sum &= not open_ or not (by_rows or _is_between(key, conditions, thresholds))
    is_sum &= not open_ or not is_determined(view, key, open_ | bound, determined)  # one entry is no sum
    if not thresholds and all(is_known(c, key) for c in conditions):
        return None
    ranges = (*(_cuts(c, key) for c in conditions), *(_runs(t.test, t.total) for t in thresholds))
    start: Ranges | None = ((),)
    if reduce(both, ranges, start) is None:
        return None  # too many
    if not needs <= _reachable(rest, bound | open_ if is_sum else bound):
        return None
    if not is_sum and asked & columns:
        return None  # [k > h] for another column h of the same entry bounds no range of k
    summed = columns - open_ - {key}
    return OrderPath(
        atom, view, key, tuple(conditions), tuple(thresholds), tuple(replaced), open_, summed, is_sum, needs
    )


def _is_nested(f: Query) -> bool:
    """A nested aggregate of the key's entries: it waits for the key, and gives none."""
    return isinstance(f, Bind) and not isinstance(f.query, Value)


def _is_between(key: str, conditions: Sequence[Compare], thresholds: Sequence[Threshold]) -> bool:
    """The range has few rows, and groups are more: a comparison bounds it at one end, a running sum at the other.

    Or its two ends are a constant apart, as those of an interval join are: [k >= t - 5] ⋈ [k <= t].
    """
    ends = [(holds_upwards(c, key), _place(c, key)) for c in conditions]
    ways = {up for up, _ in ends}
    by_number = any(t.holds_upwards is not None and (not t.holds_upwards) in ways for t in thresholds)
    return by_number or any(place is not None and (not up, place) in ends for up, place in ends)


def _place(condition: Compare, key: str) -> Term | None:
    """What a comparison says of the key but for constants: t of [k + 1 <= t - 5]."""
    for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if _but_constants(side) == Var(key) and key not in free(other):
            return _but_constants(other)
    return None


def _but_constants(term: Term) -> Term:
    match term:
        case Op("+" | "-", (a, Const())) | Op("+", (Const(), a)):
            return _but_constants(a)
    return term


def _gives(parts: Sequence[Query], var: str) -> int:
    """How many of the parts give a variable: of two, one is a test."""
    return sum(var in outputs(f) for f in parts)


def _reachable(parts: Sequence[Query], bound: frozenset[str]) -> frozenset[str]:
    """The variables that ``parts`` can give values to, one after the other."""
    waiting = list(parts)
    while ready := [f for f in waiting if inputs(f) <= bound]:
        bound = bound.union(*map(outputs, ready))
        waiting = [f for f in waiting if f not in ready]
    return bound


def next_factor(parts: tuple[Query, ...], path: OrderPath | None, bound: frozenset[str]) -> Query:
    """What to do first: what is cheap or restricts the path's slices, what the path needs, then the path's atom."""
    if path is None:
        return join_order(parts, bound)[0]
    ready = [f for f in parts if f is not path.atom and f not in path.replaced and inputs(f) <= bound]
    first = [f for f in ready if effort(f, bound) < LOOP or (effort(f, bound) < SCAN and path.open_ & outputs(f))]
    if first:
        return min(first, key=lambda f: effort(f, bound))
    if path.needs <= bound or opens_first(path, parts, bound):
        return path.atom
    return min(ready, key=lambda f: effort(f, bound))


def needs_a_scan(path: OrderPath, parts: Sequence[Query], bound: frozenset[str]) -> bool:
    """Only a scan gives what the path needs, while its atom without the order is a slice."""
    if path.needs <= bound or opens_first(path, parts, bound) or effort(path.atom, bound) >= SCAN:
        return False
    ready = [f for f in parts if f is not path.atom and f not in path.replaced and inputs(f) <= bound]
    return min((effort(f, bound) for f in ready), default=SCAN) >= SCAN


def opens_first(path: OrderPath, parts: Sequence[Query], bound: frozenset[str]) -> bool:
    """What the path needs cannot be had before its slices are opened."""
    rest = [f for f in parts if f is not path.atom and f not in path.replaced]
    return not path.needs <= _reachable(rest, bound)


def is_cut(condition: Compare, var: str) -> bool:
    return _cuts(condition, var) is not None


def _cuts(condition: Compare, var: str) -> Ranges | None:
    """The ranges of ``var`` that a condition admits."""

    def side(compare: Compare) -> Ranges | None:
        if is_known(compare, var):
            return ((),)
        up = holds_upwards(compare, var)
        return None if up is None else ((Cut(compare, up, False, False),),)

    return ranges_of(condition, side)


def is_threshold(test: Compare, total: str) -> bool:
    return _runs(test, total) is not None


def _runs(test: Compare, total: str) -> Ranges | None:
    """The runs of a running sum that a test admits. OR would need their complement, which is not a list of runs."""

    def side(compare: Compare) -> Ranges | None:
        up = holds_upwards(compare, total)
        return None if up is None else ((InRun("", compare, "", up, False, False),),)

    return ranges_of(test, side)


# -- thresholds --------------------------------------------------------------------------------------------------------


def _thresholds(key: str, others: list[Query], known: frozenset[str]) -> Iterator[Threshold]:
    """The comparisons of running sums in the order of ``key``, with what has a value before the key has one."""
    of_key = frozenset(f.var for f in others if isinstance(f, Bind) and key in inputs(f) | outputs(f))
    for f in others:
        if not isinstance(f, Bind) or key not in inputs(f):
            continue
        scaled = _running(f.query, key, known - {f.var})
        users = [g for g in others if f.var in inputs(g)]
        tests = [g for g in users if isinstance(g, Compare) and is_threshold(g, f.var)]
        tests = [test for test in tests if inputs(test).isdisjoint(of_key - {f.var} | {key})]
        if scaled is None:
            continue
        running, coefficient = scaled
        for test in tests:
            yield Threshold(f.var, running, _scaled(test, f.var, coefficient), len(tests) < len(users))


def _running(q: Query, key: str, known: frozenset[str]) -> tuple[Running, Const | None] | None:
    """Q as a running sum, and a constant that it is multiplied by."""
    body = q.query if isinstance(q, Sum) else q
    if not isinstance(body, Join):
        return None
    views = [f for f in factors(body) if isinstance(f, View) and not f.inputs]
    compares = [f for f in factors(body) if isinstance(f, Compare)]
    constants = [f.term for f in factors(body) if isinstance(f, Value) and isinstance(f.term, Const)]
    if (len(views), len(compares)) != (1, 1) or len(body.factors) != 2 + len(constants) or len(constants) > 1:
        return None
    (view,), (within,) = views, compares
    local = frozenset(view.outputs) - known
    inner = local & inputs(within)
    if len(inner) != 1 or len(set(view.outputs)) != len(view.outputs):
        return None
    (name,) = inner
    after, up = holds_upwards(within, name), holds_upwards(within, key)
    if after is None or up is None or key not in inputs(within) or key in view.outputs:
        return None
    return Running(view, name, local - inner, within, after, up), constants[0] if constants else None


def _scaled(test: Compare, var: str, coefficient: Const | None) -> Compare:
    if coefficient is None:
        return test
    by = {var: Op("*", (Var(var), coefficient))}
    return Compare(test.op, substitute_term(test.left, by), substitute_term(test.right, by))


def always_fails(threshold: Threshold) -> bool:
    """The test fails for a sum over nothing, whatever the rest is."""
    sides = threshold.test.left, threshold.test.right
    if any(free(side) - {threshold.total} for side in sides):
        return False
    left, right = (evaluate_term(side, {threshold.total: 0}) for side in sides)
    return left is None or right is None or not COMPARISONS[threshold.test.op](left, right)


def of_a_count(test: Compare, total: str) -> Compare | None:
    """The same test of a sum that is never negative, as one inequality: c <> 0 is c > 0, c = 0 is c <= 0."""
    sides = {test.left, test.right}
    if sides != {Var(total), ZERO_TERM} or test.op not in ("=", "<>"):
        return None
    return Compare("<=" if test.op == "=" else ">", Var(total), ZERO_TERM)


def finds_one(path: OrderPath, counts: frozenset[str], nested: Mapping[str, Query]) -> bool:
    """No entry comes before (or after) the wanted ones: they have the least (or greatest) key.

    Or they have the last key up to some place. ``nested``: what the variables stand for that are nested aggregates.
    """
    counted = [t for t in path.thresholds if t.running.source.name in counts]
    return any(_is_extreme(path, t) or _is_nearest(path, t, nested) for t in counted)


def _is_nearest(path: OrderPath, threshold: Threshold, nested: Mapping[str, Query]) -> bool:
    """[k <= p] ⋈ [s(k) >= c] where s(k) counts the keys of W up to k, and c those up to p."""
    running, test = threshold.running, threshold.test
    if test.op != ">=" or test.left != Var(threshold.total) or not isinstance(test.right, Var):
        return False
    if test.right.name not in nested or running.within.op not in ("<=", ">="):
        return False
    body = nested[test.right.name]
    parts = factors(body.query if isinstance(body, Sum) else body)
    known = frozenset(running.source.outputs) - running.summed - {running.inner}
    views = [f for f in parts if isinstance(f, View) and f.name == running.source.name]
    if len(parts) != 2 or len(views) != 1 or known != frozenset(views[0].outputs) & known:
        return False
    place = views[0].outputs[running.source.outputs.index(running.inner)]
    bounds = [f for f in parts if isinstance(f, Compare) and _with(f, place, path.key) in path.conditions]
    return bool(bounds)


def _with(test: Compare, var: str, other: str) -> Compare:
    by = {var: Var(other)}
    return Compare(test.op, substitute_term(test.left, by), substitute_term(test.right, by))


def _is_extreme(path: OrderPath, threshold: Threshold) -> bool:
    running = threshold.running
    sides = {running.within.left, running.within.right}
    same = {running.inner: path.key, **dict.fromkeys(running.summed, "")}
    mine = [v if v not in path.summed else "" for v in path.view.outputs]
    return (
        running.source.name == path.view.name
        and [same.get(v, v) for v in running.source.outputs] == mine
        and sides == {Var(running.inner), Var(path.key)}
        and running.within.op in ("<", ">")
        and (of_a_count(threshold.test, threshold.total) or threshold.test).op in ("<=", "=")
        and {threshold.test.left, threshold.test.right} == {Var(threshold.total), ZERO_TERM}
    )
