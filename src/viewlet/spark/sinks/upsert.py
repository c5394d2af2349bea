"""A view as a table of PostgreSQL: each micro-batch is one transaction, which also remembers that it was done.

In the database changes are summed up first, so that what came and went within a micro-batch is no change at all.
``viewlet_batches`` remembers for each table how far its sink has come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal
from pyspark.sql import DataFrame

from viewlet.errors import Error
from viewlet.spark.sinks.copying import as_text, postgres_type
from viewlet.spark.sinks.order import BATCH, WEIGHT, Held, is_held, with_own_names
from viewlet.spark.sinks.statements import Cursor, Target, apply_by_key, apply_to_bag, listed, value

OLDEST_SERVER = 15  # the first with NULLS NOT DISTINCT, and the oldest that is still maintained
MEMORY = "viewlet_batches"


@dataclass(frozen=True)
class Upsert:
    """The function that ``foreachBatch`` calls, made by :func:`viewlet.spark.sinks.postgres`."""

    url: str = field(repr=False)  # it may hold a password
    table: str
    key: tuple[str, ...]
    schema: str | None

    def __call__(self, changes: DataFrame, micro_batch: int) -> None:
        changes = with_own_names(changes)
        view = changes.drop(BATCH, WEIGHT).schema
        if unknown := [name for name in self.key if name not in view.names]:
            raise Error(f"key: the view has no column {unknown[0]}; it has {', '.join(view.names)}")
        types = {column.name: postgres_type(self._label, column) for column in view}
        target = Target(self._label, self._named(self.table), tuple(types), self.key)
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                _refuse_old_server(connection)
                with connection.transaction(), connection.cursor() as cursor:
                    self._create_memory(cursor)
                with connection.transaction(), connection.cursor() as cursor:
                    self._take(cursor, target, types, changes, micro_batch)
        except psycopg.Error as error:
            raise Error(
                f"PostgreSQL, table {self._label}, micro-batch {micro_batch}: {error}\n"
                "Nothing of it was written; the stream repeats it when it is started again"
            ) from error

    @property
    def _label(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def _named(self, table: str) -> Identifier:
        return Identifier(self.schema, table) if self.schema else Identifier(table)

    def _create_memory(self, cursor: Cursor) -> None:
        """In a transaction of its own, since sinks of other tables make the same one."""
        if _kind(cursor, self._named(MEMORY)) is None:
            _lock(cursor, MEMORY)
            columns = SQL("target text PRIMARY KEY, batch bigint NOT NULL, last_change bigint")
            cursor.execute(SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self._named(MEMORY), columns))

    def _take(
        self, cursor: Cursor, target: Target, types: dict[str, Composable], changes: DataFrame, micro_batch: int
    ) -> None:
        """Do the micro-batch and remember it. A second driver waits for the lock, even one that was thought dead."""
        _lock(cursor, self._label)
        held = self._held(cursor)
        if is_held(f"table {self._label}", held, micro_batch, changes):
            return
        _prepare(cursor, target, types, is_first=held is None)
        last_change = _stage(cursor, target, changes)
        if target.key:
            apply_by_key(cursor, target)
        else:
            apply_to_bag(cursor, target)
        self._remember(cursor, micro_batch, last_change)

    def _held(self, cursor: Cursor) -> Held | None:
        memory = self._named(MEMORY)
        cursor.execute(SQL("SELECT batch, last_change FROM {} WHERE target = %s").format(memory), [self.table])
        row = cursor.fetchone()
        return Held(*row) if row else None

    def _remember(self, cursor: Cursor, micro_batch: int, last_change: int | None) -> None:
        cursor.execute(
            SQL(
                "INSERT INTO {} VALUES (%s, %s, %s) ON CONFLICT (target) "
                "DO UPDATE SET batch = EXCLUDED.batch, last_change = EXCLUDED.last_change"
            ).format(self._named(MEMORY)),
            [self.table, micro_batch, last_change],
        )


def _refuse_old_server(connection: psycopg.Connection) -> None:
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        version = connection.info.parameter_status("server_version")
        raise Error(f"the sink needs PostgreSQL {OLDEST_SERVER} or newer, and the server is {version}")


def _lock(cursor: Cursor, name: str) -> None:
    """Until the transaction ends. Another lock by chance of the same number costs time, no more."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"viewlet sink {name}"])


def _kind(cursor: Cursor, table: Identifier) -> str | None:
    """``r`` for an ordinary table, another letter for anything else of this name, None if there is nothing."""
    name = Literal(table.as_string(cursor))
    kind = value(cursor, SQL("SELECT (SELECT relkind::text FROM pg_class WHERE oid = to_regclass({}))").format(name))
    return None if kind is None else str(kind)


def _prepare(cursor: Cursor, target: Target, types: dict[str, Composable], *, is_first: bool) -> None:
    """Make the table, or see that the one which is there will do."""
    kind = _kind(cursor, target.name)
    if kind is None:
        columns = [SQL("{} {}").format(Identifier(name), type_) for name, type_ in types.items()]
        unique = [SQL("UNIQUE NULLS NOT DISTINCT ({})").format(listed(target.key))] if target.key else []
        cursor.execute(SQL("CREATE TABLE {} ({})").format(target.name, SQL(", ").join([*columns, *unique])))
    elif kind != "r" and not target.key:
        raise Error(f"{target.label} is no ordinary table: without key=… copies of a row cannot be told apart in it")
    elif is_first and value(cursor, SQL("SELECT EXISTS (SELECT FROM {})").format(target.name)):
        raise Error(f"table {target.label} holds rows that no sink wrote: empty it, or name another table")


def _stage(cursor: Cursor, target: Target, changes: DataFrame) -> int | None:
    """Changes into ``viewlet_changes``, their sums into ``viewlet_net``; the last batch of the view among them.

    The sums also know of each row whether others of the same key went or came.
    """
    cursor.execute("SET LOCAL TimeZone = 'UTC'")  # as_text writes timestamps in UTC
    cursor.execute(
        SQL(
            "CREATE TEMPORARY TABLE viewlet_changes ON COMMIT DROP AS "
            "SELECT 0::bigint AS viewlet_batch, 0::bigint AS viewlet_weight, {} FROM {} WITH NO DATA"
        ).format(listed(target.columns), target.name)
    )
    with cursor.copy("COPY viewlet_changes FROM STDIN (FORMAT csv)") as copy:
        for piece in as_text(changes).toLocalIterator(prefetchPartitions=True):
            copy.write(piece[0])
    cursor.execute(
        SQL(
            "CREATE TEMPORARY TABLE viewlet_net ON COMMIT DROP AS "
            "SELECT *, bool_or(viewlet_weight < 0) OVER same AS viewlet_went, "
            "bool_or(viewlet_weight > 0) OVER same AS viewlet_came "
            "FROM (SELECT {0}, sum(viewlet_weight)::bigint AS viewlet_weight FROM viewlet_changes GROUP BY {0}) sums "
            "WHERE viewlet_weight <> 0 WINDOW same AS (PARTITION BY {1})"
        ).format(listed(target.columns), listed(target.identity))
    )
    cursor.execute("ANALYZE viewlet_net")
    last: int | None = value(cursor, SQL("SELECT max(viewlet_batch) FROM viewlet_changes"))
    return last
