"""Where a program keeps its views: which of them share a map, what its key and values are, and the indexes it needs.

Views with the same key that are maintained together are one map with a struct of values: one lookup finds them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from viewlet.algebra.query import (
    View,
)
from viewlet.engines.native.emit.held import held_columns
from viewlet.engines.native.emit.identifiers import camel, identifier, named, unique
from viewlet.engines.native.emit.values import SIZES, value_type
from viewlet.loops.infer import Kinds
from viewlet.loops.nulls import Columns
from viewlet.loops.skeletons import skeleton
from viewlet.loops.steps import Block, EachSlice, Extremum, Loop, Order, RangeSum, Runs, Step, blocks
from viewlet.program.kinds import COUNT, REAL, TEXT, Kind
from viewlet.program.trigger import MapDefinition, Program, Trigger

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a key or row."""

    name: str
    kind: Kind
    nullable: bool


@dataclass(frozen=True, slots=True)
class Member:
    """One view's multiplicities among the values of a map; ``counted_by`` is 0 only where this sum is over no rows."""

    view: str
    name: str
    kind: Kind
    counted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tree remembers: sums over a range, or (``after`` is not None) where a test of a running sum changes."""

    lanes: tuple[int, ...]
    after: bool | None = None


@dataclass
class OrderLayout:
    """The entries of a map by the column at ``key_at``, in a tree for each slice with the same columns at ``slice_at``.

    ``lanes``: the members that the trees add up, each with the running sums that are asked for. ``answers``: what each
    tree remembers.
    """

    name: str
    type_name: str
    slice_at: Positions
    key_at: int
    lanes: dict[str, set[str]] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    slice_indexes: list[Positions] = field(default_factory=list)  # positions in the slice
    finite_keys: bool = False  # some read of it is no range where keys are infinite or NaN

    def lane(self, member: Member, running: str | None = None) -> int:
        """The number of a member's lane, made if need be."""
        sums = self.lanes.setdefault(member.name, set())
        if running is not None:
            sums.add(running)
        return list(self.lanes).index(member.name)

    def remember(self, *lanes: int, after: bool | None = None) -> int:
        """The number of an answer that each tree keeps, made if need be."""
        answer = Answer(lanes, after)
        if answer not in self.answers:
            self.answers.append(answer)
        return self.answers.index(answer)

    def slice_index(self, positions: Positions) -> str:
        """The index for the slices with values at some of their columns, made if need be."""
        if positions not in self.slice_indexes:
            self.slice_indexes.append(positions)
        return self.slice_index_name(positions)

    def slice_index_name(self, positions: Positions) -> str:
        return f"{self.type_name}At{'And'.join(map(str, positions))}"


@dataclass
class MapLayout:
    """``inputs``: how many of the key's fields a view cache is given; 0 for other maps.

    ``held``: the texts of the key that may be in no base row. ``undone``: it keeps what a batch changes in it.
    """

    name: str
    type_name: str
    key: tuple[Field, ...]
    members: tuple[Member, ...]
    inputs: int = 0
    held: tuple[Field, ...] = ()
    undone: bool = False
    indexes: list[Positions] = field(default_factory=list)
    read_often: set[Positions] = field(default_factory=set)  # indexes with slices of many entries
    orders: dict[tuple[Positions, int, str], OrderLayout] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)  # the members that somebody watches
    index_names: dict[Positions, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of indexes and orders

    @property
    def is_single(self) -> bool:
        return not self.key

    @property
    def held_inputs(self) -> tuple[Field, ...]:
        return tuple(f for f in self.key[: self.inputs] if f in self.held)

    @property
    def shown(self) -> str:
        """What a user reads."""
        return named(self.name)

    def order(self, slice_at: Positions, key_at: int, only: Member | None = None) -> OrderLayout:
        """The order by a column in slices, made if need be; ``only`` for the entries that one member has."""
        which = slice_at, key_at, only.name if only else ""
        if which not in self.orders:
            which_entries = [self.name, *(["of", only.name] if only else []), "in_order_of", self.key[key_at].name]
            name = named(*which_entries, *(["per", *(self.key[i].name for i in slice_at)] if slice_at else []))
            name = unique(name, self.names)
            self.orders[which] = OrderLayout(name, f"{camel(name)}Order", slice_at, key_at)
        return self.orders[which]

    def index_name(self, positions: Positions) -> str:
        if positions not in self.index_names:
            name = f"{self.type_name}By{''.join(camel(self.key[i].name) for i in positions)}"
            self.index_names[positions] = f"{unique(name, self.names)}Index"
        return self.index_names[positions]

    def index(self, positions: Positions) -> str:
        """The index for a slice with values at ``positions``, made if need be."""
        if positions not in self.indexes:
            self.indexes.append(positions)
        return self.index_name(positions)


@dataclass
class Layout:
    maps: list[MapLayout]
    of: dict[str, tuple[MapLayout, Member]]

    @property
    def includes(self) -> frozenset[str]:
        """The headers of the runtime that its maps need."""
        ordered, undone = any(m.orders for m in self.maps), any(m.undone for m in self.maps)
        return frozenset(["ordered"] * ordered + ["undo"] * undone)

    def __getitem__(self, view: str) -> tuple[MapLayout, Member]:
        return self.of[view]

    def map_of(self, view: str) -> str:
        """The name of a view's map; what is no view stands for itself."""
        return self.of[view][0].name if view in self.of else view


def layout(program: Program, kinds: Kinds, nullable: Columns) -> Layout:
    """The maps of a program's views; indexes are added by :func:`index_slices`."""
    fields = {v.name: _fields(v, kinds, nullable) for v in program.views}
    taken: set[str] = set()
    unstored = frozenset(r.name for r in program.relations if not r.stored)
    maps = [_map(group, fields, kinds, taken, unstored) for group in _groups(program, fields)]
    return Layout(maps, {m.view: (map_, m) for map_ in maps for m in map_.members})


def index_slices(layout_: Layout, block: Block, written: frozenset[str] = frozenset()) -> None:
    """Give every map the indexes that the loops of a block go through.

    Where the same event adds an entry to a slice of a map and goes over that slice (``written`` names such maps), the
    slice holds the entries of many events: its index is made for going over them.
    """
    for inner in blocks(block):
        for step in inner:
            if isinstance(step, Loop) and isinstance(step.source, View) and step.order is None:
                names = step.source.inputs + step.source.outputs
                positions = tuple(i for i, n in enumerate(names) if n in step.bound)
                sliced, _ = layout_[step.source.name]
                if positions:
                    sliced.index(positions)
                if positions and sliced.name in written:
                    sliced.read_often.add(positions)
            elif isinstance(step, (Loop, EachSlice, RangeSum, Runs, Extremum)):
                _order(layout_, step)


def _order(layout_: Layout, step: Loop | EachSlice | RangeSum | Runs | Extremum) -> None:
    """Give a map the order that a step goes by; what it reads of it is known when the step is written."""
    source = step.source
    if not isinstance(source, View):
        return
    ordered, member = layout_[source.name]
    names = source.outputs
    at = tuple(i for i, n in enumerate(names) if n in step.bound)
    match step:
        case Loop(order=Order(key)) | RangeSum(order=Order(key)) | Runs(key=key):
            ordered.order(at, names.index(key))
        case EachSlice(key=key, summed=summed):
            at = tuple(i for i, n in enumerate(names) if n != key and n not in summed)
            ordered.order(at, names.index(key))
        case Extremum(key=key):
            ordered.order(at, names.index(key), member)


def ordered_maps(layout_: Layout, block: Block) -> list[MapLayout]:
    """The maps that a block reads in order."""
    steps = (step for inner in blocks(block) for step in inner)
    ordered = (s for s in steps if isinstance(s, (EachSlice, RangeSum, Runs, Extremum)) or _is_ordered_loop(s))
    return list({m.name: m for s in ordered for m, _ in [layout_[s.source.name]]}.values())  # type: ignore[union-attr]


def _is_ordered_loop(step: Step) -> bool:
    return isinstance(step, Loop) and step.order is not None


def _map(
    group: list[MapDefinition],
    fields: Mapping[str, tuple[Field, ...]],
    kinds: Kinds,
    maps: set[str],
    unstored: frozenset[str],
) -> MapLayout:
    first = group[0]
    taken: set[str] = set()
    skeletons = {skeleton(v.definition): v for v in group if kinds.values[v.name] == COUNT}
    names = {v.name: unique(identifier(v.name), taken) for v in group}
    members = []
    for view in group:
        kind = kinds.values[view.name]
        counter = skeletons.get(skeleton(view.definition)) if kind == REAL else None
        members.append(Member(view.name, names[view.name], kind, names[counter.name] if counter else None))
    members.sort(key=lambda m: -SIZES[value_type(m.kind)][1])  # no gaps between them
    name = unique("scalars_" if not fields[first.name] else identifier(first.name), maps)
    key = fields[first.name]
    at = frozenset().union(*(held_columns(view, unstored) for view in group))
    held = tuple(f for i, f in enumerate(key) if i in at and f.kind == TEXT)
    undone = bool(unstored) and not first.inputs  # a cache is filled again
    return MapLayout(name, unique(camel(name), maps), key, tuple(members), len(first.inputs), held, undone)


def _fields(view: MapDefinition, kinds: Kinds, nullable: Columns) -> tuple[Field, ...]:
    taken: set[str] = set()
    names = [unique(identifier(v), taken) for v in view.inputs + view.outputs]
    columns = zip(names, kinds.columns[view.name], nullable[view.name], strict=True)
    return tuple(Field(name, kind, null) for name, kind, null in columns)


# -- which views share a map -------------------------------------------------------------------------------------------


def _groups(program: Program, fields: Mapping[str, tuple[Field, ...]]) -> list[list[MapDefinition]]:
    groups: list[list[MapDefinition]] = []
    places = {v.name: _places(v.name, program.triggers) for v in program.views}
    replaced = {v.name: _replacing(v.name, program.triggers) for v in program.views}
    for view in program.views:
        for group in groups:
            if all(_together(view, other, fields, places, replaced) for other in group):
                group.append(view)
                break
        else:
            groups.append([view])
    return groups


def _together(
    a: MapDefinition,
    b: MapDefinition,
    fields: Mapping[str, tuple[Field, ...]],
    places: Mapping[str, Mapping[str, object]],
    replaced: Mapping[str, Mapping[str, object]],
) -> bool:
    """The same kinds of keys, refreshed by the same events at the same places, replaced whole by the same ones."""
    mine, other = fields[a.name], fields[b.name]
    if a.is_cache or b.is_cache or [(f.kind, f.nullable) for f in mine] != [(f.kind, f.nullable) for f in other]:
        return False
    if not mine:
        return True
    shared = places[a.name].keys() & places[b.name].keys()
    agree = all(places[a.name][event] == places[b.name][event] for event in shared)
    return bool(shared) and agree and replaced[a.name] == replaced[b.name]


def _places(view: str, triggers: Iterable[Trigger]) -> dict[str, object]:
    """Event ↦ the parameters of it at which a view is refreshed, "·" for what the statement finds itself."""
    return {
        f"{t.event.kind}{t.event.relation}": tuple(v if v in t.event.params else "·" for v in s.target.outputs)
        for t in triggers
        if t.event.kind != "Δ"
        for s in t.statements
        if s.target.name == view
    }


def _replacing(view: str, triggers: Iterable[Trigger]) -> dict[str, object]:
    """Event ↦ the key of a view that it replaces whole: one loop over the map is for all that it replaces there."""
    return {
        f"{t.event.kind}{t.event.relation}": s.target.outputs
        for t in triggers
        for s in t.statements
        if s.target.name == view and s.op == ":="
    }
