"""From values to places on an axis: logarithmic or linear, and where the ticks go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_TICKS = 5
WIDE = 20  # what spans more than this is drawn logarithmically


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``low`` … ``high`` to ``start`` … ``end`` of a drawing."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def place(self, value: float) -> float:
        if self.is_log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        return _powers(self.low, self.high) if self.is_log else _steps(self.low, self.high)


def log_scale(values: Iterable[float], start: float, end: float) -> Scale:
    """Whole powers of ten around the values."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known)) + 1e-9), math.ceil(math.log10(max(known)) - 1e-9)
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, end, is_log=True)


def bar_scale(values: Sequence[float], start: float, end: float, baseline: float | None) -> Scale:
    """Bars begin at ``baseline`` if there is one; else at 0, or where that is infinitely far, below the shortest."""
    if baseline is not None:
        return log_scale([*values, baseline], start, end)
    scale = fitting_scale(values, start, end)
    return log_scale([*values, min(values) / 2], start, end) if scale.is_log else scale


def fitting_scale(values: Iterable[float], start: float, end: float) -> Scale:
    """Linear from 0, or logarithmic where the values are of different sizes."""
    known = list(values) or [1.0]
    if min(known) > 0 and max(known) / min(known) > WIDE:
        return log_scale(known, start, end)
    high = max(known)
    return Scale(0.0, high if high > 0 else 1.0, start, end, is_log=False)


def _powers(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = math.ceil((last - first + 1) / MOST_TICKS)
    aligned = first + -first % step  # so that 1 has its tick
    return [10.0**power for power in range(aligned, last + 1, step)]


def _steps(low: float, high: float) -> list[float]:
    """About four round numbers: multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [low + step * n for n in range(int((high - low) / step + 1e-9) + 1)]
