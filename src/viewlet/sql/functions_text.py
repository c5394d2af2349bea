"""Functions of texts: their SQL, their types, and what becomes a cheaper test."""

from __future__ import annotations

from sqlglot import exp

from viewlet.schema import BIGINT, BOOLEAN, VARCHAR
from viewlet.sql.expr import Expr, an, strict
from viewlet.sql.expression import expression, translates
from viewlet.sql.scope import Scope
from viewlet.sql.types import convert


def text(node: exp.Expr, scope: Scope, what: str) -> Expr:
    """An argument that is a text."""
    found = expression(node, scope)
    if found.type in (VARCHAR, None):
        return convert(found, VARCHAR)
    raise scope.session.source.error(node, f"{what} takes a VARCHAR, not {an(found)}", "cast it: CAST(x AS VARCHAR)")


@translates(exp.StartsWith)
def _starts_with(node: exp.Expr, scope: Scope) -> Expr:
    return strict("starts_with", BOOLEAN, *(text(n, scope, "starts_with") for n in (node.this, node.expression)))


@translates(exp.Chr)
def _chr(node: exp.Expr, scope: Scope) -> Expr:
    (code,) = node.expressions
    return strict("chr", VARCHAR, expression(code, scope))


@translates(exp.Length)
def _length(node: exp.Expr, scope: Scope) -> Expr:
    return strict("length", BIGINT, text(node.this, scope, "length"))
