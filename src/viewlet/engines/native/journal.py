"""The way back to a state that holds infinities or NaN: as it was once saved, and every update since.

Its tables do not do for that. Whether a row with such a value is taken depends on what was there before it, so that the
rows of a table, in the order in which they happen to lie there, may be refused.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Protocol
from weakref import finalize

OWN = "0" * 64  # in place of a program's digest: nobody else reads the file
FEWEST = 1000  # rows


class Saves(Protocol):
    """What a module can do for it."""

    def memory(self, state: object) -> tuple[tuple[str, int, int], ...]: ...
    def save(self, state: object, file: int, digest: str) -> int: ...
    def restore(self, state: object, file: int, digest: str) -> str | None: ...


class Journal:
    """Full when the updates since have as many rows as there were entries: so to begin again costs each row a little.

    One that is full, or whose state was built again since, still knows the way back to where it ends.
    """

    def __init__(self, module: Saves, state: object) -> None:
        self._module, self._state = module, state
        self._file, path = tempfile.mkstemp(prefix="viewlet-")
        os.unlink(path)
        finalize(self, os.close, self._file)
        module.save(state, self._file, OWN)
        self._updates: list[Callable[[], object]] = []
        self._room = max(FEWEST, sum(entries for _, entries, _ in module.memory(state)))

    def note(self, update: Callable[[], object], rows: int) -> None:
        """What was just done, such that it can be done again whatever the user does with his rows meanwhile."""
        self._updates.append(update)
        self._room -= rows

    @property
    def is_full(self) -> bool:
        return self._room < 0

    def __len__(self) -> int:
        """Updates."""
        return len(self._updates)

    def go_back(self, updates: int) -> None:
        """To where so many updates left the state, whatever is in it now."""
        del self._updates[updates:]
        os.lseek(self._file, 0, os.SEEK_SET)
        problem = self._module.restore(self._state, self._file, OWN)
        assert problem is None, f"what was saved a moment ago is {problem}"
        for update in self._updates:
            update()
