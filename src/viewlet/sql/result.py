"""A view → :class:`~viewlet.program.trigger.Result`: sums over products below, what is not linear on top."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from viewlet.algebra.query import Bind, Compare, Query, Sum, factors, inputs, join, outputs, rename, sum_
from viewlet.algebra.terms import Var, free
from viewlet.program.trigger import Result, ResultColumn
from viewlet.schema import INTEGER
from viewlet.sql.ending import split
from viewlet.sql.expr import merge, rounded, variable
from viewlet.sql.grouping import bound
from viewlet.sql.order import Wanted, of_columns, orders, with_order_items
from viewlet.sql.parse import Statement
from viewlet.sql.scope import Names, Scope, Session
from viewlet.sql.select_list import Aggregation, OutputColumn, aggregation, is_aggregating
from viewlet.sql.session_rows import refuse_hidden_sessions
from viewlet.sql.table import block, is_distinct, over_rows, table, view_columns, windowed, windows_of
from viewlet.sql.types import shown as shown_type

Translated = tuple[Result, Sequence[OutputColumn]]  # without its columns, and these with those that are only ordered by


def result(session: Session, statement: Statement) -> Result:
    tree, ending = split(statement.tree, session)
    wanted, shown = list[Wanted](), None
    if isinstance(tree, exp.Select) and ending.order:
        tree, wanted, shown = with_order_items(tree, ending, session)
    if isinstance(tree, exp.Select) and windows_of(tree):
        tree = over_rows(tree, Scope(session))
    bare, columns = _windowed(session, tree) or _linear(session, tree) or _general(session, tree)
    if not isinstance(tree, exp.Select):
        wanted = of_columns([c.name for c in columns], ending, session)
    names = view_columns(session, statement, [c.name for c in columns[:shown]])
    refuse_hidden_sessions(bare, session.source, statement.place)
    return replace(
        bare,
        name=statement.name,
        columns=tuple(replace(c, name=n) for c, n in zip(_columns(columns[:shown]), names, strict=True)),
        sql=statement.text,
        order=orders(wanted, columns, len(names), session) if wanted or ending.is_cut else (),
        limit=ending.limit,
        offset=ending.offset,
    )


def _columns(columns: Iterable[OutputColumn]) -> tuple[ResultColumn, ...]:
    return tuple(
        ResultColumn(c.name, shown_type(c.expr.type or INTEGER), c.expr.nullable, c.expr.term) for c in columns
    )


def _windowed(session: Session, tree: exp.Expr) -> Translated | None:
    """Rows whose window functions are found when they are read: None where some cannot be."""
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or not windows_of(tree):
        return None
    session = replace(session, names=Names(), single=[])
    scope = Scope(session)
    windows, columns, condition = windowed(tree, scope, at_top=True)
    if not windows.is_read:
        return None
    product, found = join(windows.product, *merge(c.expr.binds for c in columns)), windows.found()
    product = product if condition is None else join(product, *condition.binds)
    shown, used = list[OutputColumn](), set(windows.variables())
    for column in columns:
        expr = column.expr
        if free(expr.term).isdisjoint(found):
            var, product = bound(session.names, product, rounded(expr).term, column.name)
            expr = variable(var, expr.type, expr.nullable)
        shown.append(OutputColumn(column.name, expr))
        used |= free(expr.term)
    having = None if condition is None else condition.term
    used |= frozenset() if having is None else free(having)
    rows = sum_(used & outputs(product), product)
    first = [c.expr.term.name for c in shown if isinstance(c.expr.term, Var) and c.expr.term.name in outputs(rows)]
    by_number = windows.row_windows(list(dict.fromkeys([*first, *sorted(outputs(rows))])))
    lookups, extremes, gathers = windows.lookups(), windows.extremes(), windows.gathers()
    found_when_read = Result("", (), rows, lookups, having, distinct=False, extremes=extremes, gathers=gathers)
    return replace(found_when_read, windows=by_number, single=tuple(session.single)), shown


def _linear(session: Session, tree: exp.Expr) -> Translated | None:
    """One aggregating block: rows are its groups and every aggregate is a map of its own, read by the keys."""
    if not isinstance(tree, exp.Select) or not is_aggregating(tree) or tree.args.get("distinct"):
        return None
    parts = aggregation(tree, block(tree, Scope(session)), at_top=True)
    lookups = _lookups(parts)
    if lookups is None:
        return None
    result = Result(
        "",
        (),
        parts.grouping.rows if parts.grouping.grouped else None,
        lookups,
        parts.having.term if parts.having is not None else None,
        extremes=tuple(parts.grouping.extremes.values()),
        gathers=tuple(parts.grouping.gathers.values()),
        single=tuple(session.single),
    )
    return result, parts.columns


def _lookups(parts: Aggregation) -> tuple[tuple[str, Query], ...] | None:
    """Aggregates, and the subqueries of SELECT and HAVING, as closed maps over the keys; None where one is not."""
    result = [(var, q) for q, var in parts.grouping.lookups.items()]
    exprs = [c.expr for c in parts.columns] + ([parts.having] if parts.having is not None else [])
    for bind in dict.fromkeys(b for e in exprs for b in e.binds):
        closed = _closed(bind.query, frozenset(parts.grouping.keys)) if isinstance(bind, Bind) else None
        if closed is None or not isinstance(bind, Bind):
            return None
        result.append((bind.var, closed))
    return tuple(result)


def _closed(q: Query, keys: frozenset[str]) -> Query | None:
    """Sum(R(x) ⋈ [x = k]) as Sum_k(R(k)): a subquery correlated by equality to keys is a map over them."""
    for key in sorted(inputs(q)):
        body = q.query if isinstance(q, Sum) else q
        group = q.group if isinstance(q, Sum) else outputs(q)
        column = _equal_column(body, key)
        if key not in keys or column is None:
            return None
        rest = [f for f in factors(body) if not (isinstance(f, Compare) and _is_equality(f, column, key))]
        q = sum_(group | {key}, rename(join(*rest), {column: key}))
    return q if not inputs(q) else None


def _equal_column(body: Query, key: str) -> str | None:
    """The column x of a table in the product that a factor [x = key] ties to the key."""
    tables = [f for f in factors(body) if not isinstance(f, Bind) and not inputs(f)]
    for column in sorted(outputs(join(*tables))):
        if any(isinstance(f, Compare) and _is_equality(f, column, key) for f in factors(body)):
            return column
    return None


def _is_equality(f: Compare, column: str, key: str) -> bool:
    return f.op == "=" and {f.left, f.right} == {Var(column), Var(key)}


def _general(session: Session, tree: exp.Expr) -> Translated:
    """Any query as a bag of rows whose columns are all variables."""
    session = replace(session, names=Names(), single=[])
    distinct = is_distinct(tree) if isinstance(tree, exp.Select) else _is_union(tree)
    if distinct:
        tree = tree.copy()
        tree.set("distinct", None)
    rows, columns = table(tree, Scope(session)).projected(session.names)
    return Result("", (), rows, distinct=distinct, single=tuple(session.single)), columns


def _is_union(tree: exp.Expr) -> bool:
    """UNION without ALL: who reads the rows of UNION ALL shows each once."""
    return isinstance(tree, exp.Union) and bool(tree.args.get("distinct"))
