"""``viewlet check dir/``: is every byte of a directory what was written?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from viewlet.durable.directory import MANIFEST, read_log, read_manifest, read_snapshot
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
    manifest = read_manifest(path)
    if manifest is None:
        raise CorruptError(f"{path} is no directory of viewlet: {MANIFEST} is not there")
    records = sum(1 for _ in read_snapshot(path, manifest))
    ends = [end for _, end in read_log(path, manifest)]
    end = ends[-1] if ends else 0
    torn = (path / manifest.log).stat().st_size - end
    return Checked(records + len(ends), manifest.rows_bytes + end, torn)
