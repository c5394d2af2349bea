"""Lowering: a statement of the calculus becomes a loop nest.

⋈ is nesting, + is sequence, Sum is a running total where its groups are bound and nothing at all where they are not:
the change is linear, so adding the parts one by one adds their sum. Only what is not linear (a nested aggregate,
Exists) must be complete before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from typing_extensions import assert_never

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import (
    Atom,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    atoms,
    branches,
    children,
    factors,
    outputs,
    rename,
    variables,
)
from viewlet.algebra.terms import FALSE, NULL, ZERO_TERM, Const, Op, Term, Var
from viewlet.algebra.turns import is_turns
from viewlet.loops.determined import Determined, determined_columns
from viewlet.loops.infer import is_count
from viewlet.loops.monotone import Ranges, admits_unknown, both, holds_upwards, is_known, ranges_of
from viewlet.loops.names import columns_of
from viewlet.loops.nulls import Columns, is_plain, may_be_null, nullable_columns, solid_after
from viewlet.loops.order_paths import (
    OrderPath,
    Threshold,
    Totals,
    always_fails,
    finds_one,
    found_by,
    needs_a_scan,
    next_factor,
    of_a_count,
    ordered_path,
)
from viewlet.loops.steps import (
    Add,
    Block,
    Cut,
    EachGroup,
    EachSlice,
    Emit,
    Factor,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Product,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.program.trigger import Program


@dataclass(frozen=True)
class Scope:
    """The variables that have a value here, and those of them that cannot be NULL."""

    bound: frozenset[str]
    solid: frozenset[str]
    totals: Totals = field(default_factory=dict)  # those that are nested aggregates
    opened: frozenset[str] = frozenset()  # those that name a slice whose order is wanted
    nested: Mapping[str, Query] = field(default_factory=dict)  # what those stand for that are nested aggregates
    by_rows: bool = False  # a tick: the rows in a range are few, however many groups there are

    def having(self, names: frozenset[str], solid: frozenset[str]) -> Scope:
        return replace(self, bound=self.bound | names, solid=self.solid | solid)

    def nullable(self, term: Term) -> bool:
        return may_be_null(term, self.solid)

    def plain(self, *terms: Term) -> bool:
        return all(is_plain(t, self.solid) for t in terms)


Then = Callable[[Scope, Product], Block]


@dataclass
class Lowering:
    """Lowers the statements of one program; ``columns`` says where NULL can be."""

    columns: Columns
    counts: frozenset[str] = frozenset()  # views whose multiplicities are never negative
    ordered: bool = True  # False: no ordered access paths, as in the paper
    determined: Determined = field(default_factory=dict)  # columns of views that are values of groups
    tested: frozenset[str] = frozenset()  # views that leave out some of the rows of their relations
    numbers: count[int] = field(default_factory=count)

    @staticmethod
    def of(program: Program) -> Lowering:
        counts = frozenset(v.name for v in program.views if counts_rows(v.definition))
        determined = {v.name: columns for v in program.views if (columns := determined_columns(v))}
        tested = frozenset(v.name for v in program.views if leaves_out(v.definition))
        return Lowering(nullable_columns(program), counts, program.ordered, determined, tested)

    def change(self, expression: Query, key: tuple[str, ...], scope: Scope, view: str = "") -> Block:
        """The change that ``expression`` is to ``view``, tuple by tuple."""
        return self.query(expression, scope, lambda _, product: (Emit(key, product, view),))

    def query(self, q: Query, scope: Scope, then: Then, needed: frozenset[str] | None = None) -> Block:
        """For each tuple of Q, with its multiplicity as a product: what ``then`` makes of it.

        ``needed``: the outputs that ``then`` asks for, where it does not ask for all; those beside them are summed out.
        """
        match q:
            case Rel() | Delta() | View():
                return self.atom(q, scope, then)
            case Value(term):
                return then(scope, (Factor(term, scope.nullable(term), scope.plain(term)),))
            case Compare(_, left, right):
                nullable = scope.nullable(left) or scope.nullable(right)
                inside = scope.having(frozenset(), solid_after(q) & scope.bound)
                return (Test(q, nullable, scope.plain(left, right), then(inside, ())),)
            case Bind(var, Value(term)):
                return self.computed(var, term, scope, then)
            case Bind(var, inner):
                return self.nested_aggregate(var, inner, scope, then)
            case Exists(View() as view) if len(set(view.outputs)) == len(view.outputs):
                return self.atom(view, scope, lambda s, _: then(s, ()))
            case Exists(inner):
                return self.exists(inner, scope, then)
            case Sum(group, inner) if group <= scope.bound and loops(inner, scope.bound):
                return self.scalar(inner, scope, then)
            case Sum(group, inner):
                return self.inline(group, inner, scope, then)
            case Union() if outputs(q) <= scope.bound:
                return self.scalar(q, scope, then)
            case Union(parts):
                return tuple(step for part in parts for step in self.query(part, scope, then, needed))
            case Join(parts):
                return self.product(parts, scope, (), outputs(q) if needed is None else needed, then)
            case Materialize():
                raise ValueError(f"{q.text} is not decided yet")
            case _:
                assert_never(q)

    def product(
        self, parts: tuple[Query, ...], scope: Scope, so_far: Product, needed: frozenset[str], then: Then
    ) -> Block:
        """Q₁ ⋈ Q₂ ⋈ …: each inside the one before, in an order that is right and cheap.

        Of two that cost the same comes first what may well find nothing: a view that leaves out some rows.
        """
        if not parts:
            return then(scope, so_far)
        parts = tuple(sorted(parts, key=lambda f: self.tested.isdisjoint(a.name for a in atoms(f))))
        around = scope.bound, needed, scope.totals, scope.opened, scope.by_rows, self.determined
        path = ordered_path(parts, *around) if self.ordered else None
        if path is not None and needs_a_scan(path, parts, scope.bound):
            path = None
        chosen = next_factor(parts, path, scope.bound)

        def after(parts: tuple[Query, ...]) -> Then:
            return lambda s, p: self.product(parts, s, so_far + p, needed, then)

        if path is None or chosen is not path.atom:
            others = without(parts, chosen)
            once = is_turns(chosen) or (is_lookup(chosen) and any(map(has_lookup, others)))
            lowered = self.collected if once and not outputs(chosen) <= scope.bound else self.query
            return lowered(chosen, scope, after(others))
        rest = after(tuple(f for f in parts if f not in (path.atom, *path.replaced)))
        unknown = self.unknown_key(path, scope, parts, after)
        if path.is_sum and path.open_:
            known = (Compare("=", Op("is_null", (Var(path.key),)), FALSE),) if unknown else ()
            return (*self.each_slice(path, scope, after(parts + known)), *unknown)
        return (*self.ranged(path, scope, rest), *unknown)

    def atom(self, atom: Atom, scope: Scope, then: Then) -> Block:
        """A lookup where every column is bound, else a loop over the entries that agree."""
        names = columns_of(atom)
        value = self.fresh("m")
        nullable = self.columns[atom.name]
        solid = frozenset(n for n, may in zip(names, nullable, strict=True) if not may) | {value}
        body = then(scope.having(frozenset(names) | {value}, solid), (Factor(Var(value)),))
        if frozenset(names) <= scope.bound:
            return (Get(atom, value, body),)
        return (Loop(atom, frozenset(names) & scope.bound, value, body),)

    def computed(self, var: str, term: Term, scope: Scope, then: Then) -> Block:
        """⟨x: t⟩ ↦ 1: a name for t, or a test where x has a value already."""
        if var in scope.bound:
            return (Same(var, term, scope.plain(term), then(scope, ())),)
        nullable = scope.nullable(term)
        inside = scope.having(frozenset({var}), frozenset() if nullable else frozenset({var}))
        return (Let(var, term, scope.plain(term)), *then(inside, ()))

    def nested_aggregate(self, var: str, inner: Query, scope: Scope, then: Then) -> Block:
        total = self.fresh("total")
        inside = scope.having(frozenset({total}), frozenset({total}))
        totals = {**inside.totals, var: found_by(Bind(var, inner))}
        inside = replace(inside, totals=totals, nested={**inside.nested, var: inner})
        return (self.total(total, inner, scope), *self.computed(var, Var(total), inside, then))

    def scalar(self, q: Query, scope: Scope, then: Then) -> Block:
        """A sum without open groups: added up first, then one factor."""
        if self.ordered and (straight := self.range_total(q, scope, then)):
            return straight
        total = self.fresh("total")
        inside = scope.having(frozenset({total}), frozenset({total}))
        return (self.total(total, q, scope), Nonzero(total, then(inside, (Factor(Var(total)),))))

    def inline(self, group: frozenset[str], inner: Query, scope: Scope, then: Then) -> Block:
        """A sum with open groups, part by part; its local variables get names of their own, as the parts stay open."""
        names = {v: self.fresh(f"{v}_") for v in sorted(variables(inner) - group - scope.bound)}
        return self.query(
            rename(inner, names), scope, lambda s, product: then(scope.having(group, s.solid & group), product), group
        )

    def total(self, total: str, q: Query, scope: Scope) -> Total:
        steps = (self.query(b, scope, lambda _, product: (Add(total, product),), frozenset()) for b in branches(q))
        return Total(total, tuple(step for block in steps for step in block))

    def exists(self, q: Query, scope: Scope, then: Then) -> Block:
        """1 where the multiplicity is not 0; with open outputs, the tuples are collected first."""
        keys = tuple(sorted(outputs(q) - scope.bound))
        if not keys:
            total = self.fresh("total")
            return (self.total(total, q, scope), Nonzero(total, then(scope, ())))
        group = self.fresh("group")
        body = self.query(q, scope, lambda _, product: (Put(group, keys, product),))
        inside = scope.having(frozenset(keys), frozenset())
        return (Group(group, body), EachGroup(group, keys, then(inside, ())))

    def collected(self, q: Query, scope: Scope, then: Then) -> Block:
        """The tuples of a union, gathered so that what follows stands there once and not in each branch."""
        keys, group, value = tuple(sorted(outputs(q) - scope.bound)), self.fresh("group"), self.fresh("m")
        body = self.query(q, scope, lambda _, product: (Put(group, keys, product),))
        inside = scope.having(frozenset({*keys, value}), frozenset({value}))
        return (Group(group, body), EachGroup(group, keys, then(inside, (Factor(Var(value)),)), value))

    # -- ordered access paths ------------------------------------------------------------------------------------------

    def each_slice(self, path: OrderPath, scope: Scope, then: Then) -> Block:
        """A value for each open column; the path is then one of a slice."""
        names = path.view.outputs
        solid = frozenset(n for n, may in zip(names, self.columns[path.view.name], strict=True) if not may)
        inside = scope.having(path.open_, solid & path.open_)
        body = then(replace(inside, opened=inside.opened | path.open_), ())
        bound = frozenset(names) & scope.bound
        return (EachSlice(path.view, bound, path.key, path.summed, body),)

    def ranged(self, path: OrderPath, scope: Scope, then: Then) -> Block:
        """The entries in the ranges that the path allows: added up, or one by one."""
        steps, order = self.order(path, scope)
        bound = frozenset(path.view.outputs) & scope.bound
        if path.is_sum:
            total = self.fresh("total")
            inside = scope.having(frozenset({total}), frozenset({total}))
            body = then(inside, (Factor(Var(total)),))
            return (*steps, RangeSum(total, path.view, bound, order), Nonzero(total, body))
        (loop,) = self.query(path.atom, scope, then)
        assert isinstance(loop, Loop)
        return (*steps, replace(loop, order=order))

    def order(self, path: OrderPath, scope: Scope) -> tuple[Block, Order]:
        """The ranges of keys, and the runs that must be known for them."""
        steps: list[Step] = []
        inside = scope.having(frozenset({path.key}), frozenset({path.key}))

        def cut(compare: Compare) -> Ranges | None:
            return self.cut(compare, path.key, inside)

        ranges: Ranges | None = ((),)
        for condition in path.conditions:
            ranges = both(ranges, ranges_of(condition, cut))
        for threshold in path.thresholds:
            ranges = both(ranges, self.runs(threshold, path.key, inside, steps))
        assert ranges is not None, f"{path.view.text} has no ranges of {path.key}"
        return tuple(steps), Order(path.key, ranges, finds_one(path, self.counts, scope.nested))

    def cut(self, compare: Compare, var: str, scope: Scope) -> Ranges | None:
        if is_known(compare, var):
            return ((),)
        up = holds_upwards(compare, var)
        sides = compare.left, compare.right
        nullable = any(map(scope.nullable, sides))
        return None if up is None else ((Cut(compare, up, nullable, scope.plain(*sides)),),)

    def runs(self, threshold: Threshold, key: str, scope: Scope, steps: list[Step]) -> Ranges | None:
        """[s(k) θ c]: the runs of the running sum s, and k in one of them."""
        running, total = threshold.running, threshold.total
        source = running.source
        inside = scope.having(frozenset({running.inner, total}), frozenset({running.inner, total}))
        sides = running.within.left, running.within.right
        nullable, plain = any(map(inside.nullable, sides)), inside.plain(*sides)

        def run(compare: Compare) -> Ranges | None:
            cuts = self.cut(compare, total, inside)
            if cuts is None or not isinstance(cuts[0][0], Cut):
                return None
            name = self.fresh("runs")
            bound = frozenset(source.outputs) - {running.inner} - running.summed
            steps.append(Runs(name, source, bound, running.inner, running.after, total, cuts[0][0]))
            return ((InRun(name, running.within, running.inner, running.up, nullable, plain),),)

        test = threshold.test
        if source.name in self.counts and (simpler := of_a_count(test, total)):
            test = simpler
        return ranges_of(test, run)

    def unknown_key(
        self, path: OrderPath, scope: Scope, parts: tuple[Query, ...], after: Callable[[tuple[Query, ...]], Then]
    ) -> Block:
        """The entries whose key is NULL, which stand in no order: no comparison with it holds, running sums are 0."""
        if not self.admits_unknown(path):
            return ()
        totals = frozenset(t.total for t in path.thresholds)
        values = [Let(path.key, NULL, False), *(Let(total, ZERO_TERM, True) for total in sorted(totals))]
        rest = tuple(f for f in parts if not (isinstance(f, Bind) and f.var in totals))
        return (*values, *after(rest)(scope.having(totals | {path.key}, totals), ()))

    def admits_unknown(self, path: OrderPath) -> bool:
        may_be = self.columns[path.view.name][path.view.outputs.index(path.key)]
        admitted = all(admits_unknown(c, path.key) for c in path.conditions)
        return may_be and admitted and not any(map(always_fails, path.thresholds))

    def range_total(self, q: Query, scope: Scope, then: Then) -> Block | None:
        """A sum that is one range sum needs no loop: it is there for what follows as soon as its bounds are."""
        known = scope.bound, frozenset[str](), scope.totals, scope.opened
        path = ordered_path(factors(q), *known) if isinstance(q, Join) else None
        if path is None or not path.is_sum or path.open_ or self.admits_unknown(path):
            return None
        rest = [f for f in factors(q) if f is not path.atom and f not in path.replaced]
        if any(not isinstance(f, (Bind, Value)) for f in rest):
            return None
        names = {v: self.fresh(f"{v}_") for v in sorted(variables(q) - scope.bound)}
        return self.product(factors(rename(q, names)), scope, (), frozenset(), then)

    def fresh(self, stem: str) -> str:
        """A name that no variable of a query has."""
        return f"${stem}{next(self.numbers)}"


def without(parts: tuple[Query, ...], taken: Query) -> tuple[Query, ...]:
    i = parts.index(taken)
    return parts[:i] + parts[i + 1 :]


def is_lookup(q: Query) -> bool:
    """A union of an outer join, one of whose branches is a row of NULLs, or a relation with the row of an event."""
    if not isinstance(q, Union):
        return False
    parts = [factors(b.query if isinstance(b, Sum) else b) for b in branches(q)]
    padded = any(isinstance(f, Bind) and f.query == Value(NULL) for fs in parts for f in fs)
    reads, updates = [fs for fs in parts if len(fs) == 1 and isinstance(fs[0], View)], list(filter(_is_row, parts))
    return padded or (bool(updates) and len(reads) == 1 and len(reads) + len(updates) == len(parts))


def _is_row(parts: tuple[Query, ...]) -> bool:
    """(a := @a) ⋈ (b := @b) …, or ΔR(a, b): what an event adds to a relation."""
    named = [f.query for f in parts if isinstance(f, Bind)]
    rest = [f for f in parts if not isinstance(f, Bind)]
    return all(isinstance(q, Value) and isinstance(q.term, Var) for q in named) and all(
        isinstance(f, (Value, Delta)) for f in rest
    )


def has_lookup(q: Query) -> bool:
    return is_lookup(q) or (isinstance(q, (Join, Sum)) and any(map(has_lookup, children(q))))


def counts_rows(q: Query) -> bool:
    """The multiplicities count rows, and are never negative."""
    match q:
        case Value(Const(int() as value)):
            return value >= 0
        case _:
            return is_count(q) and all(map(counts_rows, () if isinstance(q, (Bind, Exists)) else children(q)))


def leaves_out(q: Query) -> bool:
    """Rows of a relation stand in the query only where they meet a test."""
    return isinstance(q, Compare) or any(
        leaves_out(child) for child in children(q) if not isinstance(q, (Bind, Exists))
    )


def loops(q: Query, bound: frozenset[str]) -> bool:
    """Evaluating Q where ``bound`` have values goes over more than one entry."""
    match q:
        case Rel() | Delta() | View():
            return not frozenset(columns_of(q)) <= bound
        case Join(parts):
            for f in join_order(parts, bound):
                if loops(f, bound):
                    return True
                bound |= outputs(f)
            return False
        case Sum(_, inner) | Exists(inner) | Bind(_, inner) | Materialize(inner):
            return loops(inner, bound)
        case Union(parts):
            return not outputs(q) <= bound or any(loops(p, bound) for p in parts)
        case Value() | Compare():
            return False
