"""Figure 7, the other half: databases of today that evaluate the query anew after every event.

Each starts with the rows of the steady state and takes events until its time is up. SQLite and PostgreSQL have an
index on every key, broker and price.
"""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import sqlglot

from bench.engine.answers import Referee, answer, check
from bench.engine.contestants import SkippedError
from bench.engine.workload import Row, Workload, survivors
from bench.paper.apart import apart
from bench.paper.course import Course, Part
from bench.paper.postgres import server
from bench.paper.strategies import EXPERIMENT, LONG
from bench.results import Measurement

INDEXED = ("id", "broker_id", "price")
TOLD = 0.05  # CPU seconds between two words of a contestant
CHUNK = 500  # events that become Python values together
PATIENCE = 10  # times its seconds: after so long on the wall without a word, it is killed


class Database(Protocol):
    def change(self, op: str, relation: str, row: Row) -> None: ...

    def rows(self) -> list[Row]: ...

    def cpu_seconds(self) -> float: ...


class DuckDB(Referee):
    """The referee itself, as a contestant."""

    def cpu_seconds(self) -> float:
        return time.process_time()


class _Indexed:
    """What SQLite and PostgreSQL have in common; ``mark`` is a parameter in a statement, ``place`` a row's address."""

    mark, place = "?", "rowid"

    def __init__(self, w: Workload, rows: Mapping[str, pa.Table], connection: Any) -> None:
        self._select, self._connection = w.query.referee(), connection
        self._columns: dict[str, list[str]] = {}
        for statement in sqlglot.transpile(
            w.query.schema.replace("CREATE STREAM", "CREATE TABLE"), "duckdb", "postgres"
        ):
            connection.execute(statement)
        for name, table in {**rows, **w.static_tables}.items():
            self._columns[name] = table.column_names
            self._fill(name, zip(*(column.to_pylist() for column in table.columns), strict=True))
            for column in table.column_names:
                if column.endswith("key") or column in INDEXED:
                    connection.execute(f"CREATE INDEX {name}_{column} ON {name} ({column})")
        connection.execute("ANALYZE")

    def _fill(self, relation: str, rows: Iterable[Row]) -> None:
        raise NotImplementedError

    def change(self, op: str, relation: str, row: Row) -> None:
        names = self._columns[relation]
        if op == "+":
            statement = f"INSERT INTO {relation} VALUES ({', '.join([self.mark] * len(row))})"
        else:
            where = " AND ".join(f"{name} = {self.mark}" for name in names)
            first = f"SELECT {self.place} FROM {relation} WHERE {where} LIMIT 1"
            statement = f"DELETE FROM {relation} WHERE {self.place} = ({first})"
        self._connection.execute(statement, self._cells(row))

    def _cells(self, row: Row) -> Row:
        return row

    def rows(self) -> list[Row]:
        return self._connection.execute(self._select).fetchall()  # type: ignore[no-any-return]

    def cpu_seconds(self) -> float:
        return time.process_time()


class SQLite(_Indexed):
    """It has neither decimals nor dates: a decimal is a double there, and a date its text."""

    def __init__(self, w: Workload, rows: Mapping[str, pa.Table]) -> None:
        super().__init__(w, rows, sqlite3.connect(":memory:", isolation_level=None))

    def _fill(self, relation: str, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(self._columns[relation]))
        self._connection.executemany(f"INSERT INTO {relation} VALUES ({marks})", map(self._cells, rows))

    def _cells(self, row: Row) -> Row:
        return tuple(map(as_sqlite, row))


def as_sqlite(cell: object) -> object:
    match cell:
        case Decimal():
            return float(cell)
        case dt.date():
            return cell.isoformat()
    return cell


class PostgreSQL(_Indexed):
    """The CPU seconds are the server process's and ours."""

    mark, place = "%s", "ctid"

    def __init__(self, address: str, patience: float, w: Workload, rows: Mapping[str, pa.Table]) -> None:
        import psycopg

        connection = psycopg.connect(address, autocommit=True)
        self._process = Path("/proc", str(connection.info.backend_pid), "stat")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection.execute(f"SET statement_timeout = {int(1000 * patience)}")  # nobody reads it later than that
        super().__init__(w, rows, connection)

    def _fill(self, relation: str, rows: Iterable[Row]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {relation} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def rows(self) -> list[Row]:
        from psycopg.errors import QueryCanceled

        try:
            return super().rows()
        except QueryCanceled as canceled:
            raise TimeoutError from canceled

    def cpu_seconds(self) -> float:
        fields = self._process.read_text().rpartition(")")[2].split()
        return time.process_time() + sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


Open = Callable[[Workload, Mapping[str, pa.Table]], Database]
NOTES = {
    "duckdb": "one thread, no indexes",
    "sqlite": "in memory, indexed, decimals as doubles",
    "postgresql": "no fsync, indexed; CPU seconds of server and client",
}


@dataclass(frozen=True)
class Databases:
    """Those that are there, by name; and why one is not."""

    there: Mapping[str, Open]
    missing: Mapping[str, str]
    seconds: float

    def measured(self, contestant: str, w: Workload) -> Measurement:
        if contestant in self.missing:
            return Measurement(EXPERIMENT, w.name, contestant, outcome="missing", note=self.missing[contestant])
        course = self._course(contestant, w)
        if course is None:
            note = f"not one refresh within {PATIENCE * self.seconds:g} s, with the rows of the steady state"
            return Measurement(EXPERIMENT, w.name, contestant, outcome="missing", note=note)
        return _measurement(contestant, w, course)

    def _course(self, contestant: str, w: Workload) -> Course | None:
        """DuckDB has run in this process, and is not at its ease in a fork of it; nor does it need a limit."""
        work = partial(_refreshed, self.there[contestant], w, survivors(w.stream.between(0, w.warm)), self.seconds)
        parts: list[Part] = []
        if contestant == "duckdb":
            work(parts.append)
        else:
            parts = apart(work, PATIENCE * self.seconds).words
        return Course(parts, len(w.stream), w.warm).up_to_an_answer()


@contextmanager
def databases(seconds: float) -> Iterator[Databases]:
    """As long as this lasts, a PostgreSQL server runs."""
    there: dict[str, Open] = {"duckdb": DuckDB, "sqlite": SQLite}
    missing: dict[str, str] = {}
    with ExitStack() as servers:
        try:
            there["postgresql"] = partial(PostgreSQL, servers.enter_context(server()), PATIENCE * seconds)
        except SkippedError as skipped:
            missing["postgresql"] = str(skipped)
        yield Databases(there, missing, seconds)


def _refreshed(
    opened: Open, w: Workload, rows: Mapping[str, pa.Table], seconds: float, tell: Callable[[Part], None]
) -> None:
    """Every event, and what the query says after it, until the time is up or the database gives up."""
    database = opened(w, rows)
    tell(Part(w.warm, 0.0))
    stream = w.stream.between(w.warm, len(w.stream))
    start, told, since = database.cpu_seconds(), 0.0, 0
    for number, event in enumerate(stream.events(chunk=CHUNK), start=1):
        database.change(*event)
        try:
            shown = database.rows()
        except TimeoutError:
            return
        spent, since = database.cpu_seconds() - start, since + 1
        over = spent >= seconds or number == len(stream)
        if over or spent - told > TOLD:
            long = (spent - told) / since > LONG
            tell(Part(w.warm + number, spent - told, rows=shown if over or long else None))
            told, since = spent, 0
        if over:
            return


def _measurement(contestant: str, w: Workload, course: Course) -> Measurement:
    right = answer(w, w.stream.between(0, course.stop))
    if contestant == "sqlite":
        right = [tuple(map(as_sqlite, row)) for row in right]
    check(f"{w.name}, {contestant},", course.rows, right)
    return Measurement(
        EXPERIMENT,
        w.name,
        contestant,
        course.rate,
        events=course.events,
        seconds=course.seconds,
        bounded=course.reached < 1,
        reached=course.reached,
        rows_checked=len(right),
        note=f"evaluates anew after each event, from the steady state on; {NOTES[contestant]}",
    )
