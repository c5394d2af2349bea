"""A few rows of a view, to be shown again and again: their price does not grow with the view."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Literal

from viewlet.database.inventory import Inventory
from viewlet.engines.results import key_columns
from viewlet.program.trigger import Result, ResultColumn
from viewlet.session.changes import Row

MOST_SORTED = 500  # rows; of a larger view, those that are met first
Mark = Literal["", "came", "more", "less", "other"]  # how a cell changed
COUNT_AGAIN = 50  # times as long as the last count took


@dataclass(frozen=True)
class Shape:
    """What is known of a view before its rows: ``keys`` are the places of the columns that tell its rows apart."""

    name: str
    columns: tuple[ResultColumn, ...]
    keys: tuple[int, ...]
    is_ordered: bool
    is_one_row: bool
    note: str = ""

    @staticmethod
    def of(result: Result, note: str = "") -> Shape:
        keys = {column.name for column in key_columns(result)}
        places = tuple(place for place, column in enumerate(result.columns) if column.name in keys)
        return Shape(result.name, result.columns, places, bool(result.order), result.rows is None, note)

    def key(self, row: Row) -> Row:
        """What a row is known by: itself, where the view does not show its key."""
        return tuple([row[place] for place in self.keys]) if self.keys or self.is_one_row else row


@dataclass(frozen=True)
class Look:
    """``total``: how many rows there are; None where only ``rows`` and more are known."""

    rows: list[Row]
    total: int | None

    def counted(self, shown: int) -> str:
        """
        >>> Look([(1,)], 1).counted(1), Look([(1,), (2,)], 1200).counted(2), Look([(1,), (2,)], None).counted(2)
        ('1 row', '2 of 1,200 rows', '2 of over 500 rows')
        """
        count = f"over {MOST_SORTED:,}" if self.total is None else f"{self.total:,}"
        more = f"{shown} of " if self.total is None or self.total > shown > 0 else ""
        return f"{more}{count} row{'' if self.total == 1 else 's'}"


class Memory:
    """What a view had at the last look."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._before: dict[Row, Row] | None = None

    def compared(self, rows: list[Row]) -> list[list[Mark]]:
        """How each cell changed since: nothing is new at the first look."""
        before, self._before = self._before, {self._shape.key(row): row for row in rows}
        if before is None:
            return [[""] * len(row) for row in rows]
        return [_marks(before.get(self._shape.key(row)), row) for row in rows]


def _marks(old: Row | None, new: Row) -> list[Mark]:
    return ["came"] * len(new) if old is None else [_mark(x, y) for x, y in zip(old, new, strict=True)]


def _mark(old: object, new: object) -> Mark:
    if old == new or (old != old and new != new):
        return ""
    if isinstance(old, Number) and isinstance(new, Number):
        return "more" if new > old else "less"  # type: ignore[operator]  # numbers of one column
    return "other"


class Window:
    """Looks at one view. ``first`` gives at most so many rows. ``count`` says how many there are."""

    def __init__(self, shape: Shape, first: Callable[[int], list[Row]], count: Callable[[], int] | None = None) -> None:
        self.shape, self._first, self._count = shape, first, count
        self._total, self._count_due = 0, 0.0

    def look(self) -> Look:
        rows = self._first(MOST_SORTED + 1)
        shown = rows[:MOST_SORTED] if self.shape.is_ordered else self._sorted(rows[:MOST_SORTED])
        if len(rows) <= MOST_SORTED:
            return Look(shown, len(rows))
        return Look(shown, None if self._count is None else self._counted(self._count))

    def _sorted(self, rows: list[Row]) -> list[Row]:
        """By the key, so that a row keeps its place when its other values change."""
        try:
            return sorted(rows, key=lambda row: (_ordered(self.shape.key(row)), _ordered(row)))
        except TypeError:  # lists that have NULLs in them
            return sorted(rows, key=str)

    def _counted(self, count: Callable[[], int]) -> int:
        """A count goes through all of a view: seldom, where that takes long."""
        if (start := time.monotonic()) >= self._count_due:
            self._total = count()
            end = time.monotonic()
            self._count_due = end + COUNT_AGAIN * (end - start)
        return self._total


def window(database: Inventory, view: str, note: str = "") -> Window:
    """On a view of a database. The handle is asked from any thread."""
    handle = database.view(view)
    return Window(Shape.of(database.program.result(view), note), handle.first, handle.__len__)


def _ordered(row: Row) -> tuple[tuple[bool, bool, object], ...]:
    """NULL comes last, after NaN."""
    return tuple([(value is None, value != value, 0 if value is None or value != value else value) for value in row])
