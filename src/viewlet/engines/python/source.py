"""A trigger as a Python function of the event's row: its statements, lowered and fused, then the base table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from viewlet.algebra.query import Query, View, atoms
from viewlet.engines.python.emit import Bounds, Source
from viewlet.program.fuse import Pass, passes, trigger_scope
from viewlet.program.loops import Block
from viewlet.program.lower import Lowering
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import Event, Program, Statement, Trigger
from viewlet.program.typing import DOUBLE, Env, Kinds


def trigger_source(program: Program, trigger: Trigger, kinds: Kinds, lowering: Lowering, bounds: Bounds) -> Source:
    """``fire(ROW)``; of a bulk trigger ``fire(())``, which reads its update from a store and leaves the table alone."""
    event = trigger.event
    source = Source(program=kinds, labels=labels(program), bounds=bounds)
    params = dict(zip(event.params, kinds.columns[event.relation], strict=bool(event.params)))
    done = _passes(program, trigger, lowering)
    for i, each in enumerate(done):
        if each.statements[0].buffered:
            _collected(source, program, each, params, i)
    for i, each in enumerate(done):
        _comments(source, each, event)
        if each.statements[0].buffered:
            _refresh(source, trigger, each.statements[0], f"CHANGE_{i}")
        elif each.collect:
            _collected(source, program, each, params, i)
            _refresh(source, trigger, each.statements[0], f"CHANGE_{i}")
        else:
            _applied(source, program, trigger, each, params, i)
    if any(s.target.name in bounds for s in trigger.statements):
        source.add(1, "if SUSPECTS:")
        source.add(2, "SETTLE()")
    if event.kind != "Δ":
        source.change(1, f"TABLE_{source.labels[event.relation]}", "ROW", str(event.sign))
    source.lines[:0] = ["def fire(ROW):", f"    {f'on {event}'!r}", *_parameters(source, event, params)]
    return source


def _passes(program: Program, trigger: Trigger, lowering: Lowering) -> tuple[Pass, ...]:
    """Fused, unless a view cache that is read here may have to be filled from a view that is written here.

    Such a fill must not see a view that is half refreshed, and fusion does not know of it.
    """
    read = {name for s in trigger.statements for name in _reads(program, s.expression)}
    caches = [v for v in program.views if v.name in read and v.fill is not None]
    filling = {name for v in caches if v.fill is not None for name in _reads(program, v.fill)}
    if filling.isdisjoint(s.target.name for s in trigger.statements):
        return passes(program, trigger, lowering)
    return tuple(Pass((s,), *_alone(program, trigger, s, lowering)) for s in trigger.statements)


def _alone(program: Program, trigger: Trigger, s: Statement, lowering: Lowering) -> tuple[Block, bool]:
    scope = trigger_scope(program, trigger, s)
    collect = s.buffered or s.op == ":=" or program.view(s.target.name).is_cache
    return lowering.change(s.expression, s.target.outputs, scope, s.target.name), collect


def _reads(program: Program, q: Query) -> frozenset[str]:
    """The views that Q reads, and those that the view caches among them are filled from."""
    found = frozenset(a.name for a in atoms(q) if isinstance(a, View))
    fills = [program.view(name).fill for name in found]
    return found.union(*(_reads(program, fill) for fill in fills if fill is not None))


def labels(program: Program) -> Mapping[str, str]:
    """What relations and views are called in Python; no two alike, also where Python's letters are fewer than SQL's."""
    found: dict[str, str] = {}
    for name in sorted({r.name for r in program.relations} | {v.name for v in program.views}):
        label = re.sub(r"\W", "_", name, flags=re.ASCII)
        while label in found.values():
            label += "_"
        found[name] = label
    return found


def _parameters(source: Source, event: Event, kinds: Env) -> list[str]:
    """The values of the row that the code uses; a DOUBLE becomes an exact number."""
    used = [source.name(p) if source.uses[p] else "_" for p in event.params]
    if not any(source.uses[p] for p in event.params):
        return []
    exact = [source.name(p) for p in event.params if source.uses[p] and kinds[p] == DOUBLE]
    return [f"    {', '.join(used)}{',' if len(used) == 1 else ''} = ROW", *(f"    {p} = EXACT({p})" for p in exact)]


def _comments(source: Source, each: Pass, event: Event) -> None:
    for statement in each.statements:
        for line in statement_to_text(statement, event.params).splitlines():
            source.add(1, f"# {line}")


def _applied(source: Source, program: Program, trigger: Trigger, each: Pass, params: Env, i: int) -> None:
    """Changes as they are found; a view that its own change reads is changed when that is complete."""
    read = {name for s in each.statements for name in _reads(program, s.expression)}
    own = [s for s in each.statements if s.target.name in read]
    source.collected = {s.target.name: f"CHANGE_{i}_{j}" for j, s in enumerate(own)}
    for name in source.collected.values():
        source.add(1, f"{name} = {{}}")
    source.kinds = source.program.block(each.block, params)
    source.block(each.block, 1)
    for statement in own:
        _refresh(source, trigger, statement, f"{{(): {source.collected[statement.target.name]}}}")


def _collected(source: Source, program: Program, each: Pass, params: Env, i: int) -> None:
    """The change as a dictionary for each input tuple that the target holds; a view without inputs holds ⟨⟩."""
    (statement,) = each.statements
    target = statement.target
    inputs = dict(zip(target.inputs, source.program.columns[target.name], strict=False))
    source.kinds = source.program.block(each.block, {**inputs, **params})
    source.collected = {target.name: "ENTRIES"}
    if not program.view(target.name).is_cache:
        source.add(1, "ENTRIES = {}")
        source.inside(each.block, 1)
        source.add(1, f"CHANGE_{i} = {{(): ENTRIES}}")
        return
    source.add(1, f"CHANGE_{i} = {{}}")
    source.add(1, f"for GIVEN in VIEW_{source.labels[target.name]}.held():")
    for k, name in enumerate(target.inputs):
        if name in params:  # foreach x⃗_in do, where the statement is about one value of x
            source.add(2, f"if GIVEN[{k}] != {source.value(name).to(inputs[name], plain=False)}:")
            source.add(3, f"CHANGE_{i}[GIVEN] = None")
            source.add(3, "continue")
        else:
            source.add(2, f"{source.assigned(name)} = GIVEN[{k}]")
    source.add(2, "ENTRIES = {}")
    source.inside(each.block, 2)
    source.add(2, f"CHANGE_{i}[GIVEN] = ENTRIES")


def _refresh(source: Source, trigger: Trigger, statement: Statement, change: str) -> None:
    source.add(1, f"REFRESH_{trigger.statements.index(statement)}({change})")
