"""One writer of a directory: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import gc
import os
import time
from contextlib import suppress
from pathlib import Path

from viewlet.durable.records import refused
from viewlet.errors import StorageError

LOOKS, PAUSE = 20, 0.02  # seconds


class Lock:
    """Held from the start. The file stays, with the number of the process that had it last."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = open(path, "r+b", buffering=0, opener=_opened)  # noqa: SIM115  it is the lock
        except OSError as error:
            raise refused(path, error) from error
        if not self._is_taken():
            holder = self._holder()
            self.release()
            message = f"{path.parent} is open in {holder}, and has one writer at a time: close it there first"
            raise StorageError(message)
        with suppress(OSError):  # on a disk that is full, nobody can be told who has it
            self._file.truncate(0)
            os.pwrite(self._file.fileno(), str(os.getpid()).encode(), 0)

    def _holder(self) -> str:
        number = os.pread(self._file.fileno(), 20, 0).decode(errors="replace").strip()
        return "this process" if number == str(os.getpid()) else f"process {number or 'another'}"

    def _is_taken(self) -> bool:
        """A process that is about to die, or that was just forked, holds it for a moment longer.

        So does a database of this process that was dropped without ``close()``, until it is collected.
        """
        for look in range(LOOKS):
            with suppress(BlockingIOError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if look == 0 and self._holder() == "this process":
                gc.collect()
            time.sleep(PAUSE)
        return False

    def release(self) -> None:
        """Closing is enough. A forked copy of the file does not hold the lock for long: it is closed there, too."""
        self._file.close()


def _opened(path: str, _: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
