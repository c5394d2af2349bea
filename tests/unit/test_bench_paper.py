"""The paper's experiments: figures 3 and 6, a tiny real run of figure 7, and what is said of another shape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.engine.answers import WrongAnswerError
from bench.engine.triggers import Triggers
from bench.engine.workload import Workload, workload
from bench.paper import figure_3, figure_6, figure_11, latency, shapes, suite
from bench.paper.apart import ContestantError, apart
from bench.paper.course import Course, Part
from bench.paper.databases import databases
from bench.paper.printed import CLAIMS, FIGURE_7, Claim
from bench.paper.programs import Generated, generated
from bench.paper.strategies import Race, measurement, same_point
from viewlet.workloads import bulk
from viewlet.workloads.queries import PAPER_QUERIES

NAMES = tuple(PAPER_QUERIES)


# -- figures 3 and 6 ---------------------------------------------------------------------------------------------------


def test_figure_3_has_every_query_and_explains_every_difference() -> None:
    grid = figure_3.grid(NAMES)
    assert [row[0] for row in grid.rows] == list(NAMES)
    assert {len(row) for row in grid.rows} == {len(grid.columns)}
    explained = {query for query, _ in figure_3.DIFFERENCES}
    assert {row[0] for row in grid.rows if row[-1]} == explained
    assert not any(figure_3.UNEXPLAINED in row[-1] for row in grid.rows)


def test_figure_6_is_derived_from_the_sql() -> None:
    grid = figure_6.grid(NAMES)
    features = {row[0]: row[1:] for row in grid.rows}
    assert list(features) == list(NAMES)
    assert features["axf"] == ("2, =", "∨, <", "yes", "0 / 0", "")
    assert features["psp"] == ("2, ×", "∧, <", "no", "2 / 1", "")
    assert features["ssb4"][0] == "7, ="
    assert features["q18"][3] == "2 / 2"
    assert "printed 1 / 2" in features["q18"][-1]


# -- figure 7 ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vwap() -> Workload:
    return workload("vwap", 2_000)


@pytest.fixture(scope="module")
def programs() -> list[Generated]:
    return generated("vwap", ("reevaluate", "optimized", "cost"))


def test_programs_of_one_text_are_one(programs: list[Generated]) -> None:
    assert [program.names for program in programs] == [("reevaluate",), ("optimized", "cost")]


def test_a_run_is_measured_and_checked(vwap: Workload, programs: list[Generated]) -> None:
    race = Race(vwap, seconds=30.0)
    slow, fast = (race.run(program) for program in programs)
    for program, ran in zip(programs, (slow, fast), strict=True):
        point = measurement(program, program.names[-1], ran)
        assert (point.reached, point.bounded, point.events) == (1.0, False, len(vwap.stream))
        assert point.rows_checked == 1
        assert point.value is not None
        assert point.value > 0
    assert fast.repetitions == 3
    assert "the very program of optimized" in measurement(programs[1], "cost", fast).note
    assert same_point("vwap", "optimized", fast.course, fast.course).value == 1.0
    rates, memory = fast.course.series("figure-9", "vwap", "optimized")
    assert [x for x, _ in rates.points] == [x for x, _ in memory.points]
    assert rates.points[-1][0] == 1.0
    assert memory.points[-1][1] > 0


def test_a_bounded_run_says_how_far_it_came(vwap: Workload, programs: list[Generated]) -> None:
    race = Race(vwap, seconds=1e-9)
    point = measurement(programs[0], "reevaluate", race.run(programs[0]))
    assert point.bounded
    assert 0 < point.reached < 1
    assert point.rows_checked == 1


def test_a_wrong_answer_raises(vwap: Workload, programs: list[Generated]) -> None:
    race = Race(vwap, seconds=30.0, answers={len(vwap.stream): [(0.0,)]})
    with pytest.raises(WrongAnswerError, match="vwap, optimized,"):
        race.run(programs[1])


def test_databases_refresh_and_are_checked(vwap: Workload) -> None:
    with databases(seconds=0.5) as others:
        points = [others.measured(name, vwap) for name in ("duckdb", "sqlite", "postgresql")]
    assert [m.outcome for m in points] == ["measured"] * 3
    assert [m.rows_checked for m in points] == [1] * 3
    assert all(m.value and m.events for m in points)


def test_percentiles_rise(vwap: Workload, programs: list[Generated]) -> None:
    values = [m.value for m in latency.measured(Race(vwap, 1.0), programs[1])]
    assert values == sorted(values, key=lambda value: value or 0)
    assert len(values) == len(latency.PERCENTILES)


def test_static_tables_are_there_under_every_strategy() -> None:
    """SSB4 joins with Nation, of which each strategy keeps other views."""
    w = workload("ssb4", 10_000)
    (program,) = generated("ssb4", ("classical",))
    assert Race(w, 30.0).run(program).rows_checked > 0


def test_printed_rates_are_the_papers() -> None:
    rates = {m.contestant: m.value for m in suite.printed("mst")}
    assert rates == {"paper": 19.90, "paper depth 0": 6.54, "paper DBX": 30.88, "paper SPY": 7.51}


def test_scale_factors() -> None:
    stream = bulk.tpch(1, 20_000, scale=0.01, live=500)
    (point,) = figure_11.measured("q11", 0.01, stream)
    assert (point.measured.contestant, point.measured.rows_checked) == ("SF 0.01, whole stream", 2_000)
    assert list(figure_11.deviation("q11", [point])) == []
    slower = replace(point, scale=1.0, megabytes=99.0, measured=replace(point.measured, value=point.rate / 3))
    (note,) = figure_11.deviation("q11", [point, slower])
    assert "to 99.0 MB" in note
    (note,) = figure_11.deviation("q22", [point, replace(point, scale=1.0)])
    assert "Here Q22 is none" in note


def test_a_stream_is_as_long_as_memory_allows() -> None:
    gigabyte = 10**9
    assert figure_11.as_many_as_fit(10, 600_000, 10 * gigabyte) == 12_200_000
    assert figure_11.as_many_as_fit(10, 150_000_000, 10 * gigabyte) == 50_000_000
    assert figure_11.as_many_as_fit(10, 150_000_000, gigabyte) is None


def test_the_report_says_what_memory_cut_short() -> None:
    gigabyte = 10**9
    assert list(figure_11.shortened(10, 600_000, 12_200_000, 10 * gigabyte)) == []
    (cut,) = figure_11.shortened(10, 150_000_000, 50_000_000, 10 * gigabyte)
    assert "50,000,000 events, not all 161,600,000: 10.0 GB" in cut
    (none,) = figure_11.shortened(10, 600_000, None, gigabyte)
    assert "left out: 1.0 GB" in none


# -- a process of its own ----------------------------------------------------------------------------------------------


def _tells(words: int, then: Callable[[], None], tell: Callable[[int], None]) -> None:
    for word in range(words):
        tell(word)
    then()


def test_what_is_told_before_a_silence_counts() -> None:
    told = apart(lambda tell: _tells(3, lambda: time.sleep(600), tell), silence=1.0)
    assert told.words == [0, 1, 2]
    assert not told.ended


def test_a_failure_is_told() -> None:
    with pytest.raises(ContestantError, match="ZeroDivisionError"):
        apart(lambda tell: _tells(1, lambda: print(1 / 0), tell), silence=30.0)
    with pytest.raises(ContestantError, match="without a word"):
        apart(lambda tell: _tells(0, lambda: os._exit(1), tell), silence=30.0)


# -- shapes ------------------------------------------------------------------------------------------------------------


def _course(rate: float, stop: int = 1_000, length: int = 1_000, falling: float = 1.0) -> Course:
    """So many events a second in the former half, and so many times that in the latter."""
    half = stop // 2
    return Course([Part(half, half / rate), Part(stop, (stop - half) / (rate * falling), bytes=10**6)], length)


def _claim(query: str, first: str, second: str) -> Claim:
    return next(c for c in CLAIMS if (c.query, c.first, c.second) == (query, first, second))


def test_every_query_has_a_printed_ratio() -> None:
    assert {c.query for c in CLAIMS if c.shape == "printed"} == set(NAMES) == set(FIGURE_7)


def test_no_note_where_the_shape_is_the_papers() -> None:
    claim = _claim("q3", "optimized", "reevaluate")
    assert claim.times is not None
    courses = {"optimized": _course(1e6), "naive": _course(1.5e6), "reevaluate": _course(1e6 / claim.times)}
    assert list(shapes.notes("q3", courses)) == []


def test_a_note_where_naive_is_not_as_fast() -> None:
    courses = {"optimized": _course(1e6), "naive": _course(1e5)}
    (note,) = shapes.notes("q3", courses)
    assert "Q3, optimized beside naive: in the paper as fast" in note
    assert "10.0 times as fast" in note


def test_scans_explain_what_ordered_access_paths_changed() -> None:
    claim = _claim("mst", "optimized", "reevaluate")
    assert claim.times is not None
    courses = {"optimized": _course(1e6), "reevaluate": _course(10)}
    scans = {"optimized-scans": _course(10 * claim.times), "reevaluate-scans": _course(10)}
    assert "Ordered access paths make the difference" in next(shapes.notes("mst", courses | scans))
    assert "Beside the printed rates" in next(shapes.notes("mst", courses))


def test_what_was_still_falling_is_said_so() -> None:
    courses = {"optimized": _course(1e6), "reevaluate": _course(1e5, stop=100, falling=0.5)}
    (note,) = shapes.notes("q17", courses)
    assert "stopped after 100 events, 10.00% of the stream" in note


def test_strategies_that_overtake_and_a_cost_model_that_misjudges() -> None:
    (note,) = shapes.notes("ssb4", {"optimized": _course(1e5), "classical": _course(4e5), "cost": _course(1e5)})
    assert "SSB4: classical is 4.00 times as fast as optimized" in note
    (note,) = shapes.notes("axf", {"optimized": _course(1e6), "cost": _course(1e5)})
    assert "10.0 times slower than optimized" in note


def test_one_program_is_said_to_be_one() -> None:
    same = _course(1e6)
    (note,) = shapes.notes("vwap", {"naive": same, "optimized": same})  # of which the paper says that naive is faster
    assert "come out as the same program" in note


# -- the harness -------------------------------------------------------------------------------------------------------


def test_a_program_goes_on_where_it_stopped(vwap: Workload, programs: list[Generated]) -> None:
    triggers, end = Triggers(programs[1].source, vwap), len(vwap.stream)
    with triggers.at_work() as program:
        program.take(0, 700)
        assert len(program.nanoseconds(700, 1_300)) == 600
        program.take(1_300, end)
        assert program.rows() == triggers.run(vwap.stream).rows
        assert program.clock() > 0
