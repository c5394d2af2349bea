"""A view kept elsewhere: sinks for the changes that :meth:`viewlet.spark.Views.changes` streams.

``views.changes("v").writeStream.foreachBatch(parquet("…")).option("checkpointLocation", "…").start()`` keeps v as files
that :func:`read_view` reads, and with ``foreachBatch(postgres("postgresql://…", "v", key=("a",)))`` it is a table. Each
change counts exactly once, however often Spark repeats a micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from viewlet.durable.store import absolute
from viewlet.errors import Error
from viewlet.spark.sinks.merge_on_read import MergeOnRead, read_view

Sink = Callable[[DataFrame, int], None]

__all__ = ["Sink", "parquet", "postgres", "read_view"]


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
    return Upsert(url, table, (key,) if isinstance(key, str) else tuple(key or ()), schema)
