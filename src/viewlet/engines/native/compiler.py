"""Which C++ compiler this machine has; anything that takes C++20 and needs nothing but itself will do."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from viewlet.engines.native.detached import Step, compile_detached, write

FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-fno-exceptions",
    "-fno-rtti",
    "-ffp-contract=off",  # a fused multiply-add rounds once where the program means twice
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-fno-threadsafe-statics",  # their guards are calls into libstdc++
    "-march=native" if platform.machine() in ("x86_64", "AMD64", "i686") else "-mcpu=native",
    *(["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []),
)
PROBE = """
template <class T> concept Small = sizeof(T) <= 16;
template <Small T> constexpr T twice(T value) { return value + value; }
extern "C" __attribute__((visibility("default"))) int viewlet_probe() { return (int)twice<__int128>(21); }
"""
REFUSAL_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Compiler:
    """``identity`` changes when the compiler does."""

    command: tuple[str, ...]
    identity: str
    flags: tuple[str, ...] = FLAGS

    def arguments(self, source: Path, *more: str) -> list[str]:
        return [*self.command, *self.flags, str(source), *more]


def first_working(remembered: Path) -> Compiler | None:
    """The first that works of $CXX, g++, clang++ and the ``ziglang`` wheel; ``remembered`` keeps what was tried."""
    if sys.platform == "win32" or not _has_stable_abi():
        return None
    return next((c for c in _candidates() if _works(c, remembered)), None)


def _has_stable_abi() -> bool:
    """The ABI that the modules speak: CPython's, with objects that start with a count and a type and nothing else."""
    other_objects = sysconfig.get_config_var("Py_GIL_DISABLED") or sysconfig.get_config_var("Py_TRACE_REFS")
    return platform.python_implementation() == "CPython" and not other_objects


def _candidates() -> Iterator[Compiler]:
    chosen = os.environ.get("CXX", "")
    for command in (_words(chosen), ["g++"], ["clang++"]):
        if command and (path := shutil.which(command[0])):
            yield Compiler((path, *command[1:]), f"{path} {_stamp(Path(path))} {command[1:]}")
    if (zig := importlib.util.find_spec("ziglang")) and zig.origin:
        stamp = _stamp(Path(zig.origin))
        # cc, not c++: the file's name says that it is C++, and c++ would first spend a minute on building libc++
        yield Compiler((sys.executable, "-m", "ziglang", "cc"), f"{zig.origin} {stamp}")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an unclosed quote: no command
        return []


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{path.resolve()} {status.st_mtime_ns} {status.st_size}"


def _works(compiler: Compiler, remembered: Path) -> bool:
    """Ask once: a probe costs a compiler run. A refusal is asked about again later: the disk may have been full."""
    known = f"{compiler.identity} {compiler.flags} {platform.machine()} {PROBE}"
    note = remembered / f"{hashlib.sha256(known.encode()).hexdigest()[:32]}.compiler"
    try:
        if note.read_text() == "works" or time.time() - note.stat().st_mtime < REFUSAL_SECONDS:
            return note.read_text() == "works"
    except OSError:
        pass
    works = _probe(compiler, remembered / f"probe-{note.stem}.so")
    with suppress(OSError):
        write(note, "works" if works else "does not work")
    return works


def _probe(compiler: Compiler, target: Path) -> bool:
    """It compiles C++20, and what it makes runs in this very process (a cross compiler's work would not)."""
    source = target.with_suffix(".cpp")
    try:
        write(source, PROBE)
        failed = compile_detached([Step(target=str(target), arguments=compiler.arguments(source))])
        return failed is None and bool(ctypes.CDLL(str(target)).viewlet_probe() == 42)
    except (OSError, AttributeError, subprocess.SubprocessError):
        return False
