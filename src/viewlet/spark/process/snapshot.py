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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewlet.durable.chain import Chain, Log, Snapshot, Version, snapshot_stem
from viewlet.durable.store import Store
from viewlet.spark.process.cell import Cell
from viewlet.spark.process.events import log_parts, segments
from viewlet.spark.process.server import Listener, say

LONG = 1.0  # seconds of replaying logs, which a cell that is opened again has to wait for
MOST_LOGS = 50  # of one batch each: who opens a cell or reads a view opens each of their files
SHARE = 4
READ_A_SECOND = 100_000_000  # bytes of a snapshot, about
NICENESS = 10  # a snapshot has time, batches have not


def is_due(chain: Chain) -> bool:
    """Once replaying the logs would take long beside reading the last snapshot; or those of one batch are many."""
    several = sum(not log.is_merged for log in chain.recent) >= MOST_LOGS
    return several or (is_outgrown(chain) and sum(log.seconds for log in chain.recent) >= LONG)


def is_outgrown(chain: Chain) -> bool:
    """The logs are a fixed share of the last snapshot, or to replay them takes longer than to read it.

    So snapshots cost in proportion to the logs, and opening a cell in proportion to its state. Until then logs that are
    many are merged, which costs what they cost.
    """
    if chain.base is None or SHARE * sum(log.bytes for log in chain.recent) >= chain.base.bytes:
        return True
    return sum(log.seconds for log in chain.recent) >= LONG + chain.base.bytes / READ_A_SECOND


@dataclass(frozen=True)
class Making:
    """A snapshot or a merged log in the making; ``note`` is where the child says what it wrote."""

    pid: int
    version: Version
    note: Path

    def taken(self, store: Store) -> tuple[bool, Snapshot | Log | None]:
        """Whether it is over, and what was made, if it was and nobody has cleaned its files away."""
        if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            return False, None
        try:
            told = json.loads(self.note.read_text())
        except FileNotFoundError:
            say(f"no snapshot of batch {self.version.batch} came about")
            return True, None
        self.note.unlink()
        made = Snapshot.from_json(told) if "bases" in told else Log.from_json(told)
        files = made.files() if isinstance(made, Snapshot) else (made.file, *made.changes.values())
        return True, made if all(map(store.has, files)) else None

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@dataclass(frozen=True)
class Child:
    """A process that writes something down of a cell, as of a version. Its name is ``cell``."""

    store: Store
    cell: str
    version: Version
    listener: Listener
    at: Path

    @property
    def note(self) -> Path:
        return self.at / f"snapshot-{self.cell}-{self.version.batch}-{self.version.log}.json"

    def new_stem(self) -> str:
        """Named at random as well: a cell that was given up may write the same version elsewhere, in other bytes."""
        return f"{snapshot_stem(self.cell, self.version)}-{secrets.token_hex(4)}"

    def forked(self, write_down: Callable[[], None]) -> Making:
        """The parent goes on at once. The child leaves the parent's port alone, so that no client waits for it."""
        if pid := os.fork():
            return Making(pid, self.version, self.note)
        status = 1
        try:
            self.listener.close()
            gc.disable()  # or it would write to all the pages that the two share
            os.nice(NICENESS)
            write_down()
            status = 0
        except BaseException as error:
            say(f"the snapshot of batch {self.version.batch} failed: {error!r}")
        finally:
            os._exit(status)


def fork_snapshot(child: Child, cell: Cell, publish: Sequence[str]) -> Making:
    return child.forked(lambda: _write_down(child, cell, publish))


def _write_down(child: Child, cell: Cell, publish: Sequence[str]) -> None:
    store, note, parent, stem = child.store, child.note, os.getppid(), child.new_stem()
    bases = [f"bases/{directory_of(view)}/{stem}.parquet" for view in publish]
    paths = [f"snapshots/{stem}.state", f"snapshots/{stem}.rows", *bases]
    drafts = [store.draft(path, note.parent) for path in paths]
    try:
        with drafts[0].open("wb", buffering=0) as out:
            cell.save(out.fileno())
        with drafts[1].open("wb") as out:
            out.writelines(log_parts(child.version.batch, segments(cell.stored())))
        for view, draft in zip(publish, drafts[2:], strict=True):
            write_parquet(cell.rows(view), draft)
            if os.getppid() != parent:
                raise ChildProcessError("the cell is gone: nobody would hear of its snapshot")
        plan = _Plan(store.uri, str(note), child.version, tuple(publish), tuple(paths), tuple(map(str, drafts)))
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
    """Which drafts become which files: the state, the rows, then a base for each view."""

    store: str
    note: str
    version: Version
    views: tuple[str, ...]
    paths: tuple[str, ...]
    drafts: tuple[str, ...]


def _adopt(store: Store, plan: _Plan) -> None:
    """The note that says what was written comes last."""
    state, rows, *bases = [store.adopt(Path(draft), path) for draft, path in zip(plan.drafts, plan.paths, strict=True)]
    leave_note(Path(plan.note), Snapshot(plan.version, state, dict(zip(plan.views, bases, strict=True)), rows))


def leave_note(note: Path, made: Snapshot | Log) -> None:
    whole = note.with_suffix(".tmp")
    whole.write_text(json.dumps(made.to_json()))
    whole.replace(note)


def write_parquet(rows: pa.RecordBatch | pa.Table, where: object) -> None:
    """Read once or twice, soon and whole: what makes files small or searchable is not worth its time; checksums are."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    pq.write_table(table, where, use_dictionary=False, write_statistics=False, write_page_checksum=True)


def directory_of(view: str) -> str:
    """A view's name as a directory: Spark passes over names that begin with _, and some disks over capitals."""
    escaped = "".join(c if c in "abcdefghijklmnopqrstuvwxyz0123456789_" else f"~{ord(c):x}" for c in view)
    return f"~5f{escaped[1:]}" if escaped.startswith("_") else escaped


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    _adopt(Store(given["store"]), _Plan(**given | {"version": Version(**given["version"])}))
