"""Databases that evaluate the query anew: SQLite, DuckDB, PostgreSQL, chDB. ``python reevaluate.py sqlite``.

They begin with the rows of the steady state. A row has a key of its own, its place, so that one that goes is found at
once. SQLite and PostgreSQL have an index on every column that a query joins or compares by.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from worker import Clock, Net, RefusedError, Row, Run, Task, work

INDEXED = ("broker_id", "price")
STANDARD = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "string": "VARCHAR",
    "double": "DOUBLE PRECISION",
    "date32[day]": "DATE",
    "decimal128(12, 2)": "DECIMAL(12,2)",
}
CLICKHOUSE = {
    "int64": "Int64",
    "int32": "Int32",
    "string": "String",
    "double": "Float64",
    "date32[day]": "Date32",
    "decimal128(12, 2)": "Decimal(12,2)",
}


class Database(Protocol):
    processes: Sequence[int]  # that work for it besides this one

    def change(self, net: Net) -> None: ...

    def answer(self) -> list[Row]: ...


class _Sql:
    """What is alike in those that have Python's usual interface; ``mark`` is a parameter in a statement."""

    mark, indexed = "?", True
    processes: Sequence[int] = ()

    def __init__(self, task: Task, connection: Any) -> None:
        self._sql, self._connection = task.sql, connection
        for name in task.relations:
            columns = task.columns(name, STANDARD)
            listed = ", ".join(f"{column} {kind} NOT NULL" for column, kind in columns.items())
            connection.execute(f"CREATE TABLE {name} (place BIGINT PRIMARY KEY, {listed})")
        self.fill(task.net(0, task.warm).come)
        if self.indexed:
            self._index(task)

    def _index(self, task: Task) -> None:
        for name in task.relations:
            for column in task.columns(name, STANDARD):
                if column.endswith("key") or column in INDEXED:
                    self._connection.execute(f"CREATE INDEX {name}_{column} ON {name} ({column})")
        self._connection.execute("ANALYZE")

    def fill(self, come: dict[str, list[Row]]) -> None:
        for name, rows in come.items():
            marks = ", ".join([self.mark] * len(rows[0]))
            self._many(f"INSERT INTO {name} VALUES ({marks})", rows)

    def change(self, net: Net) -> None:
        self._connection.execute("BEGIN")
        for name, places in net.gone.items():
            self._many(f"DELETE FROM {name} WHERE place = {self.mark}", [(place,) for place in places])
        self.fill(net.come)
        self._connection.execute("COMMIT")

    def _many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, rows)

    def answer(self) -> list[Row]:
        return self._connection.execute(self._sql).fetchall()  # type: ignore[no-any-return]


class SQLite(_Sql):
    """It has neither decimals nor dates: a decimal is a double there, and a date its text."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, sqlite3.connect(":memory:", isolation_level=None))

    def _many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, [tuple(map(_plain, row)) for row in rows])


def _plain(cell: object) -> object:
    match cell:
        case Decimal():
            return float(cell)
        case dt.date():
            return cell.isoformat()
    return cell


class DuckDB(_Sql):
    indexed = False  # its joins make hash tables of their own

    def __init__(self, task: Task) -> None:
        import duckdb

        super().__init__(task, duckdb.connect(config={"threads": 1}))

    def fill(self, come: dict[str, list[Row]]) -> None:
        """One statement for all rows: it takes a millisecond for each statement that it is given."""
        for name, rows in come.items():
            marks = ", ".join("?" * len(rows[0]))
            for start in range(0, len(rows), 1_000):
                part = rows[start : start + 1_000]
                values = ", ".join([f"({marks})"] * len(part))
                self._connection.execute(f"INSERT INTO {name} VALUES {values}", [c for row in part for c in row])

    def _many(self, statement: str, rows: Iterable[Row]) -> None:
        places = [place for (place,) in rows]
        marks = ", ".join("?" * len(places))
        self._connection.execute(statement.replace("= ?", f"IN ({marks})"), places)


class PostgreSQL(_Sql):
    mark = "%s"

    def __init__(self, task: Task) -> None:
        import psycopg

        connection = psycopg.connect(task.address, autocommit=True)
        self.processes = (connection.info.backend_pid,)
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        super().__init__(task, connection)

    def _many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.cursor().executemany(statement, rows)


class ChDB:
    """ClickHouse in this process, its tables in memory; its deletes rewrite the blocks that they touch."""

    processes: Sequence[int] = ()

    def __init__(self, task: Task) -> None:
        from chdb import session

        self._sql, self._session = task.sql, session.Session()
        self._session.query("CREATE DATABASE peer")
        self._session.query("USE peer")
        for name in task.relations:
            listed = ", ".join(f"{column} {kind}" for column, kind in task.columns(name, CLICKHOUSE).items())
            self._session.query(f"CREATE TABLE {name} (place Int64, {listed}) ENGINE = Memory")
        self.change(task.net(0, task.warm))

    def change(self, net: Net) -> None:
        for name, places in net.gone.items():
            gone = ", ".join(map(str, places))
            delete = f"ALTER TABLE {name} DELETE WHERE place IN ({gone}) SETTINGS mutations_sync = 1"
            self._session.query(delete)
        for name, rows in net.come.items():
            self._session.query(f"INSERT INTO {name} VALUES {', '.join(map(_literal, rows))}")

    def answer(self) -> list[Row]:
        import json

        text = str(self._session.query(self._sql, "JSONCompactEachRow"))
        return [tuple(json.loads(line, parse_float=str)) for line in text.splitlines()]


def _literal(row: Row) -> str:
    return "(" + ", ".join(f"'{c}'" if isinstance(c, str | dt.date) else str(c) for c in row) + ")"


DATABASES: dict[str, Callable[[Task], Database]] = {
    "sqlite": SQLite,
    "duckdb": DuckDB,
    "postgresql": PostgreSQL,
    "chdb": ChDB,
}


def refreshed(task: Task) -> Run:
    """Until its time is up, or the stream is over."""
    database = DATABASES[sys.argv[1]](task)
    try:
        rows = database.answer()
    except Exception as refused:  # whatever the peer's library calls it
        raise RefusedError(str(refused)) from refused
    events, clock = 0, Clock(*database.processes)
    for net in task.nets():
        database.change(net)
        rows = database.answer()
        events += net.events
        if clock.wall > task.seconds:
            break
    return Run(events, task.warm + events, clock.cpu, clock.wall, rows)


if __name__ == "__main__":
    work(refreshed)
