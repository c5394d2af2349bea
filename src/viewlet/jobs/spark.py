"""A job's rows as Spark's DataFrames: streaming ones for streams, static ones for tables."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from viewlet.errors import Error

try:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
    from pyspark.sql.streaming.readwriter import DataStreamReader
except ImportError as missing:
    raise Error("a job on Spark needs PySpark: pip install 'viewlet[spark]'") from missing

from viewlet.durable.store import Store
from viewlet.jobs.file import read, with_op
from viewlet.jobs.heads import Head, check_heads, heads_of
from viewlet.jobs.source import Files, OrderBook, Source, Tpch
from viewlet.schema import Relation
from viewlet.spark.driver.cluster import on_cluster
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.types import arrow_schema, spark_type
from viewlet.workloads import event_files

_COMPLETE = "_SUCCESS"  # what Spark leaves in a directory that is written
_WHOLE_FILES = "path string, modificationTime timestamp, length long, content binary"  # of Spark's binaryFile


class Frames:
    """``scratch`` is where events are generated whose sources do not say. Executors must reach it, and a run that goes
    on from a checkpoint must find it again: other files would be other rows."""

    def __init__(
        self, spark: SparkSession, relations: Iterable[Relation], sources: Mapping[str, Source], scratch: str
    ) -> None:
        self._spark, self._scratch = spark, scratch
        self._relations = {r.name: r for r in relations}
        self._files = {name: self._written(sources[name], name) for name in self._relations}
        given = {name: source for name, source in sources.items() if isinstance(source, Files)}
        self._heads = {name: self._checked(self._relations[name], source) for name, source in given.items()}

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
        live = {}
        for name, relation in self._relations.items():
            columns = [F.col(c.name) for c in relation.given]
            rows = self._read(relation, self._files[name])
            rows = rows if OP in map(str.lower, rows.columns) else rows.withColumn(OP, F.lit(1))
            live[name] = rows.groupBy(*columns).agg(F.sum(OP).alias(OP)).where(F.col(OP) != 0)
        return live

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

    def _checked(self, relation: Relation, files: Files) -> list[Head]:
        """Before the first row is read; of CSV, files are checked when they are parsed."""
        path = _reachable(files.path)
        try:
            inputs = self._spark.read.load(path, format="binaryFile").inputFiles()
        except AnalysisException:
            inputs = []
        if not inputs:
            raise Error(f"{relation.name}: there is no file {files.path}")
        heads = heads_of(self._spark, path) if files.format == "parquet" else []
        check_heads(relation, heads)
        return heads

    # -- reading them --------------------------------------------------------------------------------------------------

    def _read(self, relation: Relation, files: Files) -> DataFrame:
        return self._rows(relation, files, self._spark.read)

    def _stream(self, relation: Relation, files: Files) -> DataFrame:
        reader = self._spark.readStream.option("maxFilesPerTrigger", files.files_per_batch)
        return self._rows(relation, files, reader)

    def _rows(self, relation: Relation, files: Files, reader: DataFrameReader | DataStreamReader) -> DataFrame:
        path = _reachable(files.path)
        if files.format == "csv":
            whole = reader.schema(_WHOLE_FILES).load(path, format="binaryFile")
            return whole.mapInArrow(_parsed(relation, files), _declared(relation))
        schema, without_op = self._columns(relation, path)
        rows = reader.schema(schema).load(path, format="parquet")
        comes = F.col("_metadata.file_path").isin(without_op)
        return rows.withColumn(OP, F.when(comes, F.lit(1)).otherwise(F.col(OP))) if without_op else rows

    def _columns(self, relation: Relation, path: str) -> tuple[T.StructType, list[str]]:
        """Those of the files, and the files without ``op`` where others have it: their rows come, as everywhere."""
        schema = self._spark.read.load(path, format="parquet").schema
        heads = self._heads.get(relation.name, [])
        without_op = [head.uri for head in heads if head.type_of(OP) is None]
        if len(without_op) == len(heads):
            return schema, []
        has_op = OP in (name.lower() for name in schema.names)
        return schema if has_op else schema.add(OP, T.LongType()), without_op


@contextmanager
def clear_errors() -> Iterator[None]:
    """Our own words instead of Spark's account of them."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise Error(reason(str(error))) from error


def reason(failure: str) -> str:
    """What our own code said in the middle of Spark's account of it, if it did: in Python or by ``raise_error``."""
    said = re.findall(r"^viewlet\.[\w.]+: (.+)$", failure, re.MULTILINE)
    said = said or re.findall(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE: \w+)?$", failure, re.MULTILINE)
    return said[-1] if said else failure


Parse = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _parsed(relation: Relation, files: Files) -> Parse:
    """CSV as :mod:`viewlet.jobs.file` reads it: Spark's own reader goes by position, rounds, and forgives."""

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
                for piece in read(relation, files, path.as_py(), content.as_buffer()):
                    yield from with_op(piece).cast(arrow_schema(_declared(relation))).to_batches()

    return parse


def _declared(relation: Relation) -> T.StructType:
    fields = [T.StructField(c.name, spark_type(c.type)) for c in relation.given]
    return T.StructType([*fields, T.StructField(OP, T.LongType())])


def _generate(spark: SparkSession, path: str, source: OrderBook | Tpch) -> None:
    same = {"seed": source.seed, "live": source.live, "events_per_file": source.events_per_batch}
    match source:
        case OrderBook():
            event_files.order_book(spark, path, source.events, brokers=source.brokers, **same)
        case Tpch():
            event_files.tpch(spark, path, source.events, scale=source.scale, **same)


def _reachable(path: str) -> str:
    return path if ":" in path else os.path.abspath(path)
