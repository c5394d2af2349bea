"""Rows in an order, and the first of them: what the referee says, and an exact notion of "the same rows in line".

SQL leaves open which of several rows comes first that agree in all terms of the ORDER BY. A view goes by its columns
then, from the first to the last, NULLs last. The referee is asked for that very order: its answer is a legal one of the
query as it was written, and the only one in which a view may give its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.oracle import DuckOracle, Row, difference


@dataclass(frozen=True)
class OrderedQuery:
    """``select`` has as many columns as ``width``; ``order`` and ``cut`` stand behind it."""

    select: str
    width: int
    order: str = ""
    cut: str = ""

    @property
    def written(self) -> str:
        return " ".join(filter(None, (self.select, self.order and f"ORDER BY {self.order}", self.cut)))

    @property
    def in_full(self) -> str:
        if self.order.upper().startswith("ALL"):
            return self.written
        columns = ", ".join(str(i + 1) for i in range(self.width))
        terms = ", ".join(filter(None, (self.order, columns)))
        return f"{self.select} ORDER BY {terms} {self.cut}"

    def rows(self, oracle: DuckOracle) -> list[Row]:
        return oracle.connection.execute(self.in_full).fetchall()


def line_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> str | None:
    """What differs between two lists of rows, or None; doubles may differ by rounding."""
    if len(ours) != len(theirs):
        return f"ours has {len(ours)} rows, theirs {len(theirs)}: {ours} instead of {theirs}"
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if wrong := difference([mine], [other]):
            return f"row {place}: {wrong}"
    return None
