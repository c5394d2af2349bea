"""Long runs of the native engine: memory does not grow while rows come and go, and doubles leave no residue."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

import viewlet
from bench.engine.answers import WrongAnswerError
from bench.engine.contestants import BATCH, SkippedError
from bench.engine.workload import SEED, survivors
from viewlet.errors import Error
from viewlet.workloads import bulk
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES
from viewlet.workloads.streams import NATION

CHURN_EVENTS, DOUBLES_EVENTS = 50_000_000, 10_000_000
ROUND = 1_000_000  # events between two looks
SETTLED = 5  # rounds until the allocators of Python and Arrow have what they need
GROWTH = 1.05  # memory in use at the end of the last round, by that at the end of the second

_SUMS = """\
CREATE STREAM bids (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT broker_id, sum(price) AS total, count(*) AS n FROM bids GROUP BY broker_id;
"""


def churn(queries: Iterable[str], events: int, progress: Console) -> None:
    """Round after round of new rows come and go; at the same place in each, as much memory must be in use."""
    for name in queries:
        sizes: list[int] = []
        resident: list[int] = []  # the engine's own account could miss something; this one has the streams in it, too
        with _native(PAPER_QUERIES[name].script()) as db:
            if "nation" in PAPER_QUERIES[name].relations:
                db.insert("nation", list(NATION))
            for number in range(max(events // ROUND, 3)):
                stream = _round(name, number)
                _apply(db, stream)
                sizes.append(sum(size for _, _, size in db.engine.memory()))  # type: ignore[attr-defined]
                seen = f"{(number + 1) * ROUND:,} events, {sizes[-1] / 1e6:.1f} MB in use"
                resident.append(_resident())
                progress.print(f"{name}: {seen}, {resident[-1] / 1e6:.0f} MB by the process", highlight=False)
                _apply(db, _all_gone(stream))
                if rows := [row for row in db.view(name).rows() if any(cell is not None for cell in row)]:
                    raise WrongAnswerError(f"{name}: all rows are gone, but the view has {rows[0]}")
        if sizes[-1] > GROWTH * sizes[1]:
            raise WrongAnswerError(f"{name}: memory grew from {sizes[1] / 1e6:.0f} to {sizes[-1] / 1e6:.0f} MB")
        half = len(resident) // 2
        if min(resident[half:]) > GROWTH * max(resident[:half]) and half >= SETTLED:
            raise WrongAnswerError(f"{name}: the process grew to {resident[-1] / 1e6:.0f} MB")


def _round(name: str, number: int) -> BulkStream:
    query = PAPER_QUERIES[name]
    if query.schema == FINANCE:
        return bulk.order_book(SEED + number, ROUND, sides=query.relations)
    stream = bulk.tpch(SEED + number, ROUND).only(query.relations)
    first = number * ROUND  # order keys that no round before had
    tables = {name: _shifted(table, first) if "orderkey" in table.column_names else table
              for name, table in stream.tables.items()}  # fmt: skip
    return BulkStream(tables, stream.ops, stream.codes, stream.places)


def _shifted(table: pa.Table, first: int) -> pa.Table:
    place = table.column_names.index("orderkey")
    return table.set_column(place, "orderkey", pc.add(table["orderkey"], first))


def _all_gone(stream: BulkStream) -> BulkStream:
    """Deletes, in random order, of all rows that a stream leaves."""
    codes, places = [], []
    for code, table in enumerate(stream.tables.values()):
        mine = stream.codes == code
        left = np.flatnonzero(np.bincount(stream.places[mine], stream.ops[mine], len(table)))
        codes.append(np.full(len(left), code, np.int8))
        places.append(left)
    order = np.random.default_rng(SEED).permutation(sum(map(len, places)))
    ops = np.full(len(order), -1, np.int8)
    return BulkStream(stream.tables, ops, np.concatenate(codes)[order], np.concatenate(places)[order])


def doubles(events: int, progress: Console) -> None:
    """Sums of doubles of all sizes: right after each round, and once every row is deleted, gone."""
    with _native(_SUMS) as db:
        for number in range(max(events // ROUND, 1)):
            stream = _all_sizes(bulk.order_book(SEED + number, ROUND, sides=("bids",)), number)
            _apply(db, stream)
            worst = _worst_error(db.view("sums").rows(), survivors(stream)["bids"])
            _apply(db, _all_gone(stream))
            if rows := db.view("sums").rows():
                raise WrongAnswerError(f"all rows are gone, but the view has {rows[0]}")
            done = (number + 1) * ROUND
            progress.print(f"{done:,} doubles: relative error at most {worst:.1e}, nothing left", highlight=False)


def _all_sizes(stream: BulkStream, number: int) -> BulkStream:
    """Prices between 10⁻⁸ and 10¹² of either sign."""
    rng, table = np.random.default_rng(number), stream.tables["bids"]
    prices = rng.choice((-1.0, 1.0), len(table)) * 10.0 ** rng.uniform(-8, 12, len(table))
    tables = {"bids": table.set_column(table.column_names.index("price"), "price", pa.array(prices))}
    return BulkStream(tables, stream.ops, stream.codes, stream.places)


def _worst_error(rows: list[tuple[int, float, int]], left: pa.Table) -> float:
    prices: defaultdict[int, list[float]] = defaultdict(list)
    for broker, price in zip(left["broker_id"].to_pylist(), left["price"].to_pylist(), strict=True):
        prices[broker].append(price)
    if {broker: n for broker, _, n in rows} != {broker: len(each) for broker, each in prices.items()}:
        raise WrongAnswerError("the counts are not those of the rows")
    worst = max(abs(total - math.fsum(prices[broker])) / abs(math.fsum(prices[broker])) for broker, total, _ in rows)
    if worst > 1e-15:
        raise WrongAnswerError(f"a sum is off by {worst:.1e} of itself")
    return worst


def _native(script: str) -> viewlet.Database:
    try:
        db = viewlet.connect(engine="native", wait_native=True)  # type: ignore[call-arg]
    except (Error, TypeError) as refused:
        raise SkippedError(f'engine="native" is refused: {refused}') from refused
    db.execute(script)
    return db


def _apply(db: viewlet.Database, stream: BulkStream) -> None:
    for batch in stream.batches(BATCH):
        db.apply(batch)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
