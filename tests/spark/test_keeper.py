"""Cells in processes of their own: whatever dies, is doubled or is damaged, a view is right or refused."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.spark.cell_driver import (
    LOOPBACK,
    NAMES,
    VIEWS,
    Driver,
    Place,
    gone,
    numbers,
    place_at,
)
from viewlet.durable.chain import START, Chain, Snapshot
from viewlet.errors import CorruptError, DataError, OverflowError_
from viewlet.spark.process.artefact import publish
from viewlet.spark.process.client import Answer, Rows, Split, Ticket, apply, apply_held, hold, new_run, part_rows, stop
from viewlet.spark.process.protocol import UnreachableError
from viewlet.spark.process.snapshot import MOST_LOGS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_at(str(tmp_path_factory.mktemp("checkpoint")))


@pytest.fixture
def driver(place: Place) -> Iterator[Driver]:
    driving = Driver(place)
    yield driving
    if driving.answer is not None:
        stop(place.run, [driving.answer.address])
        gone(driving.answer.pid)


# -- batches -----------------------------------------------------------------------------------------------------------


def test_views_follow_their_rows(driver: Driver) -> None:
    first = driver.go_on()
    assert (first.engine, first.reloaded, first.rows) == ("native", False, len(NAMES) + sum(driver.expected.values()))
    assert first.state_bytes > 0
    for _ in range(10):
        later = driver.go_on()
        assert (later.pid, later.reloaded) == (first.pid, False)
    assert Answer.from_json(later.to_json()) == later


def test_a_cell_without_rows_has_the_row_of_an_aggregate_over_nothing(driver: Driver) -> None:
    driver.commit(driver.ask([]), [])
    driver.check()
    assert driver.shown("t") == Counter([(None, 0)])
    driver.go_on()


def test_a_cell_publishes_what_it_is_asked_to(place: Place) -> None:
    """A view over all cells is finished in one of them."""
    answer = apply(Ticket(place.run, place.artefact, "shy", 0, START, Chain, None, ("t",)), [])
    assert list(answer.log.changes) == ["t"]
    stop(place.run, [answer.address])


def test_a_cell_is_opened_once_however_many_ask(driver: Driver) -> None:
    first = driver.go_on()
    driver.answer = None  # no hint
    assert driver.go_on().pid == first.pid


def test_partial_changes_add_up_to_the_view(tmp_path: Path, place: Place) -> None:
    """What the merge cells get of a view, and no other rows; those of one key meet in one of them."""
    watched = place.program.result("v").lookups[0][1]
    view = watched.name  # type: ignore[attr-defined]
    artefact = publish(place.store, place.program, VIEWS, (view,))
    driver = Driver(replace(place, artefact=artefact), (Split(view, (0,), 3),))
    summed: list[Counter[tuple[Any, ...]]] = [Counter(), Counter(), Counter()]
    for number in range(8):
        if number == 4:
            driver.kill()
        answer = driver.go_on()
        for part in answer.parts:
            for rows in part_rows("partial", [part.data]):
                assert rows.batch.schema.names == ["k0", "value"]
                for row in rows.batch.to_pylist():
                    summed[part.part][row["k0"], row["value"]] += rows.times
    assert all(n in (0, 1) for part in summed for n in part.values())
    assert sum(map(bool, summed)) > 1
    shown = {row[0]: row for row in driver.shown("v")}
    everything = [key for part in summed for key in +part]
    assert len(everything) == len(dict(everything)), "a key is in one part"
    assert {k: v for k, v in everything if v} in (
        {a: s for a, s, _ in shown.values() if s},
        {a: n for a, _, n in shown.values()},
    )
    stop(place.run, [answer.address])


# -- attempts ----------------------------------------------------------------------------------------------------------


def test_a_cell_that_was_killed_goes_on_from_its_logs(driver: Driver) -> None:
    driver.go_on(5)
    before = driver.answer
    driver.kill()
    after = driver.go_on()
    assert before is not None
    assert (after.reloaded, after.pid != before.pid) == (True, True)
    assert not driver.go_on().reloaded


def test_an_answer_that_nobody_heard_counts_only_if_it_is_given_again(driver: Driver) -> None:
    """Killed after its log was written: the log lies about, and nothing reads it."""
    driver.go_on(3)
    events = driver.events()
    lost = driver.ask(events)
    driver.kill()
    again = driver.commit(driver.ask(events), events)
    assert again.log.id != lost.log.id
    driver.check()
    driver.go_on(2)


def test_a_batch_that_is_asked_again_is_answered_again(driver: Driver) -> None:
    driver.go_on(3)
    events = driver.events()
    first, second = driver.ask(events), driver.ask(events)
    assert first == second
    driver.commit(second, events)
    driver.check()
    assert not driver.go_on().reloaded


def test_a_batch_may_have_other_rows_at_another_attempt(driver: Driver) -> None:
    driver.go_on(3)
    driver.ask([(1, (1, 1)), (1, (2, 2))])
    events = driver.events()
    winner = driver.commit(driver.ask(events), events)
    assert winner.reloaded
    driver.check()
    driver.go_on(2)


def test_rows_that_a_cell_holds_count_once_it_is_told_so(driver: Driver) -> None:
    """One task takes out a row that another brings later; a third was run twice, and left rows that do not count."""
    driver.go_on(3)
    events = [(1, (9, 1)), (-1, (9, 1)), (1, (2, 5))]
    hold(driver.ticket, "first", driver.rows(events[1:2]))
    hold(driver.ticket, "second", driver.rows([events[0], events[2]]))
    hold(driver.ticket, "stray", driver.rows(events))
    with pytest.raises(UnreachableError, match="has not got all rows of batch 3"):
        apply_held(driver.ticket, ["first", "third"])
    late = driver.ticket
    answer = driver.commit(apply_held(late, ["first", "second"]), events)
    assert (answer.rows, answer.reloaded) == (3, False)
    assert answer.log.seconds == answer.engine_seconds > 0, "by which snapshots are due"
    driver.check()
    with pytest.raises(UnreachableError, match="has not got all rows of batch 4"):
        apply_held(driver.ticket, ["stray"])
    hold(driver.ticket, "next", driver.rows(events[2:]))
    hold(late, "late", driver.rows(events))
    assert not driver.commit(apply_held(driver.ticket, ["next"]), events[2:]).reloaded
    assert not driver.go_on().reloaded
    driver.kill()
    with pytest.raises(UnreachableError):
        hold(driver.ticket, "fourth", driver.rows(events))
    assert driver.go_on().reloaded, "from a log that was put together of what it held"


def test_two_cells_of_one_name_do_not_disturb_each_other(place: Place, driver: Driver) -> None:
    """A cell that was given up, being slow, and goes on; another executor's keeper has a new one."""
    driver.go_on(3)
    elsewhere = replace(place, run=new_run(place.store, LOOPBACK))
    other = replace(driver, place=elsewhere, answer=None, expected=Counter(driver.expected))
    events = driver.events()
    zombie = driver.ask(events)
    winner = other.commit(other.ask(events), events)
    other.check()
    driver.chain, driver.batch, driver.expected = other.chain, other.batch, Counter(other.expected)
    assert zombie.log.id != winner.log.id
    assert driver.go_on().reloaded, "the zombie has another attempt's version of the same batch"
    stop(elsewhere.run, [winner.address])


def test_rows_that_cannot_be_taken_change_nothing(driver: Driver) -> None:
    driver.go_on(3)
    with pytest.raises(DataError, match=r"r, row 0: .* is not there") as missing:
        driver.ask([(-1, (77, 77))])
    assert (missing.value.relation, missing.value.row) == ("r", 0)
    assert driver.go_on().reloaded
    null = pa.record_batch({"a": pa.array([1, None], pa.int32()), "b": pa.array([1, 2], pa.int32())})
    with pytest.raises(DataError, match=r"r\.a, row 1: NULL in a NOT NULL column"):
        apply(driver.ticket, [Rows("r", 1, null)])
    driver.go_on()


def test_a_sum_that_no_longer_fits_is_refused(place: Place) -> None:
    program = viewlet.compile(
        "CREATE STREAM r (b BIGINT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS s FROM r"
    )
    artefact = publish(place.store, program, ["v"])
    artefact = replace(artefact, objects={})  # as on another platform: the keeper compiles
    great = pa.record_batch({"b": pa.array([2**63 - 1], pa.int64())})
    ticket = Ticket(place.run, artefact, "overflow", 0, START, Chain, None, ("v",))
    answer = apply(ticket, [Rows("r", 1, great)])
    chain = Chain().followed(answer.log)
    with pytest.raises(OverflowError_, match=r"v\.s: a sum no longer fits BIGINT"):
        apply(replace(ticket, batch=1, version=chain.version, chain=lambda: chain), [Rows("r", 1, great)])
    stop(place.run, [answer.address])


# -- snapshots ---------------------------------------------------------------------------------------------------------


def test_a_kill_during_a_snapshot_does_no_harm(driver: Driver) -> None:
    child = driver.snapshotting()
    driver.kill()
    driver.go_on(2)
    gone(child)
    driver.snapshotted()


def test_a_child_that_fails_costs_a_snapshot_and_nothing_else(driver: Driver) -> None:
    with suppress(ProcessLookupError):
        os.kill(driver.snapshotting(), signal.SIGKILL)
    driver.go_on()
    driver.snapshotted()


def test_a_snapshot_whose_files_were_cleaned_away_is_not_told_of(driver: Driver) -> None:
    """It came so late that its batch was retained no longer."""
    gone(driver.snapshotting())
    for file in driver.place.root.glob(f"bases/t/*-{driver.name}-*"):
        file.unlink()
    driver.snapshotted()
    assert driver.chain.base is not None
    assert all(map(driver.place.store.has, driver.chain.files()))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.fixture(scope="module")
def with_snapshots(place: Place) -> Driver:
    """A cell that has two snapshots and some batches after each; it is killed."""
    driver = Driver(place)
    driver.snapshotted()
    driver.snapshotted()
    driver.go_on(3)
    driver.kill()
    return driver


@pytest.fixture
def harmed(with_snapshots: Driver) -> Iterator[tuple[Driver, Callable[[str, Callable[[Path], None]], None]]]:
    """The same cell for each test, its files mended at the end."""
    before: dict[Path, bytes] = {}

    def harm(path: str, how: Callable[[Path], None]) -> None:
        file = with_snapshots.place.root / path
        before[file] = file.read_bytes()
        how(file)

    copy = replace(with_snapshots, name=f"c{next(numbers)}", expected=Counter(with_snapshots.expected))
    yield copy, harm
    for file, data in before.items():
        file.write_bytes(data)
    if copy.answer is not with_snapshots.answer and copy.answer is not None:
        stop(copy.place.run, [copy.answer.address])


Harmed = tuple[Driver, Callable[[str, Callable[[Path], None]], None]]


def test_logs_that_are_little_beside_the_snapshot_are_merged(driver: Driver) -> None:
    rows = [(1, (a % 8, a)) for a in range(100_000)]
    driver.commit(driver.ask(rows), rows)
    driver.snapshotted()
    first = driver.chain.base
    assert first is not None
    for _ in range(2):
        merged = sum(log.is_merged for log in driver.chain.logs)
        gone(driver.snapshotting())
        while sum(log.is_merged for log in driver.chain.logs) == merged and len(driver.chain.recent) > MOST_LOGS // 2:
            driver.go_on(check=False)
    driver.check()
    assert driver.chain.base == first, "it is large: another one would cost more than the logs"
    assert len(driver.chain.recent) < MOST_LOGS
    assert any(log.is_merged for log in driver.chain.recent)
    driver.kill()
    assert driver.go_on().reloaded
    driver.go_on(3)


def test_a_cell_goes_on_from_its_snapshot(harmed: Harmed) -> None:
    driver, _ = harmed
    assert len(driver.chain.logs) < driver.batch
    assert driver.go_on().reloaded
    driver.go_on(3)


@pytest.mark.parametrize("how", [flip, truncate, Path.unlink])
def test_a_broken_newest_snapshot_gives_way_to_the_older_one(harmed: Harmed, how: Callable[[Path], None]) -> None:
    driver, harm = harmed
    harm(driver.chain.snapshots[1].file.path, how)
    assert driver.go_on().reloaded
    driver.go_on()


def rows_of(snapshot: Snapshot) -> str:
    assert snapshot.rows is not None
    return snapshot.rows.path


def test_the_rows_of_a_snapshot_serve_where_no_state_does(harmed: Harmed) -> None:
    """As where another engine wrote the state, or another version of viewlet."""
    driver, harm = harmed
    for snapshot in driver.chain.snapshots:
        harm(snapshot.file.path, flip)
    harm(rows_of(driver.chain.snapshots[1]), flip)
    assert driver.go_on().reloaded
    driver.go_on(3)


def test_without_a_snapshot_that_is_whole_nothing_is_applied(harmed: Harmed) -> None:
    driver, harm = harmed
    harm(driver.chain.snapshots[0].file.path, flip)
    harm(driver.chain.snapshots[1].file.path, truncate)
    for snapshot in driver.chain.snapshots:
        harm(rows_of(snapshot), truncate)
    with pytest.raises(CorruptError, match=r"cannot be restored, and nothing was applied: .*\.rows"):
        driver.ask(driver.events())


@pytest.mark.parametrize("how", [flip, truncate, Path.unlink])
def test_a_broken_log_is_refused(harmed: Harmed, how: Callable[[Path], None]) -> None:
    driver, harm = harmed
    harm(driver.chain.logs[-1].file.path, how)
    with pytest.raises(CorruptError, match=r"cannot be restored, and nothing was applied: .*\.events"):
        driver.ask(driver.events())


def test_snapshots_go_to_stores_that_are_not_local(tmp_path: Path) -> None:
    """Through a new process: what a client of a store holds open does not survive a fork."""
    place = place_at(f"fsspec+file://{tmp_path}")
    assert not place.store.is_local
    driver = Driver(place)
    driver.snapshotted()
    driver.kill()
    assert driver.go_on().reloaded
    assert driver.answer is not None
    stop(driver.place.run, [driver.answer.address])
