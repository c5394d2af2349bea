"""A cell moves: a second process of it makes itself ready, and takes over where the first one is by then."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.cell_driver import DEADLINE, LOOPBACK, Driver, Place, gone, place_at
from viewlet.spark.process import standby
from viewlet.spark.process.client import new_run, stop
from viewlet.spark.process.standby import leave, stand_by
from viewlet.spark.process.ticket import Standby

SINCE = 7


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_at(str(tmp_path_factory.mktemp("checkpoint")))


@pytest.fixture
def moving(place: Place) -> Iterator[tuple[Driver, Place]]:
    """A cell that is at work, and another keeper, as of another executor."""
    driver, elsewhere = Driver(place), replace(place, run=new_run(place.store, LOOPBACK))
    driver.go_on(3)
    yield driver, elsewhere
    assert driver.answer is not None
    stop(driver.place.run, [driver.answer.address])
    gone(driver.answer.pid)


Moving = tuple[Driver, Place]


def looked(driver: Driver, elsewhere: Place) -> Standby | None:
    """As a task of a batch does over there."""
    return stand_by(replace(driver.ticket, run=elsewhere.run), SINCE)


def ready(driver: Driver, elsewhere: Place) -> Standby:
    until = time.monotonic() + DEADLINE
    while (standby := looked(driver, elsewhere)) is None:
        assert time.monotonic() < until, "the cell is not ready"
        driver.go_on(check=False)
    return standby


def switched(driver: Driver, elsewhere: Place, standby: Standby) -> None:
    assert driver.answer is not None
    driver.place, driver.answer = elsewhere, replace(driver.answer, address=standby.address)


@pytest.mark.parametrize("behind", [0, 1, 4])
def test_a_cell_goes_on_in_the_process_that_stood_by(moving: Moving, behind: int) -> None:
    driver, elsewhere = moving
    if behind == 4:
        driver.snapshotted()
    assert looked(driver, elsewhere) is None, "it was asked just now"
    first = ready(driver, elsewhere)
    driver.go_on(behind or 1)
    before, run = driver.answer, driver.place.run
    assert before is not None
    switched(driver, elsewhere, first)
    after = driver.go_on()
    assert (after.pid != before.pid, after.reloaded, after.engine) == (True, False, first.engine)
    leave(run, driver.name, before.address)
    gone(before.pid)
    assert not driver.go_on(3).reloaded
    driver.kill()
    assert driver.go_on().reloaded


def test_an_answer_that_did_not_count_is_not_taken_for_the_way_to_the_next_version(moving: Moving) -> None:
    """The driver dies, or the job is done again, right after the cell has moved."""
    driver, elsewhere = moving
    switched(driver, elsewhere, ready(driver, elsewhere))
    driver.ask([(1, (3, 33))])
    assert driver.go_on().reloaded, "it had another attempt's version"
    driver.go_on()


def test_a_cell_that_takes_long_is_asked_again_before_it_is_ready(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks the logs of all the batches since."""
    driver, elsewhere = moving
    monkeypatch.setattr(standby, "SOON", -1.0)
    for _ in range(6):
        assert looked(driver, elsewhere) is None
        time.sleep(0.05)
    monkeypatch.undo()
    switched(driver, elsewhere, ready(driver, elsewhere))
    assert not driver.go_on().reloaded


def test_a_cell_that_cannot_be_made_ready_says_why_and_the_other_goes_on(moving: Moving) -> None:
    driver, elsewhere = moving
    log = elsewhere.root / driver.chain.logs[0].file.path
    kept = log.read_bytes()
    os.truncate(log, len(kept) // 2)
    told = ready(driver, elsewhere)
    log.write_bytes(kept)
    assert "cannot be restored" in told.why
    assert not driver.go_on().reloaded
    assert told.address is not None
    stop(elsewhere.run, [told.address])


def test_only_the_cell_that_is_meant_leaves(place: Place, moving: Moving) -> None:
    driver, _ = moving
    assert driver.answer is not None
    leave(place.run, "c999", driver.answer.address)
    assert not driver.go_on().reloaded
    assert Counter(driver.expected) != Counter()


def test_where_no_keeper_starts_the_cell_stays_where_it_is(
    moving: Moving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver, elsewhere = moving
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    told = looked(driver, elsewhere)
    monkeypatch.undo()
    assert told is not None
    assert "missing" in told.why
    assert not driver.go_on().reloaded
