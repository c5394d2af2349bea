"""Rows that no cell could take, told by looking at the row alone: they become dead letters, where a job keeps any.

A row that is wrong only beside others, a delete of what is not there, is found by the cells (``process/taking.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.engines.native.engine import MOST_COPIES
from viewlet.schema import Relation
from viewlet.spark.driver.types import misfit


def why_not(relation: Relation, columns: Collection[str], given: Mapping[str, T.DataType], op: Column | None) -> Column:
    """The first reason why a row cannot be taken; NULL if it can. ``columns`` are those that cells read."""
    reasons = [F.lit(None).cast("string")]
    if op is not None:
        is_count = F.coalesce(op.between(-MOST_COPIES, MOST_COPIES), F.lit(False))
        reasons.append(F.when(~is_count, F.lit("op is not a number of times that the row comes or goes")))
    for column in (c for c in relation.given if c.name in columns):
        value = F.col(f"`{column.name}`")
        if not column.nullable:
            reasons.append(F.when(value.isNull(), F.lit(f"{column.name} is NULL")))
        if (wrong := misfit(column.type, given[column.name], value)) is not None:
            reasons.append(F.when(wrong, F.lit(f"{column.name} does not fit {column.type}")))
    return reduce(lambda first, other: F.coalesce(first, other), reasons)


def letter(relation: Relation, why: Column, source: DataFrame) -> Column:
    """What is kept of such a row: of which relation it is, why it is dead, and the row as JSON."""
    row = F.to_json(F.struct(*(F.col(f"`{name}`") for name in source.columns)), {"ignoreNullFields": "false"})
    return F.to_json(F.struct(F.lit(relation.name).alias("relation"), why.alias("reason"), row.alias("row")))
