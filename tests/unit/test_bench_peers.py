"""The race of the peers: what a worker may do, rightly and wrongly, and what is made of it; and SQLite for real."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from bench.engine.answers import WrongAnswerError, answer
from bench.engine.workload import Workload
from bench.peers.contestants import BATCH, EVERY_THOUSAND, OURS, PEERS, QUERIES, Peer
from bench.peers.environment import REQUIREMENTS, MissingError, _make, _run, python_of
from bench.peers.process import bounded
from bench.peers.race import WORKERS, Start, alike, race
from bench.peers.workload import peers_workload, write_files

PEER = Peer("a peer", "worker_of_a_test", "a note")
EVENTS, LIVE = 400, 40


@pytest.fixture(scope="module")
def bids() -> Workload:
    return peers_workload("bsv", EVENTS, LIVE)


@pytest.fixture
def start(bids: Workload, tmp_path: Path) -> Start:
    write_files(bids, tmp_path / "files")
    return Start(Path(sys.executable), tmp_path / "files", seconds=0.5, start_seconds=30.0, workers=tmp_path)


def says(start: Start, program: str) -> None:
    (start.workers / f"{PEER.worker}.py").write_text(f"import json, os, sys, time\n{program}\n")


def told(w: Workload, taken: int, rows: object | None = None) -> str:
    shown = rows if rows is not None else [list(row) for row in answer(w, w.stream.between(0, taken))]
    said = {"events": 100, "taken": taken, "cpu": 0.5, "wall": 2.0, "rows": shown}
    return f"print('a word by the way'); print(json.dumps({said!r}))"


def test_a_right_answer_is_a_measurement(bids: Workload, start: Start) -> None:
    says(start, told(bids, 300))
    measurement = race(PEER, bids, start)
    assert (measurement.outcome, measurement.value, measurement.rows_checked) == (
        "measured",
        200.0,
        len(answer(bids, bids.stream.between(0, 300))),
    )
    assert (measurement.bounded, measurement.reached) == (True, 300 / EVENTS)
    assert measurement.note == "a note; 50 events/s on the wall"


@pytest.mark.parametrize("rows", [[[1, 2.0]], [], [[1]], [[1, "many"]]])
def test_a_wrong_answer_is_a_finding_about_the_peer(bids: Workload, start: Start, rows: list[object]) -> None:
    says(start, told(bids, 300, rows))
    measurement = race(PEER, bids, start)
    assert (measurement.outcome, measurement.value) == ("refused", None)
    assert measurement.note.startswith("wrong answer: ")


def test_a_stale_answer_is_wrong(bids: Workload, start: Start) -> None:
    stale = [list(row) for row in answer(bids, bids.stream.between(0, 299))]
    says(start, told(bids, 300, stale))
    assert race(PEER, bids, start).outcome == "refused"


def test_a_peer_of_inserts_is_judged_by_the_inserts(bids: Workload, start: Start) -> None:
    only = bids.inserts_only()
    says(start, told(bids, 200, [list(row) for row in answer(bids, only.between(0, 200))]))
    measurement = race(replace(PEER, inserts_only=True), bids, start)
    assert (measurement.outcome, measurement.reached) == ("measured", 200 / len(only))


def test_a_refusal_is_told_in_the_words_of_the_peer(bids: Workload, start: Start) -> None:
    says(start, f"print(json.dumps({{'refused': 'no\\n  subqueries' + {300 * '!'!r}}}))")
    measurement = race(PEER, bids, start)
    assert (measurement.outcome, len(measurement.note)) == ("refused", 240)
    assert measurement.note.startswith("no subqueries!!!")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("sys.exit('out of memory')", "it died without an answer: out of memory"),
        ("print(json.dumps({'failed': 'KeyError: 1'}))", "it failed: KeyError: 1"),
        ("print(json.dumps({'events': 0}))", "not one event in its time"),
    ],
)
def test_a_peer_that_fails_is_missing(bids: Workload, start: Start, program: str, why: str) -> None:
    says(start, program)
    measurement = race(PEER, bids, start)
    assert (measurement.outcome, measurement.note) == ("missing", why)


def test_a_peer_that_says_nothing_is_killed_with_all_that_it_started(bids: Workload, start: Start) -> None:
    """Its child holds a lock on the pipe below: when the pipe ends, the child is gone."""
    pipe = start.workers / "pipe"
    subprocess.run(["mkfifo", pipe], check=True)
    says(start, f"os.fork(); open({str(pipe)!r}, 'w'); time.sleep(600)")
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.DEVNULL)
    measurement = race(PEER, bids, replace(start, seconds=0.1, start_seconds=3.0))
    assert (measurement.outcome, measurement.note) == ("missing", "no answer within 3.4 s: killed")
    assert reader.wait(30) == 0


def test_what_a_command_leaves_behind_does_not_keep_it() -> None:
    """A child that holds the output open is not waited for."""
    ended = bounded(["sh", "-c", "sleep 600 & echo done"], 60.0)
    assert (ended.out, ended.code) == ("done\n", 0)


@pytest.mark.parametrize(("batch", "query"), [(1, "bsv"), (BATCH, "bsv"), (50, "vwap"), (1, "q3")])
def test_sqlite_for_real(tmp_path: Path, batch: int, query: str) -> None:
    w = peers_workload(query, 10_500 if query == "q3" else EVENTS, LIVE)
    write_files(w, tmp_path / "files")
    sqlite = next(peer for peer in PEERS if peer.name == "sqlite")
    measurement = race(replace(sqlite, batch=batch), w, Start(python_of(OURS), tmp_path / "files", seconds=0.2))
    assert measurement.outcome == "measured", measurement.note
    assert measurement.events > 0
    assert measurement.rows_checked > 0


def test_types_that_json_has_not_are_restored() -> None:
    right = [(1, dt.date(1995, 3, 15), Decimal("2.50"))]
    assert alike([[1, "1995-03-15", "2.50"]], right) == (right, right)
    assert alike([["1", "1995-03-15", 2.5]], right) == ([(1, dt.date(1995, 3, 15), 2.5)],) * 2
    with pytest.raises(WrongAnswerError, match="2 columns, not 3"):
        alike([[1, 2]], right)
    with pytest.raises(WrongAnswerError, match="another type"):
        alike([[1, "soon", "2.50"]], right)


def test_what_cannot_be_installed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left that could be taken for an environment."""
    place = tmp_path / "peers" / "x"
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(MissingError, match="python -m venv: exit code 1"):
        _make(place, tmp_path / "requirements.txt", 60.0)
    assert list(place.parent.iterdir()) == []


def test_installing_is_bounded_and_tells_the_reason() -> None:
    with pytest.raises(MissingError, match="pip: ERROR: no such version"):
        _run("pip", ["sh", "-c", "echo WARNING: slow >&2; echo ERROR: no such version >&2; exit 1"], 60.0)
    with pytest.raises(MissingError, match=r"pip did not end within 0\.2 s"):
        _run("pip", ["sleep", "600"], 0.2)


def test_peers_are_complete() -> None:
    assert {peer.environment for peer in PEERS} - {OURS} == {file.stem for file in REQUIREMENTS.glob("*.txt")}
    assert all((WORKERS / f"{peer.worker}.py").exists() for peer in PEERS)
    assert len({(peer.name, peer.freshness) for peer in PEERS}) == len(PEERS)
    assert {peer.freshness for peer in PEERS if peer.batch == BATCH} == {EVERY_THOUSAND}
    assert all(line.partition("==")[2] for file in REQUIREMENTS.glob("*.txt") for line in file.read_text().split())
    assert all("'BUILDING'" in peer.sql("q3") and "from bids" in peer.sql("vwap") for peer in PEERS)
    assert len(QUERIES) == 5


def test_nothing_of_ours_is_imported_by_workers() -> None:
    for file in WORKERS.glob("*.py"):
        text = file.read_text()
        assert "import viewlet" not in text
        assert "from viewlet" not in text
        assert "from bench" not in text
