"""How a contestant fared on its way through a stream: what it took, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench.engine.workload import Row
from bench.results import Series

FIRST = 16  # events of the first part: fewer would measure the clock
PARTS = 40  # of a whole stream, once they have grown
FRACTION = "fraction of the stream"
RATE, MEMORY = "events/CPU s", "MB"


@dataclass(frozen=True, slots=True)
class Part:
    """Events up to ``stop``: CPU seconds, bytes of all maps at the end, and the answer there if it was read."""

    stop: int
    seconds: float
    bytes: int = 0
    rows: list[Row] | None = None


@dataclass(frozen=True)
class Course:
    """The parts in order; ``length`` is the stream's, and ``start`` where in it the first part began."""

    parts: Sequence[Part]
    length: int
    start: int = 0

    @property
    def stop(self) -> int:
        return self.parts[-1].stop

    @property
    def events(self) -> int:
        return self.stop - self.start

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    @property
    def reached(self) -> float:
        return self.stop / self.length

    @property
    def rows(self) -> list[Row]:
        """The answer at the end."""
        rows = self.parts[-1].rows
        assert rows is not None
        return rows

    @cached_property
    def _clock(self) -> tuple[np.ndarray, np.ndarray]:
        stops = np.array([self.start, *(part.stop for part in self.parts)])
        return stops, np.cumsum([0.0, *(part.seconds for part in self.parts)])

    def rate_between(self, start: int, stop: int) -> float:
        """Within a part, as if each of its events had taken as long."""
        first, last = np.interp([start, stop], *self._clock)
        return (stop - start) / float(last - first)

    def up_to_an_answer(self) -> Course | None:
        """Without the parts after which nobody read the answer; None if that leaves nothing."""
        read = [number for number, part in enumerate(self.parts) if part.rows is not None]
        return Course(self.parts[: read[-1] + 1], self.length, self.start) if read else None

    def series(self, experiment: str, query: str, contestant: str) -> tuple[Series, Series]:
        """Rate and memory over the fraction of the stream, one point at the end of each part."""
        starts = [self.start, *(part.stop for part in self.parts)]
        rates = [
            (part.stop / self.length, (part.stop - start) / part.seconds)
            for start, part in zip(starts, self.parts, strict=False)
            if part.seconds > 0
        ]
        memory = [(part.stop / self.length, part.bytes / 1e6) for part in self.parts]
        return (
            Series(experiment, query, contestant, FRACTION, RATE, tuple(rates)),
            Series(experiment, query, contestant, FRACTION, MEMORY, tuple(memory)),
        )
