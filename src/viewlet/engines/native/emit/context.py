"""What the parts of the emitter share: a program's maps and numbers, and the C++ function that is in the making."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from viewlet.engines.native.emit.identifiers import identifier, named, unique
from viewlet.engines.native.emit.layout import Field, Layout
from viewlet.engines.native.emit.limits import Limits
from viewlet.engines.native.emit.lines import Lines
from viewlet.engines.native.emit.pointers import AtHand
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.values import Cpp
from viewlet.loops.infer import Kinds
from viewlet.loops.steps import Block
from viewlet.program.kinds import Kind

WORDS = frozenset({"event", "entry", "change", "faults", "texts"})  # that every function may use

Body = Callable[[Block, dict[str, Cpp], AtHand], None]  # writes a block inside a loop or a test


@dataclass(frozen=True)
class Temporary:
    """A map that lives for one statement: the groups of an Exists, or a change that is collected first."""

    name: str
    key: tuple[Field, ...]
    kind: Kind


@dataclass(frozen=True)
class Shared:
    """What all functions of a program share; ``temporaries`` are the maps that they turned out to need."""

    layout: Layout
    kinds: Kinds
    limits: Limits
    terms: Terms = field(default_factory=Terms)
    temporaries: list[Temporary] = field(default_factory=list)
    groups: Iterator[int] = field(default_factory=count)

    def temporary(self, name: str) -> Temporary | None:
        return next((t for t in self.temporaries if t.name == name), None)


@dataclass
class Context:
    """One function. ``params``: the names that the event gives values to; ``deleting``: it takes a row out, and the
    statements are negative; ``types``: the kinds of the names in the statement at hand; ``written``: maps that change.
    """

    shared: Shared
    params: frozenset[str] = frozenset()
    deleting: bool = False
    out: Lines = field(default_factory=Lines)
    names: set[str] = field(default_factory=lambda: set(WORDS))
    types: Mapping[str, Kind] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names |= {n for m in self.layout.maps for n in (m.name, named("held", m.name), named("was", m.name))}
        self.names |= {order.name for m in self.layout.maps for order in m.orders.values()}

    @property
    def layout(self) -> Layout:
        return self.shared.layout

    @property
    def terms(self) -> Terms:
        return self.shared.terms

    def fresh(self, stem: str) -> str:
        """A name that the function does not have yet."""
        return unique(identifier(stem), self.names)
