"""A view kept elsewhere: sinks for the changes that :meth:`viewlet.spark.Views.changes` streams.

``views.changes("v").writeStream.foreachBatch(parquet("…")).option("checkpointLocation", "…").start()`` keeps v as files
that :func:`read_view` reads, and with ``foreachBatch(postgres("postgresql://…", "v", key=("a",)))`` it is a table;
``jdbc`` does so for other databases, ``delta`` and ``iceberg`` for tables of a lake, and ``kafka`` for topics. Each
change counts exactly once, however often Spark repeats a micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from viewlet.durable.places import absolute
from viewlet.errors import Error
from viewlet.spark.sinks.jdbc import Jdbc
from viewlet.spark.sinks.lake import Delta, Iceberg, Lake
from viewlet.spark.sinks.merge_on_read import MergeOnRead, read_view
from viewlet.spark.sinks.topic import Topic

Sink = Callable[[DataFrame, int], None]

__all__ = ["Sink", "delta", "iceberg", "jdbc", "kafka", "parquet", "postgres", "read_view"]


def parquet(path: str, compact_every: int = 50) -> Sink:
    """Keep a view as Parquet files under ``path``. :func:`read_view` reads them.

    Any file system will do that Spark and pyarrow both reach. Each micro-batch adds its changes. After every
    ``compact_every`` micro-batches they become one *base* with all rows of the view.
    """
    if compact_every < 1:
        raise Error(f"compact_every is {compact_every}: it counts micro-batches, 1 or more")
    return MergeOnRead(absolute(path), compact_every)


def postgres(url: str, table: str, key: Sequence[str] | None = None, schema: str | None = None) -> Sink:
    """Keep a view as a table of PostgreSQL 15 or newer, one transaction for each micro-batch.

    ``key`` names columns that tell the view's rows apart. With it an index finds a changed row, which is updated in
    place. Without it the table may hold equal rows, and each delete scans the table, so a large view needs a key. The
    table is made if it is not there. A second table, ``viewlet_batches``, remembers the last micro-batch. Both are in
    ``schema``.
    """
    try:
        from viewlet.spark.sinks.upsert import Upsert
    except ModuleNotFoundError as missing:
        raise Error("the PostgreSQL sink needs psycopg: pip install 'viewlet[postgres]'") from missing
    return Upsert(url, table, _columns(key or ()), schema)


def jdbc(url: str, table: str, key: Sequence[str], options: Mapping[str, str] | None = None) -> Sink:
    """Keep a view as a table of any database that Spark reaches by JDBC, one transaction for each micro-batch.

    ``key`` names columns that tell the view's rows apart. The table is made if it is not there, with Spark's types for
    that database; make it yourself to have an index on the key, which a large view needs. ``table`` is written as the
    database writes it, quoted where it must be. A second table, ``viewlet_batches``, remembers the last micro-batch.
    ``options`` are those of Spark's JDBC format: ``user``, ``password``, ``driver``, ``createTableColumnTypes``. The
    driver's jar must be in Spark (``--jars``).
    """
    return Jdbc(url, table, _columns(key), dict(options or {}))


def delta(table: str, key: Sequence[str]) -> Sink:
    """Keep a view as a table of Delta Lake, one MERGE and one version of the table for each micro-batch.

    ``table`` is its name, or its path. ``key`` names columns that tell the view's rows apart. The table is made if it
    is not there. Each version says in its commit which micro-batch it has. Spark needs Delta's package, its extension
    and its catalog.
    """
    return Lake(Delta(), table, _columns(key))


def iceberg(table: str, key: Sequence[str]) -> Sink:
    """Keep a view as a table of Iceberg's, one MERGE and one snapshot for each micro-batch.

    ``table`` is its name in a catalog of Iceberg's: ``lake.db.revenue``. ``key`` names columns that tell the view's
    rows apart. The table is made if it is not there. Each snapshot says in its summary which micro-batch it has. Spark
    needs Iceberg's package, its extensions and a catalog.
    """
    return Lake(Iceberg(), table, _columns(key))


def kafka(servers: str, topic: str, key: Sequence[str], options: Mapping[str, str] | None = None) -> Sink:
    """Keep a view as a topic of Kafka's: the newest message of a key has its row as JSON, or no value if it is gone.

    ``key`` names columns that tell the view's rows apart; they are the message's key, as JSON. Make the topic a
    compacted one (``cleanup.policy=compact``). A micro-batch that Spark repeats sends its messages again, and the last
    one of each key stays the last. So who keeps that one has the view, as :func:`viewlet.spark.kafka` with a ``key``
    does. ``options`` are those of Spark's Kafka sink.
    """
    return Topic(servers, topic, _columns(key), dict(options or {}))


def _columns(key: Sequence[str]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)
