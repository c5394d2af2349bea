"""Row values (a, b), and IS [NOT] DISTINCT FROM: comparisons in which a NULL equals a NULL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.terms import FALSE, NEGATED, op
from viewlet.schema import BOOLEAN
from viewlet.sql.expr import Expr, compared, conjunction, disjunction, loose, negation, null_test
from viewlet.sql.expression import COMPARISONS, expression, matched, translates
from viewlet.sql.scope import Scope
from viewlet.sql.unsupported import refuse


@translates(exp.NullSafeEQ, exp.NullSafeNEQ)
def _distinct_from(node: exp.Expr, scope: Scope) -> Expr:
    if isinstance(node.this, exp.Tuple):
        equal = row_comparison(node, "=", node.this, node.expression, scope)
    else:
        equal = same(*matched(node, scope, expression(node.this, scope), expression(node.expression, scope)))
    return equal if isinstance(node, exp.NullSafeEQ) else negation(equal)


@translates(exp.Tuple)
def _rows(node: exp.Expr, scope: Scope) -> Expr:
    """``node`` is the comparison that the row value stands in."""
    if type(node) not in COMPARISONS:
        raise refuse(scope.session.source, node)
    return row_comparison(node, COMPARISONS[type(node)], node.this, node.expression, scope)


def same(left: Expr, right: Expr) -> Expr:
    """IS NOT DISTINCT FROM, which is never NULL."""
    equal = compared("=", left, right)
    if not left.nullable or not right.nullable:
        test = loose(op("coalesce", equal.term, FALSE) if equal.nullable else equal.term, BOOLEAN, False, [equal])
        return replace(test, true=equal.true)
    nulls = op("and", op("is_null", left.term), op("is_null", right.term))
    return loose(op("coalesce", equal.term, nulls), BOOLEAN, False, [equal])


def row_comparison(node: exp.Expr, symbol: str, left: exp.Expr, right: exp.Expr, scope: Scope) -> Expr:
    """(a, b) θ (c, d) as DuckDB has it: in order of the columns, a NULL equals a NULL and is greater than all else."""
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        hint = "write as many values on both sides: (a, b) = (c, d)"
        raise scope.session.source.unsupported(node, "a row value (a, b) beside something else", hint)
    if len(left.expressions) != len(right.expressions):
        message = f"rows of {len(left.expressions)} and {len(right.expressions)} values cannot be compared"
        raise scope.session.source.error(node, message, "write as many values on both sides")
    items = zip(left.expressions, right.expressions, strict=True)
    pairs = [matched(node, scope, expression(a, scope), expression(b, scope)) for a, b in items]
    if symbol in ("=", "<>"):
        equal = conjunction([same(*pair) for pair in pairs])
        return equal if symbol == "=" else negation(equal)
    if symbol in ("<=", ">="):
        return negation(_before(NEGATED[symbol], pairs))
    return _before(symbol, pairs)


def _before(symbol: str, pairs: list[tuple[Expr, Expr]]) -> Expr:
    """The first columns that differ decide."""
    (left, right), *rest = pairs if symbol == "<" else [(b, a) for a, b in pairs]
    first = _less(left, right)
    return disjunction([first, conjunction([same(left, right), _before("<", rest)])]) if rest else first


def _less(left: Expr, right: Expr) -> Expr:
    """a < b with NULL as the greatest value."""
    less = compared("<", left, right)
    known = loose(op("coalesce", less.term, FALSE), BOOLEAN, False, [less]) if less.nullable else less
    if not right.nullable:
        return replace(known, true=less.true)
    return disjunction([known, conjunction([negation(null_test(left)), null_test(right)])])
