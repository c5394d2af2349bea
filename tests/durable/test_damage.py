"""Files that end too early, bytes that changed, disks that are full: recovered, or an error; never a wrong answer."""

from __future__ import annotations

import resource
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import viewlet
from viewlet.cli.main import app
from viewlet.durable.check import check_directory
from viewlet.durable.records import Appender, payloads
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.native.bridge import NativeState
from viewlet.errors import CorruptError, Error, StorageError
from viewlet.rows.ledger import Ledger

SCRIPT = """CREATE STREAM s (g VARCHAR, n BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT g, sum(n) AS n FROM s GROUP BY g"""
ROWS = [(f"g{i % 3}", i) for i in range(40)]


def made(path: Path) -> list[list[tuple[object, ...]]]:
    """A database with a snapshot and a log behind it; its rows of v after each record of the log, none included."""
    with viewlet.connect(path, engine="interpreter") as db:
        db.execute(SCRIPT)
        db.insert("s", ROWS)
        db.checkpoint()
        shown = [sorted(db.view("v").rows())]
        db.insert("s", ROWS[:20] * 2)
        shown.append(sorted(db.view("v").rows()))
        db.delete("s", ROWS[7])
        shown.append(sorted(db.view("v").rows()))
        return shown


def opened(path: Path) -> list[tuple[object, ...]]:
    with viewlet.connect(path, engine="interpreter") as db:
        return sorted(db.view("v").rows())


def test_torn_at_each_byte(tmp_path: Path) -> None:
    """Of a record that is not all there nothing counts, and the log goes on in its place."""
    shown = made(tmp_path / "db")
    log = (tmp_path / "db" / "log-1").read_bytes()
    ends = [end for _, end in payloads(memoryview(log), "", whole=False)]
    assert len(ends) == 2
    for length in [*range(0, ends[0], 97), *range(ends[0], ends[1] + 1)]:
        for tail in (b"", b"\0" * 40) if length % 7 == 0 else (b"",):
            (tmp_path / "db" / "log-1").write_bytes(log[:length] + tail)
            assert opened(tmp_path / "db") == shown[sum(end <= length for end in ends)], length
    (tmp_path / "db" / "log-1").write_bytes(log[: ends[1] - 5])
    with viewlet.connect(tmp_path / "db", engine="interpreter") as db:
        db.delete("s", ROWS[7])
    assert opened(tmp_path / "db") == shown[2]


def test_flipped_bytes(tmp_path: Path) -> None:
    """In every file; each is found by the check, and when the directory is opened."""
    made(tmp_path / "db")
    for name in ("manifest.json", "rows-1", "log-1"):
        whole = (tmp_path / "db" / name).read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 70)):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            (tmp_path / "db" / name).write_bytes(damaged)
            with pytest.raises((CorruptError, Error)):
                opened(tmp_path / "db")
            with pytest.raises(CorruptError):
                check_directory(tmp_path / "db")
        (tmp_path / "db" / name).write_bytes(whole)
    assert check_directory(tmp_path / "db").records == 4
    assert len(opened(tmp_path / "db")) == 3


@pytest.mark.parametrize("name", ["rows-1", "log-1"])
def test_a_file_that_is_gone_or_short(tmp_path: Path, name: str) -> None:
    made(tmp_path / "db")
    if name == "rows-1":
        data = (tmp_path / "db" / name).read_bytes()
        (tmp_path / "db" / name).write_bytes(data[:-1])
        with pytest.raises(CorruptError, match="not what was written"):
            opened(tmp_path / "db")
    (tmp_path / "db" / name).unlink()
    with pytest.raises(CorruptError, match="is not there"):
        opened(tmp_path / "db")


def test_what_is_left_over_goes(tmp_path: Path) -> None:
    """A process that died while it wrote a snapshot left parts of it."""
    shown = made(tmp_path / "db")
    for name in ("rows-2", "rows-0", ".manifest.json.0123"):
        (tmp_path / "db" / name).write_bytes(b"half")
    (tmp_path / "db" / "log-2").write_bytes(b"")
    (tmp_path / "db" / "notes.txt").write_text("mine")
    assert opened(tmp_path / "db") == shown[2]
    assert {p.name for p in (tmp_path / "db").iterdir()} == {"lock", "manifest.json", "rows-1", "log-1", "notes.txt"}


# -- a full disk -------------------------------------------------------------------------------------------------------


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


Call = Callable[[viewlet.Database], object]
CALLS: list[Call] = [
    lambda db: db.insert("s", ("g1", 5)),
    lambda db: db.insert("s", ROWS * 10),
    lambda db: db.delete("s", ROWS[:3]),
    lambda db: db.apply([("+", "s", ("new", 1)), ("-", "s", ROWS[5])]),
    lambda db: db.execute("UPDATE s SET n = n + 1"),
    lambda db: db.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM s; INSERT INTO s VALUES ('w', 1)"),
]


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_full_disk(tmp_path: Path, engine: viewlet.database.memory.EngineName) -> None:
    """Each update is refused whole, and done when there is room."""
    with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("s", ROWS)
        heard: list[object] = []
        db.subscribe("v", heard.append)
        for call in CALLS:
            before, log = sorted(db.view("v").rows()), (tmp_path / "log-0").read_bytes()
            for free in (0, 3, 30):
                with room(len(log) + free), pytest.raises(StorageError, match="make room, and call again"):
                    call(db)
                assert sorted(db.view("v").rows()) == before
                assert (tmp_path / "log-0").read_bytes() == log
                assert not heard
            call(db)
            assert sorted(db.view("v").rows()) != before or "w" in db._translation.catalog.views
            heard.clear()
        there = sorted(db.view("v").rows()), db.view("w").rows()
        with room(100), pytest.raises(StorageError):
            db.checkpoint()
        db.insert("s", ("last", 1))
        db.checkpoint()
    with viewlet.connect(tmp_path, engine="interpreter") as db:
        assert sorted(db.view("v").rows()) == sorted([*there[0], ("last", 1)])
        assert db.verify("w") == []


def test_a_snapshot_between_two_calls_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update is in, and somebody is told."""
    monkeypatch.setattr(viewlet.database.directory.StoredDatabase, "_between", True)
    monkeypatch.setattr(viewlet.database.directory.StoredDatabase, "_least", 3000)
    with viewlet.connect(tmp_path, engine="python") as db:
        db.execute(SCRIPT)
        db.insert("s", [(f"row {i}", i) for i in range(200)])
        assert (tmp_path / "log-1").exists()
        monkeypatch.setattr(db, "_between", True)
        db.insert("s", [(f"row {i}", i + 1) for i in range(100)])
        monkeypatch.setattr(db, "_least", 0)
        size = (tmp_path / "log-1").stat().st_size
        with room(size + 7000), pytest.warns(UserWarning, match="no snapshot was made, and the log goes on") as told:
            db.apply(("+", "s", (f"row {i}", -i)) for i in range(200))
        assert told[0].filename == __file__, "the line of the call"
        assert (tmp_path / "log-1").exists()
        there = sorted(db.view("v").rows())
    with viewlet.connect(tmp_path, engine="python") as db:
        assert sorted(db.view("v").rows()) == there


def test_an_interrupted_record_does_not_count(tmp_path: Path) -> None:
    """Ctrl-C behind the write: the update is undone, so its record must go, too."""
    log = Appender(tmp_path / "log", 0)
    log.append([b"one"])
    size = log.size
    log.append([b"two, which is longer than the next"])
    log.take_back(size)
    log.append([b"3"])
    log.close()
    data = (tmp_path / "log").read_bytes()
    assert [bytes(p) for p, _ in payloads(memoryview(data), "log", whole=True)] == [b"one", b"3"]


@pytest.mark.parametrize("engine", ["python", "native"])
def test_an_interrupted_update_is_undone(
    tmp_path: Path, engine: viewlet.database.memory.EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory and in the log, also where its record was written already."""
    append = Appender.append

    def interrupted(log: Appender, parts: Sequence[Any]) -> None:
        append(log, parts)
        raise KeyboardInterrupt

    define = Ledger.define

    def defined_and_interrupted(ledger: Ledger, *script: Any) -> None:
        define(ledger, *script)
        raise KeyboardInterrupt

    with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("s", ROWS)
        before = sorted(db.view("v").rows())
        for call in CALLS:
            with monkeypatch.context() as patch:
                patch.setattr(Appender, "append", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    call(db)
            assert sorted(db.view("v").rows()) == before
        db.insert("s", ("last", 1))
        there = sorted(db.view("v").rows())
    with viewlet.connect(tmp_path, engine="interpreter") as db:
        assert sorted(db.view("v").rows()) == there == sorted([*before, ("last", 1)])
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "define", defined_and_interrupted)
            with pytest.raises(KeyboardInterrupt):
                db.execute("CREATE STREAM never (n BIGINT)")
        db.checkpoint()
    with viewlet.connect(tmp_path, engine="interpreter") as db:
        assert [relation.name for relation in db.program.relations] == ["s"]


@pytest.mark.parametrize(
    ("engine", "kinds"),
    [
        ("python", {PythonEngine: ("apply", "apply_bulk")}),
        ("native", {NativeState: ("one", "many", "many_shown", "events")}),
    ],
)
def test_ctrl_c_right_behind_the_engine(
    tmp_path: Path, engine: viewlet.database.memory.EngineName, kinds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises behind the call in which the signal came: the engine has the update, and the log does not."""

    def interrupted(method: Callable[..., object]) -> Callable[..., object]:
        def behind(*arguments: object) -> None:
            method(*arguments)
            monkeypatch.undo()
            raise KeyboardInterrupt

        return behind

    with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("s", ROWS)
        before = sorted(db.view("v").rows())
        for call in CALLS[:5]:
            for kind, names in kinds.items():
                for name in names:
                    monkeypatch.setattr(kind, name, interrupted(getattr(kind, name)))
            with pytest.raises(KeyboardInterrupt):
                call(db)
            assert sorted(db.view("v").rows()) == before
            assert db.verify("v") == []
        db.delete("s", ROWS)
    assert opened(tmp_path) == []


def test_to_close_waits_for_the_update_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that returned is in the directory, whichever thread closes it."""
    writes, goes_on, rows = threading.Event(), threading.Event(), Ledger.rows

    def slowly(ledger: Ledger, *given: Any) -> None:
        writes.set()
        goes_on.wait(5)
        rows(ledger, *given)

    db = viewlet.connect(tmp_path, engine="native", wait_native=True)
    db.execute(SCRIPT)
    monkeypatch.setattr(Ledger, "rows", slowly)
    writer, closer = threading.Thread(target=db.insert, args=("s", ("a", 1))), threading.Thread(target=db.close)
    writer.start()
    writes.wait(5)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    goes_on.set()
    writer.join()
    closer.join()
    assert opened(tmp_path) == [("a", 1)]


def test_copies_open_on_their_own(tmp_path: Path) -> None:
    shown = made(tmp_path / "db")
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    assert opened(tmp_path / "copy") == shown[2]


def test_the_command_checks_a_directory(tmp_path: Path) -> None:
    made(tmp_path / "db")
    whole = CliRunner().invoke(app, ["check", str(tmp_path / "db")])
    assert whole.exit_code == 0
    assert "in 4 records are what was written" in whole.output
    log = tmp_path / "db" / "log-1"
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    assert "of an update that was not acknowledged" in CliRunner().invoke(app, ["check", str(tmp_path / "db")]).output
    log.write_bytes(data.replace(b"s", b"t", 1))
    damaged = CliRunner().invoke(app, ["check", str(tmp_path / "db")])
    assert damaged.exit_code == 3
    assert "is damaged" in damaged.output
