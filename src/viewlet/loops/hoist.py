"""Totals that several increments of a trigger need are computed once, before the first of them.

``target += expression`` reads old versions (Definition 1), so whatever it adds up from the event alone is the same at
the start of the trigger. Totals over the same slice are then added up in one loop, and sums over the same ranges of an
order in one descent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from viewlet.loops.fuse import Turn, merged
from viewlet.loops.names import bound_names, columns_of, free_names, renamed
from viewlet.loops.steps import LEAVES, Block, Group, Let, Loop, RangeSum, Total

StoreOf = Callable[[str], str]  # a view ↦ the store that holds it; views of one store are looped over together
FIRST = "$first"


@dataclass
class Uses:
    total: Total
    times: int = 0
    unconditional: bool = False


@dataclass
class Hoist:
    """``known``: a total without its names ↦ where it is used, then its name for those that are hoisted."""

    given: frozenset[str]
    uses: dict[Block, Uses] = field(default_factory=dict)
    names: dict[Block, str] = field(default_factory=dict)

    def count(self, block: Block, unconditional: bool) -> None:
        for step in block:
            if isinstance(step, Total) and free_names(step.body) - {step.var} <= self.given:
                uses = self.uses.setdefault(nameless(step), Uses(step))
                uses.times += 1
                uses.unconditional |= unconditional
            if not isinstance(step, LEAVES):
                self.count(step.body, unconditional and isinstance(step, (Total, Group)))

    def without(self, block: Block) -> Block:
        """The block with hoisted totals by their names."""
        for i, step in enumerate(block):
            if isinstance(step, Total) and (name := self.names.get(nameless(step))):
                return block[:i] + self.without(renamed(block[i + 1 :], {step.var: name}))
            if not isinstance(step, LEAVES):
                inner = self.without(step.body)
                if inner is not step.body:
                    return (*block[:i], replace(step, body=inner), *self.without(block[i + 1 :]))
        return block


@dataclass
class RangeSums:
    """Sums over ranges that the event alone gives: side by side, those over the same ranges are found in one descent.

    ``first``: a sum without its names ↦ the step that adds it up for all.
    """

    given: frozenset[str]
    first: dict[RangeSum, RangeSum] = field(default_factory=dict)

    def find(self, block: Block) -> None:
        """The sums that are computed whatever happens."""
        for step in block:
            if isinstance(step, RangeSum) and free_names((step,)) <= self.given:
                name = f"{FIRST}range{len(self.first)}"
                own = {v: f"{v}{name}" for v in bound_names((step,))} | {step.var: name}
                (hoisted,) = renamed((step,), own)
                assert isinstance(hoisted, RangeSum)
                self.first.setdefault(self.nameless(step), hoisted)
            elif isinstance(step, (Total, Group)):
                self.find(step.body)

    def nameless(self, step: RangeSum) -> RangeSum:
        (bare,) = renamed((step,), {v: f"§{i}" for i, v in enumerate(dict.fromkeys(bound_names((step,))))})
        assert isinstance(bare, RangeSum)
        return bare

    def without(self, block: Block) -> Block:
        """The block with these sums by their names."""
        for i, step in enumerate(block):
            if isinstance(step, RangeSum) and (first := self.first.get(self.nameless(step))):
                return block[:i] + self.without(renamed(block[i + 1 :], {step.var: first.var}))
            if not isinstance(step, LEAVES):
                inner = self.without(step.body)
                if inner is not step.body:
                    return (*block[:i], replace(step, body=inner), *self.without(block[i + 1 :]))
        return block


def hoist(turns: tuple[Turn, ...], given: frozenset[str], place: StoreOf = str) -> tuple[Block, tuple[Turn, ...]]:
    """What to do before the first turn, and the turns without it. ``given`` are the names that the event binds."""
    sums = RangeSums(given)
    for p in turns:
        if not p.collect:
            sums.find(p.block)
    turns = tuple(p if p.collect else replace(p, block=sums.without(p.block)) for p in turns)
    totals = Hoist(given | frozenset(step.var for step in sums.first.values()))
    for p in turns:
        if not p.collect:
            totals.count(p.block, True)
    first: list[Total] = []
    shared = [(key, uses) for key, uses in totals.uses.items() if uses.times > 1 and uses.unconditional]
    for i, (key, uses) in enumerate(sorted(shared, key=lambda use: len(repr(use[0])))):
        name = f"{FIRST}{i}"  # smaller ones first: they are parts of the others
        body = totals.without(renamed(uses.total.body, {uses.total.var: name}))
        first.append(Total(name, body))
        totals.names[key] = name
    rest = tuple(p if p.collect else replace(p, block=totals.without(p.block)) for p in turns)
    return (*sums.first.values(), *_in_one_loop(_needed(first, rest), place)), rest


def _needed(first: list[Total], rest: tuple[Turn, ...]) -> list[Total]:
    """Without the totals that were only parts of others."""
    kept: list[Total] = []
    used = {name for p in rest for name in free_names(p.block)}
    for total in reversed(first):
        if total.var in used:
            kept.insert(0, total)
            used |= free_names(total.body)
    return kept


def _in_one_loop(first: list[Total], place: StoreOf) -> Block:
    """Totals that end in loops over one slice: first what each of them needs, then one loop (a view) for them all."""
    done: Block = ()
    for totals in _groups(first, place):
        before: Block = ()
        loops: Block = ()
        for total in totals:
            body = renamed(total.body, {v: f"{v}{total.var}" for v in bound_names(total.body)})
            ends = bool(body) and isinstance(body[-1], Loop)
            needs, loop = (body[:-1], body[-1:]) if ends else (body, ())
            before, names = _once(before, needs)
            loop = renamed(loop, names)
            loops = merged(loops, loop) or loops + loop
        nested = before + loops
        for total in reversed(totals):
            nested = (Total(total.var, nested),)
        done += nested
    return done


def _groups(first: list[Total], place: StoreOf) -> list[list[Total]]:
    """Neighbours over one slice, unless one of them needs what another comes to."""
    groups: list[list[Total]] = []
    for total in first:
        last = groups[-1] if groups else []
        needs = free_names(total.body) & {t.var for t in last}
        if last and not needs and _slice(last[0], place) == _slice(total, place):
            last.append(total)
        else:
            groups.append([total])
    return groups


def _once(before: Block, needs: Block) -> tuple[Block, Mapping[str, str]]:
    """``needs`` added to ``before``; what is there under another name keeps that one."""
    there = {(step.term, step.plain): step.var for step in before if isinstance(step, Let)}
    names: dict[str, str] = {}
    for step in renamed(needs, names):
        if isinstance(step, Let) and (step.term, step.plain) in there:
            names[step.var] = there[step.term, step.plain]
        else:
            before += renamed((step,), names)
    return before, names


def _slice(total: Total, place: StoreOf) -> object:
    """What the loop at the end goes over; a total without one is alone."""
    last = total.body[-1] if total.body else None
    if not isinstance(last, Loop):
        return total.var
    names = columns_of(last.source)
    return place(last.source.name), tuple(n if n in last.bound else None for n in names)


# -- names -------------------------------------------------------------------------------------------------------------


def nameless(total: Total) -> Block:
    """The body with names in the order they are bound: equal for totals that add up the same."""
    names = {total.var: "§"} | {v: f"§{i}" for i, v in enumerate(dict.fromkeys(bound_names(total.body)))}
    return renamed(total.body, names)
