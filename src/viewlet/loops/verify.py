"""What every loop nest owes: each name bound once and before its use, sums added to where they are, reads that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from viewlet.algebra.terms import Term, free
from viewlet.algebra.verify import VerifyError
from viewlet.loops.fuse import Turn
from viewlet.loops.names import binds, columns_of
from viewlet.loops.steps import (
    LEAVES,
    Add,
    Block,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    InRun,
    Let,
    Loop,
    Nonzero,
    Order,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.loops.text import show_block

Targets = Mapping[str, int]  # the maps that may be changed, and how many columns they have


class Plan(Protocol):
    """See :class:`viewlet.loops.pipeline.Plan`, which verifies what it makes."""

    @property
    def first(self) -> Block: ...
    @property
    def turns(self) -> tuple[Turn, ...]: ...


def verify_block(block: Block, given: Iterable[str], targets: Targets, where: str = "a loop nest") -> None:
    """Raise unless ``block`` can run where ``given`` have values."""
    _Verify(where, targets).block(block, frozenset(given), _Sums())


def verify_plan(plan: Plan, given: Iterable[str], targets: Targets, where: str) -> None:
    """The totals that are computed first, then each turn, which knows them and the inputs of the cache it refreshes."""
    known, sums = _Verify(where, targets).block(plan.first, frozenset(given), _Sums())
    for turn in plan.turns:
        inputs = frozenset(turn.statements[0].target.inputs)
        _Verify(where, targets).block(turn.block, known | inputs, sums)


@dataclass(frozen=True)
class _Sums:
    """The totals and groups that are being added to, and those that are complete."""

    open: frozenset[str] = frozenset()
    totals: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()


@dataclass
class _Verify:
    where: str
    targets: Targets
    bound: set[str] = field(default_factory=set)  # somewhere in the block
    group_keys: set[str] = field(default_factory=set)  # which every branch of a group binds

    def block(self, block: Block, known: frozenset[str], sums: _Sums) -> tuple[frozenset[str], _Sums]:
        """What is known behind the block, and which sums are complete there."""
        for step in block:
            self.step(step, known, sums)
            new = self.bind(step, known)
            if not isinstance(step, LEAVES):
                around = frozenset(step.keys) if isinstance(step, EachGroup) else frozenset[str]()
                inside = known if isinstance(step, (Total, Group)) else known | new | around
                behind = self.block(step.body, inside, self.inside(step, sums))
                if isinstance(step, Total):  # totals of one loop stand in each other, and are all there behind it
                    sums = replace(sums, totals=behind[1].totals)
                    known |= behind[1].totals & behind[0]
            if isinstance(step, (Let, RangeSum, Runs, Extremum, Total)):
                known |= {step.var}
            sums = self.after(step, sums)
        return known, sums

    def bind(self, step: Step, known: frozenset[str]) -> frozenset[str]:
        """The names that a step binds; the keys of a group are bound by each of its branches."""
        new = frozenset((step.name,) if isinstance(step, Group) else binds(step))
        for name in sorted(new - self.group_keys):
            self.demand(name not in known, step, f"{name} has a value already")
            self.demand(name not in self.bound, step, f"{name} is bound twice")
        self.bound |= new
        return new

    def inside(self, step: Step, sums: _Sums) -> _Sums:
        if isinstance(step, Total):
            return replace(sums, open=sums.open | {step.var})
        if isinstance(step, Group):
            self.group_keys |= set(binds(step)[1:])
            return replace(sums, open=sums.open | {step.name})
        return sums

    def after(self, step: Step, sums: _Sums) -> _Sums:
        match step:
            case Total(var, _) | RangeSum(var, _, _, _):
                return replace(sums, totals=sums.totals | {var})
            case Group(name, _):
                return replace(sums, groups=sums.groups | {name})
            case Runs(var, _, _, _, _, _, _):
                return replace(sums, runs=sums.runs | {var})
        return sums

    # -- one step ------------------------------------------------------------------------------------------------------

    def step(self, step: Step, known: frozenset[str], sums: _Sums) -> None:
        match step:
            case Let(_, term, _):
                self.uses(step, free(term), known)
            case Same(var, term, _, _):
                self.uses(step, {var, *free(term)}, known)
            case Test(compare, _, _, _):
                self.uses(step, free(compare.left) | free(compare.right), known)
            case Get(source, _, _):
                self.uses(step, columns_of(source), known)
            case Loop() | EachSlice() | RangeSum() | Runs() | Extremum():
                self.read(step, known, sums)
            case Add(var, product):
                self.demand(var in sums.open, step, f"{var} is no total around it")
                self.uses(step, _free(f.term for f in product), known)
            case Put(name, keys, product):
                self.demand(name in sums.open, step, f"{name} is no group around it")
                self.uses(step, {*keys, *_free(f.term for f in product)}, known)
            case Emit(key, product, view):
                self.demand(len(key) == self.targets.get(view), step, f"{view} is no map with {len(key)} columns")
                self.uses(step, {*key, *_free(f.term for f in product)}, known)
            case Nonzero(var, _):
                self.demand(var in sums.totals, step, f"{var} is no total that is complete")
            case EachGroup(name, _, _, _):
                self.demand(name in sums.groups, step, f"{name} is no group that is complete")

    def read(self, step: Loop | EachSlice | RangeSum | Runs | Extremum, known: frozenset[str], sums: _Sums) -> None:
        columns = frozenset(columns_of(step.source))
        self.uses(step, step.bound, known)
        self.demand(step.bound <= columns, step, "it is given more than its columns")
        stray = sorted((columns - step.bound - self.group_keys) & known)
        self.demand(not stray, step, f"{', '.join(stray)} has a value, and is not given")
        match step:
            case Loop(_, _, _, _, order) if order is not None:
                self.order(step, order, known | columns, sums)
            case RangeSum(_, _, _, order):
                self.order(step, order, known | columns, sums)
            case Runs(_, _, _, key, _, total, test):
                self.demand(key in columns - step.bound, step, f"{key} is none of its open columns")
                self.uses(step, free(test.compare.left) | free(test.compare.right), known | {total})
            case EachSlice(_, _, key, summed, _):
                self.demand({key, *summed} <= columns - step.bound, step, "its key is none of its open columns")
            case Extremum(_, _, _, key, _, place):
                self.demand(key in columns - step.bound, step, f"{key} is none of its open columns")
                self.uses(step, () if place is None else free(place), known)

    def order(self, step: Loop | RangeSum, order: Order, known: frozenset[str], sums: _Sums) -> None:
        self.demand(order.key in set(columns_of(step.source)) - step.bound, step, f"{order.key} is not open")
        for bound in (bound for bounds in order.ranges for bound in bounds):
            inner = {bound.inner} if isinstance(bound, InRun) else set()
            self.uses(step, free(bound.compare.left) | free(bound.compare.right), known | inner)
            if isinstance(bound, InRun):
                self.demand(bound.runs in sums.runs, step, f"{bound.runs} are no runs that are known")

    def uses(self, step: Step, names: Iterable[str], known: frozenset[str]) -> None:
        missing = sorted(frozenset(names) - known)
        self.demand(not missing, step, f"{', '.join(missing)} has no value yet")

    def demand(self, holds: bool, step: Step, problem: str) -> None:
        if not holds:
            line = show_block((step,)).split("\n", 1)[0]
            raise VerifyError(f"{self.where}: {problem}, in: {line}")


def _free(terms: Iterable[Term]) -> frozenset[str]:
    return frozenset().union(*map(free, terms))
