"""Loop nests as C++: the steps of :mod:`viewlet.loops.steps`, each handed to the part of the emitter that writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from typing_extensions import assert_never

from viewlet.engines.native.emit.changes import Changes
from viewlet.engines.native.emit.context import Context
from viewlet.engines.native.emit.keys import whole_key
from viewlet.engines.native.emit.layout import MapLayout
from viewlet.engines.native.emit.lines import Code, Lines
from viewlet.engines.native.emit.lookups import Lookups, can_fail
from viewlet.engines.native.emit.ordered import OrderedReads
from viewlet.engines.native.emit.places import Place, declaration
from viewlet.engines.native.emit.pointers import AtHand, Pointer, Spot
from viewlet.engines.native.emit.ranges import Ranges
from viewlet.engines.native.emit.reads import Reads
from viewlet.engines.native.emit.totals import Totals
from viewlet.engines.native.emit.values import Cpp, Scope
from viewlet.loops.names import columns_of
from viewlet.loops.steps import (
    Add,
    Block,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    Let,
    Loop,
    Nonzero,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)

Sink = Callable[[list[Emit], Scope, AtHand], None]  # takes the changes at one entry


@dataclass
class Nest:
    """Writes the nests of one function. ``sink`` takes its changes; ``in_place``: they go into views at once."""

    context: Context
    lookups: Lookups = field(init=False)
    changes: Changes = field(init=False)
    totals: Totals = field(init=False)
    reads: Reads = field(init=False)
    ordered: OrderedReads = field(init=False)
    sink: Sink = field(init=False)
    in_place: bool = False

    def __post_init__(self) -> None:
        self.lookups = Lookups(self.context)
        self.changes = Changes(self.context, self.lookups)
        self.totals = Totals(self.context, self.changes, self.block)
        self.reads = Reads(self.context, self.lookups, self.block)
        ranges = Ranges(self.context)
        self.ordered = OrderedReads(self.context, self.lookups, self.reads, self.totals, ranges, self.block)

    @property
    def out(self) -> Lines:
        return self.context.out

    def code(self) -> Code:
        """The body of the function: places that several statements use come first."""
        places = self.lookups.places.declared(self.context.fresh)
        return Code(tuple(f"    {line}" for line in places)) + self.out.code()

    # -- blocks --------------------------------------------------------------------------------------------------------

    def statement(self, block: Block, scope: Scope, sink: Sink, *, in_place: bool = False) -> None:
        self.sink, self.in_place = sink, in_place
        self.learn_types(block, scope)
        self.block(block, dict(scope), {})

    def totals_of(self, block: Block, scope: Scope) -> dict[str, Cpp]:
        """Totals for all that follows, by name."""
        self.learn_types(block, scope)
        inner = dict(scope)
        self.block(block, inner, {})
        return {name: cpp for name, cpp in inner.items() if name not in scope}

    def learn_types(self, block: Block, scope: Scope) -> None:
        kinds = {name: cpp.kind for name, cpp in scope.items()}
        self.context.types = self.context.shared.kinds.block(block, kinds)

    def block(self, block: Block, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        emits = [step for step in block if isinstance(step, Emit)]
        sums = [(step, self.ordered.alike(step)) for step in block if isinstance(step, RangeSum)]
        done: set[str] = set()
        at_hand = self.with_places(block, scope, at_hand)
        for one, run in groupby(block, key=self.slice_of):
            if one is not None:
                self.neighbours(list(run), scope, at_hand)
                continue
            for step in run:
                if not isinstance(step, RangeSum):
                    self.step_or_emit(step, emits, scope, at_hand)
                elif step.var not in done:
                    together = [other for other, alike in sums if alike == self.ordered.alike(step)]
                    done.update(other.var for other in together)
                    self.ordered.range_sums(together, scope, at_hand)

    def with_places(self, block: Block, scope: Scope, at_hand: AtHand) -> AtHand:
        """An entry that several steps of a block change, each under a condition of its own, is looked up once."""
        if not self.in_place:
            return at_hand
        places: dict[Spot, Pointer] = {}
        once: set[Spot] = set()
        for map_, key in self.changed_in(block):
            at, plainly = Spot(map_.name, key, made=True), Spot(map_.name, key)
            known = map_.is_single or self.context.params.issuperset(key) or not scope.keys() >= set(key)
            if at in once and not known and {at, plainly}.isdisjoint({*places, *at_hand}):
                name, fields = self.context.fresh(f"{map_.name}_here"), self.lookups.key_of(map_, key, scope)
                if not can_fail(fields):
                    place = Place(map_.name, whole_key(map_, fields), name=name)
                    self.out.add(declaration(place))
                    places[at] = Pointer(place.made, is_object=True, lookups=1)
            once.add(at)
        return {**at_hand, **places}

    def changed_in(self, block: Block) -> Iterator[tuple[MapLayout, tuple[str, ...]]]:
        """The entries that a block changes: by itself, each with all its changes once, and under its conditions."""
        inside = [s.body for s in block if isinstance(s, (Nonzero, Test, Get))]
        for steps in (block, *inside):
            emits = (step for step in steps if isinstance(step, Emit))
            entries = dict.fromkeys((self.context.layout.map_of(e.view), e.key, e.view) for e in emits)
            yield from {(m, key): (self.context.layout[view][0], key) for m, key, view in entries}.values()

    def neighbours(self, steps: list[Step], scope: Scope, at_hand: AtHand) -> None:
        """Loops over the same entries, or over the same slices."""
        slices = [step for step in steps if isinstance(step, EachSlice)]
        if slices:
            self.ordered.each_slice(slices, scope, at_hand)
        else:
            self.reads.loop([step for step in steps if isinstance(step, Loop)], scope, at_hand)

    def slice_of(self, step: Step) -> object:
        """What a loop goes over: neighbours over the same entries of one map become one loop."""
        if isinstance(step, EachSlice):
            return self.ordered.slices_alike(step)
        if not isinstance(step, Loop) or step.order is not None:
            return None
        names = columns_of(step.source)
        return self.context.layout.map_of(step.source.name), tuple(n if n in step.bound else None for n in names)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step_or_emit(self, step: Step, emits: list[Emit], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        if not isinstance(step, Emit):
            self.step(step, scope, at_hand)
            return
        together = [e for e in emits if self.same_entry(e, step)]
        if step is together[-1]:
            self.sink(together, scope, at_hand)

    def same_entry(self, a: Emit, b: Emit) -> bool:
        """Changes of views in one map, at one key: they are made together, where the last of them stands."""
        layout = self.context.layout
        return a.key == b.key and layout.map_of(a.view) == layout.map_of(b.view)

    def step(self, step: Step, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """``scope`` gets the names that a step defines for those after it; bodies have scopes of their own."""
        match step:
            case Let():
                self.let(step, scope)
            case Same() | Test() | Nonzero():
                with self.out.inside(f"if ({self.condition(step, scope)})"):
                    self.block(step.body, dict(scope), at_hand)
            case Get():
                self.reads.get(step, scope, at_hand)
            case Loop() if step.order is not None:
                self.ordered.loop(step, scope, at_hand)
            case Loop() | EachSlice():
                self.neighbours([step], scope, at_hand)
            case RangeSum() | Runs() | Extremum():
                self.ordered.step(step, scope, at_hand)
            case Total():
                self.totals.total(step, scope, at_hand)
            case Add():
                self.totals.add(step, scope)
            case Group():
                self.totals.group(step, scope, at_hand)
            case Put():
                self.totals.put(step, scope)
            case EachGroup():
                self.totals.each_group(step, scope, at_hand)
            case Emit():
                self.sink([step], scope, at_hand)
            case _:
                assert_never(step)

    def let(self, step: Let, scope: dict[str, Cpp]) -> None:
        terms = self.context.terms
        value = terms.bounded(terms.term(step.term, scope, step.plain))
        held = terms.held(value, self.context.types[step.var], value.optional)
        name = self.context.fresh(step.var)
        self.out.add(f"const {held.type} {name} = {held.text};")
        scope[step.var] = Cpp(name, held.kind, held.optional)

    def condition(self, step: Test | Same | Nonzero, scope: Scope) -> str:
        terms = self.context.terms
        match step:
            case Nonzero(var):
                return f"!is_zero({scope[var].text})"
            case Same(var, term, plain):
                return terms.identical(scope[var], terms.term(term, scope, plain))
            case Test():
                return terms.compared(step.compare, step.plain, scope)
