"""Where an event changes a nested aggregate (§5.1): in the few groups that its parameters name, or anywhere."""

from __future__ import annotations

from viewlet.algebra.query import Bind, Exists, Query, children, inputs, reads_update, relations
from viewlet.algebra.remembered import remembered
from viewlet.algebra.sessions import is_sessions
from viewlet.compiler.context import Context
from viewlet.compiler.delta import range_restriction
from viewlet.program.trigger import Event


def must_reevaluate(q: Query, e: Event) -> bool:
    """§5.1: the delta evaluates a nested aggregate twice; unless its range is restricted, re-evaluation is cheaper."""
    if e.relation not in relations(q):
        return False
    if is_sessions(q):
        return e.kind == "Δ"  # of several rows each moves what the ones before it left
    if isinstance(q, (Bind, Exists)):
        return not restricted(q, e)
    return any(must_reevaluate(child, e) for child in children(q))


def incremental(f: Query, context: Context) -> bool:
    """Whatever relation changes, a parameter of the update restricts where ``f`` changes."""
    return _incremental(f, context.static)


@remembered(1 << 14)
def _incremental(f: Query, static: frozenset[str]) -> bool:
    return all(restricted(f, probe(r)) for r in sorted(relations(f) - static))


def probe(relation: str) -> Event:
    """A bulk update, to ask about an event without its parameters: a restriction then mentions ΔR."""
    return Event("Δ", relation, ())


def restricted(f: Query, e: Event) -> bool:
    """§5.1: the trigger arguments bind variables of the nested aggregate, so that only a part of it is aggregated."""
    assert isinstance(f, (Bind, Exists))
    if is_sessions(f):
        return True
    restriction, _ = range_restriction(f.query, e)
    return reads_update(restriction) or bool(inputs(restriction) & frozenset(e.params))
