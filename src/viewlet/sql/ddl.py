"""CREATE STREAM and CREATE TABLE → :class:`~viewlet.schema.Relation`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from types import MappingProxyType

from sqlglot import exp
from sqlglot.errors import ParseError

from viewlet.duck import connection, depends_on_more, first_line
from viewlet.schema import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    Column,
    Relation,
    Type,
    decimal,
    enum,
    list_of,
    map_of,
    struct_of,
)
from viewlet.sql.constraints import is_nullable, is_table_constraint, keys
from viewlet.sql.parse import Option, Statement
from viewlet.sql.source import Source, did_you_mean
from viewlet.sql.unsupported import only

_TYPES = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: Type("TINYINT"),
    exp.DType.SMALLINT: Type("SMALLINT"),
    exp.DType.INT: INTEGER,
    exp.DType.UTINYINT: Type("UTINYINT"),
    exp.DType.USMALLINT: Type("USMALLINT"),
    exp.DType.UINT: Type("UINTEGER"),
    exp.DType.BIGINT: BIGINT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMPTZ,
    exp.DType.UUID: UUID,
    exp.DType.FLOAT: REAL,
    exp.DType.TIME: TIME,
    exp.DType.INTERVAL: INTERVAL,
    exp.DType.VARBINARY: BLOB,
    exp.DType.JSON: VARCHAR,
    exp.DType.VARCHAR: VARCHAR,
    exp.DType.TEXT: VARCHAR,
    exp.DType.CHAR: VARCHAR,
    exp.DType.NVARCHAR: VARCHAR,
    exp.DType.DECIMAL: decimal(18, 3),
}
_PARAMETERS = {VARCHAR: 1, TIMESTAMP: 1, decimal(18, 3): 2}  # how many a type takes
_MOST_PLACES = 10  # of a second, in DuckDB
_DIGITS_READ = 9  # of a parameter: Python reads no number of thousands of them
_MICROSECONDS = "use TIMESTAMP, which keeps microseconds, and round before the insert"
_NEAREST = {
    exp.DType.UBIGINT: "use DECIMAL(20,0)",
    exp.DType.INT128: "use BIGINT or DECIMAL(38,0)",
    exp.DType.UINT128: "use DECIMAL(38,0)",
    exp.DType.TIMETZ: "use TIMESTAMP and store UTC",
    exp.DType.ARRAY: "use a list, without a length: INTEGER[]",
    exp.DType.TIMESTAMP_S: _MICROSECONDS,
    exp.DType.TIMESTAMP_MS: _MICROSECONDS,
    exp.DType.TIMESTAMP_NS: _MICROSECONDS,
}
_LAYOUT = (exp.PartitionedByProperty, exp.ClusteredByProperty, exp.SchemaCommentProperty)  # nothing of the rows
_ALL_TYPES = (
    "the types are BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL(p,s), DATE, TIME, TIMESTAMP, "
    "TIMESTAMPTZ, INTERVAL, VARCHAR, JSON, UUID, BLOB, ENUM, lists (INTEGER[]), STRUCT and MAP"
)


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
    definitions = [d for d in schema.expressions if not is_table_constraint(d)]
    columns = tuple(_column(source, definition) for definition in definitions)
    for i, column in enumerate(columns):
        if any(column.name == earlier.name for earlier in columns[:i]):
            raise source.error(definitions[i], f"column {column.name} is defined twice", "rename one of them")
    unique_keys = keys(source, schema.expressions, [c.name for c in columns])
    columns = tuple(replace(c, nullable=c.nullable and c.name not in unique_keys.primary) for c in columns)
    plain = Relation(
        statement.name, columns, statement.kind == "TABLE", key=unique_keys.primary, unique=unique_keys.unique
    )
    return _with_options(source, plain, statement)


def _refuse_properties(source: Source, tree: exp.Expr) -> None:
    only(source, tree, frozenset({"this", "kind", "expression", "properties"}), {})
    properties = tree.args.get("properties")
    for node in properties.expressions if properties is not None else ():
        if isinstance(node, _LAYOUT):
            continue
        hint = "leave it out; options go into WITH (name = value, …)"
        raise source.unsupported(node, node.key.removesuffix("property").upper(), hint)


def _column(source: Source, definition: exp.Expr) -> Column:
    if isinstance(definition, exp.Identifier):
        raise source.error(definition, f"column {definition.name} has no type", _ALL_TYPES)
    assert isinstance(definition, exp.ColumnDef)
    nullable = is_nullable(source, definition)
    if definition.kind is None:
        raise source.error(definition, f"column {definition.name} has no type", _ALL_TYPES)
    type_ = data_type(source, definition, definition.kind)
    return Column(definition.name.lower(), type_, nullable, default=_default(source, definition, type_))


def _default(source: Source, definition: exp.ColumnDef, type_: Type) -> str:
    """DEFAULT: a constant, which DuckDB computes."""
    import duckdb

    given = next((c.kind.this for c in definition.constraints if isinstance(c.kind, exp.DefaultColumnConstraint)), None)
    if given is None or isinstance(given, exp.Null):
        return ""
    hint = "write a constant of the column's type; what changes from row to row comes with the row"
    text: str = given.sql("duckdb")
    if given.find(exp.Column, exp.Query) or depends_on_more(text):
        raise source.unsupported(definition, f"DEFAULT {text}", hint)
    try:
        connection().sql(f"SELECT CAST({text} AS {type_})").fetchall()
    except duckdb.Error as error:
        raise source.error(definition, f"DEFAULT {text}: {first_line(error)}", hint) from None
    return text


def data_type(source: Source, place: exp.Expr, node: exp.DataType) -> Type:
    """A parameter is honoured or refused, never dropped; the length of a VARCHAR means nothing in DuckDB either."""
    if node.this == exp.DType.ENUM:
        return _enum(source, place, node)
    if node.this == exp.DType.USERDEFINED and str(node.args.get("kind")).lower() in source.types:
        return source.types[str(node.args["kind"]).lower()]
    if node.args.get("nested") and not node.args.get("values"):
        return _nested(source, place, node)
    type_ = None if node.args.get("nested") else _TYPES.get(node.this)
    if type_ is None:
        raise source.unsupported(
            place, f"type {written_type(source, place, node)}", _NEAREST.get(node.this, _ALL_TYPES)
        )
    if node.expressions and type_ in (REAL, TIME):
        raise source.unsupported(place, f"type {written_type(source, place, node)}", f"use {type_}")
    given = _parameters(source, place, node)
    if type_.kind == "DECIMAL":
        return _decimal(source, place, node, given)
    if given and type_ == TIMESTAMP:
        _check_precision(source, place, node, given[0])
    return type_


def _nested(source: Source, place: exp.Expr, node: exp.DataType) -> Type:
    """INTEGER[], STRUCT(a INTEGER, b VARCHAR), MAP(VARCHAR, INTEGER)."""
    parts = [part.kind if isinstance(part, exp.ColumnDef) else part for part in node.expressions]
    types = [part for part in parts if isinstance(part, exp.DataType)]
    if not types or len(types) < len(parts):
        name = written_type(source, place, node)
        raise source.error(place, f"{name} does not say what is in it", "write INTEGER[] or STRUCT(a INTEGER)")
    inner = [data_type(source, place, part) for part in types]
    if node.this == exp.DType.STRUCT:
        names = [part.name.lower() for part in node.expressions]
        if len(set(names)) < len(names) or "" in names:
            raise source.error(place, "each field of a STRUCT has a name of its own", "write STRUCT(a INTEGER)")
        return struct_of(dict(zip(names, inner, strict=True)))
    if node.this == exp.DType.MAP:
        if len(inner) != 2 or inner[0].is_nested:
            hint = "write MAP(VARCHAR, INTEGER): a key is no list, struct or map"
            raise source.error(place, f"{written_type(source, place, node)} has no plain keys and values", hint)
        return map_of(*inner)
    return list_of(inner[0])


def _enum(source: Source, place: exp.Expr, node: exp.DataType) -> Type:
    values = [v.this for v in node.expressions if isinstance(v, exp.Literal) and v.is_string]
    if not values or len(values) < len(node.expressions) or len(set(values)) < len(values):
        raise source.error(place, "an ENUM has one text or more, each once", "write ENUM('low', 'high')")
    return enum(tuple(values))


def _parameters(source: Source, place: exp.Expr, node: exp.DataType) -> list[int]:
    """The n of VARCHAR(n): as many whole numbers as the type takes."""
    texts = [p.this.name if isinstance(p.this, exp.Literal) and not p.this.is_string else "" for p in node.expressions]
    most = _PARAMETERS.get(_TYPES[node.this], 0)
    if len(texts) > most or not all(text.isdecimal() for text in texts):
        takes = f"at most {most} whole number{'s' * (most > 1)}" if most else "nothing"
        name = written_type(source, place, node)
        raise source.error(place, f"{name} does not exist", f"{name.partition('(')[0]} takes {takes} in parentheses")
    return [int(text) if len(text) < _DIGITS_READ else 10**_DIGITS_READ for text in texts]


def _decimal(source: Source, place: exp.Expr, node: exp.DataType, given: Sequence[int]) -> Type:
    """DECIMAL is DECIMAL(18,3), DECIMAL(p) is DECIMAL(p,0)."""
    precision, scale = (*given, 0)[:2] if given else (18, 3)
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        name = written_type(source, place, node)
        raise source.error(place, f"{name} does not exist", "in DECIMAL(p,s), 1 <= p <= 38 and 0 <= s <= p")
    return decimal(precision, scale)


def _check_precision(source: Source, place: exp.Expr, node: exp.DataType, places: int) -> None:
    """DuckDB keeps seconds, thousandths, millionths or billionths of one; only millionths are TIMESTAMP."""
    name = written_type(source, place, node)
    if places > _MOST_PLACES:
        raise source.error(place, f"{name} does not exist", f"a TIMESTAMP has at most {_MOST_PLACES} places")
    if not 4 <= places <= 6:
        raise source.unsupported(place, f"type {name}", _MICROSECONDS)


def written_type(source: Source, place: exp.Expr, node: exp.DataType) -> str:
    """The type as the user wrote it: the first text from ``place`` on, or else in the statement, that reads as it."""
    for text in chain.from_iterable(map(source.calls, (source.start(place), source.statement))):
        with suppress(ParseError, ValueError):
            if exp.DataType.build(text, dialect="duckdb") == node:
                return text
    return node.sql("duckdb")


def _with_options(source: Source, plain: Relation, statement: Statement) -> Relation:
    """``rate``, ``rows``, ``distinct_<column>`` (§5.1), ``hot_<column>`` and ``stored`` are ours.

    The others belong to the connector.
    """
    rate, rows, stored = plain.rate, plain.rows, True
    distinct: dict[str, int] = {}
    hot: dict[str, Fraction] = {}
    verbatim: dict[str, str] = {}
    for option in statement.options:
        if option.name == "rate":
            rate = _positive(source, option)
        elif option.name == "rows":
            rows = _whole(source, option)
        elif option.name == "stored":
            stored = _stored(source, option, plain)
        elif option.name.startswith("distinct_"):
            distinct[_known_column(source, option, "distinct_", plain)] = _whole(source, option)
        elif option.name.startswith("hot_"):
            hot[_known_column(source, option, "hot_", plain)] = _part(source, option)
        else:
            verbatim[option.name] = option.value
    known, others = MappingProxyType(distinct), MappingProxyType(verbatim)
    return replace(
        plain, rate=rate, rows=rows, distinct=known, hot=MappingProxyType(hot), options=others, stored=stored
    )


def _stored(source: Source, option: Option, plain: Relation) -> bool:
    """Without its rows nobody knows whether a key is taken, and a static table is nothing but its rows."""
    if option.is_string or option.value.lower() not in ("true", "false"):
        raise source.error(option.token, "option stored must be true or false", "write stored = false")
    stored = option.value.lower() == "true"
    if not stored and plain.static:
        raise source.error(option.token, f"{plain.name} is a table, which is its rows", "write CREATE STREAM")
    if not stored and (plain.key or plain.unique):
        message = f"{plain.name} has a PRIMARY KEY or UNIQUE columns, which are looked up among the stored rows"
        raise source.error(option.token, message, "leave out stored = false, or the key")
    return stored


def _known_column(source: Source, option: Option, prefix: str, plain: Relation) -> str:
    name, columns = option.name.removeprefix(prefix), [c.name for c in plain.columns]
    if name not in columns:
        hint = did_you_mean(name, columns, f"the columns are: {', '.join(columns)}")
        raise source.error(option.token, f"option {option.name}: there is no column {name}", hint)
    return name


def _positive(source: Source, option: Option) -> Fraction:
    """Not zero, and no more than a double holds: Python would write 1e99999999 out."""
    try:
        is_right = 0 < float(option.value) < math.inf and not option.is_string
        value = Fraction(option.value) if is_right else Fraction(0)
    except ValueError:
        value = Fraction(0)
    if not value:
        raise source.error(
            option.token, f"option {option.name} must be a positive number", f"write {option.name} = 100"
        )
    return value


def _part(source: Source, option: Option) -> Fraction:
    value = _positive(source, option)
    if value >= 1:
        message = f"option {option.name} must be below 1: which part of the rows has the commonest value"
        raise source.error(option.token, message, f"write {option.name} = 0.1")
    return value


def _whole(source: Source, option: Option) -> int:
    value = _positive(source, option)
    if value.denominator != 1:
        raise source.error(option.token, f"option {option.name} must be a whole number", f"write {option.name} = 100")
    return value.numerator
