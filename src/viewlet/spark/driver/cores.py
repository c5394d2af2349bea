"""What Spark runs on, as far as it says: this machine alone or a cluster, and how many tasks it runs at once."""

from __future__ import annotations

import time

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

UNKNOWN = 4  # cells, where Spark does not say how many cores it has
LOOK, STEADY, PATIENCE = 0.1, 2.0, 15.0  # seconds


def context_of(spark: SparkSession) -> SparkContext | None:
    """None for a session of Spark Connect."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def is_local(spark: SparkSession) -> bool:
    """Spark is all on this machine: nobody else need reach the cells, and no cores will join later."""
    context = context_of(spark)
    return context is not None and (context.master or "").startswith("local")


def cores(spark: SparkSession) -> int:
    """How many tasks Spark runs at once. Executors that it was told to start count before they are there."""
    context = context_of(spark)
    if context is None:
        return UNKNOWN
    return max(context.defaultParallelism, 0 if is_local(spark) else _told(context))


def default_cells(spark: SparkSession) -> int:
    """As many as there are cores when the checkpoint is new, which then notes the number.

    A cluster that was not told how many there are to be is looked at until it has not grown for two seconds: executors
    register one after the other.
    """
    context = context_of(spark)
    if context is None or is_local(spark) or _told(context):
        return cores(spark)
    there, since, end = 0, time.monotonic(), time.monotonic() + PATIENCE
    while (now := time.monotonic()) < min(end, since + STEADY):
        if context.defaultParallelism != there:
            there, since = context.defaultParallelism, now
        time.sleep(LOOK)
    return there


def _told(context: SparkContext) -> int:
    """0 where nothing says how many executors there are to be at most."""
    conf = context.getConf()
    each = int(conf.get("spark.executor.cores", "1"))
    dynamic = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    executors = int(conf.get("spark.executor.instances", "0"))
    if dynamic and (most := conf.get("spark.dynamicAllocation.maxExecutors", "")).isdigit():
        executors = max(executors, int(most))
    return max(executors * each, int(conf.get("spark.cores.max", "0")))
