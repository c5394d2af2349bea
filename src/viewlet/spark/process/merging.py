"""Logs merged into one: the same events in the same order, in one file, and the changes of each view in another.

A snapshot costs what the state is, so it waits until the logs are a share of it. Until then logs that are many become
few. A merged log takes in those before it that are not much larger. So an event is written again log n times, and there
are log n merged logs, each about twice as large as the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewlet.durable.chain import Chain, File, Log
from viewlet.durable.store import Store
from viewlet.spark.process.events import log_parts, log_segments
from viewlet.spark.process.snapshot import Child, Making, directory_of, leave_note, write_parquet

LARGER = 2  # times what is merged anyway: a log that is larger stays as it is


def to_merge(chain: Chain) -> tuple[Log, ...]:
    """The newest logs: all that are of one batch, and merged ones before them that are not much larger."""
    logs = chain.recent
    at = next(i for i, log in enumerate(logs) if not log.is_merged)
    while at > 0 and logs[at - 1].bytes <= LARGER * sum(log.bytes for log in logs[at:]):
        at -= 1
    return logs[at:]


def fork_merging(child: Child, logs: Sequence[Log]) -> Making:
    return child.forked(lambda: leave_note(child.note, merged(child.store, logs, child.new_stem(), child.at)))


def merged(store: Store, logs: Sequence[Log], stem: str, at: Path) -> Log:
    last = logs[-1]
    segments = [s for log in logs for s in log_segments(store.checked(log.file), log.batch, log.file.path)]
    draft = store.draft(path := f"snapshots/{stem}.events", at)
    with draft.open("wb") as out:
        for part in log_parts(last.batch, segments):
            out.write(part)
    file = store.adopt(draft, path)
    views = dict.fromkeys(view for log in logs for view in log.changes)
    changes = {
        view: _changes(store, [log.changes[view] for log in logs if view in log.changes], view, stem, at)
        for view in views
    }
    rows, seconds = sum(log.rows for log in logs), sum(log.seconds for log in logs)
    return Log(last.batch, last.id, file, changes, rows, seconds, logs[0].start)


def _changes(store: Store, files: Sequence[File], view: str, stem: str, at: Path) -> File:
    tables = [pq.read_table(pa.BufferReader(store.checked(file))) for file in files]
    draft = store.draft(path := f"bases/{directory_of(view)}/{stem}.parquet", at)
    write_parquet(pa.concat_tables(tables), draft)
    return store.adopt(draft, path)
