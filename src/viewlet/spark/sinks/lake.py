"""A view as a table of Delta Lake or Iceberg: each micro-batch is one MERGE by key, and one version of the table.

A version says beside its files which micro-batch it has, so both appear at once, or neither does. A micro-batch without
a change of the view makes no version; then a property of the table says it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.spark.sinks.net import GONE, WENT, check_key, net_rows
from viewlet.spark.sinks.order import BATCH, WEIGHT, Held, is_held, last_batch, with_own_names

NOTE = "viewlet.held"
MISSING = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException", "CATALOG_NOT_FOUND", "Failed to find", "not found in")

NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND", "is not a Delta table", "DELTA_TABLE_NOT_FOUND")


class Format(Protocol):
    """What the two say in words of their own."""

    name: str
    package: str

    def create(self, rows: DataFrame, table: str) -> None:
        """The table, without rows."""

    def noting(self, note: str) -> Mapping[str, str]:
        """Settings with which a statement's version has the note."""

    def notes(self, spark: SparkSession, table: str) -> Iterator[str]:
        """Those of the versions, the newest first."""

    def quoted(self, table: str) -> str:
        """As SQL names it."""


class Delta:
    """The note is the user's text of a commit."""

    name, package = "Delta Lake", "io.delta:delta-spark_2.13"

    def create(self, rows: DataFrame, table: str) -> None:
        writer = rows.write.format("delta")
        writer.save(table) if _is_path(table) else writer.saveAsTable(table)

    def noting(self, note: str) -> Mapping[str, str]:
        return {"spark.databricks.delta.commitInfo.userMetadata": note}

    def notes(self, spark: SparkSession, table: str) -> Iterator[str]:
        history = spark.sql(f"DESCRIBE HISTORY {self.quoted(table)}").where(F.col("userMetadata").isNotNull())
        newest = history.orderBy(F.col("version").desc()).select("userMetadata").limit(1)
        yield from (row[0] for row in newest.collect())

    def quoted(self, table: str) -> str:
        return f"delta.`{table}`" if _is_path(table) else table


class Iceberg:
    """The note is a property of a snapshot."""

    name, package = "Iceberg", "org.apache.iceberg:iceberg-spark-runtime-…_2.13"

    def create(self, rows: DataFrame, table: str) -> None:
        rows.writeTo(table).using("iceberg").create()

    def noting(self, note: str) -> Mapping[str, str]:
        return {f"spark.sql.iceberg.snapshot-property.{NOTE}": note}

    def notes(self, spark: SparkSession, table: str) -> Iterator[str]:
        spark.catalog.refreshTable(table)  # another session may have written since
        snapshots = spark.table(f"{table}.snapshots").orderBy(F.col("committed_at").desc())
        held = snapshots.select(F.col("summary")[NOTE].alias("note")).where(F.col("note").isNotNull()).limit(1)
        yield from (row[0] for row in held.collect())

    def quoted(self, table: str) -> str:
        return table


@dataclass(frozen=True)
class Lake:
    """The function that ``foreachBatch`` calls, made by :func:`viewlet.spark.sinks.delta` and ``iceberg``."""

    format: Format
    table: str
    key: tuple[str, ...]

    def __call__(self, changes: DataFrame, micro_batch: int) -> None:
        changes = with_own_names(changes)
        check_key(self._label, changes, self.key)
        spark = changes.sparkSession
        with self._errors(micro_batch):
            held = self._held(spark, changes)
            if is_held(self._label, held, micro_batch, changes):
                return
            self._take(spark, changes, micro_batch)

    @property
    def _label(self) -> str:
        return f"table {self.table}"

    def _held(self, spark: SparkSession, changes: DataFrame) -> Held | None:
        """The larger of what the newest version says, and what the table does."""
        table = self.format.quoted(self.table)
        if not self._is_there(spark):
            self.format.create(changes.drop(BATCH, WEIGHT).limit(0), self.table)
        properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
        notes = [*([properties[NOTE]] if NOTE in properties else []), *self.format.notes(spark, self.table)]
        held = [Held(**json.loads(note)) for note in notes if _is_ours(note)]
        if not held and spark.table(table).limit(1).collect():
            raise Error(f"{self._label} holds rows that no sink wrote: empty it, or name another table")
        return max(held, key=lambda one: one.micro_batch, default=None)

    def _is_there(self, spark: SparkSession) -> bool:
        try:
            spark.table(self.format.quoted(self.table)).schema  # noqa: B018
        except PySparkException as error:
            if (
                "TABLE_OR_VIEW_NOT_FOUND" in str(error)
                or "PATH_NOT_FOUND" in str(error)
                or "is not a Delta" in str(error)
            ):
                return False
            raise
        return True

    def _take(self, spark: SparkSession, changes: DataFrame, micro_batch: int) -> None:
        note = json.dumps(asdict(Held(micro_batch, last_batch(changes))))
        net = net_rows(self._label, changes, self.key).persist()
        try:
            if net.count():
                self._merge(spark, net, changes.drop(BATCH, WEIGHT).schema, note)
            else:
                table = self.format.quoted(self.table)
                spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{NOTE}' = '{note}')")
        finally:
            net.unpersist()

    def _merge(self, spark: SparkSession, net: DataFrame, schema: T.StructType, note: str) -> None:
        view = f"viewlet_net_{abs(hash((self.table, note)))}"
        net.createOrReplaceTempView(view)
        before = {setting: spark.conf.get(setting, None) for setting in self.format.noting(note)}
        try:
            for setting, value in self.format.noting(note).items():
                spark.conf.set(setting, value)
            spark.sql(_merge_of(self._label, self.format.quoted(self.table), view, schema, self.key))
        finally:
            spark.catalog.dropTempView(view)
            for setting, earlier in before.items():
                spark.conf.unset(setting) if earlier is None else spark.conf.set(setting, earlier)

    @contextmanager
    def _errors(self, micro_batch: int) -> Iterator[None]:
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            said = _reason(str(error))
            if any(sign in said for sign in MISSING):
                what = f"{self._label}: Spark has no {self.format.name} here, or no catalog of that name: start it "
                raise Error(f"{what}with --packages {self.format.package}:…, as docs/spark.md says. {said}") from error
            raise Error(
                f"{self._label}, micro-batch {micro_batch}: {said}\nNothing of it was written; the stream repeats it "
                f"when it is started again"
            ) from error


def _merge_of(label: str, table: str, net: str, schema: T.StructType, key: tuple[str, ...]) -> str:
    """A row that the table should have and has not, or has and should not, ends the statement: nothing is written.

    It does so as a value, since Delta works out the conditions of all clauses for each row.
    """
    why = (
        f"{label} does not hold what the view did: somebody else wrote to it, or the stream does not begin with the "
        f"view's first change. To fill it again, drop it and start a new stream"
    ).replace("'", "\\'")
    names = [_quoted(field.name) for field in schema]
    same = " AND ".join(f"t.{_quoted(name)} <=> n.{_quoted(name)}" for name in key)
    columns, values = ", ".join(names), ", ".join(f"n.{name}" for name in names)
    refused = [f"CAST(raise_error('{why}') AS {field.dataType.simpleString()})" for field in schema]
    changed = ", ".join(f"t.{name} = n.{name}" for name in names)
    not_changed = ", ".join(f"t.{name} = {value}" for name, value in zip(names, refused, strict=True))
    return (
        f"MERGE INTO {table} t USING {net} n ON {same} "
        f"WHEN MATCHED AND n.{WENT} = 0 THEN UPDATE SET {not_changed} "
        f"WHEN MATCHED AND n.{GONE} = 1 THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {changed} "
        f"WHEN NOT MATCHED AND n.{WENT} = 1 THEN INSERT ({columns}) VALUES ({', '.join(refused)}) "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _reason(text: str) -> str:
    """What Spark was told to raise, deep in what it says; else its first line."""
    raised = re.search(r"USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", text, re.MULTILINE)
    return raised[1] if raised else next((line for line in text.splitlines() if line.strip()), "")


def _is_path(table: str) -> bool:
    return "/" in table


def _is_ours(note: str) -> bool:
    """Others may write notes of theirs, as with OPTIMIZE."""
    try:
        return set(json.loads(note)) == {"micro_batch", "last_batch"}
    except (ValueError, TypeError):
        return False
