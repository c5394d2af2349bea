"""What a durable database writes down: rows that came and went, and scripts, in the order in which they counted.

The payload of a record is a line of JSON, and behind it blobs of Arrow IPC whose lengths the line has:

* ``{"events": [[relation, times, cells], …]}``: a few rows, as engines hold them;
* ``{"rows": [[relation, times, bytes], …]}``: many rows of one relation that all come, or all go, to a blob;
* ``{"script": text, "functions": {…}, "rows": […]}``: definitions, and the rows that statements among them changed.

Rows have the columns that users give. Derived columns are computed again when a directory is opened.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.durable.beside import Beside
from viewlet.durable.directory import Directory, Draft
from viewlet.durable.records import Appender
from viewlet.program.encoding import Row, Stored
from viewlet.rows import arrow
from viewlet.rows.boundary import Encoder, encoder, to_key
from viewlet.rows.keys import Event
from viewlet.schema import REAL, TIMESTAMPTZ, Column, Relation, Type

OPS = {"+": 1, "-": -1}
FEW = 32  # rows that are smaller and faster as JSON
CHUNK = 1 << 16  # rows of one blob
ENCODED = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make an encoder for each record
Blob = tuple[str, int, pa.RecordBatch]  # a relation, how often each row comes (or goes), the rows


def opposite(op: Any) -> Any:
    """The op of the event that takes another back."""
    return -OPS[op] if isinstance(op, str) else -op


@dataclass(frozen=True)
class Script:
    """What was executed, and the signatures of the Python functions in it."""

    text: str
    functions: Mapping[str, Any]

    @property
    def line(self) -> Mapping[str, Any]:
        return {"script": self.text, "functions": self.functions}


@dataclass(frozen=True)
class Shape:
    """What is made once for all rows of a relation."""

    relation: Relation
    encode: Encoder
    schema: pa.Schema  # of the columns that users give
    width: int  # how many these are
    head: bytes  # of a stream of Arrow IPC with this schema
    name: bytes  # in JSON
    is_plain: bool  # Arrow's values are what engines hold

    @staticmethod
    def of(relation: Relation) -> Shape:
        schema, name = schema_of(relation), json.dumps(relation.name).encode()
        is_plain = all(column.type == column.type.held for column in relation.given)
        return Shape(relation, encoder(relation), schema, len(schema), bytes(schema.serialize()), name, is_plain)

    def payload(self, times: int, rows: pa.RecordBatch) -> list[Any]:
        """Of a record that has these rows: what :func:`payload` makes of them, in less time."""
        body = rows.serialize()
        line = b'{"rows":[[%s,%d,%d]]}\n' % (self.name, times, len(self.head) + body.size)
        return [line, self.head, body]


class Ledger:
    """Tells a directory's log what an update did, when it is done and before anybody is told."""

    def __init__(self, directory: Directory, scripts: Iterable[Script]) -> None:
        """``scripts`` are those that were noted already."""
        self._directory = directory
        self._scripts = [(0, script) for script in scripts]  # and where each begins in the log
        self._shapes: dict[str, Shape] = {}

    @property
    def size(self) -> int:
        return self._directory.appender.size

    @property
    def scripts(self) -> list[Script]:
        return [script for _, script in self._scripts]

    def take_back(self, size: int) -> None:
        """An update that was noted is undone."""
        if size < self.size:
            self._directory.appender.take_back(size)
            self._scripts = [(at, script) for at, script in self._scripts if at < size]

    def events(self, relations: Mapping[str, Relation], events: Sequence[Event]) -> None:
        """Rows of cells."""
        if len(events) <= FEW:
            width = {name: self._shape(relations[name]).width for name, _, _ in events}
            self._append({"events": [[name, times, row[: width[name]]] for name, row, times in events if times]}, [])
        else:
            self._append({}, blobs(relations, events))

    def rows(self, relation: Relation, times: int, rows: Sequence[Any]) -> None:
        """Rows that an engine took, in any form that users have."""
        encode = self._shape(relation).encode
        cells = (encode(row) or to_key(relation, row, number) for number, row in enumerate(rows))
        self.events({relation.name: relation}, [(relation.name, row, times) for row in cells])

    def shown(self, relation: Relation, times: int, rows: Any) -> None:
        """The same as Arrow, from the native engine."""
        shape, batch = self._shape(relation), pa.record_batch(rows)
        given = pa.RecordBatch.from_arrays(batch.columns, schema=shape.schema)  # which any column may be NULL in
        self._directory.appender.append(shape.payload(times, given))

    def replaced(self, relation: Relation, went: pa.RecordBatch, came: pa.RecordBatch) -> None:
        """Rows that went for others with their keys, as Arrow from the native engine."""
        schema = self._shape(relation).schema
        both = ((1, came), (-1, went))
        blobs = [(relation.name, times, pa.RecordBatch.from_arrays(b.columns, schema=schema)) for times, b in both]
        self._append({}, blobs)

    def batch(self, relation: Relation, times: int, rows: pa.RecordBatch) -> None:
        """The same as an Arrow batch."""
        shape = self._shape(relation)
        batch = rows if shape.is_plain and rows.schema.equals(shape.schema) else fitted_batch(relation.as_given, rows)
        if batch is None:
            self.rows(relation, times, list(arrow.rows(rows, relation.name)))
        else:
            self._directory.appender.append(shape.payload(times, batch))

    def arrow_events(self, relations: Mapping[str, Relation], events: pa.RecordBatch) -> None:
        """A batch of events that an engine took; in each relation rows that come before those that go."""
        blobs = list[Blob]() if "row" not in events.schema.names else None
        names, ops = events["relation"].cast(pa.string()), events["op"]
        for name in names.unique().to_pylist() if blobs is not None else ():
            mine = pc.equal(names, name)
            for times in sorted(filter(None, ops.filter(mine).unique().to_pylist()), reverse=True):
                rows = events[name].filter(pc.and_(mine, pc.equal(ops, times)))
                batch = fitted_batch(relations[name].as_given, pa.RecordBatch.from_struct_array(rows))
                blobs = None if blobs is None or batch is None else [*blobs, (name, times, batch)]
        if blobs is None:
            self.mixed(relations, arrow.events(events))
        else:
            self._append({}, blobs)

    def mixed(self, relations: Mapping[str, Relation], events: Iterable[tuple[Any, Any, Any]]) -> None:
        """Events (times, relation, row) that an engine took; relations may go by their numbers."""
        names = list(relations)
        taken: list[Event] = []
        for number, (op, name, row) in enumerate(events):
            relation = relations[names[name] if isinstance(name, int) else name]
            times = OPS[op] if isinstance(op, str) else int(op)
            taken.append((relation.name, self._shape(relation).encode(row) or to_key(relation, row, number), times))
        self.events(relations, taken)

    def define(
        self, text: str, functions: Mapping[str, Any], relations: Mapping[str, Relation], changed: Iterable[Event]
    ) -> None:
        at, script = self.size, Script(text, functions)
        self._append(script.line, blobs(relations, changed))
        self._scripts.append((at, script))

    def _append(self, line: Mapping[str, Any], blobs: Sequence[Blob]) -> None:
        self._directory.appender.append(payload(line, blobs))

    def _shape(self, relation: Relation) -> Shape:
        known = self._shapes.get(relation.name)
        if known is None or known.relation is not relation:
            known = self._shapes[relation.name] = Shape.of(relation)
        return known

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def snapshot(self, rows: Iterable[Blob]) -> None:
        """All scripts and all rows, in place of the log so far."""
        draft = self._directory.next_snapshot()
        try:
            write_snapshot(draft, self.scripts, rows)
            self._directory.take(draft)
        except BaseException:
            draft.give_up()
            raise
        self._scripts = [(-1, script) for script in self.scripts]

    def snapshot_beside(self) -> Beside:
        """The same by another process, which has begun when this returns. What is noted from now on is not in it."""
        number = self._directory.seal()
        self._scripts = [(-1, script) for script in self.scripts]
        return Beside(self._directory, number)

    @property
    def bytes(self) -> tuple[int, int]:
        """Of the logs, and of the snapshot before them."""
        return self._directory.logged, self._directory.manifest.rows_bytes

    @property
    def outgrown(self) -> bool:
        """Whether the logs are as long as the snapshot before them."""
        log, snapshot = self.bytes
        return log >= snapshot

    def sync(self) -> None:
        self._directory.sync()

    def close(self) -> None:
        self._directory.close()


def write_snapshot(draft: Draft | Appender, scripts: Iterable[Script], rows: Iterable[Blob]) -> None:
    for script in scripts:
        draft.append(payload(script.line, []))
    for blob in rows:
        draft.append(payload({}, [blob]))


def payload(line: Mapping[str, Any], blobs: Sequence[Blob]) -> list[Any]:
    """The buffers of a record's payload."""
    buffers, lengths = list[Any](), []
    for name, times, batch in blobs:
        head, body = batch.schema.serialize(), batch.serialize()
        lengths.append([name, times, head.size + body.size])
        buffers += [head, body]
    whole = {**line, "rows": lengths} if blobs else line
    return [ENCODED(whole).encode() + b"\n", *buffers]


# -- rows as Arrow -----------------------------------------------------------------------------------------------------


def schema_of(relation: Relation) -> pa.Schema:
    """Of cells: a moment has no zone there."""
    return pa.schema([(column.name, arrow.arrow_type(column.type.held)) for column in relation.given])


def blobs(relations: Mapping[str, Relation], events: Iterable[Event]) -> list[Blob]:
    """What events come to, by relation: rows that come before those that go."""
    sums: dict[str, Counter[Row]] = defaultdict(Counter)
    for name, row, times in events:
        sums[name][row] += times
    return [blob for name, rows in sums.items() for blob in table_blobs(relations[name], rows)]


def table_blobs(relation: Relation, rows: Mapping[Row, int]) -> Iterator[Blob]:
    by_times: dict[int, list[Row]] = defaultdict(list)
    for row, times in rows.items():
        by_times[times].append(row)
    for times in sorted(filter(None, by_times), reverse=True):
        same = by_times[times]
        for start in range(0, len(same), CHUNK):
            yield relation.name, times, cells_batch(relation.as_given, same[start : start + CHUNK])


def stored_blobs(relation: Relation, rows: pa.StructArray) -> Iterator[Blob]:
    """Rows of a table as the native engine shows them: behind a column of how often each is there."""
    often = rows.field(0)
    for times in sorted(pc.unique(often).to_pylist()):
        same = rows if pc.min(often).as_py() == pc.max(often).as_py() else rows.filter(pc.equal(often, times))
        yield relation.name, times, _without_times(schema_of(relation), same)


def _without_times(given: pa.Schema, rows: pa.StructArray) -> pa.RecordBatch:
    """Only the columns that users give."""
    return pa.RecordBatch.from_arrays(rows.flatten()[1 : 1 + len(given)], schema=given)


def cells_batch(relation: Relation, rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of cells. They may have more columns, derived ones, behind those of the relation."""
    columns = list(zip(*rows, strict=True))
    arrays = [arrow.held_array(c.type.held, cells) for c, cells in zip(relation.columns, columns, strict=False)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(relation))


def batch_cells(relation: Relation, batch: pa.RecordBatch) -> Iterator[Row]:
    """The opposite of :func:`cells_batch`, for a relation without derived columns."""
    columns = [_cells(c.type.held, column) for c, column in zip(relation.columns, batch.columns, strict=True)]
    return zip(*columns, strict=True)


def _cells(type_: Type, column: pa.Array) -> list[Stored]:
    match type_.kind:
        case "DECIMAL":
            values = column.to_pylist()
            return [None if v is None else int(arrow.EVERY_DIGIT.scaleb(v, type_.scale)) for v in values]
        case "DATE":
            return list(column.cast(pa.int32()).to_pylist())
        case "TIMESTAMP":
            return list(column.cast(pa.int64()).to_pylist())
        case "DOUBLE":
            return [None if v is None else math.nan if v != v else v + 0.0 for v in column.to_pylist()]
    return list(column.to_pylist())


def fitted_batch(relation: Relation, batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """The columns of the relation, if each has its type or one that differs in width alone."""
    arrays = []
    for column in relation.columns:
        place = batch.schema.get_field_index(column.name)
        values = None if place < 0 else _fitted(column, batch.column(place))
        if values is None:
            return None
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(relation))


def _fitted(column: Column, values: pa.Array) -> pa.Array | None:
    wanted, given = arrow.arrow_type(column.type.held), values.type
    if column.type == TIMESTAMPTZ:
        return values.view(wanted) if given == arrow.ZONED else None
    if column.type == REAL:
        return values.cast(wanted) if given == pa.float32() else None
    if column.type != column.type.held:
        return None  # a UUID in capitals, perhaps
    if given == wanted:
        return values
    same = pa.types.is_integer(given) and pa.types.is_integer(wanted)
    same = same or (pa.types.is_decimal(given) and pa.types.is_decimal(wanted))
    same = same or (wanted == pa.string() and given in (pa.large_string(), pa.string_view()))
    same = same or (wanted == pa.string() and pa.types.is_dictionary(given) and given.value_type == pa.string())
    return pc.cast(values, wanted) if same else None
