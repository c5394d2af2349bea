"""Native engines that are watched, and what all that they told so far comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from viewlet.algebra.query import View
from viewlet.compilation import Dialect
from viewlet.engines.native.compiled import Compiled, compile_program
from viewlet.engines.native.engine import NativeEngine, Watched
from viewlet.program.encoding import Row
from viewlet.program.kinds import Inexact
from viewlet.program.trigger import Program
from viewlet.rows.boundary import to_key
from viewlet.workloads.streams import Event


def compiled(script: str, strategy: str = "optimized", dialect: Dialect = "sql") -> Compiled:
    """The script's program, its results and all that they are read off watched."""
    return watching(viewlet.compile(script, strategy=strategy, dialect=dialect))


def watching(program: Program, watched: Watched | None = None) -> Compiled:
    if watched is None:
        roots = [query.name for r in program.results for query in r.reads if isinstance(query, View)]
        watched = Watched(tuple(r.name for r in program.results), tuple(dict.fromkeys(roots)))
    made = compile_program(program, watched)
    if made is None:
        pytest.skip("no C++ compiler")
    return made


def engine_of(made: Compiled, tables: Mapping[str, Mapping[Row, int]] | None = None) -> NativeEngine:
    relations = made.program.relations
    return NativeEngine(made, tables or {}, lambda i, row, number: to_key(relations[i], row, number))


def told(rows: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer, with one NaN that equals itself; a user's column may be called weight, too."""
    columns = [column.to_pylist() for column in pa.array(rows).flatten()]
    return [tuple("NaN" if v != v else v for v in row) for row in zip(*columns, strict=True)]


class Follower:
    """Adds up what an engine tells, and compares it with what is there."""

    def __init__(self, made: Compiled) -> None:
        self.made = made
        self.rows: dict[str, Counter[Any]] = {name: Counter() for name in made.watched.results}
        self.entries: dict[str, Counter[Any]] = {name: Counter() for name in made.watched.views}
        self.most = dict.fromkeys(self.rows, 0)  # rows that each result ever had

    def look(self, engine: NativeEngine) -> None:
        for name, rows in self.rows.items():
            _add(rows, told(engine.changes(name)))
            assert rows == Counter(told(engine.result(name))), name
            self.most[name] = max(self.most[name], len(rows))
        for name, entries in self.entries.items():
            _add(entries, told(engine.partials(name)))
            assert entries == self._there(engine, name), name

    def _there(self, engine: NativeEngine, view: str) -> Counter[Any]:
        rounded = float if isinstance(self.made.kinds.values[view], Inexact) else lambda value: value
        entries = ((*key, rounded(value)) for key, value in engine.entries(view).items())
        return Counter(tuple("NaN" if v != v else v for v in entry) for entry in entries)


def _add(rows: Counter[Any], changes: Sequence[tuple[Any, ...]]) -> None:
    """What is told of a row is told once; it goes only if it is there."""
    assert len({row[1:] for row in changes}) == len(changes)
    for weight, *cells in changes:
        row = tuple(cells)
        rows[row] += weight
        assert weight != 0
        assert rows[row] >= 0
        if rows[row] == 0:
            del rows[row]


def load_static(engine: NativeEngine, program: Program, static: Mapping[str, Sequence[Row]]) -> None:
    for name, rows in static.items():
        engine.load(name, Counter(to_key(program.relation(name), row) for row in rows))


def apply(engine: NativeEngine, batch: Sequence[Event]) -> None:
    assert engine.state.events(batch) is None
