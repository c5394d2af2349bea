"""A grid of cells, and which of them a row goes to.

Dimension d has coordinates 0 … sᵈ−1, and the grid a cell for each tuple of coordinates. Cells are numbered in mixed
radix, the last dimension fastest: cell = Σᵈ coordinateᵈ · strideᵈ. A row goes to the cells that agree with the hashes
of the columns it is split by, and along every other dimension to all coordinates or to the first one only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

from viewlet.program.trigger import Script
from viewlet.schema import BIGINT, DOUBLE, Type, decimal

MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Hash:
    """Along this dimension by the hash of a column, cast to ``type``: what is equal must hash alike.

    NULL hashes like any other value. Of DOUBLEs, −0.0 hashes as 0.0, and one NaN as the other.
    """

    column: str
    type: Type


@dataclass(frozen=True, slots=True)
class All:
    """Copied to every coordinate."""


@dataclass(frozen=True, slots=True)
class First:
    """To coordinate 0 only: what has nothing to be split by is counted there."""


Route = Hash | All | First


@dataclass(frozen=True, slots=True)
class Dimension:
    """``what`` names the columns whose hashes are its coordinates, for people."""

    share: int
    what: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A relation as cells see it: ``columns``, those that are read, in the schema's order, of the rows routed so.

    A column that a route hashes need not be among them. ``replication`` is how many cells a row goes to. A static table
    is loaded along the same routes.
    """

    name: str
    relation: str
    columns: tuple[str, ...]
    routes: tuple[Route, ...]
    replication: int
    rate: Fraction
    static: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """``hash(cast(column as type)) mod share · stride``."""

    column: str
    type: Type
    share: int
    stride: int


@dataclass(frozen=True, slots=True)
class Routing:
    """A row goes to the cells Σ ``terms`` + o, for each o of ``offsets``."""

    terms: tuple[Term, ...]
    offsets: tuple[int, ...]

    def cells(self, hashes: Mapping[tuple[str, Type], int]) -> Iterator[int]:
        """The cells of a row, given the hashes of its columns, each cast as its term says."""
        base = sum(hashes[t.column, t.type] % t.share * t.stride for t in self.terms)
        return (base + offset for offset in self.offsets)


@dataclass(frozen=True)
class Grid:
    """How a script is spread over cells: every cell runs ``script`` on its share of the rows.

    ``original`` is what was planned; ``script`` has the same results over the copies. Each row of a view of ``local``
    is whole in one cell. Of any other view the cells hold partial maps, to be summed (:mod:`…cells.merge`); its columns
    and its HAVING wait for the sum, and in ``script`` it has none. ``why``: what speaks for one cell.
    """

    dimensions: tuple[Dimension, ...]
    copies: tuple[Copy, ...]
    script: Script
    original: Script
    local: frozenset[str]
    preaggregate: bool = False
    why: str = ""

    @cached_property
    def cells(self) -> int:
        return prod(d.share for d in self.dimensions)

    def routing(self, copy: Copy) -> Routing:
        strides = [prod(d.share for d in self.dimensions[i + 1 :]) for i in range(len(self.dimensions))]
        along = list(zip(copy.routes, self.dimensions, strides, strict=True))
        terms = tuple(Term(r.column, r.type, d.share, s) for r, d, s in along if isinstance(r, Hash))
        copied = [[c * s for c in range(d.share)] for r, d, s in along if isinstance(r, All)]
        return Routing(terms, tuple(map(sum, product(*copied))))


# -- types that hash alike ---------------------------------------------------------------------------------------------


def family(type_: Type) -> str:
    """Values of one family may be equal; of two, they are never compared."""
    return "number" if type_.is_numeric else type_.kind


def common_type(types: Iterable[Type]) -> Type:
    """Of one family: a type under which all that is equal is the same, if only the same double."""
    all_types = list(types)
    first = all_types[0]
    if not first.is_numeric:
        return first
    if all(t.kind in ("INTEGER", "BIGINT") for t in all_types):
        return BIGINT
    if any(t.kind == "DOUBLE" for t in all_types):
        return DOUBLE
    scale = max(t.scale for t in all_types)
    digits = max(t.precision - t.scale if t.kind == "DECIMAL" else 19 for t in all_types)
    return decimal(MOST_DIGITS, scale) if digits + scale <= MOST_DIGITS else DOUBLE
