"""The events of a stream as the whole numbers that the Rust program takes, and its rows as those of the query."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.engine.workload import Row, Workload

Ints = npt.NDArray[np.int64]
Columns = Callable[[pa.Table], Sequence[Ints]]
EPOCH = dt.date(1970, 1, 1)
CENT, CENT_OF_CENT = Decimal("0.01"), Decimal("0.0001")


def _whole(table: pa.Table, name: str) -> Ints:
    """As it is; a decimal in hundredths, a date in days."""
    column = table[name].combine_chunks()
    if pa.types.is_decimal(column.type):
        column = pc.multiply(column, pa.scalar(Decimal(100), pa.decimal128(3))).cast(pa.decimal128(38, 0))
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()))


def _plain(*names: str) -> Columns:
    return lambda table: [_whole(table, name) for name in names]


def _segment(table: pa.Table) -> Sequence[Ints]:
    return _whole(table, "custkey"), np.asarray(pc.equal(table["mktsegment"], "BUILDING")).astype(np.int64)


def _revenue(table: pa.Table) -> Sequence[Ints]:
    revenue = _whole(table, "extendedprice") * (100 - _whole(table, "discount"))
    return _whole(table, "orderkey"), revenue, _whole(table, "shipdate")


def _cost(table: pa.Table) -> Sequence[Ints]:
    worth = _whole(table, "supplycost") * _whole(table, "availqty")
    return _whole(table, "partkey"), _whole(table, "suppkey"), worth


def _worth(table: pa.Table) -> Sequence[Ints]:
    """Volumes are whole, prices are in cents."""
    worth = np.rint(np.asarray(table["volume"]) * np.asarray(table["price"]) * 100).astype(np.int64)
    return _whole(table, "broker_id"), worth


def _day(number: int) -> dt.date:
    return EPOCH + dt.timedelta(days=number)


# The relations in the order in which the program takes them, with the cells of their rows; and a row of the answer.
QUERIES: dict[str, tuple[dict[str, Columns], Callable[[Sequence[int]], Row]]] = {
    "q3": (
        {
            "customer": _segment,
            "orders": _plain("orderkey", "custkey", "orderdate", "shippriority"),
            "lineitem": _revenue,
        },
        lambda row: (row[0], _day(row[1]), row[2], row[3] * CENT_OF_CENT),
    ),
    "q11": (
        {"partsupp": _cost, "supplier": _plain("suppkey")},
        lambda row: (row[0], row[1] * CENT),
    ),
    "q18": (
        {
            "customer": _plain("custkey"),
            "orders": _plain("orderkey", "custkey"),
            "lineitem": _plain("orderkey", "quantity"),
        },
        lambda row: (row[0], row[1] * CENT),
    ),
    "bsv": ({"bids": _worth}, lambda row: (row[0], 0.5 * (row[1] / 100) ** 2)),
}


def numbers(w: Workload) -> Ints:
    """Six for each event: +1 or -1, its relation, and four cells."""
    relations, _ = QUERIES[w.name]
    events = np.zeros((len(w.stream), 6), np.int64)
    events[:, 0] = w.stream.ops
    for number, (name, columns) in enumerate(relations.items()):
        mine = w.stream.codes == w.stream.relations.index(name)
        events[mine, 1] = number
        for place, cells in enumerate(columns(w.stream.tables[name])):
            events[mine, 2 + place] = cells[w.stream.places[mine]]
    return events


def answered(query: str, lines: Sequence[str]) -> list[Row]:
    """Each line is how often a row is there, and its cells."""
    _, finish = QUERIES[query]
    rows: list[Any] = []
    for line in lines:
        times, *cells = map(int, line.split())
        rows += [finish(cells)] * times
    return rows
