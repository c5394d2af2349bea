"""C++ that undoes a batch: where a stream stores no rows, the maps cannot be built again from the tables.

Before an entry changes for the first time in a batch, its map's ``was_…`` keeps what it is. ``undo`` puts all of that
back, bit for bit. A tree is made again from its entries: a sum of doubles in it would not come back by subtracting. A
view cache is emptied, and filled again when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.engines.native.emit.identifiers import named
from viewlet.engines.native.emit.layout import MapLayout
from viewlet.engines.native.emit.lines import Code, function, plain_code
from viewlet.engines.native.emit.pointers import Pointer, only_entry
from viewlet.engines.native.emit.triggers import Triggers


def undoing(triggers: Triggers) -> Iterator[Code]:
    """``undo`` and ``end_batch``, where there is something to undo."""
    maps = triggers.layout.maps
    undone = [m for m in maps if m.undone]
    if not undone:
        return
    body = plain_code("const Faults known = faults;")
    for map_ in undone:
        body += _undo(triggers, map_)
    body += plain_code(*(line for m in maps if m.inputs for line in _empty(m)), "faults = known;")
    yield function("VIEWLET_COLD void undo()", body)
    yield function("void end_batch()", plain_code(*(f"{named('was', m.name)}.forget({m.name});" for m in undone)))


def _undo(triggers: Triggers, map_: MapLayout) -> Code:
    nest = triggers.nest()
    entry = only_entry(map_.name) if map_.is_single else Pointer("entry", is_object=True)
    given = "auto&" if map_.is_single else "[[maybe_unused]] auto& entry"
    with nest.out.inside(f"{named('was', map_.name)}.undo({map_.name}, [&]({given})", end="});"):
        nest.changes.note_for_watchers(map_, list(map_.members), entry)
    for order in map_.orders.values():
        nest.out.add(f"{order.name}.clear();")
    if map_.orders:
        nest.out.add(f"for (auto* entry : {map_.name}.all()) {map_.name}.touch(*entry);")
        nest.out.add(f"{named('order', map_.name)}(true);")
    if not map_.is_single:
        nest.out.add(f"{map_.name}.sweep();")
    return nest.code()


def _empty(cache: MapLayout) -> list[str]:
    orders = (order.name for order in cache.orders.values())
    return [f"{name}.clear();" for name in (*orders, cache.name, named("held", cache.name))]
