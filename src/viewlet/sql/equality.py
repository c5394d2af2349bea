"""Equalities of computed texts, as a join has them: lower(a.email) = lower(b.email)."""

from __future__ import annotations

from dataclasses import replace

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.query import Bind, Compare, Value
from viewlet.algebra.terms import Op, Term, free
from viewlet.sql.expr import Expr, compared, merge
from viewlet.sql.scope import Names


def equal(names: Names, left: Expr, right: Expr) -> Expr:
    """l = r. Where a function computes a text, both sides get one name, by which a map can be looked up.

    Where both may be NULL, a guard of one of them stands beside it, as beside every equality.
    """
    found = compared("=", left, right)
    if found.true is None or not _is_lookup(left.bare, right.bare):
        return found
    shared, test = names.fresh("equal"), Compare("=", left.bare, right.bare)
    named = Bind(shared, Value(left.bare)), Bind(shared, Value(right.bare))
    return replace(found, true=merge([named, tuple(f for f in found.true if f != test)]))


def _is_lookup(left: Term, right: Term) -> bool:
    """A function on one side at least, and columns on both, of which none is on the other."""
    ours, theirs = free(left), free(right)
    return any(map(_is_computed, (left, right))) and bool(ours and theirs) and not ours & theirs


def _is_computed(term: Term) -> bool:
    return isinstance(term, Op) and term.name in FUNCTIONS and FUNCTIONS[term.name].gives == "text"
