"""From summed changes to a table: the statements, and a check of each one's outcome.

``viewlet_net`` holds each changed row with its columns, ``viewlet_weight`` (never 0), and whether rows of its key
``viewlet_went`` or ``viewlet_came``. If the table lacks or has what the view does not explain, the transaction ends:
better no table than a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier

from viewlet.errors import Error

Cursor = psycopg.Cursor[tuple[Any, ...]]


@dataclass(frozen=True)
class Target:
    label: str  # for people
    name: Identifier
    columns: tuple[str, ...]
    key: tuple[str, ...]  # empty: a bag

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns by which a row is found."""
        return self.key or self.columns


def apply_by_key(cursor: Cursor, target: Target) -> None:
    """A key that only went is deleted, one that went and came updated, one that only came inserted."""
    gone = SQL("c.viewlet_weight < 0 AND NOT c.viewlet_came")
    _change_found(cursor, target, SQL("DELETE FROM {table} t USING viewlet_net c WHERE {match} AND {which}"), gone)
    if others := [name for name in target.columns if name not in target.key]:
        update = SQL("UPDATE {table} t SET {values} FROM viewlet_net c WHERE {match} AND {which}")
        values = SQL(", ").join(SQL("{0} = c.{0}").format(Identifier(name)) for name in others)
        _change_found(cursor, target, update, SQL("c.viewlet_weight > 0 AND c.viewlet_went"), values=values)
    new = SQL("c.viewlet_weight > 0 AND NOT c.viewlet_went")
    insert = SQL("INSERT INTO {0} ({1}) SELECT {1} FROM viewlet_net c WHERE {2} ON CONFLICT ({3}) DO NOTHING")
    cursor.execute(insert.format(target.name, listed(target.columns), new, listed(target.key)))
    _demand(target, cursor.rowcount, _expected(cursor, new))


def apply_to_bag(cursor: Cursor, target: Target) -> None:
    """Of a row with weight -n exactly n copies go, told apart by where they are stored; with +n, n copies come."""
    delete = SQL(
        "DELETE FROM ONLY {table} WHERE ctid = ANY (ARRAY("
        "SELECT place FROM (SELECT t.ctid AS place, c.viewlet_weight, row_number() OVER (PARTITION BY c.ctid) AS copy "
        "FROM ONLY {table} t JOIN viewlet_net c ON {match} WHERE {which}) copies WHERE copy <= -viewlet_weight))"
    )
    _change_found(cursor, target, delete, SQL("c.viewlet_weight < 0"))
    insert = SQL(
        "INSERT INTO {0} ({1}) SELECT {1} FROM viewlet_net, generate_series(1, viewlet_weight) WHERE viewlet_weight > 0"
    )
    cursor.execute(insert.format(target.name, listed(target.columns)))


def _change_found(cursor: Cursor, target: Target, statement: SQL, which: SQL, **parts: Composable) -> None:
    """Run a statement over the rows t of the table that some row c of the changes matches.

    First by plain equality, which indexes serve and which finds no NULL; then, if rows are missing, those with a NULL,
    as records: PostgreSQL compares these as GROUP BY does, NULL with NULL included.
    """
    expected, done = _expected(cursor, which), 0
    own, theirs = (listed(target.identity, of) for of in ("t", "c"))
    plainly = SQL(" AND ").join(SQL("t.{0} = c.{0}").format(Identifier(name)) for name in target.identity)
    as_records = SQL("num_nulls({1}) > 0 AND ROW({0})::record = ROW({1})::record").format(own, theirs)
    for match in (plainly, as_records):
        if done < expected:
            cursor.execute(statement.format(table=target.name, match=match, which=which, **parts))
            done += cursor.rowcount
    _demand(target, done, expected)


def _expected(cursor: Cursor, which: SQL) -> int:
    rows = SQL("SELECT coalesce(abs(sum(c.viewlet_weight)), 0)::bigint FROM viewlet_net c WHERE {}").format(which)
    return int(value(cursor, rows))


def _demand(target: Target, done: int, expected: int) -> None:
    if done != expected:
        key = f"key=({', '.join(target.key)}) does not tell the view's rows apart, or " if target.key else ""
        raise Error(
            f"table {target.label} does not hold what the view did: {expected} rows were to change, {done} could: {key}"
            "somebody else wrote to the table, or the stream does not begin with the view's first change. Nothing was "
            "written. To fill the table again, drop it and its row in viewlet_batches, and start a new stream"
        )


def listed(names: Iterable[str], of: str | None = None) -> Composed:
    return SQL(", ").join(Identifier(of, name) if of else Identifier(name) for name in names)


def value(cursor: Cursor, query: SQL | Composed) -> Any:
    """The only column of a query's only row."""
    row = cursor.execute(query).fetchone()
    assert row is not None, "a query without FROM or an aggregate has one row"
    return row[0]
