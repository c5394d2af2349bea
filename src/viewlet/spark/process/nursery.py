"""``python -m viewlet.spark.process.nursery``: a process of a local session, from which keepers of cells are forked.

A keeper imports all modules that cells need, which takes seconds. In a notebook, and wherever a job is started, changed
and started again, one run follows another. So the first of them leaves this process behind. The next keepers are
forked from it, in milliseconds. It ends with its owner (Spark's JVM), or when nobody has asked for a minute.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from viewlet.durable.chain import Address, Json
from viewlet.errors import Error
from viewlet.spark.process.process import Process, Settings, directory_for, environment, locked, started

LINGER = 60.0  # seconds after the last keeper
LOOK = 0.5  # seconds between looks at the owner
SOCKET = "socket"
LONGEST_NAME = 100  # bytes; some systems have room for 103
MODULE = "viewlet.spark.process.nursery"


def born(settings: Settings, of: Process) -> Address | None:
    """Of a new keeper. None where sockets cannot have so long a name."""
    directory = _directory(of)
    if len(os.fsencode(directory / SOCKET)) > LONGEST_NAME:
        return None
    with locked(directory):
        try:
            return _asked(directory, settings)
        except (FileNotFoundError, ConnectionError):
            started(MODULE, {"directory": str(directory), "pid": of.pid, "started": of.started})
        return _asked(directory, settings)


def _directory(of: Process) -> Path:
    """One for each owner and its modules: a keeper must have those of the worker that asks."""
    modules = json.dumps([sys.executable, *sys.path])
    return directory_for(f"nursery-{sha256(modules.encode()).hexdigest()[:8]}", of)


def _asked(directory: Path, settings: Settings) -> Address:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(directory / SOCKET))
        client.sendall(json.dumps([environment(), asdict(settings)]).encode())
        client.shutdown(socket.SHUT_WR)
        answer = json.loads(_whole(client) or b'{"error": "it ended at once"}')
    if "error" in answer:
        raise Error(f"the keeper of cells does not start: {answer['error']}")
    return Address.from_json(answer["address"])


def _whole(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


# -- the process -------------------------------------------------------------------------------------------------------


def main() -> None:
    from viewlet.spark.process.keeper import let_go, prepare

    told = json.load(sys.stdin)
    directory, owner = Path(told["directory"]), Process(told["pid"], told["started"])
    with suppress(FileNotFoundError):
        (directory / SOCKET).unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / SOCKET))
        server.listen()
        if os.fork():
            print("listens")
            return
        os.setsid()
        prepare()
        let_go(directory / "log")
        _serve(server, owner)
    shutil.rmtree(directory, ignore_errors=True)


def _serve(server: socket.socket, owner: Process) -> None:
    server.settimeout(LOOK)
    asked = time.monotonic()
    while owner.is_alive and time.monotonic() - asked < LINGER:
        with suppress(TimeoutError):
            connection, _ = server.accept()
            with connection:
                connection.settimeout(None)
                _fork(server, connection)
            asked = time.monotonic()


def _fork(server: socket.socket, connection: socket.socket) -> None:
    """Twice: a keeper is nobody's child, so nobody need wait for its end."""
    if pid := os.fork():
        os.waitpid(pid, 0)
        return
    if not os.fork():
        server.close()
        _keep(connection)
    os._exit(0)


def _keep(connection: socket.socket) -> None:
    from viewlet.spark.process.keeper import keep

    def tell(answer: Json) -> None:
        connection.sendall(json.dumps(answer).encode())
        connection.close()

    def tell_where(address: Address) -> None:
        tell({"address": address.to_json()})

    try:
        variables, settings = json.loads(_whole(connection))
        os.environ.clear()
        os.environ.update(variables)
        keep(Settings.from_json(settings), tell_where)
    except BaseException as error:
        with suppress(OSError):
            tell({"error": str(error)})


if __name__ == "__main__":
    main()
