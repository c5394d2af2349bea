"""What is durable of a cell: a chain of log files and snapshots, as values that a manifest can hold.

A cell's *version* is the batch that it applied last and the attempt that did so. Two attempts of one batch make two
versions, so nobody who asks for one can mistake the other for it, and only the driver says which of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Plain = tuple[str, int, str]  # path, length and digest of a file
KEPT_SNAPSHOTS = 2  # should the newer one be broken, the older one and the logs after it come to the same state


@dataclass(frozen=True, slots=True)
class File:
    """``path`` is below the store's root; length and digest say whether it is still what was written."""

    path: str
    bytes: int
    digest: str

    @property
    def plain(self) -> Plain:
        return self.path, self.bytes, self.digest

    def to_json(self) -> list[Any]:
        return list(self.plain)

    @staticmethod
    def from_json(data: list[Any]) -> File:
        return File(*data)


@dataclass(frozen=True)
class Version:
    """``log`` is the id of the attempt whose log made the version."""

    batch: int = -1
    log: str = ""


START = Version()  # of a cell that nothing was applied to


@dataclass(frozen=True, slots=True, init=False)
class Log:
    """One micro-batch of a cell: its events, what they changed in each view that the cell publishes, and what it took.

    ``seconds`` are the engine's: to replay the log takes about as long. Manifests of earlier versions do not say. A
    *merged* log is one file in place of several logs: it has the batches from ``first`` to ``batch``.

    A driver knows a hundred of them for each of a thousand cells. So one is a single tuple of numbers and texts, which
    Python's garbage collector looks at once and never again.
    """

    batch: int
    id: str
    first: int | None
    _kept: tuple[Plain, tuple[tuple[str, Plain], ...], int, float]

    def __init__(
        self,
        batch: int,
        id: str,
        file: File,
        changes: Mapping[str, File],
        rows: int,
        seconds: float = 0.0,
        first: int | None = None,
    ) -> None:
        by_view = tuple((view, changed.plain) for view, changed in changes.items())
        for name, value in zip(self.__slots__, (batch, id, first, (file.plain, by_view, rows, seconds)), strict=True):
            object.__setattr__(self, name, value)

    @property
    def file(self) -> File:
        return File(*self._kept[0])

    @property
    def changes(self) -> dict[str, File]:
        return {view: File(*plain) for view, plain in self._kept[1]}

    @property
    def rows(self) -> int:
        return self._kept[2]

    @property
    def seconds(self) -> float:
        return self._kept[3]

    @property
    def version(self) -> Version:
        return Version(self.batch, self.id)

    @property
    def start(self) -> int:
        """The first of its batches."""
        return self.batch if self.first is None else self.first

    @property
    def is_merged(self) -> bool:
        return self.first is not None

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in (self.file, *self.changes.values()))

    def to_json(self) -> Json:
        merged = {} if self.first is None else {"first": self.first}
        return merged | {
            "batch": self.batch,
            "id": self.id,
            "file": self._kept[0],
            "changes": dict(self._kept[1]),
            "rows": self.rows,
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(data: Json) -> Log:
        file, changes = File.from_json(data["file"]), _files_from_json(data["changes"])
        return Log(data["batch"], data["id"], file, changes, data["rows"], data.get("seconds", 0.0), data.get("first"))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cell's whole state at a version, and all rows of each view that it publishes.

    ``rows`` has the rows of its tables, as a log. Snapshots of earlier versions of viewlet have none.
    """

    version: Version
    file: File
    bases: Mapping[str, File]
    rows: File | None = None

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files())

    def files(self) -> Iterator[File]:
        yield self.file
        yield from self.bases.values()
        if self.rows is not None:
            yield self.rows

    def to_json(self) -> Json:
        version = [self.version.batch, self.version.log]
        rows = {} if self.rows is None else {"rows": self.rows.to_json()}
        return {"version": version, "file": self.file.to_json(), "bases": _files_to_json(self.bases), **rows}

    @staticmethod
    def from_json(data: Json) -> Snapshot:
        bases, rows = _files_from_json(data["bases"]), data.get("rows")
        version, file = Version(*data["version"]), File.from_json(data["file"])
        return Snapshot(version, file, bases, None if rows is None else File.from_json(rows))


def snapshot_stem(cell: str, version: Version) -> str:
    """How the names of a snapshot's files begin; more follows, for two may be made of one version."""
    return f"{version.batch}-{cell}-{version.log}"


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """A cell's rows of a view: those of ``base`` and of ``changes``, equal ones together, their weights summed."""

    base: File | None
    changes: tuple[File, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """The last snapshots, oldest first, and the logs after the oldest of them (all, while there are fewer than two)."""

    snapshots: tuple[Snapshot, ...] = ()
    logs: tuple[Log, ...] = ()

    @property
    def version(self) -> Version:
        if self.logs:
            return self.logs[-1].version
        return self.snapshots[-1].version if self.snapshots else START

    @property
    def base(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def followed(self, log: Log, snapshot: Snapshot | None = None, merged: Log | None = None) -> Chain:
        """The chain after one more batch.

        A snapshot is left out if its version is not on the chain (a loser's), or if it is no newer than another (made
        by a cell that was given up meanwhile). So is a merged log.
        """
        logs = (*(self.logs if merged is None else self._with(merged)), log)
        if snapshot is None or all(snapshot.version != known.version for known in Chain(self.snapshots, logs).recent):
            return Chain(self.snapshots, logs)
        snapshots = (*self.snapshots, snapshot)[-KEPT_SNAPSHOTS:]
        whole = Chain(snapshots, logs)
        return Chain(snapshots, whole.after(snapshots[0]) if len(snapshots) == KEPT_SNAPSHOTS else logs)

    def _with(self, merged: Log) -> tuple[Log, ...]:
        """A merged log in place of the newest logs that it was made of; none of those is older than a snapshot."""
        first = merged.first
        assert first is not None, "a log of one batch is no merged one"
        within = [log for log in self.recent if first <= log.batch <= merged.batch]
        if not within or within[0].start != first or within[-1].version != merged.version:
            return self.logs
        at = self.logs.index(within[0])
        return (*self.logs[:at], merged, *self.logs[at + len(within) :])

    def after(self, snapshot: Snapshot | None) -> tuple[Log, ...]:
        """The logs that lead from a snapshot (None: from nothing) to the chain's version."""
        return tuple(log for log in self.logs if snapshot is None or log.batch > snapshot.version.batch)

    @property
    def recent(self) -> tuple[Log, ...]:
        """The logs after the newest snapshot."""
        return self.after(self.base)

    def view(self, name: str) -> ViewFiles:
        base = self.base
        files = tuple(log.changes[name] for log in self.recent if name in log.changes)
        return ViewFiles(None if base is None else base.bases.get(name), files)

    def files(self) -> Iterator[File]:
        for snapshot in self.snapshots:
            yield from snapshot.files()
        for log in self.logs:
            yield log.file
            yield from log.changes.values()

    def to_json(self) -> Json:
        return {"snapshots": [s.to_json() for s in self.snapshots], "logs": [log.to_json() for log in self.logs]}

    @staticmethod
    def from_json(data: Json) -> Chain:
        snapshots = tuple(map(Snapshot.from_json, data["snapshots"]))
        return Chain(snapshots, tuple(map(Log.from_json, data["logs"])))


@dataclass(frozen=True)
class Address:
    """Where a cell was reached last: a hint, never the truth."""

    host: str
    port: int

    def to_json(self) -> list[Any]:
        return [self.host, self.port]

    @staticmethod
    def from_json(data: list[Any]) -> Address:
        return Address(*data)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What counts of all files once ``batch`` is done.

    ``noted`` is what Spark noted of the rows that its sources gave to it, and ``offsets`` the digest of that. ``job``
    says whose state it is, once that has changed. ``told`` are the changes of views in a batch that changed it: its
    cells are new, and their own changes are all rows.
    """

    batch: int
    offsets: str
    cells: Mapping[str, Chain]
    addresses: Mapping[str, Address] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""  # whose cells are at the addresses
    noted: str = ""  # manifests of earlier versions do not say
    job: str = ""
    told: Mapping[str, Sequence[str]] | None = None

    def changes(self) -> dict[str, list[str]]:
        """View ↦ the files that say what this batch changed in it."""
        if self.told is not None:
            return {view: list(paths) for view, paths in self.told.items()}
        paths: dict[str, list[str]] = {}
        for chain in self.cells.values():
            for log in chain.logs[-1:]:
                for view, file in log.changes.items() if log.batch == self.batch else ():
                    paths.setdefault(view, []).append(file.path)
        return paths

    def files(self) -> frozenset[str]:
        """The paths of all that the state after this batch follows from."""
        own = frozenset(file.path for chain in self.cells.values() for file in chain.files())
        return own.union(*(self.told or {}).values())

    def to_json(self) -> Json:
        return {
            "batch": self.batch,
            "offsets": self.offsets,
            "cells": {name: chain.to_json() for name, chain in self.cells.items()},
            "addresses": {name: address.to_json() for name, address in self.addresses.items()},
            "progress": dict(self.progress),
            "run": self.run,
            "noted": self.noted,
            "job": self.job,
            "told": self.told,
        }

    @staticmethod
    def from_json(data: Json) -> Manifest:
        cells = {name: Chain.from_json(chain) for name, chain in data["cells"].items()}
        addresses = {name: Address.from_json(address) for name, address in data["addresses"].items()}
        later = data.get("noted", ""), data.get("job", ""), data.get("told")
        return Manifest(data["batch"], data["offsets"], cells, addresses, data["progress"], data["run"], *later)


def _files_to_json(files: Mapping[str, File]) -> dict[str, list[Any]]:
    return {name: file.to_json() for name, file in files.items()}


def _files_from_json(data: Mapping[str, list[Any]]) -> dict[str, File]:
    return {name: File.from_json(file) for name, file in data.items()}
