"""The report says all that was found, nothing that was not, and needs nothing from outside; so does the README."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench.report import HTML, MARKDOWN, write_report
from bench.report.digits import amount, percent, scaled, significant, times
from bench.report.document import WRONG, document
from bench.report.page import page
from bench.report.ratios import RECOMPUTED, over_peers, over_strategies, printed_ratios
from bench.report.readme import BEGIN, END, LATEST, PAGES, few_figures, figures, with_figures
from bench.report.scale import bar_scale, fitting_scale
from bench.results import About, Grid, Machine, Measurement, Results, Series

FRACTION, RATE = "fraction of the stream", "events/CPU s"
EVERY_THOUSAND = "every 1,000 events"
VOID = {"meta"}  # the only tags of the page that nothing closes


def about() -> About:
    machine = Machine("A processor", 2, 24.0, "Linux x86_64", "g++ 12")
    return About(
        "2026-11-15T20:00:00+00:00",
        "viewlet bench all",
        "abc1234",
        1,
        "3.11.7",
        {"duckdb": "2.0", "numpy": "2.1"},
        machine,
        load_before=0.25,
        load_after=1.5,
        seconds=600,
    )


def synthetic() -> Results:
    """All outcomes, bounded and not; the values are made up, and easy to divide."""
    results = Results(about())
    results.add(
        [
            Measurement("figure-7", "q3", "optimized", 8e6, noise=0.04, repetitions=3, rows_checked=10),
            Measurement("figure-7", "q3", "naive", 4e6, noise=0.02, repetitions=3, rows_checked=10),
            Measurement("figure-7", "q3", "reevaluate", 400.0, bounded=True, reached=0.001, rows_checked=2),
            Measurement("figure-7", "q3", "duckdb", 200.0, bounded=True, reached=0.5, note="from the steady state on"),
            Measurement("figure-7", "q3", "postgresql", outcome="missing", note="there is no PostgreSQL <here>"),
            Measurement("figure-7", "q3", "paper", 22_000.0, "refreshes/s", note="printed, 2012"),
            Measurement("figure-7", "q3", "paper depth 0", 11.0, "refreshes/s", note="printed, 2012"),
            Measurement(
                "same-point", "q3", "reevaluate", 50_000.0, "times as fast", reached=0.001, note="events 5 to 9"
            ),
            Measurement("latency", "q3", "p99", 250.0, "ns", rows_checked=10),
            Measurement("peers", "q3", "viewlet", 3e6, freshness=EVERY_THOUSAND, rows_checked=10),
            Measurement("peers", "q3", "viewlet, one event a call", 4e5, rows_checked=10),
            Measurement("peers", "q3", "pathway", 4e4, rows_checked=10, note="rewritten by hand"),
            Measurement("peers", "q3", "sqlite", 3e5, freshness=EVERY_THOUSAND, rows_checked=10),
            Measurement("peers", "q3", "flink", outcome="refused", note="wrong answer: 1 | 2"),
            Measurement("spark-recompute", "q3", "viewlet on Spark", 200.0, "ms", freshness=EVERY_THOUSAND),
            Measurement("spark-recompute", "q3", "Spark SQL", 500.0, "ms", freshness=EVERY_THOUSAND),
            Measurement("something-new", "q3", "newcomer", 7.0, "apples"),
            Series("figure-8", "q3", "optimized", FRACTION, RATE, ((0.5, 9e6), (1.0, 7e6))),
            Series("figure-8", "q3", "reevaluate", FRACTION, RATE, ((0.0005, 900.0), (0.001, 300.0))),
            Grid("figure-3", "Rules applied", ("query", "rule (1)"), (("q3", "✓ & more"),), "read off the trace"),
            "Q3 is faster than the paper says: it has ordered indexes.",
        ]
    )
    return results


# -- ratios ------------------------------------------------------------------------------------------------------------


def test_what_the_clock_stopped_is_compared_where_it_stopped() -> None:
    ratios = {ratio.over: ratio for ratio in over_strategies(synthetic())}
    assert {over: ratio.value for over, ratio in ratios.items()} == {
        "naive": 2.0,
        "reevaluate": 50_000.0,  # and not the 20,000 of rates over all that each took
        "duckdb": 40_000.0,
    }
    assert ratios["reevaluate"].at == 0.001
    assert ratios["naive"].at is None


def test_printed_figures_are_compared_among_themselves() -> None:
    assert [(ratio.over, ratio.value) for ratio in printed_ratios(synthetic())] == [("paper depth 0", 2_000.0)]


def test_peers_are_compared_with_what_is_as_fresh() -> None:
    assert {ratio.over: (ratio.ours.contestant, ratio.value) for ratio in over_peers(synthetic())} == {
        "pathway": ("viewlet, one event a call", 10.0),
        f"sqlite, {EVERY_THOUSAND}": ("viewlet", 10.0),
    }


def test_of_times_less_is_better() -> None:
    assert [(ratio.over, ratio.value) for ratio in over_peers(synthetic(), RECOMPUTED)] == [
        (f"Spark SQL, {EVERY_THOUSAND}", 2.5)
    ]


def test_a_peer_at_another_freshness_is_compared_with_every_event() -> None:
    results = Results(about())
    results.add(
        [
            Measurement("peers", "q3", "viewlet", 3e6, freshness=EVERY_THOUSAND),
            Measurement("peers", "q3", "viewlet", 4e5),
            Measurement("peers", "q3", "flink", 2e5, freshness="every second"),
        ]
    )
    assert [ratio.value for ratio in over_peers(results)] == [2.0]


# -- the report --------------------------------------------------------------------------------------------------------


class WellFormed(HTMLParser):
    """Every tag is closed in its turn; collects what the page refers to, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.referred: list[str] = []
        self.anchors: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.referred += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.anchors += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An SVG element that has nothing inside."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(results: Results) -> WellFormed:
    parser = WellFormed()
    parser.feed(page(document([results])))
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_is_well_formed_and_refers_to_nothing_outside() -> None:
    text, parser = page(document([synthetic()])), parsed(synthetic())
    assert parser.referred
    assert [target for target in parser.referred if target.removeprefix("#") not in parser.anchors] == []
    assert not any(outside in text for outside in ("://", "url(", "@import"))
    assert "<svg" in text
    assert len(set(parser.anchors)) == len(parser.anchors)


@pytest.fixture(params=[HTML, MARKDOWN])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    write_report([synthetic()], tmp_path)
    if request.param == HTML:
        return "".join(parsed(synthetic()).words)
    return (tmp_path / MARKDOWN).read_text("utf-8").replace("\\|", "|").replace("`", "")


def test_everything_that_was_found_is_told(told: str) -> None:
    results = synthetic()
    assert [m.contestant for m in results.measurements if m.contestant.removeprefix("paper ") not in told] == []
    assert [m.note for m in results.measurements if m.note not in told] == []
    assert [note for note in results.notes if note not in told] == []
    for word in (
        "refused",
        "missing",
        "Something-new",
        "50,000×†",
        "Figures 8 to 10",
        "✓ & more",
        "read off the trace",
    ):
        assert word in told, word
    for word in ("8.00 M", "noise 4 %", "400†", "at 0.1 %", "2.50×"):
        assert word in told, word


def test_where_and_how_is_told(told: str) -> None:
    for word in ("A processor", "g++ 12", "viewlet bench all", "abc1234", "numpy 2.1", "0.25 and 1.50", "10.0 minutes"):
        assert word in told, word


def test_ratios_come_before_rates_and_the_machine_last(told: str) -> None:
    places = [told.index(word) for word in ("50,000×†", "the view fresh after every event", "400†", "g++ 12")]
    assert places == sorted(places)


def test_a_wrong_answer_is_the_first_thing_said() -> None:
    results = synthetic()
    results.add([f"{WRONG}: q3, naive, says 1, not 2. The run ended there."])
    text = page(document([results]))
    assert text.index('class="alarm"') < text.index('class="facts"')


def test_runs_that_measured_different_things_make_one_report() -> None:
    first, second = Results(about()), Results(about())
    first.add([Measurement("latency", "q3", "p50", 100.0, "ns"), Measurement("latency", "q3", "p99", 900.0, "ns")])
    second.add([Measurement("latency", "q3", "p99", 700.0, "ns"), "a note"])
    text = page(document([first, second]))
    assert "700" in text
    assert "900" not in text
    assert text.count("abc1234") == 4  # each run's, at the head and at the end


def test_a_run_that_found_nothing_has_a_report() -> None:
    assert "How it was measured" in "".join(parsed(Results(about())).words)


def test_an_experiment_in_which_all_refused_has_a_report() -> None:
    results = Results(about())
    results.add([Measurement("peers", "q3", who, outcome="refused", note="no") for who in ("flink", "pathway")])
    assert "".join(parsed(results).words).count("refused") == 5  # two bars, two cells, and why


# -- numbers and scales ------------------------------------------------------------------------------------------------


def test_numbers_have_three_digits() -> None:
    assert [significant(n) for n in (0.01234, 4.5678, 9.996, 78.94, 789.4, 12_345.0, 0.0)] == [
        "0.0123",
        "4.57",
        "10.0",
        "78.9",
        "789",
        "12,300",
        "0",
    ]
    assert [scaled(n) for n in (266.0, 999.6, 8_244.0, 27_400_000.0)] == ["266", "1.00 k", "8.24 k", "27.4 M"]
    assert [amount(n, unit) for n, unit in ((5_000.0, RATE), (5_000.0, "ns"), (None, RATE))] == ["5.00 k", "5,000", "–"]
    assert [percent(n) for n in (0.0, 0.0004, 0.034, 0.05, 0.123, 1.0)] == [
        "0 %",
        "0.04 %",
        "3.4 %",
        "5 %",
        "12 %",
        "100 %",
    ]
    assert [times(n) for n in (0.871, 45.6, 12_345.0, 2_345_678.0)] == ["0.871×", "45.6×", "12,300×", "2.35 M×"]


def test_scales_hold_their_values() -> None:
    ratios = bar_scale([3.0, 40_000.0], 100, 200, baseline=1.0)
    assert ratios.ticks() == [1, 100, 10_000]
    assert ratios.place(1.0) == 100
    assert 190 < ratios.place(40_000.0) < 200
    assert bar_scale([0.5], 0, 1, baseline=1.0).place(1.0) == 1
    assert bar_scale([10.0, 1e6], 0, 1, baseline=None).low == 1  # else the shortest bar would have no length
    assert bar_scale([300.0, 400.0], 0, 1, baseline=None).low == 0  # else it would seem much shorter than it is
    assert fitting_scale([1.0, 4.0], 0, 1).ticks() == [0, 1, 2, 3, 4]
    assert fitting_scale([1.0, 400.0], 0, 1).is_log
    assert fitting_scale([], 0, 1).ticks()


# -- pages -------------------------------------------------------------------------------------------------------------


def test_figures_of_the_pages() -> None:
    text = figures(synthetic())
    row = next(line for line in text.splitlines() if line.startswith("| Q3"))
    assert row == "| Q3 | 8.00 M | 50,000×† | 40,000×† | 10.0× (pathway) |"
    assert "abc1234" in text
    assert "viewlet on Spark, Q3: 200; Spark SQL, Q3: 500" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    few = few_figures(synthetic())
    assert row in few.splitlines()
    assert "abc1234" in few
    assert "Spark" not in few


def test_figures_are_put_between_the_markers() -> None:
    told = figures(synthetic())
    once = with_figures(f"before\n{BEGIN}\nold\n{END}\nafter\n", told)
    assert once.startswith(f"before\n{BEGIN}\nMeasured by")
    assert once.endswith(f"{END}\nafter\n")
    assert with_figures(once, told) == once
    with pytest.raises(ValueError, match="has no"):
        with_figures("a page without them", told)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_have_the_figures_of_the_committed_results(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == with_figures(text, PAGES[page](Results.read(LATEST))), "run python -m bench.report.readme"


def test_the_readme_has_three_rows() -> None:
    assert sum(line.startswith("| ") for line in few_figures(Results.read(LATEST)).splitlines()) == 2 + 3
