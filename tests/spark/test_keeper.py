"""Cells in processes of their own: whatever dies, is doubled or is damaged, a view is right or refused."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import viewlet
from tests.engines.conformance import compiled_quickly
from viewlet.engines.native.engine import compile_program
from viewlet.engines.native.watch import Watched
from viewlet.errors import CorruptError, DataError, Error, OverflowError_
from viewlet.spark import server
from viewlet.spark import snapshot as snapshots
from viewlet.spark.artefact import publish
from viewlet.spark.cell import Cell, open_cell
from viewlet.spark.chain import START, Address, Chain
from viewlet.spark.client import Answer, Artefact, Rows, Run, Split, Ticket, apply, new_run, part_rows, stop
from viewlet.spark.keeper import NOTE
from viewlet.spark.process import Process, _look, directory_for, owner, sweep
from viewlet.spark.protocol import Message, UnreachableError, ask
from viewlet.spark.server import Listener, Reply
from viewlet.spark.store import Store

LOOPBACK = "127.0.0.1"
DEADLINE = 30.0  # seconds for something to happen that happens at once on an idle machine
SCRIPT = """
CREATE TABLE names (a INT NOT NULL, name VARCHAR NOT NULL);
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s, count(*) AS n FROM r GROUP BY a;
CREATE MATERIALIZED VIEW t AS SELECT sum(b) AS s, count(*) AS n FROM r;
CREATE MATERIALIZED VIEW w AS SELECT name, b FROM r, names WHERE r.a = names.a;
"""
VIEWS = ("v", "t", "w")
NAMES = [(a, f"name {a}") for a in range(0, 8, 2)]
Row = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A store, a run and the programs in it, which many cells share."""

    store: Store
    run: Run
    artefact: Artefact
    program: viewlet.Program

    @property
    def root(self) -> Path:
        return Path(self.store.uri)


def place_at(uri: str, *, idle: float = 600.0, views: Sequence[str] = ()) -> Place:
    store, program = Store.of(uri), viewlet.compile(SCRIPT)
    with compiled_quickly():
        return Place(store, new_run(store, LOOPBACK, idle), publish(store, program, VIEWS, views), program)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_at(str(tmp_path_factory.mktemp("checkpoint")))


_numbers = itertools.count()


@dataclass
class Driver:
    """What the driver knows of one cell, and what the cell's views must be."""

    place: Place
    splits: tuple[Split, ...] = ()
    chain: Chain = field(default_factory=Chain)
    answer: Answer | None = None
    expected: Counter[Row] = field(default_factory=Counter)
    batch: int = 0
    name: str = field(default_factory=lambda: f"c{next(_numbers)}")
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def events(self) -> list[tuple[int, Row]]:
        """Some rows come, and some that are there go."""
        come = [(self.random.randrange(8), self.random.randrange(-5, 100)) for _ in range(self.random.randrange(1, 6))]
        there = list(self.expected.elements())
        gone = self.random.sample(there, min(len(there), self.random.randrange(3)))
        return [*((1, row) for row in come), *((-1, row) for row in gone)]

    def rows(self, events: Sequence[tuple[int, Row]]) -> list[Rows]:
        static = [Rows("names", 1, batch(("a", "name"), NAMES))] if self.chain.version == START else []
        parts = [(times, [row for n, row in events if n == times]) for times in (1, -1)]
        return static + [Rows("r", times, batch(("a", "b"), rows)) for times, rows in parts if rows]

    def ask(self, events: Sequence[tuple[int, Row]]) -> Answer:
        """One attempt of the next batch; whether it counts is decided by :meth:`commit`."""
        address = None if self.answer is None else self.answer.address
        ticket = Ticket(
            self.place.run, self.place.artefact, self.name, self.batch, self.chain, address, VIEWS, self.splits
        )
        return apply(ticket, self.rows(events))

    def commit(self, answer: Answer, events: Sequence[tuple[int, Row]]) -> Answer:
        self.chain, self.answer = self.chain.followed(answer.log, answer.snapshot), answer
        for times, row in events:
            self.expected[row] += times
        self.batch += 1
        return answer

    def go_on(self, batches: int = 1, check: bool = True) -> Answer:
        for _ in range(batches):
            events = self.events()
            answer = self.commit(self.ask(events), events)
        if check:
            self.check()
        return answer

    def check(self) -> None:
        """The views, put together from bases and changes, are those of the rows that counted."""
        names, rows = dict(NAMES), Counter({row: n for row, n in self.expected.items() if n})
        groups = {a for a, _ in rows}
        sums = {a: sum(b * n for (k, b), n in rows.items() if k == a) for a in groups}
        counts = {a: sum(n for (k, _), n in rows.items() if k == a) for a in groups}
        assert self.shown("v") == Counter((a, sums[a], counts[a]) for a in groups)
        assert self.shown("t") == Counter([(sum(sums.values()) if groups else None, sum(counts.values()))])
        joined = Counter[tuple[Any, ...]]()
        for (a, b), n in rows.items():
            joined[names.get(a), b] += n if a in names else 0
        assert self.shown("w") == +joined

    def shown(self, view: str) -> Counter[tuple[Any, ...]]:
        files, found = self.chain.view(view), Counter[tuple[Any, ...]]()
        for file in filter(None, (files.base, *files.changes)):
            table = pq.read_table(pa.BufferReader(self.place.store.checked(file)))
            names = [name for name in table.column_names if name not in ("batch", "weight")]
            columns = [table[name].to_pylist() for name in ("weight", *names)]
            for weight, *row in zip(*columns, strict=True):
                found[tuple(row)] += weight
        assert all(weight >= 0 for weight in found.values())
        return +found

    def kill(self) -> None:
        assert self.answer is not None
        os.kill(self.answer.pid, signal.SIGKILL)
        gone(self.answer.pid)

    def snapshotted(self, how_many: int = 1) -> None:
        """Batches until the chain has so many snapshots."""
        start = len(self.chain.snapshots)
        for _ in range(2000):
            if len(self.chain.snapshots) >= min(start + how_many, 2):
                break
            self.go_on(check=False)
        else:
            raise AssertionError("no snapshot in 2000 batches")
        self.check()


def batch(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    types = {"a": pa.int32(), "b": pa.int32(), "name": pa.string()}
    arrays = [pa.array([row[i] for row in rows], types[name]) for i, name in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def gone(*pids: int) -> None:
    """Wait until processes have ended."""
    until = time.monotonic() + DEADLINE
    while alive := [pid for pid in pids if _look(pid) is not None]:
        assert time.monotonic() < until, f"still there: {alive}"
        time.sleep(0.01)


@pytest.fixture
def driver(place: Place) -> Iterator[Driver]:
    found = Driver(place)
    yield found
    if found.answer is not None:
        stop(place.run, [found.answer.address])
        gone(found.answer.pid)


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
    answer = apply(Ticket(place.run, place.artefact, "shy", 0, Chain(), None, ("t",)), [])
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
    with compiled_quickly():
        artefact = publish(place.store, place.program, VIEWS, (view,))
    driver = Driver(replace(place, artefact=artefact), (Split(view, (0,), 3),))
    found: list[Counter[tuple[Any, ...]]] = [Counter(), Counter(), Counter()]
    for number in range(8):
        if number == 4:
            driver.kill()
        answer = driver.go_on()
        for part in answer.parts:
            for rows in part_rows("partial", [part.data]):
                assert rows.batch.schema.names == ["k0", "value"]
                for row in rows.batch.to_pylist():
                    found[part.part][row["k0"], row["value"]] += rows.times
    assert all(n in (0, 1) for part in found for n in part.values())
    assert sum(map(bool, found)) > 1
    shown = {row[0]: row for row in driver.shown("v")}
    everything = [key for part in found for key in +part]
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
    assert driver.answer is not None
    ticket = Ticket(
        driver.place.run, driver.place.artefact, driver.name, driver.batch, driver.chain, driver.answer.address, VIEWS
    )
    with pytest.raises(DataError, match=r"r\.a, row 1: NULL in a NOT NULL column"):
        apply(ticket, [Rows("r", 1, null)])
    driver.go_on()


def test_a_sum_that_no_longer_fits_is_refused(place: Place) -> None:
    program = viewlet.compile(
        "CREATE STREAM r (b BIGINT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS s FROM r"
    )
    artefact = publish(place.store, program, ["v"])
    artefact = replace(artefact, objects={})  # as on another platform: the keeper compiles
    great = pa.record_batch({"b": pa.array([2**63 - 1], pa.int64())})
    ticket = Ticket(place.run, artefact, "overflow", 0, Chain(), None, ("v",))
    answer = apply(ticket, [Rows("r", 1, great)])
    with pytest.raises(OverflowError_, match=r"v\.s: a sum no longer fits BIGINT"):
        apply(replace(ticket, batch=1, chain=Chain().followed(answer.log)), [Rows("r", 1, great)])
    stop(place.run, [answer.address])


# -- snapshots ---------------------------------------------------------------------------------------------------------


def child_of(driver: Driver) -> int:
    """The process that writes a snapshot of a cell: at work, or dead and not buried before the next batch."""
    driver.go_on(snapshots.MOST_LOGS, check=False)
    assert driver.answer is not None
    path, until = Path(f"/proc/{driver.answer.pid}/task/{driver.answer.pid}/children"), time.monotonic() + DEADLINE
    while not (found := path.read_text().split()):
        assert time.monotonic() < until, "no snapshot is being made"
    return int(found[0])


def test_a_kill_during_a_snapshot_does_no_harm(driver: Driver) -> None:
    child = child_of(driver)
    driver.kill()
    driver.go_on(2)
    gone(child)
    driver.snapshotted()


def test_a_child_that_fails_costs_a_snapshot_and_nothing_else(driver: Driver) -> None:
    with suppress(ProcessLookupError):
        os.kill(child_of(driver), signal.SIGKILL)
    driver.go_on()
    driver.snapshotted()


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
    driver.snapshotted(2)
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

    copy = replace(with_snapshots, name=f"c{next(_numbers)}", expected=Counter(with_snapshots.expected))
    yield copy, harm
    for file, data in before.items():
        file.write_bytes(data)
    if copy.answer is not with_snapshots.answer and copy.answer is not None:
        stop(copy.place.run, [copy.answer.address])


Harmed = tuple[Driver, Callable[[str, Callable[[Path], None]], None]]


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


def test_without_a_snapshot_that_is_whole_nothing_is_applied(harmed: Harmed) -> None:
    driver, harm = harmed
    harm(driver.chain.snapshots[0].file.path, flip)
    harm(driver.chain.snapshots[1].file.path, truncate)
    with pytest.raises(CorruptError, match=r"cannot be restored, and nothing was applied: .*\.state"):
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


# -- generated Python --------------------------------------------------------------------------------------------------


def test_a_machine_without_a_compiler_runs_on_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").write_text("")  # before the real one, and no compiler
    monkeypatch.syspath_prepend(tmp_path)
    for name, value in {"PYTHONPATH": tmp_path, "PATH": tmp_path, "CXX": "", "VIEWLET_CACHE": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    driver = Driver(place_at(str(tmp_path)))
    assert driver.place.artefact.objects == {}
    assert driver.go_on(3).engine == "python"
    driver.kill()
    driver.snapshotted()
    driver.kill()
    assert driver.go_on(2).engine == "python"
    assert driver.answer is not None
    stop(driver.place.run, [driver.answer.address])


def both_cells(script: str, results: Sequence[str], views: Sequence[str]) -> tuple[Cell, Cell]:
    program = viewlet.compile(script)
    with compiled_quickly():
        compiled = compile_program(program, Watched(tuple(results), tuple(views)))
    assert compiled is not None
    return open_cell(program, compiled, results, views), open_cell(program, None, results, views)


def folded(batches: dict[str, pa.RecordBatch]) -> dict[str, Counter[tuple[Any, ...]]]:
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    for name, changed in batches.items():
        found[name] = Counter()
        for weight, *row in zip(*(column.to_pylist() for column in changed.columns), strict=True):
            found[name][tuple(row)] += weight
    return found


KINDS = """
CREATE STREAM r (a INT, d DECIMAL(9, 2) NOT NULL, f DOUBLE NOT NULL, s VARCHAR, t TIMESTAMP NOT NULL, o BOOLEAN);
CREATE MATERIALIZED VIEW v AS
  SELECT s, o, t, sum(d * a) AS x, sum(f) AS y, avg(d) AS z, min(f) AS m FROM r GROUP BY s, o, t;
CREATE MATERIALIZED VIEW u AS SELECT d, f FROM r WHERE a > 1;
"""


def test_both_makes_of_cells_tell_the_same(tmp_path: Path) -> None:
    results = ("v", "u")
    views = tuple(v.name for v in viewlet.compile(KINDS).views)
    native, python = both_cells(KINDS, results, views)
    generator, there = random.Random(3), list[dict[str, Any]]()
    day = dt.datetime(2026, 1, 1)
    for number in range(8):
        come = [
            {
                "a": generator.choice([None, 1, 2, 3]),
                "d": Decimal(generator.randrange(-999, 999)) / 100,
                "f": generator.choice([0.1, 2.5, 1e10, -7.0]),
                "s": generator.choice([None, "", "a", "ä"]),
                "t": day + dt.timedelta(microseconds=generator.randrange(2)),
                "o": generator.choice([None, True, False]),
            }
            for _ in range(12)
        ]
        go = [there.pop(generator.randrange(len(there))) for _ in range(min(len(there), 7))]
        there += come
        for times, rows in ((1, come), (-1, go)):
            for cell in (native, python):
                if rows:
                    cell.apply("r", times, pa.RecordBatch.from_pylist(rows, schema=ROWS))
        assert folded(native.changes()) == folded(python.changes())
        ours, theirs = native.partials(), python.partials()
        assert {name: b.schema for name, b in ours.items()} == {name: b.schema for name, b in theirs.items()}
        assert folded(ours) == folded(theirs)
        if number == 4:
            native, python = (
                saved(native, both_cells(KINDS, results, views)[0], tmp_path),
                saved(python, both_cells(KINDS, results, views)[1], tmp_path),
            )
    for name in results:
        assert folded({name: native.rows(name)}) == folded({name: python.rows(name)})


ROWS = pa.schema(
    [
        ("a", pa.int32()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us")),
        ("o", pa.bool_()),
    ]
)


def saved(cell: Cell, fresh: Cell, directory: Path) -> Cell:
    """What a fresh cell loads of what another saved: nothing of it has changed."""
    with (directory / "state").open("w+b", buffering=0) as file:
        assert cell.save(file.fileno()) == file.seek(0, os.SEEK_END)
        file.seek(0)
        fresh.load(file.fileno())
    assert fresh.changes() == fresh.partials() == {}
    assert fresh.bytes() > 0
    return fresh


# -- processes ---------------------------------------------------------------------------------------------------------


def test_who_does_not_know_the_token_is_not_heard(driver: Driver) -> None:
    answer = driver.go_on()
    address = answer.address
    with socket.create_connection((address.host, address.port)) as stranger:
        assert len(stranger.recv(32)) == 32
        stranger.sendall(bytes(64))
        assert stranger.recv(1) == b""
    with pytest.raises(UnreachableError):
        ask(address, "another token", {"do": "stop"})
    assert driver.go_on().pid == answer.pid


def test_a_client_that_falls_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PROOF_SECONDS", 0.05)
    listener, heard = Listener(LOOPBACK, "token"), list[str]()

    def answer(message: Message) -> Reply:
        heard.append(message.header["do"])
        return Reply({}, [b"bytes"])

    with socket.create_connection((listener.address.host, listener.address.port)) as silent:
        serving = threading.Thread(target=listener.serve, args=(answer, lambda: not heard))
        serving.start()
        assert bytes(ask(listener.address, "token", {"do": "greet"}).buffers[0]) == b"bytes"
        serving.join()
        assert len(silent.recv(64)) == 32, "asked for proof, and left alone"
    listener.close()


def test_an_address_that_another_process_has_is_no_cell(driver: Driver) -> None:
    """Not even one that answers: a stranger cannot prove that it knows the token, and gets no rows."""
    driver.go_on()
    assert driver.answer is not None
    with socket.create_server((LOOPBACK, 0)) as stranger:
        heard = list[bytes]()

        def serve() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.sendall(bytes(32))
                heard.append(connection.recv(1000))
                connection.sendall(bytes(32))
                heard.append(connection.recv(1000))

        serving = threading.Thread(target=serve)
        serving.start()
        driver.answer = replace(driver.answer, address=Address(LOOPBACK, stranger.getsockname()[1]))
        driver.go_on()
        serving.join()
    assert [len(data) for data in heard] == [64, 0]


def test_an_address_that_another_cell_has_is_not_taken_for_the_cell(place: Place, driver: Driver) -> None:
    """Nor is the keeper's: ports are given out again."""
    other = Driver(place)
    address = other.go_on().address
    mine = driver.go_on()
    driver.answer = replace(mine, address=address)
    assert driver.go_on().pid == mine.pid
    note = directory_for(place.run.id, owner()) / NOTE
    driver.answer = replace(mine, address=Address.from_json(json.loads(note.read_text())))
    assert driver.go_on().pid == mine.pid
    assert not other.go_on().reloaded
    stop(place.run, [address])


def test_a_cell_that_nobody_asks_ends(tmp_path: Path) -> None:
    driver = Driver(place_at(str(tmp_path), idle=0.2))
    pid = driver.go_on().pid
    gone(pid)
    answer = driver.go_on()
    assert answer.reloaded
    gone(answer.pid)


ALONE = """
import sys
from tests.spark.test_keeper import Driver, place_at
driver = Driver(place_at(sys.argv[1]))
print(driver.go_on().pid, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_its_owner(tmp_path: Path) -> None:
    """kill -9 of the executor: the cell, its keeper and their directory go as well."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", ALONE, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alone:
        assert alone.stdout is not None
        cell = int(alone.stdout.readline())
        keeper = _look(cell)
        assert keeper is not None
        alone.kill()
    gone(cell, keeper.parent)
    assert list(tmp_path.glob("viewlet-*/*")) == []


def test_a_directory_that_is_not_private_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = directory_for("run", Process(1, "")).parent
    assert mine.stat().st_mode & 0o777 == 0o700
    mine.chmod(0o750)
    with pytest.raises(Error, match="closed to others"):
        directory_for("run", Process(1, ""))


def test_directories_of_the_dead_are_swept_away(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    mine, theirs = tmp_path / f"run-{os.getpid()}", tmp_path / f"run-{dead.pid}"
    mine.mkdir()
    theirs.mkdir()
    (theirs / "lock").touch()
    sweep(mine)
    assert (mine.exists(), theirs.exists()) == (True, False)


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    mine = _look(os.getpid())
    assert mine is not None
    assert Process(os.getpid(), mine.started).is_alive
    assert not Process(os.getpid(), "another time").is_alive
