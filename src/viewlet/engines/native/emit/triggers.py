"""Triggers as C++ functions: each pass over the statements in its turn, then the maps are swept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewlet.engines.native.emit.caches import Caches
from viewlet.engines.native.emit.changes import ENTRY, Change
from viewlet.engines.native.emit.context import Context, Shared, Temporary
from viewlet.engines.native.emit.identifiers import named, plain
from viewlet.engines.native.emit.keys import column, each_entry, view_constant
from viewlet.engines.native.emit.layout import Field, Layout, MapLayout, Member, index_slices, ordered_maps
from viewlet.engines.native.emit.lines import Code
from viewlet.engines.native.emit.nest import Nest, Sink
from viewlet.engines.native.emit.pointers import Pointer, only_entry
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.values import Cpp, Scope, value_type
from viewlet.loops.fuse import Turn
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import SIGN, Plan, fill_block, plan
from viewlet.loops.steps import Block, Emit
from viewlet.program.kinds import ONE
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import MapDefinition, Program, Statement, Trigger


@dataclass
class Triggers:
    """Writes the functions of a program."""

    program: Program
    lowering: Lowering
    shared: Shared
    plans: dict[tuple[str, str, bool], Plan] = field(default_factory=dict)
    fills: dict[str, Block] = field(default_factory=dict)
    foreseen: dict[str, list[str]] = field(default_factory=dict)  # by relation: what fetches the entries of its events

    @property
    def layout(self) -> Layout:
        return self.shared.layout

    @property
    def terms(self) -> Terms:
        return self.shared.terms

    def nest(self, params: tuple[str, ...] = (), deleting: bool = False) -> Nest:
        return Nest(Context(self.shared, frozenset(params), deleting))

    def plan(self, trigger: Trigger, signed: bool) -> Plan:
        """What a trigger does, and in which order; the maps get the indexes that it goes through."""
        key = trigger.event.kind, trigger.event.relation, signed
        if key not in self.plans:
            params = frozenset(trigger.event.params)
            planned = plan(self.program, trigger, self.lowering, signed=signed, place=self.layout.map_of)
            targets = [s.target for s in trigger.statements if s.target.outputs and params.issuperset(s.target.outputs)]
            written = frozenset(self.layout.map_of(target.name) for target in targets)
            for block in planned.blocks:
                index_slices(self.layout, block, written)
            self.plans[key] = planned
        return self.plans[key]

    def trigger(self, trigger: Trigger, fields: tuple[Field, ...], signed: bool) -> Code:
        """The body of the function for one event, or with a ``sign`` for an event and its opposite."""
        params = trigger.event.params
        planned = self.plan(trigger, signed)
        first, turns = planned.first, planned.turns
        nest = self.nest(params, deleting=not signed and trigger.event.kind == "-")
        scope = {p: column("event", f) for p, f in zip(params, fields, strict=True)}
        if signed:
            scope[SIGN] = Cpp("sign", ONE, counts=True)
        if first:
            self.terms.view = view_constant(trigger.statements[0].target.name)
            nest.out.add("// what several statements add up")
            self.put_in_order(nest, first)
            scope |= nest.totals_of(first, scope)
        alone = [(i, turn) for i, turn in enumerate(turns) if turn.collect and not replaces(turn)]
        collected = {i: self.temporaries_of(i, trigger, turn) for i, turn in alone}
        for i, turn in alone:
            if turn.statements[0].buffered:
                self.evaluate(nest, turn, collected[i], scope)
        replaced = replaced_together(turns)
        for i, turn in enumerate(turns):
            if i in replaced:
                self.replace(nest, replaced[i], params, scope)
            if not replaces(turn):
                self.comment(nest, turn, params)
                self.turn(nest, turn, collected.get(i, {}), scope)
        self.sweep(nest)
        self.foreseen.setdefault(trigger.event.relation, []).extend(nest.lookups.places.foreseen())
        return nest.code()

    def turn(self, nest: Nest, turn: Turn, collected: Mapping[str, Temporary], scope: Scope) -> None:
        """One pass: its changes go into the views at once, or when all of them are there."""
        self.terms.view = view_constant(turn.statements[0].target.name)
        if not turn.collect:
            self.put_in_order(nest, turn.block)
            nest.statement(turn.block, scope, nest.changes.add_to_view, in_place=True)
            return
        if not turn.statements[0].buffered:
            self.evaluate(nest, turn, collected, scope)
        for statement in turn.statements:
            self.apply(nest, statement, collected[statement.target.name], scope)

    def sweep(self, nest: Nest) -> None:
        """At the end orders are up to date, and entries that became nothing are erased."""
        for map_ in self.layout.maps:
            if map_.orders and map_.name in nest.context.written:
                nest.out.add(f"{named('order', map_.name)}(true);")
        for name in sorted(nest.context.written):
            nest.out.add(f"{name}.sweep();")

    def put_in_order(self, nest: Nest, block: Block) -> None:
        """Before a map is read in order, its trees learn what changed."""
        for map_ in ordered_maps(self.layout, block):
            nest.out.add(f"{named('order', map_.name)}();")

    def comment(self, nest: Nest, turn: Turn, params: tuple[str, ...]) -> None:
        """The calculus of the statements above their code."""
        for statement in turn.statements:
            for line in statement_to_text(statement, params).splitlines():
                nest.out.add(f"// {line}")

    # -- views that are replaced whole ---------------------------------------------------------------------------------

    def replace(self, nest: Nest, turns: list[Turn], params: tuple[str, ...], scope: Scope) -> None:
        """In place: all values become nothing, the new ones are added up. None of the views is read meanwhile."""
        targets: dict[str, tuple[MapLayout, list[Member]]] = {}
        for turn in turns:
            self.comment(nest, turn, params)
            self.put_in_order(nest, turn.block)
            for statement in turn.statements:
                map_, member = self.layout[statement.target.name]
                targets.setdefault(map_.name, (map_, []))[1].append(member)
        for map_, members in targets.values():
            with self.each(nest, map_) as entry:
                nest.changes.note(map_, members, entry)
                for member in members:
                    nest.changes.clear(member, entry)
        for turn in turns:
            self.terms.view = view_constant(turn.statements[0].target.name)
            nest.statement(turn.block, scope, nest.changes.add_to_replaced, in_place=True)
        for map_, members in targets.values():
            with self.each(nest, map_) as entry:
                nest.changes.settle(map_, members, entry)

    @contextmanager
    def each(self, nest: Nest, map_: MapLayout) -> Iterator[Pointer]:
        """For each entry of a map."""
        if map_.is_single:
            yield only_entry(map_.name)
            return
        entry = nest.context.fresh(map_.name)
        with nest.out.inside(f"for ({each_entry(map_, entry, (), {})})"):
            yield Pointer(entry)

    # -- changes that are complete before they are applied -------------------------------------------------------------

    def temporaries_of(self, i: int, trigger: Trigger, turn: Turn) -> dict[str, Temporary]:
        return {s.target.name: self.into(i, trigger, s) for s in turn.statements}

    def into(self, i: int, trigger: Trigger, statement: Statement) -> Temporary:
        """What holds the change: a map with the target's key, or a variable where it has none."""
        map_, member = self.layout[statement.target.name]
        kind = "insert" if trigger.event.kind == "+" else "delete"
        name = named(
            f"change_{i}_of", member.name, *([f"on_{kind}", plain(trigger.event.relation)] if map_.key else [])
        )
        temporary = Temporary(name, map_.key, member.kind)
        if map_.key:
            self.shared.temporaries.append(temporary)
        return temporary

    def evaluate(self, nest: Nest, turn: Turn, into: Mapping[str, Temporary], scope: Scope) -> None:
        """The changes of a pass; several where each replaces a map whole."""
        self.put_in_order(nest, turn.block)
        for temporary in into.values():
            cleared = f"{value_type(temporary.kind)} {temporary.name}{{}};"
            nest.out.add(f"{temporary.name}.clear();" if temporary.key else cleared)
        statement = turn.statements[0]
        map_, _ = self.layout[statement.target.name]
        finite = statement.op == "+="
        inputs = statement.target.inputs

        def collect(steps: list[Emit], inside: Scope, _: object) -> None:
            for step in steps:
                self.terms.view = view_constant(step.view)
                nest.changes.collect(into[step.view], inputs + step.key, step.product, inside, finite=finite)

        if not inputs:
            nest.statement(turn.block, scope, collect)
            return
        started = into[statement.target.name]
        nest.out.add(f"const i64 started_{started.name} = ++now;")
        with Caches(nest.context, nest.changes).held(map_, statement, started, scope) as (_, given):
            nest.statement(turn.block, {**scope, **given}, collect)

    def apply(self, nest: Nest, statement: Statement, into: Temporary, scope: Scope) -> None:
        map_, member = self.layout[statement.target.name]
        self.terms.view = view_constant(member.view)
        if map_.inputs:
            Caches(nest.context, nest.changes).refresh(statement, into, scope)
        if map_.is_single:
            self.apply_single(nest, map_, member, statement, into)
            return
        if statement.op == ":=" and not map_.inputs:
            e = nest.context.fresh("old")
            with nest.out.inside(f"for (auto* {e} = {map_.name}.first(); {e}; {e} = {map_.name}.next({e}))"):
                nest.changes.erase(map_, member, Pointer(e))
        c = nest.context.fresh("collected")
        with (
            nest.out.inside(f"for (auto* {c} = {into.name}.first(); {c}; {c} = {into.name}.next({c}))"),
            nest.out.inside(f"if (!is_zero({c}->values.sum))"),
        ):
            key = ", ".join(f"{c}->key.{f.name}" for f in map_.key)
            nest.out.add(f"auto& {ENTRY.text} = {map_.name}.at({{{key}}});", lookups=1)
            nest.changes.increase(map_, member, ENTRY, Change(f"{c}->values.sum"))

    def apply_single(self, nest: Nest, map_: MapLayout, member: Member, statement: Statement, into: Temporary) -> None:
        entry = only_entry(map_.name)
        if statement.op == ":=":
            nest.changes.note(map_, [member], entry)
            nest.changes.clear(member, entry)
        nest.changes.increase(map_, member, entry, Change(into.name))

    # -- view caches ---------------------------------------------------------------------------------------------------

    def fill(self, view: MapDefinition) -> Code:
        """The body of the function that computes what a view cache does not hold."""
        map_, member = self.layout[view.name]
        nest = self.nest()
        scope = {v: column("given", f) for v, f in zip(view.inputs, map_.key, strict=False)}
        block = self.fill_block(view)
        held = named("held", map_.name)
        nest.out.add(f"if (auto* known = {held}.find(given); known && known->values.there) return;", lookups=1)
        nest.out.add(f"{held}.at(given).values = {{++now, true}};", lookups=1)
        self.put_in_order(nest, block)
        nest.statement(block, scope, self.filling(nest, map_, member, view))
        return nest.code()

    def fill_block(self, view: MapDefinition) -> Block:
        if view.name not in self.fills:
            self.fills[view.name] = fill_block(view, self.lowering)
            index_slices(self.layout, self.fills[view.name])
        return self.fills[view.name]

    def filling(self, nest: Nest, map_: MapLayout, member: Member, view: MapDefinition) -> Sink:
        def fill(steps: list[Emit], scope: Scope, _: object) -> None:
            self.terms.view = view_constant(view.name)
            for step in steps:
                with nest.changes.made(map_, view.inputs + step.key, scope) as entry:
                    change = nest.changes.change(step.product, member.kind, scope)
                    # finite: what a cache holds is taken out row by row
                    nest.changes.increase(map_, member, entry, change, finite=True)

        return fill


def replaces(turn: Turn) -> bool:
    """All that the pass writes is replaced whole; a late increment is not."""
    return turn.collect and turn.fusible and all(s.op == ":=" for s in turn.statements)


def replaced_together(turns: tuple[Turn, ...]) -> dict[int, list[Turn]]:
    """Passes in a row that replace views which none of them reads, by the place of the first."""
    together: dict[int, list[Turn]] = {}
    start: int | None = None
    for i, turn in enumerate(turns):
        if not replaces(turn):
            start = None
            continue
        if start is None or any(turn.reads & other.writes or turn.writes & other.reads for other in together[start]):
            start = i
        together.setdefault(start, []).append(turn)
    return together
