"""What the native engine tells of a view that changed, as the rows that a user reads."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from viewlet.engines.native.engine import NativeEngine
from viewlet.engines.native.module import Feeds, Show
from viewlet.program.trigger import Program
from viewlet.rows.boundary import value_of
from viewlet.rows.containers import countable
from viewlet.schema import Type
from viewlet.session.changes import Change, Feed, Look, Row


class Teller:
    """Tells the changes of some views. How cells are shown is worked out once: a change takes under a microsecond."""

    def __init__(self, engine: NativeEngine, program: Program, views: tuple[str, ...]) -> None:
        results = [program.result(view) for view in views]
        self.views, self.engine = views, engine
        self._asked = engine.answers.asking({r.name: tuple(_shown(c.type) for c in r.columns) for r in results})

    def feeds(self, pending: Collection[object], takers: Mapping[str, tuple[Feed, ...]]) -> Feeds:
        """How machine code tells the same to those who iterate over it."""
        return self.engine.answers.feeds(pending, self._asked, takers)

    def changes(self) -> list[Look]:
        """What changed since the last call: what went, then what came."""
        told = self.engine.answers.told(self._asked)
        if told is not None:
            return told
        arrow = ((view, _from_arrow(self.engine.changes(view))) for view in self.views)
        return [(view, sorted(changes, key=_came)) for view, changes in arrow if changes]


def one_nan(row: Iterable[Any]) -> Row:
    """There is one NaN for all, so that rows which have it are equal."""
    return tuple([math.nan if v != v else v for v in row])


def _from_arrow(changes: Any) -> list[Change]:
    columns = [column.to_pylist() for column in pa.array(changes).flatten()]
    return [(weight, one_nan(row)) for weight, *row in zip(*columns, strict=True)]


def _came(change: Change) -> bool:
    return change[0] > 0


def _shown(type_: Type) -> Show:
    """What the native program asks for: a function, or the one NaN. None where the cell is the value."""
    match type_.kind:
        case "DECIMAL":
            return Context(prec=type_.precision).multiply, Decimal(1).scaleb(-type_.scale)  # no frame of Python's
        case "DOUBLE" | "REAL":
            return math.nan
        case "DATE":
            return dt.date.fromordinal
        case "TIMESTAMP":
            return lambda cell: value_of(cell, type_)
    if type_.is_nested:
        return lambda cell: countable(value_of(cell, type_))
    return None if type_ == type_.held else lambda cell: value_of(cell, type_)
