"""A sum or a run that is the same in every round of a loop is computed once, before the loop."""

from __future__ import annotations

from dataclasses import replace

from viewlet.loops.names import binds, bound_names, free_names
from viewlet.loops.steps import LEAVES, Block, EachGroup, EachSlice, Loop, RangeSum, Runs, Step

LOOPS = (Loop, EachSlice, EachGroup)


def outside_loops(block: Block) -> Block:
    """The block with ordered reads moved in front of the loops that give them nothing. Every name is bound once."""
    done: Block = ()
    for step in block:
        done += _outside(step)
    return done


def _outside(step: Step) -> Block:
    """The step, behind what may be moved out of it."""
    if isinstance(step, LEAVES):
        return (step,)
    body = outside_loops(step.body)
    if not isinstance(step, LOOPS):
        return (step if body == step.body else replace(step, body=body),)
    own = {*(step.keys if isinstance(step, EachGroup) else ()), *binds(step)}
    before: Block = ()
    kept: Block = ()
    for inner in body:
        if isinstance(inner, (RangeSum, Runs)) and not own & free_names((inner,)):
            before += (inner,)
        else:
            kept += (inner,)
            own.update(bound_names((inner,)))
    return (*before, replace(step, body=kept) if kept != step.body else step)
