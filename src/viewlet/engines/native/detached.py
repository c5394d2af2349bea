"""Compiler runs in a process of their own, which outlives its caller: a script that ends first leaves an artefact.

That process is this file, run by its path with nothing but Python's library, so that it starts in some milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict


class Step(TypedDict):
    """One compiler run; the target is named by ``-o`` when it is done."""

    target: str
    arguments: list[str]


class Failure(TypedDict):
    """Of the step with this target."""

    target: str
    said: str


def compile_detached(steps: Sequence[Step]) -> Failure | None:
    """Make what is not there yet, one after the other, and wait for it. Whatever ends this process, they go on."""
    if not sys.executable or getattr(sys, "frozen", False):  # Python is part of another program
        return work(steps)
    command = [sys.executable, "-I", "-S", __file__]
    environment = {**os.environ, "LC_ALL": "C"}
    ran = subprocess.run(
        command,
        input=json.dumps(steps),
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is not meant for it
    )
    if ran.returncode != 0:
        return Failure(target=steps[-1]["target"], said=ran.stderr)
    failure: Failure | None = json.loads(ran.stdout)
    return failure


def work(steps: Sequence[Step]) -> Failure | None:
    for step in steps:
        target = Path(step["target"])
        with _locked(target.with_suffix(".lock")):
            if not is_whole(target) and (said := _compile(target, step["arguments"])) is not None:
                return Failure(target=step["target"], said=said)
    return None


def _compile(target: Path, arguments: list[str]) -> str | None:
    """Under a name that no one looks for; the rename, last, makes it visible at once and whole."""
    made = target.with_name(f"{target.stem}.{uuid.uuid4().hex}.tmp")
    try:
        ran = subprocess.run(
            [*arguments, "-o", str(made)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        if ran.returncode != 0 or not made.exists():
            return ran.stderr or ran.stdout or f"it ended with {ran.returncode} and made nothing"
        made.chmod(0o700)
        write(target.with_suffix(".sum"), _checksum(made))
        made.replace(target)
        return None
    except OSError as error:
        return str(error)
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Of all processes that want a file, one makes it."""
    import fcntl  # not at the top: a system without it has no compiler for us either, but imports this module

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, also by a crash
        yield


def write(path: Path, text: str) -> None:
    whole = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    whole.touch(mode=0o600)
    whole.write_text(text)
    whole.replace(path)


def is_whole(path: Path) -> bool:
    """Nobody else can have written it, and the checksum beside it is that of its bytes: nothing is half-written."""
    try:
        return is_private(path.lstat()) and path.with_suffix(".sum").read_text() == _checksum(path)
    except (OSError, UnicodeDecodeError):
        return False


def is_private(status: os.stat_result) -> bool:
    """This user's own, and not to be written by any other. A system without users has no compiler for us either."""
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return mine and not stat.S_IMODE(status.st_mode) & 0o022


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    os.umask(0o077)
    failed = work(json.load(sys.stdin))
    try:
        print(json.dumps(failed), flush=True)
    except OSError:  # nobody waits any more
        os._exit(0)


if __name__ == "__main__":
    main()
