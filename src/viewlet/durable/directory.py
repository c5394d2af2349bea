"""The directory of a database: a snapshot, the logs behind it, and the manifest that says where these begin.

All are files of records (:mod:`viewlet.durable.records`): a snapshot is a log with nothing in it that no longer counts.
``manifest.json`` names the snapshot ``rows-n``, and is replaced whole. The logs behind it are ``log-n``, ``log-n+1``
and so on. A log is *sealed* when the next one begins: it never changes again, so another process can make a snapshot
of it. The first record of the next log, its *link*, says how long the sealed one is. Files that do not count are left
over from a process that died, and go when the directory is opened again.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

from viewlet.durable import disk
from viewlet.durable.lock import Lock
from viewlet.durable.records import Appender, payloads, refused
from viewlet.durable.store import digest
from viewlet.errors import CorruptError, Error
from viewlet.schema import Dialect

FORMAT = 2  # since a snapshot may have several logs behind it
MANIFEST = "manifest.json"
LOCK = "lock"
OWN = re.compile(r"\.?(log|rows)-\d+(\..*)?|\.manifest\.json\..*")


@dataclass(frozen=True)
class Manifest:
    """The snapshot ``rows-n`` holds all that came before ``log-n``, where n is ``number``."""

    number: int
    dialect: Dialect
    rows_bytes: int = 0

    @property
    def rows(self) -> str:
        return f"rows-{self.number}"

    def files(self, last: int) -> frozenset[str]:
        """Those that count, if ``last`` is the number of the last log."""
        return frozenset({self.rows, *map(log_name, range(self.number, last + 1))})

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


def log_name(number: int) -> str:
    return f"log-{number}"


@dataclass(frozen=True)
class Place:
    """Where a record ends: in which log, and at which byte."""

    log: int
    end: int


_OPEN: WeakSet[Directory] = WeakSet()


class Directory:
    """Open for one writer."""

    def __init__(self, path: Path, dialect: Dialect) -> None:
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
        self._last = self.manifest.number  # of the log that is written to
        self._sealed: dict[int, int] = {}  # the bytes of each log before it
        self._unsynced: list[Path] = []  # sealed logs that the disk may not have yet
        _OPEN.add(self)

    def _there(self) -> Manifest | None:
        manifest = read_manifest(self.path)
        if manifest is None and (left := [name for name in os.listdir(self.path) if name != LOCK]):
            own = [name for name in left if OWN.fullmatch(name)]
            if left != own or any(name.startswith("rows-") for name in own if name != "rows-0"):
                message = f"{self.path} is no directory of viewlet: {MANIFEST} is not there, and other files are"
                raise CorruptError(f"{message} ({', '.join(sorted(left)[:3])}): name an empty or a new one")
        return manifest

    def _begun(self, dialect: Dialect) -> Manifest:
        manifest = Manifest(0, dialect)
        try:
            for name in manifest.files(0):
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
        """The payloads of all logs. When all are read, the torn tail is cut, and the last log goes on from there."""
        last = Place(self.manifest.number, 0)
        for payload, place in read_logs(self.path, self.manifest):
            if place.log != last.log:
                self._sealed[last.log] = last.end
            yield payload
            last = place
        self._last = last.log
        self._unsynced = [self.path / log_name(number) for number in self._sealed]
        self._buffered, self._synced = buffered, synced
        self._log = self._appender(last)
        self._clean()

    def _appender(self, place: Place) -> Appender:
        path = self.path / log_name(place.log)
        return Appender(path, place.end, buffered=self._buffered, synced=self._synced)

    @property
    def appender(self) -> Appender:
        assert self._log is not None, "the log is read first"
        return self._log

    @property
    def logged(self) -> int:
        """The bytes of all logs behind the snapshot."""
        return sum(self._sealed.values()) + self.appender.size

    def sync(self) -> None:
        """All records are on the disk when this returns."""
        try:
            for path in self._unsynced:
                with suppress(FileNotFoundError):  # a snapshot is in its place meanwhile
                    disk.sync(path)
            if self._unsynced:
                disk.sync(self.path)  # the name of the last log
        except OSError as error:
            raise refused(self.path, error) from error
        self._unsynced = []
        self.appender.sync()

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def seal(self) -> int:
        """Records go to a new log from now on. Its number: a snapshot of that number holds all that came before."""
        old, number = self.appender, self._last + 1
        old.settle()
        new = self._begun_log(number)
        try:
            new.append([json.dumps({"follows": old.size, "synced": self._synced}).encode() + b"\n"])
            if self._synced:
                disk.sync(self.path)
        except BaseException as error:
            new.abandon()
            (self.path / log_name(number)).unlink(missing_ok=True)
            raise (refused(self.path, error) if isinstance(error, OSError) else error) from error
        self._sealed[self._last], self._log, self._last = old.size, new, number
        if not self._synced:
            self._unsynced.append(old.path)
        old.abandon()
        return number

    def _begun_log(self, number: int) -> Appender:
        try:
            return self._appender(Place(number, 0))
        except OSError as error:
            raise refused(self.path / log_name(number), error) from error

    def next_snapshot(self) -> Draft:
        """What the next snapshot is written to. Nothing counts of it before :meth:`take`."""
        return Draft(self.path, replace(self.manifest, number=self._last + 1))

    def take(self, draft: Draft) -> None:
        """The draft is whole: it and an empty log behind it are what counts from now on."""
        manifest, old = draft.finished(), self.appender
        try:
            disk.write(self.path / log_name(manifest.number), b"")
        except OSError as error:
            raise refused(self.path, error) from error
        self._replace(manifest)
        self._last = manifest.number
        self._log = self._appender(Place(manifest.number, 0))
        old.abandon()
        self._clean()

    def adopt(self, draft: Path, number: int, size: int) -> None:
        """A snapshot of all before the log ``number``, made beside the writer, who need not stop for this.

        The names of both files are on the disk before the manifest that counts on them.
        """
        manifest = replace(self.manifest, number=number, rows_bytes=size)
        disk.rename(draft, self.path / manifest.rows)
        self._replace(manifest)
        self._clean()

    def _replace(self, manifest: Manifest) -> None:
        """Where the disk says that it failed, and has the new manifest, that one counts."""
        try:
            disk.write(self.path / MANIFEST, manifest.packed())
        except OSError as error:
            if read_manifest(self.path) != manifest:
                raise refused(self.path, error) from error
        self.manifest = manifest

    def _clean(self) -> None:
        """What does not count any more."""
        counts = self.manifest.files(self._last)
        self._sealed = {number: size for number, size in self._sealed.items() if number >= self.manifest.number}
        self._unsynced = [path for path in self._unsynced if path.name in counts]
        for name in os.listdir(self.path):
            if OWN.fullmatch(name) and name not in counts:
                _remove(self.path / name)

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
        for name in self._manifest.files(self._manifest.number):
            (self._path / name).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """A file, or the directory in which a snapshot put aside what was too much for its memory."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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


Records = Iterator[tuple[memoryview, int]]  # payloads, and where the record of each ends


def read_logs(path: Path, manifest: Manifest) -> Iterator[tuple[memoryview, Place]]:
    """Each payload of the logs behind the snapshot, and where its record ends."""
    place, records = Place(manifest.number, 0), read_log(path, manifest.number)
    while True:
        for payload, end in records:
            place = Place(place.log, end)
            yield payload, place
        following = _following(path, place)
        if following is None:
            return
        place, records = Place(place.log + 1, 0), following


def read_log(path: Path, number: int, *, sealed: bool = False) -> Records:
    file = path / log_name(number)
    return payloads(_mapped(file), str(file), whole=sealed)


def _following(path: Path, place: Place) -> Records | None:
    """The next log, unless there is none, or none that counts.

    At level ``process`` a machine that dies may lose the end of a sealed log and keep the next one. The calls in it
    were not promised to survive that, and make no sense without those before.
    """
    file = path / log_name(place.log + 1)
    first = next(read_log(path, place.log + 1), None) if file.exists() else None
    if first is None:
        return None
    link = json.loads(bytes(first[0]))
    if link.get("follows") == place.end:
        return read_log(path, place.log + 1)
    if link.get("synced", True) or link["follows"] < place.end:
        before = path / log_name(place.log)
        raise CorruptError(f"{before} is not what was written: {place.end} bytes, of {link.get('follows')}")
    return None


def _mapped(path: Path) -> memoryview:
    with disk.opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
