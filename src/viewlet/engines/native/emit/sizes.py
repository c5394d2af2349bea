"""How many bytes a program's maps take: for each entry, and for each entry and slice of an order."""

from __future__ import annotations

from collections.abc import Iterable

from viewlet.engines.native.emit.layout import Field, MapLayout, OrderLayout
from viewlet.engines.native.emit.values import SIZES, type_of, value_type

HEAD = (8, 4)  # an entry's id, and whether it is to be swept
CELL = (4, 4)  # of an entry's place in an index: one, or two where the entries of a slice are a list
SLOT_BYTES = 22  # on average, in the table of keys and in that of each index with one entry a slice
NODE_HEAD, NODE_ROOM, SMALLEST_ROOM = 16, 16, 4  # of a tree's nodes: bytes, places, and places where a tree is small
NODE_USED = 11  # places on average: of nodes that are split in half when they are full, ln 2


def entry_bytes(map_: MapLayout) -> int:
    """What one entry takes, without its places in the tables and orders."""
    key = struct_size([_field_size(f) for f in map_.key])
    values = struct_size([SIZES[value_type(m.kind)] for m in map_.members])
    if map_.is_single:
        return values[0]
    cells = sum(1 if positions in map_.read_often else 2 for positions in map_.indexes)
    return struct_size([HEAD, *[CELL] * cells, key, values])[0]


def order_bytes(map_: MapLayout, order: OrderLayout) -> int:
    """What an order takes for each entry: a place in a leaf, and a share in the nodes above, of 1/u² + 1/u³ + … ."""
    lanes = _lane_sizes(map_, order)
    place = _tree_place(map_, order)
    leaf = place + sum(value for value, _ in lanes)
    inner = place + SIZES["i64"][0] + sum(above for _, above in lanes)
    leaf_node, inner_node = (NODE_HEAD + NODE_ROOM * width for width in (leaf, inner))
    return round(leaf_node / NODE_USED + inner_node / (NODE_USED * (NODE_USED - 1)))


def slice_bytes(map_: MapLayout, order: OrderLayout) -> int:
    """What an order takes for each slice besides: a tree, its place among the others, and a leaf hardly used."""
    key = struct_size([_field_size(map_.key[i]) for i in order.slice_at])
    tree = struct_size([(8, 8), (8, 8), *[(4, 4)] * (2 * len(order.lanes)), *_memories(map_, order)])
    cells = [CELL] * (2 * len(order.slice_indexes))
    leaf = _tree_place(map_, order) + sum(value for value, _ in _lane_sizes(map_, order))
    tables = SLOT_BYTES * (1 + len(order.slice_indexes))
    return struct_size([HEAD, *cells, key, tree])[0] + tables + NODE_HEAD + SMALLEST_ROOM * leaf


def _memories(map_: MapLayout, order: OrderLayout) -> list[tuple[int, int]]:
    """What a tree remembers: the keys around both ends of a range and its sums, or a key with the sums next to it."""
    key, types = SIZES[type_of(map_.key[order.key_at].kind)], {m.name: type_of(m.kind) for m in map_.members}
    values = [SIZES[types[member]] for member in order.lanes]
    flags = [(1, 1)] * 4
    sizes = []
    for answer in order.answers:
        keys, times = ([key] * 4, 1) if answer.after is None else ([key], 2)
        sizes.append(struct_size([*keys, *flags, *flags, *[values[i] for i in answer.lanes] * times]))
    return sizes


def _tree_place(map_: MapLayout, order: OrderLayout) -> int:
    """A key and the id of its entry."""
    return SIZES[type_of(map_.key[order.key_at].kind)][0] + CELL[0]


def _lane_sizes(map_: MapLayout, order: OrderLayout) -> list[tuple[int, int]]:
    """Of each lane the value in a leaf; and above it the sum, a count and two bounds of each running sum."""
    types = {m.name: type_of(m.kind) for m in map_.members}
    sizes = []
    for member, running in order.lanes.items():
        value = SIZES[types[member]][0]
        bound = SIZES["double"][0] if types[member] == "Real" else value
        sizes.append((value, value + CELL[0] * bool(running) + 2 * bound * len(running)))
    return sizes


def struct_size(fields: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Size and alignment of a C++ struct."""
    size, alignment = 0, 1
    for width, align in fields:
        size = -(-size // align) * align + width
        alignment = max(alignment, align)
    return -(-size // alignment) * alignment, alignment


def _field_size(f: Field) -> tuple[int, int]:
    size = SIZES[type_of(f.kind)]
    return struct_size([size, (1, 1)]) if f.nullable else size
