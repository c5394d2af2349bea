"""Lowering: a statement of the calculus becomes a loop nest.

⋈ is nesting, + is sequence, Sum is a running total where its groups are bound and nothing at all where they are not:
the change is linear, so adding the parts one by one adds their sum. Only what is not linear (a nested aggregate,
Exists) must be complete before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    branches,
    outputs,
    rename,
    variables,
)
from viewlet.algebra.terms import Term, Var
from viewlet.program.loops import (
    Add,
    Block,
    EachGroup,
    Emit,
    Factor,
    Get,
    Group,
    Let,
    Loop,
    Nonzero,
    Product,
    Put,
    Same,
    Test,
    Total,
)
from viewlet.program.names import columns_of, each_name_once
from viewlet.program.nulls import Columns, is_plain, may_be_null, solid_after


@dataclass(frozen=True)
class Scope:
    """The variables that have a value here, and those of them that cannot be NULL."""

    bound: frozenset[str]
    solid: frozenset[str]

    def having(self, names: frozenset[str], solid: frozenset[str]) -> Scope:
        return Scope(self.bound | names, self.solid | solid)

    def nullable(self, term: Term) -> bool:
        return may_be_null(term, self.solid)

    def plain(self, *terms: Term) -> bool:
        return all(is_plain(t, self.solid) for t in terms)


Then = Callable[[Scope, Product], Block]


@dataclass
class Lowering:
    """Lowers the statements of one program; ``columns`` says where NULL can be."""

    columns: Columns
    numbers: count[int] = field(default_factory=count)

    def change(self, expression: Query, key: tuple[str, ...], scope: Scope, view: str = "") -> Block:
        """The change that ``expression`` is to ``view``, tuple by tuple."""
        block = self.query(expression, scope, lambda _, product: (Emit(key, product, view),))
        return each_name_once(block, set(), self.numbers)

    def query(self, q: Query, scope: Scope, then: Then) -> Block:
        """For each tuple of Q, with its multiplicity as a product: what ``then`` makes of it."""
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
            case Exists(inner):
                return self.exists(inner, scope, then)
            case Sum(group, inner) if group <= scope.bound and loops(inner, scope.bound):
                return self.scalar(inner, scope, then)
            case Sum(group, inner):
                return self.inline(group, inner, scope, then)
            case Union() if outputs(q) <= scope.bound:
                return self.scalar(q, scope, then)
            case Union(parts):
                return tuple(step for part in parts for step in self.query(part, scope, then))
            case Join(parts):
                return self.product(join_order(parts, scope.bound), scope, (), then)
            case Materialize():
                raise ValueError(f"{q.text} is not decided yet")
            case _:
                assert_never(q)

    def product(self, parts: Sequence[Query], scope: Scope, so_far: Product, then: Then) -> Block:
        """Q₁ ⋈ Q₂ ⋈ …: each inside the one before."""
        if not parts:
            return then(scope, so_far)
        return self.query(parts[0], scope, lambda s, p: self.product(parts[1:], s, so_far + p, then))

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
        return (self.total(total, inner, scope), *self.computed(var, Var(total), inside, then))

    def scalar(self, q: Query, scope: Scope, then: Then) -> Block:
        """A sum without open groups: added up first, then one factor."""
        total = self.fresh("total")
        inside = scope.having(frozenset({total}), frozenset({total}))
        return (self.total(total, q, scope), Nonzero(total, then(inside, (Factor(Var(total)),))))

    def inline(self, group: frozenset[str], inner: Query, scope: Scope, then: Then) -> Block:
        """A sum with open groups, part by part; its local variables get names of their own, as the parts stay open."""
        names = {v: self.fresh(f"{v}_") for v in sorted(variables(inner) - group - scope.bound)}
        return self.query(
            rename(inner, names), scope, lambda s, product: then(scope.having(group, s.solid & group), product)
        )

    def total(self, total: str, q: Query, scope: Scope) -> Total:
        steps = (self.query(b, scope, lambda _, product: (Add(total, product),)) for b in branches(q))
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

    def fresh(self, stem: str) -> str:
        """A name that no variable of a query has."""
        return f"${stem}{next(self.numbers)}"


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
