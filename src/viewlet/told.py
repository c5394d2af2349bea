"""What the native engine tells of a view that changed, as the rows that a user reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from viewlet.boundary import value_of
from viewlet.changes import Change, Row
from viewlet.containers import countable
from viewlet.engines.native.engine import NativeEngine
from viewlet.program.trigger import Result
from viewlet.schema import Type

Shown = Callable[[Any], Any]  # a cell as a Python value


class Teller:
    """Tells the changes of one view. It works out once how cells are shown, for a change takes microseconds."""

    def __init__(self, result: Result) -> None:
        self._name = result.name
        shown = [_shown(column.type) for column in result.columns]
        self._shown = shown if any(shown) else None

    def changes(self, engine: NativeEngine) -> list[Change]:
        """What changed since the last call: what went, then what came."""
        told = engine.told(self._name)
        if told is None:
            changes = _from_arrow(engine.changes(self._name))
        else:
            changes = [(row[0], self._row(row[1:])) for row in told]
        if len(changes) > 1:
            changes.sort(key=_came)
        return changes

    def _row(self, cells: Row) -> Row:
        if self._shown is None:
            return cells
        return tuple([v if f is None or v is None else f(v) for f, v in zip(self._shown, cells, strict=True)])


def one_nan(row: Iterable[Any]) -> Row:
    """There is one NaN for all, so that rows which have it are equal."""
    return tuple([math.nan if v != v else v for v in row])


def _from_arrow(changes: Any) -> list[Change]:
    columns = [column.to_pylist() for column in pa.array(changes).flatten()]
    return [(weight, one_nan(row)) for weight, *row in zip(*columns, strict=True)]


def _came(change: Change) -> bool:
    return change[0] > 0


def _shown(type_: Type) -> Shown | None:
    """None where the cell is the value."""
    match type_.kind:
        case "DECIMAL":
            context = Context(prec=type_.precision)
            return lambda cell: Decimal(cell).scaleb(-type_.scale, context)
        case "DOUBLE" | "REAL":
            return lambda cell: math.nan if cell != cell else cell
        case "DATE" | "TIMESTAMP":
            return lambda cell: value_of(cell, type_)
    if type_.is_nested:
        return lambda cell: countable(value_of(cell, type_))
    return None if type_ == type_.held else lambda cell: value_of(cell, type_)
