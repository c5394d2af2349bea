"""What every engine offers: it runs a trigger program, and its views can be read between any two updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol

from viewlet.algebra.evaluate import Entries, Key, Pattern
from viewlet.algebra.query import Atom
from viewlet.algebra.terms import Number, Scalar
from viewlet.program.encoding import Row


class Engine(Protocol):
    """Rows are tuples of cells (:mod:`viewlet.program.encoding`) that were checked before: an engine trusts them.

    What is read is in algebra scalars: exact numbers. An update that raises leaves the base tables as they were; the
    views must then be built from them again. One that takes a view out of its limits raises ``OutOfRangeError``.
    """

    takes_wild: bool
    """NaN and infinities may stand in DOUBLE columns."""

    def apply(self, kind: Literal["+", "-"], relation: str, row: Row) -> None:
        """±R(t⃗): fire the single-tuple trigger."""

    def apply_bulk(self, relation: str, entries: Mapping[Row, int]) -> None:
        """ΔR: fire the bulk trigger with a whole GMR."""

    def load(self, relation: str, entries: Mapping[Row, int]) -> None:
        """Add to a base table and compute every map over it again. Static tables change in this way."""

    def read(self, atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        """The entries of a view or base table that agree with a pattern (the ``Reader`` of the living definition)."""

    def entries(self, view: str) -> Entries:
        """The whole content of a view; of a view cache, what it holds, with the inputs first in each key."""

    def result(self, name: str, most: int | None = None) -> object | None:
        """The rows of a SQL view as an Arrow struct array, from an engine that makes them; else None.

        ``most``: only so many, the first of an order or those that are met first, at the price of these.
        """

    def result_row(self, name: str, key: Mapping[str, Scalar]) -> object | None:
        """The same of the row whose key variables have these values, where that costs less than all rows."""

    def size(self, view: str) -> int:
        """How many entries a view has."""

    def weigh(self, view: str) -> tuple[int, int]:
        """How many entries a view of whole numbers has, and what they come to."""

    def table(self, relation: str) -> dict[Row, int]:
        """The whole content of a base table: row ↦ how often it is there."""

    def count(self, relation: str, row: Row) -> int:
        """How often a row is in a base table."""
