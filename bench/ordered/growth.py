"""Time per event as the book grows: with ordered access paths, with the paper's scans, and by hand.

Each program starts with a whole book of n live rows and takes events until its time is up. The programs with trees get
the book by as many events; the one that scans would not live to see it, and takes over their views as they stand.
Its sizes end where one event would take too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.engine.answers import answer, check
from bench.engine.triggers import AtWork, Entries, Triggers
from bench.engine.workload import SEED, Row, Workload
from bench.ordered.programs import hand_source, ordered_source, scan_source
from viewlet.workloads import bulk
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

EVENTS = 100_000  # after the book is complete
SLICE = 8_192  # events that are timed together
CHECKED_BY_DUCKDB = 1_000  # live rows: it joins them all with each other, and vouches for the program by hand
FEWEST = 7  # events, however long they take: a side of the book may cost more than the other
PATIENCE = 10  # times the seconds of a measurement: what a single event may take

ORDERED, SCAN, HAND = "ordered", "scan", "hand"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Point:
    """CPU seconds per event at a book of ``live`` rows, from so many ``events``; the view then had so many ``rows``."""

    live: int
    events: int
    per_event: float
    rows: int


@dataclass
class Growth:
    """The curves of one query, and why the scan's ends where it does."""

    curves: dict[str, list[Point]] = field(default_factory=lambda: {ORDERED: [], SCAN: [], HAND: []})
    ended: str = ""


def book(name: str, live: int) -> Workload:
    """``warm`` events lead to the book."""
    query = PAPER_QUERIES[name]
    if query.schema == FINANCE:
        return Workload(query, bulk.deep_book(SEED, live, EVENTS, sides=query.relations), warm=live)
    return Workload(query, bulk.customers_and_orders(SEED, live, EVENTS), warm=2 * live)


def growth(name: str, sizes: Sequence[int], seconds: float, say: Say) -> Growth:
    course = Growth()
    for live in sorted(sizes):
        say(f"{name}, {live:,} live")
        size = _Size(book(name, live), live, seconds)
        say(f"{name}, {live:,} live: by hand")
        course.curves[HAND].append(size.by_hand())
        say(f"{name}, {live:,} live: with ordered access paths")
        point, views = size.with_trees()
        course.curves[ORDERED].append(point)
        course.ended = course.ended or _too_long(course.curves[SCAN], live, PATIENCE * seconds)
        if not course.ended:
            say(f"{name}, {live:,} live: with scans")
            course.curves[SCAN].append(size.with_scans(views))
    return course


@dataclass
class _Size:
    """A book, who is measured on it, and the answers by hand that are known: after how many events ↦ which rows."""

    w: Workload
    live: int
    seconds: float
    known: dict[int, list[Row]] = field(default_factory=dict)

    def by_hand(self) -> Point:
        with Triggers(hand_source(self.w), self.w).at_work() as program:
            program.take(0, self.w.warm)
            point = self._measured(program)
            self.known[point.events] = program.rows()
        if self.live <= CHECKED_BY_DUCKDB:
            right = answer(self.w, self.w.stream.between(0, self.w.warm + point.events))
            check(f"{self}, by hand,", self.known[point.events], right)
        return point

    def with_trees(self) -> tuple[Point, dict[str, Entries]]:
        """And what the views held before the first of the events."""
        with Triggers(ordered_source(self.w), self.w).at_work() as program:
            program.take(0, self.w.warm)
            views = program.entries()
            point = self._measured(program)
            check(f"{self}, with ordered access paths,", program.rows(), self._answer(point.events))
        return point, views

    def with_scans(self, views: dict[str, Entries]) -> Point:
        with Triggers(scan_source(self.w), self.w).at_work() as program:
            program.adopt(views)
            point = self._measured(program)
            check(f"{self}, with scans,", program.rows(), self._answer(point.events))
        return point

    def _measured(self, program: AtWork) -> Point:
        """One event, two, four, … until the time is up. Of many full slices the median counts."""
        start, part = self.w.warm, 1
        took: list[tuple[int, float]] = []
        while start < self.w.warm + FEWEST or (start < len(self.w.stream) and sum(s for _, s in took) < self.seconds):
            stop = min(start + part, len(self.w.stream))
            took.append((stop - start, program.take(start, stop)))
            start, part = stop, min(2 * part, SLICE)
        events = start - self.w.warm
        full = [s / SLICE for n, s in took if n == SLICE]
        per_event = median(full) if full else sum(s for _, s in took) / events
        return Point(self.live, events, per_event, len(program.rows()))

    def _answer(self, events: int) -> list[Row]:
        """The program by hand is fast at every size."""
        if events not in self.known:
            with Triggers(hand_source(self.w), self.w).at_work() as program:
                program.take(0, self.w.warm + events)
                self.known[events] = program.rows()
        return self.known[events]

    def __str__(self) -> str:
        return f"{self.w.name}, {self.live:,} live"


def _too_long(measured: Sequence[Point], live: int, limit: float) -> str:
    """Why the next size is left out, going by a quadratic scan; empty if it is not."""
    if not measured:
        return ""
    last = measured[-1]
    if last.per_event * (live / last.live) ** 2 <= limit:
        return ""
    return f"left out from {live:,} on: an event took {last.per_event:.2g} s at {last.live:,}"
