"""Lists, structs and maps of Python on one side, cells on the other (:mod:`viewlet.program.nested`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from viewlet.program.encoding import Stored
from viewlet.program.nested import NestedReader, nested_text
from viewlet.schema import Type

ToCell = Callable[[object, Type], Stored]
ToValue = Callable[[Any, Type], Any]


class UnfitError(ValueError):
    """A value that its column does not take; the message says why."""


def expected(what: str, value: object, type_: Type) -> UnfitError:
    return UnfitError(f"{type_} takes {what}, not {value!r} ({type(value).__name__})")


# -- in ----------------------------------------------------------------------------------------------------------------


def container_cell(value: object, type_: Type, to_cell: ToCell) -> str:
    """The text that holds a Python list, dict or list of pairs."""
    match type_.kind:
        case "STRUCT":
            return nested_text(_fields(value, type_, to_cell), type_)
        case "MAP":
            return nested_text(_pairs(value, type_, to_cell), type_)
    if hasattr(value, "tolist"):  # an array of numpy, as pandas has them
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise expected("a list", value, type_)
    return nested_text([_part(v, type_.inner[0], to_cell, f"element {i + 1}") for i, v in enumerate(value)], type_)


def _fields(value: object, type_: Type, to_cell: ToCell) -> list[Stored]:
    """By name; a field that is missing is NULL."""
    if not isinstance(value, Mapping):
        raise expected("a dict", value, type_)
    given = {str(name).lower(): v for name, v in value.items()}
    unknown = next((name for name in given if name not in type_.names), None)
    if unknown is not None or len(given) < len(value):
        raise UnfitError(f"{type_} has no field {unknown}" if unknown else f"a field stands twice in {value!r}")
    fields = zip(type_.names, type_.inner, strict=True)
    return [_part(given.get(name), inner, to_cell, f"field {name}") for name, inner in fields]


def _pairs(value: object, type_: Type, to_cell: ToCell) -> list[list[Stored]]:
    """Keys in their order; none is NULL, and none is there twice."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, (list, tuple)) or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        raise expected("a dict or a list of pairs", value, type_)
    key, of_value = type_.inner
    cells = [[_part(k, key, to_cell, "a key"), _part(v, of_value, to_cell, f"value of {k!r}")] for k, v in pairs]
    keys = [k for k, _ in cells]
    if None in keys or len(set(keys)) < len(keys):
        raise UnfitError(f"a key of a map is NULL, or there twice, in {value!r}")
    return cells


def _part(value: object, type_: Type, to_cell: ToCell, what: str) -> Stored:
    try:
        return to_cell(value, type_)
    except UnfitError as unfit:
        raise UnfitError(f"{what}: {unfit}") from None


# -- out ---------------------------------------------------------------------------------------------------------------


def container_value(held: Any, type_: Type, to_value: ToValue) -> Any:
    """The Python list or dict of a text, or of the values that LIST(x) gathered."""
    if isinstance(held, str):
        return _value(NestedReader(held).cells(type_), type_, to_value)
    return [None if v is None else to_value(v, type_.inner[0]) for v in held]


class CountedDict(dict[Any, Any]):
    """A dict that can be counted: nothing in it changes."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def countable(value: Any) -> Any:
    """A list as a tuple, and a dict that has a hash: rows with them can be counted. There is one NaN for all."""
    match value:
        case list():
            return tuple(map(countable, value))
        case dict():
            return CountedDict((countable(k), countable(v)) for k, v in value.items())
        case float():
            return math.nan if value != value else value
    return value


def _value(cells: Sequence[Any], type_: Type, to_value: ToValue) -> Any:
    def one(cell: Any, inner: Type) -> Any:
        if cell is None:
            return None
        return _value(cell, inner, to_value) if inner.is_nested else to_value(cell, inner)

    match type_.kind:
        case "STRUCT":
            return dict(zip(type_.names, map(one, cells, type_.inner), strict=True))
        case "MAP":
            return {one(k, type_.inner[0]): one(v, type_.inner[1]) for k, v in cells}
    return [one(cell, type_.inner[0]) for cell in cells]
