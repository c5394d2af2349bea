"""Which cells a row of stored values goes to.

A coordinate is the upper half of (word · 2⁶⁴/φ mod 2⁶⁴), scaled to the share. The word of an integer, date or moment is
the integer that it is held as; that of a text is a checksum. NULL has coordinate 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewlet.cells.routing import Grid, Routing
from viewlet.program.encoding import Row, Stored
from viewlet.schema import Relation

GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio
WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Along one dimension: the place of the column, how many coordinates there are, and how far apart their cells."""

    place: int
    share: int
    stride: int


@dataclass(frozen=True, slots=True)
class Way:
    """A row of a relation goes to the cells Σ ``turns`` + o, for each o of ``offsets``."""

    turns: tuple[Turn, ...]
    offsets: tuple[int, ...]

    def cells(self, row: Row) -> Sequence[int]:
        base = sum(coordinate(row[turn.place], turn.share) * turn.stride for turn in self.turns)
        return [base + offset for offset in self.offsets] if base else self.offsets

    @property
    def numbers(self) -> list[int]:
        """The same for the native engine, which divides batches of Arrow: see runtime/divide.hpp."""
        reach = sum(1 << offset for offset in self.offsets)
        return [reach, *(n for turn in self.turns for n in (turn.place, turn.share, turn.stride))]


def ways(grid: Grid) -> Mapping[str, Way]:
    """By relation. Each has one copy, with all columns (:mod:`viewlet.cells.whole_rows`)."""
    relations = {relation.name: relation for relation in grid.original.relations}
    return {copy.relation: _way(grid.routing(copy), relations[copy.relation]) for copy in grid.copies}


def _way(routing: Routing, relation: Relation) -> Way:
    places = {column.name: place for place, column in enumerate(relation.columns)}
    turns = (Turn(places[term.column], term.share, term.stride) for term in routing.terms)
    return Way(tuple(turns), routing.offsets)


def coordinate(value: Stored, share: int) -> int:
    if value is None:
        return 0
    word = zlib.crc32(value.encode()) if isinstance(value, str) else int(value) & WORD
    return ((word * GOLDEN & WORD) >> 32) * share >> 32
