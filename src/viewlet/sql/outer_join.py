"""Outer joins: the rows that have partners, and those without, whose other columns are NULL.

R LEFT JOIN S ON θ is R ⋈ (S ⋈ [θ] + (n := Sum(S ⋈ [θ])) ⋈ [n = 0] ⋈ (c := NULL) …) with c … the columns of S.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from viewlet.algebra.query import (
    Bind,
    Compare,
    Join,
    Query,
    Sum,
    Union,
    Value,
    inputs,
    join,
    sum_,
    union,
)
from viewlet.algebra.terms import COMPARISONS, NULL, ZERO_TERM, Const, Term, Var, substitute_term
from viewlet.sql.expr import not_null, rounded, variable
from viewlet.sql.grouping import bound
from viewlet.sql.scope import Field, Names


@dataclass(frozen=True)
class Rows:
    """Rows of a FROM: a product, and the columns that can be named."""

    factors: tuple[Query, ...] = ()
    fields: tuple[Field, ...] = ()

    def beside(self, other: Rows) -> Rows:
        return Rows(self.factors + other.factors, self.fields + other.fields)

    def where(self, condition: tuple[Query, ...]) -> Rows:
        return replace(self, factors=self.factors + condition)

    @property
    def product(self) -> Query:
        return join(*self.factors)

    @property
    def variables(self) -> frozenset[str]:
        """Of rows whose columns are variables."""
        return frozenset(f.expr.term.text for f in self.fields)

    def named(self, names: Names) -> Rows:
        """The same rows under variables that only they give: such a column can be NULL instead."""
        product, fields = self.product, list[Field]()
        for f in self.fields:
            var, product = bound(names, product, rounded(f.expr).term, f.name)
            fields.append(replace(f, expr=variable(var, f.expr.type, f.expr.nullable)))
        rows = Rows((), tuple(fields))
        rows = replace(rows, factors=(sum_(rows.variables, product),))
        names.forget_rows_inside(rows.product)
        return rows

    def nullable(self) -> Rows:
        """The same columns where they may be NULL for want of a row."""
        fields = (replace(f, expr=variable(f.expr.term.text, f.expr.type, True)) for f in self.fields)
        return replace(self, fields=tuple(fields))


def left_join(left: Rows, right: Rows, condition: tuple[Query, ...], names: Names) -> Rows:
    """R ⋈ (S ⋈ [θ] + padding): each row of R with its partners, or with NULLs."""
    return Rows((*left.factors, _partners(right, condition, names)), left.fields + right.nullable().fields)


def right_join(left: Rows, right: Rows, condition: tuple[Query, ...], names: Names) -> Rows:
    return Rows((*right.factors, _partners(left, condition, names)), left.nullable().fields + right.fields)


def full_join(left: Rows, right: Rows, condition: tuple[Query, ...], names: Names) -> Rows:
    """R LEFT JOIN S, and the rows of S without a partner."""
    columns = left.variables | right.variables
    first = join(left.product, _partners(right, condition, names))
    alone = join(right.product, _padding(left, condition, names))
    first, alone = names.apart([sum_(columns, first), sum_(columns, alone)], columns)
    return Rows((union(first, alone),), left.nullable().fields + right.nullable().fields)


def semi_join(left: Rows, right: Rows, condition: tuple[Query, ...], names: Names, symbol: str) -> Rows:
    """R ⋈ (n := Sum(S ⋈ [θ])) ⋈ [n <> 0], for ANTI [n = 0]: rows of R that have a partner, or none."""
    return replace(left, factors=left.factors + _counted(right, condition, names, symbol))


def _partners(rows: Rows, condition: tuple[Query, ...], names: Names) -> Query:
    return union(sum_(rows.variables, join(rows.product, *condition)), _padding(rows, condition, names))


def _padding(rows: Rows, condition: tuple[Query, ...], names: Names) -> Query:
    """One row of NULLs where the condition holds for none of the rows."""
    nulls = (Bind(var, Value(NULL)) for var in sorted(rows.variables))
    return sum_(rows.variables, join(*_counted(rows, condition, names, "="), *nulls))


def _counted(rows: Rows, condition: tuple[Query, ...], names: Names, symbol: str) -> tuple[Query, ...]:
    count = names.fresh("partners")
    matches = sum_((), join(*rows.factors, *condition))
    _, matches = names.apart([matches, matches])
    return Bind(count, matches), Compare(symbol, Var(count), ZERO_TERM)


# -- conditions that no row of NULLs meets -----------------------------------------------------------------------------


def without_rejected(product: tuple[Query, ...]) -> tuple[Query, ...]:
    """Q ⋈ (S + (c := NULL) ⋈ N) ⋈ [θ(c)] = Q ⋈ S ⋈ [θ(c)] where θ(NULL) does not hold: the join is an inner one.

    So it is before the branches multiply, and what is left of one join may reject the NULLs of another.
    """
    while True:
        tests = [test for f in product for test in _tests(f)]
        after = tuple(_kept(f, tests) for f in product)
        if after == product:
            return product
        product = after


def _tests(q: Query) -> Iterator[Compare]:
    """The comparisons that every tuple of Q meets."""
    match q:
        case Compare():
            yield q
        case Join(parts):
            for f in parts:
                yield from _tests(f)
        case Sum(group, inner):
            yield from (test for test in _tests(inner) if inputs(test) <= group | inputs(q))


def _kept(q: Query, tests: list[Compare]) -> Query:
    match q:
        case Union(parts):
            met = [_kept(b, tests) for b in parts if not any(_rejects(test, _nulls(b)) for test in tests)]
            return union(*met) if met else q
        case Join(parts):
            return join(*(_kept(f, tests) for f in parts))
        case Sum(group, inner):
            return sum_(group, _kept(inner, tests))
        case _:
            return q


def _nulls(branch: Query) -> frozenset[str]:
    """The columns that are NULL in every tuple."""
    match branch:
        case Bind(var, Value(term)) if term == NULL:
            return frozenset({var})
        case Join(parts):
            return frozenset[str]().union(*map(_nulls, parts))
        case Sum(group, inner):
            return _nulls(inner) & group
        case _:
            return frozenset()


def _rejects(test: Compare, nulls: frozenset[str]) -> bool:
    """The comparison does not hold where these variables are NULL, whatever the others are."""
    if nulls.isdisjoint(inputs(test)):
        return False
    by: dict[str, Term] = dict.fromkeys(nulls, NULL)
    left, right = substitute_term(test.left, by), substitute_term(test.right, by)
    if NULL in (left, right):
        return True
    return isinstance(left, Const) and isinstance(right, Const) and not COMPARISONS[test.op](left.value, right.value)


def never_null(fields: tuple[Field, ...], product: tuple[Query, ...]) -> tuple[Field, ...]:
    """The columns, of which one that a condition tests is not NULL behind it: no map counts its NULLs, nothing asks."""
    tests = [test for f in product for test in _tests(f)]
    return tuple(_settled(field, tests) for field in fields)


def _settled(field: Field, tests: list[Compare]) -> Field:
    var = field.expr.term
    if not isinstance(var, Var) or field.expr.guards != (not_null(var),):
        return field
    is_tested = any(_rejects(test, frozenset({var.name})) for test in tests)
    return replace(field, expr=replace(field.expr, guards=())) if is_tested else field
