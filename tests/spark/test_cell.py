"""One program at work in a cell, of machine code and of generated Python: both tell the same changes."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from viewlet.engines.native.compiled import compile_program
from viewlet.engines.native.emit.watch import Watched
from viewlet.errors import CorruptError, DataError
from viewlet.spark.process.cell import Cell, open_cell

SCRIPT = """
CREATE STREAM r (a INT, d DECIMAL(9, 2) NOT NULL, f DOUBLE NOT NULL, s VARCHAR, t TIMESTAMP NOT NULL, o BOOLEAN);
CREATE MATERIALIZED VIEW v AS
  SELECT s, o, t, sum(d * a) AS x, sum(f) AS y, avg(d) AS z, min(f) AS m FROM r GROUP BY s, o, t;
CREATE MATERIALIZED VIEW u AS SELECT d, f FROM r WHERE a > 1;
"""
TYPES = pa.schema(
    [
        ("a", pa.int32()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us")),
        ("o", pa.bool_()),
    ]
)
RESULTS = ("v", "u")
Row = dict[str, Any]


def cells() -> tuple[Cell, Cell]:
    """Machine code, which watches one result and has to compare the other, and generated Python."""
    program = viewlet.compile(SCRIPT)
    views = tuple(v.name for v in program.views)
    compiled = compile_program(program, Watched(RESULTS[:1], views))
    assert compiled is not None
    return open_cell(program, compiled, RESULTS, views), open_cell(program, None, RESULTS, views)


class Stream:
    """Rows of all types that come, and some of them go again."""

    def __init__(self) -> None:
        self.random, self.there = random.Random(3), list[Row]()

    def row(self) -> Row:
        choice = self.random.choice
        return {
            "a": choice([None, 1, 2, 3]),
            "d": Decimal(self.random.randrange(-999, 999)) / 100,
            "f": choice([0.1, 2.5, 1e10, -7.0]),
            "s": choice([None, "", "a", "ä"]),
            "t": dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=choice([0, 1])),
            "o": choice([None, True, False]),
        }

    def batches(self) -> dict[int, pa.RecordBatch]:
        come = [self.row() for _ in range(12)]
        go = [self.there.pop(self.random.randrange(len(self.there))) for _ in range(min(len(self.there), 7))]
        self.there += come
        return {times: pa.RecordBatch.from_pylist(rows, schema=TYPES) for times, rows in ((1, come), (-1, go))}


def folded(batches: Mapping[str, pa.RecordBatch]) -> dict[str, Counter[tuple[Any, ...]]]:
    counts: dict[str, Counter[tuple[Any, ...]]] = {}
    for name, changed in batches.items():
        counts[name] = Counter()
        for weight, *row in zip(*(column.to_pylist() for column in changed.columns), strict=True):
            counts[name][tuple(row)] += weight
    return counts


def schemas(batches: Mapping[str, pa.RecordBatch]) -> dict[str, pa.Schema]:
    return {name: batch.schema for name, batch in batches.items()}


def reloaded(cell: Cell, fresh: Cell, file: Path) -> Cell:
    """What a fresh cell makes of what another saved: nothing of it has changed."""
    with file.open("w+b", buffering=0) as opened:
        assert cell.save(opened.fileno()) == opened.seek(0, os.SEEK_END)
        opened.seek(0)
        fresh.load(opened.fileno())
    assert fresh.changes() == fresh.partials() == {}
    assert fresh.bytes() > 0
    return fresh


def test_both_makes_of_cells_tell_the_same(tmp_path: Path) -> None:
    stream, (native, python) = Stream(), cells()
    shown: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in RESULTS}
    for number in range(8):
        for times, rows in stream.batches().items():
            native.apply("r", times, rows)
            python.apply("r", times, rows)
        changes = native.changes()
        for name, changed in folded(changes).items():
            shown[name].update(changed)
        ours, theirs = changes | native.partials(), python.changes() | python.partials()
        assert schemas(ours) == schemas(theirs)
        assert folded(ours) == folded(theirs)
        if number == 4:
            fresh = cells()
            native = reloaded(native, fresh[0], tmp_path / "native")
            python = reloaded(python, fresh[1], tmp_path / "python")
    for name in RESULTS:
        rows = {name: native.rows(name)}
        assert folded(rows) == folded({name: python.rows(name)}) == {name: +shown[name]}
        assert +shown[name]


def test_a_state_of_the_other_make_is_refused(tmp_path: Path) -> None:
    for saver, reader in ((0, 1), (1, 0)):
        with (tmp_path / "state").open("w+b", buffering=0) as file:
            cells()[saver].save(file.fileno())
            file.seek(0)
            with pytest.raises(CorruptError):
                cells()[reader].load(file.fileno())


@pytest.mark.parametrize(("giver", "taker"), [(0, 1), (1, 0)])
def test_the_rows_of_one_make_are_what_the_other_begins_from(giver: int, taker: int) -> None:
    """Each as often as it is there."""
    stream, cell, other = Stream(), cells()[giver], cells()[taker]
    for times, rows in [*stream.batches().items(), *stream.batches().items(), (5, Stream().batches()[1])]:
        cell.apply("r", times, rows)
    stored = list(cell.stored())
    assert {rows.times for rows in stored} > {1, 4}
    for rows in stored:
        other.apply(rows.relation, rows.times, rows.batch)
    for name in RESULTS:
        assert folded({name: other.rows(name)}) == folded({name: cell.rows(name)})
    assert sum(folded({"u": cell.rows("u")})["u"].values()) > 5
    assert not cell.is_exact, "it sums doubles"


@pytest.mark.parametrize("make", [0, 1])
def test_rows_are_checked(make: int) -> None:
    cell, good = cells()[make], Stream().batches()[1]
    cell.apply("r", 1, good)
    with pytest.raises(DataError, match=r"r, row 0: .* is not there"):
        cell.apply("r", -2, good.slice(0, 1))
    with pytest.raises(DataError, match=r"r\.f, row 3: NULL in a NOT NULL column"):
        cell.apply("r", 1, good.set_column(2, "f", pa.array([0.5] * 3 + [None] * 9)))
    assert cell.changes()
