"""Reads of maps as C++: an entry by its key, or the entries of a slice."""

from __future__ import annotations

from dataclasses import dataclass

from viewlet.engines.native.emit.context import Body, Context
from viewlet.engines.native.emit.keys import column, each_entry
from viewlet.engines.native.emit.layout import MapLayout, Member
from viewlet.engines.native.emit.lookups import Lookups
from viewlet.engines.native.emit.pointers import AtHand, Pointer, Spot, only_entry
from viewlet.engines.native.emit.values import Cpp, Scope
from viewlet.loops.names import columns_of
from viewlet.loops.steps import Get, Loop
from viewlet.program.kinds import COUNT, REAL


@dataclass(frozen=True)
class Reads:
    """Writes the reads of one function; ``body`` writes what is done with an entry."""

    context: Context
    lookups: Lookups
    body: Body

    def get(self, step: Get, scope: Scope, at_hand: AtHand) -> None:
        out = self.context.out
        map_, member = self.context.layout[step.source.name]
        names = columns_of(step.source)
        with self.lookups.representable(map_, names, tuple(range(len(names))), scope) as key:
            self.lookups.fill(map_, key)
            known = only_entry(map_.name) if map_.is_single else at_hand.get(Spot(map_.name, names))
            entry = known or self.find(map_, names, key)
            slot = f"{entry.member}values.{member.name}"
            there = f"{entry.text} && " if entry.may_be_null else ""
            with out.inside(f"if ({there}!is_zero({slot}))"):
                here = {} if map_.is_single else {Spot(map_.name, names): Pointer(entry.text)}
                self.body(step.body, {**scope, step.value: _multiplicity(slot, member)}, {**at_hand, **here})

    def find(self, map_: MapLayout, names: tuple[str, ...], key: dict[int, Cpp]) -> Pointer:
        """A variable that points to an entry, if there is one."""
        name = self.context.fresh(map_.name)
        place = self.lookups.place(map_, names, key)
        self.context.out.add(lambda: f"auto* {name} = {place.found};", lookups=1)
        return Pointer(name, may_be_null=True)

    def loop(self, steps: list[Loop], scope: Scope, at_hand: AtHand) -> None:
        """Loops over the same entries, each for its own view of the map."""
        source, bound = steps[0].source, steps[0].bound
        map_, _ = self.context.layout[source.name]
        names = columns_of(source)
        positions = tuple(i for i, n in enumerate(names) if n in bound)
        with self.lookups.representable(map_, names, positions, scope) as key:
            self.lookups.fill(map_, key)
            entry = self.context.fresh(map_.name)
            self.lookups.foresee_slice(map_, names, positions, key)
            head = f"for ({each_entry(map_, entry, positions, key)})"
            with self.context.out.loop(head, lookups=1 if positions else 0):
                for step in steps:
                    self.turn(step, map_, Pointer(entry), scope, at_hand)

    def turn(self, step: Loop, map_: MapLayout, entry: Pointer, scope: Scope, at_hand: AtHand) -> None:
        """What a loop does with one entry."""
        _, member = self.context.layout[step.source.name]
        names, slot = columns_of(step.source), f"{entry.member}values.{member.name}"
        inner, tests = {**scope, step.value: _multiplicity(slot, member)}, [f"!is_zero({slot})"]
        for i, n in enumerate(names):
            value = column(f"{entry.member}key", map_.key[i])
            if n in names[:i] and n not in step.bound:  # R(x, x)
                tests.append(self.context.terms.identical(inner[n], value))
            elif n not in step.bound:
                inner[n] = value
        with self.context.out.inside(f"if ({' && '.join(tests)})"):
            self.body(step.body, inner, {**at_hand, Spot(map_.name, names): entry})


def _multiplicity(slot: str, member: Member) -> Cpp:
    """How often an entry counts."""
    kind = member.kind
    return Cpp(f"{slot}.value()" if kind == REAL else slot, kind, counts=kind == COUNT, summed=kind != COUNT)
