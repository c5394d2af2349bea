"""Cells and scalars: how a store holds a value, and the exact number or string of the calculus that it stands for.

In a row, a DECIMAL(p, s) is its integer of units 10⁻ˢ, a DOUBLE a ``float``, a DATE its days, a TIMESTAMP its
microseconds; other types are held as those (:attr:`viewlet.schema.Type.held`). A ``float`` equals its ``Fraction`` and
hashes alike, so that a DOUBLE is found by its exact number: only numbers with a scale change on the way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from viewlet.algebra.evaluate import UNBOUND, Entries, Key
from viewlet.algebra.terms import Number, Scalar, exact
from viewlet.program.kinds import Inexact, Kind, kind_scale
from viewlet.schema import Relation, Type

Stored = int | float | str | bool | None
Row = tuple[Stored, ...]  # a row as it is stored


def decode(cell: Stored | Fraction, scale: int = 0) -> Scalar:
    """The scalar that a cell stands for; a ``float`` must be finite."""
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() else Fraction(cell)
    if isinstance(cell, (str, bool)) or cell is None:
        return cell
    return _unscaled(cell, scale) if scale else exact(cell)


@lru_cache(maxsize=1 << 16)  # the same prices come again and again, and fractions are slow to make
def _unscaled(units: Number, scale: int) -> Number:
    return exact(Fraction(units) / 10**scale)


def encode(scalar: Scalar, scale: int = 0) -> Scalar:
    """v · 10ˢ: an ``int`` where the scale holds v."""
    if not scale or isinstance(scalar, (str, bool)) or scalar is None:
        return scalar
    return exact(scalar * 10**scale)


def scale_of(type_: Type) -> int:
    return type_.scale if type_.kind == "DECIMAL" else 0


@dataclass(frozen=True)
class Codec:
    """How one store holds its keys and values: the scales of columns that are no scalars as they are, and of values."""

    scales: tuple[tuple[int, int], ...] = ()
    value: int = 0

    def decode_key(self, key: tuple[Any, ...]) -> Key:
        if not self.scales:
            return key
        cells = list(key)
        for i, scale in self.scales:
            cells[i] = decode(cells[i], scale)
        return tuple(cells)

    def encode_key(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """A key of scalars, or a pattern, which has UNBOUND in it."""
        if not self.scales:
            return key
        cells = list(key)
        for i, scale in self.scales:
            if cells[i] is not UNBOUND:
                cells[i] = encode(cells[i], scale)
        return tuple(cells)

    def decode_value(self, value: Number) -> Number:
        return _unscaled(value, self.value) if self.value else exact(value)

    def decode_entries(self, entries: Mapping[tuple[Any, ...], Any]) -> Entries:
        return {self.decode_key(key): self.decode_value(m) for key, m in entries.items()}

    def encode_entries(self, entries: Entries) -> Entries:
        units = 10**self.value
        return {self.encode_key(key): exact(m * units) for key, m in entries.items()} if self != AS_IT_IS else entries

    def head(self, n: int) -> Codec:
        """Of the first n columns."""
        return Codec(tuple((i, s) for i, s in self.scales if i < n))

    def tail(self, n: int) -> Codec:
        """Of the other columns, and the values."""
        return Codec(tuple((i - n, s) for i, s in self.scales if i >= n), self.value)


AS_IT_IS = Codec()


def row_codec(relation: Relation) -> Codec:
    """Of a relation's rows, which are cells."""
    columns = enumerate(relation.columns)
    return Codec(tuple((i, scale_of(c.type)) for i, c in columns if c.type.held.kind in ("DECIMAL", "DOUBLE")))


def view_codec(columns: tuple[Kind, ...], value: Kind) -> Codec:
    """Of a view whose exact numbers are held as integers, by their static kinds; others are held as they are."""
    scales = ((i, kind_scale(k)) for i, k in enumerate(columns) if kind_scale(k) or isinstance(k, Inexact))
    return Codec(tuple(scales), kind_scale(value))
