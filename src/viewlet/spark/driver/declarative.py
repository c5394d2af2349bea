"""A job declared function by function, as in Spark's own pipelines: streams, tables and views, by decorators."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.spark.driver.maintain import maintain
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.views import Views

Source = Callable[[], DataFrame]
Select = Callable[[], str]

_SQL: dict[type[T.DataType], str] = {
    T.BooleanType: "BOOLEAN",
    T.ByteType: "TINYINT",
    T.ShortType: "SMALLINT",
    T.IntegerType: "INTEGER",
    T.LongType: "BIGINT",
    T.FloatType: "REAL",
    T.DoubleType: "DOUBLE",
    T.StringType: "VARCHAR",
    T.BinaryType: "BLOB",
    T.DateType: "DATE",
    T.TimeType: "TIME",
    T.TimestampType: "TIMESTAMPTZ",
    T.TimestampNTZType: "TIMESTAMP",
    T.DayTimeIntervalType: "INTERVAL",
}


class Declarative:
    """Streams, tables and views of one job, each a function with a decorator; its name is theirs.

    A function of a stream or table returns a DataFrame. Its columns are declared as the DataFrame has them, but for
    ``op``; ``@job.stream("id BIGINT NOT NULL, …")`` declares them in SQL instead. A function of a view returns its
    SELECT. ``maintain`` starts the job.
    """

    def __init__(self) -> None:
        self._sources: dict[str, tuple[str, Source, str | None]] = {}
        self._views: dict[str, Select] = {}

    def stream(self, columns: str | Source) -> Any:
        """``@job.stream`` or ``@job.stream("id BIGINT NOT NULL, …")``: a streaming DataFrame."""
        return self._source("STREAM", columns)

    def table(self, columns: str | Source) -> Any:
        """``@job.table`` or ``@job.table("id BIGINT NOT NULL, …")``: a static DataFrame, loaded once."""
        return self._source("TABLE", columns)

    def materialized_view(self, select: Select) -> Select:
        """``@job.materialized_view``: the function returns the view's SELECT."""
        self._views[self._free(select)] = select
        return select

    def script(self) -> str:
        """The job as SQL. Functions of streams and tables whose columns are not declared are called."""
        frames = {name: source() for name, (_, source, columns) in self._sources.items() if columns is None}
        return self._script(frames)

    def maintain(self, spark: SparkSession, checkpoint: str | None = None, **options: Any) -> Views:
        """Start it: :func:`viewlet.spark.maintain` with the job's script and sources, and other arguments of its."""
        frames = {name: source() for name, (_, source, _) in self._sources.items()}
        return maintain(spark, self._script(frames), frames, checkpoint, **options)

    # -- what was declared ---------------------------------------------------------------------------------------------

    def _source(self, kind: str, given: str | Source) -> Any:
        def declared(source: Source, columns: str | None) -> Source:
            self._sources[self._free(source)] = kind, source, columns
            return source

        if callable(given):
            return declared(given, None)
        return lambda source: declared(source, given)

    def _free(self, function: Callable[[], Any]) -> str:
        name = function.__name__
        if inspect.signature(function).parameters:
            raise Error(f"{name} takes arguments: a function that declares a stream, table or view is called without")
        if name in self._sources or name in self._views:
            raise Error(f"{name} is declared already: each stream, table and view of a job has a name of its own")
        return name

    def _script(self, frames: dict[str, DataFrame]) -> str:
        lines = [
            f"CREATE {kind} {_named(name)} ({columns or _columns(name, frames[name])});"
            for name, (kind, _, columns) in self._sources.items()
        ]
        lines += [f"CREATE MATERIALIZED VIEW {_named(name)} AS\n{_select(name, f)};" for name, f in self._views.items()]
        return "\n".join(lines)


def _columns(relation: str, frame: DataFrame) -> str:
    return ", ".join(
        f"{_named(field.name)} {_type(relation, field)}{'' if field.nullable else ' NOT NULL'}"
        for field in frame.schema.fields
        if field.name != OP
    )


def _type(relation: str, field: T.StructField) -> str:
    if isinstance(field.dataType, T.DecimalType):
        return f"DECIMAL({field.dataType.precision}, {field.dataType.scale})"
    if (known := _SQL.get(type(field.dataType))) is None:
        raise Error(
            f"{relation}.{field.name} is {field.dataType.simpleString()}, which no column of a stream can be: select "
            f"its parts, or explode it"
        )
    return known


def _select(name: str, function: Select) -> str:
    text = function()
    if not isinstance(text, str):
        raise Error(f"{name} returns a {type(text).__name__}: the function of a view returns its SELECT, as a str")
    return text.strip().removesuffix(";")


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
