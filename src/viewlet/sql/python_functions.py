"""Functions of Python in a query: at the door where they take columns of one row, else where the rows meet."""

from __future__ import annotations

from sqlglot import exp

from viewlet.algebra.functions.python import PREFIX, SIGNATURES, Signature
from viewlet.errors import UnsupportedError
from viewlet.schema import Type
from viewlet.sql.derived import derived
from viewlet.sql.expr import Expr, an, rounded, strict
from viewlet.sql.expression import expression
from viewlet.sql.scope import Scope
from viewlet.sql.types import common_type, convert


def python_call(node: exp.Expr, scope: Scope) -> Expr | None:
    """None where there is no such function."""
    signature = SIGNATURES.get(node.name.lower())
    if signature is None:
        return None
    try:
        column = derived(node, scope, anyway=True)
    except UnsupportedError:  # more than the columns of one row
        column = None
    return _where_rows_meet(node, scope, signature) if column is None else column


def _where_rows_meet(node: exp.Expr, scope: Scope, signature: Signature) -> Expr:
    name, wanted = node.name.upper(), len(signature.takes)
    if len(node.expressions) != wanted:
        message = f"{name} takes {wanted} argument{'s' * (wanted != 1)}, not {len(node.expressions)}"
        raise scope.session.source.error(node, message, "give it what create_function declared")
    arguments = [_argument(a, scope, t) for a, t in zip(node.expressions, signature.takes, strict=True)]
    return strict(PREFIX + signature.name, signature.gives, *arguments)


def _argument(node: exp.Expr, scope: Scope, type_: Type) -> Expr:
    given = rounded(expression(node, scope))
    if common_type(given.type, type_) != type_:
        message, hint = f"{an(given)} where a {type_} belongs", f"cast it: CAST(x AS {type_})"
        raise scope.session.source.error(node, message, hint)
    return rounded(convert(given, type_))
