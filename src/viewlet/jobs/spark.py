"""A job's rows as Spark's DataFrames: streaming ones for streams, static ones for tables."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.jobs.source import Files, OrderBook, Source, Tpch
from viewlet.schema import Relation
from viewlet.spark.cluster import on_cluster
from viewlet.spark.route import OP, spark_type
from viewlet.spark.store import Store
from viewlet.workloads import event_files

_COMPLETE = "_SUCCESS"  # what Spark leaves in a directory that is written


class Frames:
    """``scratch`` is where events are generated whose sources do not say. Executors must reach it, and a run that goes
    on from a checkpoint must find it again: other files would be other rows."""

    def __init__(
        self, spark: SparkSession, relations: Iterable[Relation], sources: Mapping[str, Source], scratch: str
    ) -> None:
        self._spark, self._scratch = spark, scratch
        self._relations = {r.name: r for r in relations}
        self._files = {name: self._written(sources[name], name) for name in self._relations}

    def sources(self) -> dict[str, DataFrame]:
        return {
            name: self._read(r, self._files[name]) if r.static else self._stream(r, self._files[name])
            for name, r in self._relations.items()
        }

    def batch_count(self) -> int:
        """How many micro-batches it takes to read what is there now."""
        streams = [(r, self._files[name]) for name, r in self._relations.items() if not r.static]
        return max((-(-len(self._read(r, f).inputFiles()) // f.files_per_batch) for r, f in streams), default=0)

    def live_rows(self) -> dict[str, DataFrame]:
        """By relation: the rows that are there at the end, and in ``op`` how often."""
        found = {}
        for name, relation in self._relations.items():
            columns = [F.col(c.name) for c in relation.columns]
            rows = self._read(relation, self._files[name])
            rows = rows if OP in rows.columns else rows.withColumn(OP, F.lit(1))
            found[name] = rows.groupBy(*columns).agg(F.sum(OP).alias(OP)).where(F.col(OP) != 0)
        return found

    # -- where they are ------------------------------------------------------------------------------------------------

    def _written(self, source: Source, relation: str) -> Files:
        if isinstance(source, Files):
            return source
        name = hashlib.sha256(repr(source).encode()).hexdigest()[:16]  # one for all relations of a stream
        path = _reachable(f"{source.path or self._scratch}/{type(source).__name__.lower()}-{name}")
        if not on_cluster(self._spark, lambda: _COMPLETE in Store(path).names("")):
            _generate(self._spark, path, source)
            on_cluster(self._spark, lambda: Store(path).write(_COMPLETE, b""))
        return Files("parquet", f"{path}/{relation}")

    # -- reading them --------------------------------------------------------------------------------------------------

    def _read(self, relation: Relation, files: Files) -> DataFrame:
        return (
            self._spark.read.schema(self._schema(relation, files))
            .options(**_options(files))
            .load(_reachable(files.path), format=files.format)
        )

    def _stream(self, relation: Relation, files: Files) -> DataFrame:
        reader = self._spark.readStream.schema(self._schema(relation, files)).options(**_options(files))
        reader = reader.option("maxFilesPerTrigger", files.files_per_batch)
        return reader.load(_reachable(files.path), format=files.format)

    def _schema(self, relation: Relation, files: Files) -> T.StructType:
        """The columns of the files in their order; a CSV file does not say of which types they are."""
        found = self._spark.read.options(**_options(files)).load(_reachable(files.path), format=files.format)
        if files.format == "parquet":
            return found.schema
        declared = {c.name: spark_type(c.type) for c in relation.columns} | {OP: T.LongType()}
        return T.StructType([T.StructField(n, declared.get(n.lower(), T.StringType())) for n in found.columns])


def _generate(spark: SparkSession, path: str, source: OrderBook | Tpch) -> None:
    same = {"seed": source.seed, "live": source.live, "events_per_file": source.events_per_batch}
    match source:
        case OrderBook():
            event_files.order_book(spark, path, source.events, brokers=source.brokers, **same)
        case Tpch():
            event_files.tpch(spark, path, source.events, scale=source.scale, **same)


def _options(files: Files) -> dict[str, str]:
    return {"header": "true", "mode": "FAILFAST"} if files.format == "csv" else {}


def _reachable(path: str) -> str:
    return path if ":" in path else os.path.abspath(path)
