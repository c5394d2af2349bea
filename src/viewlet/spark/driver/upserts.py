"""Rows by their key: a source that says what a row is now, and not what it was, as rows that come and go.

Spark keeps the newest row of each key in the state of the query, beside its offsets. So an event that comes twice
changes nothing, and a batch that Spark runs again begins with the state before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.state import GroupState

from viewlet.errors import Error
from viewlet.spark.driver.route import OP
from viewlet.spark.driver.types import named

ROW, ORDER = "row", "place"
JSON = {  # as text a row keeps all its digits, where pandas would make doubles of integers with a NULL among them
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def upserts(rows: DataFrame, key: Sequence[str], order: str) -> DataFrame:
    """Rows with ``op`` +1 and -1, from a DataFrame that has the newest row of a key, or says that there is none.

    A row with ``op`` +1, or without ``op``, takes the place of the row with the same ``key``. With -1 that row goes;
    only the key is looked at. ``order`` is the column with an integer that says which of two rows of a key is the
    newer one, as ``offset`` of a Kafka source does. Of several in one micro-batch the last one counts. The DataFrame
    keeps the newest row of each key in Spark's own state.
    """
    given = {f.name: f.dataType for f in rows.schema.fields}
    for column in (*key, order):
        if column not in given:
            raise Error(f"there is no column {column}; there are {', '.join(given)}")
    if not key or not isinstance(given[order], T.IntegralType):
        raise Error("give the columns of the key, and one with an integer by which rows are ordered")
    row = T.StructType([T.StructField(name, kind) for name, kind in given.items() if name not in (OP, order)])
    keys = [named(name).alias(f"k{place}") for place, name in enumerate(key)]
    packed = F.to_json(F.struct(*(named(f.name) for f in row.fields)), JSON).alias(ROW)
    told = rows.select(*keys, packed, _order(order).alias(ORDER), _sign(OP in given).alias(OP))
    grouped = told.groupBy(*(f"k{place}" for place in range(len(key))))
    if rows.isStreaming:
        schema = f"{ROW} string, {OP} int"
        changed = grouped.applyInPandasWithState(newest, schema, f"{ROW} string", "append", "NoTimeout")
    else:  # nothing is before it
        last = grouped.agg(F.max_by(F.struct(ROW, OP), ORDER).alias("last")).select("last.*")
        changed = last.where(F.col(OP) > 0)
    read = F.from_json(ROW, row, {**JSON, "mode": "FAILFAST"}).alias(ROW)
    return changed.select(read, OP).select(f"{ROW}.*", OP)


def newest(key: tuple[Any, ...], parts: Iterator[Any], state: GroupState) -> Iterator[Any]:
    """The row before goes and the last one comes, if they differ."""
    from pandas import DataFrame as Frame  # PySpark has it; nothing else here needs it

    last: tuple[int, int, str] | None = None
    for part in parts:
        for place, op, row in zip(part[ORDER], part[OP], part[ROW], strict=True):
            if last is None or place >= last[0]:
                last = int(place), int(op), row
    before = state.get[0] if state.exists else None
    after = last[2] if last is not None and last[1] > 0 else None
    if after is None and state.exists:
        state.remove()
    elif after is not None:
        state.update((after,))
    changes = [] if before == after else [(row, op) for row, op in ((before, -1), (after, 1)) if row is not None]
    yield Frame({ROW: [row for row, _ in changes], OP: [op for _, op in changes]})


def _order(order: str) -> Column:
    place, why = named(order).cast("long"), F.lit(f"{order} is NULL, so nobody knows which row is newer")
    return F.when(place.isNull(), F.raise_error(why).cast("long")).otherwise(place)


def _sign(is_given: bool) -> Column:
    if not is_given:
        return F.lit(1)
    op = F.col(OP)
    what = F.concat(F.lit("op is "), F.coalesce(op.cast("string"), F.lit("NULL")), F.lit("; by a key it is +1 or -1"))
    return F.when(op.isin(1, -1), op.cast("int")).otherwise(F.raise_error(what).cast("int"))
