"""Functions that DuckDB has and the calculus has not: columns that are derived when a row arrives.

``regexp_extract(url, 'id=(.*)', 1)`` reads columns of one row of one relation, and depends on nothing else. So it is a
column of that relation (:mod:`viewlet.door` computes it), and the rest of the compiler sees a column like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from viewlet.algebra.query import Rel
from viewlet.algebra.terms import Var
from viewlet.duck import connection, first_line, not_of_the_row
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
)
from viewlet.sql.ddl import data_type
from viewlet.sql.expr import Expr, variable
from viewlet.sql.other_types import BY_DUCKDB
from viewlet.sql.scope import Scope
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
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
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
_OTHER_SCOPE = (exp.AggFunc, exp.Query, exp.SubqueryPredicate, exp.Window, exp.Lambda, exp.Comprehension)
_ONE_ROW = "it takes columns of one stream or table: compute it in a subquery over that one"


class NewColumn(Exception):
    """The script needs a derived column that its relation does not have yet: translate again, with it."""

    def __init__(self, relation: str, column: Column) -> None:
        super().__init__(relation, column)
        self.relation, self.column = relation, column


def derived(node: exp.Expr, scope: Scope, anyway: bool) -> Expr | None:
    """The column that a function or operator of DuckDB's is; None where DuckDB does not have it, or not as one.

    Unless ``anyway``, only where it reads a column of a type that we have few functions of.
    """
    columns = list(node.find_all(exp.Column))
    if not columns or any(isinstance(part, _OTHER_SCOPE) for part in node.walk()):
        return None
    try:
        origins = [_origin(column, scope) for column in columns]
    except SqlError:  # what is wrong with an argument is told beside what is wrong with the function
        return None
    if any(o.type == INTERVAL for o in origins):
        return None  # how many of its hours are days depends on how it came
    if not _is_for_duckdb(node, origins, anyway):
        return None
    text = _text(
        node,
        scope,
        {id(c): o.quoted for c, o in zip(columns, origins, strict=True)},
    )
    type_ = None if text is None or depends_on_more(text) else _type(node, scope, text, origins)
    if text is None or type_ is None:
        return None
    atoms = {origin.atom for origin in origins}
    atom = atoms.pop()
    if atoms or atom is None:
        raise _not_one_row(node, scope)
    return _column(node, scope, atom, text, type_)


def _is_for_duckdb(node: exp.Expr, origins: Sequence[_Origin], anyway: bool) -> bool:
    if any(origin.type.kind in BY_DUCKDB for origin in origins):
        return anyway or not isinstance(node, exp.Predicate)  # a comparison that is wrong stays wrong
    if isinstance(node, exp.Cast):
        return anyway and node.to.this in _CAST_TO
    return anyway and type(node) not in _OF_OTHER_TYPES


def _not_one_row(node: exp.Expr, scope: Scope) -> UnsupportedError:
    name = scope.session.source.called(node)
    what = f"the function {name.text.upper()}" if name else "this operator"
    return scope.session.source.unsupported(name or node, f"{what} over more than the columns of one row", _ONE_ROW)


def _column(node: exp.Expr, scope: Scope, atom: Rel, text: str, type_: Type) -> Expr:
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

    @property
    def quoted(self) -> str:
        return exp.to_identifier(self.name, quoted=True).sql("duckdb")


def _origin(column: exp.Column, scope: Scope) -> _Origin:
    level, expr = scope.resolved(column)
    name = expr.term.name if level.of_rows and isinstance(expr.term, Var) else ""
    atom, own_name = scope.session.names.origins.get(name, (None, column.name.lower()))
    return _Origin(atom, own_name, shown(expr.type) if expr.type else VARCHAR)


def depends_on_more(text: str) -> bool:
    """On the clock, on chance or on the session. Columns are quoted, so a word is a function or a keyword."""
    tokens = _DUCKDB.tokenize(text)
    is_called = [after.token_type == TokenType.L_PAREN for after in tokens[1:]] + [False]
    words = (
        t.text.lower()
        for t, called in zip(tokens, is_called, strict=True)
        if t.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and (called or t.text.upper() != "UUID")
    )  # a UUID is a type as well
    return not not_of_the_row().isdisjoint(words)


def _text(node: exp.Expr, scope: Scope, names: Mapping[int, str]) -> str | None:
    """The expression as it was written, its columns by their own names; None where that is not known.

    sqlglot's own text would do for most. But it takes ``x ~ 'a+'`` for a search, where DuckDB matches all of x.
    """
    source = scope.session.source
    if isinstance(node, exp.Column):
        return names[id(node)]
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
        places = [(*_place(column), names[id(column)]) for column in node.find_all(exp.Column)]
        return _evenly(source.call(node, sorted(places)))
    if (sign := (_OPERATORS | _OF_OTHER_TYPES).get(type(node))) is not None:
        sides = [_text(side, scope, names) for side in (node.this, node.expression)]
        return None if None in sides else f"({sides[0]}) {sign} ({sides[1]})"
    return None


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
    if type_.id == "enum":
        return enum(tuple(dict(type_.children)["values"]))
    places = _DECIMAL.fullmatch(str(type_))
    return decimal(int(places[1]), int(places[2])) if places else _TYPES.get(str(type_))
