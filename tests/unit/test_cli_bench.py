"""``viewlet bench``: what is kept however a run ends, what counts as a change, and exit codes."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import bench.run
from bench.compare import Change, compare, is_worse
from bench.engine.answers import WrongAnswerError
from bench.report import HTML, MARKDOWN
from bench.results import About, Grid, Measurement, Results, Series
from bench.run import RESULTS, chosen_queries, command, line, run
from bench.suite import Found, Say, Settings
from viewlet.cli import bench as cli
from viewlet.cli.main import app

RIGHT = Measurement("figure-7", "q3", "optimized", 8e6, noise=0.04, repetitions=3, rows_checked=10)


def viewlet(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def right(settings: Settings, say: Say) -> Iterator[Found]:
    say("q3, optimized")
    yield RIGHT
    yield f"{len(settings.queries)} queries"


def wrong(settings: Settings, say: Say) -> Iterator[Found]:
    yield from right(settings, say)
    raise WrongAnswerError("naive says (1,), not (2,)")


def interrupted(settings: Settings, say: Say) -> Iterator[Found]:
    yield from right(settings, say)
    raise KeyboardInterrupt


# -- running -----------------------------------------------------------------------------------------------------------


def test_a_run_writes_results_and_reports(tmp_path: Path) -> None:
    said, settings, folder = io.StringIO(), Settings(), tmp_path / "new"
    code = run({"one": right, "two": right}, command("all", settings), settings, folder, Console(file=said))
    results_ = Results.read(folder / RESULTS)
    assert code == 0
    assert results_.measurements == [RIGHT, RIGHT]
    assert results_.about.command == "viewlet bench all"
    assert {path.name for path in folder.iterdir()} == {RESULTS, HTML, MARKDOWN}
    assert "one: q3, optimized …\none: figure-7, q3, optimized: 8.00 M events/CPU s, noise 4 %\n" in said.getvalue()


def test_help_says_how_long_a_measurement_takes() -> None:
    assert f"[default: ({Settings().seconds:g})]" in " ".join(viewlet("paper", "--help").output.split())


def test_a_wrong_answer_keeps_what_there_is_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.run, "load", lambda name: wrong if name == "peers" else right)
    result = viewlet("all", "--out", tmp_path, "--queries", "q3,bsv")
    assert result.exit_code == 1
    assert "wrong answer: naive says (1,), not (2,)" in result.stderr
    results_ = Results.read(tmp_path / RESULTS)
    assert results_.measurements == [RIGHT, RIGHT]  # Spark was not begun
    assert results_.notes[-1].startswith("WRONG ANSWER: naive says (1,), not (2,)")
    assert 'class="alarm"' in (tmp_path / HTML).read_text("utf-8")


def test_an_interrupted_run_keeps_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.run, "load", lambda name: interrupted)
    assert viewlet("paper", "--out", tmp_path).exit_code == 130
    assert Results.read(tmp_path / RESULTS).measurements == [RIGHT]


def test_the_folder_has_the_time_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench.run, "load", lambda name: right)
    assert viewlet("spark", "--seconds", "0.5", "--full").exit_code == 0
    (folder,) = (tmp_path / "bench-results").iterdir()
    assert Results.read(folder / RESULTS).about.command == "viewlet bench spark --seconds 0.5 --full"


def test_what_is_asked_for() -> None:
    assert chosen_queries(" Q3, bsv,q3") == ("bsv", "q3")
    settings = Settings(queries=("bsv", "q3"), seconds=0.25, full=True)
    assert " ".join(command("peers", settings)) == "viewlet bench peers --queries bsv,q3 --seconds 0.25 --full"
    assert command("all", Settings()) == ["viewlet", "bench", "all"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("everything",),
        ("paper", "--queries", "q99"),
        ("paper", "--queries", ","),
        ("paper", "--seconds", "0"),
        ("report",),
        ("report", "no-such-file.json"),
        ("compare", "no-such-file.json", "no-such-file.json"),
    ],
)
def test_usage_errors_exit_with_2(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = viewlet(*arguments)
    assert result.exit_code == 2
    assert result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_installed_package_says_where_the_benchmarks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "CHECKOUT", tmp_path)
    result = viewlet("paper")
    assert result.exit_code == 2
    assert "clone viewlet's repository" in result.stderr


def test_the_command_is_offered_in_a_checkout_alone(tmp_path: Path) -> None:
    """A copy of the package is what a wheel installs: it has no benchmarks beside it."""
    assert "bench" in CliRunner().invoke(app, ["--help"]).stdout
    installed = tmp_path / "lib" / "site-packages"
    shutil.copytree(Path(cli.__file__).parents[1], installed / "viewlet", ignore=shutil.ignore_patterns("__pycache__"))
    asked = "from typer.testing import CliRunner; from viewlet.cli.main import app; run = CliRunner().invoke; "
    told = "print(run(app, ['--help']).output, '---', run(app, ['bench', 'all']).output)"
    ran = subprocess.run(
        [sys.executable, "-c", asked + told],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    offered, _, refused = ran.stdout.partition("---")
    assert "explain" in offered
    assert "bench" not in offered
    assert refused.strip().startswith("error: the benchmarks are not part of the installed package: clone viewlet's")


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def needs_it(name: str) -> None:
        raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

    monkeypatch.setattr(bench.run, "load", needs_it)
    result = viewlet("paper", "--out", tmp_path)
    assert (result.exit_code, result.stderr) == (2, "error: the benchmarks need duckdb: run `make setup`\n")


def test_help_teaches() -> None:
    told = viewlet("--help").stdout
    for word in ("paper", "peers", "spark", "all", "report", "compare", "Examples", "make bench"):
        assert word in told


def test_lines_for_a_person_who_waits() -> None:
    refused = Measurement("peers", "vwap", "flink", outcome="refused", note="cannot plan it")
    assert line(refused) == "peers, vwap, flink: refused: cannot plan it"
    stopped = Measurement("figure-7", "mst", "reevaluate", 12.0, bounded=True, reached=0.02)
    assert line(stopped) == "figure-7, mst, reevaluate: 12.0 events/CPU s, stopped at 2 % of the stream"
    assert line(Grid("figure-3", "Rules applied", (), ())) == "figure-3: Rules applied"
    assert line(Series("figure-8", "q3", "naive", "x", "y", ())) == ""
    assert line("a deviation") == "note: a deviation"


# -- report and compare ------------------------------------------------------------------------------------------------


def results(*measurements: Measurement) -> Results:
    whole = Results(About.now(["viewlet", "bench", "all"]))
    whole.add(measurements)
    return whole


def rate(value: float | None, noise: float = 0.0, unit: str = "events/CPU s", who: str = "optimized") -> Measurement:
    outcome = "measured" if value is not None else "refused"
    return Measurement("figure-7", "q3", who, value, unit, outcome, noise=noise, repetitions=3)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (rate(100), rate(109), "same"),
        (rate(100), rate(112), "faster"),
        (rate(100), rate(88), "slower"),
        (rate(100, 0.05), rate(88, 0.05), "same"),  # within the noise of both and 10 %
        (rate(100, 0.05), rate(80, 0.05), "slower"),
        (rate(100, unit="ns"), rate(120, unit="ns"), "slower"),
        (rate(100, unit="ns"), rate(80, unit="ns"), "faster"),
        (rate(100), rate(None), "lost"),
        (rate(None), rate(100), "gained"),
        (rate(None), rate(None), "same"),
    ],
)
def test_verdicts(before: Measurement, after: Measurement, verdict: str) -> None:
    assert Change(before, after, threshold=0.1).verdict == verdict
    assert is_worse([Change(before, after, threshold=0.1)]) == (verdict in ("slower", "lost"))


def test_only_what_both_measured_is_compared() -> None:
    before = results(rate(100), rate(22_000, who="paper"), rate(5, who="naive"))
    after = results(rate(100), rate(22_000, who="paper"), rate(5, who="cost"))
    assert [change.before.contestant for change in compare(before, after, 0.1)] == ["optimized"]


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    results(rate(100), rate(50, who="naive")).write(tmp_path / "before" / RESULTS)
    results(rate(60), rate(50, who="naive")).write(tmp_path / "after" / RESULTS)
    return tmp_path / "before", tmp_path / "after" / RESULTS


def test_compare_shows_both_and_fails_if_asked(runs: tuple[Path, Path]) -> None:
    shown = viewlet("compare", *runs)
    assert shown.exit_code == 0
    assert "0.600×" in shown.stdout
    assert "1 slower, 1 same" in shown.stdout
    assert viewlet("compare", *runs, "--fail").exit_code == 1
    assert viewlet("compare", *runs, "--fail", "--threshold", "0.7").exit_code == 0
    assert viewlet("compare", *reversed(runs), "--fail").exit_code == 0


@pytest.mark.parametrize("text", ["no JSON", '{"format": 99}', '{"format": 1}', "[]"])
def test_what_is_no_file_of_results_is_said_to_be_none(text: str, runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(text)
    result = viewlet("compare", runs[0], other)
    assert result.exit_code == 2
    assert f"error: {other} is no file of results" in result.stderr


def test_report_is_written_anew_from_several_runs(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = viewlet("report", *runs, "--out", tmp_path / "both")
    assert result.exit_code == 0
    assert [Path(path).name for path in result.stdout.split()] == [HTML, MARKDOWN]
    assert (tmp_path / "both" / HTML).exists()
