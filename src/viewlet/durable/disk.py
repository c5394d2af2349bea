"""Files on a local disk: forced to it, and renamed to what they are called once they are whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from viewlet.errors import CorruptError


def draft_of(path: Path) -> Path:
    """Hidden, so that Spark's readers pass over it."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def _created(path: Path) -> IO[bytes]:
    try:
        return path.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def write(target: Path, data: Any) -> None:
    draft = draft_of(target)
    try:
        with _created(draft) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        rename(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_together(contents: Mapping[Path, Any]) -> None:
    """All written before the first is forced to the disk: with it go the names of the others."""
    with ExitStack() as stack:
        files = [stack.enter_context(_created(path)) for path in contents]
        for file, data in zip(files, contents.values(), strict=True):
            file.write(data)
            file.flush()
        for file in files:
            os.fsync(file.fileno())
    for directory in {path.parent for path in contents}:
        sync(directory)


def opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CorruptError(f"{path.as_uri()} is not there") from None


def rename(draft: Path, target: Path) -> None:
    """The new name is on the disk, too, when this is over."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
