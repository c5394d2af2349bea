"""Durable files of a query: written whole or not at all, and checked when they are read again.

Whatever pyarrow, fsspec or Spark's own Java can reach serves. A file is written under a hidden name and renamed, on
local disks once it is forced to the disk; an object store shows an object only when its upload is complete. Paths are
relative to the store's root.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
from pyarrow import fs

from viewlet.durable import disk
from viewlet.durable.chain import File
from viewlet.durable.places import file_system, is_object_store, replaces
from viewlet.errors import CorruptError, Error

DIGEST = hashlib.sha256
DIGEST_LENGTH = 32  # hexadecimal digits; against accidents, not against a person who may write to the store
BLOCK = 1 << 22
PATIENCE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between looks at a file that is not whole yet

A = TypeVar("A")


def digest(data: Any) -> str:
    return DIGEST(data).hexdigest()[:DIGEST_LENGTH]


class Store:
    """``uri`` names the root directory: a local path, ``file:/…`` as Hadoop writes it, or any URI of a file system."""

    def __init__(self, uri: str) -> None:
        self._files, root = file_system(uri)
        self.is_local = isinstance(self._files, fs.LocalFileSystem)
        self._root = root.rstrip("/")
        self.uri = self._root if self.is_local else uri.rstrip("/")

    @staticmethod
    def of(checkpoint: str) -> Store:
        """Where viewlet keeps its files beside Spark's own."""
        return Store(f"{checkpoint.rstrip('/')}/viewlet")

    def path_of(self, path: str) -> str:
        """For Spark's writers, and for people. Hadoop takes every letter as it is: %20 is not a space."""
        return f"file://{self._root}/{path}" if self.is_local else f"{self.uri}/{path}"

    def pattern_of(self, path: str) -> str:
        """For Spark's readers, which take *, [a] and the like for patterns."""
        return re.sub(r"([][{}*?\\])", r"\\\1", self.path_of(path))

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(self, path: str, data: Any) -> File:
        """In the place of what was there before, if anything: readers see the one or the other."""
        file = _file(path, data)
        if self.is_local:
            disk.write(Path(self._root, path), data)
        elif is_object_store(self._files):
            self._upload(path, [data])
        else:
            self._upload_and_move(file, data)
        return file

    def write_new(self, contents: Mapping[str, Any]) -> list[File]:
        """Files that nobody asks for before this is over: their names are new, and no manifest has them yet.

        Local ones share a trip to the disk.
        """
        if self.is_local:
            disk.write_together({Path(self._root, path): data for path, data in contents.items()})
            return [_file(path, data) for path, data in contents.items()]
        for path, data in contents.items():
            self._upload(path, [data])
        return [_file(path, data) for path, data in contents.items()]

    def draft(self, path: str, elsewhere: Path) -> Path:
        """Where to write a local file that is to be adopted as ``path``: on the store's own disk, if it has one."""
        if not self.is_local:
            return elsewhere / uuid.uuid4().hex
        draft = disk.draft_of(Path(self._root, path))
        draft.parent.mkdir(parents=True, exist_ok=True)
        return draft

    def adopt(self, draft: Path, path: str) -> File:
        """The draft, written and closed, becomes a file of the store, which is new as well."""
        hashed = _Hashed()
        with draft.open("rb") as source:
            for block in iter(lambda: source.read(BLOCK), b""):
                hashed.add(block)
            if self.is_local:
                os.fsync(source.fileno())
                disk.rename(draft, Path(self._root, path))
            else:
                source.seek(0)
                self._upload(path, iter(lambda: source.read(BLOCK), b""))
                draft.unlink()
        return hashed.file(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Force local files to the disk that others wrote, those of them that are there."""
        there = [path for path in (Path(self._root, path) for path in paths) if path.exists()]
        for path in (*there, *dict.fromkeys(path.parent for path in there)):
            disk.sync(path)

    def _upload(self, path: str, blocks: Iterable[Any]) -> None:
        self._files.create_dir(f"{self._root}/{path}".rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(f"{self._root}/{path}") as out:
            for block in blocks:
                out.write(block)

    def _upload_and_move(self, file: File, data: Any) -> None:
        """Through WebHDFS, HDFS does not rename onto a file, and says so to nobody: what is there goes first."""
        directory, _, name = file.path.rpartition("/")
        draft = f"{directory}/.{name}.{uuid.uuid4().hex}".removeprefix("/")
        self._upload(draft, [data])
        if not replaces(self._files):
            self.delete([file.path])
        self._files.move(f"{self._root}/{draft}", f"{self._root}/{file.path}")
        if not self.has(file):
            raise Error(
                f"{self.path_of(draft)} is written, but cannot be renamed to {name}: may this user do so there?"
            )

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, path: str) -> pa.Buffer:
        """FileNotFoundError where there is none."""
        with self._files.open_input_file(f"{self._root}/{path}") as file:
            return file.read_buffer()

    def awaited(self, path: str, parsed: Callable[[bytes], A]) -> A:
        """What ``parsed`` makes of a file. While it says CorruptError, the file may not be all there yet.

        It is on a local disk, and wherever renaming takes no time; elsewhere a file may be copied to its name.
        """
        for pause in () if self.is_local else PATIENCE:
            with suppress(CorruptError):
                return parsed(self.read(path).to_pybytes())
            time.sleep(pause)
        return parsed(self.read(path).to_pybytes())

    def checked(self, file: File) -> pa.Buffer:
        """The bytes that were written, or CorruptError."""
        try:
            data = self.read(file.path)
        except FileNotFoundError:
            raise CorruptError(f"{self.path_of(file.path)} is not there") from None
        if data.size != file.bytes or digest(data) != file.digest:
            raise CorruptError(f"{self.path_of(file.path)} is not what was written: {_difference(data.size, file)}")
        return data

    @contextmanager
    def opened(self, file: File) -> Iterator[IO[bytes]]:
        """A local file of the same bytes, checked: for what is read through a file descriptor."""
        with tempfile.TemporaryFile() if not self.is_local else disk.opened(Path(self._root, file.path)) as local:
            if not self.is_local:
                self._download(file, local)
            hashed = _Hashed()
            for block in iter(lambda: local.read(BLOCK), b""):
                hashed.add(block)
            if hashed.file(file.path) != file:
                raise CorruptError(
                    f"{self.path_of(file.path)} is not what was written: {_difference(hashed.size, file)}"
                )
            local.seek(0)
            yield local

    def _download(self, file: File, local: IO[bytes]) -> None:
        try:
            with self._files.open_input_stream(f"{self._root}/{file.path}") as source:
                shutil.copyfileobj(source, local, BLOCK)
        except FileNotFoundError:
            raise CorruptError(f"{self.path_of(file.path)} is not there") from None
        local.seek(0)

    def has(self, file: File) -> bool:
        """A file of this name and length is there; its bytes are not looked at."""
        return bool(self._files.get_file_info(f"{self._root}/{file.path}").size == file.bytes)

    def names(self, directory: str) -> list[str]:
        """The names in a directory, which need not be there."""
        infos = self._files.get_file_info(fs.FileSelector(f"{self._root}/{directory}", allow_not_found=True))
        return sorted(info.base_name for info in infos)

    def walk(self, directory: str) -> list[str]:
        """The paths of all files below a directory."""
        selector = fs.FileSelector(f"{self._root}/{directory}", allow_not_found=True, recursive=True)
        paths = [info.path for info in self._files.get_file_info(selector) if info.type == fs.FileType.File]
        return sorted(path[len(self._root) + 1 :] for path in paths)

    def delete(self, paths: Iterable[str]) -> None:
        """What another process has removed already needs no removing."""
        for path in paths:
            with suppress(FileNotFoundError):
                self._files.delete_file(f"{self._root}/{path}")

    def delete_directory(self, path: str) -> None:
        """With all that is in it. It need not be there."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{path}")


class _Hashed:
    def __init__(self) -> None:
        self.size, self._hash = 0, DIGEST()

    def add(self, data: Any) -> None:
        self.size += len(memoryview(data).cast("B"))
        self._hash.update(data)

    def file(self, path: str) -> File:
        return File(path, self.size, self._hash.hexdigest()[:DIGEST_LENGTH])


def _file(path: str, data: Any) -> File:
    hashed = _Hashed()
    hashed.add(data)
    return hashed.file(path)


def _difference(size: int, file: File) -> str:
    if size != file.bytes:
        return f"{size} bytes, of {file.bytes}"
    return "its checksum differs"
