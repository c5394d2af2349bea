"""The events of one cell and batch, as bytes: what a worker sends to a cell is what the cell's log holds.

::

    magic, length of the header, header as JSON {"batch": b, "segments": [[relation, times, bytes], …]}, segments

A segment is an Arrow stream of rows of one relation that come (or go) equally often. Its bytes are written to the log
as they arrived, so a cell does not write its input again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from viewlet.errors import CorruptError

MAGIC = b"viewlet events 1"
INSTEAD = 0  # as the number of times: the rows come in place of all that are there
ALIGNMENT = 64  # of segments in a log: their arrays are used where they lie
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
PLAIN = pa.ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True)
class Rows:
    """Rows of a relation that come ``times`` times each, or go if it is negative; columns go by name.

    Of a clock there is one row, which comes INSTEAD of the one before.
    """

    relation: str
    times: int
    batch: pa.RecordBatch


@dataclass(frozen=True)
class Segment:
    """The bytes of rows that belong together."""

    relation: str
    times: int
    data: Any

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from pa.ipc.open_stream(self.data, options=PLAIN)


def segments(rows: Iterable[Rows]) -> list[Segment]:
    """In their order; neighbours of one relation, number and schema become one segment."""
    alike = groupby(rows, key=lambda r: (r.relation, r.times, r.batch.schema))
    return [
        Segment(relation, times, stream(schema, (r.batch for r in same))) for (relation, times, schema), same in alike
    ]


def stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=COMPRESSED) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def log_parts(batch: int, given: Iterable[Segment]) -> list[Any]:
    """The buffers that make up a log file."""
    kept = list(given)
    described = [[segment.relation, segment.times, len(memoryview(segment.data))] for segment in kept]
    header = json.dumps({"batch": batch, "segments": described}, separators=(",", ":")).encode()
    parts: list[Any] = [MAGIC + len(header).to_bytes(8, "little") + header]
    at = len(parts[0])
    for segment in kept:
        gap = b"\0" * (-at % ALIGNMENT)
        parts += [gap, segment.data]
        at += len(gap) + len(memoryview(segment.data))
    return parts


def log_segments(data: pa.Buffer, batch: int, path: str) -> Iterator[Segment]:
    """What a log file holds, its checksum being right already."""
    start = len(MAGIC) + 8
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise CorruptError(f"{path} is no log of this format")
    at = start + int.from_bytes(bytes(data[len(MAGIC) : start]), "little")
    header = json.loads(bytes(data[start:at]))
    if header["batch"] != batch:
        raise CorruptError(f"{path} is the log of batch {header['batch']}, not of {batch}")
    for relation, times, size in header["segments"]:
        at += -at % ALIGNMENT
        yield Segment(relation, times, data[at : at + size])
        at += size
