"""Updates that a program could not take, as errors."""

from __future__ import annotations

from viewlet.errors import DataError, Error, OutOfRangeError


class KeyTakenError(DataError):
    """A row that is there has a key of one that comes. Nothing was done."""


class SpoiledError(Error):
    """A trigger met a number that it cannot hold: the tables are as before, the views must be built again from them."""

    def __init__(self, view: str, message: str, at: str = "") -> None:
        """``at``: the row that it met, for a user to read."""
        self.view, self.message, self.at = view, message, at
        super().__init__(f"view {view}: {message}{at}")

    def under(self, name: str) -> SpoiledError:
        """The same by a name of the view that the user knows."""
        return type(self)(name, self.message, self.at)


class SpoiledOverflowError(SpoiledError, OutOfRangeError):
    """The same, where a number left its type."""


class SpoiledRowError(SpoiledError, DataError):
    """The same, where a function has no value for what is in a row."""

    def __init__(self, view: str, message: str, relation: str, row: int, value: object) -> None:
        DataError.__init__(self, f"view {view}: {message}", relation=relation, row=row, value=value)
        self.view, self.message, self.at = view, message, ""

    def under(self, name: str) -> SpoiledError:
        return SpoiledRowError(name, self.message, self.relation, self.row or 0, self.value)
