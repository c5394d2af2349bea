"""Harm to disks: a small one that can be full without harm to anybody else's, and a file with a wrong bit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """Whether ``place`` is a disk of that size: to mount one is a right that not everybody has."""
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(place: Path, spare: int) -> Iterator[None]:
    """No more than ``spare`` bytes can be written to the disk meanwhile."""
    filler = place / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 12))
    os.truncate(filler, max(0, filler.stat().st_size - spare))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def flipped(file: Path) -> Iterator[None]:
    """One bit in the middle of the file is wrong; afterwards it is right again, unless it was written again."""
    whole = file.read_bytes()
    middle = len(whole) // 2
    broken = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    file.write_bytes(broken)
    yield
    if file.read_bytes() == broken:
        file.write_bytes(whole)
