"""Ordered reads as C++: sums over ranges, runs of running sums, slices and extrema, on the trees of a map's orders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from viewlet.algebra.query import Compare, View
from viewlet.algebra.terms import Term, Var, free
from viewlet.engines.native.emit.context import Body, Context
from viewlet.engines.native.emit.keys import column
from viewlet.engines.native.emit.layout import Field, MapLayout, Member, OrderLayout
from viewlet.engines.native.emit.lookups import Lookups
from viewlet.engines.native.emit.pointers import AtHand, Pointer, Spot
from viewlet.engines.native.emit.ranges import Ranges
from viewlet.engines.native.emit.reads import Reads
from viewlet.engines.native.emit.totals import Totals
from viewlet.engines.native.emit.values import Cpp, Scope, tree_key, type_of
from viewlet.loops.names import renamed, renamed_order
from viewlet.loops.steps import Block, Cut, EachSlice, Extremum, InRun, Loop, Order, RangeSum, Runs, Step
from viewlet.program.kinds import key_kind

REMEMBERED = ("double", "i64")  # the keys of trees that remember what they were asked


@dataclass(frozen=True)
class Read:
    """A read of a view in order: where its entries are, and the column that they are ordered by."""

    source: View
    order: OrderLayout
    map_: MapLayout
    member: Member

    @property
    def by(self) -> Field:
        return self.map_.key[self.order.key_at]

    @property
    def slice(self) -> frozenset[str]:
        """The names of what the tree is found by."""
        return frozenset(self.source.outputs[i] for i in self.order.slice_at)


@dataclass(frozen=True)
class OrderedReads:
    """Writes the ordered reads of one function; ``body`` writes what is done with a slice."""

    context: Context
    lookups: Lookups
    reads: Reads
    totals: Totals
    ranges: Ranges
    body: Body

    def step(self, step: RangeSum | Runs | Extremum, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        match step:
            case RangeSum():
                self.range_sums([step], scope, at_hand)
            case Runs():
                self.runs(step, scope, at_hand)
            case Extremum():
                self.extremum(step, scope, at_hand)

    # -- sums over ranges ----------------------------------------------------------------------------------------------

    def alike(self, step: Step) -> object:
        """What range sums must have in common to be added up in one descent."""
        if not isinstance(step, RangeSum):
            return None
        read = self.read(step.source, step.bound, step.order.key)
        inner = [cut.inner for cuts in step.order.ranges for cut in cuts if isinstance(cut, InRun)]
        names = {step.order.key: "§"} | {v: f"§{i}" for i, v in enumerate(dict.fromkeys(inner))}
        given = tuple(v if v in step.bound else None for v in step.source.outputs)
        return read.order.name, given, renamed_order(step.order, names)

    def range_sums(self, steps: list[RangeSum], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """Sums over the same ranges of one tree."""
        out, terms, first = self.context.out, self.context.terms, steps[0]
        read = self.read(first.source, first.bound, first.order.key)
        totals: dict[int, Cpp] = {}  # by lane
        for step in steps:
            lane = read.order.lane(self.context.layout[step.source.name][1])
            if lane not in totals:
                totals[lane] = self.totals.declare(step.var, scope)
            scope[step.var] = totals[lane]
        tree = self.tree(read, scope, at_hand)
        wanted, into = ", ".join(map(str, totals)), ", ".join(t.text for t in totals.values())
        with self.given(tree):
            for bounds in self.bounds(first.order, read, scope):
                sum_ = f"sum{'_both' if len(bounds) > 2 else ''}<{wanted}>"
                if len(bounds) == 2 and self.follows_from_sums(read, first.order):
                    sum_ = f"recall_sum<{read.order.remember(*totals)}, {wanted}>"
                # the word template: the tree may hang on the entry that a generic lambda is given
                out.add(f"{tree.member}template {sum_}(faults, {terms.view}, {', '.join(bounds)}, {into});")

    def bounds(self, order: Order, read: Read, scope: Scope) -> Iterator[tuple[str, ...]]:
        """Of each range; two that are not about runs are added up together."""
        bounds = self.ranges.bounds(order, read.order, read.by, scope)
        if len(order.ranges) == 2 and all(isinstance(cut, Cut) for cuts in order.ranges for cut in cuts):
            yield (*next(bounds), *next(bounds))
        yield from bounds

    def follows_from_sums(self, read: Read, order: Order) -> bool:
        """Whether an event leaves most of the trees alone and moves the bounds by little: then trees remember."""
        compares = [cut.compare for cuts in order.ranges for cut in cuts]
        names = frozenset().union(*(free(c.left) | free(c.right) for c in compares), read.slice)
        return tree_key(read.by.kind) in REMEMBERED and self.context.params.isdisjoint(names)

    # -- runs ----------------------------------------------------------------------------------------------------------

    def runs(self, step: Runs, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        context, out = self.context, self.context.out
        read = self.read(step.source, step.bound, step.key)
        name, total, holds = context.fresh(step.var), context.fresh(step.total), context.fresh("meets")
        kind = context.types[step.total]
        test = self.ranges.condition(step.test, step.total, {**scope, step.total: Cpp(total, kind, summed=True)}).text
        self.ranges.orders_of_runs[name] = read.order
        out.add(f"RunList<{tree_key(read.by.kind)}> {name};")
        out.add(f"const auto {holds} = [&]({type_of(kind)} {total}) {{ return {test}; }};")
        tree = self.tree(read, scope, at_hand)
        lane = read.order.lane(read.member, "AFTER" if step.after else "BEFORE")
        runs = f"runs<{lane}, {'true' if step.after else 'false'}>"
        if tree_key(read.by.kind) in REMEMBERED and context.params.isdisjoint(read.slice):
            runs = f"recall_{runs.replace('<', f'<{read.order.remember(lane, after=step.after)}, ')}"
        call = f"{tree.member}template {runs}(faults, {context.terms.view}, {holds}, {name});"
        out.add(f"if ({tree.text}) {call}" if tree.may_be_null else call)
        if tree.may_be_null:
            out.add(f"else if ({holds}({{}})) {name}.push({{}});  // no keys: the sum over nothing")
        scope[step.var] = Cpp(name, key_kind(read.by.kind))

    # -- loops ---------------------------------------------------------------------------------------------------------

    def each_slice(self, steps: list[EachSlice], scope: Scope, at_hand: AtHand) -> None:
        """The slices of one index; what several steps do with them is done together."""
        first, names = steps[0], steps[0].source.outputs
        at = _slice_of(first)
        read = self.read(first.source, frozenset(names[i] for i in at), first.key)
        order, map_ = read.order, read.map_
        given = tuple(i for i in at if names[i] in first.bound)
        entry = self.context.fresh(f"{map_.name}_slice")
        with self.lookups.representable(map_, names, given, scope) as key:
            slices = f"{order.name}.slices.all()"
            if given:
                probe = ", ".join(f".{map_.key[i].name} = {key[i].text}" for i in given)
                slices = f"{order.name}.slices.slice<{order.slice_index(tuple(map(at.index, given)))}>({{{probe}}})"
            with self.context.out.loop(f"for (auto* {entry} : {slices})", lookups=1 if given else 0):
                columns = {names[i]: column(f"{entry}->key", map_.key[i]) for i in at if i not in given}
                tree = {Spot(order.name, tuple(names[i] for i in at)): Pointer(f"(&{entry}->values.tree)")}
                self.body(_together(steps), {**scope, **columns}, {**at_hand, **tree})

    def slices_alike(self, step: EachSlice) -> object:
        names = step.source.outputs
        read = self.read(step.source, frozenset(names[i] for i in _slice_of(step)), step.key)
        return read.order.name, tuple(n if n in step.bound else None for n in names)

    def loop(self, step: Loop, scope: Scope, at_hand: AtHand) -> None:
        """The entries in the ranges of a loop."""
        assert isinstance(step.source, View)
        assert step.order is not None
        out, read = self.context.out, self.read(step.source, step.bound, step.order.key)
        read.order.lane(read.member)
        tree = self.tree(read, scope, at_hand)
        map_name, entry, turn = read.map_.name, self.context.fresh(read.map_.name), self.context.fresh("turn")
        with self.given(tree):
            with out.loop(f"const auto {turn} = [&](auto* {entry})", end="};"):
                self.reads.turn(step, read.map_, Pointer(entry), scope, at_hand)
            for up, down in self.ranges.bounds(step.order, read.order, read.by, scope):
                out.add(f"for (u32 id : {tree.member}range({up}, {down})) {turn}(&{map_name}.named(id));")

    def extremum(self, step: Extremum, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """An order of its own for the view: others of the map may have entries where it has none."""
        read = self.read(step.source, step.bound, step.key, alone=True)
        if step.place is not None:
            return self.placed(step, step.place, read, scope, at_hand)
        read.order.lane(read.member)
        tree = self.tree(read, scope, at_hand)
        name, by = self.context.fresh(step.var), read.by
        self.context.out.add(f"Opt<{type_of(by.kind)}> {name};")
        there = f"{tree.text} && " if tree.may_be_null else ""
        entry = f"{read.map_.name}.named({tree.member}{'greatest' if step.greatest else 'least'}())"
        self.context.out.add(f"if ({there}!{tree.member}is_empty()) {name} = {entry}.key.{by.name};")
        scope[step.var] = Cpp(name, by.kind, optional=True)

    def placed(self, step: Extremum, place: Term, read: Read, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """The key at which a running sum of counts exceeds the place: the first of the only run in which it does."""
        context, by = self.context, read.by
        tree, name, runs = self.tree(read, scope, at_hand), context.fresh(step.var), context.fresh("runs")
        total, holds = context.fresh("total"), context.fresh("exceeds")
        within = {**scope, total: Cpp(total, read.member.kind, summed=True)}
        test = self.ranges.holds(Cut(Compare(">", Var(total), place), True, True, False), within)
        context.out.add(f"Opt<{type_of(by.kind)}> {name};")
        with self.given(tree):
            context.out.add(f"RunList<{tree_key(by.kind)}> {runs};")
            context.out.add(f"const auto {holds} = [&]({type_of(read.member.kind)} {total}) {{ return {test}; }};")
            lane = read.order.lane(read.member, "AFTER" if step.greatest else "BEFORE")
            after = "true" if step.greatest else "false"
            call = f"template runs<{lane}, {after}>(faults, {context.terms.view}, {holds}, {runs});"
            context.out.add(f"{tree.member}{call}")
            context.out.add(f"for (const auto& run : {runs}) if (run.has_inside) {name} = run.inside;")
        scope[step.var] = Cpp(name, by.kind, optional=True)

    # -- trees ---------------------------------------------------------------------------------------------------------

    def read(self, source: View, bound: frozenset[str], key: str, alone: bool = False) -> Read:
        map_, member = self.context.layout[source.name]
        at = tuple(i for i, n in enumerate(source.outputs) if n in bound)
        order = map_.order(at, source.outputs.index(key), member if alone else None)
        return Read(source, order, map_, member)

    def tree(self, read: Read, scope: Scope, at_hand: AtHand) -> Pointer:
        """The tree of a slice."""
        order, names, out = read.order, read.source.outputs, self.context.out
        if not order.slice_at:
            return Pointer(f"(&{order.name}.only())")
        known = at_hand.get(Spot(order.name, tuple(names[i] for i in order.slice_at)))
        if known is not None:
            return known
        name = self.context.fresh("tree")
        out.add(f"{order.type_name}::Tree* {name}{{}};")
        with self.lookups.representable(read.map_, names, order.slice_at, scope) as key:
            slice_ = ", ".join(key[i].text for i in order.slice_at)
            out.add(f"{name} = {order.name}.find({{{slice_}}});", lookups=1)
        return Pointer(name, may_be_null=True)

    @contextmanager
    def given(self, tree: Pointer) -> Iterator[None]:
        """Where there is a tree."""
        if not tree.may_be_null:
            yield
            return
        with self.context.out.inside(f"if ({tree.text})"):
            yield


def _slice_of(step: EachSlice) -> tuple[int, ...]:
    names = step.source.outputs
    return tuple(i for i, n in enumerate(names) if n != step.key and n not in step.summed)


def _together(steps: list[EachSlice]) -> Block:
    first, body = steps[0], steps[0].body
    for step in steps[1:]:
        body += renamed(step.body, dict(zip(step.source.outputs, first.source.outputs, strict=True)))
    return body
