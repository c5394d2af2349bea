"""Subqueries in expressions: scalar aggregates, EXISTS and IN. Correlation is a shared variable name."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Query, join, sum_
from viewlet.algebra.terms import FALSE, NULL, TRUE, ZERO_TERM, Const, Var, op
from viewlet.schema import BOOLEAN
from viewlet.sql.ending import without_ending, without_first
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
from viewlet.sql.expression import expression, matched, refuse_rounding, translates
from viewlet.sql.scope import Scope
from viewlet.sql.select_list import Block, aggregation, is_aggregating, plain_columns
from viewlet.sql.table import block, table
from viewlet.sql.types import alike, common_type

LONG_LIST = 16  # shorter ones are compared one by one, and may be ranges of an ordered path
_SCALAR_HINT = "where it has at most one row, aggregate that: (SELECT MAX(x) FROM …), without GROUP BY"


def _inside(scope: Scope) -> Scope:
    """What a subquery of a query with ``scope`` sees around it."""
    return Scope(scope.session, (), scope, scope.common)


@translates(exp.Subquery, exp.Select)
def _scalar(node: exp.Expr, scope: Scope) -> Expr:
    """(SELECT agg FROM …): nested aggregates are variables, bound in the product that uses the value."""
    tree = without_ending(node, scope.session)
    source = scope.session.source
    if not isinstance(tree, exp.Select) or tree.args.get("group"):
        raise source.unsupported(tree, "a scalar subquery that is not one aggregate", _SCALAR_HINT, "SELECT")
    if len(tree.expressions) != 1:
        message = f"a subquery used as a value has one column, not {len(tree.expressions)}"
        raise source.error(tree, message, "select one of them")
    found = block(tree, _inside(scope))
    if is_aggregating(tree):
        return _aggregate_value(tree, found)
    if found.factors:
        raise source.unsupported(tree, "a scalar subquery that is not one aggregate", _SCALAR_HINT, "SELECT")
    return plain_columns(tree, found)[0].expr


def _aggregate_value(tree: exp.Select, found: Block) -> Expr:
    parts = aggregation(tree, found)
    value, names = parts.columns[0].expr, found.scope.session.names
    queries = names.apart(parts.grouping.lookups) if parts.grouping.lookups else []
    binds = tuple(Bind(var, q) for var, q in zip(parts.grouping.lookups.values(), queries, strict=True))
    if parts.having is not None:
        value = loose(op("case", parts.having.term, value.term, NULL), value.type, True, [parts.having, value])
    return replace(value, binds=merge([binds, value.binds]))


def _some(scope: Scope, name: str, rows: Query) -> Expr:
    """(c := rows) and [c <> 0]: there is a row."""
    count = Var(scope.session.names.fresh(name))
    nonzero, zero = (Compare(symbol, count, ZERO_TERM) for symbol in ("<>", "="))
    term = op("<>", count, ZERO_TERM)
    return Expr(term, BOOLEAN, term, binds=(Bind(count.name, rows),), true=(nonzero,), false=(zero,))


@translates(exp.Exists)
def _exists(node: exp.Expr, scope: Scope) -> Expr:
    tree = without_first(node.this, scope.session)
    found = table(tree, _inside(scope))
    always = isinstance(tree, exp.Select) and is_aggregating(tree)
    if always and not (tree.args.get("group") or tree.args.get("having")):
        return Expr(TRUE, BOOLEAN, TRUE)  # an aggregate without GROUP BY has exactly one row
    return _some(scope, "exists", sum_((), join(*found.factors)))


@translates(exp.In)
def _in(node: exp.Expr, scope: Scope) -> Expr:
    if node.args.get("query") is not None:
        return _in_subquery(node, scope)
    if node.args.get("unnest") or node.args.get("field"):
        raise scope.session.source.unsupported(node, "IN without a list", "write IN (1, 2) or IN (SELECT …)")
    if not node.expressions:
        raise scope.session.source.unsupported(node, "an empty IN list", "name at least one value")
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


def _in_subquery(node: exp.Expr, scope: Scope) -> Expr:
    """x IN (SELECT y …): TRUE where some y = x; else NULL where x or some y is NULL and there are rows."""
    value = expression(node.this, scope)
    found = table(node.args["query"], _inside(scope))
    if len(found.columns) != 1:
        message = f"IN takes a subquery with one column, not {len(found.columns)}"
        raise scope.session.source.error(node, message, "select one of them, or write EXISTS")
    value, member = matched(node, scope, value, rounded(found.columns[0].expr))
    # DuckDB gives both sides one type, which it does not in x = y
    refuse_rounding(node, scope, [value, member], common_type(value.type, member.type))
    found_there = holds(equal(scope.session.names, value.without_binds(), member))
    counted = (found_there, holds(null_test(member)), ())
    matches, nulls, rows = scope.session.names.apart(sum_((), join(*found.factors, *more)) for more in counted)
    same = _some(scope, "matches", matches)
    doubts = [_some(scope, "nulls", nulls)] if member.nullable else []
    if value.nullable:
        doubts.append(conjunction([null_test(value.without_binds()), _some(scope, "rows", rows)]))
    result = _known_or_null(same, disjunction(doubts)) if doubts else same
    return replace(result, binds=merge([value.binds, result.binds]))


def _known_or_null(same: Expr, doubt: Expr) -> Expr:
    """TRUE where ``same`` holds, else NULL where ``doubt`` does, else FALSE."""
    result = loose(op("case", same.term, TRUE, doubt.term, NULL, FALSE), BOOLEAN, True, [same, doubt])
    neither = conjunction([negation(same), negation(doubt)])
    return replace(result, true=same.true, false=neither.true)
