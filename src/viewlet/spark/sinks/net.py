"""What a micro-batch of changes comes to, key by key: for sinks that hold a row of the view under each key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewlet.errors import Error
from viewlet.spark.sinks.order import BATCH, WEIGHT, column

CAME, WENT, GONE = "viewlet_came", "viewlet_went", "viewlet_gone"


def net_rows(label: str, changes: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """One row for each key that changed: the one that it has now or, where ``viewlet_gone`` is 1, had before.

    ``viewlet_went`` is 1 if it had one before. What came and went within the micro-batch is no change.
    """
    names = changes.drop(BATCH, WEIGHT).columns
    columns = [column(name) for name in names]
    sums = changes.groupBy(*columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    came, row = F.col(WEIGHT) > 0, F.struct(*columns).alias("row")
    keyed = sums.groupBy(*(column(name).alias(f"k{place}") for place, name in enumerate(key))).agg(
        F.coalesce(F.sum(F.when(came, F.col(WEIGHT))), F.lit(0)).alias(CAME),
        F.coalesce(F.sum(F.when(~came, -F.col(WEIGHT))), F.lit(0)).alias(WENT),
        F.coalesce(F.first(F.when(came, row), ignorenulls=True), F.first(row)).alias("row"),
    )
    several = F.lit(f"{label}: key=({', '.join(key)}) does not tell the view's rows apart")
    one = F.when((F.col(CAME) > 1) | (F.col(WENT) > 1), F.raise_error(several).cast("int"))
    gone = one.otherwise((F.col(CAME) == 0).cast("int"))
    held = [F.col("row").getField(name).alias(name) for name in names]
    return keyed.select(*held, F.col(WENT).cast("int").alias(WENT), gone.alias(GONE))


def check_key(label: str, changes: DataFrame, key: tuple[str, ...]) -> None:
    names = changes.drop(BATCH, WEIGHT).columns
    if not key:
        raise Error(f"{label} needs a key: name the columns that tell the view's rows apart, key=[…]")
    if unknown := [name for name in key if name not in names]:
        raise Error(f"key: the view has no column {unknown[0]}; it has {', '.join(names)}")
