"""The rows that a cell has stored, read off its files: no cell need run, and no code that it ran is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from viewlet.durable.chain import KEPT_SNAPSHOTS, Chain, Snapshot
from viewlet.durable.store import Store
from viewlet.errors import CorruptError, Error
from viewlet.spark.process.events import Segment, log_segments
from viewlet.spark.task.feed import cell_name, chains_of

OP = "op"
WITHOUT_ROWS = (
    "cell {cell} has snapshots without rows, of an earlier version of viewlet: go on with the script as it was until "
    "each cell has written two new snapshots, or give a new checkpoint and let the sources replay"
)


@dataclass(frozen=True)
class Stored:
    """Rows of one copy of a stream: in some cells, as of a manifest, which a batch and a run name."""

    store: str
    manifest: tuple[int, str]
    name: str
    cells: tuple[int, ...]
    schema: pa.Schema  # of the columns that are wanted, and OP


def stored_stage(wanted: Stored) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Places in ``wanted.cells`` come in, the rows of those cells go out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from _rows(wanted, cell_name(wanted.cells[place]))

    return run


def _rows(wanted: Stored, cell: str) -> Iterator[pa.RecordBatch]:
    chain = chains_of(wanted.store, *wanted.manifest).get(cell, Chain())
    for segment in segments_of(Store(wanted.store), cell, chain):
        if segment.relation == wanted.name:
            for batch in segment.batches():
                op = pa.repeat(pa.scalar(segment.times, pa.int64()), batch.num_rows)
                columns = [op if f.name == OP else batch.column(f.name).cast(f.type) for f in wanted.schema]
                yield pa.RecordBatch.from_arrays(columns, schema=wanted.schema)


def segments_of(store: Store, cell: str, chain: Chain) -> list[Segment]:
    """What a chain comes to, as events: from the newest snapshot whose rows are whole, and the logs behind it."""
    starts: list[Snapshot | None] = [snapshot for snapshot in reversed(chain.snapshots) if snapshot.rows]
    starts += [None] if len(chain.snapshots) < KEPT_SNAPSHOTS else []
    broken: CorruptError | None = None
    for start in starts:
        try:
            return list(_segments(store, chain, start))
        except CorruptError as error:
            broken = broken or error
    raise broken or Error(WITHOUT_ROWS.format(cell=cell))


def _segments(store: Store, chain: Chain, start: Snapshot | None) -> Iterator[Segment]:
    if start is not None and start.rows is not None:
        yield from log_segments(store.checked(start.rows), start.version.batch, start.rows.path)
    for log in chain.after(start):
        yield from log_segments(store.checked(log.file), log.batch, log.file.path)
