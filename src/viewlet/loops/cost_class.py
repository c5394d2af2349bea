"""Access paths: how every read of a trigger statement finds its entries, and what a refresh therefore costs.

The reads are those of the statement's loop nest, which is what the engines run:

==========  =============================================  =======================================================
path        keys                                           cost
==========  =============================================  =======================================================
lookup      all bound                                      O(1)
slice       some bound                                     O(matches)
range       one compared                                   O(log n) to find the first, then O(matches)
range sum   one compared and summed out                    O(log n)
threshold   one compared through a running sum             O(log n); with negative values, for each run of the sum
extremum    the least or greatest of one                   O(log n)
order       all bound, of values whose least or greatest   O(log n): the value takes its place among them
            a result shows (MIN and MAX), or by which its
            first rows are found (ORDER BY … LIMIT)
groups      none bound, but every entry is a group that    O(g)
            is refreshed, or has its own sum to be read
scan        none bound                                     O(n)
batch       none, of a bulk ΔR                             counted per tuple of the batch
own         some, of a bulk ΔR                             within the batch, whatever the views hold
==========  =============================================  =======================================================

What stands inside a loop is done once per turn: costs multiply, so a scan inside a scan is O(n²).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from viewlet.algebra.query import Atom, Delta, Query, View, inputs, outputs, rename
from viewlet.algebra.terms import free
from viewlet.loops.lower import Lowering
from viewlet.loops.names import as_written, columns_of, free_names
from viewlet.loops.pipeline import fill_block, statement_block
from viewlet.loops.steps import (
    LEAVES,
    Add,
    Block,
    Cut,
    EachGroup,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Group,
    Order,
    Put,
    RangeSum,
    Runs,
    Step,
    Test,
    blocks,
)
from viewlet.loops.steps import Loop as LoopStep
from viewlet.program.graph import part_for
from viewlet.program.trigger import Event, Extreme, Program, Statement
from viewlet.schema import CLOCK

AccessPath = Literal[
    "lookup", "slice", "range", "range sum", "threshold", "extremum", "order", "groups", "scan", "batch", "own"
]
Unit = Literal["event", "batch", "tuple of the batch"]
Rank = tuple[int, int, int, int, int]  # nested scans, loops over the batch, over groups, over slices; and descents

VERBS: dict[AccessPath, str] = {
    "lookup": "looks up",
    "slice": "slices",
    "range": "goes over a range of",
    "range sum": "adds up a range of",
    "threshold": "finds the threshold in",
    "extremum": "looks at one end of",
    "order": "keeps the order of",
    "groups": "goes over the groups of",
    "scan": "scans",
    "batch": "loops over",
    "own": "goes over what agrees in",
}
DESCENTS: frozenset[AccessPath] = frozenset({"range sum", "threshold", "extremum", "order"})
POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


@dataclass(frozen=True, slots=True)
class LoopCost:
    path: AccessPath
    name: str
    because: str

    def __str__(self) -> str:
        return f"{VERBS[self.path]} {self.name}: {self.because}"


Loops = tuple[LoopCost, ...]  # nested, the outermost first


@dataclass(frozen=True, slots=True)
class StatementCost:
    """``paths`` are the reads as (text, path) in the order of evaluation; the cost is per ``unit``."""

    cost_class: str
    reason: str
    paths: tuple[tuple[str, AccessPath], ...]
    unit: Unit
    rank: Rank

    @property
    def has_scan(self) -> bool:
        return self.rank[0] > 0


def statement_access(statement: Statement, event: Event, program: Program) -> StatementCost:
    """What one refresh by ``statement`` costs when ``event`` happens."""
    return _Costs(program).statement(statement, event)


def program_cost_class(program: Program, result: str | None = None, kinds: str = "+-Δ") -> str:
    """The worst class of all statements, or of those that keep one result fresh, on these kinds of events.

    Ticks of the clock are apart, see :func:`tick_cost_class`.
    """
    part = program if result is None else part_for(program, result)
    return _worst(cost for event, _, cost in _costs(part, kinds) if event.relation != CLOCK.name)


def growth(program: Program) -> tuple[int, ...]:
    """By how much the worst statement of an event grows with the rows, to compare programs: logarithms apart."""
    return max((cost.rank[:-1] for _, _, cost in _costs(program, "+-")), default=())


def tick_cost_class(program: Program) -> str | None:
    """What it costs to move the clock; None where no view reads it."""
    if not any(relation.name == CLOCK.name for relation in program.relations):
        return None
    return _worst(cost for event, _, cost in _costs(program, "+-") if event.relation == CLOCK.name)


def _worst(costs: Iterable[StatementCost]) -> str:
    return _cost_class(max((cost.rank for cost in costs), default=(0, 0, 0, 0, 0)))


def scan_warnings(program: Program) -> tuple[str, ...]:
    """One line for each view whose refresh scans, with the events and the reason."""
    events: dict[tuple[str, str, str], list[str]] = {}
    for event, s, cost in _costs(program):
        if cost.has_scan:
            key = s.target.name, cost.cost_class, cost.reason
            events.setdefault(key, []).append(f"{event.kind}{event.relation}")
    return tuple(f"{target} on {', '.join(on)} takes {cost}: {why}" for (target, cost, why), on in events.items())


def _costs(program: Program, kinds: str = "+-Δ") -> Iterator[tuple[Event, Statement, StatementCost]]:
    costs = _Costs(program)
    for trigger in program.triggers:
        for s in trigger.statements:
            if trigger.event.kind in kinds:
                yield trigger.event, s, costs.statement(s, trigger.event)


# -- the walk ----------------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    """The dominant nest of loops so far, the reads met, and for each group the loops that its tuples come from."""

    time: Loops = ()
    paths: list[tuple[str, AccessPath]] = field(default_factory=list)
    groups: dict[str, Loops] = field(default_factory=dict)


@dataclass
class _Costs:
    program: Program

    def __post_init__(self) -> None:
        self.lowering = Lowering.of(self.program)
        extremes = [e for result in self.program.results for e in result.extremes]
        self.shown = {q.name: {_place(e) for e in extremes if e.query == q} for q in map(_view_of, extremes)}
        limited = [result for result in self.program.results if result.limit is not None]
        self.ranked = {q.name: result.name for result in limited for q in result.reads if isinstance(q, View)}

    def statement(self, statement: Statement, event: Event) -> StatementCost:
        target = statement.target
        work = _Work()
        self.block(statement_block(self.program, event, statement, self.lowering), (), work)
        loops, unit = _per_unit(work.time, event)
        if target.inputs:
            held = LoopCost("scan", target.name, "a refresh goes over every input that the view cache holds")
            loops = (held, *loops)
        rank = _rank(loops)
        constant = "every read is a lookup" if any(path == "lookup" for _, path in work.paths) else "no view is read"
        reason = "; for each, ".join(map(str, loops)) or constant
        return StatementCost(_cost_class(rank), reason, tuple(work.paths), unit, rank)

    def block(self, block: Block, around: Loops, work: _Work) -> None:
        work.time = _worse(work.time, around)
        for step in block:
            inside = around + self.step(step, around, work)
            work.time = _worse(work.time, inside)
            if not isinstance(step, LEAVES):
                self.block(step.body, inside, work)

    def step(self, step: Step, around: Loops, work: _Work) -> Loops:
        """The loops that a step is itself; what it reads is noted."""
        match step:
            case Get(source, _, _):
                work.paths.append((_written(source).text, "lookup"))
                self.fill(source, around, work)
            case LoopStep():
                return self.loop(step, around, work)
            case EachSlice(source, bound, key, summed, _):
                names = [as_written(v) for v in source.outputs if v not in bound and v != key and v not in summed]
                because = f"each {', '.join(names)} has its own order of {as_written(key)}"
                return self.read(source, "slice" if bound else "groups", because, work)
            case RangeSum(_, source, _, order):
                return self.read(source, "range sum", _in_order(order), work)
            case Runs(_, source, _, key, _, _, test):
                because = f"where {_written(test.compare).text}, in the order of {as_written(key)}"
                return self.read(source, "threshold", because, work)
            case Extremum(_, source, _, key, _):
                return self.read(source, "extremum", f"in the order of {as_written(key)}", work)
            case Put(name, _, _):
                work.groups[name] = _worse(work.groups.get(name, ()), around)
            case Emit(_, _, view) if view in self.shown:
                ends = " and ".join(sorted(self.shown[view], reverse=True))
                return (LoopCost("order", view, f"the view shows the {ends}"),)
            case Emit(_, _, view) if view in self.ranked:
                return (LoopCost("order", view, f"the first rows of {self.ranked[view]} are found by it"),)
            case EachGroup(name, _, _, _):
                return work.groups.get(name, ())[len(around) :]
        return ()

    def read(self, source: View, path: AccessPath, because: str, work: _Work) -> Loops:
        work.paths.append((_written(source).text, path))
        return (LoopCost(path, source.name, because),)

    def loop(self, step: LoopStep, around: Loops, work: _Work) -> Loops:
        source, names = step.source, columns_of(step.source)
        path, because = _path(step), _because(step, names)
        work.paths.append((_written(source).text, path))
        self.fill(source, around, work)
        return (LoopCost(path, f"Δ{source.name}" if isinstance(source, Delta) else source.name, because),)

    def fill(self, atom: Atom, around: Loops, work: _Work) -> None:
        """A view cache that is asked for an input it does not hold computes it then: the worst case counts that."""
        if not isinstance(atom, View) or not atom.inputs:
            return
        view = self.program.view(atom.name)
        inside = _Work()
        self.block(fill_block(view, self.lowering), (), inside)
        on_miss = f" (to fill {view.name} when it misses)"
        missed = tuple(replace(loop, because=loop.because + on_miss) for loop in inside.time)
        work.time = _worse(work.time, around + missed)
        work.paths += inside.paths


def _place(extreme: Extreme) -> str:
    return extreme.end if extreme.place is None else "quantile"


def _view_of(extreme: Extreme) -> View:
    assert isinstance(extreme.query, View), f"{extreme.query.text} is not compiled"
    return extreme.query


def _written(q: Query) -> Query:
    return rename(q, {v: as_written(v) for v in inputs(q) | outputs(q)})


def _in_order(order: Order) -> str:
    """The key, and the comparisons that bound it; the two sides of a disjunction once."""
    cuts = (cut for cuts in order.ranges for cut in cuts)
    conditions = dict.fromkeys(_written(cut.compare).text for cut in cuts if isinstance(cut, Cut) and cut.holds)
    where = f", where {' or '.join(conditions) if len(order.ranges) > 1 else ' and '.join(conditions)}"
    return f"in the order of {as_written(order.key)}{where * bool(conditions)}"


def _path(step: LoopStep) -> AccessPath:
    if step.order is not None:
        return "extremum" if step.order.single else "range"
    given = any(v in step.bound for v in columns_of(step.source))
    if isinstance(step.source, Delta):
        return "own" if given else "batch"
    if given:
        return "slice"
    return "groups" if _is_over_groups(step) else "scan"


def _is_over_groups(step: LoopStep) -> bool:
    """Every turn changes groups of its own, and does nothing else."""
    steps = [s for inner in blocks(step.body) for s in inner]
    outer = free_names(step.body)
    emits = [s for s in steps if isinstance(s, Emit)]
    adds = any(s.var in outer for s in steps if isinstance(s, Add)) or any(
        s.name in outer for s in steps if isinstance(s, Put)
    )
    return bool(emits) and not adds and all(set(columns_of(step.source)) <= set(s.key) for s in emits)


def _because(step: LoopStep, names: tuple[str, ...]) -> str:
    if step.order is not None:
        return _in_order(step.order)
    given = [as_written(k) for k in names if k in step.bound]
    if given:
        return f"only {', '.join(given)} {'is' if len(given) == 1 else 'are'} bound"
    if _path(step) == "groups":
        return "each is refreshed"
    compared = [c for c in _comparisons(step.body) if _mentions(c, names)]
    return "no key is bound" + (
        f", only compared in {' and '.join(_written(c.compare).text for c in compared)}" if compared else ""
    )


def _mentions(test: Test, names: tuple[str, ...]) -> bool:
    return bool((free(test.compare.left) | free(test.compare.right)) & frozenset(names))


def _comparisons(block: Block) -> Iterator[Test]:
    """The tests of a loop's own turn, before it loops again."""
    for step in block:
        if isinstance(step, Test):
            yield step
        if not isinstance(step, (*LEAVES, LoopStep, EachSlice, EachGroup, Group)):
            yield from _comparisons(step.body)


# -- comparing nests of loops ------------------------------------------------------------------------------------------


def _rank(loops: Loops) -> Rank:
    paths = [loop.path for loop in loops]
    descents = sum(path in DESCENTS for path in paths)
    matches = paths.count("slice") + paths.count("range")
    return paths.count("scan"), paths.count("batch"), paths.count("groups"), min(matches, 1), min(descents, 1)


def _worse(a: Loops, b: Loops) -> Loops:
    """Of two nests of one class the deeper one, as the reason that ``explain`` gives."""
    return a if (_rank(a), len(a)) >= (_rank(b), len(b)) else b


def _per_unit(loops: Loops, event: Event) -> tuple[Loops, Unit]:
    """A statement that loops over its batch does for each tuple what is inside that loop."""
    first = next((i for i, loop in enumerate(loops) if loop.path == "batch"), None)
    if first is None:
        return loops, "batch" if event.kind == "Δ" else "event"
    return loops[:first] + loops[first + 1 :], "tuple of the batch"


def _cost_class(rank: Rank) -> str:
    """Slices within slices find the matches of a join: O(matches) in all."""
    scans, batches, groups, slices, descents = rank
    loops = (("n", scans), ("batch", batches), ("g", groups), ("matches", min(slices, 1)))
    parts = "·".join(f"{what}{_power(times)}" for what, times in loops if times)
    return f"O({' '.join([*([parts] if parts else []), *(['log n'] if descents else [])]) or '1'})"


def _power(times: int) -> str:
    return "" if times == 1 else "".join(POWERS[int(digit)] for digit in str(times))
