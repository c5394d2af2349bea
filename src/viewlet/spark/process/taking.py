"""A batch goes into a cell, but for deletes of what is not there, where these are kept apart.

Inserts come first, so a row that is not there by then was never given, or has gone. All cells that have copies of a
row hold it equally often, so each leaves out the same deletes, and one of them tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from viewlet.errors import NotThereError
from viewlet.spark.process.cell import Cell
from viewlet.spark.process.events import INSTEAD, Rows, log_parts, log_segments, segments

Bound = tuple[str, int]  # a column, and a moment in microseconds


@dataclass
class Taken:
    """``rows`` counts those that the cell took, and ``kept`` has them; ``letters`` say which it left out."""

    rows: int = 0
    kept: list[Rows] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    is_whole: bool = True

    def log(self, given: pa.Buffer, batch: int) -> pa.Buffer:
        """Of the rows that the cell took: who replays it finds all that is to go."""
        if self.is_whole:
            return given
        return pa.py_buffer(b"".join(map(bytes, log_parts(batch, segments(self.kept)))))


def take(
    cell: Cell,
    log: pa.Buffer,
    batch: int,
    where: str,
    absent: Mapping[str, str] | None = None,
    bounds: Mapping[str, Bound] | None = None,
    *,
    swept: bool = False,
) -> Taken:
    """``absent`` has the relations whose deletes may be left out, and as what this cell tells of them ("": not).

    ``bounds`` has those with rows that expire: the column, and before which moment rows are gone. What comes or goes
    and is gone already does nothing. ``swept``: the cell has let go before what it stores of then.
    """
    taken, bounds = Taken(), bounds or {}
    for old in [] if swept else _expired(cell, bounds):
        cell.apply(old.relation, old.times, old.batch)
        taken.kept.append(old)
        taken.is_whole = False
    for segment in log_segments(log, batch, where):
        for given in segment.batches():
            rows = Rows(segment.relation, segment.times, given)
            if rows.relation in bounds:
                rows = _young(rows, *bounds[rows.relation])
                taken.is_whole = taken.is_whole and rows.batch.num_rows == given.num_rows
            if rows.times == INSTEAD:
                cell.tick(rows.relation, given)
                taken.kept.append(rows)
            elif rows.times > 0 or rows.relation not in (absent or {}):
                _apply(cell, rows, taken)
            else:
                _delete(cell, rows, taken, (absent or {})[rows.relation])
    return taken


def _expired(cell: Cell, bounds: Mapping[str, Bound]) -> list[Rows]:
    """What is stored of before the bounds, to be taken out again."""
    found = list[Rows]()
    for rows in cell.stored() if bounds else ():
        if rows.relation in bounds:
            batch = rows.batch.filter(_is_before(rows.batch, *bounds[rows.relation]))
            found += [Rows(rows.relation, -rows.times, batch)] if batch.num_rows else []
    return found


def _young(rows: Rows, column: str, bound: int) -> Rows:
    return replace(rows, batch=rows.batch.filter(pc.invert(_is_before(rows.batch, column, bound))))


def _is_before(batch: pa.RecordBatch, column: str, bound: int) -> pa.Array:
    """A row whose time nobody knows stays."""
    return pc.fill_null(pc.less(batch.column(column).cast(pa.int64()), bound), False)


def _apply(cell: Cell, rows: Rows, taken: Taken) -> None:
    cell.apply(rows.relation, rows.times, rows.batch)
    taken.rows += rows.batch.num_rows
    taken.kept.append(rows)


def _delete(cell: Cell, rows: Rows, taken: Taken, told: str) -> None:
    """A cell that refuses rows is as it was, and names the first that is not there."""
    while rows.batch.num_rows:
        try:
            return _apply(cell, rows, taken)
        except NotThereError as error:
            if error.row is None:
                raise  # of many rows it says which
            before, row = rows.batch.slice(0, error.row), rows.batch.slice(error.row, 1)
            if before.num_rows:
                _apply(cell, replace(rows, batch=before), taken)
            _delete_some(cell, replace(rows, batch=row), taken, told)
            rows = replace(rows, batch=rows.batch.slice(error.row + 1))


def _delete_some(cell: Cell, row: Rows, taken: Taken, told: str) -> None:
    """One row, as often as it is there."""
    one, gone = replace(row, times=-1), 0
    try:
        while gone < -row.times:
            _apply(cell, one, taken)
            gone += 1
    except NotThereError:
        taken.is_whole = False
        if told:
            taken.letters.append(_letter(told, row.batch, -row.times - gone, -row.times))


def _letter(relation: str, row: pa.RecordBatch, missing: int, asked: int) -> str:
    often = f" ({missing} of {asked} times)" if asked > 1 else ""
    shown = json.dumps(row.to_pylist()[0], default=str, ensure_ascii=False)
    return json.dumps({"relation": relation, "reason": f"it is to go, and is not there{often}", "row": shown})
