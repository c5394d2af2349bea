"""What followers are told of a batch that changed the job: how each view differs from what it was.

The cells of such a batch are new, and say all rows. Of a view that there was before with the same columns, the
difference is told: mostly nothing, but for a view that is another query now, and for sums of doubles that were added in
another order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.durable.store import Store
from viewlet.program.trigger import Result
from viewlet.spark.driver.source import BATCH, WEIGHT, row_schema
from viewlet.spark.driver.types import named
from viewlet.spark.pipeline import Works
from viewlet.spark.process.snapshot import directory_of, write_parquet
from viewlet.spark.task.stage import Stage

PATHS = "path string"


def weighed(spark: SparkSession, result: Result, files: Sequence[str]) -> DataFrame:
    """A row is as often there as its weights say, bases and later changes together."""
    schema = T.StructType([T.StructField(WEIGHT, T.LongType(), False), *row_schema(result).fields])
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", True).parquet(*files)


def summed(rows: DataFrame, result: Result) -> DataFrame:
    """Equal rows together, those that come to nothing left out."""
    columns = [named(column.name) for column in result.columns]
    return rows.groupBy(*columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)


def differences(
    spark: SparkSession,
    works: Works,
    batch: int,
    results: Mapping[str, Result],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """View ↦ files of changes, as paths in the store; ``before`` and ``after`` are the files of its rows."""
    told = {}
    for view in before:
        gone = weighed(spark, results[view], before[view]).withColumn(WEIGHT, -F.col(WEIGHT))
        rows = summed(weighed(spark, results[view], after[view]).unionAll(gone), results[view])
        written = rows.coalesce(works.tasks).mapInArrow(_writer(works.run.store, view, batch), PATHS)
        told[view] = [row.path for row in written.collect()]
    return told


def _writer(store: str, view: str, batch: int) -> Stage:
    """Each task writes a file, and says its name. That of a task which Spark runs twice is named by nobody."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(given) if (given := [b for b in batches if b.num_rows]) else None
        if table is not None:
            numbered = table.add_column(0, BATCH, pa.repeat(pa.scalar(batch, pa.int64()), table.num_rows))
            path = f"changes/{directory_of(view)}/{batch}-told-{secrets.token_hex(8)}.parquet"
            sink = pa.BufferOutputStream()
            write_parquet(numbered, sink)
            Store(store).write(path, sink.getvalue())
            yield pa.RecordBatch.from_pydict({"path": [path]})

    return run
