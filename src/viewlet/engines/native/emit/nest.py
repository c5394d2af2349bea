"""Loop nests as C++: the steps of :mod:`viewlet.loops.steps` over the maps of a layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby

from typing_extensions import assert_never

from viewlet.algebra.query import Atom, Compare
from viewlet.algebra.terms import Term, free
from viewlet.engines.native.emit.identifiers import identifier, named, unique
from viewlet.engines.native.emit.keys import each_entry, too_fine, view_constant, whole_key
from viewlet.engines.native.emit.layout import Field, Layout, MapLayout, Member
from viewlet.engines.native.emit.limits import bounds_text, key_checks
from viewlet.engines.native.emit.lines import Lines
from viewlet.engines.native.emit.ordered import OrderedReads
from viewlet.engines.native.emit.places import member_of, reference
from viewlet.engines.native.emit.terms import Terms
from viewlet.engines.native.emit.values import Cpp, Scope, type_of
from viewlet.loops.infer import Kinds, additions
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
    Product,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.program.kinds import COUNT, REAL, Exact, Inexact, Kind, key_kind
from viewlet.program.limits import KeyLimits

MADE = "made"  # before a key: its entry is made where it is not there
AtHand = Mapping[tuple[str, tuple[str, ...]], str]  # (map, key) ↦ a pointer to its entry
Sink = Callable[[list[Emit], Scope, AtHand], None]  # takes the changes at one entry


@dataclass(frozen=True, slots=True)
class Change:
    """The arguments that ``increase`` takes for it; ``has_sum``: a factor is a sum of doubles."""

    text: str
    has_sum: bool = False


@dataclass
class Temporary:
    """A map that lives for one statement: the groups of an Exists, or a change that is collected first."""

    name: str
    key: tuple[Field, ...]
    kind: Kind


@dataclass
class Nest:
    """Writes the nests of one function. ``params`` are the names that the event gives values to."""

    layout: Layout
    kinds: Kinds
    terms: Terms
    temporaries: list[Temporary]
    groups: Iterator[int]
    limits: Mapping[str, tuple[int, int]]
    key_limits: Mapping[str, KeyLimits]
    columns: Mapping[str, tuple[str, ...]]
    params: frozenset[str] = frozenset()
    out: Lines = field(default_factory=Lines)
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {"event", "entry", "change", "faults", "texts"})
    types: Mapping[str, Kind] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    deleting: bool = False  # the event takes a row out, and the statements are negative
    loops: int = 0
    untouched: dict[str, int] = field(default_factory=dict)  # a total that is 0 so far ↦ the loops around it
    sink: Sink = field(init=False)
    into_views: bool = False  # whether it is one that changes views at once
    reads: OrderedReads = field(init=False)

    def __post_init__(self) -> None:
        self.names |= {name for m in self.layout.maps for name in (m.name, named("held", m.name))}
        self.names |= {order.name for m in self.layout.maps for order in m.orders.values()}
        self.reads = OrderedReads(self)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def statement(self, block: Block, scope: Scope, sink: Sink) -> None:
        self.sink = sink
        self.into_views = sink in (self.add_to_view, self.add_to_replaced)
        self.types = self.kinds.block(block, {name: cpp.kind for name, cpp in scope.items()})
        self.block(block, dict(scope), {})

    def totals(self, block: Block, scope: Scope) -> dict[str, Cpp]:
        """Totals for all that follows, by name."""
        self.types = self.kinds.block(block, {name: cpp.kind for name, cpp in scope.items()})
        inner = dict(scope)
        self.block(block, inner, {})
        return {name: cpp for name, cpp in inner.items() if name not in scope}

    def block(self, block: Block, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        emits = [step for step in block if isinstance(step, Emit)]
        sums = [(step, self.reads.alike(step)) for step in block if isinstance(step, RangeSum)]
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
                    together = [other for other, alike in sums if alike == self.reads.alike(step)]
                    done.update(other.var for other in together)
                    self.reads.range_sums(together, scope, at_hand)

    def with_places(self, block: Block, scope: Scope, at_hand: AtHand) -> AtHand:
        """An entry that several steps of a block change, each under a condition of its own, is looked up once."""
        places: dict[tuple[str, tuple[str, ...]], str] = {}
        once: set[tuple[str, tuple[str, ...]]] = set()
        emits = [e for s in block if isinstance(s, (Nonzero, Test)) for e in s.body if isinstance(e, Emit)]
        for view, key in [(e.view, e.key) for e in emits if self.into_views]:
            found, at = self.layout[view][0], (self.layout.map_of(view), (MADE, *key))
            known = found.is_single or self.params.issuperset(key) or not scope.keys() >= set(key)
            if at in once and not known and {at, (found.name, key)}.isdisjoint({*places, *at_hand}):
                name, text = self.fresh(f"{found.name}_here"), self.key_of(found, key, scope)
                if "faults" not in text:  # as in early()
                    self.out.add(f"Place {name}({found.name}, {text});")
                    places[at] = f"&{name}.make()"
            once.add(at)
        return {**at_hand, **places}

    def neighbours(self, steps: list[Step], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """Loops over the same entries, or over the same slices."""
        slices = [step for step in steps if isinstance(step, EachSlice)]
        if slices:
            self.reads.each_slice(slices, scope, at_hand)
        else:
            self.loop([step for step in steps if isinstance(step, Loop)], scope, at_hand)

    def slice_of(self, step: Step) -> object:
        """What a loop goes over: neighbours over the same entries of one map become one loop."""
        if isinstance(step, EachSlice):
            return self.reads.slices_alike(step)
        if not isinstance(step, Loop) or step.order is not None:
            return None
        names = columns_of(step.source)
        return self.layout.map_of(step.source.name), tuple(n if n in step.bound else None for n in names)

    def step_or_emit(self, step: Step, emits: list[Emit], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        if not isinstance(step, Emit):
            self.step(step, scope, at_hand)
            return
        together = [e for e in emits if self.same_entry(e, step)]
        if step is together[-1]:
            self.sink(together, scope, at_hand)

    def same_entry(self, a: Emit, b: Emit) -> bool:
        """Changes of views in one map, at one key: they are made together, where the last of them stands."""
        return a.key == b.key and self.layout.map_of(a.view) == self.layout.map_of(b.view)

    def step(self, step: Step, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """``scope`` gets the names that a step defines for those after it; bodies have scopes of their own."""
        match step:
            case Let(var, term, plain):
                self.let(var, self.terms.term(term, scope, plain), scope)
            case Same() | Test():
                with self.out.inside(f"if ({self.condition(step, scope)})"):
                    self.block(step.body, dict(scope), at_hand)
            case Get():
                self.get(step, scope, at_hand)
            case Loop() if step.order is not None:
                self.reads.loop(step, scope, at_hand)
            case Loop() | EachSlice():
                self.neighbours([step], scope, at_hand)
            case RangeSum() | Runs() | Extremum():
                self.reads.step(step, scope, at_hand)
            case Total(var, body):
                self.total(var, scope)
                self.block(body, scope, at_hand)
                if scope[var].kind == REAL and len(list(additions(var, body))) > 1:
                    self.out.add(f"finite(faults, {self.terms.view}, {scope[var].text});")
            case Add(var, product):
                self.add_to(scope[var], self.terms.product(product, scope))
            case Nonzero(var, body):
                with self.out.inside(f"if (!is_zero({scope[var].text}))"):
                    self.block(body, dict(scope), at_hand)
            case Group(name, body):
                self.group(name, body, scope, at_hand)
            case Put():
                self.put(step, scope)
            case EachGroup(name, keys, body):
                self.each_group(name, keys, body, scope, at_hand)
            case Emit():
                self.sink([step], scope, at_hand)
            case _:
                assert_never(step)

    def let(self, var: str, value: Cpp, scope: dict[str, Cpp]) -> None:
        value = self.terms.bounded(value)
        held = self.terms.held(value, self.types[var], value.optional)
        name = self.fresh(var)
        self.out.add(f"const {held.type} {name} = {held.text};")
        scope[var] = Cpp(name, held.kind, held.optional)

    def condition(self, step: Test | Same, scope: Scope) -> str:
        if isinstance(step, Same):
            return self.identical(scope[step.var], self.terms.term(step.term, scope, step.plain))
        return self.compared(step.compare, step.plain, scope)

    def compared(self, compare: Compare, plain: bool, scope: Scope) -> str:
        """Whether a comparison is true."""
        left, right = (self.terms.term(t, scope, plain) for t in (compare.left, compare.right))
        if left.optional or right.optional:
            return f"holds({self.terms.operator(compare.op, [left, right]).text})"
        return self.terms.compare(compare.op, left, right).text

    def identical(self, a: Cpp, b: Cpp) -> str:
        """Identity of keys: NULL is NULL."""
        if not (a.optional or b.optional):
            return self.terms.compare("=", a, b).text
        equal = self.terms.operator("=", [a, b]).text
        return f"(is_null({a.text}) || is_null({b.text}) ? is_null({a.text}) && is_null({b.text}) : holds({equal}))"

    # -- reads ---------------------------------------------------------------------------------------------------------

    def get(self, step: Get, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        found, member = self.layout[step.source.name]
        names = columns_of(step.source)
        entry = at_hand.get((found.name, names))
        with self.representable(found, names, tuple(range(len(names))), scope) as key:
            self.fill(step.source, found, key)
            if found.is_single:
                values, condition = f"{found.name}.only.values", ""
            elif entry is not None:
                values, condition = f"{entry}->values", ""
            else:
                entry = self.fresh(found.name)
                self.out.add(f"auto* {entry} = {self.find(found, names, key)};")
                values, condition = f"{entry}->values", f"{entry} && "
            with self.out.inside(f"if ({condition}!is_zero({values}.{member.name}))"):
                inner = {**scope, step.value: self.multiplicity(f"{values}.{member.name}", member.kind)}
                self.block(step.body, inner, {**at_hand, **({(found.name, names): entry} if entry else {})})

    def loop(self, steps: list[Loop], scope: dict[str, Cpp], at_hand: AtHand) -> None:
        """Loops over the same entries, each for its own view of the map."""
        source, bound = steps[0].source, steps[0].bound
        found, _ = self.layout[source.name]
        names = columns_of(source)
        positions = tuple(i for i, n in enumerate(names) if n in bound)
        with self.representable(found, names, positions, scope) as key:
            self.fill(source, found, key)
            entry = self.fresh(found.name)
            with self.out.inside(f"for ({each_entry(found, entry, positions, key)})"):
                self.loops += 1
                for step in steps:
                    self.turn(step, found, entry, scope, at_hand)
                self.loops -= 1

    def turn(self, step: Loop, found: MapLayout, entry: str, scope: Scope, at_hand: AtHand) -> None:
        """What a loop does with one entry."""
        _, member = self.layout[step.source.name]
        names, slot = columns_of(step.source), f"{entry}->values.{member.name}"
        inner, tests = {**scope, step.value: self.multiplicity(slot, member.kind)}, [f"!is_zero({slot})"]
        for i, n in enumerate(names):
            column = self.column(f"{entry}->key", found.key[i])
            if n in names[:i] and n not in step.bound:  # R(x, x)
                tests.append(self.identical(inner[n], column))
            elif n not in step.bound:
                inner[n] = column
        with self.out.inside(f"if ({' && '.join(tests)})"):
            self.block(step.body, inner, {**at_hand, (found.name, names): entry})

    def multiplicity(self, slot: str, kind: Kind) -> Cpp:
        return Cpp(f"{slot}.value()" if kind == REAL else slot, kind, counts=kind == COUNT, summed=kind != COUNT)

    def column(self, of: str, found: Field) -> Cpp:
        return Cpp(f"{of}.{found.name}", found.kind, found.nullable)

    def fill(self, source: Atom, found: MapLayout, key: Mapping[int, str]) -> None:
        """A view cache computes what it is asked for and does not hold."""
        if found.inputs:
            self.out.add(f"{named('fill', found.name)}({{{', '.join(key[i] for i in range(found.inputs))}}});")

    @contextmanager
    def representable(
        self, found: MapLayout, names: tuple[str, ...], positions: tuple[int, ...], scope: Scope
    ) -> Iterator[dict[int, str]]:
        """The values at ``positions`` as fields of the key, inside tests that the key can hold them at all."""
        tests, key = [], {}
        for i in positions:
            value, to = scope[names[i]], found.key[i]
            key[i] = self.key_field(value, to)
            known = Cpp(f"{value.text}.value", value.kind) if value.optional else value
            fits = too_fine(known, to.kind)
            if value.optional and to.nullable and fits:
                tests.append(f"(is_null({value.text}) || ({' && '.join(fits)}))")
            else:
                tests += [f"!is_null({value.text})"] * value.optional * (not to.nullable) + fits
        if tests:
            with self.out.inside(f"if ({' && '.join(tests)})"):
                yield key
        else:
            yield key

    def key_field(self, value: Cpp, to: Field) -> str:
        if value.optional and not to.nullable:
            value = Cpp(f"{value.text}.value", value.kind)
        if value.kind == to.kind and value.optional == to.nullable:
            return value.text
        return self.terms.held(value, to.kind, to.nullable).text

    def find(self, found: MapLayout, names: tuple[str, ...], key: Mapping[int, str]) -> str:
        text = whole_key(found, key)
        return f"{self.place(found, text)}.find()" if self.early(names, text) else f"{found.name}.find({text})"

    def make(self, found: MapLayout, names: tuple[str, ...], scope: Scope) -> str:
        text = self.key_of(found, names, scope)
        return f"{self.place(found, text)}.make()" if self.early(names, text) else f"{found.name}.at({text})"

    def key_of(self, found: MapLayout, names: tuple[str, ...], scope: Scope) -> str:
        fields = zip(names, found.key, strict=True)
        return whole_key(found, {i: self.key_field(scope[n], f) for i, (n, f) in enumerate(fields)})

    def early(self, names: tuple[str, ...], key: str) -> bool:
        """The event alone gives the key, and making it cannot fail: it may be made before any test."""
        return self.params.issuperset(names) and "faults" not in key

    def place(self, found: MapLayout, key: str) -> str:
        """A name for the entry at a key that the event alone gives; see :func:`resolve_places`."""
        return self.places.setdefault((found.name, key), f"«{len(self.places)}»")

    # -- totals and groups ---------------------------------------------------------------------------------------------

    def total(self, var: str, scope: dict[str, Cpp]) -> None:
        name, kind = self.fresh(var), self.types[var]
        self.out.add(f"{type_of(kind)} {name}{{}};")
        self.untouched[name] = self.loops
        scope[var] = Cpp(name, kind, summed=True)

    def add_to(self, total: Cpp, value: Cpp) -> None:
        value = self.terms.to(self.terms.bounded(value), total.kind)
        if self.untouched.pop(total.text, None) == self.loops:
            self.out.add(f"{total.text} = {value.text};")
        elif isinstance(total.kind, Inexact):
            self.out.add(f"{total.text} = {total.text} + {value.text};")
        elif isinstance(total.kind, Exact) and total.kind.bits < 127:
            self.out.add(f"{total.text} += {value.text};")
        else:
            self.out.add(f"{total.text} = add(faults, {self.terms.view}, {total.text}, {value.text});")

    def group(self, name: str, body: Block, scope: dict[str, Cpp], at_hand: AtHand) -> None:
        temporary = f"group_{next(self.groups)}"
        scope[name] = Cpp(temporary, self.types[name])
        self.out.add(f"{temporary}.clear();")
        self.block(body, scope, at_hand)

    def put(self, step: Put, scope: Scope) -> None:
        group = scope[step.name]
        temporary = next((t for t in self.temporaries if t.name == group.text), None)
        if temporary is None:
            fields = tuple(Field(f"key_{i}", key_kind(self.types[k]), True) for i, k in enumerate(step.keys))
            temporary = Temporary(group.text, fields, group.kind)
            self.temporaries.append(temporary)
        self.collect(temporary, step.keys, step.product, scope, finite=False)

    def each_group(self, name: str, keys: tuple[str, ...], body: Block, scope: Scope, at_hand: AtHand) -> None:
        temporary = next((t for t in self.temporaries if t.name == scope[name].text), None)
        if temporary is None:
            return  # nothing is ever put into it
        entry = self.fresh("entry")
        with (
            self.out.inside(
                f"for (auto* {entry} = {temporary.name}.first(); {entry}; {entry} = {temporary.name}.next({entry}))"
            ),
            self.out.inside(f"if (!is_zero({entry}->values.sum))"),
        ):
            found = {k: self.column(f"{entry}->key", f) for k, f in zip(keys, temporary.key, strict=True)}
            self.loops += 1
            self.block(body, {**scope, **found}, at_hand)
            self.loops -= 1

    # -- changes -------------------------------------------------------------------------------------------------------

    def add_to_view(self, steps: list[Emit], scope: Scope, at_hand: AtHand) -> None:
        """The changes go into their views at once."""
        found, members = self.layout[steps[0].view][0], [self.layout[step.view][1] for step in steps]
        with self.entry_of(steps[0], scope, at_hand) as entry:
            self.note(found, members, entry)
            self.add_all(steps, entry, scope, finite=True)
            self.settle(found, members, entry)

    def add_to_replaced(self, steps: list[Emit], scope: Scope, at_hand: AtHand) -> None:
        """The changes go into views that are empty and settled when all is there."""
        found, members = self.layout[steps[0].view][0], [self.layout[step.view][1] for step in steps]
        with self.entry_of(steps[0], scope, at_hand) as entry:
            self.note(found, members, entry)
            self.add_all(steps, entry, scope, finite=False)

    @contextmanager
    def entry_of(self, step: Emit, scope: Scope, at_hand: AtHand) -> Iterator[str]:
        """The entry that a change goes to, as C++ for a pointer."""
        found, _ = self.layout[step.view]
        entry = f"&{found.name}.only" if found.is_single else at_hand.get((found.name, step.key))
        entry = entry or at_hand.get((found.name, (MADE, *step.key)))
        if entry is not None:
            yield entry
            return
        with self.out.inside(""):
            self.out.add(f"auto& entry = {self.make(found, step.key, scope)};")
            yield "&entry"

    def add_all(self, steps: list[Emit], entry: str, scope: Scope, *, finite: bool) -> None:
        for step in steps:
            _, member = self.layout[step.view]
            self.terms.view = view_constant(step.view)
            self.add_in(member, entry, self.change(step.product, member.kind, scope), finite=finite)

    def change(self, product: Product, kind: Kind, scope: Scope) -> Change:
        """The product as a number of ``kind``."""
        if kind != REAL:
            return Change(self.terms.to(self.terms.product(product, scope), kind).text)
        value, often = self.terms.summand(product, scope, self.deleting)
        return Change(f"{value.text}, {often.text}", any(self.has_sum(f.term, scope) for f in product))

    def has_sum(self, term: Term, scope: Scope) -> bool:
        return any(scope[v].kind == REAL or scope[v].summed for v in free(term))

    def increase(self, found: MapLayout, member: Member, entry: str, change: Change, *, finite: bool = False) -> None:
        self.note(found, [member], entry)
        self.add_in(member, entry, change, finite=finite)
        self.settle(found, [member], entry)

    def note(self, found: MapLayout, members: list[Member], entry: str) -> None:
        """Before an entry changes for the first time since somebody asked, what it is now is kept for them."""
        if not found.noted:
            return
        if not found.is_single:
            self.out.add(f"if (!{member_of(entry)}head.noted) {named('note', found.name)}({reference(entry)});")
            return
        for name in [m.name for m in found.members if m in members or m.counted_by in {o.name for o in members}]:
            if name in found.noted:
                self.out.add(f"if (!{named('marked', found.name, name)}) {named('note', found.name, name)}();")

    def add_in(self, member: Member, entry: str, change: Change, *, finite: bool) -> None:
        how = "increase_finite" if finite and change.has_sum else "increase"
        slot = f"{member_of(entry)}values.{member.name}"
        self.out.add(f"{how}(faults, {view_constant(member.view)}, {slot}, {change.text});")

    def settle(self, found: MapLayout, members: list[Member], entry: str) -> None:
        """What a change leaves is within its column, in its orders, and erased at the end of the trigger if nothing."""
        slots = {member: f"{member_of(entry)}values.{member.name}" for member in members}
        for member, slot in slots.items():
            if member.view in self.limits:
                bounds = bounds_text(self.limits[member.view])
                self.out.add(f"within(faults, {view_constant(member.view)}, {slot}, {bounds});")
            for check in key_checks(self, found, member, entry):
                self.out.add(f"if (!is_zero({slot})) {check};")
        self.written.add(found.name)
        zero = " || ".join(f"is_zero({s})" for s in slots.values())
        self.out.add(f"if ({zero}) {found.name}.doubt({reference(entry)});")
        if found.orders:
            self.out.add(f"{found.name}.touch({reference(entry)});")

    def collect(self, into: Temporary, keys: tuple[str, ...], product: Product, scope: Scope, *, finite: bool) -> None:
        """The change goes into a map of its own, or into a variable where there is but one group."""
        slot = into.name
        with self.out.inside(""):
            if into.key:
                key = [self.key_field(scope[k], f) for k, f in zip(keys, into.key, strict=True)]
                self.out.add(f"auto& entry = {into.name}.at({{{', '.join(key)}}});")
                slot = "entry.values.sum"
            change = self.change(product, into.kind, scope)
            how = "increase_finite" if finite and change.has_sum else "increase"
            self.out.add(f"{how}(faults, {self.terms.view}, {slot}, {change.text});")

    def fresh(self, stem: str) -> str:
        return unique(identifier(stem), self.names)
