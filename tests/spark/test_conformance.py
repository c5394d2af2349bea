"""The paper's twelve queries on Spark, in several grids and batch sizes: equal to DuckDB after every micro-batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.engines.test_conformance import paper_case
from tests.oracle.oracle import difference
from tests.spark.harness import shown, write_streams
from viewlet.workloads.queries import PAPER_QUERIES

EVENTS = {"q18": 700}  # large orders are rare
# by query: how many cells, the longest micro-batch, and the dialect; a query with no legal dimension stays whole
GRIDS = {
    "vwap": (2, 60, "sql"),
    "mst": (2, 80, "paper"),
    "psp": (2, 60, "paper"),
    "axf": (3, 40, "sql"),
    "bsp": (4, 80, "paper"),
    "bsv": (4, 30, "sql"),
    "q3": (4, 50, "sql"),
    "q11": (2, 80, "paper"),
    "q17": (3, 60, "sql"),
    "q18": (4, 200, "sql"),
    "q22": (3, 60, "paper"),
    "ssb4": (2, 120, "sql"),
}
# In make test: whole in one cell, cut by one dimension and by two, nested, summed across cells. Clusters have others.
ALWAYS = ("mst", "bsv", "q3", "q18", "q22", "ssb4")


def final_rows_agree(case: Case, views: object, expected: dict[str, list[tuple[object, ...]]]) -> None:
    for view, rows in expected.items():
        assert difference(shown(views[view]), rows) is None, view  # type: ignore[index]


@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_a_paper_query_equals_the_referee_after_every_micro_batch(
    spark: SparkSession, tmp_path: Path, name: str, soaking: bool
) -> None:
    if name not in ALWAYS and not soaking:
        pytest.skip("make soak runs it")
    cells, longest, dialect = GRIDS[name]
    case = paper_case(name, dialect, seed=11, events=EVENTS.get(name, 300))  # type: ignore[arg-type]
    streams = write_streams(case, tmp_path / "in", seed=5, longest=longest)
    views = streams.maintain(spark, checkpoint=tmp_path / "checkpoint", cells=cells)
    try:
        views.query.awaitTermination()
        streams.check(tmp_path / "checkpoint")[name].check()
        *_, last = streams.answers()
        final_rows_agree(case, views, last)
    finally:
        views.stop()
