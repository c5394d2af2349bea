"""Snapshots that nobody waits for: a forked child has the cell's memory as it was, and writes it down.

Clients of object stores do not survive a fork. There the child writes to the local disk and then becomes a new Python
that uploads what it wrote.
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewlet.durable.chain import Chain, Snapshot, Version, snapshot_stem
from viewlet.durable.store import Store
from viewlet.spark.process.cell import Cell
from viewlet.spark.process.server import Listener, say

LONG = 1.0  # seconds of replaying logs, which a cell that is opened again has to wait for
MOST_LOGS = 50
NICENESS = 10  # a snapshot has time, batches have not


def is_due(chain: Chain) -> bool:
    """Once replaying the logs would take long, and longer than reading the last snapshot does; or they are many."""
    logs = chain.recent
    outgrown = chain.base is None or sum(log.file.bytes for log in logs) >= chain.base.file.bytes
    return len(logs) >= MOST_LOGS or (outgrown and sum(log.seconds for log in logs) >= LONG)


@dataclass(frozen=True)
class Making:
    """A snapshot in the making; ``note`` is where the child says what it wrote."""

    pid: int
    version: Version
    note: Path

    def taken(self, store: Store) -> tuple[bool, Snapshot | None]:
        """Whether it is over, and the snapshot, if there is one and nobody has cleaned its files away."""
        if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            return False, None
        try:
            snapshot = Snapshot.from_json(json.loads(self.note.read_text()))
        except FileNotFoundError:
            say(f"no snapshot of batch {self.version.batch} came about")
            return True, None
        self.note.unlink()
        whole = all(map(store.has, [snapshot.file, *snapshot.bases.values()]))
        return True, snapshot if whole else None

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def fork_snapshot(
    store: Store, cell: Cell, name: str, version: Version, publish: Sequence[str], listener: Listener, at: Path
) -> Making:
    """The parent goes on at once. The child leaves the parent's port alone, so that no client waits for it."""
    note = at / f"snapshot-{name}-{version.batch}-{version.log}.json"
    if pid := os.fork():
        return Making(pid, version, note)
    status = 1
    try:
        listener.close()
        gc.disable()  # or it would write to all the pages that the two share
        os.nice(NICENESS)
        _write_down(store, cell, name, version, publish, note)
        status = 0
    except BaseException as error:
        say(f"the snapshot of batch {version.batch} failed: {error!r}")
    finally:
        os._exit(status)


def _write_down(store: Store, cell: Cell, name: str, version: Version, publish: Sequence[str], note: Path) -> None:
    """Named at random as well: a cell that was given up may write the same version elsewhere, in other bytes."""
    parent, stem = os.getppid(), f"{snapshot_stem(name, version)}-{secrets.token_hex(4)}"
    paths = [f"snapshots/{stem}.state", *(f"bases/{directory_of(view)}/{stem}.parquet" for view in publish)]
    drafts = [store.draft(path, note.parent) for path in paths]
    try:
        with drafts[0].open("wb", buffering=0) as out:
            cell.save(out.fileno())
        for view, draft in zip(publish, drafts[1:], strict=True):
            write_parquet(cell.rows(view), draft)
            if os.getppid() != parent:
                raise ChildProcessError("the cell is gone: nobody would hear of its snapshot")
        plan = _Plan(store.uri, str(note), version, tuple(publish), tuple(paths), tuple(map(str, drafts)))
        if store.is_local:
            _adopt(store, plan)
        else:
            os.execv(sys.executable, [sys.executable, "-m", "viewlet.spark.process.snapshot", json.dumps(asdict(plan))])
    except BaseException:
        for draft in drafts:
            draft.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class _Plan:
    """Which drafts become which files: the state first, then a base for each view."""

    store: str
    note: str
    version: Version
    views: tuple[str, ...]
    paths: tuple[str, ...]
    drafts: tuple[str, ...]


def _adopt(store: Store, plan: _Plan) -> None:
    """The note that says what was written comes last."""
    state, *bases = [store.adopt(Path(draft), path) for draft, path in zip(plan.drafts, plan.paths, strict=True)]
    snapshot = Snapshot(plan.version, state, dict(zip(plan.views, bases, strict=True)))
    whole = Path(plan.note).with_suffix(".tmp")
    whole.write_text(json.dumps(snapshot.to_json()))
    whole.replace(plan.note)


def write_parquet(rows: pa.RecordBatch, where: object) -> None:
    """Read once or twice, soon and whole: what makes files small or searchable is not worth its time; checksums are."""
    table = pa.Table.from_batches([rows])
    pq.write_table(table, where, use_dictionary=False, write_statistics=False, write_page_checksum=True)


def directory_of(view: str) -> str:
    """A view's name as a directory: Spark passes over names that begin with _, and some disks over capitals."""
    escaped = "".join(c if c in "abcdefghijklmnopqrstuvwxyz0123456789_" else f"~{ord(c):x}" for c in view)
    return f"~5f{escaped[1:]}" if escaped.startswith("_") else escaped


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    _adopt(Store(given["store"]), _Plan(**given | {"version": Version(**given["version"])}))
