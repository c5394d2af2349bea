"""The events that all contestants take, and the files from which workers read them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.engine.workload import SEED, Workload, workload
from viewlet.workloads import bulk
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

EVENTS = 100_000  # at this length TPC-H has scale factor 0.01, and 3,000 live orders
LIVE_BIDS = 2_000


def peers_workload(name: str, events: int = EVENTS, live: int = LIVE_BIDS) -> Workload:
    query = PAPER_QUERIES[name]
    if query.schema != FINANCE:
        return workload(name, events)
    return Workload(query, bulk.order_book(SEED, events, live=live, sides=query.relations), warm=2 * live)


def write_files(w: Workload, folder: Path) -> None:
    """The rows of each relation; and the stream, which names a row by its relation's number and its place there."""
    folder.mkdir(parents=True)
    for name, table in w.stream.tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    columns = {"op": w.stream.ops, "code": w.stream.codes, "place": w.stream.places}
    pq.write_table(pa.table(columns), folder / "stream.parquet")
