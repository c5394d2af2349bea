"""CHECK (condition): a derived column that has no value, and fails where the condition does not hold.

So rows are checked when they arrive, wherever they come from, and a row that fails is a DataError at the door.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import sqlglot
from sqlglot import exp

from viewlet.duck import connection, depends_on_more, first_line
from viewlet.schema import BOOLEAN, Column
from viewlet.sql.source import Source

_HINT = "a CHECK is a condition over the columns of its own row, which DuckDB computes"


def checks(source: Source, schema: exp.Schema, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Of a CREATE STREAM or CREATE TABLE, in their order."""
    free = (name for i in count(1) if (name := f"check_{i}") not in {column.name for column in columns})
    conditions = _conditions(source) if schema.find(exp.CheckColumnConstraint) else ()
    return tuple(Column(next(free), BOOLEAN, True, _derived(source, schema, c, columns)) for c in conditions)


def _conditions(source: Source) -> Iterator[str]:
    """As they are written, without their parentheses."""
    for call in source.calls(source.statement):
        word, bracket, rest = call.partition("(")
        if word.strip().upper() == "CHECK" and bracket:
            yield rest[:-1].strip()


def _derived(source: Source, place: exp.Expr, condition: str, columns: Sequence[Column]) -> str:
    """CASE WHEN (condition) IS FALSE THEN error('…') END: NULL is as good as TRUE."""
    import duckdb

    said = f"CHECK ({condition}) does not hold".replace("'", "''")
    derived = f"CASE WHEN ({condition}) IS FALSE THEN error('{said}') END"
    if depends_on_more(condition) or sqlglot.parse_one(condition, read="duckdb").find(exp.Query, exp.AggFunc):
        raise source.unsupported(place, f"CHECK ({condition})", _HINT, "CHECK")
    inputs = ", ".join(f'CAST(NULL AS {c.type}) AS "{c.name}"' for c in columns)
    try:
        connection().sql(f"SELECT CAST({derived} AS BOOLEAN) FROM (SELECT {inputs}) arrived")
    except duckdb.Error as error:
        raise source.error(place, f"CHECK ({condition}): {first_line(error)}", _HINT) from None
    return derived
