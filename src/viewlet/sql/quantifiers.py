"""IN, ANY and ALL: a value, or a row of values, compared with those of a list or a subquery."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import join, sum_
from viewlet.algebra.terms import FALSE, NEGATED, NULL, TRUE, Const, op
from viewlet.schema import BOOLEAN
from viewlet.sql.equality import equal
from viewlet.sql.expr import (
    Expr,
    compared,
    conjunction,
    disjunction,
    holds,
    loose,
    merge,
    negation,
    null_test,
    rounded,
    strict,
)
from viewlet.sql.expression import COMPARISONS, expression, matched, refuse_rounding, translates
from viewlet.sql.row_values import row_comparison
from viewlet.sql.scope import Scope
from viewlet.sql.subquery import inside, some
from viewlet.sql.table import Table, table
from viewlet.sql.types import alike, common_type
from viewlet.sql.unsupported import refuse

LONG_LIST = 16  # shorter ones are compared one by one, and may be ranges of an ordered path


@translates(exp.In)
def _in(node: exp.Expr, scope: Scope) -> Expr:
    if node.args.get("query") is not None:
        return _some_row(node, scope, "=", node.this, node.args["query"])
    if node.args.get("unnest") or node.args.get("field"):
        raise scope.session.source.unsupported(node, "IN without a list", "write IN (1, 2) or IN (SELECT …)")
    if not node.expressions:
        raise scope.session.source.unsupported(node, "an empty IN list", "name at least one value")
    if isinstance(node.this, exp.Tuple):
        return disjunction([row_comparison(node, "=", node.this, option, scope) for option in node.expressions])
    value, *options = alike([expression(item, scope) for item in (node.this, *node.expressions)])
    pairs = [matched(node, scope, value, option) for option in options]
    return _listed(pairs) or disjunction([compared("=", *pair) for pair in pairs])


def _listed(pairs: list[tuple[Expr, Expr]]) -> Expr | None:
    """x IN (1, 2, …) as one term, which engines look up: a long list of constants, all compared with the same x."""
    values = {pair[0].term for pair in pairs}
    options = [pair[1] for pair in pairs if isinstance(pair[1].term, Const) and not pair[1].nullable]
    if len(pairs) < LONG_LIST or len(values) > 1 or len(options) < len(pairs) or pairs[0][0].type == BOOLEAN:
        return None
    return strict("in", BOOLEAN, pairs[0][0], *{option.term: option for option in options}.values())


@translates(exp.Any, exp.All)
def _quantified(node: exp.Expr, scope: Scope) -> Expr:
    """x θ ANY (…), and x θ ALL (…), which is NOT x ¬θ ANY (…); ``node`` is the comparison."""
    quantifier = node.expression if type(node) in COMPARISONS else node
    if type(node) not in COMPARISONS:
        raise refuse(scope.session.source, quantifier)
    symbol, inner = COMPARISONS[type(node)], quantifier.this.unnest()
    all_ = isinstance(quantifier, exp.All)
    symbol = NEGATED[symbol] if all_ else symbol
    if isinstance(inner, exp.Array):
        holds_for_some = _some_item(node, scope, symbol, inner)
    else:
        holds_for_some = _some_row(node, scope, symbol, node.this, quantifier.this)
    return negation(holds_for_some) if all_ else holds_for_some


def _some_item(node: exp.Expr, scope: Scope, symbol: str, items: exp.Array) -> Expr:
    """x θ ANY ([1, 2])."""
    if not items.expressions:
        raise scope.session.source.unsupported(node, "an empty list", "name at least one value")
    value, *options = alike([expression(item, scope) for item in (node.this, *items.expressions)])
    return disjunction([compared(symbol, *matched(node, scope, value, option)) for option in options])


def _some_row(node: exp.Expr, scope: Scope, symbol: str, left: exp.Expr, query: exp.Expr) -> Expr:
    """x θ ANY (SELECT y …): TRUE where x θ y for some y; else NULL where x or some y is NULL and there are rows."""
    members = table(query, inside(scope))
    items = left.expressions if isinstance(left, exp.Tuple) else [left]
    if len(members.columns) != len(items):
        word, wanted = ("IN" if isinstance(node, exp.In) else "this comparison"), len(items)
        columns = "one column" if wanted == 1 else f"{wanted} columns"
        message = f"{word} takes a subquery with {columns}, not {len(members.columns)}"
        raise scope.session.source.error(node, message, "select as many columns as are compared, or write EXISTS")
    pairs = [_alike(node, scope, item, members, i) for i, item in enumerate(items)]
    binds = merge(value.binds for value, _ in pairs)
    inner = [(value.without_binds(), member) for value, member in pairs]
    if len(pairs) > 1 and symbol != "=":
        hint = "compare column by column: EXISTS (SELECT 1 FROM … WHERE …)"
        raise scope.session.source.unsupported(node, f"{symbol} of a row and a subquery", hint)
    result = _one_column(scope, symbol, *inner[0], members) if len(inner) == 1 else _row(scope, inner, members)
    return replace(result, binds=merge([binds, result.binds]))


def _alike(node: exp.Expr, scope: Scope, item: exp.Expr, members: Table, place: int) -> tuple[Expr, Expr]:
    value, member = matched(node, scope, expression(item, scope), rounded(members.columns[place].expr))
    # DuckDB gives both sides one type, which it does not in x = y
    refuse_rounding(node, scope, [value, member], common_type(value.type, member.type))
    return value, member


def _one_column(scope: Scope, symbol: str, value: Expr, member: Expr, members: Table) -> Expr:
    meets = equal(scope.session.names, value, member) if symbol == "=" else compared(symbol, value, member)
    counted = (holds(meets), holds(null_test(member)), ())
    matches, nulls, rows = scope.session.names.apart(sum_((), join(*members.factors, *more)) for more in counted)
    same = some(scope, "matches", matches)
    doubts = [some(scope, "nulls", nulls)] if member.nullable else []
    if value.nullable:
        doubts.append(conjunction([null_test(value), some(scope, "rows", rows)]))
    return _known_or_null(same, disjunction(doubts)) if doubts else same


def _row(scope: Scope, pairs: list[tuple[Expr, Expr]], members: Table) -> Expr:
    """(a, b) IN (SELECT c, d …): a = c AND b = d of some row is TRUE, or NULL."""
    alike = conjunction([equal(scope.session.names, *pair) for pair in pairs])
    counted = (holds(alike), holds(null_test(alike)))
    matches, doubtful = scope.session.names.apart(sum_((), join(*members.factors, *more)) for more in counted)
    same = some(scope, "matches", matches)
    return _known_or_null(same, some(scope, "nulls", doubtful)) if alike.nullable else same


def _known_or_null(same: Expr, doubt: Expr) -> Expr:
    """TRUE where ``same`` holds, else NULL where ``doubt`` does, else FALSE."""
    result = loose(op("case", same.term, TRUE, doubt.term, NULL, FALSE), BOOLEAN, True, [same, doubt])
    neither = conjunction([negation(same), negation(doubt)])
    return replace(result, true=same.true, false=neither.true)
