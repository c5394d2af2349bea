"""UNNEST in FROM, and functions that make lists there: range, generate_series.

``FROM r, UNNEST(r.xs) AS t (x)`` reads a relation of its own: the rows of r, each once for each element of xs, with the
element behind it. It stands where r stood in the product. In a subquery over the list of a row around it, it stands
beside r, and the PRIMARY KEY of r says which rows belong together. A subquery over lists alone is a function of the
row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from viewlet.algebra.query import Compare, Query, Rel
from viewlet.algebra.terms import NULL, Var, op
from viewlet.duck import connection, first_line
from viewlet.errors import SqlError
from viewlet.schema import BIGINT, BOOLEAN, Column, Relation, Type
from viewlet.sql.derived import column_of_row, of_row
from viewlet.sql.expr import holds, loose, variable
from viewlet.sql.expression import boolean
from viewlet.sql.outer_join import Rows
from viewlet.sql.scope import Field, NewElements, Scope, Unnested
from viewlet.sql.unsupported import join_words
from viewlet.sql.values import written_rows

MOST_CONSTANTS = 100  # elements of a list that is written out
_PLACED = "compute the list of the columns of one stream or table, and unnest it beside that one"


@dataclass(frozen=True)
class Listed:
    """An item of FROM that is the elements of a list."""

    node: exp.Expr
    list: exp.Expr
    table: str
    names: tuple[str, ...]  # of the element and of its place, where that is wanted
    with_place: bool


def listed(node: exp.Expr) -> Listed | None:
    inner = node.this if isinstance(node, exp.Lateral) else node
    alias = node.args.get("alias") or inner.args.get("alias")
    given = [column.name.lower() for column in alias.columns] if alias else []
    table = alias.name.lower() if alias else ""
    if isinstance(inner, exp.Table) and isinstance(inner.this, exp.GenerateSeries):
        default = "range" if inner.this.args.get("is_end_exclusive") else "generate_series"
        return Listed(node, inner.this, table or default, (*given, default)[:1], False)
    if not isinstance(inner, exp.Unnest) or len(inner.expressions) != 1:
        return None
    place = inner.args.get("offset")
    places = [place.name.lower() if isinstance(place, exp.Identifier) else "ordinality"] if place else []
    names = [*given[:1], *([] if given else [table or "unnest"]), *(given[1:2] or places)]
    return Listed(node, inner.expressions[0], table or "unnest", tuple(names), bool(place))


# -- items of FROM -----------------------------------------------------------------------------------------------------


def joined_elements(node: exp.Join, item: Listed, before: Rows, last: Rows, around: Scope) -> tuple[Rows, Rows]:
    """``…, UNNEST(xs)``, ``CROSS JOIN``, ``JOIN … ON``, and ``LEFT JOIN … ON TRUE``, which keeps rows without any."""
    source, words = around.session.source, join_words(around.session.source, node)
    on = node.args.get("on")
    is_left = "LEFT" in words
    if node.args.get("using") or {"RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"} & set(words):
        raise source.unsupported(
            node.this, f"{' '.join(words)} JOIN UNNEST", "write CROSS JOIN, and a condition in WHERE"
        )
    if is_left and not (isinstance(on, exp.Boolean) and on.this):
        hint = "write ON TRUE, and unnest the elements that are meant: list_filter(xs, lambda x: …)"
        raise source.unsupported(node.this, "a condition in LEFT JOIN UNNEST", hint)
    before, last = _elements(item, before, last, around.adding(last.fields), is_left)
    if on is not None and not is_left:
        last = last.where(holds(boolean(on, around.adding(last.fields))))
    return before, last


def first_elements(item: Listed, scope: Scope) -> Rows:
    """The first of a FROM clause: constants, or of a row around it."""
    return _elements(item, Rows(), Rows(), scope, False)[1]


def _elements(item: Listed, before: Rows, last: Rows, scope: Scope, is_left: bool) -> tuple[Rows, Rows]:
    if any(item.table == f.table for f in (*before.fields, *last.fields)):
        hint = "give each its own name: UNNEST(xs) AS x (x)"
        raise scope.session.source.error(item.node, f"table name {item.table} is used twice in this FROM", hint)
    if item.list.find(exp.Column) is None and not is_left:
        return before, last.beside(_constants(item, scope))
    atom, text, type_ = _list(item, scope)
    if is_left:
        some = f"coalesce(len({text}) > 0, FALSE)"
        text = f"CASE WHEN {some} THEN {text} ELSE [NULL] END"
    relation = _relation(scope, atom, text, type_)
    if atom not in (*before.factors, *last.factors):
        return before, last.beside(_beside(item, scope, atom, relation, is_left))
    new, fields = _atom(item, scope, atom.vars, relation)
    if is_left and item.with_place:
        fields = (*fields[:1], *(_of_some(item, place, scope, new, some) for place in fields[1:]))
    if atom in before.factors:
        return replace(before, factors=_instead(before.factors, atom, new)), last.beside(Rows((), fields))
    return before, Rows(_instead(last.factors, atom, new), last.fields + fields)


def _of_some(item: Listed, place: Field, scope: Scope, atom: Rel, some: str) -> Field:
    """The place where the list has elements: the one that stands for none is in no place."""
    there = column_of_row(item.node, scope, atom, some, BOOLEAN)
    case = op("case", there.term, place.expr.term, NULL)
    return replace(place, expr=loose(case, BIGINT, True, [there, place.expr]))


def _list(item: Listed, scope: Scope) -> tuple[Rel, str, Type]:
    """The row that the list is computed of, its text, and the type of its elements."""
    source = scope.session.source
    found = of_row(item.list, scope)
    if found is None:
        raise source.unsupported(item.node, "UNNEST of this", _PLACED)
    atom, text, type_ = found
    if type_.kind != "LIST":
        hint = "name its fields: s.a, s.b" if type_.kind == "STRUCT" else "map_entries(m) is a list"
        raise source.error(item.node, f"UNNEST takes a list, not a {type_}", hint)
    return atom, text, type_.inner[0]


def _relation(scope: Scope, atom: Rel, text: str, type_: Type) -> Relation:
    catalog = scope.session.catalog
    children = [relation for relation in catalog.relations.values() if relation.of == atom.name]
    for child in children:
        if child.unnests == text:
            return child
    name = f"{atom.name}.unnest({len(children) + 1})"
    raise NewElements(atom.name, Unnested(name, text, type_))


def _beside(item: Listed, scope: Scope, atom: Rel, relation: Relation, is_left: bool) -> Rows:
    """Of a row around it, which its key finds; where it is itself a row of elements, its place in the list as well."""
    relations = scope.session.catalog.relations
    root = relations[atom.name]
    while root.of:
        root = relations[root.of]
    if is_left:
        construct = "LEFT JOIN UNNEST of a list of a row that may be missing, or of a row around it,"
        hint = f"write it beside its table: (SELECT * FROM {root.name} LEFT JOIN UNNEST(xs) AS t (x) ON TRUE) s"
        raise scope.session.source.unsupported(item.node, construct, hint)
    if not root.key:
        hint = f"give {root.name} a PRIMARY KEY, or write both in one FROM: {root.name} CROSS JOIN UNNEST(xs) AS t (x)"
        raise scope.session.source.unsupported(item.node, "UNNEST of a list of a row around it", hint)
    mine = [scope.session.names.fresh(var) for var in atom.vars]
    new, fields = _atom(item, scope, tuple(mine), relation)
    pairs = zip(relations[atom.name].columns, atom.vars, mine, strict=True)
    known = [(theirs, ours) for column, theirs, ours in pairs if column.name in root.key or _is_place(column)]
    return Rows((new, *(Compare("=", Var(theirs), Var(ours)) for theirs, ours in known)), fields)


def _is_place(column: Column) -> bool:
    return re.fullmatch(r"element_\d+_place", column.name) is not None and not column.nullable


def _atom(item: Listed, scope: Scope, parent: tuple[str, ...], relation: Relation) -> tuple[Rel, tuple[Field, ...]]:
    """The relation of the elements, and the columns that can be named; ``parent`` are the variables of the row."""
    names = scope.session.names
    added = relation.columns[len(parent) :]
    new = Rel(relation.name, (*parent, *(names.fresh(f"{item.table}.{column.name}") for column in added)))
    names.origins.update({var: (new, c.name) for c, var in zip(relation.columns, new.vars, strict=True)})
    element, place = new.vars[len(parent) :][:2]
    exprs = [variable(element, added[0].type, True), variable(place, BIGINT, False)]
    fields = [Field(item.table, name, expr) for name, expr in zip(item.names, exprs, strict=False)]
    return new, tuple(fields)


def _instead(factors: tuple[Query, ...], atom: Rel, new: Rel) -> tuple[Query, ...]:
    return tuple(new if factor == atom else factor for factor in factors)


# -- lists that are written out ----------------------------------------------------------------------------------------


def _constants(item: Listed, scope: Scope) -> Rows:
    """The same rows as of VALUES."""
    import duckdb

    source, text = scope.session.source, item.list.sql("duckdb")
    try:
        values = connection().sql(f"SELECT unnest({text}) LIMIT {MOST_CONSTANTS + 1}").fetchall()
    except duckdb.Error as error:
        raise source.error(item.node, first_line(error), "write a list of constants") from None
    if not values or len(values) > MOST_CONSTANTS:
        hint = "use a table of its own, and insert the elements"
        raise source.unsupported(item.node, f"a constant list of none, or of more than {MOST_CONSTANTS} elements", hint)
    rows = [(value, place) for place, (value,) in enumerate(values, 1)]
    tuples = [exp.Tuple(expressions=list(_nodes(row[: len(item.names)], item, scope))) for row in rows]
    product, columns = written_rows(exp.Values(expressions=tuples), scope)
    fields = (
        Field(item.table, name, replace(c.expr, is_column=True)) for name, c in zip(item.names, columns, strict=True)
    )
    return Rows((product,), tuple(fields))


def _nodes(row: tuple[Any, ...], item: Listed, scope: Scope) -> Iterator[exp.Expr]:
    for value in row:
        if not isinstance(value, (bool, int, str, type(None))):
            hint = "write VALUES: FROM (VALUES (…), (…)) t (x)"
            raise _unknown(item, scope, hint)
        yield exp.convert(value)


def _unknown(item: Listed, scope: Scope, hint: str) -> SqlError:
    return scope.session.source.unsupported(item.node, "UNNEST of constants of this type", hint)
