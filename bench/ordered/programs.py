"""The trigger programs that are compared, and how one of them is kept at work between two looks at it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

import viewlet
from bench.engine.triggers import HERE as ENGINE
from bench.engine.triggers import MODULE, Triggers, _declared, _listed, generated_source
from bench.engine.workload import Row, Workload
from viewlet.engines.native.build import build
from viewlet.errors import Error
from viewlet.workloads.bulk import BulkStream

HERE = Path(__file__).parent
HEADERS = (HERE / "hand", ENGINE / "hand")


def ordered_source(w: Workload) -> str:
    return generated_source(viewlet.compile(w.script))


def scan_source(w: Workload) -> str:
    """The paper's own strategy: the same program, and inequalities scan."""
    return generated_source(replace(viewlet.compile(w.script), ordered=False))


def hand_source(w: Workload) -> str:
    """Each header once, where it is first included: the compiler's cache knows a program by its whole text."""
    return _with_headers((HERE / "hand" / f"{w.name}.cpp").read_text(), set())


def _with_headers(text: str, seen: set[str]) -> str:
    def header(include: re.Match[str]) -> str:
        name = include[1]
        path = next((folder / name for folder in HEADERS if (folder / name).exists()), None)
        if path is None:
            return include[0]
        first = name not in seen
        seen.add(name)
        return _with_headers(path.read_text().replace("#pragma once\n", ""), seen) if first else ""

    return re.sub(r'#include "(.+)"\n', header, text)


@dataclass(frozen=True, slots=True)
class Entries:
    """Of one view: the cells of the keys and the values, as the harness lays them out."""

    count: int
    cells: npt.NDArray[np.uint64]
    sums: npt.NDArray[np.uint64]


class AtWork:
    """A program with its maps, and the stream decoded for it: it takes the stream part by part."""

    def __init__(self, triggers: Standing, harness: int, stream: BulkStream) -> None:
        self._triggers, self._harness, self._stream = triggers, harness, stream
        codes = [triggers.decode(harness, name, table) for name, table in stream.tables.items()]
        self._codes = np.array(codes, np.int8)[stream.codes]

    def take(self, start: int, stop: int) -> float:
        """The CPU seconds of the triggers of these events."""
        s = self._stream
        arrays = [np.ascontiguousarray(a[start:stop]) for a in (s.ops, self._codes, s.places)]
        seconds = self._triggers.library.bench_run(self._harness, stop - start, *(a.ctypes.data for a in arrays))
        if seconds < 0:
            raise Error("a number did not fit")
        return float(seconds)

    def rows(self) -> list[Row]:
        return self._triggers.read(self._harness)

    def entries(self) -> dict[str, Entries]:
        """What every view holds."""
        library, found = self._triggers.library, {}
        for place, name in enumerate(_listed(library.bench_view)):
            count = library.bench_size(self._harness, place)
            if count < 0:
                raise Error(f"the harness cannot carry {name}")
            entries = Entries(
                count, np.zeros(count * library.bench_width(place) + 1, np.uint64), np.zeros(2 * count + 2, np.uint64)
            )
            library.bench_take(self._harness, place, entries.cells.ctypes.data, entries.sums.ctypes.data)
            found[name] = entries
        return found

    def adopt(self, views: Mapping[str, Entries]) -> None:
        for place, name in enumerate(_listed(self._triggers.library.bench_view)):
            e = views[name]
            self._triggers.library.bench_give(self._harness, place, e.count, e.cells.ctypes.data, e.sums.ctypes.data)


class Standing(Triggers):
    """Triggers whose state outlives a run and can be carried from one program to another."""

    def __init__(self, source: str, workload: Workload) -> None:
        path = build(source + MODULE + (ENGINE / "harness.hpp").read_text() + (HERE / "carry.hpp").read_text())
        if path is None:
            raise Error("there is no C++ compiler")
        self.library = self._library = _with_carry(_declared(ctypes.CDLL(str(path))))
        self._workload = workload

    @contextmanager
    def at_work(self) -> Iterator[AtWork]:
        with self._opened() as harness:
            yield AtWork(self, harness, self._workload.stream)

    def decode(self, harness: int, relation: str, table: object) -> int:
        return self._decode(harness, relation, table)

    def read(self, harness: int) -> list[Row]:
        return self._result(harness)


def _with_carry(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, word, long = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    library.bench_size.restype, library.bench_size.argtypes = ctypes.c_int64, [pointer, word]
    library.bench_width.restype, library.bench_width.argtypes = word, [word]
    library.bench_take.restype, library.bench_take.argtypes = None, [pointer, word, pointer, pointer]
    library.bench_give.restype, library.bench_give.argtypes = None, [pointer, word, long, pointer, pointer]
    return library
