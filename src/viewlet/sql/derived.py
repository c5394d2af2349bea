"""Functions that DuckDB has and the calculus has not: columns that are derived when a row arrives.

``regexp_extract(url, 'id=(.*)', 1)`` reads columns of one row of one relation, and depends on nothing else. So it is a
column of that relation (:mod:`viewlet.rows.door` computes it), and the rest of the compiler sees a column like any
other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

from viewlet.algebra.query import Rel
from viewlet.algebra.terms import Var
from viewlet.duck import connection, depends_on_more, first_line
from viewlet.errors import SqlError, UnsupportedError
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
from viewlet.sql.ddl import data_type
from viewlet.sql.expr import Expr, an, variable
from viewlet.sql.other_types import BY_DUCKDB
from viewlet.sql.scope import NewColumn, Scope, structs
from viewlet.sql.source import did_you_mean
from viewlet.sql.types import shown

_DUCKDB = Dialect.get_or_raise("duckdb")

_TYPES = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": INTEGER,
    "SMALLINT": INTEGER,
    "UTINYINT": INTEGER,
    "USMALLINT": INTEGER,
    "INTEGER": INTEGER,
    "UINTEGER": BIGINT,
    "BIGINT": BIGINT,
    "HUGEINT": BIGINT,  # of list_sum; one that does not fit is refused with its row
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "VARCHAR": VARCHAR,
    "JSON": VARCHAR,
    "FLOAT": REAL,
    "TIME": TIME,
    "BLOB": BLOB,
    "UUID": UUID,
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.SimilarTo: "SIMILAR TO",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Glob: "GLOB",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_OF_OTHER_TYPES: dict[type[exp.Expr], str] = {  # where a column is of a type that we have few operators of
    exp.DPipe: "||",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CAST_TO = frozenset(getattr(exp.DType, kind) for kind in ("FLOAT", "TIME", "VARBINARY", "ENUM", "UUID", "JSON"))
_CHOOSING = (exp.Window, exp.Limit, exp.Offset, exp.ArrayAgg, exp.GroupConcat, exp.First, exp.Last, exp.AnyValue)
_PLAIN = (exp.Literal, exp.Identifier, exp.Null, exp.Boolean)
_ONE_ROW = "it takes columns of one stream or table: compute it in a subquery over that one"


def derived(node: exp.Expr, scope: Scope, anyway: bool) -> Expr | None:
    """The column that a function or operator of DuckDB's is; None where DuckDB does not have it, or not as one.

    Unless ``anyway``, only where it reads a column of a type that we have few functions of.
    """
    columns = _free_columns(node)
    try:
        origins = [_origin(column, scope) for column in columns]
    except SqlError:
        if isinstance(node, exp.Column):
            raise
        return None  # what is wrong with an argument is told beside what is wrong with the function
    computed = of_row(node, scope) if _is_for_duckdb(node, origins, anyway) else None
    return None if computed is None else column_of_row(node, scope, *computed)


def of_row(node: exp.Expr, scope: Scope) -> tuple[Rel, str, Type] | None:
    """What DuckDB computes of one row: the atom that reads the row, the expression over its columns, and its type."""
    columns = _free_columns(node)
    if not columns or not _is_of_row(node):
        return None
    origins = [_origin(column, scope) for column in columns]
    if any(o.type == INTERVAL for o in origins):
        return None  # how many of its hours are days depends on how it came
    text = _text(node, scope, {id(c): o for c, o in zip(columns, origins, strict=True)})
    aggregates = {source_name(part, scope) for part in node.find_all(exp.AggFunc)}
    type_ = None if text is None or depends_on_more(text, aggregates) else _type(node, scope, text, origins)
    if text is None or type_ is None:
        return None
    atoms = {origin.atom for origin in origins}
    atom = atoms.pop()
    if atoms or atom is None:
        raise _not_one_row(node, scope)
    return atom, text, type_


def _is_for_duckdb(node: exp.Expr, origins: Sequence[_Origin], anyway: bool) -> bool:
    if any(origin.type.is_nested for origin in origins):
        return True
    if any(origin.type.kind in BY_DUCKDB for origin in origins):
        return anyway or not isinstance(node, exp.Predicate)  # a comparison that is wrong stays wrong
    if isinstance(node, exp.Cast):
        return anyway and node.to.this in _CAST_TO
    return anyway and type(node) not in _OF_OTHER_TYPES


def _not_one_row(node: exp.Expr, scope: Scope) -> UnsupportedError:
    name = scope.session.source.called(node)
    field = f"the field {node.sql()}" if isinstance(node, exp.Column) else "this operator"
    what = f"the function {name.text.upper()}" if name else field
    return scope.session.source.unsupported(name or node, f"{what} over more than the columns of one row", _ONE_ROW)


def column_of_row(node: exp.Expr, scope: Scope, atom: Rel, text: str, type_: Type) -> Expr:
    """The derived column of the atom's relation that holds the value of ``text``."""
    relation = scope.session.catalog.relations[atom.name]
    for column, var in zip(relation.columns, atom.vars, strict=True):
        if column.derived == text:
            return variable(var, column.type, True)
    name = scope.session.source.called(node)
    raise NewColumn(relation.name, Column(_free_name(name, node, relation), type_, True, text))


def _free_name(name: Token | None, node: exp.Expr, relation: Relation) -> str:
    """``regexp_extract_1``, which no column has: it stands in programs and in what ``explain`` shows."""
    stem = name.text.lower() if name else node.key
    return next(free for i in count(1) if relation.column(free := f"{stem}_{i}") is None)


@dataclass(frozen=True)
class _Origin:
    """A column of the FROM clause: where it is read off a relation, the atom that reads it and its name there."""

    atom: Rel | None
    name: str
    type: Type
    column: exp.Column  # without the fields behind it
    fields: tuple[str, ...] = ()

    @property
    def quoted(self) -> str:
        return exp.to_identifier(self.name, quoted=True).sql("duckdb")

    @property
    def text(self) -> str:
        """With the fields."""
        return self.quoted + "".join(f"[{exp.Literal.string(name).sql('duckdb')}]" for name in self.fields)


def _free_columns(node: exp.Expr) -> list[exp.Column]:
    """Without those that something inside gives a value: x of ``[x + 1 for x in xs]`` and of ``UNNEST(xs) t (x)``."""
    bound = {part.expression.name.lower() for part in node.find_all(exp.Comprehension)}
    for part in node.find_all(exp.Unnest):
        alias = part.args.get("alias")
        bound |= {c.name.lower() for c in alias.columns} | {alias.name.lower()} if alias else {"unnest"}
    return [column for column in node.find_all(exp.Column) if column.parts[0].name.lower() not in bound]


def _is_of_row(node: exp.Expr) -> bool:
    """A subquery over lists alone is a function of the row; one that chooses by an order of its own is not taken."""
    queries = [part for part in node.walk() if isinstance(part, exp.Query)]
    if any(not isinstance(query, (exp.Select, exp.Subquery)) for query in queries) or node.find(*_CHOOSING, exp.Table):
        return False
    selects = (query for query in queries if isinstance(query, exp.Select))
    of_groups = any(not _is_inside(part, node) for part in node.find_all(exp.AggFunc))
    return not of_groups and all(query.args.get("from_") is not None for query in selects)


def _is_inside(part: exp.Expr, node: exp.Expr) -> bool:
    """Whether a subquery of the node has the part."""
    around: exp.Expr | None = part
    while around is not None and around is not node and not isinstance(around, exp.Query):
        around = around.parent
    return isinstance(around, exp.Query)


def _origin(column: exp.Column, scope: Scope) -> _Origin:
    column, (level, expr), fields = _resolved(column, scope)
    name = expr.term.name if level.of_rows and isinstance(expr.term, Var) else ""
    atom, own_name = scope.session.names.origins.get(name, (None, column.name.lower()))
    return _Origin(atom, own_name, shown(expr.type) if expr.type else VARCHAR, column, fields)


def _resolved(column: exp.Column, scope: Scope) -> tuple[exp.Column, tuple[Scope, Expr], tuple[str, ...]]:
    """A column, or the column that it is a field of: s of ``s.a``, t.s of ``t.s.a.b``."""
    parts = column.parts
    try:
        if len(parts) > 2:
            raise scope.session.source.unsupported(column, "a column name with a schema", "write table.column")
        return column, scope.resolved(column), ()
    except SqlError:
        for struct in structs(column):
            if any(level.has(struct) or level.visible(struct) for level in scope.levels):
                fields, resolved = tuple(part.name for part in parts[len(struct.parts) :]), scope.resolved(struct)
                _check_fields(column, scope, resolved[1], fields)
                return struct, resolved, fields
        raise


def _check_fields(column: exp.Column, scope: Scope, of: Expr, fields: Sequence[str]) -> None:
    source = scope.session.source
    for name in fields:
        if of.type is None or of.type.kind == "MAP":
            return
        if of.type == VARCHAR:  # the text of a JSON, maybe
            raise source.unsupported(column, f"the field {name} of a VARCHAR", f"of a JSON write x -> '{name}'")
        inner = dict(zip(of.type.names, of.type.inner, strict=False))
        if name.lower() not in inner:
            hint = did_you_mean(name, inner, f"its fields: {', '.join(inner)}" if inner else "name a column")
            raise source.error(column, f"there is no field {name} in {an(of)}", hint)
        of = replace(of, type=inner[name.lower()])


def _text(node: exp.Expr, scope: Scope, names: Mapping[int, _Origin]) -> str | None:
    """The expression as it was written, its columns by their own names; None where that is not known.

    sqlglot's own text would do for most. But what ``x ~ 'a+'`` means depends on DuckDB's version: it stays as it is.
    """
    source = scope.session.source
    if isinstance(node, exp.Column):
        return names[id(node)].text if id(node) in names else node.sql("duckdb")
    if isinstance(node, (exp.Literal, exp.JSONPath, exp.Interval)):
        return node.sql("duckdb")
    if isinstance(node, exp.Cast):
        inside = _text(node.this, scope, names)
        word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        type_ = "JSON" if node.to.this == exp.DType.JSON else data_type(source, node, node.to)
        return inside and f"{word}({inside} AS {type_})"
    if isinstance(node, exp.Paren):
        inside = _text(node.this, scope, names)
        return inside and f"({inside})"
    if source.called(node) is not None:
        columns = [names[id(column)] for column in node.find_all(exp.Column) if id(column) in names]
        return _evenly(source.call(node, sorted((*_place(origin.column), origin.quoted) for origin in columns)))
    if (sign := (_OPERATORS | _OF_OTHER_TYPES).get(type(node))) is not None:
        other = node.args["zone"] if isinstance(node, exp.AtTimeZone) else node.expression
        sides = [_text(side, scope, names) for side in (node.this, other)]
        if None in sides:
            return None
        quantified = isinstance(node.expression, (exp.Any, exp.All))
        return f"({sides[0]}) {sign} {sides[1] if quantified else f'({sides[1]})'}"
    if node.find(exp.Query) is not None:
        shape = node.copy()
        for mine, part in zip(list(node.find_all(exp.Column)), list(shape.find_all(exp.Column)), strict=True):
            if id(mine) in names:
                part.replace(exp.Var(this=names[id(mine)].text))
        return shape.sql("duckdb")
    is_shape = isinstance(node, (exp.Array, exp.Struct)) or any(origin.type.is_nested for origin in names.values())
    return _reshaped(node, scope, names) if is_shape else None


def source_name(node: exp.Expr, scope: Scope) -> str:
    """Of an aggregate, as it is written."""
    called = scope.session.source.called(node)
    return called.text.lower() if called else node.key


def _reshaped(node: exp.Expr, scope: Scope, names: Mapping[int, _Origin]) -> str | None:
    """``xs[1]``, ``[a, b]``, ``{'a': x}`` and their like in sqlglot's text, around the texts of their parts.

    Numbers in brackets stay nodes: sqlglot counts them from 0, and writes them from 1.
    """
    shape = node.copy()
    return shape.sql("duckdb") if _put_texts(node, shape, scope, names) else None


def _put_texts(node: exp.Expr, shape: exp.Expr, scope: Scope, names: Mapping[int, _Origin]) -> bool:
    for mine, part in zip(list(node.iter_expressions()), list(shape.iter_expressions()), strict=True):
        if isinstance(mine.this if isinstance(mine, exp.Neg) else mine, _PLAIN):
            continue
        if isinstance(mine, (exp.PropertyEQ, exp.If, exp.Slice)):  # parts of a shape, which are no values
            if not _put_texts(mine, part, scope, names):
                return False
            continue
        text = _text(mine, scope, names)
        if text is None:
            return False
        part.replace(exp.Var(this=text))
    return True


def _evenly(text: str) -> str:
    """White space and the case of a name say nothing: ``f(a,b)`` and ``F(a, b)`` are one column."""
    tokens = _DUCKDB.tokenize(text)
    written = [text[t.start : t.end + 1] for t in tokens]
    return " ".join(w if w[0] in "'\"" else w.lower() for w in written)


def _place(column: exp.Column) -> tuple[int, int]:
    """From its first letter to behind its last."""
    parts = [part.meta for part in column.parts]
    return min(part["start"] for part in parts), max(part["end"] for part in parts) + 1


def _type(node: exp.Expr, scope: Scope, text: str, origins: Sequence[_Origin]) -> Type | None:
    """What DuckDB says that the expression is. None: it knows no such function, or we have no such type."""
    import duckdb

    inputs = ", ".join(sorted({f"CAST(NULL AS {o.type}) AS {o.quoted}" for o in origins}))
    try:
        (type_,) = connection().sql(f"SELECT {text} AS derived FROM (SELECT {inputs}) arrived").types
    except duckdb.CatalogException:
        return None
    except duckdb.Error as error:
        hint = "this function is computed by DuckDB: write what it takes"
        raise scope.session.source.error(node, first_line(error), hint) from None
    return _known(type_)


def _known(type_: Any) -> Type | None:
    """A type of DuckDB's."""
    if type_.id == "enum":
        return enum(tuple(dict(type_.children)["values"]))
    if type_.id in ("list", "array", "struct", "map"):
        children = [(name, _known(child)) for name, child in type_.children if name != "size"]
        inner = {name.lower(): child for name, child in children if child is not None}
        if len(inner) < len(children):
            return None
        parts = tuple(inner.values())
        return struct_of(inner) if type_.id == "struct" else map_of(*parts) if type_.id == "map" else list_of(*parts)
    places = _DECIMAL.fullmatch(str(type_))
    return decimal(int(places[1]), int(places[2])) if places else _TYPES.get(str(type_))
