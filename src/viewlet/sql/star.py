"""``*`` and ``t.*``, with EXCLUDE, REPLACE and RENAME."""

from __future__ import annotations

from sqlglot import exp

from viewlet.sql.pivots import Rest
from viewlet.sql.scope import Field, Scope
from viewlet.sql.source import did_you_mean
from viewlet.sql.unsupported import only

Item = tuple[str, exp.Expr]  # a name and what it stands for


def star_items(item: exp.Expr, star: exp.Star, scope: Scope) -> list[Item]:
    """The columns that ``*`` stands for, by name."""
    source = scope.session.source
    only(source, star, frozenset({"except_", "replace", "rename"}), {})
    fields = _fields(item, scope)
    excluded = star.args.get("except_") or []
    replaced = {a.alias.lower(): a for a in star.args.get("replace") or []}
    renamed = {a.this.name.lower(): a.alias.lower() for a in star.args.get("rename") or []}
    for column in (*excluded, *replaced.values(), *(a.this for a in star.args.get("rename") or [])):
        _check(column, fields, scope)
    kept = [f for f in fields if not any(_is_named(column, f) for column in excluded)]
    if not kept and not isinstance(star, Rest):
        raise source.error(star, "EXCLUDE leaves no column", "keep one of them")
    return [
        (renamed.get(f.name, f.name), replaced[f.name].this if f.name in replaced else _column(f, star)) for f in kept
    ]


def _fields(item: exp.Expr, scope: Scope) -> list[Field]:
    table = item.table.lower() if isinstance(item, exp.Column) else ""
    fields = [f for f in scope.fields if f.is_in(table)]
    if fields:
        return fields
    struct = next((f.expr for f in scope.fields if table and f.name == table and not f.merged), None)
    if struct is not None and struct.type is not None and struct.type.kind == "STRUCT":
        return [Field(table, name, struct) for name in struct.type.names]
    tables = sorted({f.table for f in scope.fields})
    hint = did_you_mean(table, tables, f"the tables here are: {', '.join(tables) or 'none'}")
    message = f"there is no table {table} in this query" if table else "SELECT * without FROM"
    raise scope.session.source.error(item, message, hint)


def _check(column: exp.Expr, fields: list[Field], scope: Scope) -> None:
    """Each column that is named is there, and one that is replaced only once."""
    name, source = column.alias_or_name.lower(), scope.session.source
    named = [f for f in fields if _is_named(column, f)]
    if not named:
        names = list(dict.fromkeys(f.name for f in fields))
        hint = did_you_mean(name, names, f"the columns here are: {', '.join(names)}")
        raise source.error(column, f"there is no column {name} in *", hint)
    if isinstance(column, exp.Alias) and len(named) > 1:
        raise source.unsupported(column, f"REPLACE of {name}, which several tables have", "name the columns")


def _is_named(column: exp.Expr, field: Field) -> bool:
    table = column.table.lower() if isinstance(column, exp.Column) else ""
    return column.alias_or_name.lower() == field.name and table in ("", field.table)


def _column(field: Field, star: exp.Star) -> exp.Expr:
    node = exp.column(field.name, table=field.table)
    node.update_positions(star)
    return node
