"""A job of functions: what it is as SQL, and mistakes. docs/spark.md runs one."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import viewlet
from viewlet.errors import Error
from viewlet.schema import Relation
from viewlet.spark import Declarative
from viewlet.spark.driver.route import check_source

EVERY = """a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(12,3), i string, j binary,
  k date, l time(6), m timestamp, n timestamp_ntz, o interval day to second, op int"""


def relations(script: str) -> dict[str, Relation]:
    return {relation.name: relation for relation in viewlet.compile(script).relations}


def test_columns_are_declared_as_the_source_has_them(spark: SparkSession) -> None:
    job = Declarative()

    @job.table
    def every() -> DataFrame:
        return spark.createDataFrame([], EVERY)

    @job.stream("k INTEGER NOT NULL, v VARCHAR")
    def some() -> DataFrame:
        raise AssertionError("nobody needs to look")

    @job.materialized_view
    def seen() -> str:
        return "SELECT e.k, count(*) AS n FROM every e, some s WHERE s.k = e.d GROUP BY e.k;"

    made = relations(job.script())
    check_source(made["every"], every())
    assert [(c.name, str(c.type)) for c in made["some"].columns] == [("k", "INTEGER"), ("v", "VARCHAR")]
    assert made["every"].static > made["some"].static
    assert len(made["every"].columns) == 15, "op is no column"


def test_null_is_where_the_source_has_it(spark: SparkSession) -> None:
    job = Declarative()

    @job.stream
    def numbers() -> DataFrame:
        return spark.range(3).selectExpr("id", "nullif(id, 1) AS `some name`")

    @job.materialized_view
    def counted() -> str:
        return "SELECT id, count(*) AS n FROM numbers GROUP BY id"

    columns = relations(job.script())["numbers"].columns
    assert [(c.name, c.nullable) for c in columns] == [("id", False), ("some name", True)]


def test_mistakes_are_named(spark: SparkSession) -> None:
    job = Declarative()

    @job.stream
    def lists() -> DataFrame:
        return spark.createDataFrame([], "xs array<int>")

    with pytest.raises(Error, match=r"lists\.xs is array<int>, which no column of a stream can be"):
        job.script()
    with pytest.raises(Error, match="lists is declared already"):
        job.materialized_view(lists)  # type: ignore[arg-type]
    with pytest.raises(Error, match="<lambda> takes arguments"):
        job.stream(lambda spark: spark)
    other = Declarative()
    other.materialized_view(lists)  # type: ignore[arg-type]
    with pytest.raises(Error, match="lists returns a DataFrame: the function of a view returns its SELECT"):
        other.script()
