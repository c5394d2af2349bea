"""Which file system a name belongs to: Spark's Java and every Python process must mean the same place by it."""

from __future__ import annotations

import os
import re
from importlib import import_module

import pyarrow as pa
from pyarrow import fs

from viewlet.durable.hadoop import hadoop_files
from viewlet.errors import Error

SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")  # one letter is a drive of Windows
OF_HADOOP = ("hdfs", "viewfs", "ofs", "o3fs")  # Java alone: pyarrow would run one inside each process, which forks
AMAZON = ("s3a", "s3n")  # Hadoop's names of what is s3 to others
OBJECT_STORES = ("s3", "gcs", "abfs", "py::objects", "py::fsspec+s3", "py::fsspec+gs", "py::fsspec+abfs")
REPLACING = ("py::hadoop",)


def absolute(path: str) -> str:
    """A path without a scheme is one of the local file system, and must mean the same in every process."""
    return path if SCHEME.match(path) else os.path.abspath(path)


def is_object_store(files: fs.FileSystem) -> bool:
    """A file appears when its upload is complete, in the place of the one before. To rename it is to copy it."""
    return files.type_name in OBJECT_STORES


def replaces(files: fs.FileSystem) -> bool:
    """Whether a file that is renamed takes the place of another in one step."""
    return files.type_name in REPLACING


def file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system, and the path in it. pyarrow's where it has one, else fsspec's, else that of Spark's Java."""
    if local := re.fullmatch(r"file:/+(.*)", uri):  # file:/a and file:///a are the same to Hadoop
        return fs.LocalFileSystem(), f"/{local[1]}"
    if not SCHEME.match(uri):
        return fs.LocalFileSystem(), absolute(uri)
    scheme, _, rest = uri.partition(":")
    if not rest.startswith("//"):  # fsspec would take it for a local path
        raise Error(
            f"no file system for {uri}: write {scheme}://… if there is one of that name, the path where it is mounted "
            f"(as /{scheme}{rest}) if it is, or ./{uri} for a local directory"
        )
    if scheme in OF_HADOOP:
        return hadoop_files(uri)
    try:
        system: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"s3:{rest}" if scheme in AMAZON else uri)
        return system
    except pa.ArrowInvalid as unknown:
        return _of_others(uri, unknown)


def _of_others(uri: str, unknown: Exception) -> tuple[fs.FileSystem, str]:
    try:
        files, path = import_module("fsspec.core").url_to_fs(uri)
    except (ImportError, ValueError) as missing:
        try:
            return hadoop_files(uri)
        except Error as none:
            raise Error(
                f"no file system for {uri}: pyarrow does not know it ({unknown}), nor does fsspec ({missing}), and "
                f"{none}. Install what its scheme needs in the Python of driver and executors, or its jar in Spark"
            ) from missing
    return fs.PyFileSystem(fs.FSSpecHandler(files)), path
