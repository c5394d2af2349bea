"""Triggers that only add their rows up, as C++ that takes a whole batch: the bulk updates of §5.1.

Such a trigger is linear in the batch: Q += Sum_A(ΔR ⋈ f), where f is of the row alone. So the rows are summed up by A
first, and each A of the batch is looked up once. The function looks before it does anything: it returns false where one
event of the batch could fail, or where the outcome could tell in which order they came. Then each has its trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewlet.engines.native.emit.changes import ENTRY, Change
from viewlet.engines.native.emit.identifiers import capital, named, plain
from viewlet.engines.native.emit.keys import column, view_constant, whole_key
from viewlet.engines.native.emit.layout import Field, MapLayout, Member
from viewlet.engines.native.emit.lines import Code, function
from viewlet.engines.native.emit.lookups import can_fail
from viewlet.engines.native.emit.nest import Nest
from viewlet.engines.native.emit.pointers import AtHand, only_entry
from viewlet.engines.native.emit.structs import row_type
from viewlet.engines.native.emit.triggers import Triggers
from viewlet.engines.native.emit.values import Cpp, Scope, type_of
from viewlet.loops.fuse import Turn
from viewlet.loops.pipeline import SIGN, Plan
from viewlet.loops.steps import Emit, Let, Same, Test, blocks
from viewlet.program.kinds import ONE, REAL
from viewlet.program.trigger import Trigger

OF_THE_ROW = (Let, Same, Test, Emit)  # steps that read no map
HEADER = "summed"


@dataclass
class Summing:
    """The streams whose batches are summed up; ``types`` before the struct of the program, the rest into it."""

    triggers: Triggers
    relations: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    functions: list[Code] = field(default_factory=list)

    @staticmethod
    def of(triggers: Triggers, signed: Mapping[str, Trigger], rows: Mapping[str, tuple[Field, ...]]) -> Summing:
        """Of the triggers that run with a sign, by stream. All are planned: it is known which maps are read."""
        summing = Summing(triggers)
        for relation, trigger in signed.items():
            if trigger.statements and summing.adds_up_only(trigger):
                summing.write(trigger, rows[relation])
        return summing

    @property
    def headers(self) -> frozenset[str]:
        return frozenset({HEADER} if self.relations else ())

    def adds_up_only(self, trigger: Trigger) -> bool:
        """Nobody reads its maps before the batch is over, or writes to them for another stream."""
        layout, limits = self.triggers.layout, self.triggers.shared.limits
        targets = [s.target.name for s in trigger.statements]
        plans = self.triggers.plans.items()
        used = {view for _, plan in plans for turn in plan.turns for view in turn.reads}
        others = [plan for (_, relation, _), plan in plans if relation != trigger.event.relation]
        used |= {view for plan in others for turn in plan.turns for view in turn.writes}
        planned = self.triggers.plan(trigger, True)
        return (
            not planned.first
            and all(map(_is_sum, planned.turns))
            and {*map(self.place_of, targets)}.isdisjoint(map(self.place_of, used))
            and not any(limits.keys.get(view) for view in targets)
            and not any(m.orders or m.inputs for m in (layout[view][0] for view in targets))
        )

    def place_of(self, view: str) -> str:
        """What is done at once: entries of a map are. Numbers without a key are in one map, and each is for itself."""
        map_, _ = self.triggers.layout[view]
        return view if map_.is_single else map_.name

    def write(self, trigger: Trigger, fields: tuple[Field, ...]) -> None:
        one = OneStream(self.triggers, trigger, fields)
        self.relations.append(trigger.event.relation)
        self.types += [one.sums_type(map_) for map_ in one.maps]
        self.members += [f"Patience {one.patience};", *one.groups()]
        self.functions.append(one.function())


@dataclass
class OneStream:
    """Writes the function that takes the events of one stream."""

    triggers: Triggers
    trigger: Trigger
    fields: tuple[Field, ...]
    nest: Nest = field(init=False)
    shared: dict[tuple[str, str], str] = field(default_factory=dict)  # groups that the event alone gives

    def __post_init__(self) -> None:
        self.nest = self.triggers.nest(self.trigger.event.params)
        self.nest.context.names |= {"own", "at", "first", "last", "sign", "group", "tame"}

    @property
    def planned(self) -> Plan:
        return self.triggers.plan(self.trigger, True)

    @property
    def relation(self) -> str:
        return plain(self.trigger.event.relation)

    @property
    def patience(self) -> str:
        return f"patience_{self.relation}"

    @property
    def written(self) -> dict[str, list[Member]]:
        """By map, what is added up."""
        written: dict[str, list[Member]] = {}
        for statement in self.trigger.statements:
            map_, member = self.triggers.layout[statement.target.name]
            members = written.setdefault(map_.name, [])
            if member not in members:
                members.append(member)
        return written

    @property
    def maps(self) -> list[MapLayout]:
        return [m for m in self.triggers.layout.maps if m.name in self.written]

    def counts(self, map_: MapLayout, member: Member) -> bool:
        """Whether a sum of doubles goes where this is 0."""
        return any(m.counted_by == member.name for m in map_.members)

    # -- types ---------------------------------------------------------------------------------------------------------

    def sums_type(self, map_: MapLayout) -> str:
        members = (f"    {self.sum_type(map_, m)} {m.name}{{}};" for m in self.written[map_.name])
        what = f"what a batch adds to {map_.shown} at one key"
        return "\n".join([f"struct {self.type_name(map_)} {{  // {what}", *members, "};"]) + "\n"

    def type_name(self, map_: MapLayout) -> str:
        """Numbers without a key are in one map, also where they are of several streams."""
        return f"{map_.type_name}SumsOf{capital(self.relation)}"

    def sum_type(self, map_: MapLayout, member: Member) -> str:
        if member.kind == REAL:
            return "AddedReal"
        return "Counted" if self.counts(map_, member) else f"Added<{type_of(member.kind)}>"

    def groups(self) -> Iterator[str]:
        for map_ in self.maps:
            if not map_.is_single:
                yield f"Groups<{map_.type_name}Key, {self.type_name(map_)}> {_groups(map_)};"

    # -- the function --------------------------------------------------------------------------------------------------

    def function(self) -> Code:
        out = self.nest.out
        out.add(f"if (!{self.patience}.is_over()) return false;")
        out.add("Faults faults;  // of nobody: the triggers find them again")
        out.add("bool tame = true;")
        for map_ in self.maps:
            self.start(map_)
        with out.inside("for (const Event* at = first; at != last; ++at)"):
            out.add("if (at->relation != own) continue;")
            out.add(f"const auto& event = *reinterpret_cast<const {row_type(self.trigger.event.relation)}*>(at->row);")
            out.add("const i64 sign = at->times;")
            self.add_up()
        for map_ in self.maps:
            with self.each_group(map_):
                self.look(map_)
        out.add(f"if (!tame || faults.any) return {self.patience}.lose();")
        for map_ in self.maps:
            with self.each_group(map_):
                self.apply(map_)
        self.triggers.sweep(self.nest)
        out.add(f"return {self.patience}.win();")
        given = "[[maybe_unused]] const RelationInfo* own, const Event* first, const Event* last"
        return function(f"bool sum_up_{self.relation}({given})", self.nest.code())

    def start(self, map_: MapLayout) -> None:
        out = self.nest.out
        for member in self.written[map_.name]:
            if member.kind != REAL:
                out.add(f"{type_of(member.kind)} {_reach(map_, member)}{{}};")
        if map_.is_single:
            out.add(f"{self.type_name(map_)} {_groups(map_)};")
        else:
            out.add(f"{_groups(map_)}.start(u64(last - first));")

    def add_up(self) -> None:
        """The statements of the trigger, on one row."""
        params = self.trigger.event.params
        scope = {p: column("event", f) for p, f in zip(params, self.fields, strict=True)}
        scope[SIGN] = Cpp("sign", ONE, counts=True)
        self.nest.out.add(self.shared_groups)
        for turn in self.planned.turns:
            self.triggers.comment(self.nest, turn, params)
            self.triggers.terms.view = view_constant(turn.statements[0].target.name)
            with self.nest.out.inside():
                self.nest.statement(turn.block, scope, self.gather)

    def gather(self, steps: list[Emit], scope: Scope, _: AtHand) -> None:
        changes, terms = self.nest.changes, self.triggers.terms
        map_, members = changes.targets(steps)
        with self.nest.out.inside():
            sums = self.sums_at(map_, steps[0].key, scope)
            for step, member in zip(steps, members, strict=True):
                terms.view = view_constant(step.view)
                change = changes.change(step.product, member.kind, scope)
                noted = "tame" if member.kind == REAL else _reach(map_, member)
                self.nest.out.add(f"{sums}.{member.name}.add({change.text}, {noted});")

    def sums_at(self, map_: MapLayout, names: tuple[str, ...], scope: Scope) -> str:
        """The sums of the group of a key."""
        if map_.is_single:
            return _groups(map_)
        fields = self.nest.lookups.key_of(map_, names, scope)
        key, group = whole_key(map_, fields), "group"
        if self.nest.context.params.issuperset(names) and not can_fail(fields):
            which = _groups(map_), key
            group = self.shared[which] = self.shared.get(which) or self.nest.context.fresh("group")
            self.nest.out.add(f"if (!{group}) {group} = {_groups(map_)}.at({key});", lookups=1)
        else:
            self.nest.out.add(f"auto* {group} = {_groups(map_)}.at({key});", lookups=1)
        self.nest.out.add(f"if (unlikely(!{group})) return {self.patience}.lose();")
        return f"{group}->sums"

    def shared_groups(self) -> str:
        """Their declarations, once all of them are known: several statements add to one group of an event."""
        return " ".join(f"decltype({groups})::Group* {group}{{}};" for (groups, _), group in self.shared.items())

    # -- when all is added up ------------------------------------------------------------------------------------------

    @contextmanager
    def each_group(self, map_: MapLayout) -> Iterator[None]:
        head = "" if map_.is_single else f"for (auto& group : {_groups(map_)})"
        with self.nest.out.inside(head):
            yield

    def look(self, map_: MapLayout) -> None:
        """Whether its values stay what they may be, in whatever order the events came."""
        out, limits = self.nest.out, self.triggers.shared.limits
        members = [m for m in self.written[map_.name] if m.kind != REAL]
        if members:
            found = f"&{map_.name}.only" if map_.is_single else f"{map_.name}.find(group.key)"
            out.add(f"const auto* there = {found};", lookups=1)
        for member in members:
            before, within = f"there ? there->values.{member.name} : 0", f"within_{member.name}"
            given = f"{before}, {_reach(map_, member)}, u64(last - first)"
            out.add(f"const Within<{type_of(member.kind)}> {within}({given});")
            out.add(f"tame &= {within}.fits;")
            for end in ("low", "high"):
                for check in limits.sum_checks(member, f"{within}.{end}"):
                    out.add(f"{check};")
            if self.counts(map_, member):
                out.add(f"tame &= {_sums(map_)}.{member.name}.stays({before});")

    def apply(self, map_: MapLayout) -> None:
        """As one event that changes so much."""
        changes, members = self.nest.changes, self.written[map_.name]
        entry = only_entry(map_.name) if map_.is_single else ENTRY
        if not map_.is_single:
            self.nest.out.add(f"auto& {ENTRY.text} = {map_.name}.at(group.key);", lookups=1)
        changes.note(map_, members, entry)
        for member in members:
            added = f"{_sums(map_)}.{member.name}"
            change = f"{added}.value(), 1" if member.kind == REAL else f"{added}.sum"
            changes.add_in(member, entry, Change(change), finite=False)
        changes.settle(map_, members, entry)


def _is_sum(turn: Turn) -> bool:
    """Of what the row has: it reads no map, and makes no group of its own."""
    steps = (step for block in blocks(turn.block) for step in block)
    return not turn.collect and not turn.reads and all(isinstance(step, OF_THE_ROW) for step in steps)


def _groups(map_: MapLayout) -> str:
    return named("groups_of", map_.name)


def _sums(map_: MapLayout) -> str:
    return _groups(map_) if map_.is_single else "group.sums"


def _reach(map_: MapLayout, member: Member) -> str:
    return named("reach_of", map_.name, member.name)
