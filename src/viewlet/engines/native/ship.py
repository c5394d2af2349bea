"""A compiled program for other machines of the same kind: which kind that is, and the way out of one and into another.

``Shipped.digest`` is the digest of the C++. Another version of viewlet may generate other C++ for the program. It then
refuses the machine code.
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from viewlet.engines.native.build import RUNTIME, _cpu, load
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.emit.program import native
from viewlet.engines.native.emit.watch import Watched
from viewlet.engines.native.module import Module
from viewlet.loops.infer import program_kinds
from viewlet.program.trigger import Program


@dataclass(frozen=True)
class Shipped:
    """A shared object, by the name that its code knows."""

    module: str
    digest: str
    code: Any


def platform_tag() -> str:
    """Equal on two machines where one can load what the other compiled: system, C library, processor, our headers."""
    headers = [path.read_text() for path in sorted(RUNTIME.glob("*.hpp"))]
    marks = (sysconfig.get_platform(), *platform.libc_ver(), *platform.python_version_tuple()[:2], _cpu(), *headers)
    return hashlib.sha256("\0".join(marks).encode()).hexdigest()[:16]


def ship(compiled: Compiled) -> Shipped:
    module = cast(Any, compiled.module)
    return Shipped(module.__name__, compiled.digest, Path(module.__file__).read_bytes())


def unship(shipped: Shipped, program: Program, watched: Watched, directory: Path) -> Compiled | None:
    """Load what another machine compiled, from a file in ``directory``; None where that cannot be."""
    made = native(program, watched)
    digest = hashlib.sha256(made.source.encode()).hexdigest()
    if digest != shipped.digest:
        return None
    path = directory / f"{shipped.module}.so"
    path.write_bytes(shipped.code)
    try:
        module = load(path, shipped.module)
    except ImportError:  # a directory whose files may not be run, or a platform that its tag does not tell from ours
        return None
    return Compiled(
        program, program_kinds(program), cast(Module, module), made.watched, digest, made.layout, made.keyed
    )
