"""The entries of maps that C++ points to: their members, and those that several statements of a function use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viewlet.engines.native.emit.nest import Nest


def member_of(entry: str) -> str:
    """What a member's name follows; ``entry`` is a pointer."""
    return f"{entry[1:]}." if entry.startswith("&") else f"{entry}->"


def reference(entry: str) -> str:
    """What a pointer points to."""
    return entry[1:] if entry.startswith("&") else f"*{entry}"


def resolve_places(nest: Nest) -> list[str]:
    """An entry that several statements use is looked up once; the name says of which map and where."""
    text = "\n".join(nest.out.lines)
    declared = []
    for (map_name, key), token in nest.places.items():
        if text.count(token) == 1:
            text = text.replace(f"{token}.find()", f"{map_name}.find({key})")
            text = text.replace(f"{token}.make()", f"{map_name}.at({key})")
        else:
            name = nest.fresh(f"{map_name}_here")
            declared.append(f"    Place {name}({map_name}, {key});")
            text = text.replace(token, name)
    return declared + text.split("\n")
