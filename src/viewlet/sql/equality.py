"""Equalities of computed values, as a join has them: lower(a.email) = lower(b.email)."""

from __future__ import annotations

from dataclasses import replace

from viewlet.algebra.functions import FUNCTIONS
from viewlet.algebra.query import Bind, Compare, Value
from viewlet.algebra.terms import Op, free
from viewlet.sql.expr import Expr, compared, merge
from viewlet.sql.scope import Names

WHOLE = frozenset({"VARCHAR", "BOOLEAN", "INTEGER", "BIGINT", "DATE", "TIMESTAMP"})


def equal(names: Names, left: Expr, right: Expr) -> Expr:
    """l = r. Where a function computes a side, both get one name, by which a map can be looked up.

    Where both may be NULL, a guard of one of them stands beside it, as beside every equality.
    """
    equality = compared("=", left, right)
    if equality.true is None or not _is_lookup(left, right):
        return equality
    shared, test = names.fresh("equal"), Compare("=", left.bare, right.bare)
    named = Bind(shared, Value(left.bare)), Bind(shared, Value(right.bare))
    return replace(equality, true=merge([named, tuple(f for f in equality.true if f != test)]))


def _is_lookup(left: Expr, right: Expr) -> bool:
    """A function on one side at least, and columns on both, of which none is on the other; no numbers with places."""
    ours, theirs = free(left.bare), free(right.bare)
    if (
        not ours
        or not theirs
        or ours & theirs
        or any(e.type is None or e.type.kind not in WHOLE for e in (left, right))
    ):
        return False
    return any(isinstance(e.bare, Op) and e.bare.name in FUNCTIONS for e in (left, right))
