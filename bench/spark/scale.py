"""The same micro-batches over ever more state: a sum for each of 10⁵ to 10⁷ keys."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.engine.answers import WrongAnswerError
from bench.engine.workload import SEED
from bench.spark.events import EventFiles, write_events
from bench.spark.machine import apart
from bench.spark.run import Stretch, maintained, spark_with

ROWS = 10_000  # to a micro-batch
CORES = 2
SCRIPT = """\
CREATE STREAM sales (item BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE MATERIALIZED VIEW totals AS SELECT item, sum(amount) AS total, count(*) AS n FROM sales GROUP BY item;
"""
AMOUNT = "id * 7919 % 1000"  # of the row that each key has from the beginning
REFEREE = f"""\
WITH sales AS (
  SELECT id AS item, {AMOUNT} AS amount, 1 AS op FROM range(?) keys(id)
  UNION ALL SELECT item, amount, op FROM read_parquet(?)),
right_ AS (
  SELECT item, CAST(sum(amount * op) AS BIGINT) AS total, CAST(sum(op) AS BIGINT) AS n
  FROM sales GROUP BY item HAVING sum(op) > 0),
ours AS (SELECT item, CAST(total AS BIGINT) AS total, CAST(n AS BIGINT) AS n FROM read_parquet(?))
SELECT (SELECT count(*) FROM right_), (SELECT count(*) FROM ours),
       (SELECT count(*) FROM (SELECT * FROM right_ EXCEPT ALL SELECT * FROM ours))
"""


@dataclass(frozen=True)
class Size:
    """What micro-batches took with so many groups of state."""

    groups: int
    state_bytes: int
    stretch: Stretch


def scale(groups: int, warm: int, batches: int, folder: Path) -> Size:
    """Half of a micro-batch's rows come, with keys at random, and those that came with the one before it go."""
    files = write_events(folder / f"sales-{groups}", _batches(groups, warm + batches))
    return apart(None, _measured, groups, files, warm, batches)


def _batches(groups: int, count: int) -> Iterator[dict[str, pa.Table]]:
    rng = np.random.default_rng(SEED)
    half = ROWS // 2
    before = pa.table({"item": pa.array([], pa.int64()), "amount": pa.array([], pa.int64())})
    for _ in range(count):
        came = pa.table({"item": rng.integers(0, groups, half), "amount": rng.integers(1, 1000, half)})
        ops = np.repeat(np.array([1, -1], np.int8), [len(came), len(before)])
        yield {"sales": pa.concat_tables([came, before]).append_column("op", pa.array(ops))}
        before = came


def _measured(groups: int, files: EventFiles, warm: int, batches: int) -> Size:
    with tempfile.TemporaryDirectory(dir=files.folder.parent) as scratch, spark_with(CORES) as spark:
        history = {"sales": _history(spark, groups)}
        with maintained(spark, SCRIPT, files, Path(scratch), cells=CORES, history=history) as (running, views):
            running.take(warm)
            stretch = running.take(batches)
            rows = _check(groups, files, views["totals"], Path(scratch, "totals"))
            return Size(groups, int(stretch.batches[-1].own["state_bytes"]), replace(stretch, answer_rows=rows))


def _history(spark: SparkSession, groups: int) -> DataFrame:
    return spark.range(groups).selectExpr("id AS item", f"{AMOUNT} AS amount")


def _check(groups: int, files: EventFiles, view: DataFrame, written: Path) -> int:
    """How many rows are right. Through files: ten million rows need not pass through this process."""
    view.write.parquet(str(written))
    given = [groups, f"{files.folder}/sales/*.parquet", f"{written}/*.parquet"]
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    right, ours, missing = connection.execute(REFEREE, given).fetchall()[0]
    if missing or right != ours or not right:
        raise WrongAnswerError(f"totals on Spark of {groups:,} keys: {ours:,} rows for {right:,}, {missing:,} missing")
    return int(ours)
