"""Pathway's Table API. Every event has a time of its own, and the changes of each time are given out.

There are no decimals in Pathway: money and quantities are whole cents, and the answer is made decimal again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pandas as pd
import pathway as pw
import pyarrow as pa
from pathway.internals.parse_graph import G
from worker import Clock, Run, Task, longest_beginning, work

EPOCH = dt.date(1970, 1, 1)
MARCH = (dt.date(1995, 3, 15) - EPOCH).days
CENT, CENT_OF_CENT = Decimal("0.01"), Decimal("0.0001")

Relation = Callable[[str], Any]  # its table, made anew at each call
Finish = Callable[[dict[str, Any]], list[Any]]


def q3(relation: Relation) -> Any:
    c, o, li = relation("customer"), relation("orders"), relation("lineitem")
    c, o, li = c.filter(c.mktsegment == "BUILDING"), o.filter(o.orderdate < MARCH), li.filter(li.shipdate > MARCH)
    co = o.join(c, o.custkey == c.custkey).select(o.orderkey, o.orderdate, o.shippriority)
    all_ = co.join(li, co.orderkey == li.orderkey).select(
        co.orderkey, co.orderdate, co.shippriority, price=li.extendedprice * (100 - li.discount)
    )
    keys = all_.orderkey, all_.orderdate, all_.shippriority
    return all_.groupby(*keys).reduce(*keys, revenue=pw.reducers.sum(all_.price))


def q11(relation: Relation) -> Any:
    ps, s = relation("partsupp"), relation("supplier")
    both = ps.join(s, ps.suppkey == s.suppkey).select(ps.partkey, cost=ps.supplycost * ps.availqty)
    return both.groupby(both.partkey).reduce(both.partkey, cost=pw.reducers.sum(both.cost))


def q18(relation: Relation) -> Any:
    c, o, li = relation("customer"), relation("orders"), relation("lineitem")
    large = li.groupby(li.orderkey).reduce(li.orderkey, quantity=pw.reducers.sum(li.quantity))
    large = large.filter(large.quantity > 100_00)
    co = o.join(c, o.custkey == c.custkey).select(c.custkey, o.orderkey)
    col = co.join(large, co.orderkey == large.orderkey).select(co.custkey, co.orderkey)
    all_ = col.join(li, col.orderkey == li.orderkey).select(col.custkey, li.quantity)
    return all_.groupby(all_.custkey).reduce(all_.custkey, quantity=pw.reducers.sum(all_.quantity))


def bsv(relation: Relation) -> Any:
    x, y = relation("bids"), relation("bids")
    pairs = x.join(y, x.broker_id == y.broker_id).select(
        x.broker_id, product=x.volume * x.price * y.volume * y.price * 0.5
    )
    return pairs.groupby(pairs.broker_id).reduce(pairs.broker_id, variance=pw.reducers.sum(pairs.product))


def vwap(relation: Relation) -> Any:
    """It joins by equality only: all pairs are made, and those filtered in which the second bid is higher.

    Volumes are whole, and worths are added up in cents: as doubles, Pathway 0.33 has 689,275,403.55 after 1,000 events,
    where the same worths in cents come to the right 804,382,786.35.
    """
    b1, b2, b3 = (
        relation("bids").with_columns(all=pw.this.place * 0, volume=pw.cast(int, pw.this.volume)) for _ in range(3)
    )
    total = b3.groupby(b3.all).reduce(b3.all, volume=pw.reducers.sum(b3.volume))
    pairs = b1.join(b2, b1.all == b2.all).select(
        b1.all, b1.place, b1.price, worth=b1.price * b1.volume, higher=b2.price, volume=b2.volume
    )
    pairs = pairs.filter(pairs.higher > pairs.price)
    keys = pairs.place, pairs.worth, pairs.all
    above = pairs.groupby(*keys).reduce(*keys, volume=pw.reducers.sum(pairs.volume))
    both = above.join(total, above.all == total.all).select(above.worth, above=above.volume, total=total.volume)
    chosen = both.filter(0.25 * both.total > both.above).select(cents=pw.cast(int, pw.this.worth * 100 + 0.5))
    return chosen.reduce(vwap=pw.reducers.sum(chosen.cents))


QUERIES: dict[str, tuple[Callable[[Relation], Any], Finish]] = {
    "q3": (q3, lambda r: [r["orderkey"], _day(r["orderdate"]), r["shippriority"], r["revenue"] * CENT_OF_CENT]),
    "q11": (q11, lambda r: [r["partkey"], r["cost"] * CENT]),
    "q18": (q18, lambda r: [r["custkey"], r["quantity"] * CENT]),
    "bsv": (bsv, lambda r: list(r.values())),
    "vwap": (vwap, lambda r: [r["vwap"] / 100]),
}


def _day(number: int) -> str:
    return (EPOCH + dt.timedelta(days=number)).isoformat()


def frames(task: Task) -> dict[str, pd.DataFrame]:
    """By relation, its events: the row, +1 or -1, and when; Pathway's times are even."""
    events: dict[str, list[Any]] = {name: [] for name in task.relations}
    plain = {name: list(zip(*map(_plain, table.columns), strict=True)) for name, table in task.tables.items()}
    for number, (op, name, place) in enumerate(task.events):
        events[name].append((*plain[name][place], place, op, 2 * number + 2))
    return {
        name: pd.DataFrame(rows, columns=[*_names(task.tables[name]), "place", "__diff__", "__time__"])
        for name, rows in events.items()
    }


def _names(table: pa.Table) -> list[str]:
    """Pathway keeps the name id for itself."""
    return ["its_id" if name == "id" else name for name in table.column_names]


def schema_of(frame: pd.DataFrame) -> Any:
    """Said, since a relation may have no rows yet from which it could be seen."""
    columns = {
        name: pw.column_definition(dtype=type(frame[name].tolist()[0]), primary_key=name == "place")
        for name in frame.columns
        if not name.startswith("__")
    }
    return pw.schema_builder(columns)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_decimal(column.type):
        return [int(cell * 100) for cell in column.to_pylist()]
    return (column.cast(pa.int32()) if pa.types.is_date(column.type) else column).to_pylist()  # type: ignore[no-any-return]


class Pipeline:
    """The query over a beginning of the stream, from nothing; the answer is what its changes add up to."""

    def __init__(self, task: Task) -> None:
        self._frames, (self._query, self._finish) = frames(task), QUERIES[task.query]
        self._schemas = {name: schema_of(frame) for name, frame in self._frames.items()}
        self.cpu = self.wall = 0.0
        self._rows: dict[Any, dict[str, Any]] = {}

    @property
    def rows(self) -> list[list[Any]]:
        return [self._finish(row) for row in self._rows.values()]

    def run(self, events: int) -> float:
        G.clear()
        self._rows = {}
        pw.io.subscribe(self._query(partial(self._table, events)), self._on_change)
        clock = Clock()
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        self.cpu, self.wall = clock.cpu, clock.wall
        return self.cpu

    def _table(self, events: int, name: str) -> Any:
        frame = self._frames[name]
        return pw.debug.table_from_pandas(frame[frame["__time__"] <= 2 * events], schema=self._schemas[name])

    def _on_change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            self._rows[key] = row
        elif self._rows.get(key) == row:  # else its successor came first
            del self._rows[key]


def maintained(task: Task) -> Run:
    pipeline = Pipeline(task)
    events = longest_beginning(len(task.events), task.seconds, pipeline.run)
    return Run(events, events, pipeline.cpu, pipeline.wall, pipeline.rows, f"Pathway {pw.__version__}")


if __name__ == "__main__":
    work(maintained)
