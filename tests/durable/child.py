"""``python -m tests.durable.child``: databases that live in processes of their own, to be killed.

Reads a line of JSON for each, with the arguments of :func:`live`. It forks a process that says its number, lives on
from the step ``done``, and says after each step how many are done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

import viewlet
from tests.durable.life import Life
from tests.durable.test_compaction import in_this_process
from viewlet.database import compaction, recovery
from viewlet.durable.beside import Beside
from viewlet.rows import ledger

BRIEF = 1 << 12  # bytes of log after which a snapshot is due, so that there are many


def say(number: int) -> None:
    os.write(1, b"%d\n" % number)


def live(directory: str, engine: str, durability: str, seed: int, steady: bool, done: int) -> None:
    life = Life(seed, steady)
    for _ in range(done):
        life.step()
    viewlet.database.directory.WORTH_A_SNAPSHOT = viewlet.database.directory.StoredDatabase._least = BRIEF
    ledger.FEW = recovery.CHUNK = compaction.CHUNK = 8
    Beside._made = in_this_process  # type: ignore[method-assign]  # to kill both at once
    db = viewlet.connect(directory, engine=engine, durability=durability)  # type: ignore[arg-type]
    say(life.done)
    parent = os.getppid()
    while os.getppid() == parent:  # or nobody would end this one
        life.step()(db)
        say(life.done)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            try:
                live(**json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        say(pid)


if __name__ == "__main__":
    main()
