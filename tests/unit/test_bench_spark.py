"""The bench of Spark: its files say what a stream says, its clock knows whose time it was, its limits are limits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import viewlet
from bench.engine.workload import survivors, workload
from bench.spark import report
from bench.spark.events import EventFiles, Intake, event_tables, write_events
from bench.spark.machine import MARK, ROLES, Clock
from bench.spark.overhead import Overhead
from bench.spark.recompute import Recomputed
from bench.spark.run import Batch, Stretch, script_of
from bench.spark.scale import Size
from bench.spark.throughput import CELLS, LARGER_TWO_CELLS, ON_ONE_CORE, ONE_CELL, THROUGHPUT
from viewlet.workloads.queries import PAPER_QUERIES

EVENTS, ROWS = 3_000, 1_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> EventFiles:
    stream = workload("q3", 2 * EVENTS, shrunk=True).stream.between(0, EVENTS)
    return write_events(tmp_path_factory.mktemp("events"), event_tables(stream, ROWS))


def test_files_hold_the_stream(files: EventFiles) -> None:
    stream = workload("q3", 2 * EVENTS, shrunk=True).stream.between(0, EVENTS)
    assert files.count == EVENTS // ROWS
    assert [files.rows(range(n, n + 1)) for n in range(files.count)] == [ROWS] * files.count
    for name, left in survivors(stream).items():
        events = pa.concat_tables(pq.read_table(files.file(name, n)) for n in range(files.count))
        assert pc.sum(events["op"]).as_py() == len(left)
        assert events.schema.remove(events.schema.get_field_index("op")) == left.schema


def test_files_are_let_in_by_age(files: EventFiles, tmp_path: Path) -> None:
    """Spark takes the oldest file first."""
    intake = Intake(files, tmp_path)
    for name in files.relations:
        (tmp_path / name).mkdir()
    intake.let_in(range(1, 3))
    there = sorted((tmp_path / "orders").rglob("*.parquet"))
    assert [file.name for file in there] == ["00001.parquet", "00002.parquet"]
    assert there[0].stat().st_mtime < there[1].stat().st_mtime
    intake.let_go(range(1, 3))
    assert not any((tmp_path / "orders").iterdir())


@pytest.mark.parametrize("name", ["bsv", "q3", "axf"])
def test_scripts_have_only_what_the_query_reads(name: str) -> None:
    query = PAPER_QUERIES[name]
    program = viewlet.compile(script_of(query))
    assert {relation.name for relation in program.relations} == set(query.relations)


def test_the_clock_counts_what_a_process_and_its_children_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, f"test-{os.getpid()}")
    before = Clock.now()
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    took = Clock.now() - before
    assert set(took.roles) == set(ROLES)
    assert took.roles["driver"] >= 0.15


# -- limits ------------------------------------------------------------------------------------------------------------


def stretch(seconds: float, rows: int = 100_000, busy: float = 1.0, others: float = 0.0) -> Stretch:
    parts = {"triggerExecution": seconds, "addBatch": seconds / 2}
    batches = tuple(Batch(n, parts, {"seconds": seconds / 4}) for n in range(3))
    wall = 3 * seconds
    roles = dict.fromkeys(ROLES, 0.0) | {"JVM": wall * busy}
    return Stretch(batches, 3 * rows, Clock(wall, roles, wall * (busy + others)))


def test_a_rate_is_by_the_core() -> None:
    """Two busy cores are two, unless there is but one."""
    assert report.per_core(ONE_CELL, stretch(0.25, busy=2.0)) == pytest.approx(200_000)
    assert report.per_core(ON_ONE_CORE, stretch(0.25)) == pytest.approx(400_000)
    assert report.is_fast(ON_ONE_CORE, stretch(0.33))
    assert not report.is_fast(ON_ONE_CORE, stretch(0.34))


def test_limits() -> None:
    assert report.is_light(Overhead(stretch(0.1), stretch(0.19)))
    assert not report.is_light(Overhead(stretch(0.1), stretch(0.21)))
    assert report.is_flat([Size(10, 1, stretch(0.1)), Size(100, 1, stretch(0.14))])
    assert not report.is_flat([Size(10, 1, stretch(0.1)), Size(100, 1, stretch(0.16))])
    assert report.is_worth_it(Recomputed(2.0, 3.0, "as it comes", stretch(0.1)))
    assert not report.is_worth_it(Recomputed(1.9, 3.0, "as it comes", stretch(0.1)))


def test_cells_are_not_judged_where_others_had_the_second_core() -> None:
    def scale_out(seconds: float, others: float = 0.0) -> bool:
        return report.scales_out(
            {("q3", s): stretch(seconds if s is LARGER_TWO_CELLS else 1.0, others=others) for s in CELLS}
        )

    assert scale_out(0.6)
    assert not scale_out(0.8)
    assert scale_out(0.8, others=0.5)


def test_tables_show_every_query(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=200)
    report.show_throughput({("q3", setup): stretch(0.25) for setup in THROUGHPUT}, 25, console)
    report.show_cells({("bsv", s): stretch(0.25) for s in CELLS}, {"bsv": (stretch(0.3), stretch(0.3))}, console)
    report.show_overhead({"q3": Overhead(stretch(0.1), stretch(0.19))}, console)
    report.show_scale([Size(100_000, 1, stretch(0.1)), Size(1_000_000, 1, stretch(0.2))], console)
    report.show_recompute({("bsv", 1000): Recomputed(2.0, 3.0, "as it comes", stretch(0.1))}, console)
    said = capsys.readouterr().out
    assert {"400", "2.00×", "20.0×", "30.0×", "90", "1.67×"} <= set(said.split())
