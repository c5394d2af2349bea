"""The static kinds of a whole program: those of its relations and views, and of what its view caches are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import Join, Query, View, children
from viewlet.program.trigger import Program, ViewDefinition
from viewlet.program.typing import DOUBLE, NULL, Env, Kind, Kinds, Unfit, both, column_kind, either, is_double


def program_kinds(program: Program) -> Kinds:
    """The kinds of all relations and views; the inputs of a view cache have those of the values it is read with."""
    kinds = Kinds({r.name: tuple(column_kind(c.type) for c in r.columns) for r in program.relations})
    for view in program.views:
        if not view.is_cache:
            kinds.define(view)
    caches = {v.name: v for v in program.views if v.is_cache}
    while caches:
        before = dict(kinds.columns)
        for q, env in _readers(program, kinds):
            _read_caches(q, env, caches, kinds)
        if kinds.columns == before:
            break
    if missing := [name for name in caches if name not in kinds.columns]:
        raise Unfit(f"nothing reads the view cache {', '.join(missing)}")
    return kinds


def _readers(program: Program, kinds: Kinds) -> Iterator[tuple[Query, Env]]:
    for trigger in program.triggers:
        params = dict(zip(trigger.event.params, kinds.columns[trigger.event.relation], strict=False))
        for statement in trigger.statements:
            target = statement.target
            if target.name in kinds.columns:
                yield statement.expression, params | dict(zip(target.inputs, kinds.columns[target.name], strict=False))
    for view in program.views:
        if view.fill is not None and view.name in kinds.columns:
            yield view.fill, dict(zip(view.inputs, kinds.columns[view.name], strict=False))


def _read_caches(q: Query, env: Env, caches: Mapping[str, ViewDefinition], kinds: Kinds) -> None:
    """Learn the kinds of cache inputs from the reads in Q where ``env`` is bound."""
    if isinstance(q, View):
        if q.name in caches:
            known = kinds.columns.get(q.name, (NULL,) * len(q.inputs))
            given = tuple(_asked(a, env[v]) for a, v in zip(known, q.inputs, strict=False))
            if known[: len(given)] != given or q.name not in kinds.columns:
                kinds.define(caches[q.name], given)
        return
    if not isinstance(q, Join):
        for child in children(q):
            _read_caches(child, env, caches, kinds)
        return
    inside = dict(env)
    for part in join_order(q.factors, frozenset(env)):
        _read_caches(part, inside, caches, kinds)
        for v, k in kinds.query(part, inside)[0].items():
            inside[v] = both(inside[v], k) if v in inside else k


def _asked(known: Kind, given: Kind) -> Kind:
    """What a view cache is asked for with values of both kinds: some integers are doubles."""
    if DOUBLE in (known, given) and (is_double(known) or is_double(given)):
        return DOUBLE
    return either([known, given])
