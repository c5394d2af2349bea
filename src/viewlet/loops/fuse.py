"""Fusion: statements of one trigger that begin with the same reads and tests are done in one pass.

Q₁ += S ⋈ A and Q₂ += S ⋈ B loop over S once. That is right if neither reads a map that the other writes, and if the
second may move in front of every statement between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from viewlet.loops.names import DEFINE, Names, bound_names, columns_of, renamed
from viewlet.loops.steps import (
    LEAVES,
    Add,
    Block,
    EachSlice,
    Emit,
    Extremum,
    Get,
    Let,
    Loop,
    Nonzero,
    Put,
    RangeSum,
    Runs,
    Same,
    Step,
    Test,
    Total,
)
from viewlet.program.trigger import Statement


@dataclass(frozen=True)
class Turn:
    """Statements done together. ``collect``: the change is complete before any of it is applied."""

    statements: tuple[Statement, ...]
    block: Block
    collect: bool
    reads: frozenset[str]  # views, and those that fill the view caches among them

    @property
    def fusible(self) -> bool:
        """What is collected stays alone unless it reads new versions, and of its own map only what it changes."""
        return not self.collect or all(
            s.reads_new and not s.buffered and not s.target.inputs and (s.late or s.target.name not in self.reads)
            for s in self.statements
        )

    @property
    def writes(self) -> frozenset[str]:
        return frozenset(statement.target.name for statement in self.statements)


def fuse(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """The turns in an order that is right, those in one that begin alike and that nothing keeps apart."""
    done: list[Turn] = []
    numbers = count()
    for turn in turns:
        _place(done, turn, numbers)
    return tuple(done)


def _place(done: list[Turn], new: Turn, numbers: Iterator[int]) -> None:
    """Into the latest pass that begins alike and that nothing keeps the statement from joining, else at the end."""
    if new.fusible:
        for i in range(len(done) - 1, -1, -1):
            if _conflict(done[i], new):
                break
            if not done[i].fusible or done[i].collect != new.collect or not _may_begin_alike(done[i].block, new.block):
                continue
            block = merged(done[i].block, apart(new.block, frozenset(bound_names(done[i].block)), numbers))
            if block is not None:
                together = done[i].statements + new.statements
                done[i] = Turn(together, block, new.collect, done[i].reads | new.reads)
                return
    at = len(done)
    while not new.collect and at > 0 and done[at - 1].collect and not _conflict(done[at - 1], new):
        at -= 1  # so that what is replaced whole stands together
    done.insert(at, new)


def apart(block: Block, taken: frozenset[str], numbers: Iterator[int]) -> Block:
    """The block with other names for those that are taken."""
    own = frozenset(bound_names(block))
    known = own | taken
    fresh: dict[str, str] = {}
    for v in sorted(own & taken):
        names = (f"{v}${n}" for n in numbers)
        fresh[v] = next(name for name in names if name not in known)
    return renamed(block, fresh)


def _conflict(a: Turn, b: Turn) -> bool:
    if a.writes & b.reads or b.writes & a.reads:
        return True
    return bool(a.writes & b.writes) and (a.collect or b.collect)


# -- blocks ------------------------------------------------------------------------------------------------------------


def merged(a: Block, b: Block) -> Block | None:
    """Both blocks with their common beginning once; None where they begin differently. Their names are distinct."""
    for i, step in enumerate(a):
        shared = _shared(step, b[0]) if b else None
        if shared is None:
            continue
        names, head = shared
        rest = renamed(b[1:], names)
        if isinstance(head, DEFINE):
            return (*a[:i], head, *_either(a[i + 1 :], rest))
        return (*a[:i], head, *a[i + 1 :], *rest)
    return None


def _may_begin_alike(a: Block, b: Block) -> bool:
    """Whether :func:`merged` may find a common beginning: most pairs have none, and this asks before it renames."""
    first = _mark(b[0]) if b else None
    return first is not None and any(_mark(step) == first for step in a)


def _mark(step: Step) -> tuple[object, ...] | None:
    """The part of a step that is equal in all steps it can be shared with, whatever they call what they bind."""
    match step:
        case Test(compare, nullable, plain):
            return Test, compare, nullable, plain
        case Let(_, term, plain) | Same(_, term, plain):
            return type(step), term, plain
        case Get() | Loop() | EachSlice():
            return type(step), type(step.source), step.source.name
        case RangeSum() | Runs() | Extremum():
            return type(step), step.source.name
        case Nonzero():
            return (Nonzero,)
        case Total(_, body):
            return Total, _shape(body)
    return None


def _shape(block: Block) -> tuple[object, ...]:
    """The same for blocks that are equal but for their names."""
    return tuple(
        (type(step), *(() if isinstance(step, LEAVES) else (_shape(step.body),)), *_told_without_names(step))
        for step in block
    )


def _told_without_names(step: Step) -> tuple[object, ...]:
    match step:
        case Get() | Loop() | EachSlice() | RangeSum() | Runs() | Extremum():
            return (step.source.name,)
        case Add(_, product) | Put(_, _, product) | Emit(_, product, _):
            return (len(product),)
        case Test(compare, _, _):
            return (compare.op,)
    return ()


def _either(a: Block, b: Block) -> Block:
    together = merged(a, b) if a and b else None
    return a + b if together is None else together


def _shared(a: Step, b: Step) -> tuple[Names, Step] | None:
    """One step for two that do the same, and what the second one's names are called in it."""
    match a, b:
        case (Test(), Test()) if (a.compare, a.nullable, a.plain) == (b.compare, b.nullable, b.plain):
            return {}, replace(a, body=_either(a.body, b.body))
        case (Same(), Same()) if (a.var, a.term, a.plain) == (b.var, b.term, b.plain):
            return {}, replace(a, body=_either(a.body, b.body))
        case (Let(), Let()) if (a.term, a.plain) == (b.term, b.plain):
            return {b.var: a.var}, a
        case (Get(), Get()) if a.source == b.source:
            return {}, replace(a, body=_either(a.body, renamed(b.body, {b.value: a.value})))
        case (Loop(), Loop()) if a.source.name == b.source.name and type(a.source) is type(b.source):
            names = _same_loop(a, b)
            return None if names is None else ({}, replace(a, body=_either(a.body, renamed(b.body, names))))
        case (EachSlice(), EachSlice()) if a.source.name == b.source.name:
            names = _same_slices(a, b)
            return None if names is None else ({}, replace(a, body=_either(a.body, renamed(b.body, names))))
        case (RangeSum() | Runs() | Extremum(), RangeSum() | Runs() | Extremum()):
            return ({b.var: a.var}, a) if _alike((a,), (b,)) else None
        case (Nonzero(), Nonzero()) if a.var == b.var:
            return {}, replace(a, body=_either(a.body, b.body))
        case (Total(), Total()):
            names = {b.var: a.var}
            return (names, a) if _alike(a.body, renamed(b.body, names)) else None
    return None


def _same_loop(a: Loop, b: Loop) -> Names | None:
    """The variables of the second loop by their names in the first, where both go over the same entries."""
    names = _same_columns(a, b)
    if names is None:
        return None
    names[b.value] = a.value
    empty = tuple(renamed((replace(loop, body=()),), named) for loop, named in ((a, {}), (b, names)))
    return names if _alike(*empty) else None


def _same_slices(a: EachSlice, b: EachSlice) -> Names | None:
    names = _same_columns(a, b)
    same = names is not None and renamed((replace(b, body=()),), names) == (replace(a, body=()),)
    return names if same else None


def _same_columns(a: Loop | EachSlice, b: Loop | EachSlice) -> dict[str, str] | None:
    """The open columns of ``b`` by their names in ``a``, where both have the same ones open."""
    names: dict[str, str] = {}
    for mine, other in zip(columns_of(a.source), columns_of(b.source), strict=True):
        if (mine in a.bound) != (other in b.bound) or (mine in a.bound and mine != other):
            return None
        if other not in b.bound and names.setdefault(other, mine) != mine:
            return None
    return names if len(set(names.values())) == len(names) else None


def _alike(a: Block, b: Block) -> bool:
    """Equal but for the names bound inside."""
    if len(a) != len(b):
        return False
    names = dict(zip(bound_names(b), bound_names(a), strict=False))
    return renamed(b, names) == a
