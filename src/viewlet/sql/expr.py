"""A translated scalar expression: a term with its type and what is known about NULL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from viewlet.algebra.query import Compare, Query
from viewlet.algebra.terms import FALSE, NULL, ZERO_TERM, Const, Term, Var, op
from viewlet.schema import Type


@dataclass(frozen=True)
class Expr:
    """``term`` is the value, NULL included. Where all ``guards`` hold it is not NULL and equals ``bare``.

    ``hidden`` are the guards that a comparison of ``bare`` does not imply: ``bare`` has a value where ``term`` is NULL
    (the 0 that a SUM of nothing is in the calculus). ``binds`` define the variables of nested aggregates in the term;
    they stand in the product where the term is used. ``type`` is None only for a bare NULL.
    """

    term: Term
    type: Type | None
    bare: Term
    guards: tuple[Query, ...] = ()
    hidden: tuple[Query, ...] = ()
    binds: tuple[Query, ...] = ()

    @property
    def nullable(self) -> bool:
        return bool(self.guards)

    @property
    def is_string_literal(self) -> bool:
        return isinstance(self.term, Const) and self.term.kind == "string"

    def without_binds(self) -> Expr:
        return replace(self, binds=())


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
    )


def loose(term: Term, type_: Type | None, nullable: bool, parts: Iterable[Expr]) -> Expr:
    """A term that makes or swallows NULLs (CASE, COALESCE, AND, …): its one guard is that it is not NULL itself."""
    if isinstance(term, Const):
        nullable = term.value is None
    return Expr(term, type_, term, (not_null(term),) if nullable else (), (), merge(p.binds for p in parts))


def divide(left: Expr, right: Expr, type_: Type) -> Expr:
    """x / y is also NULL where y = 0."""
    quotient = strict("/", type_, left, right)
    if isinstance(right.bare, Const) and right.bare.value not in (0, None):
        return quotient
    return replace(quotient, guards=(*quotient.guards, Compare("<>", right.bare, ZERO_TERM)))


def merge(parts: Iterable[tuple[Query, ...]]) -> tuple[Query, ...]:
    return tuple(dict.fromkeys(q for part in parts for q in part))


def comparison(symbol: str, left: Expr, right: Expr) -> tuple[Query, ...]:
    """l θ r as factors. Only an ``=`` of two sides that may both be NULL needs the guards of one of them."""
    guards = left.hidden + right.hidden
    if symbol == "=" and left.nullable and right.nullable:
        guards += min(left.guards, right.guards, key=len)
    return merge((left.binds, right.binds, (Compare(symbol, left.bare, right.bare),), guards))
