"""A script of CREATE statements → relations and results."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from viewlet.program.trigger import Result, Script
from viewlet.sql import subquery
from viewlet.sql.ddl import defined_name, refuse_modifiers, relation
from viewlet.sql.parse import Statement, parse
from viewlet.sql.result import result
from viewlet.sql.scope import Catalog, Names, Session
from viewlet.sql.source import Source


def translate(source: str, dialect: Literal["sql", "paper"] = "sql") -> Script:
    """The relations of a script, and how each of its views is read off sums over them.

    ``dialect="paper"``: SUM and AVG of nothing are 0 instead of NULL.
    """
    text, catalog, results = Source(source), Catalog(), list[Result]()
    for statement in parse(text):
        name = _new_name(text, catalog, statement)
        if statement.kind == "VIEW":
            results.append(result(Session(text, catalog, dialect, Names()), name, statement))
            catalog.views[name] = statement
        else:
            catalog.relations[name] = relation(text, statement)
    return Script(tuple(catalog.relations.values()), tuple(results), dialect, source)


def _new_name(source: Source, catalog: Catalog, statement: Statement) -> str:
    target = statement.tree.this
    refuse_modifiers(source, statement.tree)
    name = defined_name(source, target.this if isinstance(target, exp.Schema) else target)
    if name in catalog:
        raise source.error(target, f"{name} is defined twice", "choose another name")
    return name


assert subquery  # its rules for EXISTS, IN and scalar subqueries register themselves
