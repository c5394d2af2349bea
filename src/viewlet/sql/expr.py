"""A translated scalar expression: a term with its type and what is known about NULL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from viewlet.algebra.query import Compare, Query
from viewlet.algebra.terms import FALSE, NEGATED, NULL, TRUE, ZERO_TERM, Const, Term, Var, op
from viewlet.schema import BOOLEAN, DOUBLE, VARCHAR, Type


@dataclass(frozen=True)
class Expr:
    """``term`` is the value, NULL included. Where all ``guards`` hold it is not NULL and equals ``bare``.

    ``hidden`` are the guards that a comparison of ``bare`` does not imply: ``bare`` has a value where ``term`` is NULL
    (the 0 that a SUM of nothing is in the calculus). ``binds`` define the variables of nested aggregates in the term;
    they stand in the product where the term is used. ``type`` is None only for a bare NULL.

    A condition may say in plain factors where it is TRUE and where it is FALSE; NOT then only swaps the two.

    ``unrounded``: a DOUBLE that was computed exactly, so that the term need not be a double yet; ``is_column``: it is
    a column of a subquery or view, where SQL has rounded it.
    """

    term: Term
    type: Type | None
    bare: Term
    guards: tuple[Query, ...] = ()
    hidden: tuple[Query, ...] = ()
    binds: tuple[Query, ...] = ()
    true: tuple[Query, ...] | None = None
    false: tuple[Query, ...] | None = None
    unrounded: bool = False
    is_column: bool = False
    is_literal: bool = False  # a whole number as it is written: beside a small integer it is one, if it fits

    @property
    def nullable(self) -> bool:
        return bool(self.guards)

    @property
    def is_string_literal(self) -> bool:
        return isinstance(self.term, Const) and self.term.kind == "string" and self.type == VARCHAR

    def without_binds(self) -> Expr:
        return replace(self, binds=())


def an(expr: Expr) -> str:
    """The type with its article, for messages."""
    if expr.type is None:
        return "NULL"
    return f"{'an' if str(expr.type).startswith(('INT', 'ENUM')) else 'a'} {expr.type}"


def not_null(term: Term) -> Query:
    return Compare("=", op("is_null", term), FALSE)


def variable(name: str, type_: Type | None, nullable: bool) -> Expr:
    return Expr(Var(name), type_, Var(name), (not_null(Var(name)),) if nullable else ())


def constant(term: Const, type_: Type | None) -> Expr:
    return Expr(term, type_, term, (not_null(NULL),) if term.value is None else ())


def strict(name: str, type_: Type, *args: Expr) -> Expr:
    """An operator that is NULL exactly where an argument is."""
    return Expr(
        op(name, *(a.term for a in args)),
        type_,
        op(name, *(a.bare for a in args)),
        merge(a.guards for a in args),
        merge(a.hidden for a in args),
        merge(a.binds for a in args),
        unrounded=type_ == DOUBLE and name != "double",
    )


def rounded(expr: Expr) -> Expr:
    """A key or a column is the double that is read: rows that print the same are the same."""
    return strict("double", DOUBLE, expr) if expr.unrounded else expr


def loose(term: Term, type_: Type | None, nullable: bool, parts: Iterable[Expr]) -> Expr:
    """A term that makes or swallows NULLs (CASE, COALESCE, AND, …): its one guard is that it is not NULL itself."""
    if isinstance(term, Const):
        nullable = term.value is None
    parts = list(parts)
    guards = (not_null(term),) if nullable else ()
    unrounded = type_ == DOUBLE and any(p.unrounded for p in parts)
    return Expr(term, type_, term, guards, (), merge(p.binds for p in parts), unrounded=unrounded)


def divide(left: Expr, right: Expr, type_: Type) -> Expr:
    """x / y is also NULL where y = 0."""
    quotient = strict("/", type_, left, right)
    if isinstance(right.bare, Const) and right.bare.value not in (0, None):
        return quotient
    return replace(quotient, guards=(*quotient.guards, Compare("<>", right.bare, ZERO_TERM)))


def merge(parts: Iterable[tuple[Query, ...]]) -> tuple[Query, ...]:
    return tuple(dict.fromkeys(q for part in parts for q in part))


def compared(symbol: str, left: Expr, right: Expr) -> Expr:
    """l θ r."""
    both = strict(symbol, BOOLEAN, left, right)
    return replace(both, true=_factors(symbol, left, right), false=_factors(NEGATED[symbol], left, right))


def _factors(symbol: str, left: Expr, right: Expr) -> tuple[Query, ...]:
    """Only an ``=`` of two sides that may both be NULL needs the guards of one of them."""
    guards = left.hidden + right.hidden
    if symbol == "=" and left.nullable and right.nullable:
        guards += min(left.guards, right.guards, key=len)
    return merge([(Compare(symbol, left.bare, right.bare),), guards])


def negation(inner: Expr) -> Expr:
    return replace(strict("not", BOOLEAN, inner), true=inner.false, false=inner.true)


def conjunction(parts: Sequence[Expr]) -> Expr:
    """Three-valued AND: TRUE where every part is."""
    both = loose(op("and", *(p.term for p in parts)), BOOLEAN, any(p.nullable for p in parts), parts)
    return parts[0] if len(parts) == 1 else replace(both, true=merge(_true(p) for p in parts))


def disjunction(parts: Sequence[Expr]) -> Expr:
    """Three-valued OR: FALSE where every part is."""
    either = loose(op("or", *(p.term for p in parts)), BOOLEAN, any(p.nullable for p in parts), parts)
    return parts[0] if len(parts) == 1 else replace(either, false=merge(_true(negation(p)) for p in parts))


def null_test(inner: Expr) -> Expr:
    """IS NULL."""
    test = loose(op("is_null", inner.term) if inner.nullable else FALSE, BOOLEAN, False, [inner])
    return replace(test, false=inner.guards) if inner.nullable else test


def holds(condition: Expr) -> tuple[Query, ...]:
    """The factors that are 1 where the condition is TRUE, and 0 where it is FALSE or NULL."""
    return merge([condition.binds, _true(condition)])


def _true(condition: Expr) -> tuple[Query, ...]:
    if condition.term == TRUE:
        return ()
    return (Compare("=", condition.term, TRUE),) if condition.true is None else condition.true
