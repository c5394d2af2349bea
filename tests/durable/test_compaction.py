"""Snapshots beside the writer: made of sealed logs by another process, adopted as a whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

import viewlet
from tests.durable.life import Life, check
from tests.durable.test_damage import room
from viewlet.database import compaction, recovery
from viewlet.database.compaction import compact
from viewlet.database.directory import StoredDatabase
from viewlet.durable.beside import Beside
from viewlet.durable.check import check_directory
from viewlet.durable.directory import Directory, read_manifest, read_snapshot
from viewlet.durable.records import framed, payloads
from viewlet.errors import CorruptError

SCRIPT = "CREATE STREAM s (g VARCHAR, n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT g, sum(n) AS n FROM s GROUP BY g"


def in_this_process(beside: Beside, draft: Path) -> int:
    """Without the second that a new process takes to import everything."""
    return compact(beside._directory.path, beside._number, draft)


def compacted(db: viewlet.Database) -> None:
    """A snapshot beside the writer, waited for."""
    assert isinstance(db, StoredDatabase)
    beside = db._ledger.snapshot_beside()
    beside.wait()
    assert beside.failure is None


def opened(path: Path) -> list[tuple[Any, ...]]:
    with viewlet.connect(path, engine="interpreter") as db:
        return sorted(db.view("v").rows())


def number(path: Path) -> int:
    manifest = read_manifest(path)
    assert manifest is not None
    return manifest.number


def test_random_lives(tmp_path: Path, seeded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all types that come and go, names that come, go and move; DuckDB says what should be there."""
    monkeypatch.setattr(Beside, "_made", in_this_process)
    for module in (recovery, compaction):
        monkeypatch.setattr(module, "CHUNK", 8)
    life, chance = Life(300 + seeded), Random(seeded)
    for _ in range(4):
        with viewlet.connect(tmp_path, engine="python") as db:
            for _ in range(chance.choice([3, 9])):
                life.step()(db)
                if chance.random() < 0.3:
                    compacted(db)
            before = number(tmp_path)
            compacted(db)
            assert number(tmp_path) > before
            life.step()(db)
        check_directory(tmp_path)
        with viewlet.connect(tmp_path, engine="python") as db:
            check(db, life.model)


def test_each_row_is_counted_by_its_value(tmp_path: Path) -> None:
    """One zero, NULL like NULL, text with any letter, a number of 38 digits; also by a Python function."""
    large = Decimal("9" * 36 + ".25")
    rows = [(x, t, d) for x in (-0.0, 1.5, None) for t in ("a\0b", "", None) for d in (large, None)]
    with viewlet.connect(tmp_path, engine="python") as db:
        db.create_function("compacted_twice", lambda n: n * 2, ["BIGINT"], "BIGINT")
        db.execute("CREATE STREAM s (x DOUBLE, t VARCHAR, d DECIMAL(38,2)); CREATE STREAM u (n BIGINT)")
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT sum(compacted_twice(n)) AS n FROM u")
        db.insert("u", (3,))
        db.insert("s", rows)
        db.insert("s", rows[:9] * 5)
        db.delete("s", rows[3:] + rows[:2] * 4)
        db.delete("s", [(0.0, "a\0b", None), (0.0, "a\0b", large)])
        there = dict(db.engine.table("s"))
        compacted(db)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    kept = [json.loads(bytes(p).split(b"\n")[0]) for p in read_snapshot(tmp_path, manifest)]
    assert all(times > 0 for line in kept for _, times, _ in line.get("rows", ())), "nothing that went is kept"
    code = f"import viewlet; print(sorted(map(repr, viewlet.connect({str(tmp_path)!r}, engine='python', " + (
        "functions={'compacted_twice': lambda n: n * 2}).engine.table('s').items())))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == str(sorted(map(repr, there.items())))


def test_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started when the log is long enough; calls go on; what came since is in the next log."""
    monkeypatch.setattr(viewlet.database.directory, "WORTH_A_SNAPSHOT", 4000)
    monkeypatch.setattr(StoredDatabase, "_least", 4000)
    with viewlet.connect(tmp_path, engine="python") as db:
        assert isinstance(db, StoredDatabase)
        db.execute(SCRIPT)
        db.insert("s", [(f"row {i % 50}", i) for i in range(300)])
        beside = db._beside
        assert beside is not None
        db.delete("s", [(f"row {i % 50}", i) for i in range(100)])
        assert number(tmp_path) == 0
        db.sync()
        beside.wait()
        db.insert("s", ("last", 1))
        assert (number(tmp_path), db._beside, beside.failure) == (1, None, None)
        there = sorted(db.view("v").rows())
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "manifest.json", "rows-1", "log-1"}
    assert opened(tmp_path) == there


@pytest.mark.parametrize("how", ["killed", "no room"])
def test_a_process_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """One warning. The log goes on, and the next snapshot is written between two calls."""
    monkeypatch.setattr(StoredDatabase, "_least", 3000)
    made = Beside._made

    def cramped(beside: Beside, draft: Path) -> int | None:
        with room(1000):
            return made(beside, draft)

    if how == "no room":
        monkeypatch.setattr(Beside, "_made", cramped)
    with viewlet.connect(tmp_path, engine="python") as db:
        assert isinstance(db, StoredDatabase)
        db.execute(SCRIPT)
        db.insert("s", [(f"row {i}", i) for i in range(200)])
        beside = db._beside
        assert beside is not None
        while how == "killed" and not beside.is_done:
            if beside._process is not None:
                beside._process.kill()
        beside.wait()
        with pytest.warns(UserWarning, match="no snapshot was made, and the log goes on: the process that writes it"):
            db.insert("s", ("a", 1))
        db.insert("s", ("a", 1))
        there = sorted(db.view("v").rows())
        assert {p.name for p in tmp_path.iterdir()} == {"lock", "manifest.json", "rows-0", "log-0", "log-1"}
    assert opened(tmp_path) == there
    with viewlet.connect(tmp_path, engine="python") as db:
        assert isinstance(db, StoredDatabase)
        db._between = True
        db.insert("s", [(f"row {i}", i) for i in range(200)])
        assert {p.name for p in tmp_path.iterdir()} == {"lock", "manifest.json", "rows-2", "log-2"}


@pytest.mark.parametrize("what", ["no thread", "no file"])
def test_a_snapshot_that_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """The update that it would follow is in, so its call does not fail."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def opened_log(directory: Directory, place: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(StoredDatabase, "_least", 3000)
    with viewlet.connect(tmp_path, engine="python") as db:
        db.execute(SCRIPT)
        with monkeypatch.context() as patch:
            if what == "no thread":
                patch.setattr(threading.Thread, "start", start)
            else:
                patch.setattr(Directory, "_appender", opened_log)
            with pytest.warns(UserWarning, match="no snapshot was made"):
                db.insert("s", [(f"row {i}", i) for i in range(200)])
        db.insert("s", ("last", 1))
        there = sorted(db.view("v").rows())
    assert opened(tmp_path) == there


def test_a_fork_leaves_it_to_its_parent(tmp_path: Path) -> None:
    code = f"""
import os, viewlet
from viewlet.database.directory import StoredDatabase
StoredDatabase._least = 3000
db = viewlet.connect({str(tmp_path)!r}, engine="python")
db.execute({SCRIPT!r})
db.insert("s", [(f"row {{i}}", i) for i in range(200)])
if os.fork() == 0:
    db.close()
    os._exit(0)
os.wait()
beside = db._beside
db.close()
print(beside.failure, os.path.exists({str(tmp_path / "rows-1")!r}))
"""
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "None True\n"


# -- sealed logs -------------------------------------------------------------------------------------------------------


def sealed(path: Path, durability: viewlet.database.directory.Durability = "process") -> list[list[tuple[Any, ...]]]:
    """Three logs; the rows of v after each record."""
    shown = []
    with viewlet.connect(path, engine="interpreter", durability=durability) as db:
        assert isinstance(db, StoredDatabase)
        db.execute(SCRIPT)
        for n in range(6):
            if n in (2, 4):
                db._ledger._directory.seal()
            shown.append(sorted(db.view("v").rows()))
            db.insert("s", ("a", 10**n))
        shown.append(sorted(db.view("v").rows()))
    return shown


def test_a_torn_log_before_others(tmp_path: Path) -> None:
    """A machine that died has lost calls that were not promised to survive it: those behind are not there either."""
    shown = sealed(tmp_path)
    assert opened(tmp_path) == shown[6]
    middle = (tmp_path / "log-1").read_bytes()
    ends = [end for _, end in payloads(memoryview(middle), "", whole=True)]
    assert len(ends) == 3, "the link, and two calls"
    last = (tmp_path / "log-2").read_bytes()
    for length in (ends[2], ends[2] - 1, ends[1], ends[1] - 1, ends[0], ends[0] - 1, 0):
        (tmp_path / "log-1").write_bytes(middle[:length])
        (tmp_path / "log-2").write_bytes(last)
        calls = sum(end <= length for end in ends[1:])
        assert opened(tmp_path) == shown[6 if calls == 2 else 2 + calls], length
    assert not (tmp_path / "log-2").exists()
    with viewlet.connect(tmp_path, engine="interpreter") as db:
        db.insert("s", ("b", 1))
    assert opened(tmp_path) == [*shown[2], ("b", 1)]


def test_a_sealed_log_that_is_damaged(tmp_path: Path) -> None:
    """At level machine each record was on the disk; a longer log is damage at any level, and so are changed bytes."""
    sealed(tmp_path / "synced", "machine")
    log = tmp_path / "synced" / "log-1"
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(CorruptError, match="log-1 is not what was written"):
        opened(tmp_path / "synced")
    sealed(tmp_path / "longer")
    log = tmp_path / "longer" / "log-0"
    log.write_bytes(log.read_bytes() + b"".join(framed([b"{}\n"])))
    with pytest.raises(CorruptError, match="log-0 is not what was written"):
        check_directory(tmp_path / "longer")
    sealed(tmp_path / "flipped")
    log = tmp_path / "flipped" / "log-2"
    whole = log.read_bytes()
    for at in range(0, len(whole), 7):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CorruptError):
            opened(tmp_path / "flipped")


def test_what_a_dead_process_put_aside_goes(tmp_path: Path) -> None:
    viewlet.connect(tmp_path, engine="interpreter").close()
    (tmp_path / ".rows-1.abc.aside").mkdir()
    (tmp_path / ".rows-1.abc.aside" / "rows").write_bytes(b"half")
    (tmp_path / ".rows-1.abc").write_bytes(b"half")
    viewlet.connect(tmp_path, engine="interpreter").close()
    assert sorted(os.listdir(tmp_path)) == ["lock", "log-0", "manifest.json", "rows-0"]
