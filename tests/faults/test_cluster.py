"""A real cluster, executors in processes of their own: equal to DuckDB after every micro-batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_conformance import paper_case
from tests.faults.feed import bids_streams, check, give
from tests.faults.job import Job
from tests.oracle.oracle import difference
from tests.spark import drive
from tests.spark.drive import Driver
from tests.spark.harness import write_streams
from viewlet.spark.process.protocol import UnreachableError, ask
from viewlet.spark.process.secret import Secret

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


@pytest.mark.parametrize("asked", [None, False], ids=["as Spark is", "not"])
def test_cells_of_an_encrypted_spark_are_encrypted_unless_one_says_no(
    driver: Driver, tmp_path: Path, asked: bool | None
) -> None:
    """Who knows the token and speaks in plain text is not heard, nor by the keepers."""
    job = Job(bids_streams(tmp_path / "in", 3), tmp_path / "checkpoint")
    give(job.streams, range(3))
    driver.call(drive.start, "bids", job.streams, checkpoint=job.checkpoint, cells=job.cells, encrypted=asked)
    driver.call(drive.finish, "bids")
    secret = driver.call(drive.secret, "bids")
    assert bool(secret.pem) is (asked is None)
    for address in job.newest.addresses.values():
        with pytest.raises(UnreachableError) as answer:
            ask(address, Secret(secret.token), {"do": "leave", "cell": "no cell"})
        assert ("has the port now" in str(answer.value)) is (asked is False), "the answer to what it does not know"
    check(job.streams, job.checkpoint, driver.call(drive.rows, "bids"))
    driver.call(drive.stop, "bids")
