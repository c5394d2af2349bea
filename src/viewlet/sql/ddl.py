"""CREATE STREAM and CREATE TABLE → :class:`~viewlet.schema.Relation`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import MappingProxyType

from sqlglot import exp

from viewlet.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Column, Relation, Type, decimal
from viewlet.sql.parse import PLAIN_NAME, Option, Statement
from viewlet.sql.source import Source, did_you_mean
from viewlet.sql.unsupported import only

_TYPES = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INTEGER,
    exp.DType.BIGINT: BIGINT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.VARCHAR: VARCHAR,
    exp.DType.TEXT: VARCHAR,
    exp.DType.CHAR: VARCHAR,
}
_NEAREST = {
    exp.DType.FLOAT: "use DOUBLE: a single-precision column would round differently",
    exp.DType.TINYINT: "use INTEGER",
    exp.DType.SMALLINT: "use INTEGER",
    exp.DType.INT128: "use BIGINT or DECIMAL(38,0)",
    exp.DType.TIMESTAMPTZ: "use TIMESTAMP and store UTC",
}
_ALL_TYPES = "the types are BOOLEAN, INTEGER, BIGINT, DOUBLE, DECIMAL(p,s), DATE, TIMESTAMP and VARCHAR"


def relation(source: Source, statement: Statement) -> Relation:
    tree = statement.tree
    schema = tree.this
    _refuse_properties(source, tree)
    if tree.args.get("expression") is not None:
        hint = "list the columns: CREATE TABLE name (column type, …); a query is a CREATE MATERIALIZED VIEW"
        raise source.unsupported(schema, "CREATE TABLE … AS", hint)
    if not isinstance(schema, exp.Schema) or not schema.expressions:
        message = f"{statement.kind.lower()} {statement.name} has no columns"
        raise source.error(statement.place, message, "list them: (column type, …)")
    columns = tuple(_column(source, definition) for definition in schema.expressions)
    for i, column in enumerate(columns):
        if any(column.name == earlier.name for earlier in columns[:i]):
            raise source.error(schema.expressions[i], f"column {column.name} is defined twice", "rename one of them")
    plain = Relation(statement.name, columns, statement.kind == "TABLE")
    return _with_options(source, plain, statement)


def _refuse_properties(source: Source, tree: exp.Expr) -> None:
    only(source, tree, frozenset({"this", "kind", "expression", "properties"}), {})
    properties = tree.args.get("properties")
    for node in properties.expressions if properties is not None else ():
        hint = "leave it out; options go into WITH (name = value, …)"
        raise source.unsupported(node, node.key.removesuffix("property").upper(), hint)


def _column(source: Source, definition: exp.Expr) -> Column:
    if isinstance(definition, exp.Identifier):
        raise source.error(definition, f"column {definition.name} has no type", _ALL_TYPES)
    if not isinstance(definition, exp.ColumnDef):
        hint = "leave it out; a column that is never NULL is declared NOT NULL"
        raise source.unsupported(definition, _constraint_name(definition), hint)
    if not PLAIN_NAME.fullmatch(definition.name):
        hint = "a name is letters, digits and _, and does not begin with a digit"
        raise source.error(definition, f"{definition.name!r} cannot name a column", hint)
    nullable = True
    for constraint in definition.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint() as kind:
                nullable = bool(kind.args.get("allow_null"))
            case kind:
                hint = "leave it out; a column that is never NULL is declared NOT NULL"
                raise source.unsupported(definition, _constraint_name(kind), hint)
    assert definition.kind is not None
    return Column(definition.name.lower(), data_type(source, definition, definition.kind), nullable)


def _constraint_name(node: exp.Expr) -> str:
    words = {
        "referencecolumnconstraint": "REFERENCES",
        "primarykey": "PRIMARY KEY",
        "primarykeycolumnconstraint": "PRIMARY KEY",
        "foreignkey": "FOREIGN KEY",
    }
    name = node.key.removesuffix("columnconstraint").upper()
    return words.get(node.key, name)


def data_type(source: Source, place: exp.Expr, node: exp.DataType) -> Type:
    if node.this == exp.DType.DECIMAL:
        precision, scale = [int(p.this.this) for p in node.expressions] + [18, 3][len(node.expressions) :]
        scale = 0 if len(node.expressions) == 1 else scale
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise source.error(place, f"DECIMAL({precision},{scale}) does not exist", "1 <= p <= 38 and 0 <= s <= p")
        return decimal(precision, scale)
    found = None if node.args.get("nested") else _TYPES.get(node.this)
    if found is None:
        raise source.unsupported(place, f"type {node.sql('duckdb')}", _NEAREST.get(node.this, _ALL_TYPES))
    return found


def _with_options(source: Source, plain: Relation, statement: Statement) -> Relation:
    """``rate``, ``rows`` and ``distinct_<column>`` are ours (§5.1); the others belong to the connector."""
    rate, rows = plain.rate, plain.rows
    distinct: dict[str, int] = {}
    verbatim: dict[str, str] = {}
    for option in statement.options:
        if option.name == "rate":
            rate = _positive(source, option)
        elif option.name == "rows":
            rows = _whole(source, option)
        elif option.name.startswith("distinct_"):
            name = _known_column(source, option, [c.name for c in plain.columns])
            distinct[name] = _whole(source, option)
        else:
            verbatim[option.name] = option.value
    return Relation(
        plain.name, plain.columns, plain.static, rate, rows, MappingProxyType(distinct), MappingProxyType(verbatim)
    )


def _known_column(source: Source, option: Option, columns: Sequence[str]) -> str:
    name = option.name.removeprefix("distinct_")
    if name not in columns:
        hint = did_you_mean(name, columns, f"the columns are: {', '.join(columns)}")
        raise source.error(option.token, f"option {option.name}: there is no column {name}", hint)
    return name


def _positive(source: Source, option: Option) -> Fraction:
    try:
        value = Fraction(option.value)
    except ValueError:
        value = Fraction(0)
    if value <= 0 or option.is_string:
        raise source.error(
            option.token, f"option {option.name} must be a positive number", f"write {option.name} = 100"
        )
    return value


def _whole(source: Source, option: Option) -> int:
    value = _positive(source, option)
    if value.denominator != 1:
        raise source.error(option.token, f"option {option.name} must be a whole number", f"write {option.name} = 100")
    return value.numerator
