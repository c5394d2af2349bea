"""``spark.read.format("viewlet")``: the views of a checkpoint, from any session of Spark's that reaches its files.

The query that maintains them need not run, nor be known. A DataFrame is of the batch that was the last committed one
when it was loaded, however often it is used. A stream counts in batches: its offset is the first batch that it has
not read, so a follower that comes too late for a batch learns that, and misses none.

Each part of this runs in a Python worker of Spark's: a DataSource where a query is planned, its readers' ``read``
where tasks run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from viewlet.durable.chain import File
from viewlet.durable.places import absolute
from viewlet.durable.published import published, published_batches
from viewlet.durable.store import Store
from viewlet.durable.taken_back import times_taken_back
from viewlet.errors import Error
from viewlet.program.trigger import Result
from viewlet.spark.driver.cluster import last_committed, on_cluster, state_of
from viewlet.spark.driver.types import arrow_schema, spark_type
from viewlet.spark.job import known_job

FORMAT = "viewlet"
TAKEN = "DATA_SOURCE_ALREADY_EXISTS"  # says Spark
BATCH, WEIGHT = "batch", "weight"
BACK = "back"  # in offsets of followers
FIRST = -2  # the batch of static tables: nothing is before it
FILES_TO_A_TASK = 32  # of changes, which are small
YES, NO = ("true", "1", "yes"), ("false", "0", "no")


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("viewlet")`` and ``spark.readStream.format("viewlet")`` known to a session.

    ``spark.read.format("viewlet").option("checkpoint", "…").load("v")`` is the view v of a checkpoint that
    :func:`maintain` keeps, as of the last committed batch. ``option("batch", 7)`` says of which batch instead.
    ``spark.readStream`` with ``option("changes", True)`` is the stream of its changes, as ``views.changes("v")``
    gives it; ``option("since", 7)`` leaves out the batches before.
    """
    if spark in _registered:  # Spark warns of a format that it is told of twice
        return
    try:
        spark.dataSource.register(ViewSource)
    except AnalysisException as error:
        if TAKEN not in str(error):
            raise
        _register_while_active(spark)
    _registered.add(spark)


_registered: WeakSet[SparkSession] = WeakSet()


def _register_while_active(spark: SparkSession) -> None:
    """Spark looks whether the name is taken in the active session, whichever one is told of it."""
    before = SparkSession.getActiveSession()
    spark.createDataFrame([], "nothing int")  # makes it the active one
    spark.dataSource.register(ViewSource)
    if before is not None:
        before.createDataFrame([], "nothing int")


def tables(spark: SparkSession, checkpoint: str, batch: int | None = None) -> list[str]:
    """Make each view of a checkpoint a temporary view of the session, for its SQL. The answer has their names.

    All are as of one batch: ``batch``, or the last committed one. Call again for a later one.
    """
    register(spark)
    place = absolute(checkpoint)
    names, last = on_cluster(spark, partial(_names_and_last, place))
    for name in names:
        reader = spark.read.format(FORMAT).option("checkpoint", place).option(BATCH, last if batch is None else batch)
        reader.load(name).createOrReplaceTempView(f"`{name.replace('`', '``')}`")
    return names


def _names_and_last(checkpoint: str) -> tuple[list[str], int]:
    return list(known_job(checkpoint).results), last_committed(checkpoint)


def row_schema(result: Result) -> T.StructType:
    return T.StructType([T.StructField(c.name, spark_type(c.type), c.nullable) for c in result.columns])


def change_schema(result: Result) -> T.StructType:
    counted = [T.StructField(BATCH, T.LongType()), T.StructField(WEIGHT, T.LongType(), False)]
    return T.StructType([*counted, *row_schema(result).fields])


class ViewSource(DataSource):
    """A view of a checkpoint, or its changes, by the options of :func:`register`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self.checkpoint = absolute(_given(options, "checkpoint", 'option("checkpoint", "where maintain keeps them")'))
        self.view = _given(options, "path", 'load("name of a view")')
        self.changes = _flag(options, "changes")
        self.since = _number(options, "since")
        if self.since is not None and not self.changes:
            raise Error('option("since") is for changes: say option("changes", True) too')
        batch = _number(options, BATCH)
        self.batch = last_committed(self.checkpoint) if batch is None and not self.changes else batch
        job = known_job(self.checkpoint)
        results = job.results
        if self.view not in results:
            raise Error(f"{self.checkpoint} has no view {self.view}; it has {', '.join(results)}")
        self._result, self.first = results[self.view], job.since.get(self.view, FIRST)
        if self.batch is not None and self.batch < self.first:
            raise Error(
                f"{self.view} has its columns since batch {self.first}: before, the script had another one, or none"
            )

    def schema(self) -> T.StructType:
        return change_schema(self._result) if self.changes else row_schema(self._result)

    def reader(self, schema: T.StructType) -> DataSourceReader:
        return ChangeReader(self, schema) if self.changes else RowReader(self, schema)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        if not self.changes:
            raise Error('a stream of a view is the stream of its changes: say option("changes", True)')
        return ChangeStream(self, schema)


# -- rows --------------------------------------------------------------------------------------------------------------


class CellFiles(InputPartition):
    """The files that make up one cell's rows of a view: a cell has all files of a row, so nothing is shuffled."""

    def __init__(self, base: File | None, changes: Sequence[File]) -> None:
        super().__init__(None)
        self.base, self.changes = base, changes


class RowReader(DataSourceReader):
    """All rows as of one batch."""

    def __init__(self, source: ViewSource, schema: T.StructType) -> None:
        self._store, self._checkpoint = Store.of(source.checkpoint).uri, source.checkpoint
        self._view, self._batch, self._schema = source.view, source.batch, schema

    def partitions(self) -> list[InputPartition]:
        assert self._batch is not None, "only changes are of no one batch"
        chains = state_of(self._checkpoint, self._batch).cells.values()
        parts = [chain.view(self._view) for chain in chains]
        return [CellFiles(part.base, part.changes) for part in parts if part.base or part.changes]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Bases and later changes, summed; a row is as often there as its weights say: groups may look alike."""
        if isinstance(partition, CellFiles):  # Spark makes one of its own where there are none
            store = Store(self._store)
            names = self._schema.fieldNames()
            gone = f"{self._view} as of batch {self._batch} is deleted by now: load it again, or raise `retain`"
            files = ((partition.base,) if partition.base else ()) + tuple(partition.changes)
            tables = [_table(store, file.path, [WEIGHT, *names], gone) for file in files]
            rows = repeated(summed(pa.concat_tables(tables)))
            yield from rows.cast(arrow_schema(self._schema)).to_batches()


def summed(rows: pa.Table) -> pa.Table:
    """Equal rows together, their weights (the first column) added. NULL equals NULL, and NaN equals NaN."""
    if any(pa.types.is_list(kind) for kind in rows.schema.types):
        return _summed_by_hand(rows)
    names = [f"c{place}" for place in range(rows.num_columns)]
    plain = pa.table([_normal(column) for column in rows.columns], names=names)
    grouped = plain.group_by(names[1:], use_threads=False).aggregate([("c0", "sum")])
    ordered = grouped.select(["c0_sum", *names[1:]]).rename_columns(rows.column_names)
    return ordered.filter(pc.not_equal(ordered.column(0), 0))


def _summed_by_hand(rows: pa.Table) -> pa.Table:
    """Arrow does not group by lists. Their text tells them apart, with one zero and one NaN as below."""
    weights, *columns = rows.columns
    same = zip(*(map(repr, _normal(column).to_pylist()) for column in columns), strict=True)
    first, counts = dict[tuple[str, ...], int](), Counter[tuple[str, ...]]()
    for place, (row, weight) in enumerate(zip(same, weights.to_pylist(), strict=True)):
        first.setdefault(row, place)
        counts[row] += weight
    kept = [row for row, count in counts.items() if count]
    summed = rows.take(pa.array([first[row] for row in kept], pa.int64()))
    return summed.set_column(0, rows.schema.field(0), pa.array([counts[row] for row in kept], pa.int64()))


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One zero and one NaN, as Spark groups them: Arrow tells numbers apart by their bits."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), float("nan"), pc.add(column, 0.0))


def repeated(weighed: pa.Table) -> pa.Table:
    """Each row as often as its weight says, without the weight."""
    weights, rows = weighed.column(0), weighed.select(weighed.column_names[1:])
    if pc.all(pc.equal(weights, 1)).as_py() is not False:
        return rows
    return rows.take(pa.array([i for i, weight in enumerate(weights.to_pylist()) for _ in range(weight)], pa.int64()))


# -- changes -----------------------------------------------------------------------------------------------------------


class ChangeFiles(InputPartition):
    """(batch, file) for each file of changes."""

    def __init__(self, files: Sequence[tuple[int, str]]) -> None:
        super().__init__(None)
        self.files = files


class _Changes:
    """What one view published, batch by batch."""

    def __init__(self, source: ViewSource, schema: T.StructType) -> None:
        self._store, self._view, self._schema = Store.of(source.checkpoint).uri, source.view, schema
        self._begun = source.first
        self._first = source.first if source.since is None else max(source.since, source.first)

    def _end(self) -> int:
        """The first batch that is not published yet."""
        return max([self._first, *(batch + 1 for batch in published_batches(Store(self._store)))])

    def _between(self, first: int, end: int) -> list[InputPartition]:
        """Only of the batches before the stream, some need never have been."""
        if first < self._begun:
            raise Error(
                f"{self._view} has other columns since batch {self._begun}, and this follower stands before it: give "
                f"it a new checkpoint, and begin again"
            )
        store = Store(self._store)
        there = set(published_batches(store))
        if missing := [batch for batch in range(max(first, 0), end) if batch not in there]:
            raise Error(_gone(self._view, missing[0]))
        notes = {batch: published(store, batch)["changes"] for batch in range(first, end) if batch in there}
        files = [(batch, file) for batch, changes in notes.items() for file in changes.get(self._view, ())]
        return [ChangeFiles(files[at : at + FILES_TO_A_TASK]) for at in range(0, len(files), FILES_TO_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ChangeFiles):
            store, target = Store(self._store), arrow_schema(self._schema)
            for batch, path in partition.files:
                changes = _table(store, path, self._schema.fieldNames(), _gone(self._view, batch))
                yield from changes.cast(target).to_batches()


class ChangeReader(_Changes, DataSourceReader):
    """The changes that are published by now, as a table."""

    def partitions(self) -> list[InputPartition]:
        return self._between(self._first, self._end())


class ChangeStream(_Changes, DataSourceStreamReader):
    """An offset ``{"batch": b}`` stands before batch b. ``back`` says how often batches were taken back by then."""

    def initialOffset(self) -> dict[str, int]:
        return self._before(self._first)

    def latestOffset(self, *_: object) -> dict[str, int]:
        return self._before(self._end())

    def _before(self, batch: int) -> dict[str, int]:
        times = len(times_taken_back(Store(self._store)))
        return {BATCH: batch, BACK: times} if times else {BATCH: batch}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if BATCH not in start:
            raise Error(
                f"the checkpoint of this follower is of another version of viewlet or of another source ({start}): "
                f"give it a new one, and say since=… for where it is to go on"
            )
        self._refuse_taken_back(start)
        self._refuse_taken_back(end)  # it was planned, and what it feeds may have it
        return self._between(start[BATCH], end[BATCH])

    def _refuse_taken_back(self, offset: dict[str, Any]) -> None:
        for taken in times_taken_back(Store(self._store))[offset.get(BACK, 0) :]:
            if offset[BATCH] > taken.to + 1:
                raise Error(
                    f"{taken.label} of {self._store} were taken back, and this follower of {self._view} has read batch "
                    f"{taken.to + 1}: what it feeds holds changes that do not count any more. Empty that, give the "
                    f"follower a new checkpoint, and begin again"
                )


def _gone(view: str, batch: int) -> str:
    return (
        f"the changes of {view} in batch {batch} are deleted by now: read them in time, raise `retain`, or begin later "
        f"with changes({view!r}, since=…)"
    )


# -- files and options -------------------------------------------------------------------------------------------------


def _table(store: Store, path: str, names: Sequence[str], gone: str) -> pa.Table:
    try:
        data = store.read(path)
    except FileNotFoundError:
        raise Error(gone) from None
    table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    return pa.table([table.column(name) for name in names], names=list(names))


def _given(options: Mapping[str, str], name: str, how: str) -> str:
    if not options.get(name):
        raise Error(f'spark.read.format("{FORMAT}") is not told its {name}: say {how}')
    return options[name]


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise Error(f'option("{name}", {text!r}) is no number of a batch') from None


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in (*YES, *NO):
        raise Error(f'option("{name}", {text!r}) is neither true nor false')
    return text in YES
