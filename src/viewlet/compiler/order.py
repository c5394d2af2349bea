"""Statement order: "for correctness, we read the old versions of views in a trigger" (Example 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewlet.algebra.query import Query, View, children
from viewlet.program.trigger import Statement, ViewDefinition


def views_read(q: Query, views: Mapping[str, ViewDefinition]) -> frozenset[str]:
    """The views that evaluating Q may read; a view cache that misses reads what fills it."""
    if isinstance(q, View):
        fill = views[q.name].fill
        return frozenset({q.name}) | (views_read(fill, views) if fill is not None else frozenset())
    return frozenset().union(*(views_read(c, views) for c in children(q)))


def order_statements(statements: Sequence[Statement], views: Mapping[str, ViewDefinition]) -> tuple[Statement, ...]:
    """An increment runs before whatever writes what it reads; a re-evaluation after it. Where no order does, buffer."""
    reads = {s: views_read(s.expression, views) for s in statements}
    for s in statements:  # maintaining a cache while one of its entries is filled would count the update twice
        fill = views[s.target.name].fill
        if fill is not None:
            reads[s] |= views_read(fill, views)
    rest = [replace(s, buffered=True) if s.op == "+=" and s.target.name in reads[s] else s for s in statements]
    reads |= {s: reads[replace(s, buffered=False)] for s in rest}
    ordered: list[Statement] = []
    while rest:
        ready = next((s for s in rest if not any(_before(t, s, reads) for t in rest if t is not s)), None)
        if ready is None:
            blocking = next((s for s in rest if s.op == "+=" and not s.buffered), None)
            assert blocking is not None, f"re-evaluations that read each other: {', '.join(map(str, rest))}"
            buffered = replace(blocking, buffered=True)
            reads[buffered] = reads[blocking]
            rest[rest.index(blocking)] = buffered
            continue
        rest.remove(ready)
        ordered.append(ready)
    return tuple(ordered)


def _before(t: Statement, s: Statement, reads: Mapping[Statement, frozenset[str]]) -> bool:
    """t must run before s: t reads the old version of what s writes, or s the new version of what t writes."""
    old = t.op == "+=" and not t.buffered and s.target.name in reads[t]
    new = s.op == ":=" and t.target.name in reads[s]
    return old or new
