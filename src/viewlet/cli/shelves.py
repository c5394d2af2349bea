"""Panes side by side as far as a terminal is wide, and below each other as far as it is high."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from viewlet.cli.fitted import fitted
from viewlet.cli.pane import Pane

AROUND = 3  # lines of a pane that are no rows: its border and the names of its columns


@dataclass(frozen=True)
class Shelf:
    panes: list[Pane]
    rows: int


def shelves(panes: Sequence[Pane], width: int, height: int) -> list[Shelf]:
    """Each pane has a row at least; those at the end that have no room are left out."""
    filled = _side_by_side(panes, width)[: max(height // (AROUND + 1), 0)]
    rows = [1] * len(filled)
    wanted = [max(pane.height for pane in some) for some in filled]
    free = height - sum(rows) - AROUND * len(rows)
    while free > 0 and (short := [i for i in range(len(rows)) if rows[i] < wanted[i]]):
        for i in short[:free]:
            rows[i] += 1
        free -= len(short)
    return [Shelf(some, n) for some, n in zip(filled, rows, strict=True)]


def _side_by_side(panes: Sequence[Pane], width: int) -> list[list[Pane]]:
    filled: list[list[Pane]] = []
    left = 0
    for pane in panes:
        if not filled or left < pane.width + 1:
            filled.append([])
            left = width + 1
        filled[-1].append(pane)
        left -= min(pane.width, width) + 1
    return filled


def arranged(panes: Sequence[Pane], width: int, height: int) -> RenderableType:
    """At most ``height`` lines. The names of views that have no room are in the last one."""
    some = shelves(panes, width, height)
    if sum(len(shelf.panes) for shelf in some) < len(panes):
        some = shelves(panes, width, height - 1)
    hidden = list(panes[sum(len(shelf.panes) for shelf in some) :])
    parts: list[RenderableType] = [_beside(shelf, width) for shelf in some]
    if hidden and height > 0:
        names = ", ".join(pane.shape.name for pane in hidden)
        parts.append(Text(fitted(f"{len(hidden)} more: {names}", width), style="dim", no_wrap=True))
    return Group(*parts)


def _beside(shelf: Shelf, width: int) -> Table:
    row = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    for _ in shelf.panes:
        row.add_column(no_wrap=True)
    row.add_row(*(pane.panel(min(pane.width, width), min(pane.height, shelf.rows)) for pane in shelf.panes))
    return row
