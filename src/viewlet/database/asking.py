"""Any SELECT over streams, tables and views: DuckDB answers it over Arrow, as of one event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewlet.database.readable import Readable
from viewlet.duck import cursor
from viewlet.errors import SqlError, UnsupportedError
from viewlet.rows.dml import create_view, quoted
from viewlet.sql.define import tables_read
from viewlet.sql.scope import Catalog
from viewlet.sql.source import did_you_mean, script_text

SELECT_ONLY = "db.sql answers one SELECT, and changes nothing"
USE_EXECUTE = "db.execute takes the statements that define names and change rows"
ONE_AT_A_TIME = "call db.sql once for each"
READ_ONLY = "DuckDB reads no files here: insert their rows with db.insert"
PAPER = "write it as CREATE MATERIALIZED VIEW: DuckDB would read the sum of no rows in it as NULL, not as 0"
POINTED_AT = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^", re.DOTALL)
NO_TABLE = re.compile(r"Table with name (.+?) does not exist")
DEFINING = re.compile(r"\s*(CREATE|DROP|ALTER|INSERT|UPDATE|DELETE|TRUNCATE)\b", re.IGNORECASE)
HINTS = dict.fromkeys(("CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE"), USE_EXECUTE)
HINTS |= {"EXPLAIN": "db.explain says how views are kept fresh", "COPY": "db.sql(…).arrow() has the rows to write"}


@dataclass(frozen=True)
class Stored:
    """Rows of a stream, table or view, as columns of Arrow. ``types`` has those of SQL that Arrow has as others."""

    rows: pa.Table
    types: Mapping[str, str]


class Answer(Readable):
    """The rows that :meth:`Database.sql` found. They stay as they were then.

    It can be iterated over and has a ``len()``. It hands itself to Arrow libraries by ``__arrow_c_stream__``, and shows
    itself in a notebook.
    """

    def __init__(self, table: pa.Table, types: list[str]) -> None:
        self._table, self._sql_types = table, types

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(self._table.column_names)

    def _types(self) -> list[str]:
        return self._sql_types

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"<answer ({', '.join(self.columns)}): {len(self)} rows>"


class Question:
    """One SELECT, and the relations and views that it reads."""

    def __init__(self, text: str, catalog: Catalog, dialect: str) -> None:
        """``catalog`` says what there is. An error in the text is a :class:`SqlError`."""
        self._text, self._catalog, self._dialect = script_text(text), catalog, dialect
        with closing(cursor()) as connection:
            self._check(connection)
            self._names = self._all_read(_named(connection, self._text))

    @property
    def stored(self) -> list[str]:
        """The relations and the materialized views, whose rows are there."""
        return [name for name in self._catalog.names if name in self._names and name not in self._plain]

    @property
    def _plain(self) -> list[str]:
        """The plain views that it reads, each after those that it reads itself."""
        views = self._catalog.views.items()
        return [name for name, view in views if name in self._names and not view.materialized]

    def answer(self, tables: Mapping[str, Stored]) -> Answer:
        """By the rows of what is :attr:`stored`."""
        if self._plain and self._dialect == "paper":
            raise UnsupportedError(f"asking the plain view {self._plain[0]} in the dialect paper", hint=PAPER)
        with closing(cursor()) as connection:
            for number, (name, table) in enumerate(tables.items()):
                _register(connection, name, table, f"viewlet_rows_{number}")
            try:
                for name in self._plain:
                    connection.execute(create_view(self._catalog, name, temporary=True))
                answer = connection.sql(self._text)
                return Answer(answer.to_arrow_table(), list(map(str, answer.types)))
            except (_duckdb().BinderException, _duckdb().CatalogException) as error:
                raise self._translated(_pointing(connection, self._text, error)) from error
            except _duckdb().Error as error:
                raise self._translated(error) from error

    def _check(self, connection: Any) -> None:
        try:
            statements = connection.extract_statements(self._text)
        except _duckdb().Error as error:
            if DEFINING.match(self._text):
                raise SqlError(SELECT_ONLY, hint=USE_EXECUTE) from error
            raise self._translated(error) from error
        if len(statements) != 1:
            raise SqlError(f"{SELECT_ONLY}; here are {len(statements) or 'no'} statements", hint=ONE_AT_A_TIME)
        kind = statements[0].type.name
        if kind not in ("SELECT", "MULTI"):  # which is a PIVOT
            raise SqlError(f"{SELECT_ONLY}; this is {kind}", hint=HINTS.get(kind, ""))

    def _all_read(self, names: set[str]) -> set[str]:
        """With what is behind plain views. The rows of the others are there."""
        read: set[str] = set()
        waiting = [name for name in names if name in self._catalog]
        while waiting:
            name = waiting.pop()
            if name not in read:
                read.add(name)
                view = self._catalog.views.get(name)
                below = set() if view is None or view.materialized else tables_read(view.tree)
                waiting += [table for table in below if table in self._catalog]
        return read

    def _translated(self, error: Exception) -> SqlError:
        """What DuckDB says, and where. A table that it does not know is one that nobody defined."""
        says = str(error)
        at = POINTED_AT.search(says)
        message = (says[: at.start()] if at else says).partition(": ")[2] or says
        hint = READ_ONLY if type(error).__name__ == "PermissionException" else ""
        if unknown := NO_TABLE.search(message):
            name, there = unknown[1], self._catalog.names
            message = f"there is no stream, table or view {name}"
            hint = did_you_mean(name.lower(), there, f"there are: {', '.join(there) or 'none'}")
        line, column = self._place(at) if at else (None, None)
        return SqlError(message, source=self._text, line=line, column=column, hint=hint)

    def _place(self, at: re.Match[str]) -> tuple[int | None, int | None]:
        """DuckDB shows a part of a long line, between dots."""
        line, shown, before = int(at[1]), at[2], len(at[3]) - len(f"LINE {at[1]}: ")
        lines = self._text.splitlines()
        inner = shown.removeprefix("...").removesuffix("...")
        if line > len(lines) or inner not in lines[line - 1]:
            return None, None  # in a plain view
        dots = len(shown) - len(shown.removeprefix("..."))
        return line, lines[line - 1].index(inner) + before - dots + 1


def _duckdb() -> Any:
    import duckdb

    return duckdb


def _register(connection: Any, name: str, stored: Stored, hidden: str) -> None:
    """Rows by their name, in the types of SQL."""
    if not stored.types:
        connection.register(name, stored.rows)
        return
    casts = ", ".join(f"CAST({quoted(c)} AS {type_}) AS {quoted(c)}" for c, type_ in stored.types.items())
    connection.register(hidden, stored.rows)
    connection.execute(f"CREATE TEMPORARY VIEW {quoted(name)} AS SELECT * REPLACE ({casts}) FROM {hidden}")


def _pointing(connection: Any, text: str, error: Exception) -> Exception:
    """The same error with its place, which DuckDB tells of a statement that is to run at once."""
    try:
        connection.execute(text)
    except Exception as pointing:
        return pointing
    return error


def _named(connection: Any, text: str) -> set[str]:
    """The tables that a SELECT names, without those of its WITH. Where DuckDB cannot tell, every word in it counts."""
    try:
        names: set[str] = connection.get_table_names(text)
    except _duckdb().Error:
        names = {*re.findall(r"\w+", text), *re.findall(r'"([^"]+)"', text)}
    return {name.lower() for name in names}
