"""A step: what one batch adds to the manifest of the batch before it. It names the cells that had rows, and no others.

manifest(b) = manifest(b − 1) + step(b). A step says which manifest it stands on by that one's digest, so a manifest
that another driver wrote for the same batch is never taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from viewlet.durable.chain import Address, Chain, File, Json, Log, Manifest, Snapshot

STATE = "state_by_cell"  # of a batch's progress: what each cell holds


@dataclass(frozen=True)
class Step:
    """``base`` is the batch of the whole manifest underneath; ``before`` the digest of the manifest just before."""

    batch: int
    base: int
    before: str
    offsets: str
    logs: Mapping[str, Log]
    snapshots: Mapping[str, Snapshot]
    merged: Mapping[str, Log]
    addresses: Mapping[str, Address]
    progress: Mapping[str, Any]
    run: str
    noted: str

    def applied(self, before: Manifest) -> Manifest:
        """The manifest after this batch."""
        grown = {
            name: before.cells.get(name, Chain()).followed(log, self.snapshots.get(name), self.merged.get(name))
            for name, log in self.logs.items()
        }
        progress = dict(self.progress)
        if STATE in progress:
            progress[STATE] = {**before.progress.get(STATE, {}), **progress[STATE]}
        return Manifest(
            self.batch,
            self.offsets,
            {**before.cells, **grown},
            {**before.addresses, **self.addresses},
            progress,
            self.run,
            self.noted,
            before.job,
        )

    def files(self) -> Iterator[File]:
        """All that this manifest names and the one before it does not."""
        for log in (*self.logs.values(), *self.merged.values()):
            yield from (log.file, *log.changes.values())
        for snapshot in self.snapshots.values():
            yield from snapshot.files()

    def to_json(self) -> Json:
        """What it has of each cell is left to the encoder, one after the other: as ``Manifest.to_json`` of chains."""
        return {
            "batch": self.batch,
            "base": self.base,
            "before": self.before,
            "offsets": self.offsets,
            "logs": dict(self.logs),
            "snapshots": dict(self.snapshots),
            "merged": dict(self.merged),
            "addresses": dict(self.addresses),
            "progress": dict(self.progress),
            "run": self.run,
            "noted": self.noted,
        }

    @staticmethod
    def from_json(data: Json) -> Step:
        return Step(
            data["batch"],
            data["base"],
            data["before"],
            data["offsets"],
            {name: Log.from_json(log) for name, log in data["logs"].items()},
            {name: Snapshot.from_json(snapshot) for name, snapshot in data["snapshots"].items()},
            {name: Log.from_json(log) for name, log in data.get("merged", {}).items()},
            {name: Address.from_json(address) for name, address in data["addresses"].items()},
            data["progress"],
            data["run"],
            data["noted"],
        )


def step_between(before: Manifest, after: Manifest, base: int, digest: str) -> Step | None:
    """The step from one manifest to the next; None where a step cannot say it, and the next must be written whole.

    A cell that had no rows has the very same chain in both, so it costs a look.
    """
    if after.batch != before.batch + 1 or (after.run, after.job) != (before.run, before.job) or after.told:
        return None
    if not all(old.keys() <= new.keys() for old, new in _mappings(before, after)):
        return None
    changed = {name: chain for name, chain in after.cells.items() if chain is not before.cells.get(name)}
    grown = {name: _growth(before.cells.get(name, Chain()), chain) for name, chain in changed.items()}
    known = {name: growth for name, growth in grown.items() if growth is not None}
    if len(known) < len(grown):
        return None
    addresses = {name: a for name, a in after.addresses.items() if a != before.addresses.get(name)}
    return Step(
        after.batch,
        base,
        digest,
        after.offsets,
        {name: growth.log for name, growth in known.items()},
        {name: growth.snapshot for name, growth in known.items() if growth.snapshot is not None},
        {name: growth.merged for name, growth in known.items() if growth.merged is not None},
        addresses,
        _new_progress(before.progress, after.progress),
        after.run,
        after.noted,
    )


def _mappings(before: Manifest, after: Manifest) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """What is kept by cell: a step adds to it, and takes nothing away."""
    yield before.cells, after.cells
    yield before.addresses, after.addresses
    yield before.progress.get(STATE, {}), after.progress.get(STATE, {})


class Growth(NamedTuple):
    """What a batch adds to the chain of a cell: ``chain.followed(*growth)`` is the next one."""

    log: Log
    snapshot: Snapshot | None = None
    merged: Log | None = None


def _growth(before: Chain, after: Chain) -> Growth | None:
    """None where the one does not follow on the other. Mostly it is a log more, which takes no look at the others."""
    if not after.logs:
        return None
    if after.snapshots == before.snapshots and after.logs[:-1] == before.logs:
        return Growth(after.logs[-1])
    growth = Growth(after.logs[-1], _new_snapshot(before, after), _new_merged(before, after))
    return growth if before.followed(*growth) == after else None


def _new_snapshot(before: Chain, after: Chain) -> Snapshot | None:
    return after.base if after.base != before.base else None


def _new_merged(before: Chain, after: Chain) -> Log | None:
    """The newest merged log, where it is another one than before."""
    now, known = ([log for log in chain.logs if log.is_merged] for chain in (after, before))
    return now[-1] if now and now[-1] not in known else None


def _new_progress(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What each cell holds, for those where it is another number now."""
    if STATE not in after:
        return dict(after)
    known = before.get(STATE, {})
    return {**after, STATE: {name: held for name, held in after[STATE].items() if known.get(name) != held}}


def dropped(before: Chain, after: Chain) -> list[str]:
    """The files that a chain needs no more after one more batch: none, but for a new snapshot or a merged log."""
    if after.snapshots == before.snapshots and len(after.logs) == len(before.logs) + 1:
        return []
    logs = {(log.batch, log.first) for log in after.logs}  # names enough, where one chain follows on the other
    versions = {snapshot.version for snapshot in after.snapshots}
    gone = Chain(
        tuple(snapshot for snapshot in before.snapshots if snapshot.version not in versions),
        tuple(log for log in before.logs if (log.batch, log.first) not in logs),
    )
    return [file.path for file in gone.files()]
