"""The changes of a view as iterators: with a snapshot first, awaited, bounded."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

import viewlet
from viewlet import Database
from viewlet.engines.native.build import find_compiler

SCRIPT = "CREATE STREAM r (k BIGINT, v BIGINT); CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v FROM r GROUP BY k"


NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))


@pytest.fixture(params=["python", NATIVE])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Where rows are compared, and where machine code hands changes over."""
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        yield database


def test_a_snapshot_and_the_changes_since_are_the_view(db: Database) -> None:
    """While another thread writes: no gap, nothing twice."""
    writer = threading.Thread(target=lambda: [db.insert("r", (i % 5, i)) for i in range(2000)])
    db.insert("r", [(1, 1), (1, 2), (9, 0)])
    writer.start()
    changes = db.view("s").changes(snapshot=True)
    writer.join()
    rows: Counter[tuple[object, ...]] = Counter()
    for weight, row in changes:
        rows[row] += weight
    assert +rows == db.view("s").weights()
    assert len(+rows) == 6


def test_changes_are_awaited(db: Database) -> None:
    async def first(count: int) -> list[object]:
        changes = db.view("s").changes(snapshot=True)
        asyncio.get_running_loop().run_in_executor(None, write)
        seen = []
        async for change in changes:
            seen.append(change)
            if len(seen) == count:
                changes.close()
        return seen

    def write() -> None:
        for i in range(3):
            db.insert("r", (7, i))

    assert asyncio.run(first(5)) == [(1, (7, 0)), (-1, (7, 0)), (1, (7, 1)), (-1, (7, 1)), (1, (7, 3))]


def test_who_reads_too_slowly_is_told_and_can_start_again(db: Database) -> None:
    changes = db.view("s").changes(most=3)
    for i in range(4):
        db.insert("r", (i, 1))
    with pytest.raises(viewlet.Error, match=r"more than 3 changes of view s were waiting.*snapshot=True"):
        next(changes)
    with pytest.raises(viewlet.Error, match="more than 3 changes"):
        list(changes)
    db.insert("r", (9, 9))
    assert dict(row for _, row in db.view("s").changes(snapshot=True)) == {0: 1, 1: 1, 2: 1, 3: 1, 9: 9}


def test_a_closed_one_ends(db: Database) -> None:
    changes = db.view("s").changes()
    db.insert("r", (1, 1))
    changes.close()
    db.insert("r", (2, 2))
    assert list(changes) == [(1, (1, 1))]

    async def rest() -> list[object]:
        return [change async for change in changes]

    assert asyncio.run(rest()) == []


@pytest.mark.parametrize("end", ["DROP VIEW s", "close"])
def test_nobody_waits_for_changes_that_cannot_come(db: Database, end: str) -> None:
    """What was told before can be read; then the loop ends, also one that waits in another thread."""
    waits = threading.Event()

    async def all_of_them() -> list[object]:
        changes, seen = db.view("s").changes(), []
        waits.set()
        async for change in changes:
            seen.append(change)
        return seen

    seen: list[object] = []
    reader = threading.Thread(target=lambda: seen.extend(asyncio.run(all_of_them())), daemon=True)
    reader.start()
    assert waits.wait(5)
    db.insert("r", (7, 1))
    db.close() if end == "close" else db.execute(end)
    reader.join(5)
    assert not reader.is_alive()
    assert seen == [(1, (7, 1))]


def test_a_consumer_whose_loop_is_over_troubles_nobody(db: Database) -> None:
    async def waits_in_vain(changes: viewlet.session.changing.Changes) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(changes), 0.01)

    changes = db.view("s").changes()
    asyncio.run(waits_in_vain(changes))
    db.insert("r", (7, 1))
    assert list(changes) == [(1, (7, 1))]
    changes.close()


@pytest.mark.parametrize("engine", ["python", "interpreter"])
def test_a_handle_on_what_was_dropped_says_so(engine: viewlet.database.memory.EngineName) -> None:
    with viewlet.connect(engine=engine) as db:
        db.execute(
            "CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM r GROUP BY a"
        )
        view, stream = db.view("v"), db.stream("r")
        db.execute("DROP VIEW v; DROP STREAM r")
        looks = [view.rows, view.arrow, view.changes, view.weights, view._repr_html_, lambda: len(view)]
        for look in [*looks, lambda: view.get(a=1), lambda: view.columns, lambda: view.subscribe(print)]:
            with pytest.raises(viewlet.Error, match="there is no view v; there are: none"):
                look()
        for look in [stream.arrow, lambda: len(stream), lambda: repr(stream), lambda: stream.insert((1,))]:
            with pytest.raises(viewlet.Error, match=r"there is no (such )?stream or table( r)?; there are: none"):
                look()
