"""VALUES (…), (…): rows that are written out."""

from __future__ import annotations

from sqlglot import exp

from viewlet.algebra.query import Bind, Query, Value, join, sum_, union
from viewlet.sql.expr import Expr, merge, rounded, variable
from viewlet.sql.expression import expression, unified
from viewlet.sql.scope import Scope
from viewlet.sql.select_list import OutputColumn


def written_rows(tree: exp.Values, scope: Scope) -> tuple[Query, tuple[OutputColumn, ...]]:
    """(x := 1) ⋈ (y := 2) + (x := 3) ⋈ (y := 4) + …; the columns are called col0, col1, …"""
    rows = [[rounded(expression(item, scope)) for item in row.expressions] for row in tree.expressions]
    odd = next((row for row in tree.expressions if len(row.expressions) != len(rows[0])), None)
    if odd is not None:
        message = f"a row of {len(odd.expressions)} values in VALUES with rows of {len(rows[0])}"
        raise scope.session.source.error(odd, message, "write as many values in every row")
    columns: list[OutputColumn] = []
    aligned: list[list[Expr]] = []
    for i, parts in enumerate(zip(*rows, strict=True)):
        alike, type_ = unified(tree, scope, list(parts))
        var, nullable = scope.session.names.fresh(f"col{i}"), any(p.nullable for p in alike)
        columns.append(OutputColumn(f"col{i}", variable(var, type_, nullable)))
        aligned.append(alike)
    names = [c.expr.term.text for c in columns]
    return union(*(_row(names, list(row)) for row in zip(*aligned, strict=True))), tuple(columns)


def _row(names: list[str], values: list[Expr]) -> Query:
    named = (Bind(var, Value(value.term)) for var, value in zip(names, values, strict=True))
    return sum_(names, join(*named, *merge(value.binds for value in values)))
