"""SELECT → a bag of rows: a product of factors, and columns as terms over its variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists, Query, Rel, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import Term, Var
from viewlet.sql.aggregate import GroupedScope, Grouping, bound
from viewlet.sql.expr import Expr, compared, holds, merge, variable
from viewlet.sql.expression import boolean, expression, matched, unified
from viewlet.sql.scope import CommonTable, Field, Names, Scope, Session
from viewlet.sql.source import did_you_mean
from viewlet.sql.unsupported import only

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "kind"})
_SELECT_HINTS = {
    "order": ("ORDER BY", "a view has no order: sort when you read it"),
    "limit": ("LIMIT", "a view keeps every row: limit when you read it"),
    "offset": ("OFFSET", "a view keeps every row: limit when you read it"),
    "qualify": ("QUALIFY", "compare with a correlated subquery in WHERE"),
    "windows": ("WINDOW", "compare with a correlated subquery"),
    "sample": ("SAMPLE", "leave it out"),
    "laterals": ("LATERAL", "write a correlated subquery in SELECT or WHERE"),
}
_OUTER_JOIN = "join inner, and add the rows without a partner by UNION ALL … WHERE NOT EXISTS (…)"
_SET_HINTS = {
    exp.Union: ("UNION", "write UNION ALL inside SELECT DISTINCT * FROM (…)"),
    exp.Intersect: ("INTERSECT", "write SELECT DISTINCT … WHERE EXISTS (…)"),
    exp.Except: ("EXCEPT", "write SELECT DISTINCT … WHERE NOT EXISTS (…)"),
}


@dataclass(frozen=True)
class OutputColumn:
    name: str
    expr: Expr


@dataclass(frozen=True)
class Table:
    factors: tuple[Query, ...]
    columns: tuple[OutputColumn, ...]

    def projected(self, names: Names) -> tuple[Query, tuple[OutputColumn, ...]]:
        """Sum over the columns alone, each under a variable."""
        product, columns = join(*self.factors), list[OutputColumn]()
        for column in self.columns:
            var, product = bound(names, product, column.expr.term, column.name)
            columns.append(OutputColumn(column.name, variable(var, column.expr.type, column.expr.nullable)))
        return sum_({c.expr.term.text for c in columns}, product), tuple(columns)

    def distinct(self, names: Names) -> Table:
        query, columns = self.projected(names)
        return Table((Exists(query),), columns)


@dataclass(frozen=True)
class Block:
    """FROM and WHERE."""

    factors: tuple[Query, ...]
    scope: Scope


@dataclass(frozen=True)
class Aggregation:
    """GROUP BY, SELECT and HAVING of an aggregating block."""

    grouping: Grouping
    columns: tuple[OutputColumn, ...]
    having: Expr | None


def table(tree: exp.Expr, scope: Scope) -> Table:
    """The rows of a query; ``scope`` is what is visible around it (``outer``) and its WITH queries (``common``)."""
    if isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
        return table(tree.this, scope)
    if isinstance(tree, exp.Select):
        return _select(tree, scope)
    if isinstance(tree, exp.SetOperation):
        return _union_all(tree, scope)
    raise scope.session.source.unsupported(tree, tree.key.upper(), "write SELECT … FROM …")


def _select(tree: exp.Select, scope: Scope) -> Table:
    found = block(tree, scope)
    if not is_aggregating(tree):
        columns = plain_columns(tree, found)
        plain = Table(merge([found.factors, *(c.expr.binds for c in columns)]), tuple(map(_settled, columns)))
        return plain.distinct(scope.session.names) if tree.args.get("distinct") else plain
    grouped = _grouped_table(aggregation(tree, found), scope.session.names)
    return grouped.distinct(scope.session.names) if tree.args.get("distinct") else grouped


def _settled(column: OutputColumn) -> OutputColumn:
    """The binds of a column stand in the table's own product from here on."""
    return OutputColumn(column.name, replace(column.expr.without_binds(), true=None, false=None))


def is_aggregating(tree: exp.Select) -> bool:
    own = [*tree.expressions, *([tree.args["having"]] if tree.args.get("having") else [])]
    return bool(tree.args.get("group") or tree.args.get("having")) or any(map(_has_aggregate, own))


def _has_aggregate(node: exp.Expr) -> bool:
    """An aggregate of this block, not of a subquery in it."""
    inside = node.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Window)))
    return any(isinstance(n, exp.AggFunc) for n in inside)


def _grouped_table(found: Aggregation, names: Names) -> Table:
    """Exists(Sum_g(inner)) ⋈ (s := Sum_g(inner′ ⋈ value)) …: each copy of inner has its own locals and shares g."""
    grouping = found.grouping
    rows, *queries = names.apart([grouping.rows, *grouping.lookups], grouping.keys)
    groups = (Exists(rows),) if grouping.grouped else ()
    sums = tuple(Bind(var, q) for var, q in zip(grouping.lookups.values(), queries, strict=True))
    having = holds(found.having) if found.having is not None else ()
    binds = merge(c.expr.binds for c in found.columns)
    return Table(merge([groups, sums, having, binds]), tuple(map(_settled, found.columns)))


# -- FROM and WHERE ----------------------------------------------------------------------------------------------------


def block(tree: exp.Select, outer: Scope) -> Block:
    source = outer.session.source
    only(source, tree, _SELECT_PARTS, _SELECT_HINTS)
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise source.unsupported(distinct, "DISTINCT ON", "write SELECT DISTINCT, or GROUP BY")
    scope = Scope(outer.session, (), outer.outer, with_common(tree, outer))
    factors: tuple[Query, ...] = ()
    start = tree.args.get("from_")
    if start is not None:
        factors, scope = _from_item(start.this, scope)
    for node in tree.args.get("joins") or ():
        more, scope = _join(node, scope)
        factors += more
    where = tree.args.get("where")
    if where is not None:
        factors += holds(boolean(where.this, scope))
    return Block(factors, scope)


def with_common(tree: exp.Expr, scope: Scope) -> Mapping[str, CommonTable]:
    """WITH queries; each sees those before it."""
    clause = tree.args.get("with_")
    common = dict(scope.common)
    if clause is None:
        return common
    if clause.args.get("recursive"):
        raise scope.session.source.unsupported(clause, "WITH RECURSIVE", "write the levels out as joins", "RECURSIVE")
    for node in clause.expressions:
        common[node.alias.lower()] = CommonTable(node, dict(common))
    return common


def _join(node: exp.Join, scope: Scope) -> tuple[tuple[Query, ...], Scope]:
    source = scope.session.source
    side = " ".join(filter(None, (node.method, node.side, node.kind))).upper()
    if side not in ("", "INNER", "CROSS"):
        hint = "name the columns: JOIN … ON a.x = b.x" if node.method else _OUTER_JOIN
        raise source.unsupported(node, f"{side} JOIN", hint, side.split()[0])
    only(source, node, frozenset({"this", "on", "using", "kind"}), {})
    factors, both = _from_item(node.this, scope)
    if node.args.get("on") is not None:
        factors += holds(boolean(node.args["on"], both))
    for name in node.args.get("using") or ():
        equal, both = _using(name, scope, both)
        factors += equal
    return factors, both


def _using(name: exp.Expr, left: Scope, both: Scope) -> tuple[tuple[Query, ...], Scope]:
    """JOIN … USING (x): the two x are equal, and one column from then on."""
    right = replace(both, fields=both.fields[len(left.fields) :])
    column = exp.Column(this=name.copy())
    mine, theirs = left.own(column), right.own(column)
    if mine is None or theirs is None:
        missing = "left" if mine is None else "right"
        hint = f"both sides need a column {name.name.lower()}; write ON"
        raise left.session.source.error(name, f"there is no column {name.name.lower()} on the {missing} side", hint)
    merged = replace(mine, tables=mine.tables + theirs.tables)
    fields = tuple(merged if f is mine else f for f in both.fields if f is not theirs)
    return holds(compared("=", *matched(name, both, mine.expr, theirs.expr))), replace(both, fields=fields)


def _from_item(node: exp.Expr, scope: Scope) -> tuple[tuple[Query, ...], Scope]:
    source = scope.session.source
    if not isinstance(node, (exp.Table, exp.Subquery)):
        raise source.unsupported(node, node.key.upper(), "FROM takes tables, views and subqueries")
    only(
        source,
        node,
        frozenset({"this", "alias", "db", "catalog"}),
        {"joins": ("a JOIN in parentheses", "leave out the parentheses")},
    )
    alias = node.alias.lower() or (node.name.lower() if isinstance(node, exp.Table) else "")
    if any(alias in f.tables for f in scope.fields):
        hint = "give each its own name: FROM bids x, bids y"
        raise source.error(node, f"table name {alias} is used twice in this FROM", hint)
    around = replace(scope, fields=())
    found = _named(node, around, alias) if isinstance(node, exp.Table) else table(node.this, around)
    names = _column_aliases(node, scope, [c.name for c in found.columns])
    fields = tuple(Field((alias,), n, c.expr) for n, c in zip(names, found.columns, strict=True))
    return found.factors, scope.adding(fields)


def _column_aliases(node: exp.Expr, scope: Scope, names: list[str]) -> list[str]:
    """FROM … AS t (a, b): new names for the first columns."""
    given = [c.name.lower() for c in node.args["alias"].columns] if node.args.get("alias") else []
    if len(given) > len(names):
        raise scope.session.source.error(
            node, f"{len(given)} names for {len(names)} columns", "name as many as there are"
        )
    return given + names[len(given) :]


def _named(node: exp.Table, scope: Scope, alias: str) -> Table:
    session, name = scope.session, node.name.lower()
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        raise session.source.unsupported(
            node, "this in FROM", "FROM takes the name of a table or view, without a schema"
        )
    if name in scope.common:
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
    return Table((atom,), tuple(OutputColumn(c.name, variable(var, c.type, c.nullable)) for c, var in columns))


def _common_table(common: CommonTable, scope: Scope) -> Table:
    found = table(common.tree.this, replace(scope, fields=(), common=common.visible))
    return _renamed(found, _column_aliases(common.tree, scope, [c.name for c in found.columns]))


def defined_view(session: Session, name: str) -> Table:
    """A view in FROM is its definition, translated again with fresh variables."""
    tree = session.catalog.views[name].tree
    found = table(tree.expression, Scope(session))
    if not isinstance(tree.this, exp.Schema):
        return found
    return _renamed(found, view_columns(session, tree, [c.name for c in found.columns]))


def view_columns(session: Session, tree: exp.Create, names: list[str]) -> list[str]:
    """CREATE MATERIALIZED VIEW v (a, b) AS …"""
    if not isinstance(tree.this, exp.Schema):
        return names
    given = [c.name.lower() for c in tree.this.expressions]
    if len(given) != len(names):
        raise session.source.error(tree.this, f"{len(given)} names for {len(names)} columns", "name every column once")
    return given


def _renamed(found: Table, names: list[str]) -> Table:
    return Table(found.factors, tuple(OutputColumn(n, c.expr) for n, c in zip(names, found.columns, strict=True)))


# -- SELECT and GROUP BY -----------------------------------------------------------------------------------------------


def plain_columns(tree: exp.Select, found: Block) -> tuple[OutputColumn, ...]:
    named = _select_list(tree, found.scope)
    return tuple(OutputColumn(name, expression(node, found.scope)) for name, node in named)


def aggregation(tree: exp.Select, found: Block) -> Aggregation:
    items = _select_list(tree, found.scope)
    grouping, keys = _grouping(tree, found, items)
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    base = found.scope
    scope = GroupedScope(base.session, base.fields, base.outer, base.common, base, grouping, keys)
    columns = tuple(OutputColumn(name, expression(node, scope)) for name, node in items)
    having = tree.args.get("having")
    condition = boolean(having.this, replace(scope, aliases=aliases)) if having is not None else None
    return Aggregation(grouping, columns, condition)


def _grouping(tree: exp.Select, found: Block, items: list[tuple[str, exp.Expr]]) -> tuple[Grouping, dict[Term, Expr]]:
    session, clause = found.scope.session, tree.args.get("group")
    product, keys, variables = join(*found.factors), dict[Term, Expr](), list[str]()
    for node in clause.expressions if clause is not None else ():
        key = expression(_group_item(node, found.scope, items), found.scope)
        product = join(product, *key.binds)
        var, product = bound(session.names, product, key.term, "key")
        keys[key.term] = variable(var, key.type, key.nullable)
        variables.append(var)
    if clause is not None:
        only(session.source, clause, frozenset({"expressions"}), {})
    return Grouping(session.names, tuple(variables), (product,), clause is not None), keys


def _group_item(node: exp.Expr, scope: Scope, items: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """GROUP BY 1 and GROUP BY alias mean a SELECT item; a column of FROM comes before an alias."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.this) if node.this.isdigit() else 0
        if not 1 <= place <= len(items):
            hint = f"number the SELECT items from 1 to {len(items)}"
            raise scope.session.source.error(node, f"there is no SELECT item {node.this}", hint)
        return items[place - 1][1]
    if isinstance(node, exp.Column) and not node.table and scope.own(node) is None:
        return next((item for name, item in items if name == node.name.lower()), node)
    return node


def _select_list(tree: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
    """The SELECT items with their names; ``*`` written out, a name that comes again numbered as DuckDB does."""
    result: list[tuple[str, exp.Expr]] = []
    for i, item in enumerate(tree.expressions):
        for name, node in _expanded(item, scope, i + 1):
            taken = {n for n, _ in result}
            if name in taken and isinstance(item, exp.Alias):
                raise scope.session.source.error(item, f"two columns are named {name}", "give each its own name: AS …")
            unique = next(n for n in (name, *(f"{name}_{k}" for k in range(1, 10_000))) if n not in taken)
            result.append((unique, node))
    return result


def _expanded(item: exp.Expr, scope: Scope, place: int) -> list[tuple[str, exp.Expr]]:
    if isinstance(item, exp.Alias):
        return [(item.alias.lower(), item.this)]
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        return _star(item, star, scope)
    if isinstance(item, exp.Column):
        return [(item.name.lower(), item)]
    return [(item.key if isinstance(item, (exp.Sum, exp.Count, exp.Avg)) else f"column_{place}", item)]


def _star(item: exp.Expr, star: exp.Star, scope: Scope) -> list[tuple[str, exp.Expr]]:
    source = scope.session.source
    only(
        source,
        star,
        frozenset(),
        {"except_": ("EXCLUDE", "name the columns"), "replace": ("REPLACE", "name the columns")},
    )
    table_name = item.table.lower() if isinstance(item, exp.Column) else ""
    fields = [f for f in scope.fields if not table_name or table_name in f.tables]
    if not fields:
        tables = sorted({t for f in scope.fields for t in f.tables})
        hint = did_you_mean(table_name, tables, f"the tables here are: {', '.join(tables) or 'none'}")
        raise source.error(
            item, f"there is no table {table_name} in this query" if table_name else "SELECT * without FROM", hint
        )
    nodes = [exp.column(f.name, table=f.tables[0]) for f in fields]
    for node in nodes:
        node.update_positions(star)
    return [(f.name, node) for f, node in zip(fields, nodes, strict=True)]


# -- UNION ALL ---------------------------------------------------------------------------------------------------------


def _union_all(tree: exp.SetOperation, scope: Scope) -> Table:
    """Q₁ + Q₂ over common variables."""
    source = scope.session.source
    if not isinstance(tree, exp.Union) or tree.args.get("distinct"):
        construct, hint = _SET_HINTS[type(tree)]
        raise source.unsupported(tree.expression, construct, hint, construct)
    only(source, tree, frozenset({"this", "expression", "distinct", "with_"}), _SELECT_HINTS)
    inner = replace(scope, common=with_common(tree, scope))
    branches = [table(side, inner) for side in (tree.this, tree.expression)]
    widths = [len(b.columns) for b in branches]
    if widths[0] != widths[1]:
        message = f"UNION ALL of {widths[0]} and {widths[1]} columns"
        raise source.error(tree.expression, message, "SELECT as many columns on both sides")
    return _added(tree, scope, branches)


def _added(tree: exp.Expr, scope: Scope, branches: list[Table]) -> Table:
    names = scope.session.names
    columns: list[OutputColumn] = []
    aligned: list[list[Expr]] = []
    for pair in zip(*(b.columns for b in branches), strict=True):
        parts, type_ = unified(tree, scope, [c.expr for c in pair])
        aligned.append(parts)
        nullable = any(p.nullable for p in parts)
        columns.append(OutputColumn(pair[0].name, variable(names.fresh(pair[0].name), type_, nullable)))
    variables = [c.expr.term.text for c in columns]
    sides = [_over(join(*b.factors), [parts[i] for parts in aligned], variables) for i, b in enumerate(branches)]
    return Table((union(*sides),), tuple(columns))


def _over(product: Query, parts: list[Expr], variables: list[str]) -> Query:
    """One branch, its columns renamed to the common variables where they are columns, else bound to them."""
    renamed: dict[str, str] = {}
    for part, var in zip(parts, variables, strict=True):
        if isinstance(part.term, Var) and part.term.name in outputs(product) and part.term.name not in renamed:
            renamed[part.term.name] = var
        else:
            product = join(product, Bind(var, Value(part.term)))
    return sum_(variables, rename(product, renamed))
