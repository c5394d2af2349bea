"""What every suite of experiments is: a function that measures, and yields what it found as soon as it has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.results import Grid, Measurement, Series
from viewlet.workloads.queries import PAPER_QUERIES

Found = Measurement | Series | Grid | str  # a string is a note for the report
Say = Callable[[str], None]  # what is being done now, for a person who waits


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to measure: by default, minutes; ``full`` takes whole streams, and Spark at length: hours."""

    queries: tuple[str, ...] = tuple(PAPER_QUERIES)
    seconds: float = 1.0  # of CPU, for a contestant that is too slow for the whole stream
    full: bool = False


Suite = Callable[[Settings, Say], Iterator[Found]]
