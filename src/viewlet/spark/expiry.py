"""Rows that expire: those of a stream whose time is longer ago than an interval go by themselves.

When they go is a function of the moment of the batch alone, so all cells let the same rows go in the same batch, and in
a batch that runs again. To look for such rows a cell reads all that it has stored. So it does so now and then: the
bound moves on by an eighth of the interval at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

STEPS = 8  # to an interval
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Expiry:
    """Of a stream: the column that says when a row was, and how long it stays."""

    column: str
    after: timedelta

    def bound(self, moment: int) -> int:
        """In microseconds: rows of before are gone.

        >>> Expiry("at", timedelta(seconds=8)).bound(20_999_999), Expiry("at", timedelta(seconds=8)).bound(21_000_000)
        (12000000, 13000000)
        """
        after = self.after // MICROSECOND
        step = max(after // STEPS, 1)
        return (moment - after) // step * step


Expiries = Mapping[str, Expiry]  # by stream
