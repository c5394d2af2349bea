"""What a query is measured on: its stream at full size, where that stream is in its stride, and what it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

import viewlet
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, PaperQuery
from viewlet.workloads.streams import NATION

Row = tuple[object, ...]

SEED = 2012
CHECKED_ORDERS = 40_000
SHRUNK = 100  # a shrunk stream has so many times fewer live rows


@dataclass(frozen=True)
class Workload:
    """``warm`` events lead to the steady state: contestants too slow for all of them start there, with its rows."""

    query: PaperQuery
    stream: BulkStream
    warm: int

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def script(self) -> str:
        return self.query.script()

    @cached_property
    def static_tables(self) -> Mapping[str, pa.Table]:
        if "nation" not in self.query.relations:
            return {}
        keys, regions = zip(*NATION, strict=True)
        return {
            "nation": pa.table({"nationkey": pa.array(keys, pa.int64()), "regionkey": pa.array(regions, pa.int64())})
        }

    def static_views(self, strategy: str = "optimized") -> Mapping[str, Mapping[tuple[int, ...], int]]:
        """What the views hold before the first event: only those over static tables hold anything."""
        if not self.static_tables:
            return {}
        with self.opened("python", strategy=strategy) as db:
            held = {view.name: dict(db.engine.entries(view.name)) for view in db.program.views}
        return {name: entries for name, entries in held.items() if entries}

    def opened(self, engine: str, **options: object) -> viewlet.Database:
        """A database with the view and the static rows, but no events yet."""
        db = viewlet.connect(engine=engine, **options)  # type: ignore[arg-type]
        db.execute(self.script)
        for name, table in self.static_tables.items():
            db.insert(name, table)
        return db

    def inserts_only(self) -> BulkStream:
        """The rows that come, relation by relation, and none that goes: how a database is filled at first.

        Of an order book only some: DuckDB, which has to check, would join all orders of a day with each other.
        """
        chosen = np.flatnonzero(self.stream.ops > 0)[: CHECKED_ORDERS if self.query.schema == FINANCE else None]
        order = chosen[np.argsort(self.stream.codes[chosen], kind="stable")]
        s = self.stream
        return BulkStream(s.tables, s.ops[order], s.codes[order], s.places[order])


def workload(name: str, events: int | None = None, shrunk: bool = False) -> Workload:
    """At full size; a shorter stream also has fewer live rows, or it would never get into its stride."""
    query = PAPER_QUERIES[name]
    is_order_book = query.schema == FINANCE
    usual = bulk.ORDER_BOOK_EVENTS if is_order_book else bulk.TPCH_EVENTS
    length = events or usual
    divisor = SHRUNK if shrunk else min(max(usual / length, 1), SHRUNK)
    return _order_book(query, length, divisor) if is_order_book else _tpch(query, length, divisor)


def _order_book(query: PaperQuery, events: int, divisor: float) -> Workload:
    live = int(10_000 / divisor)
    stream = bulk.order_book(SEED, events, live=live, sides=query.relations)
    return Workload(query, stream, warm=min(2 * live, len(stream) // 2))


def _tpch(query: PaperQuery, events: int, divisor: float) -> Workload:
    """In its stride once the orders are complete; Q11 reads none, so its rows are made to go and return."""
    stream = bulk.tpch(SEED, events, scale=0.1 / divisor, live=int(30_000 / divisor))
    mine = stream.only(query.relations)
    if (mine.ops > 0).all():
        return Workload(query, _rotated(mine, len(stream)), warm=len(mine))
    return Workload(query, mine, warm=int(np.flatnonzero(mine.ops < 0)[0]))


def _rotated(stream: BulkStream, events: int) -> BulkStream:
    """After these inserts, rounds in which each row of partsupp goes and, a tenth of a round later, returns."""
    rng, partsupp = np.random.default_rng(SEED), np.flatnonzero(stream.codes == stream.relations.index("partsupp"))
    n = len(partsupp)
    when = np.argsort(np.concatenate([np.arange(n), np.arange(n) + n / 10 + 0.5]), kind="stable")
    which, ops = [np.arange(len(stream))], [stream.ops]
    for _ in range(max(events - len(stream), 0) // (2 * n)):
        which.append(np.tile(rng.permutation(partsupp), 2)[when])
        ops.append(np.repeat(np.array([-1, 1], np.int8), n)[when])
    all_ = np.concatenate(which)
    return BulkStream(stream.tables, np.concatenate(ops), stream.codes[all_], stream.places[all_])


def survivors(stream: BulkStream) -> dict[str, pa.Table]:
    """The rows that are there after a stream, by relation."""
    left = {}
    for code, (name, table) in enumerate(stream.tables.items()):
        mine = stream.codes == code
        times = np.bincount(stream.places[mine], stream.ops[mine], len(table)).astype(np.int64)
        left[name] = table.take(pa.array(np.repeat(np.arange(len(table)), times)))
    return left
