"""A sink counts every change once: it knows which micro-batch comes next, and which one it has already."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from viewlet.errors import Error

BATCH, WEIGHT = "viewlet_batch", "viewlet_weight"  # as sinks call them: a view may have a column named weight


@dataclass(frozen=True)
class Held:
    """How far a sink has come."""

    micro_batch: int  # of the stream that feeds the sink
    last_batch: int | None  # the last batch of the view that was in it; None: it was empty


def is_held(sink: str, held: Held | None, micro_batch: int, changes: DataFrame) -> bool:
    """Is this micro-batch repeated? Spark numbers them 0, 1, 2, … and repeats the last one at most, as it was.

    Any other number, or other contents, are those of another stream: of one whose checkpoint was deleted, say. Its
    changes would come on top of a view that they do not belong to.
    """
    if micro_batch == (held.micro_batch + 1 if held else 0):
        return False
    if held and micro_batch == held.micro_batch and last_batch(changes) == held.last_batch:
        return True
    state = f"holds micro-batches up to {held.micro_batch}" if held else "is new"
    raise Error(
        f"{sink} {state}, and a stream came that is at micro-batch {micro_batch}: a sink is fed by one stream, with "
        "one checkpoint. To fill it again, remove the sink and its stream's checkpoint, and start both from nothing"
    )


def last_batch(changes: DataFrame) -> int | None:
    """Of the view, among a micro-batch's changes."""
    row = changes.agg(F.max(BATCH)).first()
    batch: int | None = row[0] if row else None
    return batch


def with_own_names(changes: DataFrame) -> DataFrame:
    """(batch, weight, columns…) under the names that sinks use for the first two."""
    if changes.columns[:2] != ["batch", "weight"]:
        raise Error(
            f"a sink takes batch, weight and a view's columns, not {', '.join(changes.columns)}: feed it with "
            "views.changes(…)"
        )
    return changes.toDF(BATCH, WEIGHT, *changes.columns[2:])


def column(name: str) -> Column:
    """A column by its name, which may have any letters."""
    return F.col("`" + name.replace("`", "``") + "`")
