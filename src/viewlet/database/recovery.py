"""From records back to definitions and rows. No engine has a part in it: any one can go on from what comes out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from viewlet.duck import is_function
from viewlet.engines.native.bridge import Cells
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.engine import MOST_COPIES
from viewlet.errors import CorruptError, Error, SqlError, refusing_depth
from viewlet.program.encoding import Row
from viewlet.rows import arrow
from viewlet.rows.door import with_derived
from viewlet.rows.elements import with_element_tables
from viewlet.rows.keys import one_nan
from viewlet.rows.ledger import CHUNK, Script, batch_cells, blobs
from viewlet.schema import CLOCK, Dialect, Relation
from viewlet.session.changes import Subscriptions
from viewlet.session.native import NativeSession
from viewlet.session.session import Tables
from viewlet.sql.define import Dropped, Moved
from viewlet.sql.source import before_the_next
from viewlet.sql.translate import nothing

Functions = Mapping[str, Callable[..., Any]]
CreateFunction = Callable[[str, Callable[..., Any], Sequence[str], str], None]
Few = list[tuple[Row, int]]
Packed = tuple[int, pa.Buffer]  # how often each row came or went, and the rows in Arrow's format, opened when used
Part = Few | Packed
Keep = Callable[[bytes], pa.Buffer]


class Replay:
    """What records come to, one after the other."""

    def __init__(
        self, dialect: Dialect, functions: Functions, create_function: CreateFunction, keep: Keep = pa.py_buffer
    ) -> None:
        """``keep`` says where rows in Arrow's format are kept that came one by one."""
        self.translation = nothing(dialect)
        self.scripts: list[Script] = []
        self.parts: dict[str, list[Part]] = {}
        self._given, self._create_function, self._keep = functions, create_function, keep

    def take(self, payload: memoryview) -> None:
        """One record."""
        buffer = pa.py_buffer(payload)
        end = _line_end(payload)
        line = json.loads(bytes(payload[:end]))
        if "script" in line:
            self._define(line["script"], line["functions"])
        for name, times, cells in line.get("events", ()):
            self._take_one(name, tuple(cells), times)
        at = end + 1
        for name, times, length in line.get("rows", ()):
            self.parts.setdefault(name, []).append((times, buffer.slice(at, length)))
            at += length

    def _take_one(self, name: str, row: Row, times: int) -> None:
        parts = self.parts.setdefault(name, [])
        if not parts or isinstance(parts[-1], tuple):
            parts.append([])
        last = parts[-1]
        assert isinstance(last, list)
        last.append((one_nan(row), times))
        if len(last) == CHUNK:
            parts[-1:] = self.packed(name, last)

    def packed(self, name: str, few: Few) -> Iterator[Packed]:
        """What they come to, in a tenth of the memory: rows that come before those that go."""
        relation = self._relation(name)
        for _, times, batch in blobs({name: relation}, [(name, row, times) for row, times in few]):
            yield times, self._keep(batch.schema.serialize().to_pybytes() + batch.serialize().to_pybytes())

    def _relation(self, name: str) -> Relation:
        return next(relation for relation in self.translation.script.relations if relation.name == name)

    # -- definitions ---------------------------------------------------------------------------------------------------

    def _define(self, script: str, functions: Mapping[str, Any]) -> None:
        for name, declared in functions.items():
            self._ask_for(name, declared["parameters"], declared["returns"])
        before = before_the_next(self.translation.script.source)
        try:
            with refusing_depth():
                self.translation = self.translation.followed(before + script)
        except SqlError as error:
            message = "this viewlet does not take a script that was executed in this directory"
            raise Error(f"{message}; the one that wrote it reads it. {error}") from error
        self.scripts.append(Script(script, functions))
        for step in self.translation.steps:
            match step:
                case Dropped(name):
                    self.parts.pop(name, None)
                case Moved(name, new):
                    self.parts[new] = self.parts.pop(name, [])

    def _ask_for(self, name: str, parameters: list[str], returns: str) -> None:
        """Python functions are not stored."""
        if name in self._given:
            self._create_function(name, self._given[name], parameters, returns)
        elif not is_function(name):
            signature = f"{name}({', '.join(parameters)}) → {returns}"
            hint = f"connect(…, functions={{{name!r}: …}})"
            raise Error(f"a view calls the Python function {signature}, which no directory stores: give it, {hint}")

    # -- rows ----------------------------------------------------------------------------------------------------------

    def has(self, rows: int) -> bool:
        """Whether at least so many rows came or went."""
        for part in (part for parts in self.parts.values() for part in parts):
            rows -= len(part) if isinstance(part, list) else opened(part[1]).num_rows
            if rows <= 0:
                return True
        return False

    def tables(self) -> Tables:
        """The rows of each relation, derived columns included."""
        relations = self.translation.script.relations
        given = {relation.name: self._counted(relation.name) for relation in relations}
        return with_element_tables(with_derived(given, relations), relations)

    def session(self, compiled: Compiled, subscriptions: Subscriptions) -> NativeSession:
        """Machine code takes the rows as they lie in the files, each as often as it came or went.

        SpoiledError: a number in between is too large for it, though the last one may not be.
        """
        relations = self.translation.script.relations
        if any(relation.of for relation in relations):
            return NativeSession(compiled, self.tables(), subscriptions)
        first = [relation for relation in relations if relation.static or relation.name == CLOCK.name]  # a tick is dear
        tables = with_derived({relation.name: self._counted(relation.name) for relation in first}, first)
        session = NativeSession(compiled, tables, subscriptions)
        with session.engine.state.any_order():
            for relation in relations:
                for part in () if relation in first else self.parts.get(relation.name, ()):
                    _feed(session, relation, part)
        return session

    def _counted(self, name: str) -> Counter[Row]:
        relation = self._relation(name)
        rows: Counter[Row] = Counter()
        for part in self.parts.get(name, ()):
            if isinstance(part, list):
                for row, n in part:
                    rows[row] += n
            else:
                for row in batch_cells(relation.as_given, opened(part[1])):
                    rows[row] += part[0]
        if any(times < 0 for times in rows.values()):
            raise CorruptError(f"more rows of {name} left than came: a file of the directory is of another time")
        return +rows


def opened(part: pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(part) as stream:
        return stream.read_next_batch()


def _feed(session: NativeSession, relation: Relation, part: Part) -> None:
    state, door = session.engine.state, session.doors.get(relation.name)
    if isinstance(part, list):
        rows = [row for row, _ in part]
        wide = rows if door is None else door.stored(rows)
        state.events([(n, relation.name, Cells(row)) for row, (_, n) in zip(wide, part, strict=True)])
        return
    times, held = part[0], opened(part[1])
    pairs = zip(relation.given, held.columns, strict=True)
    columns = [arrow.made_of(column.type, values) for column, values in pairs]
    batch = pa.RecordBatch.from_arrays(columns, [column.name for column in relation.given])
    if door is not None:
        batch = arrow.batch(door.table(pa.Table.from_batches([batch])), relation.name)
    for done in range(0, abs(times), MOST_COPIES):
        n = min(abs(times) - done, MOST_COPIES) * (1 if times > 0 else -1)
        if not state.arrow_rows(relation.name, n, batch):
            cells = batch_cells(relation.as_given, held)
            state.many(relation.name, n, list(map(Cells, cells if door is None else door.stored(cells))))


def _line_end(payload: memoryview) -> int:
    """JSON has no line breaks of its own."""
    step = 1 << 12
    for start in range(0, len(payload), step):
        at = bytes(payload[start : start + step]).find(b"\n")
        if at >= 0:
            return start + at
    raise CorruptError("a record is not of the form that this viewlet knows")
