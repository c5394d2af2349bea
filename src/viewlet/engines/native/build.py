"""From C++ text to a loaded extension module: one compiler run for each program, ever, however many processes ask."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from viewlet.engines.native.compiler import Compiler, first_working
from viewlet.engines.native.detached import Step, compile_detached, is_private, is_whole, write
from viewlet.errors import Error

RUNTIME = Path(__file__).parent / "runtime"
KEPT_ARTEFACTS = 200
ABANDONED_SECONDS = 86_400  # a process that was killed leaves its draft behind
SHOWN_LINES = 12
BRIDGE = '#include "module.hpp"\n'


def open_module(source: str, name: str) -> ModuleType | None:
    """The module ``name`` that ``source`` defines, built if need be; None where there is no compiler."""
    path = build(source)
    if path is None:
        return None
    try:
        return load(path, name)
    except ImportError:  # pruned by another process between the two steps, or made by another system's linker
        path.unlink(missing_ok=True)
    path = build(source)
    try:
        return None if path is None else load(path, name)
    except ImportError as error:
        raise Error(f"the native program was built but does not load: {error}") from error


def module_name(source: str) -> str:
    """Of its own for each way to compile a program: Python takes two modules of one name for one."""
    compiler = find_compiler()
    marks = "\0".join([source, *(compiler.flags if compiler else ())])
    return f"viewlet_native_{hashlib.sha256(marks.encode()).hexdigest()[:16]}"


def build(source: str) -> Path | None:
    """The shared object of ``source``: from the cache, or compiled while others that ask for it wait."""
    compiler = find_compiler()
    if compiler is None:
        return None
    path = artefact(source, compiler)
    try:
        if not is_whole(path):
            _make(source, path, compiler)
            _prune(path.parent)
        with suppress(OSError):
            os.utime(path)  # the newest use, not the newest build, is what _prune keeps
    except OSError as error:
        raise Error(f"the native program could not be written to {path.parent}: {error}") from error
    return path


def _make(source: str, path: Path, compiler: Compiler) -> None:
    """Beside it goes the half of each module that is the same for all programs, and the larger one: compiled once."""
    bridge = artefact(BRIDGE, compiler, ".o")
    with suppress(OSError):
        os.utime(bridge)  # every build uses it, so it is never old enough for _prune
    steps = [_step(BRIDGE, bridge, compiler, "-c"), _step(source, path, compiler, str(bridge))]
    if (failed := compile_detached(steps)) is not None:
        kept = Path(failed["target"]).with_suffix(".cpp")
        said = "\n".join(failed["said"].splitlines()[:SHOWN_LINES])
        raise Error(f"{compiler.command[0]} did not compile the native program; its source is in {kept}\n{said}")


def _step(source: str, path: Path, compiler: Compiler, *more: str) -> Step:
    kept = path.with_suffix(".cpp")
    write(kept, source)
    return Step(
        target=str(path), arguments=compiler.arguments(kept, f"-I{RUNTIME}", "-DVIEWLET_SEPARATE_MODULE", *more)
    )


def find_compiler() -> Compiler | None:
    return first_working(cache_directory())


def artefact(source: str, compiler: Compiler, suffix: str = ".so") -> Path:
    """Where the shared object belongs: named by everything that could make it another one."""
    digest = hashlib.sha256()
    parts = [source, *(p.name + "\0" + p.read_text() for p in sorted(RUNTIME.glob("*.hpp")))]
    for part in (*parts, *compiler.flags, compiler.identity, _cpu()):
        digest.update(part.encode() + b"\0")
    return cache_directory() / f"{digest.hexdigest()[:32]}{suffix}"


def load(path: Path, name: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


# -- the cache ---------------------------------------------------------------------------------------------------------


def cache_directory() -> Path:
    """``$VIEWLET_CACHE`` or the user's cache directory; where that cannot be written, one for this process alone.

    What lies in it is loaded and run, so it is this user's own or it is refused.
    """
    chosen = os.environ.get("VIEWLET_CACHE")
    directory = Path(chosen) if chosen else _user_cache() / "viewlet"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = directory.resolve()
        status = directory.stat()
    except OSError:
        return _own_directory()
    if not is_private(status):
        raise Error(
            f"{directory} keeps compiled programs and must be this user's own, closed to writes of others: "
            "chmod go-w it, remove it, or let VIEWLET_CACHE name another directory"
        )
    return directory if os.access(directory, os.W_OK | os.X_OK) else _own_directory()


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@functools.cache
def _own_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="viewlet-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _prune(directory: Path) -> None:
    """Removing one that is in use is harmless: a loaded object stays mapped, a waiting process builds it again."""
    made = [*directory.glob("*.so"), *directory.glob("*.o")]
    for old in sorted(made, key=_last_use, reverse=True)[KEPT_ARTEFACTS:]:
        for suffix in (old.suffix, ".sum", ".cpp", ".lock"):
            old.with_suffix(suffix).unlink(missing_ok=True)
    for draft in directory.glob("*.tmp"):
        if time.time() - _last_use(draft) > ABANDONED_SECONDS:
            draft.unlink(missing_ok=True)


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@functools.cache
def _cpu() -> str:
    """What ``native`` means on this machine: a cache in a shared home directory serves several kinds."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() + platform.version()
