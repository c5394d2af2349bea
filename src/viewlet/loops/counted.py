"""A sum goes over the entries of its count: one loop for both, where a store has both under one key.

A map that counts rows is 0 only where there are none, and a sum over these rows is then 0, too. So ``for sum`` is
``for count { get sum }``, and the get goes inwards, past all loops that do not need the sum. What follows is
:mod:`viewlet.loops.fuse`: it makes one of two loops over the count, with all that is inside them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from viewlet.algebra.query import View
from viewlet.loops.fuse import Turn
from viewlet.loops.names import columns_of, free_names
from viewlet.loops.skeletons import skeleton, sums_nothing
from viewlet.loops.steps import LEAVES, Block, Get, Loop, Step, blocks
from viewlet.program.trigger import Program

CountOf = Mapping[str, str]  # a sum ↦ the map of the same store that counts its rows


def counts_of(program: Program, place: Callable[[str], str]) -> CountOf:
    counts = {(place(v.name), skeleton(v.definition)): v.name for v in program.views if sums_nothing(v.definition)}
    pairs = ((v.name, counts.get((place(v.name), skeleton(v.definition)))) for v in program.views if not v.is_cache)
    return {name: count for name, count in pairs if count is not None and count != name}


def through_counts(turns: Iterable[Turn], counts: CountOf) -> tuple[Turn, ...]:
    """The turns, where a loop over a sum goes over its count if the trigger goes over that anyway."""
    turns = tuple(turns)
    looped = frozenset(_looped(turns))
    counts = {name: count for name, count in counts.items() if count in looped}
    return tuple(replace(turn, block=_through(turn.block, counts)) for turn in turns) if counts else turns


def _looped(turns: Iterable[Turn]) -> Iterator[str]:
    for turn in turns:
        yield from (step.source.name for block in blocks(turn.block) for step in block if isinstance(step, Loop))


def _through(block: Block, counts: CountOf) -> Block:
    return tuple(step if isinstance(step, LEAVES) else _step(step, counts) for step in block)


def _step(step: Step, counts: CountOf) -> Step:
    assert not isinstance(step, LEAVES), "a step with a body"
    inside = _through(step.body, counts)
    if not isinstance(step, Loop) or step.order is not None or step.source.name not in counts:
        return replace(step, body=inside)
    assert isinstance(step.source, View), "only maps have counts"
    names, get = columns_of(step.source), Get(step.source, step.value, ())
    if len(set(names)) < len(names) or not _passes(get, inside):
        return replace(step, body=inside)
    count = View(counts[step.source.name], step.source.inputs, step.source.outputs)
    return replace(step, source=count, value=f"{step.value}$rows", body=_sunk(get, inside))


def _passes(get: Get, block: Block) -> bool:
    """The block is one loop or lookup that does not need what is got: for the count it is often there already."""
    if len(block) != 1 or not isinstance(step := block[0], (Loop, Get)):
        return False
    return (isinstance(step, Get) or step.order is None) and get.value not in free_names((replace(step, body=()),))


def _sunk(get: Get, block: Block) -> Block:
    """The block with the get as far inside as what stands there allows."""
    if not _passes(get, block):
        return (replace(get, body=block),)
    (step,) = block
    assert not isinstance(step, LEAVES), "a loop or a lookup"
    return (replace(step, body=_sunk(get, step.body)),)
