"""What a CREATE STREAM or CREATE TABLE says of its rows beside their types: NOT NULL, PRIMARY KEY, UNIQUE.

CHECK is in :mod:`viewlet.sql.checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewlet.sql.source import Source, did_you_mean

_NULLS = "leave it out; a column that is never NULL is declared NOT NULL"
_HINTS: dict[str, str] = {
    "REFERENCES": "leave it out; a view with NOT EXISTS (…) finds the rows without a partner",
    "FOREIGN KEY": "leave it out; a view with NOT EXISTS (…) finds the rows without a partner",
    "a generated column": "leave it out, and compute it in a view",
    "COLLATE": "leave it out: texts are compared by their code points",
}
_WORDS = {
    "reference": "REFERENCES",
    "primarykey": "PRIMARY KEY",
    "primarykeycolumnconstraint": "PRIMARY KEY",
    "foreignkey": "FOREIGN KEY",
    "computedcolumnconstraint": "a generated column",
    "generatedasidentitycolumnconstraint": "a generated column",
    "generatedasrowcolumnconstraint": "a generated column",
}


@dataclass(frozen=True)
class Keys:
    """Columns of which no two rows have the same values. ``primary``: and none of which is NULL."""

    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()


def refuse(source: Source, place: exp.Expr, constraint: exp.Expr) -> Exception:
    name = constraint_name(constraint)
    return source.unsupported(place, name, _HINTS.get(name, _NULLS))


def constraint_name(node: exp.Expr) -> str:
    return _WORDS.get(node.key, node.key.removesuffix("columnconstraint").upper())


def is_nullable(source: Source, definition: exp.ColumnDef) -> bool:
    """NULL and NOT NULL; keys are for :func:`keys`, and anything else is refused."""
    nullable = True
    for constraint in definition.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint() as kind:
                nullable = bool(kind.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint() | exp.UniqueColumnConstraint() | exp.CommentColumnConstraint():
                pass
            case exp.CheckColumnConstraint() | exp.DefaultColumnConstraint():
                pass  # for viewlet.sql.checks, and for viewlet.sql.ddl
            case kind:
                raise refuse(source, definition, kind)
    return nullable


def is_table_constraint(node: exp.Expr) -> bool:
    """An entry of the list of columns that is none."""
    return not isinstance(node, (exp.ColumnDef, exp.Identifier))


def keys(source: Source, definitions: Sequence[exp.Expr], columns: Sequence[str]) -> Keys:
    """PRIMARY KEY and UNIQUE, at a column or as an entry of their own."""
    primary, unique = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for place, constraint, names in _constraints(definitions):
        known = tuple(_known(source, name, columns) for name in names)
        if twice := next((name for i, name in enumerate(known) if name in known[:i]), None):
            raise source.error(place, f"column {twice} is twice in one key", "name it once")
        match constraint:
            case exp.PrimaryKey() | exp.PrimaryKeyColumnConstraint():
                primary.append(known)
            case exp.UniqueColumnConstraint():
                unique.append(known)
            case exp.CheckColumnConstraint():
                pass
            case _:
                raise refuse(source, place, constraint)
        if len(primary) > 1:
            raise source.error(place, "there are two primary keys", "keep one, and declare the other UNIQUE")
    return Keys(primary[0] if primary else (), tuple(dict.fromkeys(key for key in unique if key not in primary)))


def _constraints(definitions: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr, Sequence[exp.Expr]]]:
    """Each with its place and the names in it."""
    for definition in definitions:
        if isinstance(definition, exp.ColumnDef):
            for constraint in definition.args.get("constraints") or ():
                if isinstance(constraint.kind, (exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint)):
                    yield definition, constraint.kind, [definition.this]
        elif is_table_constraint(definition):
            for constraint in definition.expressions if isinstance(definition, exp.Constraint) else [definition]:
                listed = constraint.this if isinstance(constraint, exp.UniqueColumnConstraint) else constraint
                yield definition, constraint, listed.expressions if listed is not None else ()


def _known(source: Source, name: exp.Expr, columns: Sequence[str]) -> str:
    column = name.name.lower()
    if column not in columns:
        hint = did_you_mean(column, columns, f"the columns are: {', '.join(columns)}")
        raise source.error(name, f"there is no column {column}", hint)
    return column
