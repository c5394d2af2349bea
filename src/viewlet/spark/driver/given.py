"""What was loaded before a stream began, told by a few numbers: at a restart the same tables must be given again.

A fingerprint of a bag of rows is Σ op · h(row), for two hashes h, and Σ op. So neither their order matters, nor how
they are spread over partitions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from viewlet.cells.routing import Copy
from viewlet.errors import Error
from viewlet.spark.driver.route import OP, cell_rows
from viewlet.spark.job import Kept
from viewlet.spark.pipeline import Pipeline

Columns = Mapping[str, Collection[str]]
SEEDS = (1, 2)
WIDEST = "decimal(38,0)"


def fingerprints(pipeline: Pipeline, tables: Mapping[str, DataFrame], read: Columns | None = None) -> str:
    """Of what cells read of these tables, as JSON."""
    read = columns_read(pipeline.grid.copies) if read is None else read
    rows = [_summed(name, cell_rows(pipeline.relations[name], read[name], frame)) for name, frame in tables.items()]
    summed = reduce(DataFrame.unionAll, rows).collect() if rows else []
    return json.dumps({row[0]: " ".join(map(str, row[1:])) for row in summed})


def columns_read(copies: Iterable[Copy | Kept]) -> Columns:
    """Relation ↦ what cells read of it."""
    read: dict[str, set[str]] = {}
    for copy in copies:
        read.setdefault(copy.relation, set()).update(copy.columns)
    return read


def _summed(name: str, rows: DataFrame) -> DataFrame:
    weight = F.col(OP).cast(WIDEST)
    values = [
        part for c in rows.columns if c != OP for part in (F.col(c), F.col(c).isNull())
    ]  # NULL alone hashes to nothing
    sums = [_sum(weight)] + [_sum(weight * F.xxhash64(F.lit(seed), *values).cast("decimal(20,0)")) for seed in SEEDS]
    return rows.agg(F.lit(name), *sums)


def _sum(what: Column) -> Column:
    return F.coalesce(F.sum(what.cast(WIDEST)).cast("string"), F.lit("0"))


def differing(known: str, now: str, names: Iterable[str]) -> list[str]:
    """Those of these tables that have other rows now; "" knows of none."""
    before, given = (json.loads(text or "{}") for text in (known, now))
    return [name for name in names if name in before and given.get(name, before[name]) != before[name]]


def refuse_other_rows(checkpoint: str, streams: list[str]) -> None:
    """They were loaded once. Had they changed meanwhile, views would go on from the old rows, and nobody would know."""
    if streams:
        raise Error(
            f"{streams[0]} has other rows now than {checkpoint} was begun with, where it was loaded for good: give the "
            f"same rows, give a new checkpoint and let the sources replay, or make it a stream and give its changes"
        )
