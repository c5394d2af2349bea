"""A command that gets so much time on the wall and not more: it, and all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Ended:
    """What it printed, and its exit code; None where it had to be killed."""

    out: str
    err: str
    code: int | None


def bounded(
    command: Sequence[str | Path], seconds: float, given: str = "", environment: Mapping[str, str] | None = None
) -> Ended:
    """It talks through files: a pipe would stay open as long as anything that it started and left behind."""
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        told.write(given)
        told.seek(0)
        process = subprocess.Popen(
            command,
            stdin=told,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        code = _waited(process, seconds)
        return Ended(_read(out), _read(err), code)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):  # nothing of it is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
