"""Deltas of tests that nothing lies in a gap: an event in the gap splits it, and only rows beside the event change.

Let C(x) count the rows of K with u <= x, as an as-of join and a NOT EXISTS with an inequality do. Two tests E say that
no row of K lies between two places:

    E(t)     = (c := C(t)) ⋈ [c = 0]                                     none up to t
    E(v, t)  = [v <= t] ⋈ (c := C(t)) ⋈ (d := C(v)) ⋈ [d >= c]           none after v, up to t

An event that adds a row of K at @u (or takes one away) changes E only for the t from @u up to the next row of K, and
for the v that is the last one before @u:

    ΔE = ±[nothing else at @u] ⋈ [@u <= t] ⋈ [C(t) <= C(@u)] ⋈ (none before @u, or none from v up to @u)

The general rule for nested aggregates (§5.2) would go over every t and v that agrees with the event in the other
columns. K counts rows, so this is for tables of SQL alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewlet.algebra.query import (
    ZERO,
    Bind,
    Compare,
    Exists,
    Join,
    Materialize,
    Query,
    Sum,
    Union,
    Value,
    children,
    factors,
    inputs,
    join,
    map_children,
    negate,
    outputs,
    relations,
    rename,
    split_coefficient,
    sum_,
    union,
    variables,
)
from viewlet.algebra.terms import ZERO_TERM, Term, Var, free, number
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta, with_plain_locals
from viewlet.compiler.simplify import is_count, simplify
from viewlet.program.trigger import Event

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def delta_of_gaps(q: Query, e: Event) -> Query | None:
    """ΔQ, where the event splits a gap that Q tests; None where Q has no as-of join, or the event splits none.

    A test E(t) alone, as NOT EXISTS has it, is left to the other rules, which evaluate few groups again in order.
    """
    return _change(q, e) if any(gap.start is not None for gap in _all_gaps(q)) else None


def _all_gaps(q: Query) -> Iterator[_Gap]:
    match q:
        case Union() | Sum() | Join():
            yield from (gap for child in children(q) for gap in _all_gaps(child))
            yield from _gaps(factors(q))


def _change(q: Query, e: Event) -> Query | None:
    if e.relation not in relations(q):
        return None
    match q:
        case Union(parts):
            changes = [_change(b, e) for b in parts]
            if all(change is None for change in changes):
                return None
            return union(*(delta(b, e) if c is None else c for b, c in zip(parts, changes, strict=True)))
        case Sum(group, inner):
            change = _change(inner, e)
            return None if change is None else sum_((group | inputs(q)) & outputs(change), change)
        case Join(parts):
            gap = next((gap for gap in _gaps(parts) if gap.split(e) is not None), None)
            return _of_one_factor(parts, e) if gap is None else _with_gap(parts, gap, e)
    return None


def _of_one_factor(parts: tuple[Query, ...], e: Event) -> Query | None:
    """Δ(Q ⋈ S) := Q ⋈ ΔS, where the gap is inside a sum S that stands beside what the event does not change."""
    changing = [f for f in parts if e.relation in relations(f)]
    if len(changing) != 1 or not isinstance(changing[0], (Sum, Union)):
        return None
    change = _change(changing[0], e)
    return None if change is None else join(change, *(f for f in parts if f is not changing[0]))


def side_by_side(q: Query) -> Query:
    """Q with an 𝓜 for each factor of its products: what a gap keeps apart has no join that is worth a view."""
    match q:
        case Union() | Sum() | Join():
            return map_children(q, side_by_side)
        case Bind(var, inner) if relations(q):
            return Bind(var, Materialize(inner, inputs(q)))
        case Exists(inner) if relations(q):
            return Exists(Materialize(inner))
        case _:
            return Materialize(q) if relations(q) else q


def _with_gap(parts: tuple[Query, ...], gap: _Gap, e: Event) -> Query:
    """Δ(Q ⋈ E) := ΔQ ⋈ (E + ΔE) + Q ⋈ ΔE"""
    rest = join(*(f for f in parts if f not in gap.factors))
    change = _change(rest, e)
    if change is None:
        change = delta(rest, e)
    split = gap.split(e)
    assert split is not None
    terms = join(change, *gap.factors), join(change, split), join(rest, split)
    kept = outputs(join(*parts)) | inputs(join(*parts))  # of what a split counts, nothing is seen outside
    return union(*(sum_(kept & outputs(term), term) for term in terms))


# -- counts of rows up to a place --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Count:
    """(var := Sum_A(K ⋈ [u θ at])): how many rows of K lie on one side of a place."""

    bind: Bind
    group: frozenset[str]
    rows: tuple[Query, ...]
    key: str
    symbol: str
    at: Term

    def counted(self, symbol: str, at: Term, name: str) -> Bind:
        """(name := Sum_A(K ⋈ [u θ at])) with another side and place, and local variables of its own."""
        body = join(*self.rows, Compare(symbol, Var(self.key), at))
        local = variables(body) - inputs(self.bind) - free(at)
        own = {v: f"{v}.{name.rpartition('.')[2]}" for v in sorted(local)}
        return Bind(name, sum_(self.group, rename(body, own)))

    @property
    def shape(self) -> str:
        """Equal for counts of the same rows."""
        rows = rename(join(*self.rows), {self.key: "key"})
        return with_plain_locals(sum_(self.group | {"key"}, rows)).text


def _counts(parts: Sequence[Query]) -> dict[str, _Count]:
    """The counts of a product whose variable is no column, by that variable."""
    nested = [f for f in parts if isinstance(f, Bind) and relations(f)]
    return {f.var: count for f in nested if (count := _count(f)) is not None}


def _count(f: Bind) -> _Count | None:
    if not isinstance(f.query, Sum) or not is_count(f.query):
        return None
    body = factors(f.query.query)
    outer = inputs(f)
    tests = [g for g in body if inputs(g) & outer]
    if len(tests) != 1 or not isinstance(tests[0], Compare) or not f.query.group <= outer:
        return None
    rows = tuple(g for g in body if g is not tests[0])
    for symbol, key, at in _sides(tests[0]):
        if isinstance(key, Var) and key.name in outputs(join(*rows)) - outer and free(at) <= outer:
            return _Count(f, f.query.group, rows, key.name, symbol, at)
    return None


def _sides(test: Compare) -> Iterator[tuple[str, Term, Term]]:
    if test.op in _TURNED:
        yield test.op, test.left, test.right
        yield _TURNED[test.op], test.right, test.left


# -- tests of gaps -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gap:
    """``factors`` test that ``count`` is 0, or that it is no more than ``start``, the count up to the place before."""

    factors: tuple[Query, ...]
    count: _Count
    start: _Count | None = None

    def split(self, e: Event) -> Query | None:
        """ΔE; None where the event changes K in other ways than by one row, or not at all."""
        event = _changed(self.count, e)
        if event is None:
            return None
        around, sign, at = event
        c, strict, closed = self.count, self.count.symbol[0], self.count.symbol[0] + "="
        name = c.bind.var
        here, same, earlier = (f"{name}.{word}" for word in ("here", "same", "earlier"))
        slot = (
            Compare(c.symbol, at, c.at),
            c.bind,
            c.counted(closed, at, here),
            Compare("<=", Var(name), Var(here)),
        )
        alone = c.counted("=", at, same), Compare("=", Var(same), ZERO_TERM if sign > 0 else number(1))
        before = (c.counted(strict, at, earlier), *self.before(strict, at, Var(earlier)))
        split = join(*around, *slot, *alone, *before)
        return negate(split) if sign > 0 else split

    def before(self, strict: str, at: Term, earlier: Var) -> tuple[Query, ...]:
        if self.start is None:
            return (Compare("=", earlier, ZERO_TERM),)
        v = self.start
        return v.bind, Compare(">=", Var(v.bind.var), earlier), Compare(strict, v.at, at)


def _changed(count: _Count, e: Event) -> tuple[tuple[Query, ...], int, Term] | None:
    """Where the event is, as bindings and tests of its parameters; whether it adds a row; and its place @u."""
    wanted = count.group | {count.key}
    params = frozenset(e.params)
    change = simplify(delta(sum_(wanted, join(*count.rows)), e), Context(bound=params, event=e))
    sign, core = split_coefficient(change)
    if change == ZERO or sign not in (1, -1):
        return None
    places = {f.var: f.query.term for f in factors(core) if isinstance(f, Bind) and isinstance(f.query, Value)}
    plain = all(isinstance(f, (Bind, Compare)) and inputs(f) <= params for f in factors(core))
    if places.keys() != wanted or not plain or outputs(core) != wanted:
        return None
    around = tuple(f for f in factors(core) if not (isinstance(f, Bind) and f.var == count.key))
    return around, int(sign), places[count.key]


def _gaps(parts: tuple[Query, ...]) -> Iterator[_Gap]:
    counts = _counts(parts)
    names = counts.keys()
    for test in parts:
        match test:
            case Compare("=", Var(name), zero) | Compare("=", zero, Var(name)) if zero == ZERO_TERM and name in counts:
                gap = _Gap((test, counts[name].bind), counts[name])
            case Compare(">=", Var(start), Var(end)) | Compare("<=", Var(end), Var(start)) if {start, end} <= names:
                within = _between(parts, counts[start], counts[end])
                if within is None:
                    continue
                gap = _Gap((test, within, counts[start].bind, counts[end].bind), counts[end], counts[start])
            case _:
                continue
        others = [f for f in parts if f not in gap.factors]
        if not any(f.var in variables(g) for f in gap.factors if isinstance(f, Bind) for g in others):
            yield gap


def _between(parts: tuple[Query, ...], start: _Count, end: _Count) -> Compare | None:
    """[v <= t] for the places of two counts of the same rows, of which the first has those at v in it."""
    if start.shape != end.shape or start.symbol != end.symbol[0] + "=" or not isinstance(start.at, Var):
        return None
    for f in parts:
        if isinstance(f, Compare) and (end.symbol, start.at, end.at) in _sides(f):
            return f
    return None
