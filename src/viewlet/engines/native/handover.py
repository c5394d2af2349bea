"""Which maps of one program another one has as well: these change hands when the program of a database changes.

A view is the same in both if its definitions are equal but for names, and its numbers have the same kinds. A map of
several views changes hands as it is where both lay it out in the same way. Otherwise its views are copied one by one.
A view that the program before does not have is *missing*: it must be filled from the stored rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from viewlet.algebra.canonical import canonical
from viewlet.engines.native.emit.layout import Layout, MapLayout, Member, OrderLayout
from viewlet.loops.infer import Kinds
from viewlet.program.trigger import MapDefinition, Program

Meaning = tuple[object, ...]  # equal for two views of two programs if one has what the other has


class Described(Protocol):
    """A compiled program, as far as it says what it keeps."""

    @property
    def program(self) -> Program: ...
    @property
    def kinds(self) -> Kinds: ...
    @property
    def layout(self) -> Layout: ...


@dataclass(frozen=True)
class Handover:
    """``maps`` are pairs of numbers, the new program's first: tables, then maps. ``views`` are pairs of names."""

    maps: tuple[tuple[int, int], ...]
    views: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


def handover(new: Described, old: Described) -> Handover:
    """What ``new`` can have from ``old``, whose tables it takes over."""
    before = {relation.name: j for j, relation in enumerate(old.program.relations)}
    tables = [(i, before[r.name]) for i, r in enumerate(new.program.relations) if r.name in before]
    maps, views = _shared(new, old, {v.name for v in new.program.views})
    there = {mine for mine, _ in views} | {m.view for i, _ in maps for m in new.layout.maps[i].members}
    missing = tuple(v.name for v in new.program.views if not v.is_cache and v.name not in there)
    return Handover((*tables, *_numbered(maps, new, old)), views, missing)


def filled(new: Described, part: Described, missing: Collection[str]) -> Handover:
    """What ``new`` misses, from a program that keeps these views and was fed with the rows."""
    maps, views = _shared(new, part, missing)
    return Handover(_numbered(maps, new, part), views, ())


def _shared(
    new: Described, old: Described, wanted: Collection[str]
) -> tuple[list[tuple[int, int]], tuple[tuple[str, str], ...]]:
    asked = [(i, m) for i, m in enumerate(new.layout.maps) if not m.inputs]
    shapes = {_shape(old, m): j for j, m in enumerate(old.layout.maps) if not m.inputs}
    maps, moved = list[tuple[int, int]](), set[str]()
    for i, layout in asked:  # a map goes to one at most
        if {m.view for m in layout.members} <= {*wanted} and (j := shapes.pop(_shape(new, layout), None)) is not None:
            maps.append((i, j))
            moved |= {m.view for m in old.layout.maps[j].members}
    known = {_meaning(old, v): v.name for v in old.program.views if not v.is_cache and v.name not in moved}
    left = [m.view for i, layout in asked if i not in dict(maps) for m in layout.members if m.view in wanted]
    meanings = ((view, _meaning(new, new.program.view(view))) for view in left)
    return maps, tuple((view, known[meaning]) for view, meaning in meanings if meaning in known)


def _numbered(maps: list[tuple[int, int]], new: Described, old: Described) -> tuple[tuple[int, int], ...]:
    """A module numbers its tables first."""
    mine, theirs = len(new.program.relations), len(old.program.relations)
    return tuple((mine + i, theirs + j) for i, j in maps)


# -- what is equal -----------------------------------------------------------------------------------------------------


def _meaning(of: Described, view: MapDefinition) -> Meaning:
    """The definition modulo names, in which order its columns are the key, and of which kinds keys and values are."""
    text, labels = canonical(view.definition)
    layout, member = of.layout[view.name]
    key = tuple((labels[v], f.kind, f.nullable) for v, f in zip(view.inputs + view.outputs, layout.key, strict=True))
    return text, key, member.kind


def _shape(of: Described, layout: MapLayout) -> Meaning:
    """The views of a map, and all that its layout in memory depends on."""
    places = {m.name: i for i, m in enumerate(layout.members)}

    def member(m: Member) -> Meaning:
        return *_meaning(of, of.program.view(m.view)), None if m.counted_by is None else places[m.counted_by]

    orders = tuple(
        (o.slice_at, o.key_at, places.get(only), o.finite_keys, tuple(o.slice_indexes), _lanes(o, places))
        for (_, _, only), o in layout.orders.items()
    )
    indexes = tuple((positions, positions in layout.read_often) for positions in layout.indexes)
    held = tuple(layout.key.index(f) for f in layout.held)
    return tuple(map(member, layout.members)), indexes, orders, held


def _lanes(order: OrderLayout, places: Mapping[str, int]) -> Meaning:
    lanes = tuple((places[lane], tuple(sorted(running))) for lane, running in order.lanes.items())
    return lanes, tuple(order.answers)
