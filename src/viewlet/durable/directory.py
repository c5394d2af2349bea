"""The directory of a database: a snapshot, the log behind it, and the manifest that says which two files these are.

Both files are of records (:mod:`viewlet.durable.records`): a snapshot is a log with nothing in it that no longer
counts. ``manifest.json`` is replaced whole. What it does not name is left over from a process that died, and goes when
the directory is opened again.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

from viewlet.durable import disk
from viewlet.durable.lock import Lock
from viewlet.durable.records import Appender, payloads, refused
from viewlet.durable.store import digest
from viewlet.errors import CorruptError, Error

FORMAT = 1
MANIFEST = "manifest.json"
LOCK = "lock"
OWN = re.compile(r"\.?(log|rows)-\d+(\..*)?|\.manifest\.json\..*")


@dataclass(frozen=True)
class Manifest:
    """``number`` counts the snapshots: the files of each have it in their names."""

    number: int
    dialect: str
    rows_bytes: int = 0

    @property
    def log(self) -> str:
        return f"log-{self.number}"

    @property
    def rows(self) -> str:
        return f"rows-{self.number}"

    @property
    def files(self) -> frozenset[str]:
        return frozenset({self.log, self.rows})

    def packed(self) -> bytes:
        body = json.dumps({"format": FORMAT, **asdict(self)}).encode()
        return b"%s\n%s\n" % (digest(body).encode(), body)

    @staticmethod
    def unpacked(data: bytes, where: str) -> Manifest:
        checksum, _, rest = data.partition(b"\n")
        body = rest.removesuffix(b"\n")
        if checksum.decode(errors="replace") != digest(body) or rest == body:
            raise CorruptError(f"{where} is not what was written: its checksum differs. Restore the file from a copy")
        fields = json.loads(body)
        if (written := fields.pop("format")) > FORMAT:
            raise Error(
                f"{where} has format {written}, and this viewlet reads formats up to {FORMAT}: install a newer viewlet"
            )
        return Manifest(**fields)


_OPEN: WeakSet[Directory] = WeakSet()


class Directory:
    """Open for one writer."""

    def __init__(self, path: Path, dialect: str) -> None:
        """A directory that is not there is made. What is in it is read before anything else happens."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused(path, error) from error
        self._lock = Lock(path / LOCK)
        try:
            self.manifest = self._there() or self._begun(dialect)
            if self.manifest.dialect != dialect:
                message = (
                    f"{path} holds scripts of the dialect {self.manifest.dialect!r}, and was opened as {dialect!r}"
                )
                raise Error(f"{message}: connect(…, dialect={self.manifest.dialect!r})")
        except BaseException:
            self._lock.release()
            raise
        self._log: Appender | None = None
        _OPEN.add(self)

    def _there(self) -> Manifest | None:
        manifest = read_manifest(self.path)
        if manifest is None and (left := [name for name in os.listdir(self.path) if name != LOCK]):
            own = [name for name in left if OWN.fullmatch(name)]
            if left != own or any(name.startswith("rows-") for name in own if name != "rows-0"):
                message = f"{self.path} is no directory of viewlet: {MANIFEST} is not there, and other files are"
                raise CorruptError(f"{message} ({', '.join(sorted(left)[:3])}): name an empty or a new one")
        return manifest

    def _begun(self, dialect: str) -> Manifest:
        manifest = Manifest(0, dialect)
        try:
            for name in (manifest.rows, manifest.log):
                disk.write(self.path / name, b"")
            disk.write(self.path / MANIFEST, manifest.packed())
        except OSError as error:
            raise refused(self.path, error) from error
        return manifest

    # -- records -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Iterator[memoryview]:
        """The payloads of the snapshot."""
        return read_snapshot(self.path, self.manifest)

    def log(self, *, buffered: bool, synced: bool) -> Iterator[memoryview]:
        """The payloads of the log. When all are read, its torn tail is cut, and it goes on from there."""
        end = 0
        for payload, after in read_log(self.path, self.manifest):
            yield payload
            end = after
        self._buffered, self._synced = buffered, synced
        self._log = Appender(self.path / self.manifest.log, end, buffered=buffered, synced=synced)
        self._clean()

    @property
    def appender(self) -> Appender:
        assert self._log is not None, "the log is read first"
        return self._log

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def next_snapshot(self) -> Draft:
        """What the next snapshot is written to. Nothing counts of it before :meth:`take`."""
        return Draft(self.path, replace(self.manifest, number=self.manifest.number + 1))

    def take(self, draft: Draft) -> None:
        """The draft is whole: it and an empty log behind it are what counts from now on."""
        manifest, old = draft.finished(), self.appender
        try:
            disk.write(self.path / manifest.log, b"")
            disk.write(self.path / MANIFEST, manifest.packed())
        except OSError as error:
            if read_manifest(self.path) != manifest:
                raise refused(self.path, error) from error
        self._log = Appender(self.path / manifest.log, 0, buffered=self._buffered, synced=self._synced)
        self.manifest = manifest
        old.abandon()
        self._clean()

    def _clean(self) -> None:
        """What no manifest names any more."""
        for name in os.listdir(self.path):
            if OWN.fullmatch(name) and name not in self.manifest.files:
                (self.path / name).unlink(missing_ok=True)

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        try:
            if self._log is not None:
                self._log.close()
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """In a process that was forked: the parent has it open."""
        if self._log is not None:
            self._log.abandon()
        self._lock.release()


def _leave_to_the_parent() -> None:
    for directory in list(_OPEN):
        directory.abandon()


os.register_at_fork(after_in_child=_leave_to_the_parent)


class Draft:
    """A snapshot in the making."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path, self._manifest = path, manifest
        self._rows = Appender(path / self._manifest.rows, 0)

    def append(self, parts: list[Any]) -> None:
        self._rows.append(parts)

    def finished(self) -> Manifest:
        self._rows.sync()
        self._rows.close()
        return replace(self._manifest, rows_bytes=self._rows.size)

    def give_up(self) -> None:
        self._rows.abandon()
        for name in (self._manifest.rows, self._manifest.log):
            (self._path / name).unlink(missing_ok=True)


# -- reading -----------------------------------------------------------------------------------------------------------


def read_manifest(path: Path) -> Manifest | None:
    try:
        data = (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    return Manifest.unpacked(data, str(path / MANIFEST))


def read_snapshot(path: Path, manifest: Manifest) -> Iterator[memoryview]:
    file = path / manifest.rows
    data = _mapped(file)
    if len(data) != manifest.rows_bytes:
        raise CorruptError(f"{file} is not what was written: {len(data)} bytes, of {manifest.rows_bytes}")
    for payload, _ in payloads(data, str(file), whole=True):
        yield payload


def read_log(path: Path, manifest: Manifest) -> Iterator[tuple[memoryview, int]]:
    """Each payload, and where its record ends."""
    return payloads(_mapped(path / manifest.log), str(path / manifest.log), whole=False)


def _mapped(path: Path) -> memoryview:
    with disk.opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
