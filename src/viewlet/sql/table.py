"""SELECT → a bag of rows: a product of factors, and columns as terms over its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from viewlet.algebra.query import Exists, Query, Rel, join, sum_
from viewlet.errors import SqlError
from viewlet.sql.aliases import aliases_of, seeing
from viewlet.sql.ending import without_ending
from viewlet.sql.expr import Expr, holds, merge, rounded, variable
from viewlet.sql.expression import boolean
from viewlet.sql.grouping import aggregate_factors, bound
from viewlet.sql.joins import is_comma, joined
from viewlet.sql.numbered import split_number
from viewlet.sql.outer_join import Rows, never_null, without_rejected
from viewlet.sql.over_groups import over_groups
from viewlet.sql.parse import Statement
from viewlet.sql.scope import CommonTable, Field, Names, Scope, Session
from viewlet.sql.select_list import (
    Aggregation,
    Block,
    OutputColumn,
    aggregation,
    has_windows,
    is_aggregating,
    plain_columns,
)
from viewlet.sql.session_rows import with_sessions
from viewlet.sql.sets import set_operation
from viewlet.sql.source import did_you_mean
from viewlet.sql.top import first_rows, is_bounded_rank, split_qualify, with_qualify
from viewlet.sql.unnesting import first_elements, joined_elements, listed
from viewlet.sql.unsupported import only
from viewlet.sql.values import written_rows
from viewlet.sql.windows import Windows, WindowScope

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "session"})
SELECT_HINTS = {
    "qualify": ("QUALIFY without a window function", "a condition on groups stands in HAVING"),
    "sample": ("SAMPLE", "a view keeps every row: sample when you read it"),
}
_RECURSIVE = "leave RECURSIVE out where no query of it reads itself"


@dataclass(frozen=True)
class Table:
    factors: tuple[Query, ...]
    columns: tuple[OutputColumn, ...]

    def projected(self, names: Names) -> tuple[Query, tuple[OutputColumn, ...]]:
        """Sum over the columns alone, each under a variable."""
        product, columns = join(*self.factors), list[OutputColumn]()
        for column in self.columns:
            var, product = bound(names, product, rounded(column.expr).term, column.name)
            columns.append(OutputColumn(column.name, variable(var, column.expr.type, column.expr.nullable)))
        return sum_({c.expr.term.text for c in columns}, product), tuple(columns)

    def distinct(self, names: Names) -> Table:
        query, columns = self.projected(names)
        return Table((Exists(query),), columns)


def table(tree: exp.Expr, scope: Scope) -> Table:
    """The rows of a query; ``scope`` is what is visible around it (``outer``) and its WITH queries (``common``)."""
    tree = without_ending(tree, scope.session)
    if isinstance(tree, exp.Select):
        return _select(tree, scope)
    if isinstance(tree, exp.SetOperation):
        return _set_operation(tree, scope)
    if isinstance(tree, exp.Values):
        rows, columns = written_rows(tree, scope)
        return Table((rows,), columns)
    raise scope.session.source.unsupported(tree, tree.key.upper(), "write SELECT … FROM …")


def is_distinct(tree: exp.Select) -> bool:
    return tree.args.get("distinct") is not None


def _select(tree: exp.Select, scope: Scope) -> Table:
    if windows_of(tree):
        tree = over_rows(tree, scope)
    if windows_of(tree):
        rows = _windowed(tree, scope)
        return rows.distinct(scope.session.names) if is_distinct(tree) else rows
    (tree, condition), number = split_qualify(tree), None
    if condition is not None:
        tree, condition, number = split_number(tree, condition)
    from_where = block(tree, scope)
    if is_aggregating(tree):
        rows = _grouped_table(aggregation(tree, from_where), scope.session.names)
    else:
        columns = plain_columns(tree, from_where)
        rows = Table(merge([from_where.factors, *(c.expr.binds for c in columns)]), tuple(map(_settled, columns)))
        if condition is not None:
            seen = replace(from_where, scope=seeing(from_where.scope, aliases_of(tree)))
            rows = Table(*first_rows(condition, seen, columns, scope.session.names, number))
    return rows.distinct(scope.session.names) if is_distinct(tree) else rows


def _windowed(tree: exp.Select, scope: Scope) -> Table:
    """Every row joined with the aggregates of its partitions."""
    windows, columns, condition = windowed(tree, scope, at_top=False)
    where = holds(condition) if condition is not None else ()
    return Table(merge([windows.factors(), *(c.expr.binds for c in columns), where]), tuple(map(_settled, columns)))


def windowed(tree: exp.Select, scope: Scope, at_top: bool) -> tuple[Windows, tuple[OutputColumn, ...], Expr | None]:
    """The window functions of a query over rows, its columns, and the condition in its QUALIFY."""
    bare, condition = split_qualify(tree)
    from_where = block(bare, scope)
    windows = Windows(from_where, scope.session.names, at_top)
    base = from_where.scope
    inside = WindowScope(base.session, base.fields, base.outer, base.common, (), windows)
    columns = plain_columns(bare, replace(from_where, scope=inside))
    chosen = None if condition is None else boolean(condition.this, seeing(inside, aliases_of(bare)))
    return windows, columns, chosen


def windows_of(tree: exp.Select) -> bool:
    """Whether a query has window functions beside the rank by which its QUALIFY chooses the first rows."""
    if not has_windows(tree):
        return False
    condition = tree.args.get("qualify")
    if condition is None or is_aggregating(tree):
        return True
    rest, condition, _ = split_number(split_qualify(tree)[0], condition)
    return not is_bounded_rank(condition) or has_windows(rest)


def over_rows(tree: exp.Select, scope: Scope) -> exp.Select:
    """The query with its groups, if any, in a subquery."""
    if not is_aggregating(tree):
        return tree
    bare = tree.copy()
    bare.set("qualify", None)
    apart = replace(scope, session=replace(scope.session, names=Names(), single=[]))
    return over_groups(tree, block(bare, apart).scope)


def _settled(column: OutputColumn) -> OutputColumn:
    """The binds of a column stand in the table's own product from here on."""
    return OutputColumn(column.name, column.expr.without_binds())


def _grouped_table(parts: Aggregation, names: Names) -> Table:
    """Exists(Sum_g(inner)) ⋈ (s := Sum_g(inner′ ⋈ value)) …: each copy of inner has its own locals and shares g."""
    grouping = parts.grouping
    groups = (grouping.groups,) if grouping.grouped else ()
    sums = aggregate_factors(grouping, grouping.groups)
    having = holds(parts.having) if parts.having is not None else ()
    binds = merge(c.expr.binds for c in parts.columns)
    return Table(merge([groups, sums, having, binds]), tuple(map(_settled, parts.columns)))


# -- FROM and WHERE ----------------------------------------------------------------------------------------------------


def block(tree: exp.Select, outer: Scope) -> Block:
    source, tree = outer.session.source, with_qualify(tree)
    only(source, tree, _SELECT_PARTS, SELECT_HINTS)
    scope = Scope(outer.session, (), outer.outer, with_common(tree, outer))
    rows = _from(tree, scope)
    scope = replace(scope.adding(rows.fields), rows=rows.factors)
    where = tree.args.get("where")
    if where is not None:
        rows = rows.where(holds(boolean(where.this, seeing(scope, aliases_of(tree)))))
    factors, scope = with_sessions(tree, without_rejected(rows.factors), scope)
    return Block(factors, replace(scope, fields=never_null(scope.fields, factors), rows=factors))


def _from(tree: exp.Expr, scope: Scope) -> Rows:
    """FROM a JOIN b …, c JOIN d …: an item sees the columns of those before it."""
    start = tree.args.get("from_")
    return Rows() if start is None else _joins(start.this, tree.args.get("joins") or [], scope)


def _joins(first: exp.Expr, joins: list[exp.Join], scope: Scope) -> Rows:
    """``joins`` may also stand at the first table: in parentheses, and where FROM comes before SELECT."""
    if first.args.get("joins"):
        first, joins = first.copy(), first.args["joins"] + joins
        first.set("joins", None)
    before, last = Rows(), _from_item(first, scope)
    for node in joins:
        around = scope.adding(before.fields)
        if (elements := listed(node.this)) is not None:
            before, last = joined_elements(node, elements, before, last, around)
            continue
        item = _from_item(node.this, around.adding(last.fields))
        if is_comma(node):
            before, last = before.beside(last), item
        else:
            last = joined(node, last, item, around)
    return before.beside(last)


def _in_parentheses(node: exp.Expr, scope: Scope) -> Rows:
    """(a JOIN b …) and (a): its tables can be named outside."""
    only(scope.session.source, node, frozenset({"this"}), {})
    return _joins(node.this, [], scope)


def with_common(tree: exp.Expr, scope: Scope) -> Mapping[str, CommonTable]:
    """WITH queries; each sees those before it."""
    clause = tree.args.get("with_")
    common = dict(scope.common)
    if clause is None:
        return common
    if clause.args.get("recursive"):
        raise scope.session.source.unsupported(clause, "WITH RECURSIVE", _RECURSIVE, "RECURSIVE")
    for node in clause.expressions:
        common[node.alias.lower()] = CommonTable(node, dict(common), scope.outer)
    return common


def _from_item(node: exp.Expr, scope: Scope) -> Rows:
    """A table, view or subquery; a subquery sees the columns of the items before it, with or without LATERAL."""
    source = scope.session.source
    if (elements := listed(node)) is not None:
        return first_elements(elements, scope)
    if isinstance(node, exp.Lateral):
        only(source, node, frozenset({"this", "alias"}), {})
        if not isinstance(node.this, exp.Subquery):
            raise source.unsupported(node, "LATERAL", "LATERAL takes a subquery")
    elif not isinstance(node, (exp.Table, exp.Subquery, exp.Values)):
        raise source.unsupported(node, node.key.upper(), "FROM takes tables, views and subqueries")
    if isinstance(node.this, exp.Table):
        return _in_parentheses(node, scope)
    only(source, node, frozenset({"this", "alias", "db", "catalog", "view", "outer", "expressions"}), {})
    alias = node.alias.lower() or (node.name.lower() if isinstance(node, exp.Table) else _unnamed(scope))
    if any(alias == f.table for f in scope.fields):
        hint = "give each its own name: FROM bids x, bids y"
        raise source.error(node, f"table name {alias} is used twice in this FROM", hint)
    around = replace(scope, fields=(), outer=scope if scope.fields else scope.outer)
    inner = node if isinstance(node, exp.Values) else node.this
    table_ = _named(node, around, alias) if isinstance(node, exp.Table) else table(inner, around)
    scope.session.names.forget_rows_inside(join(*table_.factors))
    names = _column_aliases(node, scope, [c.name for c in table_.columns])
    exprs = [replace(c.expr, is_column=True) for c in table_.columns]
    return Rows(table_.factors, tuple(Field(alias, n, e) for n, e in zip(names, exprs, strict=True)))


def _unnamed(scope: Scope) -> str:
    """What DuckDB calls a subquery without a name: unnamed_subquery, the next one unnamed_subquery2."""
    taken = {f.table for f in scope.fields}
    names = (f"unnamed_subquery{i if i > 1 else ''}" for i in count(1))
    return next(name for name in names if name not in taken)


def _column_aliases(node: exp.Expr, scope: Scope, names: list[str]) -> list[str]:
    """FROM … AS t (a, b): new names for the first columns."""
    given = [c.name.lower() for c in node.args["alias"].columns] if node.args.get("alias") else []
    if len(given) > len(names):
        raise scope.session.source.error(
            node, _names_for(len(given), len(names)), "name as many as there are, or fewer"
        )
    return given + names[len(given) :]


def _named(node: exp.Table, scope: Scope, alias: str) -> Table:
    session, name = scope.session, node.name.lower()
    if node.db.lower() not in ("", "main") or node.catalog or not isinstance(node.this, exp.Identifier):
        raise session.source.unsupported(
            node, "this in FROM", "FROM takes the name of a table or view, without a schema"
        )
    if name in scope.common and not node.db:
        return _common_table(scope.common[name], scope)
    if name in session.catalog.views:
        return defined_view(session, name)
    relation = session.catalog.relations.get(name)
    if relation is None:
        known = [*scope.common, *session.catalog.names]
        hint = did_you_mean(name, known, f"define it first; there are: {', '.join(known) or 'none'}")
        raise session.source.error(node, f"there is no table or view {name}", hint)
    columns = [(c, session.names.fresh(f"{alias}.{c.name}")) for c in relation.columns]
    atom = Rel(name, tuple(var for _, var in columns))
    session.names.origins.update({var: (atom, c.name) for c, var in columns})
    shown = [(c, var) for c, var in columns if not c.derived]
    return Table((atom,), tuple(OutputColumn(c.name, variable(var, c.type, c.nullable)) for c, var in shown))


def _common_table(common: CommonTable, scope: Scope) -> Table:
    body = table(common.tree.this, Scope(scope.session, (), common.outer, common.common))
    return _renamed(body, _column_aliases(common.tree, scope, [c.name for c in body.columns]))


def defined_view(session: Session, name: str) -> Table:
    """A view in FROM is its definition, translated again with fresh variables."""
    statement = session.catalog.views[name]
    body = table(statement.tree, Scope(session))
    return _renamed(body, view_columns(session, statement, [c.name for c in body.columns]))


def view_columns(session: Session, statement: Statement, names: Sequence[str]) -> Sequence[str]:
    """CREATE MATERIALIZED VIEW v (a, b) AS …"""
    given = statement.columns
    if given is None:
        return names
    twice = next((name for i, name in enumerate(given) if name in given[:i]), None)
    if len(given) != len(names) or twice is not None:
        counts = _names_for(len(given), len(names))
        message = counts if len(given) != len(names) else f"two columns are named {twice}"
        raise session.source.error(statement.place, f"view {statement.name}: {message}", "name every column once")
    return given


def _names_for(given: int, columns: int) -> str:
    return f"{given} name{'s' * (given != 1)} for {columns} column{'s' * (columns != 1)}"


def _renamed(body: Table, names: Sequence[str]) -> Table:
    return Table(body.factors, tuple(OutputColumn(n, c.expr) for n, c in zip(names, body.columns, strict=True)))


# -- UNION, INTERSECT, EXCEPT ------------------------------------------------------------------------------------------


def _set_operation(tree: exp.SetOperation, scope: Scope) -> Table:
    only(scope.session.source, tree, frozenset({"this", "expression", "distinct", "by_name", "with_"}), SELECT_HINTS)
    branches = _branches(tree, replace(scope, common=with_common(tree, scope)))
    rows, columns = set_operation(tree, scope, [(join(*b.factors), b.columns) for b in branches])
    return Table((rows,), tuple(columns))


def _branches(tree: exp.SetOperation, scope: Scope) -> list[Table]:
    """Both sides; what is wrong with the first does not hide the second."""
    sides: list[Table] = []
    failed: SqlError | None = None
    for side in (tree.this, tree.expression):
        try:
            sides.append(table(side, scope))
        except SqlError as error:
            scope.session.source.refuse(error)
            failed = error
    if failed is not None:
        raise failed
    return sides
