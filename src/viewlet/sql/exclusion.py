"""EXCLUDE: the rows of a partition without the row itself, without its peers, or without its other peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewlet.algebra.query import Exists, Query, join, negate, sum_, union
from viewlet.program.trigger import Excluded
from viewlet.sql.frames import Key, apart, peers


@dataclass(frozen=True)
class Exclusion:
    """What a frame lacks. ``row`` has all that the windows use of a row of FROM; ``is_unique``: no two agree in it."""

    what: Excluded
    order: tuple[Key, ...]
    row: tuple[Key, ...]
    is_unique: bool

    def rows(self, rows: Query, computed: Sequence[Query]) -> Query:
        """Of rows that may have copies one goes: R − Exists(R) ⋈ [r = this]. ``computed`` are columns beside those."""
        if self.what == "group":
            return join(rows, *computed, apart(self.order))
        if self.is_unique:
            product = join(rows, *computed)
            itself, others = join(product, peers(self.row)), join(product, apart(self.row))
        else:
            used = sum_((key.var for key in self.row), rows)
            product, itself = join(used, *computed), join(Exists(used), *computed, peers(self.row))
            others = union(product, negate(itself))
        return others if self.what == "current" else union(join(product, apart(self.order)), itself)
