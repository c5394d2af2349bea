"""A file of records, one behind the other: each says how long it is and what its bytes come to.

A record is a header (a mark, the payload's length and checksum, and the header's own checksum), the payload, and an end
mark. A process that dies while it writes leaves a file that ends inside its last record; a machine that dies may leave
zeros there as well. Such a tail was never acknowledged, and is cut. Anything else that is not as it was written is
damage: :class:`CorruptError`.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from viewlet.errors import CorruptError, StorageError

HEADER = struct.Struct("<4sQI")  # mark, length and checksum of the payload; the checksum of these three follows
CHECKSUM = struct.Struct("<I")
MARK = b"\x89vlr"
END = b"\x17end"
HEAD = HEADER.size + CHECKSUM.size
AROUND = HEAD + len(END)  # bytes of a record besides its payload
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BLOCK = 1 << 16
BUFFERED = 1 << 20  # bytes that may wait in memory where nothing is promised


def framed(parts: Sequence[Any]) -> list[Any]:
    """The buffers of a record whose payload is these, one behind the other."""
    length, checksum = 0, 0
    for part in parts:
        length += len(part)
        checksum = zlib.crc32(part, checksum)
    header = HEADER.pack(MARK, length, checksum)
    return [header + CHECKSUM.pack(zlib.crc32(header)), *parts, END]


def payloads(data: memoryview, where: str, whole: bool) -> Iterator[tuple[memoryview, int]]:
    """Each payload, and where its record ends. ``whole``: the file was finished, so it has no torn tail."""
    at = 0
    while at < len(data):
        record = _record(data, at, where)
        if record is None:
            if whole:
                raise CorruptError(f"{where} ends inside its record at byte {at}")
            return
        yield record
        at = record[1]


def _record(data: memoryview, at: int, where: str) -> tuple[memoryview, int] | None:
    """None for a tail that was never written whole."""
    head = data[at : at + HEAD]
    if len(head) < HEAD:
        return None if MARK.startswith(bytes(head[: len(MARK)])) or not any(head) else _damaged(where, at)
    mark, length, checksum = HEADER.unpack_from(head)
    if mark != MARK or CHECKSUM.unpack_from(head, HEADER.size)[0] != zlib.crc32(head[: HEADER.size]):
        return None if _is_zero(data, at + HEAD) else _damaged(where, at)
    end = at + AROUND + length
    if end > len(data):
        return None
    payload, mark = data[at + HEAD : end - len(END)], bytes(data[end - len(END) : end])
    if mark == END and zlib.crc32(payload) == checksum:
        return payload, end
    return None if _is_zero(data, end - len(END)) else _damaged(where, at)


def _is_zero(data: memoryview, start: int) -> bool:
    """From there to the end of the file: blocks that a disk never wrote."""
    return not any(any(data[at : at + BLOCK]) for at in range(start, len(data), BLOCK))


def _damaged(where: str, at: int) -> NoReturn:
    raise CorruptError(
        f"{where} is not what was written: the record at byte {at} is damaged. Restore the file from a copy"
    )


class Appender:
    """The end of a file of records. ``size`` is where the last record ends that counts."""

    def __init__(self, path: Path, size: int, *, buffered: bool = False, synced: bool = False) -> None:
        """``size`` of 0 begins a new file. ``synced``: each record is on the disk when :meth:`append` returns."""
        self.path, self.size = path, size
        self._buffered, self._synced = buffered, synced
        self._waiting: list[Any] = []
        self._flushed = size  # what is in the file; the rest waits
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._dirty = True  # the file may be longer than what counts
        self._broken: BaseException | None = None

    def append(self, parts: Sequence[Any]) -> None:
        """One record, all of it or, where this raises, nothing."""
        buffers = framed(parts)
        length = sum(map(len, buffers))
        if self._buffered:
            self._wait(buffers, length)
            return
        self._write(buffers, length, self._synced)
        self.size += length

    def _wait(self, buffers: Sequence[Any], length: int) -> None:
        before = self.size
        self._waiting.append(b"".join(buffers))
        self.size += length
        try:
            if self.size - self._flushed >= BUFFERED:
                self.flush()
        except BaseException:
            self.take_back(before)
            raise

    def flush(self) -> None:
        """Records that wait go to the file."""
        if self._waiting:
            self._write([b"".join(self._waiting)], self.size - self._flushed, sync=False)
            self._waiting = []

    def settle(self) -> None:
        """The file has all records, and nothing else."""
        self.flush()
        self._check()
        self._cut()

    def sync(self) -> None:
        """All records are on the disk when this returns."""
        self.settle()
        self._force()

    def take_back(self, size: int) -> None:
        """The records behind ``size`` do not count: their updates were undone."""
        if size < self._flushed:
            self._flushed, self._dirty = size, True
        elif size < self.size:
            kept = b"".join(self._waiting)[: size - self._flushed]
            self._waiting = [kept] if kept else []
        self.size = size

    def close(self) -> None:
        """What counts is in the file, and nothing else."""
        if self._file >= 0:
            try:
                if self._broken is None:
                    self.flush()
                    self._cut()
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Leave the file as it is."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    # -- the file ------------------------------------------------------------------------------------------------------

    def _write(self, buffers: Sequence[Any], length: int, sync: bool) -> None:
        self._check()
        self._cut()
        self._dirty = True
        try:
            _write_all(self._file, buffers, self._flushed)
        except OSError as error:
            self._cut()
            raise refused(self.path, error) from error
        if sync:
            self._force()
        self._flushed += length
        self._dirty = False

    def _cut(self) -> None:
        """Also after an update that somebody interrupted, whose record may be there in part or as a whole."""
        if self._dirty:
            try:
                os.ftruncate(self._file, self._flushed)
            except OSError as error:
                self._broken = error
                raise refused(self.path, error) from error
            self._dirty = False

    def _force(self) -> None:
        """After a sync that failed nobody knows what is on the disk, and a second one would not say."""
        try:
            os.fsync(self._file)
        except OSError as error:
            self._broken = error
            raise refused(self.path, error) from error

    def _check(self) -> None:
        if self._file < 0:
            raise StorageError(f"{self.path} is closed, or belongs to another process: open the database again")
        if self._broken is not None:
            raise StorageError(f"{self.path} could not be written ({self._broken}): close the database and open it")


def _write_all(file: int, buffers: Sequence[Any], at: int) -> None:
    """In one call to the system, but where it takes only a part."""
    done = os.pwritev(file, buffers, at)
    total = sum(map(len, buffers))
    if done < total:
        rest = memoryview(b"".join(map(bytes, buffers)))
        while done < total:
            done += os.pwrite(file, rest[done:], at + done)


def refused(path: Path, error: OSError) -> StorageError:
    """What a user reads when the disk takes no more."""
    what = "nothing changed; make room, and call again" if error.errno in FULL else "nothing changed"
    return StorageError(f"{path} cannot be written: {error.strerror}; {what}")
