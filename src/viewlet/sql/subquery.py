"""Subqueries in expressions: scalar ones and EXISTS. Correlation is a shared variable name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    children,
    inputs,
    join,
    outputs,
    sum_,
)
from viewlet.algebra.terms import NULL, ONE_TERM, TRUE, ZERO_TERM, Var, free, number, op
from viewlet.schema import BOOLEAN, Relation
from viewlet.sql.ending import as_value, without_first
from viewlet.sql.expr import (
    Expr,
    loose,
    merge,
)
from viewlet.sql.expression import translates
from viewlet.sql.grouping import aggregate_factors
from viewlet.sql.outer_join import Rows, left_join
from viewlet.sql.scope import Field, Scope
from viewlet.sql.select_list import Block, aggregation, is_aggregating, plain_columns
from viewlet.sql.table import block, table

LONG_LIST = 16  # shorter ones are compared one by one, and may be ranges of an ordered path
_SCALAR_HINT = "where it has at most one row, aggregate that: (SELECT MAX(x) FROM …), without GROUP BY"


def inside(scope: Scope) -> Scope:
    """What a subquery of a query with ``scope`` sees around it."""
    return Scope(scope.session, (), scope, scope.common)


@translates(exp.Subquery, exp.Select)
def _scalar(node: exp.Expr, scope: Scope) -> Expr:
    """(SELECT agg FROM …): nested aggregates are variables, bound in the product that uses the value."""
    tree, is_one = as_value(node, scope.session)
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("group", "distinct", "qualify")):
        return _single_row(tree, scope, is_one)
    if len(tree.expressions) != 1:
        raise _one_column(tree, scope, len(tree.expressions))
    from_where = block(tree, inside(scope))
    if is_aggregating(tree):
        return _aggregate_value(tree, from_where)
    return _single_row(tree, scope, is_one) if from_where.factors else plain_columns(tree, from_where)[0].expr


def _one_column(tree: exp.Expr, scope: Scope, columns: int) -> Exception:
    message = f"a subquery used as a value has one column, not {columns}"
    return scope.session.source.error(tree, message, "select one of them")


def _single_row(tree: exp.Expr, scope: Scope, is_one: bool) -> Expr:
    """The value of a query with at most one row, NULL where it has none: a LEFT JOIN of what stands around it."""
    inner, names = table(tree, inside(scope)), scope.session.names
    if len(inner.columns) != 1:
        raise _one_column(tree, scope, len(inner.columns))
    if not is_one and not at_most_one(inner.factors, scope.session.catalog.relations):
        _check_single(tree, scope, join(*inner.factors))
    column = Field("", inner.columns[0].name, inner.columns[0].expr)
    rows = left_join(Rows(), Rows(inner.factors, (column,)).named(names), (), names)
    return replace(rows.fields[0].expr, binds=rows.factors)


def _check_single(tree: exp.Expr, scope: Scope, rows: Query) -> None:
    """An update that gives the subquery a second row is refused: a second one for a row around it, where it needs one.

    2 · Sum(R ⋈ (n := Sum(rows)) ⋈ [n > 1]) is at most 1 where no row of R has two.
    """
    if not inputs(rows):
        scope.session.single.append(sum_((), rows))
        return
    around = join(*scope.rows)
    if not inputs(rows) <= outputs(around) or inputs(around) or not scope.of_rows:
        construct = "a scalar subquery that may have several rows for a row around it"
        raise scope.session.source.unsupported(tree, construct, _SCALAR_HINT, "SELECT")
    count = scope.session.names.fresh("rows")
    inner, _ = scope.session.names.apart([sum_((), rows), sum_((), rows)])
    several = join(Bind(count, inner), Compare(">", Var(count), ONE_TERM))
    scope.session.single.append(sum_((), join(around, several, Value(number(2)))))


def at_most_one(product: tuple[Query, ...], relations: Mapping[str, Relation]) -> bool:
    """The product has one tuple at most: what it loops over is found by a key, or has only columns that are known."""
    known = inputs(join(*product))
    while more := {x for f in product for x in _determined(f, known, relations)} - known:
        known |= more
    loops = [f for f in product if not isinstance(f, (Bind, Compare))]
    return all(isinstance(f, (Exists, Rel)) and _is_one(f, known, relations) for f in loops)


def _is_one(f: Exists | Rel, known: frozenset[str], relations: Mapping[str, Relation]) -> bool:
    if isinstance(f, Exists):
        return outputs(f) <= known
    relation = relations[f.name]
    variables = dict(zip((c.name for c in relation.columns), f.vars, strict=True))
    return bool(relation.key) and all(variables[name] in known for name in relation.key)


def _determined(f: Query, known: frozenset[str], relations: Mapping[str, Relation]) -> Iterator[str]:
    """The variables that have one value where the known ones have one."""
    match f:
        case Rel(_, names) if _is_one(f, known, relations):
            yield from names
        case Bind(var, _) if inputs(f) <= known:
            yield var
        case Compare("=", left, right):
            sides = ((left, right), (right, left))
            yield from (x.name for x, y in sides if isinstance(x, Var) and free(y) <= known)
        case Exists() | Sum() | Join():
            yield from (x for part in children(f) for x in _determined(part, known, relations))


def _aggregate_value(tree: exp.Select, from_where: Block) -> Expr:
    parts = aggregation(tree, from_where)
    value, binds = parts.columns[0].expr, aggregate_factors(parts.grouping)
    if parts.having is not None:
        value = loose(op("case", parts.having.term, value.term, NULL), value.type, True, [parts.having, value])
    return replace(value, binds=merge([binds, value.binds]))


def some(scope: Scope, name: str, rows: Query) -> Expr:
    """(c := rows) and [c <> 0]: there is a row."""
    count = Var(scope.session.names.fresh(name))
    nonzero, zero = (Compare(symbol, count, ZERO_TERM) for symbol in ("<>", "="))
    term = op("<>", count, ZERO_TERM)
    return Expr(term, BOOLEAN, term, binds=(Bind(count.name, rows),), true=(nonzero,), false=(zero,))


@translates(exp.Exists)
def _exists(node: exp.Expr, scope: Scope) -> Expr:
    tree = without_first(node.this, scope.session)
    inner = table(tree, inside(scope))
    always = isinstance(tree, exp.Select) and is_aggregating(tree)
    if always and not (tree.args.get("group") or tree.args.get("having")):
        return Expr(TRUE, BOOLEAN, TRUE)  # an aggregate without GROUP BY has exactly one row
    return some(scope, "exists", sum_((), join(*inner.factors)))
