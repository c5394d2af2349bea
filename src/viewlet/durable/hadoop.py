"""Any file system of Hadoop's, as Spark's own JVMs reach it, behind the interface of pyarrow's.

Bytes go through local files, which Java copies; py4j carries names only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
from pyarrow import fs

from viewlet.durable import java
from viewlet.errors import Error

A = TypeVar("A")
# Where a file appears when it is closed, whole, and a name cannot be changed but by copying.
OBJECT_STORES = ("s3a", "s3n", "s3", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs")
NO_SUCH_FILE, NO_FILE_SYSTEM = "java.io.FileNotFoundException", "UnsupportedFileSystemException"


class HadoopFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """``root`` is a URI of the file system, as ``hdfs://host:8020``; paths are those below it, from the first slash."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopFiles) and other._root == self._root

    def __ne__(self, other: object) -> bool:
        return not self == other

    def get_type_name(self) -> str:
        return "objects" if self._root.partition(":")[0] in OBJECT_STORES else "hadoop"

    def normalize_path(self, path: str) -> str:
        return path

    # -- looking -------------------------------------------------------------------------------------------------------

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._asked(partial(self._info, path)) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return _info_of(path, self._files().getFileStatus(self._path(path)))
        except _java_error() as error:
            if _class_of(error) != NO_SUCH_FILE:
                raise
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        try:
            return self._asked(lambda: self._listed(selector.base_dir, selector.recursive))
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise

    def _listed(self, directory: str, recursive: bool) -> list[fs.FileInfo]:
        found: list[fs.FileInfo] = []
        for status in self._files().listStatus(self._path(directory)):
            info = _info_of(f"{directory.rstrip('/')}/{status.getPath().getName()}", status)
            found.append(info)
            if recursive and info.type == fs.FileType.Directory:
                found += self._listed(info.path, recursive)
        return found

    # -- changing ------------------------------------------------------------------------------------------------------

    def create_dir(self, path: str, recursive: bool) -> None:
        self._asked(lambda: self._files().mkdirs(self._path(path)))

    def delete_file(self, path: str) -> None:
        if not self._asked(lambda: self._files().delete(self._path(path), False)):
            raise FileNotFoundError(path)

    def delete_dir(self, path: str) -> None:
        if not self._asked(lambda: self._files().delete(self._path(path), True)):
            raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        """In the place of what is there, in one step: readers find the one or the other."""

        def renamed() -> None:
            hadoop = java.hadoop()
            context = hadoop.file_context.getFileContext(hadoop.uri.create(f"{self._root}/"), hadoop.settings)
            context.rename(self._path(src), self._path(dest), hadoop.overwrite)

        self._asked(renamed)

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(self._download(path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(self._download(path), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Upload(lambda local: self._upload(local, path)), mode="w")

    def _download(self, path: str) -> IO[bytes]:
        """A local copy that is open, and has no name any more."""
        with tempfile.TemporaryDirectory(prefix="viewlet-") as place:
            local = Path(place, "copy")
            self._asked(
                lambda: self._files().copyToLocalFile(
                    False, self._path(path), java.hadoop().path(f"file://{local}"), True
                )
            )
            return local.open("rb")

    def _upload(self, local: str, path: str) -> None:
        self._asked(
            lambda: self._files().copyFromLocalFile(
                False, True, java.hadoop().path(f"file://{local}"), self._path(path)
            )
        )

    # -- Java ----------------------------------------------------------------------------------------------------------

    def _asked(self, call: Callable[[], A]) -> A:
        """With Java's errors as those of Python; if Java was gone, by another one."""
        protocol = import_module("py4j.protocol")
        try:
            return call()
        except protocol.Py4JNetworkError:
            java.forget()
        except protocol.Py4JJavaError as error:
            raise _as_ours(self._root, error) from None
        try:
            return call()
        except protocol.Py4JJavaError as error:
            raise _as_ours(self._root, error) from None

    def _files(self) -> Any:
        hadoop = java.hadoop()
        return hadoop.file_system.get(hadoop.uri.create(f"{self._root}/"), hadoop.settings)

    def _path(self, path: str) -> Any:
        return java.hadoop().path(f"{self._root}/{path.lstrip('/')}")

    # -- what no store of ours asks for --------------------------------------------------------------------------------

    def _unasked(self, *_: object) -> Any:
        raise NotImplementedError("a store writes, renames, reads, lists and deletes files, and deletes directories")

    copy_file = delete_dir_contents = delete_root_dir_contents = open_append_stream = _unasked


class _Upload:
    """A local file that goes where it belongs when it is closed."""

    def __init__(self, upload: Callable[[str], None]) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="viewlet-")  # noqa: SIM115
        self._upload = upload
        self.closed = False

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with self._file:
                self._file.flush()
                self._upload(self._file.name)


def hadoop_files(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system that Spark's own JVMs have for a URI, and the path in it; Error where they have none either."""
    root, path = _cut(uri)
    handler = HadoopFiles(root)
    handler._asked(handler._files)
    return fs.PyFileSystem(handler), path


def _cut(uri: str) -> tuple[str, str]:
    scheme, _, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", slash + path


def _info_of(path: str, status: Any) -> fs.FileInfo:
    kind = fs.FileType.Directory if status.isDirectory() else fs.FileType.File
    return fs.FileInfo(path, kind, size=None if status.isDirectory() else status.getLen())


def _java_error() -> Any:
    return import_module("py4j.protocol").Py4JJavaError


def _class_of(error: Any) -> str:
    return str(error.java_exception.getClass().getName())


def _as_ours(root: str, error: Any) -> Exception:
    said = str(error.java_exception.toString()).splitlines()[0]
    if _class_of(error) == NO_SUCH_FILE:
        return FileNotFoundError(said)
    if NO_FILE_SYSTEM in said or "ClassNotFoundException" in said:
        return Error(f"Spark's Java has no file system for {root} ({said})")
    return OSError(f"{root}: {said}")
