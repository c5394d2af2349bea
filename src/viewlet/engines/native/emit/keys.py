"""Keys of maps as C++: whole ones, those that a slice is asked for with, and whether a value can be in one."""

from __future__ import annotations

from collections.abc import Mapping

from viewlet.engines.native.emit.identifiers import plain
from viewlet.engines.native.emit.layout import Field, MapLayout, Positions
from viewlet.engines.native.emit.values import Cpp, integer, width
from viewlet.program.kinds import WIDEST, Exact, Inexact, Kind, scaled_bits

Key = Mapping[int, Cpp]  # position ↦ the field there


def view_constant(view: str) -> str:
    return f"view_{plain(view)}"


def column(of: str, field: Field) -> Cpp:
    """A field of a row or key."""
    return Cpp(f"{of}.{field.name}", field.kind, field.nullable)


def whole_key(map_: MapLayout, key: Key) -> str:
    return f"{map_.type_name}Key{{{', '.join(key[i].text for i in range(len(map_.key)))}}}"


def probe_key(map_: MapLayout, key: Key) -> str:
    return "{" + ", ".join(f".{map_.key[i].name} = {value.text}" for i, value in key.items()) + "}"


def each_entry(map_: MapLayout, entry: str, positions: Positions, key: Key) -> str:
    """The head of a loop: over a slice, or over all."""
    if positions:
        return f"auto* {entry} : {map_.name}.slice<{map_.index(positions)}>({probe_key(map_, key)})"
    return f"auto* {entry} : {map_.name}.all()"


def too_fine(value: Cpp, kind: Kind) -> list[str]:
    """Tests that a key of ``kind`` can hold a value at all; one that it cannot is not there."""
    if isinstance(value.kind, Inexact) and isinstance(kind, Exact):
        return [f"is_whole({value.text}, {kind.bits})"]
    if not isinstance(value.kind, Exact) or not isinstance(kind, Exact):
        return []
    places = value.kind.scale - kind.scale
    bits = width(kind)
    if places < 0:
        most = ((1 << bits) - 1) // 10**-places
        fits = scaled_bits(value.kind, kind.scale) < bits
        return [] if fits else [f"magnitude({value.text}) <= u128({integer(most, Exact(0, WIDEST))})"]
    tests = [f"ends({value.text}, {places})"] if places else []
    if width(value.kind) > bits:
        tests.append(f"fits({value.text} / power10({places}))")
    return tests
