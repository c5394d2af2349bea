"""UNION, INTERSECT and EXCEPT, with and without ALL: two bags of rows over common variables.

To share a variable is to be the same value, and a NULL is the same as a NULL. So rows meet as SQL's sets want it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Exists, Query, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import NULL, ZERO_TERM, Var, op
from viewlet.sql.expr import Expr, constant, rounded, variable
from viewlet.sql.expression import unified
from viewlet.sql.scope import Names, Scope
from viewlet.sql.select_list import OutputColumn

Side = tuple[Query, Sequence[OutputColumn]]


def set_operation(tree: exp.SetOperation, scope: Scope, sides: Sequence[Side]) -> Side:
    """The rows of Q₁ UNION Q₂ and its like, with the names of Q₁'s columns."""
    if tree.args.get("by_name"):
        if not isinstance(tree, exp.Union):
            message = f"{_words(tree)} has no BY NAME"
            raise scope.session.source.error(tree.expression, message, "name the columns in the same order")
        sides = _by_name(sides)
    widths = [len(columns) for _, columns in sides]
    if widths[0] != widths[1]:
        message = f"{_words(tree)} of {widths[0]} and {widths[1]} columns"
        raise scope.session.source.error(tree.expression, message, "SELECT as many columns on both sides")
    (first, second), columns = _aligned(tree, scope, sides)
    return _combined(tree, first, second, scope.session.names), columns


def _words(tree: exp.SetOperation) -> str:
    return tree.key.upper() + ("" if tree.args.get("distinct") else " ALL")


def _by_name(sides: Sequence[Side]) -> list[Side]:
    """UNION BY NAME: the columns of both sides, NULL where a side has none of that name."""
    names = dict.fromkeys(c.name for _, columns in sides for c in columns)
    widened: list[Side] = []
    for product, columns in sides:
        known = {c.name: c for c in columns}
        nothing = constant(NULL, None)
        widened.append((product, [known.get(name, OutputColumn(name, nothing)) for name in names]))
    return widened


def _aligned(tree: exp.Expr, scope: Scope, sides: Sequence[Side]) -> tuple[list[Query], tuple[OutputColumn, ...]]:
    names = scope.session.names
    columns: list[OutputColumn] = []
    aligned: list[list[Expr]] = []
    for pair in zip(*(columns for _, columns in sides), strict=True):
        parts, type_ = unified(tree, scope, [rounded(c.expr) for c in pair])
        aligned.append(parts)
        nullable = any(p.nullable for p in parts)
        columns.append(OutputColumn(pair[0].name, variable(names.fresh(pair[0].name), type_, nullable)))
    variables = [c.expr.term.text for c in columns]
    products = [_over(product, [parts[i] for parts in aligned], variables) for i, (product, _) in enumerate(sides)]
    return products, tuple(columns)


def _over(product: Query, parts: list[Expr], variables: list[str]) -> Query:
    """One side, its columns renamed to the common variables where they are columns, else bound to them."""
    renamed: dict[str, str] = {}
    for part, var in zip(parts, variables, strict=True):
        if isinstance(part.term, Var) and part.term.name in outputs(product) and part.term.name not in renamed:
            renamed[part.term.name] = var
        else:
            product = join(product, Bind(var, Value(part.term)))
    return sum_(variables, rename(product, renamed))


def _combined(tree: exp.SetOperation, first: Query, second: Query, names: Names) -> Query:
    """Sets are about which rows there are, ALL about how many: the lesser of two counts, or what one has more."""
    distinct, common = bool(tree.args.get("distinct")), outputs(first)
    if isinstance(tree, exp.Union):
        return Exists(union(first, second)) if distinct else union(first, second)
    first, second, again = names.apart([first, second, first], common)
    if isinstance(tree, exp.Intersect) and distinct:
        return join(Exists(first), Exists(second))
    mine, theirs = Var(names.fresh("mine")), Var(names.fresh("theirs"))
    if distinct:
        return sum_(common, join(Exists(first), Bind(theirs.name, second), Compare("=", theirs, ZERO_TERM)))
    counts = (Exists(first), Bind(mine.name, again), Bind(theirs.name, second))
    if isinstance(tree, exp.Intersect):
        return sum_(common, join(*counts, Value(op("case", op("<", mine, theirs), mine, theirs))))
    return sum_(common, join(*counts, Compare(">", mine, theirs), Value(op("-", mine, theirs))))
