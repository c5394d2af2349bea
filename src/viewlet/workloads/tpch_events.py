"""The paper's TPC-H stream (§6) as a Spark job, from the tables of a maintained generator to Parquet files of events.

Time is counted in orders: on average one comes in each unit of it. Each row's moment is computed from its key and the
seed alone, so nothing depends on how many tasks there are or which of them is first, and a lineitem knows when its
order comes without asking.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from viewlet.errors import Error
from viewlet.spark.driver.route import OP
from viewlet.sql.translate import translate
from viewlet.workloads.bulk import Floats, Ints
from viewlet.workloads.event_layout import EVENTS_OF_A_FILE, SLICE, EventFiles, write_slices, write_static
from viewlet.workloads.queries import TPCH
from viewlet.workloads.streams import NATION
from viewlet.workloads.tpchgen import LINE_NUMBER, STREAMS, generated, rows

_MOMENT, _BUCKET = "moment", "bucket"
_LINEITEMS = 4  # of an order, on average
_SPREAD = 20.0  # the rows of an order come, and go, among those of its twenty neighbours
_SUPPLIERS_OF_A_PART = 4
_COMPLETE = 0.9  # of the stream, until which customers, parts, suppliers and partsupp are all there
_BUCKETS_OF_A_FILE = 64
_DIMENSIONS = ("customer", "part", "supplier", "partsupp")


def tpch(
    spark: SparkSession,
    path: str | os.PathLike[str],
    events: int | None = None,
    *,
    seed: int = 1,
    scale: float = 0.1,
    live: int = 30_000,
    events_per_file: int = EVENTS_OF_A_FILE,
) -> EventFiles:
    """Inserts on all relations in random order; from ``live`` orders on, a random one leaves for each that comes.

    An order's lineitems come and go with it. Customers, parts, suppliers and partsupp stay, and all of them are there
    after nine tenths of the stream. Without ``events``, each order of the scale factor comes once. With fewer events
    than that makes, some orders come; with more, they come again with other keys.

    The rows are the generator's but for one thing. Where 30 thousand orders are evenly spread over the parts of a
    large scale factor, no quantity is below Q17's 0.005 of its part's, and its answer is always empty. So a lineitem of
    part p of P is one of part P · (p / P)² here, with a supplier and the price of that part.

    The static table is below ``path`` as well: ``nation/part-00000.parquet``.
    """
    course, where = _Course.of(events, seed, scale, live), os.fspath(path)
    with generated(spark, f"{where}/_generated", scale) as tables:
        events_of = {name: _events(table, name, course, scale) for name, table in tables.items()}
        moments = reduce(lambda some, more: some.union(more), (each.select(_MOMENT) for each in events_of.values()))
        ends = _ends_of_slices(moments, events, events_per_file)
        for name, each in events_of.items():
            columns = [*(T.StructField(c.name, c.dataType) for c in each.schema), T.StructField(SLICE, T.IntegerType())]
            sliced = each.mapInArrow(_slicer(ends), T.StructType(columns))
            write_slices(sliced, where, STREAMS[name], len(ends), (_MOMENT, *each.columns))
    (nation,) = (r for r in translate(TPCH).relations if r.static)
    write_static(spark, where, nation, NATION)
    return EventFiles(where, tuple(STREAMS), len(ends))


@dataclass(frozen=True)
class _Course:
    """Orders come from 0 to ``end``; the other relations are complete at ``complete``."""

    seed: int
    orders: int  # of the scale factor, which come in so many rounds
    rounds: int
    live: int
    complete: float
    end: float

    @staticmethod
    def of(events: int | None, seed: int, scale: float, live: int) -> _Course:
        if rows("supplier", scale) < _SUPPLIERS_OF_A_PART:
            raise Error(f"scale={scale} leaves fewer than {_SUPPLIERS_OF_A_PART} suppliers: take 0.001 or more")
        orders = rows("orders", scale)
        if events is None:
            return _Course(seed, orders, 1, live, _COMPLETE * orders, orders)
        others = sum(rows(name, scale) for name in _DIMENSIONS)
        if events <= others:
            raise Error(
                f"events={events}: customers, parts, suppliers and partsupp of scale={scale} are {others} events by "
                "themselves; take more events or a smaller scale"
            )
        needed = _orders_for(events - others, live)
        end = 1.02 * needed + 6 * math.sqrt(needed) + 10 * _SPREAD  # what is too much is cut off
        return _Course(seed, orders, math.ceil(end / orders), live, _COMPLETE * needed, end)

    def random(self, purpose: str, *key: Column) -> Column:
        """Evenly from 0 to 1, the same for the same key."""
        bits = F.xxhash64(F.lit(self.seed), F.lit(purpose), *key).bitwiseAND(F.lit((1 << 53) - 1))
        return bits / F.lit(float(1 << 53))

    def order_comes(self, orderkey: Column) -> Column:
        return self.random("comes", orderkey) * F.lit(float(self.orders * self.rounds))

    def order_goes(self, orderkey: Column) -> Column:
        """A random one for each that comes: the time to live is exponential, counted from when they are complete."""
        from_then = F.greatest(self.order_comes(orderkey) + F.lit(2 * _SPREAD), F.lit(float(self.live)))
        return from_then - F.lit(float(self.live)) * F.log(F.lit(1.0) - self.random("goes", orderkey))


def _orders_for(events: int, live: int) -> float:
    """How many orders it takes: each comes with its lineitems, and all but the last ``live`` go with them."""
    inserts = events / (1 + _LINEITEMS)
    return inserts if inserts <= live else (inserts + live) / 2


# -- events ------------------------------------------------------------------------------------------------------------


def _events(table: DataFrame, name: str, course: _Course, scale: float) -> DataFrame:
    """The rows with ``op`` and the moment, those past the end left out."""
    match name:
        case "orders":
            moved = _in_rounds(table, course)
            comes, goes = course.order_comes(F.col("orderkey")), course.order_goes(F.col("orderkey"))
        case "lineitem":
            moved = _in_rounds(_to_busy_parts(table, course, scale), course)
            key = (F.col("orderkey"), F.col(LINE_NUMBER))
            comes = course.order_comes(key[0]) + F.lit(_SPREAD) * course.random("line comes", *key)
            goes = course.order_goes(key[0]) + F.lit(_SPREAD) * course.random("line goes", *key)
        case _:
            moved, keys = table, [F.col(c) for c in table.columns if c.endswith("key")]
            comes, goes = F.lit(course.complete) * course.random(name, *keys), F.lit(math.inf)
    moves = F.array(*(F.struct(F.lit(op).alias(OP), at.alias(_MOMENT)) for op, at in ((1, comes), (-1, goes))))
    columns = [c.name for c in STREAMS[name].columns]
    return moved.select(*columns, F.inline(moves)).where(F.col(_MOMENT) < F.lit(course.end))


def _in_rounds(table: DataFrame, course: _Course) -> DataFrame:
    """Each order as often as it may come, with keys beyond those of the round before: DBGEN uses a quarter of them."""
    beyond = F.lit(4 * course.orders + 32)
    round_ = F.explode(F.sequence(F.lit(0), F.lit(course.rounds - 1)))
    again = table.withColumn("round", round_)
    return again.withColumn("orderkey", F.col("orderkey") + F.col("round") * beyond).drop("round")


def _to_busy_parts(lineitem: DataFrame, course: _Course, scale: float) -> DataFrame:
    """Suppliers and prices follow from the part, by DBGEN's own formulas."""
    parts, suppliers = rows("part", scale), rows("supplier", scale)
    share = (F.col("partkey") - F.lit(0.5)) / F.lit(float(parts))
    part = F.floor(F.lit(float(parts)) * share * share) + F.lit(1)
    turn = F.pmod(F.xxhash64(F.lit(course.seed), F.col("orderkey"), F.col(LINE_NUMBER)), F.lit(_SUPPLIERS_OF_A_PART))
    return (
        lineitem.withColumn("partkey", part)
        .withColumn("suppkey", supplier_of(F.col("partkey"), turn, suppliers))
        .withColumn("extendedprice", price_of(F.col("partkey"), F.col("quantity")))
    )


def supplier_of(part: Column, turn: Column, suppliers: int) -> Column:
    """DBGEN's n-th supplier of a part."""
    further = F.lit(suppliers // _SUPPLIERS_OF_A_PART) + F.floor((part - F.lit(1)) / F.lit(suppliers))
    return (part + turn * further) % F.lit(suppliers) + F.lit(1)


def price_of(part: Column, quantity: Column) -> Column:
    """DBGEN's retail price of a part, in cents, so many times."""
    retail = F.lit(90_000) + F.floor(part / F.lit(10)) % F.lit(20_001) + F.lit(100) * (part % F.lit(1000))
    cents = (retail * quantity.cast("long")).cast("decimal(14,0)")
    return (cents * F.lit(Decimal("0.01"))).cast("decimal(12,2)")


# -- slices ------------------------------------------------------------------------------------------------------------

_Batches = Iterator[pa.RecordBatch]


def _ends_of_slices(moments: DataFrame, events: int | None, events_per_file: int) -> Floats:
    """The moments at which slices end: each has ``events_per_file`` events, but for the last one."""
    width = events_per_file / _BUCKETS_OF_A_FILE / (2 + 2 * _LINEITEMS)
    bucketed = moments.withColumn(_BUCKET, F.floor(F.col(_MOMENT) / F.lit(width)))
    counted = bucketed.groupBy(_BUCKET).count().orderBy(_BUCKET).toArrow()
    total = int(counted["count"].to_numpy().sum())
    if events is not None and total < events:
        raise Error(f"events={events}: the orders that were to be enough make only {total}; please report this")
    wanted = total if events is None else events
    ends = np.append(np.arange(events_per_file, wanted, events_per_file), wanted)
    inner = ends[ends < total]  # the whole stream ends with its last event
    return np.append(_moments_at(inner, bucketed, counted), np.full(len(ends) - len(inner), math.inf))


def _moments_at(ranks: Ints, bucketed: DataFrame, counted: pa.Table) -> Floats:
    """The moments of events by how many are before them.

    There are too many to collect and sort. They were counted by bucket, and only the buckets of these are opened.
    """
    counts = counted["count"].to_numpy()
    inside = np.searchsorted(np.cumsum(counts), ranks, side="right")
    opened = np.unique(inside)
    chosen = F.col(_BUCKET).isin(counted[_BUCKET].take(opened).to_pylist())
    sorted_ = np.sort(bucketed.where(chosen).select(_MOMENT).toArrow()[_MOMENT].to_numpy())
    passed_over = np.cumsum(counts)[opened] - np.cumsum(counts[opened])  # in buckets before each that is opened
    moments: Floats = sorted_[ranks - passed_over[np.searchsorted(opened, inside)]]
    return moments


def _slicer(ends: Floats) -> Callable[[_Batches], _Batches]:
    """Adds the slice of each event, and leaves out those past the last one."""

    def run(batches: _Batches) -> _Batches:
        for batch in batches:
            slices = np.searchsorted(ends, batch.column(_MOMENT).to_numpy(), side="right").astype(np.int32)
            yield batch.append_column(SLICE, pa.array(slices)).filter(pa.array(slices < len(ends)))

    return run
