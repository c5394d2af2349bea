"""A snapshot beside the writer, made of files that no longer change: the last snapshot and the sealed logs behind it.

``python -m viewlet.database.compaction`` is a process of its own. It has no engine, takes no lock, and replaces no
file. It writes a draft, which counts once the writer's process has adopted it. So it may be killed at any moment, and
it ends with that process.

A relation whose rows only came is copied. Where rows left, DuckDB sums up how often each row is there. It puts aside in
files what is too much for its memory.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.database.memory import Database
from viewlet.database.recovery import Packed, Replay, opened
from viewlet.durable.directory import read_log, read_manifest, read_snapshot
from viewlet.durable.records import Appender
from viewlet.errors import CorruptError, StorageError
from viewlet.program.encoding import Row
from viewlet.rows.keys import one_nan
from viewlet.rows.ledger import CHUNK, Blob, schema_of, stored_blobs, write_snapshot
from viewlet.schema import Relation

MEMORY = "512MB"  # of DuckDB
LATER = 10  # as `nice` has it: a snapshot is never urgent


def compact(path: Path, number: int, draft: Path) -> int:
    """Write a snapshot of all that came before the log ``number`` to ``draft``; its length in bytes."""
    manifest = read_manifest(path)
    assert manifest is not None
    aside = draft.with_name(f"{draft.name}.aside")
    aside.mkdir()
    try:
        with (aside / "rows").open("w+b") as file:
            declare = Database(engine="interpreter").create_function
            replay = Sums(manifest.dialect, _Functions(), declare, Kept(file).keep)
            for payload in read_snapshot(path, manifest):
                replay.take(payload)
            for log in range(manifest.number, number):
                for payload, _ in read_log(path, log, sealed=True):
                    replay.take(payload)
            out = Appender(draft, 0)
            write_snapshot(out, replay.scripts, _rows(replay, aside))
        out.sync()
        out.close()
        return out.size
    finally:
        shutil.rmtree(aside, ignore_errors=True)


class _Functions(dict[str, Any]):
    """Python functions, which only their own process has. Nothing here depends on what they return."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return lambda *arguments: None


class Sums(Replay):
    """Of rows in no order. Those that came one by one are at the front, and few: most are packed."""

    def _take_one(self, name: str, row: Row, times: int) -> None:
        parts = self.parts.setdefault(name, [])
        if not parts or isinstance(parts[0], tuple):
            parts.insert(0, [])
        few = parts[0]
        assert isinstance(few, list)
        few.append((one_nan(row), times))
        if len(few) == CHUNK:
            parts[:1] = self.packed(name, few)

    def in_arrow(self, name: str) -> list[Packed]:
        packed = ([part] if isinstance(part, tuple) else self.packed(name, part) for part in self.parts.get(name, ()))
        return [part for parts in packed for part in parts]


class Kept:
    """Bytes in a file instead of in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._end = file, 0

    def keep(self, data: bytes) -> pa.Buffer:
        start, before = self._end, self._end % mmap.ALLOCATIONGRANULARITY
        self._file.write(data)
        self._file.flush()
        self._end += len(data)
        mapped = mmap.mmap(self._file.fileno(), before + len(data), access=mmap.ACCESS_READ, offset=start - before)
        return pa.py_buffer(mapped).slice(before)


# -- what rows come to -------------------------------------------------------------------------------------------------


def _rows(replay: Sums, aside: Path) -> Iterator[Blob]:
    for relation in replay.translation.script.relations:
        parts = replay.in_arrow(relation.name)
        if all(times > 0 for times, _ in parts):
            yield from _joined(relation, parts)
        else:
            yield from _netted(relation, parts, aside)


def _joined(relation: Relation, parts: Sequence[Packed]) -> Iterator[Blob]:
    """As they are, but small batches together."""
    waiting: list[pa.RecordBatch] = []
    often, rows = 0, 0
    for times, part in parts:
        batch = opened(part)
        if waiting and (times != often or rows + batch.num_rows > CHUNK):
            yield relation.name, often, _one(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        often, rows = times, rows + batch.num_rows
    if waiting:
        yield relation.name, often, _one(waiting)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _netted(relation: Relation, parts: Sequence[Packed], aside: Path) -> Iterator[Blob]:
    """Each row once, with the sum of how often it came and went."""
    import duckdb

    fields = [pa.field("n", pa.int64()), *schema_of(relation)]
    held = pa.schema([(f"c{i}", field.type) for i, field in enumerate(fields)])
    given = pa.RecordBatchReader.from_batches(held, (_weighed(times, opened(part), held) for times, part in parts))
    columns = ", ".join(map(_canonical, held.names[1:], held.types[1:]))
    config: dict[str, Any] = {"memory_limit": MEMORY, "threads": 1, "temp_directory": str(aside)}
    with duckdb.connect(config=config) as database:
        database.register("given", given)
        sums = f"SELECT CAST(sum(c0) AS BIGINT), {columns} FROM given GROUP BY ALL HAVING sum(c0) <> 0"
        for batch in database.sql(sums).to_arrow_reader(CHUNK):
            if pc.min(batch.column(0)).as_py() < 0:
                raise CorruptError(f"more rows of {relation.name} left than came")
            yield from stored_blobs(relation, pa.StructArray.from_arrays(batch.columns, fields=fields))


def _weighed(times: int, batch: pa.RecordBatch, held: pa.Schema) -> pa.RecordBatch:
    often = pa.repeat(pa.scalar(times, pa.int64()), batch.num_rows)
    return pa.RecordBatch.from_arrays([often, *batch.columns], schema=held)


def _canonical(name: str, type_: pa.DataType) -> str:
    """One NaN and one zero."""
    return f"CASE WHEN isnan({name}) THEN 'nan' ELSE {name} + 0.0::DOUBLE END" if pa.types.is_float64(type_) else name


# -- the process -------------------------------------------------------------------------------------------------------


def _end_with_the_writer() -> None:
    """Its death closes the pipe."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def main() -> None:
    threading.Thread(target=_end_with_the_writer, daemon=True).start()
    os.nice(LATER)
    order = json.loads(sys.argv[1])
    draft = Path(order["draft"])
    try:
        told: dict[str, Any] = {"bytes": compact(Path(order["path"]), order["number"], draft)}
    except (CorruptError, StorageError, OSError) as error:
        told = {"failed": str(error)}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
