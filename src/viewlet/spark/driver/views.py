"""The views of a running query: their rows as of the last committed micro-batch, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from viewlet.cells.explain import explain_grid
from viewlet.program.trigger import Result
from viewlet.spark.driver.cluster import (
    last_committed,
    on_cluster,
    recent_progress,
    stop_cells,
    view_files,
)
from viewlet.spark.driver.letters import LETTERS, letter_files
from viewlet.spark.driver.runner import Runner
from viewlet.spark.driver.source import BATCH, FORMAT, WEIGHT, register, row_schema
from viewlet.spark.driver.told import summed, weighed
from viewlet.spark.driver.types import named
from viewlet.spark.pipeline import Pipeline

Progress = Mapping[str, Any]


class Views:
    """The views of a running query, made by :func:`maintain`. ``views["v"]`` is the view v as a DataFrame.

    ``query`` is Spark's own ``StreamingQuery``, with ``awaitTermination()``, ``stop()`` and ``lastProgress``. Iterating
    gives the names of the views.
    """

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        runner: Runner,
        query: StreamingQuery,
        again: Callable[..., Views],
    ) -> None:
        self._spark, self._pipeline, self._runner, self._again = spark, pipeline, runner, again
        self.query = query
        """Spark's handle on the running query: ``awaitTermination()``, ``stop()``, ``lastProgress``."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._pipeline.results)

    def __len__(self) -> int:
        return len(self._pipeline.results)

    def __contains__(self, name: object) -> bool:
        return name in self._pipeline.results

    def __getitem__(self, name: str) -> DataFrame:
        """The view as of the last committed micro-batch. The DataFrame does not change while the query goes on."""
        result = self._result(name)
        files = on_cluster(self._spark, partial(view_files, self._runner.checkpoint, None, (name,)))
        return self._frame(result, files[name])

    @property
    def committed(self) -> int:
        """The number of the last micro-batch that Spark has committed. It is negative before the first one."""
        return int(on_cluster(self._spark, partial(last_committed, self._runner.checkpoint)))

    def at(self, batch: int | None = None) -> Mapping[str, DataFrame]:
        """All views as of the same batch, so that they agree with each other. The default is the last committed one.

        A view that was not there yet in that batch, or had other columns, is left out.
        """
        files = on_cluster(self._spark, partial(view_files, self._runner.checkpoint, batch, tuple(self)))
        return {name: self._frame(self._result(name), paths) for name, paths in files.items()}

    def _result(self, name: str) -> Result:
        result = self._pipeline.results.get(name)
        if result is None:
            raise KeyError(f"there is no view {name}; there are: {', '.join(self)}")
        return result

    def _frame(self, result: Result, files: list[str]) -> DataFrame:
        """Bases and later changes, summed; a row is as often there as its weights say: groups may look alike."""
        if not files:
            return self._spark.createDataFrame([], row_schema(result))
        columns = [named(column.name) for column in result.columns]
        counted = summed(weighed(self._spark, result, files), result)
        repeated = F.explode(F.array_repeat(F.lit(0), F.col(WEIGHT).cast("int")))
        shown = counted.select(*columns, repeated.alias(WEIGHT)).select(*columns)
        return shown.orderBy(*_order(result)) if result.order else shown

    def changes(self, name: str, *, since: int | None = None) -> DataFrame:
        """A streaming DataFrame of the changes of a view: ``batch``, ``weight`` and the view's columns.

        The weight says how often the row came; it is negative for a row that went. ``since`` leaves out the batches
        before it. Without ``since`` the stream begins with the view's first row. Where ``retain`` has deleted those
        changes, it fails and says so.
        """
        self._result(name)
        register(self._spark)
        reader = self._spark.readStream.format(FORMAT).option("checkpoint", self._runner.checkpoint)
        reader = reader.option("changes", True)
        return (reader if since is None else reader.option("since", since)).load(name)

    @property
    def dead_letters(self) -> DataFrame:
        """The rows that could not be taken, where :func:`maintain` was told to keep them.

        The columns are ``batch``, ``relation``, ``reason`` and ``row``, as JSON. They stay when old batches go.
        """
        files = on_cluster(self._spark, partial(letter_files, self._runner.checkpoint))
        return self._spark.read.schema(LETTERS).json(files) if files else self._spark.createDataFrame([], LETTERS)

    # -- looking on ----------------------------------------------------------------------------------------------------

    @property
    def progress(self) -> list[Progress]:
        """The cost of each recent micro-batch: its rows and cells, bytes of state, and seconds in each part."""
        if self._runner.recent:
            return list(self._runner.recent)
        return list(on_cluster(self._spark, partial(recent_progress, self._runner.checkpoint)))

    def listen(self, callback: Callable[[Progress], object]) -> Callable[[], None]:
        """Call back after every micro-batch, through Spark's own listeners. The returned function ends it."""
        listener = _Listener(self, callback)
        self._spark.streams.addListener(listener)
        return partial(self._spark.streams.removeListener, listener)

    def explain(self) -> str:
        """The grid as text: its dimensions, how each relation is routed, what is summed across cells."""
        return explain_grid(self._pipeline.grid)

    def stop(self) -> None:
        """End the query and its cells. The same call of :func:`maintain` goes on from the last committed batch."""
        self.query.stop()
        on_cluster(self._spark, partial(stop_cells, self._runner.checkpoint, self._runner.works.run))

    def evolve(self, script: str, **others: Any) -> Views:
        """End the query, and go on with another script on the same checkpoint: the views that it has then.

        The arguments are those of the call of :func:`maintain` that made this query, but for ``others``: a stream that
        is new needs ``sources``, and ``cells=4`` cuts the work again. :func:`explain_change` says beforehand what is
        taken over. A script that is refused leaves the checkpoint as it was.
        """
        self.stop()
        return self._again(script, **others)


class _Listener(StreamingQueryListener):
    """Calls back after each micro-batch of one query, with the figures of its cells."""

    def __init__(self, views: Views, callback: Callable[[Progress], object]) -> None:
        self._views, self._callback = views, callback

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if str(event.progress.id) == str(self._views.query.id):
            same = [p for p in self._views.progress if p["batch"] == event.progress.batchId]
            spark = {
                "input_rows": event.progress.numInputRows,
                "durations": dict(event.progress.durationMs),
                "behind": {s.description: dict(s.metrics or {}) for s in event.progress.sources},
            }
            self._callback({**(same[-1] if same else {BATCH: event.progress.batchId}), **spark})

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def _order(result: Result) -> list[Column]:
    """The columns that the view is ordered by, as Spark says it: it has the same order of texts and of NaN."""
    columns = list[Column]()
    for order in result.order:
        shown = result.column_of(order)
        assert shown is not None, "the pipeline refuses other orders"
        direction = "desc" if order.descending else "asc"
        nulls = "first" if order.nulls_first else "last"
        columns.append(getattr(named(shown.name), f"{direction}_nulls_{nulls}")())
    return columns
