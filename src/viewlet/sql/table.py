"""SELECT → a bag of rows: a product of factors, and columns as terms over its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists, Query, Rel, Value, join, outputs, rename, sum_, union
from viewlet.algebra.terms import Var
from viewlet.errors import SqlError
from viewlet.sql.aggregate import bound
from viewlet.sql.ending import is_cut, without_ending
from viewlet.sql.expr import Expr, compared, holds, merge, rounded, variable
from viewlet.sql.expression import boolean, matched, unified
from viewlet.sql.parse import Statement
from viewlet.sql.scope import CommonTable, Field, Names, Scope, Session
from viewlet.sql.select_list import Aggregation, Block, OutputColumn, aggregation, is_aggregating, plain_columns
from viewlet.sql.source import did_you_mean
from viewlet.sql.unsupported import only, refuse_join

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"})
SELECT_HINTS = {
    "qualify": ("QUALIFY", "a view keeps every row: choose when you read it"),
    "windows": ("WINDOW", "write OVER where it is used"),
    "sample": ("SAMPLE", "a view keeps every row: sample when you read it"),
    "laterals": (
        "LATERAL",
        "where it is one aggregate, write it in SELECT: (SELECT MAX(y.v) FROM t y WHERE y.k = x.k)",
    ),
}
_SIDES = "(SELECT a, 0 AS side FROM … UNION ALL SELECT a, 1 FROM …) t GROUP BY a HAVING"
SET_HINTS = {
    exp.Union: ("UNION", "write SELECT DISTINCT * FROM (SELECT … UNION ALL SELECT …) t"),
    exp.Intersect: ("INTERSECT", f"write SELECT a FROM {_SIDES} MIN(side) = 0 AND MAX(side) = 1"),
    exp.Except: ("EXCEPT", f"write SELECT a FROM {_SIDES} MAX(side) = 0"),
}
_RECURSIVE = "leave RECURSIVE out where no query of it reads itself"
CUT_VIEW = "read a view without LIMIT and OFFSET, and limit when you read what reads it"
SET_ALL = "keep both sides as views, and compare when you read them"


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
        return _union_all(tree, scope)
    raise scope.session.source.unsupported(tree, tree.key.upper(), "write SELECT … FROM …")


def is_distinct(tree: exp.Select, session: Session) -> bool:
    clause = tree.args.get("distinct")
    if clause is not None and clause.args.get("on"):
        hint = "a view keeps every row: choose when you read it"
        session.source.refuse(session.source.unsupported(clause, "DISTINCT ON", hint, "DISTINCT"))
    return clause is not None


def _select(tree: exp.Select, scope: Scope) -> Table:
    found = block(tree, scope)
    if is_aggregating(tree):
        rows = _grouped_table(aggregation(tree, found), scope.session.names)
    else:
        columns = plain_columns(tree, found)
        rows = Table(merge([found.factors, *(c.expr.binds for c in columns)]), tuple(map(_settled, columns)))
    return rows.distinct(scope.session.names) if is_distinct(tree, scope.session) else rows


def _settled(column: OutputColumn) -> OutputColumn:
    """The binds of a column stand in the table's own product from here on."""
    return OutputColumn(column.name, column.expr.without_binds())


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
    only(source, tree, _SELECT_PARTS, SELECT_HINTS)
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
        raise scope.session.source.unsupported(clause, "WITH RECURSIVE", _RECURSIVE, "RECURSIVE")
    for node in clause.expressions:
        common[node.alias.lower()] = CommonTable(node, dict(common), scope.outer)
    return common


def _join(node: exp.Join, scope: Scope) -> tuple[tuple[Query, ...], Scope]:
    source = scope.session.source
    refuse_join(source, node)
    only(source, node, frozenset({"this", "on", "using", "kind", "side", "method"}), {})
    factors, both = _from_item(node.this, scope)
    if node.args.get("on") is not None:
        factors += holds(boolean(node.args["on"], both))
    for name in node.args.get("using") or ():
        equal, both = _using(name, scope, both)
        factors += equal
    return factors, both


def _using(name: exp.Expr, left: Scope, both: Scope) -> tuple[tuple[Query, ...], Scope]:
    """JOIN … USING (x): the two x are equal; x and * mean that of the left, the right table's name still its own."""
    right = replace(both, fields=both.fields[len(left.fields) :])
    column = exp.Column(this=name.copy())
    mine, theirs = left.own(column), right.own(column)
    if mine is None or theirs is None:
        missing = "left" if mine is None else "right"
        hint = f"both sides need a column {name.name.lower()}; write ON"
        raise left.session.source.error(name, f"there is no column {name.name.lower()} on the {missing} side", hint)
    fields = tuple(replace(f, merged=True) if f is theirs else f for f in both.fields)
    return holds(compared("=", *matched(name, both, mine.expr, theirs.expr))), replace(both, fields=fields)


def _from_item(node: exp.Expr, scope: Scope) -> tuple[tuple[Query, ...], Scope]:
    source = scope.session.source
    if isinstance(node, exp.Lateral):
        raise source.unsupported(node, *SELECT_HINTS["laterals"])
    if not isinstance(node, (exp.Table, exp.Subquery)):
        raise source.unsupported(node, node.key.upper(), "FROM takes tables, views and subqueries")
    if isinstance(node.this, exp.Table):
        what = "a JOIN in parentheses" if node.this.args.get("joins") else "a table in parentheses"
        raise source.unsupported(node, what, "leave out the parentheses")
    only(source, node, frozenset({"this", "alias", "db", "catalog"}), {})
    alias = node.alias.lower() or (node.name.lower() if isinstance(node, exp.Table) else "")
    if any(alias == f.table for f in scope.fields):
        hint = "give each its own name: FROM bids x, bids y"
        raise source.error(node, f"table name {alias} is used twice in this FROM", hint)
    around = replace(scope, fields=())
    found = _named(node, around, alias) if isinstance(node, exp.Table) else table(node.this, around)
    names = _column_aliases(node, scope, [c.name for c in found.columns])
    exprs = [replace(c.expr, is_column=True) for c in found.columns]
    fields = tuple(Field(alias, n, e) for n, e in zip(names, exprs, strict=True))
    return found.factors, scope.adding(fields)


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
        if is_cut(session.catalog.views[name].tree, session):
            raise session.source.unsupported(node, f"a view over {name}, which leaves rows out", CUT_VIEW)
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
    found = table(common.tree.this, Scope(scope.session, (), common.outer, common.common))
    return _renamed(found, _column_aliases(common.tree, scope, [c.name for c in found.columns]))


def defined_view(session: Session, name: str) -> Table:
    """A view in FROM is its definition, translated again with fresh variables."""
    statement = session.catalog.views[name]
    found = table(statement.tree, Scope(session))
    return _renamed(found, view_columns(session, statement, [c.name for c in found.columns]))


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


def _renamed(found: Table, names: Sequence[str]) -> Table:
    return Table(found.factors, tuple(OutputColumn(n, c.expr) for n, c in zip(names, found.columns, strict=True)))


# -- UNION ALL ---------------------------------------------------------------------------------------------------------


def _union_all(tree: exp.SetOperation, scope: Scope) -> Table:
    """Q₁ + Q₂ over common variables."""
    source = scope.session.source
    if not isinstance(tree, exp.Union) or tree.args.get("distinct"):
        word, hint = SET_HINTS[type(tree)]
        construct, hint = (word, hint) if tree.args.get("distinct") else (f"{word} ALL", SET_ALL)
        source.refuse(source.unsupported(tree.expression, construct, hint, word))
    only(source, tree, frozenset({"this", "expression", "distinct", "with_"}), SELECT_HINTS)
    branches = _branches(tree, replace(scope, common=with_common(tree, scope)))
    widths = [len(b.columns) for b in branches]
    if widths[0] != widths[1]:
        message = f"UNION ALL of {widths[0]} and {widths[1]} columns"
        raise source.error(tree.expression, message, "SELECT as many columns on both sides")
    return _added(tree, scope, branches)


def _branches(tree: exp.SetOperation, scope: Scope) -> list[Table]:
    """Both sides; what is wrong with the first does not hide the second."""
    found: list[Table] = []
    failed: SqlError | None = None
    for side in (tree.this, tree.expression):
        try:
            found.append(table(side, scope))
        except SqlError as error:
            scope.session.source.refuse(error)
            failed = error
    if failed is not None:
        raise failed
    return found


def _added(tree: exp.Expr, scope: Scope, branches: list[Table]) -> Table:
    names = scope.session.names
    columns: list[OutputColumn] = []
    aligned: list[list[Expr]] = []
    for pair in zip(*(b.columns for b in branches), strict=True):
        parts, type_ = unified(tree, scope, [rounded(c.expr) for c in pair])
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
