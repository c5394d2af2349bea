"""All of the paper's experiments, one after the other: ``viewlet bench paper``.

Programs are built in an empty cache, on every core; then one process at a time is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.compile import empty_cache
from bench.engine.workload import Workload, workload
from bench.ordered.growth import book
from bench.ordered.programs import hand_source
from bench.paper import boundary, compiling, figure_3, figure_6, figure_11, latency, ordered, shapes
from bench.paper.course import Course
from bench.paper.databases import NOTES as DATABASES
from bench.paper.databases import Databases, databases
from bench.paper.printed import CURVES, FIGURE_7
from bench.paper.programs import Generated, built, generated
from bench.paper.strategies import EXPERIMENT, NoAnswerError, Race, measurement, same_point
from bench.results import Measurement
from bench.suite import Found, Say, Settings

OPTIMIZED = "optimized"
DATABASES_SHARE = 0.5  # of a strategy's seconds: they begin where it is slow, so their rates settle at once
PRINTED = {"paper": "dbtoaster", "paper depth 0": "depth_0", "paper DBX": "dbx", "paper SPY": "spy"}


def measure(settings: Settings, say: Say) -> Iterator[Found]:
    with empty_cache():
        yield from _measured(settings, say)


def _measured(settings: Settings, say: Say) -> Iterator[Found]:
    queries = settings.queries
    yield figure_3.grid(queries)
    yield figure_6.grid(queries)
    programs = {name: generated(name) for name in queries}
    cpp = _built([*(p for same in programs.values() for p in same), *_by_hand(queries)], say)
    yield from compiling.measure(queries, cpp, say)
    with databases(DATABASES_SHARE * settings.seconds) as others:
        for name in queries:
            yield from of_query(workload(name), programs[name], others, settings.seconds, say)
    yield from figure_11.measure(queries, settings.full, say)
    yield from ordered.measure(queries, settings.seconds, settings.full, say)


def _by_hand(queries: Sequence[str]) -> list[Generated]:
    """The programs that vouch for answers in :mod:`bench.paper.ordered`."""
    small = ordered.SIZES[0]
    return [Generated(name, ("hand",), hand_source(book(name, small))) for name in ordered.QUERIES if name in queries]


def _built(programs: Sequence[Generated], say: Say) -> dict[tuple[str, str], float]:
    """Query, contestant ↦ CPU seconds of the C++ compiler."""
    seconds: dict[tuple[str, str], float] = {}
    for number, ready in enumerate(built(programs), start=1):
        say(f"C++: {number} of {len(programs)} programs built")
        seconds |= {(ready.program.query, name): ready.seconds for name in ready.program.names}
    return seconds


def of_query(
    w: Workload, programs: Sequence[Generated], others: Databases, seconds: float, say: Say
) -> Iterator[Found]:
    """Figures 5 and 7 to 10, latency and boundary: all that one stream serves."""
    race, courses = Race(w, seconds), dict[str, Course]()
    yield from printed(w.name)
    for program in programs:
        say(f"figure 7: {w.name}, {program.names[0]}, {len(w.stream):,} events")
        yield from _raced(race, program, courses)
    yield from _compared(w.name, courses)
    for name in DATABASES:
        say(f"figure 7: {w.name}, {name}")
        yield others.measured(name, w)
    say(f"latency: {w.name}")
    yield from latency.measured(race, next(program for program in programs if OPTIMIZED in program.names))
    if w.name in boundary.QUERIES:
        say(f"boundary: {w.name}")
        yield from boundary.measured(w, seconds)


def _raced(race: Race, program: Generated, courses: dict[str, Course]) -> Iterator[Measurement]:
    """How the program fared, under each of its names, is also put among the courses."""
    try:
        ran = race.run(program)
    except NoAnswerError as none:
        for name in program.names:
            yield Measurement(EXPERIMENT, program.query, name, outcome="missing", note=str(none))
        return
    courses |= dict.fromkeys(program.names, ran.course)
    yield from (measurement(program, name, ran) for name in program.names)


def _compared(query: str, courses: Mapping[str, Course]) -> Iterator[Found]:
    """The curves of Figures 8 to 10, ratios over the same events, and what is to be said of them."""
    (figure,) = (figure for figure, shown in CURVES.items() if query in shown)
    for contestant, course in courses.items():
        yield from course.series(figure, query, contestant)
        if contestant != OPTIMIZED and OPTIMIZED in courses:
            yield same_point(query, contestant, course, courses[OPTIMIZED])
    yield from shapes.notes(query, courses)


def printed(query: str) -> Iterator[Measurement]:
    for contestant, column in PRINTED.items():
        value = getattr(FIGURE_7[query], column)
        yield Measurement(EXPERIMENT, query, contestant, value, "refreshes/s", note="printed, 2012")
