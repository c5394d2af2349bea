"""A virtual environment for each peer that is none of our dependencies, made once and kept in the cache.

Requirements are pinned with all that the peer needs for this, and installed without asking what else it would like:
resolving alone takes longer than the rest.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from bench.peers.contestants import OURS
from bench.peers.process import bounded
from viewlet.engines.native.build import cache_directory

REQUIREMENTS = Path(__file__).with_name("requirements")
INSTALL_SECONDS = 240.0


class MissingError(Exception):
    """A peer that cannot run here; the message says why."""


def python_of(name: str, seconds: float = INSTALL_SECONDS) -> Path:
    """The interpreter of a peer's environment."""
    if name == OURS:
        return Path(sys.executable)
    place = _place(name)
    if not place.exists():
        _make(place, REQUIREMENTS / f"{name}.txt", seconds)
    return place / "bin" / "python"


def _place(name: str) -> Path:
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    marks = f"{wanted}\0{platform.python_version()}\0{platform.machine()}"
    return cache_directory() / "peers" / f"{name}-{hashlib.sha256(marks.encode()).hexdigest()[:16]}"


def _make(place: Path, requirements: Path, seconds: float) -> None:
    """Beside its place and renamed when it is complete, so that what was begun and not ended is never used."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{place.name}-", suffix=".tmp", dir=place.parent))
    try:
        _run("python -m venv", [sys.executable, "-m", "venv", draft], seconds)
        pip: list[str | Path] = [draft / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]
        _run("pip", [*pip, "-r", requirements], seconds)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _run(title: str, command: list[str | Path], seconds: float) -> None:
    ended = bounded(command, seconds)
    if ended.code is None:
        raise MissingError(f"{title} did not end within {seconds:g} s")
    if ended.code != 0:
        said = [line for line in ended.err.splitlines() if line.startswith("ERROR:")] or ended.err.splitlines()
        raise MissingError(f"{title}: {said[0] if said else f'exit code {ended.code}'}")
