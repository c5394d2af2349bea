"""``python -m viewlet.spark.process.keeper``: the parent of all cells of one run on one executor.

Python workers come and go from batch to batch, so cells live in processes of their own. Whichever worker needs one
first starts the keeper; for each cell it forks a process that has all modules and the compiled program already. It
ends when its owner (the executor's JVM) does, or soon after its last cell has ended.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from viewlet.durable.chain import Address
from viewlet.durable.store import Store
from viewlet.spark.process.artefact import unpacked
from viewlet.spark.process.cell import Cell
from viewlet.spark.process.process import NOTE, Process, Settings, locked, sweep
from viewlet.spark.process.protocol import Message, UnreachableError
from viewlet.spark.process.server import Listener, Reply, own_host, say
from viewlet.spark.process.worker import CellProcess

LINGER = 5.0  # seconds without a cell
LAST_MOMENTS = 1.0  # seconds from a killed process's last port to its end, where the processor is busy


class Keeper:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._owner = Process(settings.owner_pid, settings.owner_started)
        self._directory = Path(settings.directory)
        self._host = settings.host or own_host()
        self._listener = Listener(self._host, settings.secret, settings.ports)
        self._cells: dict[str, tuple[int, Address]] = {}
        self._programs: dict[str, Callable[[], Cell]] = {}
        self._asked = time.monotonic()

    @property
    def address(self) -> Address:
        return self._listener.address

    def run(self) -> None:
        self._listener.serve(self._answer, self._go_on)
        self._listener.close()
        for pid, _ in self._cells.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        self._tidy()

    def _tidy(self) -> None:
        """The directory goes, unless another keeper has it by now."""
        with locked(self._directory):
            note = self._directory / NOTE
            if not note.exists() or json.loads(note.read_text()) == self.address.to_json():
                shutil.rmtree(self._directory, ignore_errors=True)

    def _go_on(self) -> bool:
        self._bury()
        if self._cells:
            self._asked = time.monotonic()
        return self._owner.is_alive and time.monotonic() - self._asked < LINGER

    def _bury(self, gone: list[Any] | None = None) -> None:
        """Forget cells that have ended. One where nobody answers closed its port, and is about to end."""
        for name, (pid, address) in list(self._cells.items()):
            if has_ended(pid, LAST_MOMENTS if address.to_json() == gone else 0.0):
                del self._cells[name]

    # -- opening a cell ------------------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> Reply:
        """The cell's port takes clients from now on; the process behind it comes when this one is answered."""
        if message.header["do"] != "open":
            raise UnreachableError("a keeper has the port now")
        name: str = message.header["cell"]
        self._bury(message.header["gone"])
        if name in self._cells:
            return Reply({"address": self._cells[name][1].to_json()})
        fresh = self._program(message)
        listener = Listener(self._host, self._settings.secret, self._settings.ports)
        return Reply({"address": listener.address.to_json()}, (), lambda: self._fork(name, fresh, listener))

    def _program(self, message: Message) -> Callable[[], Cell]:
        """Loaded once, for all cells that run it."""
        artefact: str = message.header["artefact"]["id"]
        if artefact not in self._programs:
            self._programs[artefact] = unpacked(message, self._directory)
        return self._programs[artefact]

    def _fork(self, name: str, fresh: Callable[[], Cell], listener: Listener) -> None:
        if pid := os.fork():
            self._cells[name] = pid, listener.address
            listener.close()
            return
        status = 1
        try:
            self._listener.close()
            store = Store(self._settings.store)
            CellProcess(name, store, fresh, listener, self._directory).run(self._owner, self._settings.idle)
            status = 0
        except BaseException as error:
            say(f"cell {name} failed: {error!r}")
        finally:
            os._exit(status)


def has_ended(pid: int, within: float) -> bool:
    """Whether a child has ended, or does so within some seconds."""
    until = time.monotonic() + within
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() >= until:
            return False
        time.sleep(0.01)
    return True


def main() -> None:
    """Become a process of its own, which no worker waits for, and say where it is to be found."""
    settings = Settings.from_json(json.load(sys.stdin))
    if os.fork():
        os._exit(0)
    prepare()
    keep(settings, lambda address: print(json.dumps(address.to_json()), flush=True))


def prepare() -> None:
    """For all that is forked from here."""
    pa.scalar(0)  # makes pyarrow look for pandas: here, not in every cell
    gc.freeze()  # nor need any of them look again at what is imported


def keep(settings: Settings, tell: Callable[[Address], None]) -> None:
    """Be the keeper, until it ends. ``tell`` is told where it listens."""
    os.setsid()
    keeper = Keeper(settings)
    tell(keeper.address)
    let_go(Path(settings.directory) / "log")
    sweep(Path(settings.directory))
    keeper.run()


def let_go(log: Path) -> None:
    """A program that reads this process's output must not wait for its end."""
    null, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(file)


if __name__ == "__main__":
    main()
