"""Views with an order on Spark: the first rows after every micro-batch, and DataFrames in the view's order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.engines.test_order import SCHEMA, stream
from tests.oracle.ordered import OrderedQuery, line_difference
from tests.spark.harness import write_streams
from viewlet.errors import Error
from viewlet.spark.pipeline import pipeline_of

QUERIES = {
    "first": OrderedQuery("SELECT k, v, s FROM r", 3, "s DESC NULLS FIRST, v", "LIMIT 4"),
    "top_sums": OrderedQuery("SELECT k, sum(v) AS total FROM r GROUP BY k", 2, "total DESC", "LIMIT 2 OFFSET 1"),
    "all_groups": OrderedQuery("SELECT k, count(*) AS n, avg(d) AS a FROM r GROUP BY k", 3, "a DESC, n"),
}


def views(queries: dict[str, OrderedQuery]) -> str:
    return "".join(f"CREATE MATERIALIZED VIEW {name} AS {q.written};\n" for name, q in queries.items())


def test_the_first_rows_equal_the_referees_after_every_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(seed=7, length=120)[:120]
    case = Case(SCHEMA, views(QUERIES), {name: q.in_full for name, q in QUERIES.items()}, events)
    streams = write_streams(case, tmp_path / "in", seed=5, longest=40)
    maintained = streams.maintain(spark, checkpoint=tmp_path / "checkpoint", cells=2)
    try:
        maintained.query.awaitTermination()
        for vacuity in streams.check(tmp_path / "checkpoint").values():
            vacuity.check()
        oracle = case.referee()
        for event in case.events:
            oracle.apply(*event)
        for name, query in QUERIES.items():
            rows = [tuple(row) for row in maintained[name].collect()]
            assert line_difference(rows, query.rows(oracle)) is None, name
    finally:
        maintained.stop()


def test_the_first_rows_are_found_in_one_cell() -> None:
    cut = pipeline_of(SCHEMA + views(QUERIES), 2, "optimized", "sql")
    assert cut.grid.cells == 2
    assert cut.merge is not None
    assert {"first", "top_sums"} <= cut.merge.single
    assert cut.local == ("all_groups",)


def test_what_a_dataframe_cannot_be_ordered_by_is_refused() -> None:
    hidden = {"hidden": OrderedQuery("SELECT k FROM r", 1, "v")}
    with pytest.raises(Error, match="hidden is ordered by what it does not show"):
        pipeline_of(SCHEMA + views(hidden), 2, "optimized", "sql")
