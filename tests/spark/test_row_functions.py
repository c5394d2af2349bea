"""Derived columns on Spark: the tasks that read a source compute them, and cells are routed by them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.engines.test_row_functions import SCHEMA, VIEWS, events
from tests.oracle.oracle import difference
from tests.spark.harness import shown, write_streams

CHOSEN = ("parts", "joined", "plain")


def test_views_over_derived_columns_equal_the_referee_after_every_micro_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    selects = {name: VIEWS[name] for name in CHOSEN}
    views_text = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    case = Case(SCHEMA, views_text, selects, events(2, 60))
    streams = write_streams(case, tmp_path / "in", seed=5, longest=20)
    views = streams.maintain(spark, checkpoint=tmp_path / "checkpoint", cells=2)
    try:
        views.query.awaitTermination()
        for watch in streams.check(tmp_path / "checkpoint").values():
            watch.check()
        *_, last = streams.answers()
        for name, rows in last.items():
            assert difference(shown(views[name]), rows) is None, name
    finally:
        views.stop()
