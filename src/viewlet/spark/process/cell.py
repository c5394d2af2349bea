"""One program at work in a cell: rows in, the changed rows of its results and the changed entries of its views out.

A cell of machine code knows what changed; one of generated Python, for programs and machines that cannot have machine
code, compares everything before and after. Both check rows as a database does, and an update that fails leaves a cell
that is to be thrown away.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from viewlet.database.view import weights
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.native.compiled import Compiled
from viewlet.errors import CorruptError
from viewlet.loops.infer import Kinds, program_kinds
from viewlet.program.encoding import Row
from viewlet.program.kinds import BOOLEAN, TEXT, Exact, Inexact, Kind, Unfit
from viewlet.program.trigger import Program, Result
from viewlet.rows import arrow
from viewlet.rows.arrow import made_of
from viewlet.session.changes import Subscriptions, differences
from viewlet.session.native import NativeSession
from viewlet.session.session import Session
from viewlet.spark.process.events import Rows
from viewlet.spark.process.stored import stored_rows

MOST_DIGITS = 38  # of a decimal128
WEIGHT = pa.field("weight", pa.int64(), nullable=False)


class Cell(Protocol):
    """A fresh cell has said nothing of its rows yet: its first changes are all that it has."""

    engine: str

    @property
    def is_exact(self) -> bool:
        """No sum of doubles: the same rows come to the same numbers, in whatever order they come."""

    def stored(self) -> Iterator[Rows]:
        """All rows of its tables."""

    def apply(self, relation: str, times: int, rows: pa.RecordBatch) -> None:
        """Rows come, or go if ``times`` is negative. A static table's rows come before all others."""

    def tick(self, clock: str, moment: pa.RecordBatch) -> None:
        """The one row of a clock gives way to another."""

    def changes(self) -> dict[str, pa.RecordBatch]:
        """Result ↦ (weight, columns…) since the last call; those without changes are left out."""

    def partials(self) -> dict[str, pa.RecordBatch]:
        """View ↦ (weight, k0, k1, …, value) since the last call: -1 beside what an entry was, +1 beside what it is."""

    def rows(self, result: str) -> pa.RecordBatch:
        """(weight, columns…) of all rows."""

    def bytes(self) -> int: ...

    def save(self, fd: int) -> int:
        """The whole state into a file; how many bytes that took."""

    def load(self, fd: int) -> None:
        """Into a fresh cell, the state of one that was saved; of what it holds then, nothing counts as changed."""


def open_cell(program: Program, compiled: Compiled | None, results: Sequence[str], views: Sequence[str]) -> Cell:
    """``results`` and ``views`` are those whose changes are wanted; ``compiled`` watches them."""
    if compiled is None:
        return PythonCell(program, results, views)
    return NativeCell(compiled, results, views)


def change_schema(result: Result) -> pa.Schema:
    return pa.schema([WEIGHT, *arrow.schema(result)])


def partial_schema(columns: Sequence[Kind], value: Kind) -> pa.Schema:
    keys = [pa.field(f"k{i}", partial_type(kind)) for i, kind in enumerate(columns)]
    return pa.schema([WEIGHT, *keys, pa.field("value", partial_type(value))])


def partial_type(kind: Kind) -> pa.DataType:
    match kind:
        case Exact(0, bits) if bits <= 63:
            return pa.int64()
        case Exact(scale, _):
            return pa.decimal128(MOST_DIGITS, scale)
        case Inexact():
            return pa.float64()
        case _:
            return pa.bool_() if kind == BOOLEAN else pa.string()


def _microseconds(moment: pa.RecordBatch) -> int:
    return int(moment.column(0).cast(pa.int64())[0].as_py())


def _nobody() -> Subscriptions:
    return Subscriptions(None)


def _is_exact(kinds: Kinds) -> bool:
    return not any(isinstance(kind, Inexact) for kind in kinds.values.values())


# -- machine code ------------------------------------------------------------------------------------------------------


class NativeCell:
    """Results that machine code cannot watch are compared like those of Python."""

    engine = "native"

    def __init__(self, compiled: Compiled, results: Sequence[str], views: Sequence[str]) -> None:
        self._session = NativeSession(compiled, {}, _nobody())
        program, kinds, engine = compiled.program, compiled.kinds, self._session.engine
        self._watched = [program.result(name) for name in results if engine.watches(name)]
        self._compared = Compared(self._session, [name for name in results if not engine.watches(name)])
        self._views = {name: partial_schema(kinds.columns[name], kinds.values[name]) for name in views}
        self.is_exact = _is_exact(kinds)

    def stored(self) -> Iterator[Rows]:
        return stored_rows(self._session)

    def apply(self, relation: str, times: int, rows: pa.RecordBatch) -> None:
        self._session.change(relation, rows, times)

    def tick(self, clock: str, moment: pa.RecordBatch) -> None:
        self._session.tick(_microseconds(moment), clock)

    def changes(self) -> dict[str, pa.RecordBatch]:
        engine = self._session.engine
        batches = {result.name: _shown(result, engine.changes(result.name)) for result in self._watched}
        return {name: batch for name, batch in batches.items() if batch.num_rows} | self._compared.changes()

    def partials(self) -> dict[str, pa.RecordBatch]:
        engine = self._session.engine
        batches = {name: _as(schema, engine.partials(name)) for name, schema in self._views.items()}
        return {name: batch for name, batch in batches.items() if batch.num_rows}

    def rows(self, result: str) -> pa.RecordBatch:
        exported = self._session.engine.result(result)
        if exported is None:
            return self._compared.rows(result)
        columns = pa.array(exported).flatten()
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(columns[0]))
        return _made(self._session.program.result(result), ones, columns)

    def bytes(self) -> int:
        return sum(size for _, _, size in self._session.engine.memory())

    def save(self, fd: int) -> int:
        return self._session.engine.save(fd)

    def load(self, fd: int) -> None:
        self._session.engine.restore(fd)
        self._compared.changes()


def _shown(result: Result, rows: Any) -> pa.RecordBatch:
    weight, *columns = pa.array(rows).flatten()
    return _made(result, weight, columns)


def _made(result: Result, weight: pa.Array, held: Sequence[pa.Array]) -> pa.RecordBatch:
    """Rows of a result from what the engine holds of each column."""
    shown = [made_of(column.type, values) for column, values in zip(result.columns, held, strict=True)]
    return pa.RecordBatch.from_arrays([weight, *shown], schema=change_schema(result))


def _as(schema: pa.Schema, rows: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(pa.array(rows).flatten(), schema=schema)


# -- generated Python --------------------------------------------------------------------------------------------------


class Compared:
    """Results whose changes are found by looking at all of their rows before and after."""

    def __init__(self, session: Session, results: Sequence[str]) -> None:
        self._session = session
        self._shown: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in results}

    def changes(self) -> dict[str, pa.RecordBatch]:
        batches = {}
        for name, before in self._shown.items():
            after = self._shown[name] = self._weights(name)
            if changed := differences(before, after):
                batches[name] = self._batch(name, changed)
        return batches

    def rows(self, result: str) -> pa.RecordBatch:
        return self._batch(result, [(weight, row) for row, weight in self._weights(result).items()])

    def _weights(self, name: str) -> Counter[tuple[Any, ...]]:
        return weights(self._session.program.result(name), self._session.engine.read)

    def _batch(self, name: str, weighed: Sequence[tuple[int, tuple[Any, ...]]]) -> pa.RecordBatch:
        result = self._session.program.result(name)
        columns = list(zip(*(row for _, row in weighed), strict=True)) or [()] * len(result.columns)
        values = [arrow.written(c, column.type) for c, column in zip(columns, result.columns, strict=True)]
        return _from_columns(change_schema(result), [[weight for weight, _ in weighed], *values])


class PythonCell:
    """Saves its base tables: the views follow from them."""

    engine = "python"

    def __init__(self, program: Program, results: Sequence[str], views: Sequence[str]) -> None:
        self._program, self._results = program, results
        self._entries: dict[str, dict[Any, Any]] = {name: {} for name in views}
        self.is_exact = _is_exact(program_kinds(program))
        self._begin({})

    def _begin(self, tables: Mapping[str, Mapping[Row, int]]) -> None:
        self._session = Session(self._program, PythonEngine, tables, _nobody())
        self._compared = Compared(self._session, self._results)

    def stored(self) -> Iterator[Rows]:
        return stored_rows(self._session)

    def apply(self, relation: str, times: int, rows: pa.RecordBatch) -> None:
        self._session.change(relation, rows, times)

    def tick(self, clock: str, moment: pa.RecordBatch) -> None:
        self._session.tick(_microseconds(moment), clock)

    def changes(self) -> dict[str, pa.RecordBatch]:
        return self._compared.changes()

    def rows(self, result: str) -> pa.RecordBatch:
        return self._compared.rows(result)

    def partials(self) -> dict[str, pa.RecordBatch]:
        batches = {}
        for name, before in self._entries.items():
            after = self._entries[name] = self._session.engine.entries(name)
            rows = [*_entry_changes(-1, before, after), *_entry_changes(1, after, before)]
            if rows:
                batches[name] = self._partial_batch(name, rows)
        return batches

    def _partial_batch(self, name: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        kinds = program_kinds(self._program)
        every = (*kinds.columns[name], kinds.values[name])
        schema = partial_schema(kinds.columns[name], kinds.values[name])
        return _from_rows(schema, ((w, *(_plain(v, k) for v, k in zip(row, every, strict=True))) for w, *row in rows))

    def bytes(self) -> int:
        """Roughly: dictionaries and the tuples in them, not what those share."""
        engine = self._session.engine
        held: list[Mapping[Any, Any]] = [engine.table(r.name) for r in self._program.relations]
        held += [engine.entries(v.name) for v in self._program.views]
        return sum(sys.getsizeof(content) + sum(map(sys.getsizeof, content)) for content in held)

    def save(self, fd: int) -> int:
        tables = {name: [[n, *row] for row, n in rows.items()] for name, rows in self._session.tables().items()}
        with os.fdopen(os.dup(fd), "wb") as out:
            return out.write(json.dumps(tables).encode())

    def load(self, fd: int) -> None:
        with os.fdopen(os.dup(fd), "rb") as file:
            saved = _tables(file.read())
        if set(saved) != {r.name for r in self._program.relations}:
            raise CorruptError("the snapshot is of another program: it has other tables")
        self._begin({name: {tuple(row): n for n, *row in rows} for name, rows in saved.items()})
        self.changes()
        self.partials()


def _tables(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        why = "machine code wrote it, perhaps, and here is no compiler"
        raise CorruptError(f"this snapshot was not written by generated Python: {why}") from None


def _entry_changes(sign: int, these: Mapping[Any, Any], others: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """(sign, key…, value) of the entries that the others do not have like this."""
    return ((sign, *key, value) for key, value in these.items() if value and others.get(key, 0) != value)


def _plain(value: Any, kind: Kind) -> Any:
    """A scalar of the calculus as the Python value of its Arrow type."""
    if value is None or kind in (TEXT, BOOLEAN):
        return value
    if isinstance(kind, Inexact):
        return float(value)
    assert isinstance(kind, Exact)
    if partial_type(kind) == pa.int64():
        return int(value)
    return _decimal(Fraction(value), kind.scale)


def _decimal(value: Fraction, scale: int) -> Decimal:
    units = value * 10**scale
    if units.denominator != 1:
        raise Unfit(f"{value} has more than {scale} digits after the point")
    return Decimal(int(units)).scaleb(-scale, Context(prec=2 * MOST_DIGITS))


def _from_rows(schema: pa.Schema, rows: Iterator[tuple[Any, ...]]) -> pa.RecordBatch:
    return _from_columns(schema, list(zip(*rows, strict=True)) or [()] * len(schema))


def _from_columns(schema: pa.Schema, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
