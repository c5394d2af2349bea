"""A trigger program as a module that is compiled and loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

from viewlet.engines.native.build import module_name, open_module
from viewlet.engines.native.emit.layout import Layout
from viewlet.engines.native.emit.program import native
from viewlet.engines.native.emit.watch import UNWATCHED, Watched
from viewlet.engines.native.module import Module
from viewlet.loops.infer import Kinds, program_kinds
from viewlet.program.trigger import Program

BRIDGE = """
#include "bridge.hpp"
VIEWLET_MODULE({name}, viewlet::Program)
"""


@dataclass(frozen=True)
class Compiled:
    """A program as a loaded module."""

    program: Program
    kinds: Kinds
    module: Module
    watched: Watched
    digest: str  # of the C++: what another program saved is not for this one
    layout: Layout
    keyed: frozenset[str]  # the streams whose tables check PRIMARY KEY and UNIQUE


def compile_program(program: Program, watched: Watched = UNWATCHED, *, checks_keys: bool = False) -> Compiled | None:
    """From the cache, or by a compiler run; None where there is no compiler. Unfit: a number has no fixed width."""
    made = native(program, watched, checks_keys=checks_keys)
    name = module_name(made.source)
    module = open_module(made.source + BRIDGE.format(name=name), name)
    if module is None:
        return None
    digest = hashlib.sha256(made.source.encode()).hexdigest()
    return Compiled(
        program, program_kinds(program), cast(Module, module), made.watched, digest, made.layout, made.keyed
    )
