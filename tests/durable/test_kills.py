"""kill -9 at any moment: what was acknowledged is there again, and of the step in flight all or nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import viewlet
from tests.durable.life import Life, check
from viewlet.errors import StorageError

STEPS = (0, 1, 5, 10, 15) * 2  # that are waited for before each kill in one directory, in some order
ROOT = Path(__file__).parents[2]
Zygote = subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    command = [sys.executable, "-m", "tests.durable.child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=ROOT) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("level", ["process", "machine"])
def test_random_kills(zygote: Zygote, tmp_path: Path, level: str, seeded: int) -> None:
    """Each process goes on from what the last one left; DuckDB says what that is."""
    chance = Random(f"{level}/{seeded}")
    life = Life(seeded, steady=(level == "machine") == (seeded % 2 == 0))
    engines = ["native", "python"] if life.steady else ["python", "python", "interpreter"]
    for number, steps in enumerate(chance.sample(STEPS, len(STEPS))):
        acknowledged = killed(zygote, tmp_path, chance.choice(engines), level, life, chance, steps)
        while life.done < acknowledged:
            life.step()
        verdict(tmp_path, life, chance.choice(engines), number)
    assert life.done >= sum(STEPS)


def test_without_durability_some_prefix_is_there(zygote: Zygote, tmp_path: Path) -> None:
    """Nothing is promised at level none, but steps that are there follow each other."""
    life = Life(5)
    acknowledged = killed(zygote, tmp_path, "python", "none", life, Random(3), 10)
    with viewlet.connect(tmp_path, engine="python") as db:
        while not holds(db, life):
            assert life.done <= acknowledged
            life.step()


def holds(db: viewlet.Database, life: Life) -> bool:
    try:
        check(db, life.model)
    except AssertionError:
        return False
    return True


def killed(zygote: Zygote, directory: Path, engine: str, level: str, life: Life, chance: Random, steps: int) -> int:
    """A process lives for some steps and a moment, and is killed; how many steps it acknowledged."""
    assert zygote.stdout is not None
    of = {"seed": life.seed, "steady": life.steady, "done": life.done}
    pid, acknowledged = begun(zygote, {"directory": str(directory), "engine": engine, "durability": level, **of})
    for _ in range(steps):
        acknowledged = int(zygote.stdout.readline())
    time.sleep(chance.random() * 0.03)
    end(pid)
    os.set_blocking(zygote.stdout.fileno(), False)
    try:
        said = (zygote.stdout.read(1 << 20) or b"").split()
    finally:
        os.set_blocking(zygote.stdout.fileno(), True)
    return int(said[-1]) if said else acknowledged


def begun(zygote: Zygote, order: dict[str, object]) -> tuple[int, int]:
    """The number of a process that lives, and how many steps it has behind it."""
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    zygote.stdin.write(json.dumps(order).encode() + b"\n")
    return int(zygote.stdout.readline()), int(zygote.stdout.readline())


def end(pid: int) -> None:
    """Return when the process is gone, whatever the disk still had to do for it."""
    os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.001)


def verdict(directory: Path, life: Life, engine: str, number: int) -> None:
    """The database is after the steps that were acknowledged, or after one more; ``life`` then is so, too."""
    with viewlet.connect(directory, engine=engine) as db:  # type: ignore[arg-type]
        more = life.copy()
        more.step()
        try:
            check(db, life.model)
        except AssertionError as without:
            try:
                check(db, more.model)
            except AssertionError as too:
                raise AssertionError(f"kill {number}, after {life.done} steps: {without}; {too}") from too
            life.model, life.done = more.model, more.done


def test_one_writer(zygote: Zygote, tmp_path: Path) -> None:
    """A second process is refused while the first lives, and is the first one when that is dead."""
    of = {"seed": 1, "steady": False, "done": 0}
    pid, _ = begun(zygote, {"directory": str(tmp_path), "engine": "python", "durability": "process", **of})
    with pytest.raises(StorageError, match=f"is open in process {pid}, and has one writer at a time"):
        viewlet.connect(tmp_path)
    end(pid)
    viewlet.connect(tmp_path).close()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_database_that_was_dropped_holds_nothing(tmp_path: Path) -> None:
    """Nobody can close it any more. One that somebody still has is named."""
    kept = viewlet.connect(tmp_path)
    with pytest.raises(StorageError, match="is open in this process"):
        viewlet.connect(tmp_path)
    del kept
    viewlet.connect(tmp_path).close()
