"""The reference engine: a trigger program run statement by statement by the living definition, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from viewlet.engines.exact.state import State
from viewlet.program.encoding import Row
from viewlet.program.trigger import Program


class Interpreter(State):
    """Its views hold the scalars of the calculus themselves: no engine is easier to believe."""

    def __init__(self, program: Program, tables: Mapping[str, Mapping[Row, int]] | None = None) -> None:
        super().__init__(program, tables, {})

    def apply(self, kind: Literal["+", "-"], relation: str, row: Row) -> None:
        """±R(t⃗)."""
        if trigger := self._trigger(kind, relation):
            self._evaluate_trigger(trigger, row)
        self._tables[relation].add(row, 1 if kind == "+" else -1)

    def apply_bulk(self, relation: str, entries: Mapping[Row, int]) -> None:
        """ΔR."""
        trigger = self._trigger("Δ", relation)
        self._apply_bulk(relation, entries, lambda: self._evaluate_trigger(trigger) if trigger else None)
