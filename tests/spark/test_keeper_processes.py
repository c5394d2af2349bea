"""The processes around cells: who may talk to them, when they end, and what they run on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.cell_driver import (
    LOOPBACK,
    Driver,
    Place,
    gone,
    place_at,
)
from tests.spark.cluster import until
from viewlet.durable.chain import Address
from viewlet.errors import Error
from viewlet.spark.driver.arguments import check_ports
from viewlet.spark.process import nursery, server
from viewlet.spark.process.client import stop
from viewlet.spark.process.keeper import has_ended
from viewlet.spark.process.process import NOTE, Process, Settings, _look, directory_for, owner, sweep
from viewlet.spark.process.protocol import PROOF_SECONDS, Message, UnreachableError, ask
from viewlet.spark.process.secret import Secret
from viewlet.spark.process.server import Listener, Reply

SECRET = Secret("token")


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


# -- processes ---------------------------------------------------------------------------------------------------------


def test_who_does_not_know_the_token_is_not_heard(driver: Driver) -> None:
    answer = driver.go_on()
    address = answer.address
    with socket.create_connection((address.host, address.port)) as stranger:
        assert len(stranger.recv(32)) == 32
        stranger.sendall(bytes(64))
        assert stranger.recv(1) == b""
    with pytest.raises(UnreachableError):
        ask(address, Secret("another token"), {"do": "stop"})
    assert driver.go_on().pid == answer.pid


def test_a_client_that_falls_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PROOF_SECONDS", 0.05)
    listener, heard = Listener(LOOPBACK, SECRET), list[str]()

    def answer(message: Message) -> Reply:
        heard.append(message.header["do"])
        return Reply({}, [b"bytes"])

    with socket.create_connection((listener.address.host, listener.address.port)) as silent:
        serving = threading.Thread(target=listener.serve, args=(answer, lambda: not heard))
        serving.start()
        assert bytes(ask(listener.address, SECRET, {"do": "greet"}).buffers[0]) == b"bytes"
        serving.join()
        assert len(silent.recv(64)) == 32, "asked for proof, and left alone"
    listener.close()


def test_strangers_at_the_port_delay_nobody(driver: Driver) -> None:
    """Not many, nor those that say half of what they should. One at a time, each would cost five seconds."""
    address = driver.go_on().address
    with ExitStack() as stack:
        for number in range(server.MOST_STRANGERS + 50):
            stranger = stack.enter_context(socket.create_connection((address.host, address.port)))
            if number % 2:
                stranger.sendall(bytes(40))
        begun = time.monotonic()
        assert not driver.go_on(3).reloaded
        assert time.monotonic() - begun < PROOF_SECONDS


def test_a_range_of_ports_is_kept_to() -> None:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port = probe.getsockname()[1]
    only = Listener(LOOPBACK, SECRET, (port, port))
    assert only.address.port == port
    with pytest.raises(Error, match=f"no port from {port} to {port} is free at {LOOPBACK}"):
        Listener(LOOPBACK, SECRET, (port, port))
    only.close()
    for wrong in ((5, 4), (0, 9), (1, 2**16), (1,), [1, 2], 80, (1.0, 2)):
        with pytest.raises(Error, match="is no range: give the first and the last"):
            check_ports(wrong)
    check_ports(None)
    check_ports((80, 80))


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
from tests.spark.cell_driver import Driver, place_at
driver = Driver(place_at(sys.argv[1]))
print(driver.go_on().pid, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_its_owner(tmp_path_factory: pytest.TempPathFactory) -> None:
    """kill -9 of the executor: the cell, its keeper, the nursery and their directories go as well."""
    tmp_path = tmp_path_factory.mktemp("a")  # short enough for the name of a socket
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", ALONE, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alone:
        assert alone.stdout is not None
        cell = int(alone.stdout.readline())
        keeper = _look(cell)
        assert keeper is not None
        alone.kill()
    gone(cell, keeper.parent)
    until("directories to go", lambda: not list(tmp_path.glob("viewlet-*/*")))


def test_one_nursery_has_keepers_of_many_runs_and_tells_why_one_cannot_be(tmp_path: Path) -> None:
    directory, of, seen = tmp_path / "keeper", owner(), set[int]()
    directory.mkdir()
    for number in range(2):
        driver = Driver(place_at(str(tmp_path / str(number))))
        stop(driver.place.run, [driver.go_on().address])
        seen.add((nursery._directory(of) / nursery.SOCKET).stat().st_ino)
    assert len(seen) == 1
    with socket.create_server((LOOPBACK, 0)) as taken:
        ports = (taken.getsockname()[1],) * 2
        settings = Settings(str(directory), SECRET, LOOPBACK, str(tmp_path), 1.0, of.pid, of.started, ports)
        with pytest.raises(Error, match=r"^the keeper of cells does not start: no port from"):
            nursery.born(settings, of)


def test_a_nursery_under_a_name_too_long_for_a_socket_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    driver = Driver(place_at(str(tmp_path)))
    stop(driver.place.run, [driver.go_on().address])
    assert not [*deep.glob("viewlet-*/nursery-*")]


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


def test_a_keeper_waits_for_a_cell_that_has_closed_its_port() -> None:
    """A process that is killed closes its port before it ends: its address must not be given out again."""
    if not (pid := os.fork()):
        time.sleep(0.3)
        os._exit(0)
    assert not has_ended(pid, 0.0)
    assert has_ended(pid, 60.0)
