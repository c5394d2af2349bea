"""Access paths: how every read of a trigger statement finds its entries, and what a refresh therefore costs.

The reads are followed in the order in which the living definition evaluates them, with the variables bound so far:

=========  ==================  ===================================
path       keys bound          cost
=========  ==================  ===================================
lookup     all of them         O(1)
slice      some of them        O(matches)
scan       none                O(n)
batch      none, of a bulk ΔR  counted per tuple of the batch
=========  ==================  ===================================

What stands inside a loop is done once per turn: costs multiply, so a scan inside a scan is O(n²).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from typing_extensions import assert_never

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import (
    Atom,
    Bind,
    Compare,
    Delta,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    View,
    outputs,
)
from viewlet.algebra.terms import free
from viewlet.program.graph import part_for
from viewlet.program.trigger import Event, Program, Statement

Path = Literal["lookup", "slice", "scan", "batch"]
Unit = Literal["event", "batch", "tuple of the batch"]
Rank = tuple[int, int, int]  # nested scans, nested loops over the batch, nested slices

VERBS: dict[Path, str] = {"lookup": "looks up", "slice": "slices", "scan": "scans", "batch": "loops over"}
POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


@dataclass(frozen=True, slots=True)
class Loop:
    path: Path
    name: str
    because: str

    def __str__(self) -> str:
        return f"{VERBS[self.path]} {self.name}: {self.because}"


Loops = tuple[Loop, ...]  # nested, the outermost first


@dataclass(frozen=True, slots=True)
class StatementCost:
    """``paths`` are the reads as (text, path) in the order of evaluation; the cost is per ``unit``."""

    cost_class: str
    reason: str
    paths: tuple[tuple[str, Path], ...]
    unit: Unit
    rank: Rank

    @property
    def has_scan(self) -> bool:
        return self.rank[0] > 0


def statement_access(statement: Statement, event: Event, program: Program) -> StatementCost:
    """What one refresh by ``statement`` costs when ``event`` happens."""
    target = statement.target
    work = _Walk(program).query(statement.expression, frozenset(event.params) | frozenset(target.inputs))
    loops, unit = _per_unit(work.time, event)
    if target.inputs:
        held = Loop("scan", target.name, "a refresh goes over every input that the view cache holds")
        loops = (held, *loops)
    rank = _rank(loops)
    constant = "every read is a lookup" if any(path == "lookup" for _, path in work.paths) else "no view is read"
    return StatementCost(_cost_class(rank), "; for each, ".join(map(str, loops)) or constant, work.paths, unit, rank)


def program_cost_class(program: Program, result: str | None = None, kinds: str = "+-Δ") -> str:
    """The worst class of all statements, or of those that keep one result fresh, on these kinds of events."""
    part = program if result is None else part_for(program, result)
    triggers = [t for t in part.triggers if t.event.kind in kinds]
    costs = (statement_access(s, t.event, part) for t in triggers for s in t.statements)
    return _cost_class(max((c.rank for c in costs), default=(0, 0, 0)))


def scan_warnings(program: Program) -> tuple[str, ...]:
    """One line for each view whose refresh scans, with the events and the reason."""
    events: dict[tuple[str, str, str], list[str]] = {}
    for trigger in program.triggers:
        for s in trigger.statements:
            cost = statement_access(s, trigger.event, program)
            if cost.has_scan:
                key = s.target.name, cost.cost_class, cost.reason
                events.setdefault(key, []).append(f"{trigger.event.kind}{trigger.event.relation}")
    return tuple(f"{target} on {', '.join(on)} takes {cost}: {why}" for (target, cost, why), on in events.items())


# -- the walk ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    """The dominant nest of loops in evaluating a query, and the nest that its rows stand in for what comes after it."""

    time: Loops = ()
    rows: Loops = ()
    paths: tuple[tuple[str, Path], ...] = ()

    def then(self, after: _Work) -> _Work:
        return _Work(_worse(self.time, self.rows + after.time), self.rows + after.rows, self.paths + after.paths)

    def beside(self, other: _Work) -> _Work:
        return _Work(_worse(self.time, other.time), _worse(self.rows, other.rows), self.paths + other.paths)


@dataclass(frozen=True)
class _Walk:
    program: Program
    comparisons: tuple[Compare, ...] = ()  # of the join around

    def query(self, q: Query, bound: frozenset[str]) -> _Work:
        match q:
            case Rel() | Delta() | View():
                return self.atom(q, bound)
            case Value() | Compare():
                return _Work()
            case Bind(_, inner):
                return replace(self.query(inner, bound), rows=())
            case Sum(group, inner):
                work = self.query(inner, bound)
                return work if group - bound else replace(work, rows=())
            case Exists(inner):
                work = self.query(inner, bound)
                return work if outputs(q) - bound else replace(work, rows=())
            case Materialize(inner):
                return self.query(inner, bound)
            case Join(factors):
                return self.join(factors, bound)
            case Union(branches):
                work = _Work()
                for branch in branches:
                    work = work.beside(self.query(branch, bound))
                return work
            case _:
                assert_never(q)

    def join(self, factors: tuple[Query, ...], bound: frozenset[str]) -> _Work:
        inside = replace(self, comparisons=tuple(f for f in factors if isinstance(f, Compare)))
        work = _Work()
        for f in join_order(factors, bound):
            work = work.then(inside.query(f, bound))
            bound |= outputs(f)
        return work

    def atom(self, atom: Atom, bound: frozenset[str]) -> _Work:
        keys = atom.inputs + atom.outputs if isinstance(atom, View) else atom.vars
        path = _path(atom, sum(k in bound for k in keys), len(keys))
        loops = () if path == "lookup" else (Loop(path, _name(atom), self.because(keys, bound)),)
        fill = self.fill(atom)
        return _Work(_worse(loops, fill.time), loops, ((atom.text, path), *fill.paths))

    def because(self, keys: tuple[str, ...], bound: frozenset[str]) -> str:
        given = [k for k in keys if k in bound]
        if given:
            return f"only {', '.join(given)} {'is' if len(given) == 1 else 'are'} bound"
        compared = [c.text for c in self.comparisons if (free(c.left) | free(c.right)) & frozenset(keys)]
        return "no key is bound" + (f", only compared in {' and '.join(compared)}" if compared else "")

    def fill(self, atom: Atom) -> _Work:
        """A view cache that is asked for an input it does not hold computes it then: the worst case counts that."""
        if not isinstance(atom, View) or not atom.inputs:
            return _Work()
        view = self.program.view(atom.name)
        assert view.fill is not None, f"{view.name} has inputs and nothing to fill them from"
        work = self.query(view.fill, frozenset(view.inputs))
        on_miss = f" (to fill {view.name} when it misses)"
        return replace(work, time=tuple(replace(loop, because=loop.because + on_miss) for loop in work.time))


def _path(atom: Atom, given: int, keys: int) -> Path:
    if given == keys:
        return "lookup"
    if given:
        return "slice"
    return "batch" if isinstance(atom, Delta) else "scan"


def _name(atom: Atom) -> str:
    return f"Δ{atom.name}" if isinstance(atom, Delta) else atom.name


# -- comparing nests of loops ------------------------------------------------------------------------------------------


def _rank(loops: Loops) -> Rank:
    paths = [loop.path for loop in loops]
    return paths.count("scan"), paths.count("batch"), paths.count("slice")


def _worse(a: Loops, b: Loops) -> Loops:
    return a if _rank(a) >= _rank(b) else b


def _per_unit(loops: Loops, event: Event) -> tuple[Loops, Unit]:
    """A statement that loops over its batch does for each tuple what is inside that loop."""
    first = next((i for i, loop in enumerate(loops) if loop.path == "batch"), None)
    if first is None:
        return loops, "batch" if event.kind == "Δ" else "event"
    return loops[:first] + loops[first + 1 :], "tuple of the batch"


def _cost_class(rank: Rank) -> str:
    """Slices within slices find the matches of a join: O(matches) in all."""
    scans, batches, slices = rank
    parts = [f"{what}{_power(times)}" for what, times in (("n", scans), ("batch", batches)) if times]
    return f"O({'·'.join([*parts, *['matches'] * (slices > 0)]) or '1'})"


def _power(times: int) -> str:
    return "" if times == 1 else "".join(POWERS[int(digit)] for digit in str(times))
