"""``viewlet check dir/``: is every byte of a directory what was written?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from viewlet.durable import disk
from viewlet.durable.directory import MANIFEST, Manifest, log_name, read_logs, read_manifest, read_snapshot
from viewlet.errors import CorruptError


@dataclass(frozen=True)
class Checked:
    """``torn``: bytes of a record that was never acknowledged, and goes when the directory is opened."""

    records: int
    bytes: int
    torn: int


def check_directory(path: Path) -> Checked:
    """CorruptError at the first byte that is not. Nothing is changed, and the database may be open elsewhere."""
    path = path.absolute()
    while True:
        manifest = read_manifest(path)
        if manifest is None:
            raise CorruptError(f"{path} is no directory of viewlet: {MANIFEST} is not there")
        try:
            return _checked(path, manifest)
        except CorruptError:
            if read_manifest(path) == manifest:
                raise  # or else another process has put a snapshot in the place of these files


def _checked(path: Path, manifest: Manifest) -> Checked:
    records = sum(1 for _ in read_snapshot(path, manifest))
    places = [place for _, place in read_logs(path, manifest)]
    ends = {place.log: place.end for place in places} or {manifest.number: 0}
    with disk.opened(path / log_name(max(ends))) as last:
        torn = last.seek(0, os.SEEK_END) - ends[max(ends)]
    return Checked(records + len(places), manifest.rows_bytes + sum(ends.values()), torn)
