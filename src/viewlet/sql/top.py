"""The first rows of each group: QUALIFY row_number() or rank() OVER (PARTITION BY … ORDER BY …) <= k."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewlet.algebra.query import Query, inputs, join
from viewlet.algebra.terms import Const
from viewlet.schema import BIGINT
from viewlet.sql.expr import Expr, merge, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.numbered import MOST_NUMBERS, Number
from viewlet.sql.ranks import EVERY, Ordered, Wanted, chosen
from viewlet.sql.scope import Names, Scope, Session
from viewlet.sql.select_list import Block, OutputColumn, is_aggregating
from viewlet.sql.unsupported import only

_CONDITION = "the condition is row_number(), rank() or dense_rank() OVER (PARTITION BY … ORDER BY …) <= a whole number"
_CHOOSING = ("distinct", "qualify", "limit", "offset")
_OF_FROM = "write out what each term of DISTINCT ON and ORDER BY stands for, over the columns of FROM"
_PLAIN = "take the columns of the outer query out of it"
_SMALLER: dict[type[exp.Expr], int] = {exp.LTE: 0, exp.EQ: 0, exp.LT: -1}
_BOUNDS = ("expression", "low", "high")


def split_qualify(tree: exp.Select) -> tuple[exp.Select, exp.Expr | None]:
    """A query without its QUALIFY, and that; of groups it stays, to be refused."""
    condition = tree.args.get("qualify")
    if condition is None or is_aggregating(tree):
        return tree, None
    bare = tree.copy()
    bare.set("qualify", None)
    return bare, condition


def of_distinct_on(tree: exp.Select, session: Session) -> exp.Select:
    """DISTINCT ON (a) … ORDER BY a, b: the first row of each a, which is QUALIFY row_number() OVER (…) = 1."""
    clause, order = tree.args["distinct"], tree.args.get("order")
    by = clause.args["on"].expressions or [clause.args["on"]]
    terms = [o.this for o in order.expressions] if order is not None else []
    refused = is_aggregating(tree) or tree.args.get("qualify")
    if refused or not all(_is_of_from(node, tree) for node in (*by, *terms)):
        source = session.source
        raise source.unsupported(clause, "DISTINCT ON with anything but expressions over FROM", _OF_FROM, "DISTINCT")
    window = exp.Window(this=exp.RowNumber(), partition_by=[node.copy() for node in by], over="OVER")
    window.set("order", order and order.copy())
    qualified = tree.copy()
    qualified.set("distinct", None)
    qualified.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return qualified


def _is_of_from(node: exp.Expr, tree: exp.Select) -> bool:
    """Not a place, and no name that a SELECT item has for something else."""
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    names = [c for c in node.find_all(exp.Column) if not c.table]
    own = all(aliases.get(c.name.lower(), c) == c for c in names)
    return own and not isinstance(node.unnest(), (exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.Neg))


def with_qualify(tree: exp.Select) -> exp.Select:
    """SELECT … FROM (SELECT …, row_number() OVER (…) AS n FROM …) WHERE n <= k, with QUALIFY inside instead."""
    inner = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select) or tree.args.get("joins"):
        return tree
    numbered = [e for e in inner.this.expressions if isinstance(e, exp.Alias) and isinstance(e.this, exp.Window)]
    if len(numbered) != 1 or any(inner.this.args.get(part) for part in _CHOOSING) or not tree.args.get("where"):
        return tree
    return _moved(tree, numbered[0]) or tree


def _moved(tree: exp.Select, item: exp.Alias) -> exp.Select | None:
    """None where no condition bounds the number. Where nothing else uses it, it is no column of the subquery either."""
    conditions = list(tree.args["where"].this.flatten()) if isinstance(tree.args["where"].this, exp.And) else []
    conditions = conditions or [tree.args["where"].this]
    names = [c for c in tree.find_all(exp.Column) if c.name.lower() == item.alias.lower()]
    asked = [c for c in conditions if type(c) in _SMALLER and c.this in names]
    stars = [e for e in tree.expressions if e.find(exp.Star) and not e.find(exp.AggFunc)]
    if not asked:
        return None
    rest = [c.copy() for c in conditions if c is not asked[0]]
    moved = tree.copy()
    inner = moved.args["from_"].this.this
    if len(names) == 1 and not stars and not _has_places(inner):
        inner.set("expressions", [e for e in inner.expressions if e != item])
    inner.set("qualify", exp.Qualify(this=type(asked[0])(this=item.this.copy(), expression=asked[0].expression.copy())))
    moved.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return moved


def _has_places(tree: exp.Select) -> bool:
    """GROUP BY 2 counts the items before it."""
    group = tree.args.get("group")
    return group is not None and any(isinstance(key.unnest(), exp.Literal) for key in group.expressions)


def first_rows(
    condition: exp.Expr, from_where: Block, columns: Sequence[OutputColumn], names: Names, shown_number: Number | None
) -> tuple[tuple[Query, ...], tuple[OutputColumn, ...]]:
    """The factors and columns of a block with QUALIFY, ``shown_number`` among them where it is shown."""
    source = from_where.scope.session.source
    window, wanted = _condition(condition, from_where.scope, shown_number is not None)
    if wanted.numbered and wanted.shown and wanted.most - wanted.skipped > MOST_NUMBERS:
        construct = f"row_number() as a column of more than {MOST_NUMBERS} rows"
        raise source.unsupported(window, construct, "ask for fewer rows")
    partition = [rounded(expression(node, from_where.scope)) for node in window.args.get("partition_by") or ()]
    terms = window.args["order"].expressions if window.args.get("order") else ()
    order = [_ordered(node, from_where.scope) for node in terms]
    exprs = [c.expr for c in columns]
    product = join(*merge([from_where.factors, *(e.binds for e in (*exprs, *partition, *(o.expr for o in order)))]))
    rows = chosen(product, [rounded(e) for e in exprs], partition, order, wanted, names)
    if inputs(join(*rows.factors)):
        raise source.unsupported(window, "the first rows of a correlated subquery", _PLAIN)
    others = [
        OutputColumn(c.name, variable(var, c.expr.type, c.expr.nullable))
        for c, var in zip(columns, rows.columns, strict=True)
    ]
    if shown_number is None:
        return rows.factors, tuple(others)
    return rows.factors, shown_number.among(others, Expr(rows.rank, BIGINT, rows.rank))


def _ordered(node: exp.Ordered, scope: Scope) -> Ordered:
    term = rounded(expression(node.this, scope))
    return Ordered(term, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def is_bounded_rank(clause: exp.Expr) -> bool:
    """Whether a QUALIFY names the rows that it chooses by their numbers alone."""
    node = clause.this.unnest()
    if type(node) not in {*_SMALLER, exp.GT, exp.Between}:
        return False
    window = node.this.unnest()
    is_rank = isinstance(window, exp.Window) and isinstance(window.this, (exp.RowNumber, exp.Rank, exp.DenseRank))
    return is_rank and not any(node.args[p].find(exp.Column, exp.Window) for p in _BOUNDS if node.args.get(p))


def _condition(clause: exp.Expr, scope: Scope, shown: bool) -> tuple[exp.Window, Wanted]:
    """The window, and the rows that are wanted."""
    node, source = clause.this.unnest(), scope.session.source
    window = node.this.unnest() if isinstance(node, (exp.Between, exp.Binary)) else None
    if not isinstance(window, exp.Window) or not isinstance(window.this, (exp.RowNumber, exp.Rank, exp.DenseRank)):
        raise source.unsupported(clause, "this QUALIFY", _CONDITION, "QUALIFY")
    only(source, window, frozenset({"this", "partition_by", "order", "over"}), {})
    only(source, window.this, frozenset(), {})
    skipped, most = _wanted(node, scope)
    if skipped is None or most is None:
        raise source.unsupported(clause, "this QUALIFY", _CONDITION, "QUALIFY")
    kind = type(window.this)
    return window, Wanted(max(skipped, 0), max(most, 0), kind is exp.RowNumber, kind is exp.DenseRank, shown)


def _wanted(node: exp.Expr, scope: Scope) -> tuple[int | None, int | None]:
    """None where a bound is no whole number."""
    if isinstance(node, exp.Between):
        low, high = _whole(node.args["low"], scope), _whole(node.args["high"], scope)
        return None if low is None else low - 1, high
    if type(node) not in {*_SMALLER, exp.GT}:
        return None, None
    rank = _whole(node.expression, scope)
    if rank is None or isinstance(node, exp.GT):
        return rank, EVERY
    return (rank - 1 if isinstance(node, exp.EQ) else 0), rank + _SMALLER[type(node)]


def _whole(node: exp.Expr, scope: Scope) -> int | None:
    match expression(node, scope).term:
        case Const(int() as value, "number"):
            return value
    return None
