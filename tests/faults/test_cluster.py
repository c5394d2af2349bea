"""A real cluster, executors in processes of their own: equal to DuckDB after every micro-batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_conformance import paper_case
from tests.oracle.oracle import difference
from tests.spark import drive
from tests.spark.drive import Driver
from tests.spark.harness import write_streams

pytestmark = pytest.mark.xdist_group("cluster")

EVENTS = 120
# by query: how many cells, the longest micro-batch, and the dialect
GRIDS = {
    "vwap": (2, 60, "sql"),  # one cell
    "q3": (3, 40, "sql"),
    "q17": (2, 40, "sql"),
    "q22": (3, 40, "paper"),  # summed across cells
}
ALWAYS = ("vwap", "q3")  # what is nested runs in a local session, and what is summed across cells in test_kills.py


@pytest.mark.parametrize("name", GRIDS)
def test_a_paper_query_equals_the_referee_after_every_micro_batch(
    driver: Driver, tmp_path: Path, name: str, soaking: bool
) -> None:
    if name not in ALWAYS and not soaking:
        pytest.skip("make soak runs it")
    cells, longest, dialect = GRIDS[name]
    case = paper_case(name, dialect, seed=12, events=EVENTS)  # type: ignore[arg-type]
    streams = write_streams(case, tmp_path / "in", seed=5, longest=longest)
    driver.call(drive.start, name, streams, checkpoint=tmp_path / "checkpoint", cells=cells)
    driver.call(drive.finish, name)
    streams.check(tmp_path / "checkpoint")[name].check()
    *_, last = streams.answers()
    assert difference(driver.call(drive.rows, name)[name], last[name]) is None
    driver.call(drive.stop, name)
