"""One writer of a directory: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
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
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise refused(path, error) from error
        if not self._is_taken():
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip() or "another"
            self.release()
            message = f"{path.parent} is open in process {holder}, and has one writer at a time: close it there first"
            raise StorageError(message)
        with suppress(OSError):  # on a disk that is full, nobody can be told who has it
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def _is_taken(self) -> bool:
        """A process that is about to die, or that was just forked, holds it for a moment longer."""
        for _ in range(LOOKS):
            with suppress(BlockingIOError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(PAUSE)
        return False

    def release(self) -> None:
        """Closing is enough. A forked copy of the file does not hold the lock for long: it is closed there, too."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
