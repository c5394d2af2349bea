"""The trigger programs that are compared."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import viewlet
from bench.engine.triggers import HERE as ENGINE
from bench.engine.triggers import generated_source
from bench.engine.workload import Workload

HERE = Path(__file__).parent
HEADERS = (HERE / "hand", ENGINE / "hand")


def ordered_source(w: Workload) -> str:
    return generated_source(viewlet.compile(w.script))


def scan_source(w: Workload) -> str:
    """The paper's own strategy: the same program, and inequalities scan."""
    return generated_source(replace(viewlet.compile(w.script), ordered=False))


def hand_source(w: Workload) -> str:
    """Each header once, where it is first included: the compiler's cache knows a program by its whole text."""
    return _with_headers((HERE / "hand" / f"{w.name}.cpp").read_text(), set())


def _with_headers(text: str, seen: set[str]) -> str:
    def header(include: re.Match[str]) -> str:
        name = include[1]
        path = next((folder / name for folder in HEADERS if (folder / name).exists()), None)
        if path is None:
            return include[0]
        first = name not in seen
        seen.add(name)
        return _with_headers(path.read_text().replace("#pragma once\n", ""), seen) if first else ""

    return re.sub(r'#include "(.+)"\n', header, text)
