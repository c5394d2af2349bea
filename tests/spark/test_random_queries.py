"""Random queries over random streams, cut into cells on Spark: equal to DuckDB after every micro-batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from pyspark.sql import SparkSession

from tests.engines.conformance import Case
from tests.engines.random_sql import cases
from tests.engines.test_random_queries import is_vacuous
from tests.spark.harness import write_streams
from viewlet.spark.pipeline import pipeline_of

QUERIES, SUMMED = 2, 1  # so many in all, and so many of them summed across cells; three times as many in make soak


def test_random_queries_in_several_cells_equal_the_referee(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, soaking: bool
) -> None:
    seen: list[str] = []
    times = 3 if soaking else 1

    @settings(max_examples=200, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(cases())
    def draw(case: Case) -> None:
        assume(len(seen) < times * QUERIES and case.views not in seen)
        pipeline = pipeline_of(case.schema + case.views, 3, "optimized", case.dialect)
        assume(pipeline.grid.cells > 1 and (pipeline.merge is not None or len(seen) >= times * SUMMED))
        answers = list(case.answers())
        assume(not all(is_vacuous([answer[view] for answer in answers]) for view in case.selects))
        seen.append(case.views)
        run(spark, case, tmp_path_factory.mktemp("random"))

    draw()
    assert len(seen) == times * QUERIES


def run(spark: SparkSession, case: Case, folder: Path) -> None:
    streams = write_streams(case, folder / "in", seed=len(case.views), longest=8)
    views = streams.maintain(spark, checkpoint=folder / "checkpoint", cells=3)
    try:
        views.query.awaitTermination()
        streams.check(folder / "checkpoint")
    finally:
        views.stop()
