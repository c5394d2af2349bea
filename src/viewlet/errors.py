"""Every error a user can meet. Each says where, what, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

TOO_DEEP = "an expression nested too deeply"
LONGEST = 240  # characters of a value in a message
TOO_DEEP_HINT = "split it: a subquery or a view for its parts, IN (…) for a long chain of OR"


class Error(Exception):
    """The base of every error that viewlet raises on purpose."""


class SqlError(Error):
    """A script is wrong. It has ``line``, ``column`` and ``hint``; the message shows the place under a caret."""

    def __init__(
        self, message: str, *, source: str = "", line: int | None = None, column: int | None = None, hint: str = ""
    ) -> None:
        self.message = message
        self.source = source
        self.line = line
        self.column = column
        self.hint = hint
        super().__init__(self._render())

    def point_into(self, source: str, lines_before: int) -> None:
        """Let an error of a script that was appended to others point into that script alone."""
        if self.line is not None and self.line > lines_before:
            self.line -= lines_before
            self.source = source
            self.args = (self._render(),)

    def _render(self) -> str:
        parts = [self.message]
        if self.line is not None and self.column is not None:
            parts[0] = f"line {self.line}, column {self.column}: {self.message}"
            lines = self.source.splitlines()
            if 1 <= self.line <= len(lines):
                parts += _pointed_at(lines[self.line - 1], self.column - 1)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def _pointed_at(line: str, at: int) -> list[str]:
    """The line and a caret below ``at``. Of a long line, the part around it."""
    first = 0 if len(line) <= LONGEST else max(at - LONGEST // 2, 0)
    return [f"  {line[first : first + LONGEST]}", f"  {' ' * (at - first)}^"]


def warn(sentence: str) -> None:
    """A warning that names the line outside of viewlet that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in ("viewlet", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)


@contextmanager
def refusing_depth() -> Iterator[None]:
    """Python's stack ends long before a machine-written expression needs to."""
    try:
        yield
    except RecursionError:
        raise SqlError(TOO_DEEP, hint=TOO_DEEP_HINT) from None


class UnsupportedError(SqlError):
    """The script is valid SQL, but viewlet cannot maintain it. ``construct`` names the part that is refused."""

    def __init__(
        self,
        construct: str,
        *,
        source: str = "",
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
    ) -> None:
        self.construct = construct
        super().__init__(f"{construct} is not supported", source=source, line=line, column=column, hint=hint)


def in_short(value: object) -> str:
    """A value in a message, cut after a line or two."""
    return shortened(repr(value), LONGEST)


def shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def at_row(relation: str, number: int, row: object) -> str:
    """The end of a sentence about a row of an update."""
    return f": {relation}, row {number}, {in_short(row)}"


class DataError(Error):
    """A row cannot be taken, and the batch that it came in changed nothing.

    ``relation``, ``row`` (its number in the batch, from 0), ``column`` and ``value`` say which, as far as it is known.
    """

    def __init__(
        self,
        message: str,
        *,
        relation: str,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
    ) -> None:
        self.message = message
        self.relation = relation
        self.row = row
        self.column = column
        self.value = value
        where = relation
        if column is not None:
            where += f".{column}"
        if row is not None:
            where += f", row {row}"
        super().__init__(f"{where}: {message}")


class NotThereError(DataError):
    """A row is to go that is not there."""


class OutOfRangeError(Error):
    """A number no longer fits its declared type. The message names the view and the column."""


OverflowError_ = OutOfRangeError  # the name of 0.1: code that catches it goes on working


class StorageError(Error):
    """The disk does not take what a database must keep, or another process has the database open. Nothing changed."""


class CorruptError(Error):
    """Stored state fails its checksum or has the wrong structure. Nothing of it was used."""
