"""Figures over time as a row of bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BARS = "▁▂▃▄▅▆▇█"
MOST_POINTS = 256  # beyond, neighbours are merged: a job of a million batches is shown whole


def sparkline(values: Sequence[float]) -> str:
    """A bar for each value; the highest is the greatest, and the lowest is 0.

    >>> sparkline([0, 1, 2, 4, 8])
    '▁▂▃▅█'
    """
    top = max(values, default=0.0)
    if top <= 0:
        return BARS[0] * len(values)
    return "".join(BARS[round(max(value, 0.0) / top * (len(BARS) - 1))] for value in values)


@dataclass(frozen=True)
class Point:
    """Batches that follow each other: their rows, the time from the first to the last, and the slowest."""

    rows: int
    seconds: float
    slowest: float

    @property
    def rate(self) -> float:
        return self.rows / max(self.seconds, 1e-9)


@dataclass
class History:
    """All batches so far, the older ones together with their neighbours.

    >>> history = History()
    >>> for rows in range(1000):
    ...     history.add(Point(rows, 1.0, 0.5))
    >>> len(history.points) <= MOST_POINTS, sum(point.rows for point in history.points)
    (True, 499500)
    """

    points: list[Point] = field(default_factory=list)

    def add(self, point: Point) -> None:
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            self.points = _merged(self.points, 2)

    def bars(self, width: int) -> list[Point]:
        """At most ``width`` points, which together are all."""
        return _merged(self.points, -(-len(self.points) // max(width, 1)))

    def recent(self, seconds: float) -> Point:
        """The last batches, which took so long together."""
        last: list[Point] = []
        for point in reversed(self.points):
            last.append(point)
            if sum(p.seconds for p in last) >= seconds:
                break
        return _joined(last)


def _merged(points: Sequence[Point], size: int) -> list[Point]:
    return [_joined(points[i : i + size]) for i in range(0, len(points), max(size, 1))]


def _joined(points: Iterable[Point]) -> Point:
    points = list(points)
    slowest = max((p.slowest for p in points), default=0.0)
    return Point(sum(p.rows for p in points), sum(p.seconds for p in points), slowest)
