"""A script of CREATE statements → relations and results."""

from __future__ import annotations

from viewlet.errors import TOO_DEEP, TOO_DEEP_HINT, SqlError
from viewlet.program.trigger import Result, Script
from viewlet.sql import subquery  # noqa: F401  its rules for EXISTS, IN and scalar subqueries register themselves
from viewlet.sql.ddl import relation
from viewlet.sql.parse import parse
from viewlet.sql.result import result
from viewlet.sql.scope import Catalog, Dialect, Names, Session
from viewlet.sql.source import Source, script_text


def translate(source: str, dialect: Dialect = "sql") -> Script:
    """The relations of a script, and how each of its views is read off sums over them.

    ``dialect="paper"``: SUM and AVG of nothing are 0 instead of NULL.
    """
    text = Source(script_text(source))
    try:
        return _translated(text, dialect)
    except RecursionError:
        line, column = text.line_column(text.statement)
        raise SqlError(TOO_DEEP, source=text.text, line=line, column=column, hint=TOO_DEEP_HINT) from None


def _translated(text: Source, dialect: Dialect) -> Script:
    catalog, results = Catalog(), list[Result]()
    for statement in parse(text):
        if statement.name in catalog:
            raise text.error(statement.place, f"{statement.name} is defined twice", "choose another name")
        if statement.kind == "VIEW":
            results.append(result(Session(text, catalog, dialect, Names()), statement))
            catalog.views[statement.name] = statement
        else:
            catalog.relations[statement.name] = relation(text, statement)
    return Script(tuple(catalog.relations.values()), tuple(results), dialect, text.text)
