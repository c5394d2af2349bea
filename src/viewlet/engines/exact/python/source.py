"""A trigger as a Python function of the event's row: its statements, lowered and fused, then the base table."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from viewlet.engines.exact.python.emit import Bounds, Orders, Source
from viewlet.loops.fuse import Turn
from viewlet.loops.infer import Kinds
from viewlet.loops.lower import Lowering
from viewlet.loops.pipeline import plan
from viewlet.program.kinds import DOUBLE, Env
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import Event, Program, Statement, Trigger


def trigger_source(
    program: Program,
    trigger: Trigger,
    kinds: Kinds,
    lowering: Lowering,
    bounds: Bounds,
    watched: Container[str],
    orders: Orders,
) -> Source:
    """``fire(ROW)``; of a bulk trigger ``fire(())``, which reads its update from a store and leaves the table alone.

    ``watched``: the views whose values or keys have limits.
    ``orders``: the ordered indexes that other triggers go by; the source names them, too, and those of its own.
    """
    event = trigger.event
    source = Source(program=kinds, labels=labels(program), bounds=bounds, orders=dict(orders))
    params = dict(zip(event.params, kinds.columns[event.relation], strict=bool(event.params)))
    planned = plan(program, trigger, lowering)
    done, known = planned.turns, source.program.block(planned.first, params)
    source.kinds = known
    source.block(planned.first, 1)
    for i, each in enumerate(done):
        if each.statements[0].buffered:
            _collected(source, program, each, known, i)
    for i, each in enumerate(done):
        _comments(source, each, event)
        if each.collect:
            if not each.statements[0].buffered:
                _collected(source, program, each, known, i)
            for statement in each.statements:
                _refresh(source, trigger, statement, _change(i, statement, source))
        else:
            source.collected = {}
            source.kinds = source.program.block(each.block, known)
            source.block(each.block, 1)
    if any(s.target.name in watched for s in trigger.statements):
        source.add(1, "if SUSPECTS:")
        source.add(2, "SETTLE()")
    if event.kind != "Δ":
        source.change(1, f"TABLE_{source.labels[event.relation]}", "ROW", str(event.sign))
    source.lines[:0] = ["def fire(ROW):", f"    {f'on {event}'!r}", *_parameters(source, event, params)]
    return source


def labels(program: Program) -> Mapping[str, str]:
    """What relations and views are called in Python; no two alike, also where Python's letters are fewer than SQL's."""
    by_name: dict[str, str] = {}
    for name in sorted({r.name for r in program.relations} | {v.name for v in program.views}):
        label = re.sub(r"\W", "_", name, flags=re.ASCII)
        while label in by_name.values():
            label += "_"
        by_name[name] = label
    return by_name


def _parameters(source: Source, event: Event, kinds: Env) -> list[str]:
    """The values of the row that the code uses; a DOUBLE becomes an exact number."""
    used = [source.name(p) if source.uses[p] else "_" for p in event.params]
    if not any(source.uses[p] for p in event.params):
        return []
    exact = [source.name(p) for p in event.params if source.uses[p] and kinds[p] == DOUBLE]
    return [f"    {', '.join(used)}{',' if len(used) == 1 else ''} = ROW", *(f"    {p} = EXACT({p})" for p in exact)]


def _comments(source: Source, each: Turn, event: Event) -> None:
    for statement in each.statements:
        for line in statement_to_text(statement, event.params).splitlines():
            source.add(1, f"# {line}")


def _change(i: int, statement: Statement, source: Source) -> str:
    return f"CHANGE_{i}_{source.labels[statement.target.name]}"


def _collected(source: Source, program: Program, each: Turn, params: Env, i: int) -> None:
    """The change as a dictionary for each input tuple that the target holds; a view without inputs holds ⟨⟩."""
    target = each.statements[0].target
    inputs = dict(zip(target.inputs, source.program.columns[target.name], strict=False))
    source.kinds = source.program.block(each.block, {**inputs, **params})
    changes = {s.target.name: _change(i, s, source) for s in each.statements}
    source.collected = {name: f"ENTRIES_{change}" for name, change in changes.items()}
    if not program.view(target.name).is_cache:
        for entries in source.collected.values():
            source.add(1, f"{entries} = {{}}")
        source.inside(each.block, 1)
        for name, change in changes.items():
            source.add(1, f"{change} = {{(): {source.collected[name]}}}")
        return
    change, entries = changes[target.name], source.collected[target.name]
    source.add(1, f"{change} = {{}}")
    source.add(1, f"for GIVEN in VIEW_{source.labels[target.name]}.held():")
    for k, name in enumerate(target.inputs):
        if name in params:  # foreach x⃗_in do, where the statement is about one value of x
            source.add(2, f"if GIVEN[{k}] != {source.value(name).to(inputs[name], plain=False)}:")
            source.add(3, f"{change}[GIVEN] = None")
            source.add(3, "continue")
        else:
            source.add(2, f"{source.assigned(name)} = GIVEN[{k}]")
    source.add(2, f"{entries} = {{}}")
    source.inside(each.block, 2)
    source.add(2, f"{change}[GIVEN] = {entries}")


def _refresh(source: Source, trigger: Trigger, statement: Statement, change: str) -> None:
    source.add(1, f"REFRESH_{trigger.statements.index(statement)}({change})")
