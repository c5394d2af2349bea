"""The rows of a block, each with the start of its session."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewlet.algebra.query import Bind, Exists, Query, atoms, children, factors, inputs, join, relations
from viewlet.algebra.sessions import Sessions, is_sessions, rows_of
from viewlet.algebra.terms import Var
from viewlet.program.trigger import Result
from viewlet.schema import TIMESTAMP, TIMESTAMPTZ
from viewlet.sql.aliases import aliases_of, seeing
from viewlet.sql.expr import an, merge, rounded, variable
from viewlet.sql.expression import expression
from viewlet.sql.grouping import bound
from viewlet.sql.scope import Field, Scope
from viewlet.sql.session_windows import SESSION, START
from viewlet.sql.source import Place, Source

_AT_TOP = "group by one session in the view's own SELECT, and ask of that view what you want more: db.sql(…)"
_COLUMNS = "keep it as a column of the stream, or group by it in a query of the view: db.sql(…)"
_ONE_TABLE = "take the sessions of one stream in a subquery, FROM SESSION(…), and join that"


def with_sessions(tree: exp.Select, rows: tuple[Query, ...], scope: Scope) -> tuple[tuple[Query, ...], Scope]:
    """The product with Exists(J), and a scope with its column; a row without a time belongs to no session."""
    node = tree.args.get("session")
    if node is None:
        return rows, scope
    seen, source, names = seeing(scope, aliases_of(tree)), scope.session.source, scope.session.names
    time, gap, *keys = node.expressions
    at, parts = expression(time, seen), [rounded(expression(key, seen)) for key in keys]
    if at.type not in (TIMESTAMP, TIMESTAMPTZ):
        hint = "write CAST(t AS TIMESTAMP)"
        raise source.error(time, f"the time of a session is a TIMESTAMP, not {an(at)}", hint)
    for written, expr, taken in [(time, at, None), *((k, e, at.term) for k, e in zip(keys, parts, strict=True))]:
        if not isinstance(expr.term, Var) or expr.term == taken:
            raise source.unsupported(written, "a session by a computed column, or by its time alone", _COLUMNS)
    product, variables = join(*merge([rows, at.guards, *(e.binds for e in (at, *parts))])), list[str]()
    for part in parts:
        var, product = bound(names, product, part.term, "key")
        variables.append(var)
    var, product = bound(names, product, at.term, "time", apart_from=variables)
    if rows_of(factors(product)) is None or inputs(product):
        raise source.unsupported(time, "sessions of rows that are joined or computed", _ONE_TABLE)
    start = names.fresh("window_start")
    sessions = Sessions(factors(product), frozenset(variables), var, int(gap.name), var, start)
    column = Field(SESSION, START, variable(start, at.type, False), merged=True)
    return factors(join(product, Exists(sessions.query))), scope.adding((column,))


def refuse_hidden_sessions(result: Result, source: Source, place: Place) -> None:
    """An event moves many rows of J: what is nested around it would be evaluated again for each of them."""
    queries = [q for _, q in result.lookups] + [e.query for e in result.extremes] + [g.query for g in result.gathers]
    for q in (*queries, *([] if result.rows is None else [result.rows])):
        found = list(sessions_in(q))
        if any(_hidden(q)) or len(found) > 1 or any(_is_read_twice(q, j) for j in found):
            construct = "a session window below the top of a view, beside its stream or another, or with DISTINCT in it"
            raise source.unsupported(place, construct, _AT_TOP)


def _hidden(q: Query) -> Iterator[bool]:
    """Whether some J stands inside a nested aggregate."""
    for child in () if is_sessions(q) else children(q):
        yield from (True for _ in sessions_in(child)) if isinstance(q, (Bind, Exists)) else _hidden(child)


def _is_read_twice(q: Query, sessions: Query) -> bool:
    """Whether the relation of J stands beside J in more places than the rows that have sessions."""
    names = [atom.name for atom in atoms(q)]
    return any(names.count(r) - [a.name for a in atoms(sessions)].count(r) > 1 for r in relations(sessions))


def sessions_in(q: Query) -> Iterator[Query]:
    if is_sessions(q):
        yield q
    else:
        for child in children(q):
            yield from sessions_in(child)
