"""C++ text in the making."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Late = Callable[[], str]  # text that is known when the whole function is


@dataclass(frozen=True, slots=True)
class Code:
    """Finished lines; ``lookups``: at how many places they look an entry or a slice up."""

    lines: tuple[str, ...] = ()
    lookups: int = 0

    def __add__(self, other: Code) -> Code:
        return Code(self.lines + other.lines, self.lookups + other.lookups)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Lines:
    """C++ text with its indentation; ``loops`` are those around the line that comes next."""

    depth: int = 1
    loops: int = 0
    lookups: int = 0
    _lines: list[tuple[int, str | Late]] = field(default_factory=list)

    def add(self, line: str | Late, lookups: int = 0) -> None:
        self._lines.append((self.depth, line))
        self.lookups += lookups

    @contextmanager
    def inside(self, head: str = "", lookups: int = 0, end: str = "}") -> Iterator[None]:
        self.add(f"{head} {{" if head else "{", lookups)
        self.depth += 1
        yield
        self.depth -= 1
        self.add(end)

    @contextmanager
    def loop(self, head: str, lookups: int = 0, end: str = "}") -> Iterator[None]:
        with self.inside(head, lookups, end):
            self.loops += 1
            yield
            self.loops -= 1

    def code(self) -> Code:
        lines = ((depth, line if isinstance(line, str) else line()) for depth, line in self._lines)
        return Code(tuple("    " * depth + line if line else "" for depth, line in lines), self.lookups)


def plain_code(*lines: str, lookups: int = 0) -> Code:
    """Lines of a function's body."""
    return Code(tuple(f"    {line}" for line in lines), lookups)


def function(head: str, body: Code) -> Code:
    return Code((f"{head} {{", *body.lines, "}"), body.lookups)
