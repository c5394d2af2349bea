"""A view as a table of any database that has a JDBC driver: each micro-batch is one transaction.

Spark writes what changed to a table of the attempt's own. One transaction then moves ``viewlet_batches`` on by one
micro-batch, which only one of two drivers can, takes out the rows whose keys changed, and puts in the new ones. All of
it is plain SQL.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from viewlet.errors import Error
from viewlet.spark.sinks.net import GONE, WENT, check_key, net_rows
from viewlet.spark.sinks.order import BATCH, WEIGHT, Held, is_held, with_own_names

MEMORY = "viewlet_batches"


@dataclass(frozen=True)
class Jdbc:
    """The function that ``foreachBatch`` calls, made by :func:`viewlet.spark.sinks.jdbc`."""

    url: str = field(repr=False)  # it may hold a password
    table: str
    key: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)

    def __call__(self, changes: DataFrame, micro_batch: int) -> None:
        changes = with_own_names(changes)
        check_key(self._label, changes, self.key)
        try:
            with self._connected(changes.sparkSession) as database:
                self._take(database, changes, micro_batch)
        except Py4JJavaError as error:
            said = str(error.java_exception.toString()).splitlines()[0]
            raise Error(
                f"{self._label}, micro-batch {micro_batch}: {said}\n"
                "Nothing of it was written; the stream repeats it when it is started again"
            ) from error

    @property
    def _label(self) -> str:
        return f"table {self.table}"

    def _take(self, database: Database, changes: DataFrame, micro_batch: int) -> None:
        if not database.has(MEMORY):
            database.execute(
                f"CREATE TABLE {MEMORY} (target VARCHAR(200) PRIMARY KEY, batch BIGINT, last_change BIGINT)"
            )
            database.commit()
        held = self._held(database)
        if is_held(self._label, held, micro_batch, changes):
            return
        self._prepare(database, changes, is_first=held is None)
        stage = f"viewlet_stage_{uuid.uuid4().hex[:12]}"
        try:
            last, rows = self._staged(changes, stage)
            self._remember(database, held, micro_batch, last)
            self._apply(database, changes.drop(BATCH, WEIGHT).columns, stage, rows)
            database.commit()
        finally:
            with suppress(Py4JJavaError):
                database.rollback()
                database.execute(f"DROP TABLE {stage}")
                database.commit()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _held(self, database: Database) -> Held | None:
        row = database.row(f"SELECT batch, last_change FROM {MEMORY} WHERE target = {_text(self.table)}", 2)
        return None if row is None else Held(*row)

    def _prepare(self, database: Database, changes: DataFrame, *, is_first: bool) -> None:
        """Make the table, with Spark's types for this database, or see that the one which is there will do."""
        if not database.has(self.table):
            self._written(changes.drop(BATCH, WEIGHT).limit(0), self.table)
        elif is_first and database.row(f"SELECT COUNT(*) FROM {self.table}", 1) != (0,):
            raise Error(f"{self._label} holds rows that no sink wrote: empty it, or name another table")

    def _staged(self, changes: DataFrame, stage: str) -> tuple[int | None, int]:
        """The last batch of the view among the changes, and how many keys changed."""
        seen, counted = Observation(), Observation()
        watched = changes.observe(seen, F.max(BATCH).alias(BATCH))
        net = net_rows(self._label, watched, self.key).observe(counted, F.count(F.lit(1)).alias("rows"))
        self._written(net, stage)
        return seen.get[BATCH], counted.get["rows"]

    def _written(self, rows: DataFrame, table: str) -> None:
        try:
            rows.write.format("jdbc").options(**self.options, url=self.url, dbtable=table).mode("append").save()
        except PySparkException as error:
            raise Error(f"{self._label}: Spark cannot write to the database: {error}") from error

    def _remember(self, database: Database, held: Held | None, micro_batch: int, last: int | None) -> None:
        """First of all: it waits for another driver that does the same, and fails if that one has done it."""
        change = "NULL" if last is None else str(last)
        if held is None:
            database.execute(f"INSERT INTO {MEMORY} VALUES ({_text(self.table)}, {micro_batch}, {change})")
            return
        moved = database.execute(
            f"UPDATE {MEMORY} SET batch = {micro_batch}, last_change = {change} "
            f"WHERE target = {_text(self.table)} AND batch = {held.micro_batch}"
        )
        if moved != 1:
            raise Error(
                f"{self._label}: another driver has done micro-batch {micro_batch}; this one has written nothing"
            )

    def _apply(self, database: Database, names: list[str], stage: str, rows: int) -> None:
        columns = ", ".join(map(database.quoted, names))
        same = " AND ".join(_equal(database.quoted(name)) for name in self.key)
        went, gone = database.quoted(WENT), database.quoted(GONE)
        self._demand(rows, database.row(f"SELECT COUNT(*) FROM {stage}", 1)[0])  # type: ignore[index]
        known = database.row(f"SELECT COUNT(*) FROM {stage} WHERE {went} = 1", 1)[0]  # type: ignore[index]
        changed = f"SELECT 1 FROM {stage} WHERE {same.format(old=self.table, new=stage)}"
        self._demand(known, database.execute(f"DELETE FROM {self.table} WHERE EXISTS ({changed})"))
        database.execute(f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {stage} WHERE {gone} = 0")

    def _demand(self, expected: int, done: int) -> None:
        if expected != done:
            raise Error(
                f"{self._label} does not hold what the view did: {expected} rows were to change, {done} could: "
                f"somebody else wrote to the table, or the stream does not begin with the view's first change. Nothing "
                f"was written. To fill it again, drop it and its row in {MEMORY}, and start a new stream"
            )

    # -- the connection ------------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self, spark: SparkSession) -> Iterator[Database]:
        """Through the driver's own Java, which has the JDBC driver that Spark uses."""
        try:
            java = spark.sparkContext._jvm
        except PySparkException:
            raise Error("the JDBC sink needs a session of classic Spark: Connect has no Java here") from None
        assert java is not None
        if driver := self.options.get("driver"):
            java.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry.register(driver)
        settings = java.java.util.Properties()
        for name, value in self.options.items():
            settings.setProperty(name, value)
        connection = java.java.sql.DriverManager.getConnection(self.url, settings)
        try:
            connection.setAutoCommit(False)
            yield Database(connection)
        finally:
            with suppress(Py4JJavaError):
                connection.rollback()
            connection.close()


@dataclass(frozen=True)
class Database:
    """A connection of JDBC's, in a transaction."""

    connection: Any

    def has(self, table: str) -> bool:
        """Names are kept in capitals, in small letters, or as they are written."""
        *schema, name = table.split(".")
        about = self.connection.getMetaData()
        where = schema[0] if schema else None
        for form in {name, name.upper(), name.lower()}:
            for place in {where, where.upper(), where.lower()} if where else {None}:
                found = about.getTables(None, place, form, None)
                if found.next():
                    return True
        return False

    def quoted(self, name: str) -> str:
        quote = self.connection.getMetaData().getIdentifierQuoteString().strip() or ""
        return f"{quote}{name.replace(quote, quote * 2) if quote else name}{quote}"

    def execute(self, sql: str) -> int:
        statement = self.connection.createStatement()
        try:
            return int(statement.executeUpdate(sql))
        finally:
            statement.close()

    def row(self, sql: str, columns: int) -> tuple[Any, ...] | None:
        """The first row of a query, of numbers; NULL is None."""
        statement = self.connection.createStatement()
        try:
            found = statement.executeQuery(sql)
            return tuple(found.getObject(place + 1) for place in range(columns)) if found.next() else None
        finally:
            statement.close()

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


def _equal(column: str) -> str:
    """NULL with NULL included, in words that every database has."""
    old, new = f"{{old}}.{column}", f"{{new}}.{column}"
    return f"({old} = {new} OR ({old} IS NULL AND {new} IS NULL))"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
