"""Aggregates over grouped subqueries that need no nested aggregate: a sum of sums is a sum.

SQL's SUM of a group without values is NULL, so the front end writes SUM(s) over a subquery's s as a nested count, a
nested sum and a CASE. These rules run once over the definition of a view, where relations are tables of SQL: a count of
rows is 0 only where there is no row. What they make linear has a delta without old and new values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    branches,
    factors,
    inputs,
    join,
    outputs,
    relations,
    rename,
    sum_,
    union,
    variables,
)
from viewlet.algebra.rewrite import Rule, rule
from viewlet.algebra.terms import FALSE, NULL, ZERO_TERM, Op, Term, Var, op
from viewlet.compiler.context import Context
from viewlet.compiler.delta import with_plain_locals
from viewlet.compiler.simplify import is_count, without
from viewlet.program.trigger import Result


def _nullable_sum(count: str, total: str) -> Op:
    """CASE WHEN count = 0 THEN NULL ELSE total END: a SUM of SQL."""
    return Op("case", (op("=", Var(count), ZERO_TERM), NULL, Var(total)))


@rule("(c := Q₁) ⋈ (s := Q₂) ⋈ [case(c = 0, NULL, s) is not NULL] = (c := Q₁) ⋈ (s := Q₂) ⋈ [c <> 0]", Join)
def sum_is_not_null(q: Query, context: Context) -> Query | None:
    names = [f.var for f in factors(q) if isinstance(f, Bind) and relations(f)]
    for f in factors(q):
        match f:
            case Compare("=", Op("is_null", (Op("case", (Op("=", (Var(c), _)), _, Var(s))) as term,)), right):
                if right == FALSE and c in names and s in names and term == _nullable_sum(c, s):
                    return join(without(factors(q), f), Compare("<>", Var(c), ZERO_TERM))
    return None


@rule("{case(c = 0, NULL, s)} ⋈ [c <> 0] = {s} ⋈ [c <> 0]", Join)
def sum_beside_its_test(q: Query, context: Context) -> Query | None:
    tested = {f.left.name for f in factors(q) if isinstance(f, Compare) and _is_nonzero(f) and isinstance(f.left, Var)}
    for f in factors(q):
        match f:
            case Value(Op("case", (Op("=", (Var(c), _)), _, Var(s))) as term):
                if c in tested and term == _nullable_sum(c, s):
                    return join(without(factors(q), f), Value(Var(s)))
    return None


def _is_nonzero(f: Compare) -> bool:
    return f.op == "<>" and f.right == ZERO_TERM


@rule("Sum_A(Exists(Q₁) ⋈ (n := Q₂) ⋈ [n <> 0] ⋈ R) = Sum_A(Exists(Q₂) ⋈ R) where Q₂ has no tuple that Q₁ has not", Sum)
def tested_aggregate(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)) if context.counted:
            for domain, n in _keyed(parts, group):
                test = Compare("<>", Var(n.var), ZERO_TERM)
                rest = tuple(f for f in parts if f not in (domain, n, test))
                if test in parts and n.var not in variables(join(*rest)) and _within(n.query, domain.query):
                    return sum_(group, join(Exists(n.query), *rest))
    return None


@rule("Sum_A(Exists(Q₁) ⋈ (s := Q₂) ⋈ {s} ⋈ R) = Sum_A(Q₂ ⋈ R) where Q₂ has no tuple that Q₁ has not", Sum)
def sum_of_sums(q: Query, context: Context) -> Query | None:
    match q:
        case Sum(group, Join(parts)) if context.counted:
            for domain, n in _keyed(parts, group):
                value = Value(Var(n.var))
                rest = tuple(f for f in parts if f not in (domain, n, value))
                once = parts.count(value) == 1 and n.var not in variables(join(*rest))
                if once and _within(n.query, domain.query):
                    return sum_(group, join(n.query, *rest))
    return None


def _keyed(parts: tuple[Query, ...], group: frozenset[str]) -> Iterator[tuple[Exists, Bind]]:
    """Each Exists(Q₁) with each (n := Q₂) over the same columns, which Q₂ needs nothing else for."""
    domains = [f for f in parts if isinstance(f, Exists) and not inputs(f)]
    nested = [f for f in parts if isinstance(f, Bind) and relations(f) and not inputs(f.query) and f.var not in group]
    yield from ((d, n) for d in domains for n in nested if outputs(n.query) == outputs(d))


# -- numbers that are only compared with 0 -----------------------------------------------------------------------------


def shows_all(result: Result) -> bool:
    """Nothing is known of what becomes of its numbers: windows count them, and a cell sends them to those that sum."""
    return bool(result.windows) or not result.columns


def only_tested(result: Result) -> frozenset[str]:
    """The looked-up numbers of which the rows of a view show no more than whether they are 0."""
    if shows_all(result):
        return frozenset()
    orders = (*result.order, *(order for gather in result.gathers for order in gather.order))
    terms = [c.term for c in result.columns] + [o.term for o in orders] + [g.term for g in result.gathers]
    terms += [e.place for e in result.extremes if e.place is not None]
    shown = frozenset[str]().union(
        *map(more_than_tested, [*terms, *([] if result.having is None else [result.having])])
    )
    return frozenset(var for var, _ in result.lookups) - shown


def more_than_tested(term: Term) -> frozenset[str]:
    """The variables of a term, but for those in tests v = 0."""
    match term:
        case Var(name):
            return frozenset({name})
        case Op("=", (Var(), right)) if right == ZERO_TERM:
            return frozenset()
        case Op(_, args):
            return frozenset[str]().union(*map(more_than_tested, args))
    return frozenset()


def as_count(q: Query) -> Query:
    """Sum_A(Q) for Sum_A(Exists(Q)), branch by branch: another number, 0 in the same places, where Q counts rows."""
    return union(*map(_as_count, branches(q))) if is_count(q) else q


def _as_count(q: Query) -> Query:
    parts = factors(q.query if isinstance(q, Sum) else q)
    groups = [f for f in parts if relations(f)]
    if len(groups) != 1 or not isinstance(groups[0], Exists):
        return q
    return sum_(outputs(q), join(groups[0].query, *(f for f in parts if f not in groups)))


# -- where one query has tuples, another has ---------------------------------------------------------------------------


def _within(narrow: Query, wide: Query) -> bool:
    """Wherever ``narrow`` is not 0, ``wide`` is not: each product of the first holds one of the second, but for names.

    ``wide`` counts rows. So it is 0 only where none of its products has a row.
    """
    if not is_count(wide):
        return False
    return all(any(_holds(n, w) for w in branches(wide)) for n in branches(narrow))


def _holds(narrow: Query, wide: Query) -> bool:
    """A renaming of what ``wide`` sums out makes each of its factors one of ``narrow``."""
    fixed = {v: v for v in outputs(wide)}
    there = _product(narrow)
    parts = _product(wide)
    named = [f for f in parts if isinstance(f, Rel)] + [f for f in parts if _is_nested(f)]
    tests = [f for f in parts if f not in named]
    return any(all(rename(f, names) in there for f in tests) for names in _renamings(named, there, fixed))


def _product(q: Query) -> tuple[Query, ...]:
    """The factors under a Sum; what nested ones sum out is named alike, so that equal ones are equal."""
    parts = factors(q.query if isinstance(q, Sum) else q)
    return tuple(Bind(f.var, with_plain_locals(f.query)) if _is_nested(f) else f for f in parts)


def _is_nested(f: Query) -> TypeGuard[Bind]:
    return isinstance(f, Bind) and bool(relations(f))


def _renamings(
    named: Sequence[Query], there: tuple[Query, ...], names: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Every way to find what gives variables their values among the factors that are ``there``."""
    if not named:
        yield names
        return
    first, *rest = named
    for f in there:
        more = _renamed(first, f, names)
        if more is not None:
            yield from _renamings(rest, there, more)


def _renamed(f: Query, there: Query, names: Mapping[str, str]) -> Mapping[str, str] | None:
    """``names`` and what makes ``f`` the factor ``there``, a table or a nested aggregate; None where nothing does."""
    match f, there:
        case Rel(name, ours), Rel(other, theirs) if name == other:
            more = dict(names)
            return more if all(more.setdefault(v, w) == w for v, w in zip(ours, theirs, strict=True)) else None
        case Bind(var, query), Bind(other, value) if rename(query, names) == value:
            return {**names, var: other} if names.get(var, other) == other else None
    return None


SUMS_OF_GROUPS: tuple[Rule[Context], ...] = (
    sum_is_not_null,
    sum_beside_its_test,  # before tested_aggregate, which takes the test away
    tested_aggregate,
    sum_of_sums,
)
