"""The text that an engine runs for a program. Engines add themselves, so that the waist knows none of them."""

from __future__ import annotations

from collections.abc import Callable

from viewlet.errors import Error
from viewlet.program.trigger import Program

Source = Callable[[Program], str]
_SOURCES: dict[str, Source] = {}


def writes(language: str) -> Callable[[Source], Source]:
    """Make a function the one that writes programs in ``language``."""

    def register(source: Source) -> Source:
        _SOURCES[language] = source
        return source

    return register


def source_of(program: Program, language: str) -> str:
    if language not in _SOURCES:
        raise Error(f"no engine that writes {language} is loaded: import viewlet first")
    return _SOURCES[language](program)
