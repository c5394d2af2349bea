"""The proof of a run: DuckDB evaluates the query of every view over the rows that are left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from viewlet.compilation import Dialect
from viewlet.errors import Error
from viewlet.schema import Relation
from viewlet.sql.parse import Statement
from viewlet.sql.translate import nothing
from viewlet.workloads.queries import sum_of_nothing_is_zero

OP = "op"
TIMES = '"how often"'  # no column of anybody's: HAVING would take theirs
RELATIVE = 1e-9  # between two ways of adding up the same doubles
Row = tuple[Any, ...]


def expected(
    script: str, dialect: Dialect, relations: Iterable[Relation], events: Mapping[str, Iterable[pa.Table]]
) -> dict[str, list[Row]]:
    """The rows of each view; ``events`` has for each relation tables of its columns and ``op``."""
    duckdb = referee()
    with duckdb.connect() as connection:
        connection.execute("SET ieee_floating_point_ops = false")  # x / 0 is NULL, as it is to us
        connection.execute("SET error_on_division_by_zero = false")
        for relation in relations:
            columns = ", ".join(f'"{c.name}" {c.type}' for c in relation.given)
            names = ", ".join(f'"{c.name}"' for c in relation.given)
            connection.execute(f'CREATE TABLE "{relation.name}" ({columns})')
            connection.execute(f"CREATE TEMP TABLE arrived ({columns}, {OP} BIGINT)")
            for table in events[relation.name]:
                connection.register("given", table)
                connection.execute(f"INSERT INTO arrived BY NAME SELECT {names}, {OP} FROM given")
            net = f"SELECT {names}, CAST(sum({OP}) AS BIGINT) AS {TIMES} FROM arrived GROUP BY ALL HAVING {TIMES} > 0"
            connection.execute(f'INSERT INTO "{relation.name}" SELECT {names} FROM ({net}), range({TIMES})')
            connection.execute("DROP TABLE arrived")
        translated = nothing(dialect).followed(script)
        columns_of = {result.name: [c.name for c in result.columns] for result in translated.script.results}
        for view in translated.catalog.views.values():
            connection.execute(_create(view, columns_of.get(view.name) or view.columns or (), dialect))
        return {name: connection.execute(f"SELECT * FROM {_quoted(name)}").fetchall() for name in columns_of}


def referee() -> Any:
    """DuckDB, or an error that says how to get it."""
    try:
        import duckdb
    except ImportError as missing:
        raise Error("views are verified by DuckDB: pip install duckdb") from missing
    return duckdb


def _create(view: Statement, columns: Sequence[str], dialect: Dialect) -> str:
    """Later views may read this one, by our names of its columns."""
    query = in_full_order(view.tree, len(columns)).sql(dialect="duckdb")
    names = ", ".join(map(_quoted, columns))
    select = query if dialect == "sql" else sum_of_nothing_is_zero(query)
    return f"CREATE VIEW {_quoted(view.name)}{f' ({names})' if names else ''} AS {select}"


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def in_full_order(query: exp.Expr, width: int) -> exp.Expr:
    """A query that leaves rows out chooses among equal ones as a view does: by the columns, one after the other."""
    around = query
    while isinstance(query, exp.Subquery):
        query = query.this
    parts = {p: _copied(around.args.get(p) or query.args.get(p)) for p in ("order", "limit", "offset")}
    if not (parts["limit"] or parts["offset"]):
        return around
    given = list(parts["order"].expressions) if parts["order"] else []
    columns = [exp.Ordered(this=exp.Literal.number(i + 1), nulls_first=False) for i in range(width)]
    is_whole = any(isinstance(node.this, exp.Var) for node in given)  # ORDER BY ALL stands alone
    query = query.copy()
    query.set("order", exp.Order(expressions=[node.copy() for node in given] + ([] if is_whole else columns)))
    for part in ("limit", "offset"):
        query.set(part, parts[part])
    return query


def _copied(node: exp.Expr | None) -> exp.Expr | None:
    return node and node.copy()


def difference(ours: Iterable[Row], theirs: Iterable[Row]) -> str | None:
    """What differs between two multisets of rows, or None; doubles may differ by rounding.

    >>> difference([(1, 0.1 + 0.2)], [(1, 0.3)])
    >>> difference([(1, 0.5)], [(1, 0.25)])
    'has (1, 0.5), which should be (1, 0.25)'
    """
    left, right = _classes(ours), _classes(theirs)
    for key in dict.fromkeys((*left, *right)):
        for mine, other in zip(left[key], right[key], strict=False):
            if not _close(mine, other):
                return f"has {mine}, which should be {other}"
        if len(left[key]) != len(right[key]):
            shown = (left[key] or right[key])[0]
            return f"has {len(left[key])} rows like {shown}, which should be {len(right[key])}"
    return None


def _classes(rows: Iterable[Row]) -> defaultdict[Row, list[Row]]:
    """Rows that can only differ in their finite and infinite doubles, those in order: NaN has no place in one."""
    classes: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        classes[tuple(_exact(value) for value in row)].append(row)
    for rows_ in classes.values():
        rows_.sort(key=_ordered_doubles)
    return classes


def _exact(value: Any) -> Any:
    match value:
        case bool() | None:
            return str(value)
        case float():
            return float, math.isnan(value)
        case int() | Decimal():
            return Fraction(value)
        case list():
            return tuple(v if isinstance(v, float) else _exact(v) for v in value)
        case _:
            return value


def _ordered_doubles(row: Row) -> list[float]:
    return [value for value in row if isinstance(value, float) and not math.isnan(value)]


def _close(mine: Row, other: Row) -> bool:
    doubles = zip(_ordered_doubles(mine), _ordered_doubles(other), strict=True)
    return all(math.isclose(x, y, rel_tol=RELATIVE) for x, y in doubles)
