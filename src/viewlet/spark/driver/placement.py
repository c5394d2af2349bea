"""Where cells are, as their answers say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from viewlet.spark.process.client import Answer


@dataclass
class Placement:
    """``homes`` are the executors, by cell."""

    homes: dict[str, str] = field(default_factory=dict)

    def note(self, answered: Iterable[Answer]) -> None:
        self.homes.update({answer.cell: answer.home for answer in answered})

    @property
    def cells_by_executor(self) -> dict[str, int]:
        return dict(sorted(Counter(self.homes.values()).items()))
