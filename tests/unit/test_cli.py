"""The command line: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

import viewlet
from viewlet.cli import explain, options
from viewlet.cli.demo import FINANCE_VIEWS
from viewlet.cli.main import app
from viewlet.compiler.strategy import STRATEGIES
from viewlet.database.memory import Database
from viewlet.explain import CPP, LOOPS, STAGES
from viewlet.jobs.run import LocalRun, Progress
from viewlet.schema import Dialect
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

SOURCE = Path(viewlet.__file__).parents[1]
BAD = "CREATE STREAM r (a BIGINT);\nCREATE MATERIALIZED VIEW top AS SELECT skewness(a) AS m FROM r;\n"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.sql"
    path.write_text(FINANCE + PAPER_QUERIES["vwap"].sql() + PAPER_QUERIES["bsv"].sql())
    return str(path)


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain_prints_the_story_of_a_program(job: str) -> None:
    result = run("explain", job)
    assert result.exit_code == 0
    assert result.stdout == f"{_database(job).explain()}\n"


def _database(job: str) -> Database:
    db = viewlet.connect()
    db.execute(Path(job).read_text())
    return db


def test_explain_one_view_one_stage(job: str) -> None:
    result = run("explain", job, "--view", "BSV", "--stage", "program")
    assert result.exit_code == 0
    assert result.stdout.startswith("on insert into bids")
    assert "vwap" not in result.stdout


def test_explain_shows_the_cpp_of_one_view(job: str) -> None:
    result = run("explain", job, "--view", "bsv", "--stage", "cpp")
    assert result.exit_code == 0
    assert result.stdout == f"{_database(job).explain('bsv').stage('cpp')}\n"
    assert "void change_bids(const BidsRow& event, const i64 sign)" in result.stdout
    assert "vwap" not in result.stdout


def test_explain_reads_stdin(job: str) -> None:
    assert run("explain", "-", stdin=Path(job).read_text()).stdout == run("explain", job).stdout


def test_explain_trace_strategy_and_dialect(job: str) -> None:
    traced = run("explain", job, "--stage", "decision", "--trace")
    assert "every step:" in traced.stdout
    naive = run("explain", job, "--strategy", "naive", "--dialect", "paper")
    assert "(strategy naive, dialect paper)" in naive.stdout


def test_explain_formats(job: str) -> None:
    assert json.loads(run("explain", job, "--format", "json").stdout)["graph"]["nodes"]
    assert run("explain", job, "--format", "dot").stdout.startswith("digraph viewlet {")
    assert run("explain", job, "--format", "html").stdout.startswith('<div class="viewlet-explain">')


def test_a_wrong_script_is_told_in_its_own_words(tmp_path: Path) -> None:
    path = tmp_path / "bad.sql"
    path.write_text(BAD)
    result = run("explain", str(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: line 2, column 40: the aggregate SKEWNESS is not supported",
        "  CREATE MATERIALIZED VIEW top AS SELECT skewness(a) AS m FROM r;",
        "  " + " " * 39 + "^",
        "hint: the aggregates are SUM, COUNT, AVG, MIN, MAX, BOOL_AND, VARIANCE, ARG_MAX, FIRST and their like",
    ]


def test_an_unknown_view_is_an_error(job: str) -> None:
    result = run("explain", job, "--view", "nope")
    assert (result.exit_code, result.stderr) == (2, "error: there is no view nope; there are: vwap, bsv\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "no-such-file.sql"),
        ("explain", "."),
        ("explain", "JOB", "--stage", "assembly"),
        ("explain", "JOB", "--stage", "cpp", "--format", "json"),
        ("explain", "JOB", "--stage", "delta", "--format", "html"),
        ("explain", "JOB", "--strategy", "best"),
        ("check", "JOB", "--dialect", "mysql"),
        ("demo", "--views", "q18"),
        ("demo", "--views", ","),
        ("demo", "--events", "0"),
        ("run", "no-such-file.sql"),
        ("run", "JOB", "--engine", "flink"),
        ("run", "JOB", "--master", "local[2]"),
        ("bench",),
    ],
)
def test_usage_errors_exit_with_2(arguments: tuple[str, ...], job: str) -> None:
    result = run(*(job if a == "JOB" else a for a in arguments))
    assert result.exit_code == 2
    assert result.stderr


def test_a_file_that_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "binary.sql"
    path.write_bytes(b"CREATE \xff\xfe")
    result = run("check", str(path))
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


# -- check -------------------------------------------------------------------------------------------------------------


def test_check_lists_every_view_and_its_cost(job: str) -> None:
    result = run("check", job)
    assert result.exit_code == 0
    assert "✓ vwap: an update costs O(log n)" in result.stdout
    assert "✓ bsv: an update costs O(1)" in result.stdout


def test_check_warns_of_a_scan() -> None:
    far = "CREATE MATERIALIZED VIEW far AS SELECT count(*) AS n FROM bids b, asks a WHERE abs(a.price - b.price) > 3;"
    result = run("check", "-", stdin=FINANCE + far)
    assert result.exit_code == 0
    assert "! far: an update costs O(n)" in result.stdout
    assert "no key is bound" in result.stdout


def test_check_fails_where_a_view_cannot_be_maintained() -> None:
    good = "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r;"
    result = run("check", "-", stdin=BAD + good)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "✗ top: cannot be maintained"
    assert "line 2, column 40: the aggregate SKEWNESS is not supported" in result.stdout
    assert "✓ n: an update costs O(1)" in result.stdout


def test_check_of_a_script_without_views() -> None:
    result = run("check", "-", stdin="CREATE STREAM r (a BIGINT);")
    assert (result.exit_code, result.stdout) == (0, "the script creates no view\n")


# -- demo --------------------------------------------------------------------------------------------------------------


def test_demo_keeps_every_finance_view_and_verifies_it() -> None:
    result = run("demo", "--events", "30", "--live", "8", "--views", ",".join(FINANCE_VIEWS))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[: len(FINANCE_VIEWS)]] == list(FINANCE_VIEWS)
    assert sum(" events  " in line for line in lines) == 10
    assert lines[-1].startswith("verified: axf, bsp, bsv, mst, psp, vwap equal their queries")
    assert "\x1b" not in result.stdout, "piped output is plain"


def test_demo_is_the_same_for_the_same_seed() -> None:
    def values(seed: str) -> list[str]:
        stdout = run("demo", "--events", "20", "--views", "bsv,bsp", "--seed", seed).stdout
        return [line.split(" left ")[1] for line in stdout.splitlines() if " left " in line]

    assert values("7") == values("7") != values("8")


def test_demo_fails_where_a_view_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "verify", lambda self, name: [(1, (7, 250.0))] if name == "bsp" else [])
    result = run("demo", "--events", "10", "--views", "bsv,bsp")
    assert result.exit_code == 1
    assert result.stderr == "different: bsp has 1 wrong rows, the first (1, (7, 250.0))\n"
    assert "verified" not in result.stdout


def test_demo_on_a_terminal_shows_a_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    result = run("demo", "--events", "40", "--views", "bsv,axf")
    assert result.exit_code == 0
    assert "bsv · an event costs O(1)" in result.stdout
    assert "batch 1/1  100%  done" in result.stdout
    assert "verified: bsv, axf" in result.stdout


# -- run ---------------------------------------------------------------------------------------------------------------


def generated(job: str, events: int = 3_000) -> str:
    """The job, its streams generated."""
    source = f"WITH (connector = 'orderbook', events = {events}, events_per_batch = 1000, live = 50)"
    return Path(job).read_text().replace("NOT NULL);", f"NOT NULL) {source};")


def test_run_takes_a_job_to_its_end_and_verifies_it(job: str) -> None:
    result = run("run", "-", "--verify", stdin=generated(job))
    assert result.exit_code == 0, result.output
    *batches, vwap, bsv, verdict = result.stdout.splitlines()
    assert [line.split("  ")[:2] for line in batches] == [[f"batch {n}/3", f"{n},000 rows read"] for n in (1, 2, 3)]
    assert [line.split(":")[0] for line in (vwap, bsv, verdict)] == ["vwap", "bsv", "verified"]
    assert bsv.endswith(" | …")
    assert "\x1b" not in result.stdout, "piped output is plain"


def test_run_on_a_terminal_shows_the_views(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    result = run("run", "-", stdin=generated(job))
    assert result.exit_code == 0, result.output
    assert "╭─ vwap ─" in re.sub(r"\x1b\[[\d;]*m", "", result.stdout)
    assert "batch 3/3  100%  done" in result.stdout


def test_run_fails_where_a_view_is_wrong(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LocalRun.rows

    def twice(self: LocalRun, view: str) -> list[tuple[object, ...]]:
        return rows(self, view) * (2 if view == "vwap" else 1)

    monkeypatch.setattr(LocalRun, "rows", twice)
    result = run("run", "-", "--verify", stdin=generated(job))
    assert result.exit_code == 1
    assert result.stderr.startswith("different: vwap has 2 rows like (")
    assert "verified" not in result.stdout


def test_run_says_before_the_job_that_the_referee_is_missing(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(LocalRun, "__init__", lambda *_: pytest.fail("the job was started"))
    result = run("run", "-", "--verify", stdin=generated(job))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: views are verified by DuckDB: pip install duckdb\n"


def test_run_ends_when_it_is_interrupted(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(LocalRun, "close", lambda self: closed.append(self))

    def interrupted(self: LocalRun) -> Iterator[Progress]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(LocalRun, "batches", interrupted)
    result = run("run", "-", stdin=generated(job))
    assert (result.exit_code, result.stderr) == (130, "stopped\n")
    assert len(closed) == 1


def test_run_says_what_a_job_lacks(job: str) -> None:
    result = run("run", job)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: stream bids has no connector: add WITH (connector = 'parquet', path = '…')")


def test_run_has_a_job_of_its_own() -> None:
    script = files("viewlet.workloads").joinpath("orderbook.sql").read_text()
    assert [check.maintainable for check in viewlet.check(script)] == [True] * 3
    smaller = script.replace("events = 500000", "events = 2000").replace("20000)", "500)")
    result = run("run", "-", "--verify", stdin=smaller)
    assert result.stdout.splitlines()[-1].startswith("verified"), result.output


# -- the command itself ------------------------------------------------------------------------------------------------


def test_options_offer_what_there_is() -> None:
    assert set(get_args(get_args(options.StrategyOption)[0])) == set(STRATEGIES)
    assert get_args(options.DialectOption)[0] == Dialect
    assert [s.value for s in explain.Stage] == [*STAGES, LOOPS, CPP]


def test_help_teaches_by_example() -> None:
    assert all(command in run("--help").stdout for command in ("explain", "check", "run", "demo"))
    for command in ("explain", "check", "run", "demo"):
        assert f"viewlet {command}" in run(command, "--help").stdout


def test_the_real_command(job: str) -> None:
    def viewlet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "viewlet", *arguments]
        env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8"}
        return subprocess.run(program, capture_output=True, text=True, encoding="utf-8", env=env, check=False)

    version = viewlet_command("--version")
    assert (version.returncode, version.stdout) == (0, f"viewlet {viewlet.__version__}\n")
    explained = viewlet_command("explain", job, "--view", "bsv")
    assert explained.returncode == 0
    assert explained.stdout.startswith("bsv: ")
    refused = viewlet_command("explain", job, "--view", "nope")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr
