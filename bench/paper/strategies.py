"""Figures 5 and 7, our half: a strategy's triggers take the stream from its beginning, until it ends or time is up.

What is too slow for the whole stream has seen only small states, and its rate flatters it. So beside each rate stands
how many times faster ``optimized`` was over the very same events (experiment ``same-point``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from bench.engine.answers import WrongAnswerError, answer, check
from bench.engine.triggers import AtWork, Triggers
from bench.engine.workload import Row, Workload
from bench.paper.apart import apart
from bench.paper.course import FIRST, PARTS, Course, Part
from bench.paper.programs import Generated
from bench.report.digits import scaled
from bench.results import Measurement

EXPERIMENT, SAME_POINT = "figure-7", "same-point"
REPETITIONS = 3  # of a run that is short: at most half of the seconds that a contestant has
TO_AN_ANSWER = 3  # times its seconds, for a contestant whose answer is still empty: that would prove little
LONG = 0.02  # seconds: after an event that took so long the answer is read, for the next may never end
PATIENCE = 10  # times its seconds, and START: after so long on the wall without a word, a contestant is killed
START = 10.0  # seconds: however few a contestant has, the machine may be busy


class NoAnswerError(Exception):
    """A contestant was killed before its answer was read once."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The best of the runs, and how far the worst was off; ``killed``: an event took longer than anyone waits."""

    course: Course
    rows_checked: int
    killed: bool
    noise: float = 0.0
    repetitions: int = 1


@dataclass
class Race:
    """One query's programs on one stream; DuckDB's answers are known where somebody stopped before."""

    w: Workload
    seconds: float
    answers: dict[int, list[Row]] = field(default_factory=dict)

    def run(self, program: Generated) -> Ran:
        """Every run has a process of its own, so each finds the maps empty."""
        who = f"{self.w.name}, {program.names[0]},"
        with Triggers(program.source, self.w, program.strategy).at_work() as fresh:
            runs = [self._once(who, fresh)]
            if runs[0].course.reached == 1 and runs[0].course.seconds < self.seconds / 2:
                runs += [self._once(who, fresh) for _ in range(REPETITIONS - 1)]
        rates = [ran.course.rate for ran in runs]
        best = runs[rates.index(max(rates))]
        return replace(best, noise=(max(rates) - min(rates)) / max(rates), repetitions=len(runs))

    def _once(self, who: str, fresh: AtWork) -> Ran:
        silence = START + PATIENCE * self.seconds
        told = apart(partial(_taken, fresh, self.seconds, len(self.w.stream)), silence)
        course = Course(told.words, len(self.w.stream)).up_to_an_answer()
        if course is None:
            raise NoAnswerError(f"{who} gave no answer within {silence:g} seconds, after {len(told.words)} parts")
        return Ran(course, self.checked(who, course), killed=not told.ended)

    def checked(self, who: str, course: Course) -> int:
        """How many rows were compared."""
        if course.stop not in self.answers:
            self.answers[course.stop] = answer(self.w, self.w.stream.between(0, course.stop))
        right = self.answers[course.stop]
        if right:
            check(who, course.rows, right)
        elif course.rows:
            raise WrongAnswerError(f"{who} says {course.rows[0]}, where the referee has no rows")
        return len(right)


def _taken(program: AtWork, seconds: float, length: int, tell: Callable[[Part], None]) -> None:
    """Parts grow to a fortieth of the stream, but not to the time that is left: one may cost ten times the last."""
    stop, size, spent, over = 0, FIRST, 0.0, False
    while not over:
        size = min(size, length - stop)
        took = program.take(stop, stop + size)
        stop, spent = stop + size, spent + took
        over = stop == length or _is_up(program, spent, seconds)
        tell(_part(program, stop, took, read=over or took / size > LONG))
        affordable = max((seconds - spent) / 4, seconds / 20)
        size = max(min(2 * size, length // PARTS, int(affordable / took * size)), 1)


def _is_up(program: AtWork, spent: float, seconds: float) -> bool:
    return spent >= TO_AN_ANSWER * seconds or (spent >= seconds and bool(program.rows()))


def _part(program: AtWork, stop: int, took: float, read: bool) -> Part:
    return Part(stop, took, sum(kept.bytes for kept in program.kept()), program.rows() if read else None)


def measurement(program: Generated, contestant: str, ran: Ran) -> Measurement:
    course = ran.course
    return Measurement(
        EXPERIMENT,
        program.query,
        contestant,
        course.rate,
        events=course.events,
        seconds=course.seconds,
        noise=ran.noise,
        repetitions=ran.repetitions,
        bounded=course.reached < 1,
        reached=course.reached,
        rows_checked=ran.rows_checked,
        note="; ".join(_notes(program, contestant, ran)),
    )


def _notes(program: Generated, contestant: str, ran: Ran) -> list[str]:
    first = program.names[0]
    notes = [f"the very program of {first}, run once for both"] if contestant != first else []
    if ran.killed:
        notes.append("ended in the middle of an event that took longer than anyone waits")
    if not ran.rows_checked:
        notes.append("the answer, which is right, was still empty where it stopped")
    return notes


def same_point(query: str, contestant: str, course: Course, optimized: Course) -> Measurement:
    """How many times as fast ``optimized`` is over the latter half of the events that both took."""
    stop = min(course.stop, optimized.stop)
    start = stop // 2
    mine, theirs = course.rate_between(start, stop), optimized.rate_between(start, stop)
    return Measurement(
        SAME_POINT,
        query,
        contestant,
        theirs / mine,
        unit="times as fast",
        events=stop - start,
        reached=stop / course.length,
        note=f"over events {start:,} to {stop:,} of {course.length:,}: optimized {scaled(theirs)} events per CPU "
        f"second, {contestant} {scaled(mine)}",
    )
