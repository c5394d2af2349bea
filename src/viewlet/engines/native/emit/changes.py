"""Changes of views as C++: entries are noted for those who watch, increased, and settled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from viewlet.algebra.terms import Term, free
from viewlet.engines.native.emit.context import Context, Temporary
from viewlet.engines.native.emit.identifiers import named
from viewlet.engines.native.emit.keys import view_constant
from viewlet.engines.native.emit.layout import MapLayout, Member
from viewlet.engines.native.emit.lookups import Lookups
from viewlet.engines.native.emit.pointers import AtHand, Pointer, Spot, only_entry
from viewlet.engines.native.emit.values import Scope
from viewlet.loops.steps import Emit, Product
from viewlet.program.kinds import REAL, Kind

ENTRY = Pointer("entry", is_object=True)  # the reference that a change makes for itself


@dataclass(frozen=True, slots=True)
class Change:
    """The arguments that ``increase`` takes for it; ``has_sum``: a factor is a sum of doubles."""

    text: str
    has_sum: bool = False


@dataclass(frozen=True)
class Changes:
    """Writes the changes that one function makes."""

    context: Context
    lookups: Lookups

    # -- into views ----------------------------------------------------------------------------------------------------

    def add_to_view(self, steps: list[Emit], scope: Scope, at_hand: AtHand) -> None:
        """The changes go into their views at once."""
        map_, members = self.targets(steps)
        with self.entry_of(steps[0], scope, at_hand) as entry:
            self.note(map_, members, entry)
            self.add_all(steps, entry, scope, finite=True)
            self.settle(map_, members, entry)

    def add_to_replaced(self, steps: list[Emit], scope: Scope, at_hand: AtHand) -> None:
        """The changes go into views that are empty and settled when all is there."""
        map_, members = self.targets(steps)
        with self.entry_of(steps[0], scope, at_hand) as entry:
            self.note(map_, members, entry)
            self.add_all(steps, entry, scope, finite=False)

    def targets(self, steps: list[Emit]) -> tuple[MapLayout, list[Member]]:
        layout = self.context.layout
        return layout[steps[0].view][0], [layout[step.view][1] for step in steps]

    @contextmanager
    def entry_of(self, step: Emit, scope: Scope, at_hand: AtHand) -> Iterator[Pointer]:
        """The entry that a change goes to."""
        map_, _ = self.context.layout[step.view]
        entry = only_entry(map_.name) if map_.is_single else at_hand.get(Spot(map_.name, step.key))
        entry = entry or at_hand.get(Spot(map_.name, step.key, made=True))
        if entry is not None:
            yield entry
            return
        with self.made(map_, step.key, scope) as entry:
            yield entry

    @contextmanager
    def made(self, map_: MapLayout, names: tuple[str, ...], scope: Scope) -> Iterator[Pointer]:
        """The entry at a key, made where it is not there."""
        out = self.context.out
        with out.inside():
            place = self.lookups.place(map_, names, self.lookups.key_of(map_, names, scope))
            out.add(lambda: f"auto& {ENTRY.text} = {place.made};", lookups=1)
            yield ENTRY

    def add_all(self, steps: list[Emit], entry: Pointer, scope: Scope, *, finite: bool) -> None:
        for step in steps:
            _, member = self.context.layout[step.view]
            self.context.terms.view = view_constant(step.view)
            self.add_in(member, entry, self.change(step.product, member.kind, scope), finite=finite)

    def change(self, product: Product, kind: Kind, scope: Scope) -> Change:
        """The product as a number of ``kind``."""
        terms = self.context.terms
        if kind != REAL:
            return Change(terms.to(terms.product(product, scope), kind).text)
        value, often = terms.summand(product, scope, self.context.deleting)
        return Change(f"{value.text}, {often.text}", any(_has_sum(f.term, scope) for f in product))

    # -- entries -------------------------------------------------------------------------------------------------------

    def increase(
        self, map_: MapLayout, member: Member, entry: Pointer, change: Change, *, finite: bool = False
    ) -> None:
        self.note(map_, [member], entry)
        self.add_in(member, entry, change, finite=finite)
        self.settle(map_, [member], entry)

    def note(self, map_: MapLayout, members: list[Member], entry: Pointer) -> None:
        """Before an entry changes, what it is now is kept: for undoing the batch, and for those who watch."""
        self.keep(map_, entry)
        self.note_for_watchers(map_, members, entry)

    def keep(self, map_: MapLayout, entry: Pointer) -> None:
        """For the first time in this batch, where the stored rows could not undo it."""
        if not map_.undone:
            return
        log = named("was", map_.name)
        if map_.is_single:
            self.context.out.add(f"if (!{log}.kept) {log}.keep({map_.name});")
        else:
            self.context.out.add(f"if (!{entry.member}head.kept) {log}.keep({entry.object});", 2 * entry.lookups)

    def note_for_watchers(self, map_: MapLayout, members: list[Member], entry: Pointer) -> None:
        """For the first time since somebody asked."""
        out = self.context.out
        if not map_.noted:
            return
        if not map_.is_single:
            note = f"{named('note', map_.name)}({entry.object});"
            out.add(f"if (!{entry.member}head.noted) {note}", lookups=2 * entry.lookups)
            return
        for name in [m.name for m in map_.members if m in members or m.counted_by in {o.name for o in members}]:
            if name in map_.noted:
                out.add(f"if (!{named('marked', map_.name, name)}) {named('note', map_.name, name)}();")

    def add_in(self, member: Member, entry: Pointer, change: Change, *, finite: bool) -> None:
        finite = (finite and change.has_sum) or (
            member.kind == REAL and member.view in self.context.shared.limits.finite
        )
        how = "increase_finite" if finite else "increase"
        line = f"{how}(faults, {view_constant(member.view)}, {slot_of(member, entry)}, {change.text});"
        self.context.out.add(line, entry.lookups)

    def clear(self, member: Member, entry: Pointer) -> None:
        slot = slot_of(member, entry)
        self.context.out.add(f"{slot}.clear();" if member.kind == REAL else f"{slot} = 0;", entry.lookups)

    def erase(self, map_: MapLayout, member: Member, entry: Pointer) -> None:
        """The view has no such entry any more."""
        self.note(map_, [member], entry)
        self.clear(member, entry)
        self.doubt(map_, entry)

    def settle(self, map_: MapLayout, members: list[Member], entry: Pointer) -> None:
        """What a change leaves is within its column, in its orders, and erased at the end of the trigger if nothing."""
        context, limits = self.context, self.context.shared.limits
        members = list(dict.fromkeys(members))
        for member in members:
            slot = slot_of(member, entry)
            for check in limits.sum_checks(member, slot):
                context.out.add(f"{check};", entry.lookups)
            for of_key in limits.key_checks(context.terms, map_, member, entry):
                context.out.add(f"if (!is_zero({slot})) {of_key.text};", (1 + of_key.reads) * entry.lookups)
        zero = " || ".join(f"is_zero({slot_of(m, entry)})" for m in members)
        self.doubt(map_, entry, zero, len(members))

    def doubt(self, map_: MapLayout, entry: Pointer, test: str = "", slots: int = 0) -> None:
        """An entry that may be nothing now is looked at when the trigger ends; what is in order must be told."""
        out = self.context.out
        line = f"{map_.name}.doubt({entry.object});"
        out.add(f"if ({test}) {line}" if test else line, (1 + slots) * entry.lookups)
        if map_.orders:
            out.add(f"{map_.name}.touch({entry.object});", entry.lookups)
        self.context.written.add(map_.name)

    # -- changes that are complete before they are applied -------------------------------------------------------------

    def collect(self, into: Temporary, keys: tuple[str, ...], product: Product, scope: Scope, *, finite: bool) -> None:
        """The change goes into a map of its own, or into a variable where there is but one group."""
        context, slot = self.context, into.name
        with context.out.inside():
            if into.key:
                key = [self.lookups.key_field(scope[k], f).text for k, f in zip(keys, into.key, strict=True)]
                context.out.add(f"auto& entry = {into.name}.at({{{', '.join(key)}}});", lookups=1)
                slot = "entry.values.sum"
            change = self.change(product, into.kind, scope)
            how = "increase_finite" if finite and change.has_sum else "increase"
            context.out.add(f"{how}(faults, {context.terms.view}, {slot}, {change.text});")


def slot_of(member: Member, entry: Pointer) -> str:
    """Where an entry holds a view's value."""
    return f"{entry.member}values.{member.name}"


def _has_sum(term: Term, scope: Scope) -> bool:
    return any(scope[v].kind == REAL or scope[v].summed for v in free(term))
