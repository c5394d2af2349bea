"""What a change of the job would take over, and what it would build again, said beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from viewlet.compiler.strategy import StrategyName
from viewlet.durable.places import absolute
from viewlet.program.trigger import Result
from viewlet.schema import Dialect
from viewlet.spark.driver.arguments import check_script
from viewlet.spark.driver.change import same_columns, taken_over
from viewlet.spark.driver.cluster import on_cluster
from viewlet.spark.job import Job, Standing, standing_job
from viewlet.spark.pipeline import Pipeline, pipeline_of

SAME = "the script means the same: it goes on where it stopped, and nothing is built again"


def explain_change(
    spark: SparkSession,
    script: str,
    checkpoint: str,
    *,
    cells: int | None = None,
    strategy: StrategyName = "optimized",
    dialect: Dialect = "sql",
) -> str:
    """What :func:`maintain` with this script would make of a checkpoint: what it takes over, and what it builds again.

    Where the rows that are stored do not suffice, an error says so, as it would then. Nothing is changed.
    """
    check_script(script)
    standing: Standing | None = on_cluster(spark, partial(standing_job, absolute(checkpoint)))
    if standing is None:
        return "the checkpoint is new: all streams are read from their sources' beginning"
    before = standing.job
    asked = cells or before.cells
    pipeline = pipeline_of(script, asked, strategy, dialect, before.order, every_column=before.every_column)
    if pipeline.identity == before.identity:
        return SAME
    return "\n".join([*_streams(before, pipeline), *_views(before.results, pipeline), *_cells(before, pipeline)])


def _streams(before: Job, pipeline: Pipeline) -> Iterator[str]:
    taken = taken_over(before, pipeline)
    for copy in {c.relation: c for c in pipeline.grid.copies}.values():
        if copy.static:
            yield f"table {copy.relation}: loaded again"
        elif copy.relation in taken:
            yield f"stream {copy.relation}: its stored rows are taken over; its source goes on where it stopped"
        elif copy not in pipeline.clocks:
            yield f"stream {copy.relation}: new; its source is read from the beginning"
    read = {copy.relation for copy in pipeline.grid.copies}
    yield from (
        f"stream {name}: dropped" for name in dict.fromkeys(k.relation for k in before.kept) if name not in read
    )


def _views(before: dict[str, Result], pipeline: Pipeline) -> Iterator[str]:
    same = same_columns(before, pipeline.results)
    for name, result in pipeline.results.items():
        if name not in before:
            yield f"view {name}: new"
        elif name not in same:
            yield f"view {name}: other columns; its followers begin again"
        elif replace(before[name], sql="") == replace(result, sql=""):
            yield f"view {name}: as before"
        else:
            yield f"view {name}: another query; its followers are told how its rows differ"
    yield from (f"view {name}: dropped" for name in before if name not in pipeline.results)


def _cells(before: Job, pipeline: Pipeline) -> Iterator[str]:
    """Of the job before, the highest cell that has rows says how many there were."""
    old = 1 + max((cell for kept in before.kept for cell in kept.cells), default=0)
    new = pipeline.grid.cells
    count = f"{new} cells" if new > 1 else "the one cell"
    yield f"{count} filled from the stored rows of {old}, in a batch of its own"
