"""What runs in a Spark task: rows of cells go to the cells' processes, and what those answer comes back as rows.

A row that a stage gives is a message: ``part``, ``kind``, ``name`` and ``body``. So Spark moves blocks, and looks at no
row in them.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

from viewlet.errors import Error
from viewlet.spark.pipeline import Works
from viewlet.spark.task.feed import Message, Turn, feed_cells, feed_merge_cells, hand_over

OUTPUT = "part int, kind string, name string, body binary"
SCHEMA = pa.schema([("part", pa.int32()), ("kind", pa.string()), ("name", pa.string()), ("body", pa.binary())])
TURN = "viewlet.session.turn"  # a property of Spark's job
DONE = "done"  # instead of a turn: the cells have the batch already

Batches = Iterator[pa.RecordBatch]
Stage = Callable[[Batches], Batches]


def cell_stage(turn: Turn) -> Stage:
    def run(batches: Batches) -> Batches:
        spare_modules()
        yield from _rows(feed_cells(turn, batches))

    return run


def hand_over_stage(works: Works) -> Stage:
    """For a plan that is made before anybody knows of the batch: Spark's job says which it is."""

    def run(batches: Batches) -> Batches:
        spare_modules()
        context = TaskContext.get()
        told = context.getLocalProperty(TURN) if context else None
        if told is None:
            raise Error("a task was not told of its batch: this plan belongs to the query that maintain started")
        if told == DONE:
            deque(batches, maxlen=0)
            return
        yield from _rows(hand_over(Turn.from_text(works, told), batches))

    return run


def merge_stage(turn: Turn) -> Stage:
    def run(batches: Batches) -> Batches:
        spare_modules()
        messages = (Message(**row) for batch in batches for row in batch.to_pylist())
        yield from _rows(feed_merge_cells(turn, messages))

    return run


@cache
def spare_modules() -> None:
    """PySpark collects garbage after every task, 50 ms with all that is imported here: what is, will never be any."""
    pa.scalar(0)  # makes pyarrow look for pandas: now, not later
    gc.freeze()


def _rows(messages: Iterator[Message]) -> Batches:
    columns = list(zip(*messages, strict=True))
    if columns:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
