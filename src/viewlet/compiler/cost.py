"""The cost model of §5.1: what a statement touches, read off the loop nest that the engines run.

The paper reads cost_e(Q) = |dom(Q)| + Σ |dom(Q_i)| off the query, as it has one way to evaluate that: it counts the
tuples of the result and of what is aggregated. Here the access path of every read is chosen when a statement becomes a
loop nest (:mod:`viewlet.loops.lower`), and may be an order. So the same tuples are counted there, where ``explain``
finds its cost classes, too: whatever a path is, its price follows from it.

==============  ====================================================================
lookup, change  one entry
loop            an entry for each turn, and what stands inside for each turn
descent         a node on each level of the tree: log₁₆ of the slice, for each range
==============  ====================================================================

An entry counts its columns, for a key takes time by its width. What an order costs to keep is not counted, nor what a
view cache does when it is asked for an input for the first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import log2, prod

from viewlet.algebra.query import Atom, View, atoms
from viewlet.compiler.sizes import INEQUALITY_SELECTIVITY, Estimator, selectivity
from viewlet.loops.lower import Lowering
from viewlet.loops.names import columns_of
from viewlet.loops.pipeline import statement_block
from viewlet.loops.steps import (
    LEAVES,
    Add,
    Block,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Loop,
    Nonzero,
    Order,
    Put,
    RangeSum,
    Runs,
    Step,
    Test,
)
from viewlet.program.trigger import Event, Program, Statement

NODE_BITS = 4  # a descent reads one node of sixteen on each level


@dataclass(frozen=True)
class CostModel:
    """``ordered``: the engines have ordered access paths."""

    sizes: Estimator
    ordered: bool = True

    def statement_cost(self, statement: Statement, event: Event) -> float:
        """What one refresh touches: ``:=`` also what it replaces, and a view cache all that for each input it holds."""
        target = statement.target
        program = self._reading((target, *atoms(statement.expression)))
        change = statement_block(program, event, statement, Lowering.of(program))
        replaced = self.sizes.view_size(target.name) * width(target.outputs) if statement.op == ":=" else 0.0
        if not target.inputs:
            return self.touched(change) + replaced
        return self.sizes.cache_domains[target.name] * (width(target.inputs) + self.touched(change) + replaced)

    def touched(self, block: Block) -> float:
        """Σ over the steps of a nest: how often each is done · the cells that it touches"""
        walk = _Walk(self.sizes)
        walk.block(block, 1.0)
        return walk.touched

    def _reading(self, read: Iterable[Atom]) -> Program:
        """As much of a program as lowering asks for."""
        views = {a.name: self.sizes.views[a.name] for a in read if isinstance(a, View)}
        return Program(tuple(self.sizes.relations.values()), tuple(views.values()), (), (), "", ordered=self.ordered)


@dataclass
class _Walk:
    """``tuples``: how many tuples each group or total has been given so far."""

    sizes: Estimator
    touched: float = 0.0
    tuples: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def block(self, block: Block, times: float) -> None:
        for step in block:
            turns = self.turns(step, times)
            self.touched += times * self.cells(step, turns)
            self.note(step, times)
            if turns and not isinstance(step, LEAVES):
                self.block(step.body, times * turns)

    def note(self, step: Step, times: float) -> None:
        match step:
            case Put(name, _, _) | Add(name, _):
                self.tuples[name] += times
            case RangeSum(name, source, bound, order):
                self.tuples[name] += times * self.sizes.size(source, bound) * share(order)

    def turns(self, step: Step, times: float) -> float:
        """How often a step does what stands inside it."""
        match step:
            case Get(source, _, _):
                return min(1.0, self.sizes.size(source, frozenset(columns_of(source))))
            case Loop(source, bound, _, _, order):
                return self.sizes.size(source, bound) * (share(order) if order else 1.0)
            case EachSlice(source, bound, key, summed, _):
                counts = self.sizes.distinct(source)
                groups = prod(counts[v] for v in set(source.outputs) - bound - summed - {key})
                return min(groups, self.sizes.size(source, bound))
            case EachGroup(name, _, _, _):
                return self.tuples[name] / times
            case Nonzero(name, _):
                return min(1.0, self.tuples[name] / times)
            case Test(compare, _, _, _):
                return selectivity(compare)
            case _:
                return 1.0

    def cells(self, step: Step, turns: float) -> float:
        """What a step touches itself: entries of maps with all their columns, and of a tree a node on each level."""
        match step:
            case Get(source, _, _):
                return width(columns_of(source))
            case Put(_, key, _) | Emit(key, _, _):
                return width(key)
            case Loop(source, bound, _, _, order):
                descents = len(order.ranges) * self.descent(source, bound) if order else 0.0
                return descents + turns * width(columns_of(source))
            case EachSlice(source, bound, key, summed, _):
                return turns * width(set(source.outputs) - bound - summed)
            case EachGroup(_, keys, _, _):
                return turns * width(keys)
            case RangeSum(_, source, bound, order):
                return len(order.ranges) * self.descent(source, bound)
            case Runs(_, source, bound, _, _, _, _) | Extremum(_, source, bound, _, _):
                return self.descent(source, bound)
            case _:
                return 0.0

    def descent(self, source: Atom, bound: frozenset[str]) -> float:
        """A key and a sum on each level of the tree of one slice."""
        depth = max(1.0, log2(max(1.0, self.sizes.size(source, bound))) / NODE_BITS)
        return depth * width(("key",))


def share(order: Order) -> float:
    """Of the entries of a slice, those in the ranges: each bound of a range is an inequality."""
    return min(1.0, sum(INEQUALITY_SELECTIVITY ** len(bounds) for bounds in order.ranges))


def width(columns: Collection[str]) -> float:
    """The cells of an entry: its key and its value."""
    return len(columns) + 1.0
