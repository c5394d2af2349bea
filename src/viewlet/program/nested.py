"""How engines hold a LIST, a STRUCT or a MAP: as a text that has the order of the values, as DuckDB compares them.

An item is ``1`` and its value, or ``2`` for NULL, which comes last. A list is its items and ``0``: a shorter list comes
before those that go on. A struct is the items of its fields, and a map the list of its keys and values. Every value
says where it ends, so the value of an inner list is its own text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from viewlet.schema import Type

END, VALUE, NOTHING = "0", "1", "2"
_CLOSE, _ESCAPE = "\x01", "\x02"  # behind a text, and before the characters that are not greater than these two
_SPECIAL = {c: _ESCAPE + chr(ord("3") + c) for c in range(3)}
_DIGITS = {"DECIMAL": 32, "BOOLEAN": 1}  # hexadecimal ones; other numbers have 64 bits
_SIGN, _ALL = 1 << 63, (1 << 64) - 1


def nested_text(cells: Sequence[Any], type_: Type) -> str:
    """The cells of a list; of the fields of a struct; of the keys and values of a map, each a pair of cells."""
    if type_.kind == "STRUCT":
        return "".join(map(_item, cells, type_.inner))
    if type_.kind == "MAP":
        return "".join(VALUE + "".join(map(_item, pair, type_.inner)) for pair in cells) + END
    return "".join(_item(cell, type_.inner[0]) for cell in cells) + END


def _item(cell: Any, type_: Type) -> str:
    return NOTHING if cell is None else VALUE + _text(cell, type_)


def _text(cell: Any, type_: Type) -> str:
    if type_.is_nested:
        return str(cell)
    match type_.held.kind:
        case "VARCHAR":
            return str(cell).translate(_SPECIAL) + _CLOSE
        case "DOUBLE":
            (bits,) = struct.unpack(">Q", struct.pack(">d", cell))
            return f"{bits ^ _ALL if bits & _SIGN else bits | _SIGN:016x}"
    digits = _DIGITS.get(type_.held.kind, 16)
    return f"{int(cell) + (digits > 1) * (1 << (4 * digits - 1)):0{digits}x}"


class NestedReader:
    """Cells out of a text, from the left to the right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def cells(self, type_: Type) -> list[Any]:
        """The opposite of :func:`nested_text`; inner lists, structs and maps are lists of cells themselves."""
        if type_.kind == "STRUCT":
            return [self._item(inner) for inner in type_.inner]
        items = list[Any]()
        while self._text[self._at] != END:
            if type_.kind == "MAP":
                self._at += 1
                items.append([self._item(inner) for inner in type_.inner])
            else:
                items.append(self._item(type_.inner[0]))
        self._at += 1
        return items

    def items(self, type_: Type) -> list[Any]:
        """The elements of a list as cells: inner lists, structs and maps are their texts."""
        cells = list[Any]()
        while self._text[self._at] != END:
            start = self._at + 1
            cell = self._item(type_.inner[0])
            cells.append(self._text[start : self._at] if type_.inner[0].is_nested and cell is not None else cell)
        return cells

    def _item(self, type_: Type) -> Any:
        self._at += 1
        if self._text[self._at - 1] == NOTHING:
            return None
        return self.cells(type_) if type_.is_nested else self._cell(type_)

    def _cell(self, type_: Type) -> Any:
        match type_.held.kind:
            case "VARCHAR":
                end = self._text.index(_CLOSE, self._at)
                return _unescaped(self._next(end - self._at, 1))
            case "DOUBLE":
                bits = int(self._next(16), 16)
                (number,) = struct.unpack(">d", struct.pack(">Q", bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))
                return number
            case "BOOLEAN":
                return self._next(1) == "1"
        digits = _DIGITS.get(type_.held.kind, 16)
        return int(self._next(digits), 16) - (1 << (4 * digits - 1))

    def _next(self, length: int, closed: int = 0) -> str:
        start = self._at
        self._at += length + closed
        return self._text[start : start + length]


def _unescaped(text: str) -> str:
    for code, written in _SPECIAL.items():
        text = text.replace(written, chr(code)) if _ESCAPE in text else text
    return text
