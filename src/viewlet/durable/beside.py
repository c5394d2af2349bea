"""A snapshot that is made beside the writer: the process that makes it, and the thread that waits for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from viewlet.durable import disk
from viewlet.durable.directory import Directory
from viewlet.errors import Error, StorageError

NO_PYTHON = "there is no Python to start beside this process, since it is part of another program"


class Beside:
    """Of all that came before the log ``number``. It counts when ``is_done`` and there is no ``failure``."""

    def __init__(self, directory: Directory, number: int) -> None:
        self._directory, self._number, self._owner = directory, number, os.getpid()
        self._starting, self._unwanted = threading.Lock(), False
        self._process: subprocess.Popen[bytes] | None = None
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="viewlet snapshot", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system has no more threads, or the interpreter is about to end
            raise StorageError(str(error)) from error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Return when it is done. Ctrl-C gives it up."""
        try:
            self._thread.join()
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Nothing comes of it, unless it counts already. A forked process leaves it to its parent."""
        if os.getpid() != self._owner:
            return
        with self._starting:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        draft = disk.draft_of(self._directory.path / f"rows-{self._number}")
        try:
            size = self._made(draft)
            if size is not None and not self._unwanted:
                self._directory.adopt(draft, self._number, size)
        except (Error, OSError, ValueError) as error:
            self.failure = str(error)
        finally:
            draft.unlink(missing_ok=True)

    def _made(self, draft: Path) -> int | None:
        """The bytes of the draft; None where it was given up."""
        if not sys.executable or getattr(sys, "frozen", False):
            raise StorageError(NO_PYTHON)
        order = {"path": str(self._directory.path), "number": self._number, "draft": str(draft)}
        with self._starting:
            if self._unwanted:
                return None
            self._process = process = _started(json.dumps(order))
        with process:
            assert process.stdout is not None
            said = process.stdout.read().decode(errors="replace").splitlines()
        if self._unwanted:
            return None
        told = json.loads(said[-1]) if said and said[-1].startswith("{") else {"failed": "\n".join(said[-3:])}
        if "bytes" not in told:
            raise StorageError(f"the process that writes it failed: {told['failed']}")
        return int(told["bytes"])


def _started(order: str) -> subprocess.Popen[bytes]:
    """It ends when its standard input does, and so with this process. Ctrl-C is not meant for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "viewlet.database.compaction", order],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
