"""Trigger programs without the boundary: compiled together with ``harness.hpp`` and driven through ctypes.

The same harness drives the hand-written programs and the generated ones, so their rates differ by the programs alone.
A program can be kept at work between two looks at it, and its views can be carried over to another one (``carry.hpp``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.engine.workload import Row, Workload
from viewlet.engines.native.build import build
from viewlet.errors import Error
from viewlet.program.trigger import Program
from viewlet.workloads.bulk import BulkStream

HERE = Path(__file__).parent
MODULE = '#include "bridge.hpp"\nVIEWLET_MODULE(viewlet_bench, viewlet::Program)\n'
BUFFERS = (VALUES, ENDS, VALID) = range(3)


@dataclass(frozen=True, slots=True)
class Kept:
    """A map of a program after a run."""

    name: str
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    rows: list[Row]
    kept: list[Kept]


def hand_written(query: str, *, trick: bool = False) -> Path:
    return HERE / "hand" / ("tricks" if trick else ".") / f"{query}.cpp"


def hand_source(query: str, *, trick: bool = False) -> str:
    shared = (HERE / "hand" / "tpch.hpp").read_text().replace("#pragma once\n", "")
    return hand_written(query, trick=trick).read_text().replace('#include "tpch.hpp"\n', shared)


def generated_source(program: Program) -> str:
    from viewlet.engines.native.emit.program import cpp_source

    return cpp_source(program)


def driven(source: str) -> str:
    """The program with all that drives it: what is built."""
    return source + MODULE + (HERE / "harness.hpp").read_text() + (HERE / "carry.hpp").read_text()


@dataclass(frozen=True, slots=True)
class Entries:
    """Of one view: the cells of the keys and the values, as the harness lays them out."""

    count: int
    cells: npt.NDArray[np.uint64]
    sums: npt.NDArray[np.uint64]


class AtWork:
    """A program with its maps, and the stream decoded for it: it takes the stream part by part."""

    def __init__(self, triggers: Triggers, harness: int, stream: BulkStream) -> None:
        self._triggers, self._library, self._harness = triggers, triggers.library, harness
        codes = [triggers.decode(harness, name, table) for name, table in stream.tables.items()]
        self._events = (stream.ops, np.array(codes, np.int8)[stream.codes], stream.places)

    def take(self, start: int, stop: int) -> float:
        """The CPU seconds of the triggers of these events."""
        arrays = self._between(start, stop)
        seconds = self._library.bench_run(self._harness, len(arrays[0]), *(a.ctypes.data for a in arrays))
        if seconds < 0:
            raise Error("a number did not fit")
        return float(seconds)

    def nanoseconds(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        """What each of these events took by the clock on the wall; one reading of the clock is in it."""
        arrays = self._between(start, stop)
        took = np.zeros(len(arrays[0]), np.uint64)
        pointers = (a.ctypes.data for a in (*arrays, took))
        if not self._library.bench_time_each(self._harness, len(took), *pointers):
            raise Error("a number did not fit")
        return took

    def clock(self) -> float:
        """Nanoseconds that one reading of that clock takes."""
        return float(self._library.bench_clock())

    def _between(self, start: int, stop: int) -> list[npt.NDArray[Any]]:
        return [np.ascontiguousarray(a[start:stop]) for a in self._events]

    def rows(self) -> list[Row]:
        return self._triggers.result(self._harness)

    def kept(self) -> list[Kept]:
        return list(self._triggers.kept(self._harness))

    def entries(self) -> dict[str, Entries]:
        """What every view holds."""
        by_view = {}
        for place, name in enumerate(_listed(self._library.bench_view)):
            count = self._library.bench_size(self._harness, place)
            if count < 0:
                raise Error(f"the harness cannot carry {name}")
            width = self._library.bench_width(place)
            entries = Entries(count, np.zeros(count * width + 1, np.uint64), np.zeros(2 * count + 2, np.uint64))
            self._library.bench_take(self._harness, place, entries.cells.ctypes.data, entries.sums.ctypes.data)
            by_view[name] = entries
        return by_view

    def adopt(self, views: Mapping[str, Entries]) -> None:
        """Take over what the views of another program held; an entry that is there already gets more."""
        for place, name in enumerate(_listed(self._library.bench_view)):
            e = views[name]
            self._library.bench_give(self._harness, place, e.count, e.cells.ctypes.data, e.sums.ctypes.data)


class Triggers:
    """A compiled program; each run starts with empty maps and decodes the stream anew, outside the timing."""

    def __init__(self, source: str, workload: Workload, strategy: str = "optimized") -> None:
        """The strategy that a generated source comes from says which views stand on static tables alone."""
        path = build(driven(source))
        if path is None:
            raise Error("there is no C++ compiler")
        self.library = declared(ctypes.CDLL(str(path)))
        self._workload, self._strategy = workload, strategy

    def run(self, stream: BulkStream) -> Run:
        with self.at_work(stream) as program:
            seconds = program.take(0, len(stream))
            return Run(seconds, program.rows(), program.kept())

    @contextmanager
    def at_work(self, stream: BulkStream | None = None) -> Iterator[AtWork]:
        """On the workload's whole stream, unless another is given."""
        with self._opened() as harness:
            self._load_static(harness)
            yield AtWork(self, harness, self._workload.stream if stream is None else stream)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        harness = self.library.bench_open()
        try:
            yield harness
        finally:
            self.library.bench_close(harness)

    # -- in ------------------------------------------------------------------------------------------------------------

    def decode(self, harness: int, relation: str, table: pa.Table) -> int:
        """Give the program a relation's rows; returns the number it has for the relation."""
        names = _listed(self.library.bench_relation)
        if relation not in names:
            raise Error(f"the program has no relation {relation}, only {', '.join(names)}")
        code = names.index(relation)
        self.library.bench_make_rows(harness, code, len(table))
        for place, column in enumerate(_listed(lambda place: self.library.bench_column(code, place))):
            cells = self._cells(harness, table[column].combine_chunks())
            if not self.library.bench_fill(harness, code, place, len(table), cells.ctypes.data):
                raise Error(f"the harness cannot fill {relation}.{column}")
        return code

    def _cells(self, harness: int, column: pa.ChunkedArray | pa.Array) -> np.ndarray:
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_string(column.type):
            encoded = column.dictionary_encode()
            ids = [self._text(harness, text) for text in encoded.dictionary.to_pylist()]
            return np.array(ids, np.uint32)[encoded.indices.to_numpy()]
        if pa.types.is_decimal(column.type):
            halves = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :]
            return np.ascontiguousarray(halves[: 2 * len(column) : 2])
        if pa.types.is_date(column.type):
            column = column.view(pa.int32())
        cells = column.to_numpy()
        return np.ascontiguousarray(cells if cells.dtype == np.float64 else cells.astype(np.int64))

    def _text(self, harness: int, text: str) -> int:
        encoded = text.encode()
        return self.library.bench_text(harness, encoded, len(encoded))

    def _load_static(self, harness: int) -> None:
        """Static tables; and, for a generated program, the views that follow from them alone."""
        for name, table in self._workload.static_tables.items():
            if name in _listed(self.library.bench_relation):
                self.library.bench_load(harness, self.decode(harness, name, table), len(table))
        self._put(harness, self._workload.static_views(self._strategy))

    def _put(self, harness: int, views: Mapping[str, Mapping[tuple[int, ...], int]]) -> None:
        places = {name: place for place, name in enumerate(_listed(self.library.bench_view))}
        for name in views.keys() & places.keys():
            for key, value in views[name].items():
                if not self.library.bench_put(harness, places[name], (ctypes.c_int64 * len(key))(*key), value):
                    raise Error(f"the harness cannot fill {name}")

    # -- out -----------------------------------------------------------------------------------------------------------

    def result(self, harness: int) -> list[Row]:
        length = self.library.bench_read(harness)
        if length < 0:
            raise Error("a value does not fit its column")
        precision, scale = ctypes.c_int(), ctypes.c_int()
        columns = []
        while name := self.library.bench_result_type(len(columns), ctypes.byref(precision), ctypes.byref(scale)):
            decimal = name.startswith(b"decimal")
            type_ = getattr(pa, name.decode())(*((precision.value, scale.value) if decimal else ()))
            columns.append(self._column(harness, len(columns), type_, length).to_pylist())
        return list(zip(*columns, strict=True))

    def _column(self, harness: int, place: int, type_: pa.DataType, length: int) -> pa.Array:
        values, ends, valid = (self._buffer(harness, place, which) for which in BUFFERS)
        if not pa.types.is_string(type_):
            return pa.Array.from_buffers(type_, length, [valid, values or pa.py_buffer(b"")])
        empty = pa.py_buffer(bytes(4))
        return pa.Array.from_buffers(type_, length, [valid, ends or empty, values or pa.py_buffer(b"")])

    def _buffer(self, harness: int, place: int, which: int) -> pa.Buffer | None:
        data = ctypes.c_void_p()
        size = self.library.bench_buffer(harness, place, which, ctypes.byref(data))
        return pa.py_buffer(ctypes.string_at(data, size)) if size else None

    def kept(self, harness: int) -> Iterator[Kept]:
        size, used = ctypes.c_uint64(), ctypes.c_uint64()
        place = 0
        while name := self.library.bench_map(harness, place, ctypes.byref(size), ctypes.byref(used)):
            yield Kept(name.decode(), size.value, used.value)
            place += 1


def _listed(name_at) -> list[str]:  # type: ignore[no-untyped-def]
    """The names that a C function gives for 0, 1, … until it gives none."""
    names: list[str] = []
    while (name := name_at(len(names))) is not None:
        names.append(name.decode())
    return names


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, word, long, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
    signatures = {
        "bench_open": (pointer, []),
        "bench_close": (None, [pointer]),
        "bench_relation": (text, [word]),
        "bench_column": (text, [word, word]),
        "bench_text": (word, [pointer, text, long]),
        "bench_make_rows": (None, [pointer, word, long]),
        "bench_fill": (ctypes.c_bool, [pointer, word, word, long, pointer]),
        "bench_load": (None, [pointer, word, long]),
        "bench_run": (ctypes.c_double, [pointer, long, pointer, pointer, pointer]),
        "bench_time_each": (ctypes.c_bool, [pointer, long, pointer, pointer, pointer, pointer]),
        "bench_clock": (ctypes.c_double, []),
        "bench_read": (ctypes.c_int64, [pointer]),
        "bench_result_type": (text, [word, pointer, pointer]),
        "bench_buffer": (long, [pointer, word, word, pointer]),
        "bench_map": (text, [pointer, word, pointer, pointer]),
        "bench_view": (text, [word]),
        "bench_put": (ctypes.c_bool, [pointer, word, pointer, ctypes.c_int64]),
        "bench_size": (ctypes.c_int64, [pointer, word]),
        "bench_width": (word, [word]),
        "bench_take": (None, [pointer, word, pointer, pointer]),
        "bench_give": (None, [pointer, word, long, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
