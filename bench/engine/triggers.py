"""Trigger programs without the boundary: compiled together with ``harness.hpp`` and driven through ctypes.

The same harness drives the hand-written programs and the generated ones, so their rates differ by the programs alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
    from viewlet.engines.native.emit import cpp_source

    return cpp_source(program)


class Triggers:
    """A compiled program; each run starts with empty maps and decodes the stream anew, outside the timing."""

    def __init__(self, source: str, workload: Workload) -> None:
        path = build(source + MODULE + (HERE / "harness.hpp").read_text())
        if path is None:
            raise Error("there is no C++ compiler")
        self._library = _declared(ctypes.CDLL(str(path)))
        self._workload = workload

    def run(self, stream: BulkStream) -> Run:
        with self._opened() as harness:
            self._load_static(harness)
            codes = np.array([self._decode(harness, name, table) for name, table in stream.tables.items()], np.int8)
            arrays = [np.ascontiguousarray(a) for a in (stream.ops, codes[stream.codes], stream.places)]
            seconds = self._library.bench_run(harness, len(stream), *(a.ctypes.data for a in arrays))
            if seconds < 0:
                raise Error("a number did not fit")
            return Run(seconds, self._result(harness), list(self._kept(harness)))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        harness = self._library.bench_open()
        try:
            yield harness
        finally:
            self._library.bench_close(harness)

    # -- in ------------------------------------------------------------------------------------------------------------

    def _decode(self, harness: int, relation: str, table: pa.Table) -> int:
        """Give the program a relation's rows; returns the number it has for the relation."""
        names = _listed(self._library.bench_relation)
        if relation not in names:
            raise Error(f"the program has no relation {relation}, only {', '.join(names)}")
        code = names.index(relation)
        self._library.bench_make_rows(harness, code, len(table))
        for place, column in enumerate(_listed(lambda place: self._library.bench_column(code, place))):
            cells = self._cells(harness, table[column].combine_chunks())
            if not self._library.bench_fill(harness, code, place, len(table), cells.ctypes.data):
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
        return self._library.bench_text(harness, encoded, len(encoded))

    def _load_static(self, harness: int) -> None:
        """Static tables; and, for a generated program, the views that follow from them alone."""
        for name, table in self._workload.static_tables.items():
            if name in _listed(self._library.bench_relation):
                self._library.bench_load(harness, self._decode(harness, name, table), len(table))
        self._put(harness, self._workload.static_views)

    def _put(self, harness: int, views: Mapping[str, Mapping[tuple[int, ...], int]]) -> None:
        places = {name: place for place, name in enumerate(_listed(self._library.bench_view))}
        for name in views.keys() & places.keys():
            for key, value in views[name].items():
                if not self._library.bench_put(harness, places[name], (ctypes.c_int64 * len(key))(*key), value):
                    raise Error(f"the harness cannot fill {name}")

    # -- out -----------------------------------------------------------------------------------------------------------

    def _result(self, harness: int) -> list[Row]:
        length = self._library.bench_read(harness)
        if length < 0:
            raise Error("a value does not fit its column")
        precision, scale = ctypes.c_int(), ctypes.c_int()
        columns = []
        while name := self._library.bench_result_type(len(columns), ctypes.byref(precision), ctypes.byref(scale)):
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
        size = self._library.bench_buffer(harness, place, which, ctypes.byref(data))
        return pa.py_buffer(ctypes.string_at(data, size)) if size else None

    def _kept(self, harness: int) -> Iterator[Kept]:
        size, used = ctypes.c_uint64(), ctypes.c_uint64()
        place = 0
        while name := self._library.bench_map(harness, place, ctypes.byref(size), ctypes.byref(used)):
            yield Kept(name.decode(), size.value, used.value)
            place += 1


def _listed(name_at) -> list[str]:  # type: ignore[no-untyped-def]
    """The names that a C function gives for 0, 1, … until it gives none."""
    names: list[str] = []
    while (name := name_at(len(names))) is not None:
        names.append(name.decode())
    return names


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
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
        "bench_read": (ctypes.c_int64, [pointer]),
        "bench_result_type": (text, [word, pointer, pointer]),
        "bench_buffer": (long, [pointer, word, word, pointer]),
        "bench_map": (text, [pointer, word, pointer, pointer]),
        "bench_view": (text, [word]),
        "bench_put": (ctypes.c_bool, [pointer, word, pointer, ctypes.c_int64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
