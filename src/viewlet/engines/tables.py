"""Base tables as the living definition reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viewlet.algebra.evaluate import Key, Pattern, Reader
from viewlet.algebra.query import Atom
from viewlet.algebra.terms import Number
from viewlet.engines.exact.store import Map
from viewlet.program.encoding import Row, row_codec
from viewlet.schema import Relation


def tables_reader(relations: Iterable[Relation], tables: Mapping[str, Mapping[Row, int]]) -> Reader:
    """Read rows of cells as scalars; slices are indexed, so that joins of tables cost their matches."""
    maps = {r.name: Map(row_codec(r).decode_entries(tables.get(r.name, {}))) for r in relations}

    def read(atom: Atom, pattern: Pattern) -> Iterable[tuple[Key, Number]]:
        return maps[atom.name].read(pattern)

    return read
