"""Statement order: "for correctness, we read the old versions of views in a trigger" (Example 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewlet.algebra.query import Bind, Exists, Query, View, children, different_atoms
from viewlet.algebra.remembered import remembered
from viewlet.program.trigger import MapDefinition, Statement


@remembered(1 << 16)
def depth(q: Query) -> int:
    """How many nested aggregates stand inside each other."""
    return isinstance(q, (Bind, Exists)) + max(map(depth, children(q)), default=0)


def views_read(q: Query, views: Mapping[str, MapDefinition]) -> frozenset[str]:
    """The views that evaluating Q may read; a view cache that misses reads what fills it."""
    names = frozenset(a.name for a in different_atoms(q) if isinstance(a, View))
    fills = (fill for name in names if (fill := views[name].fill) is not None)
    return names.union(*(views_read(fill, views) for fill in fills))


class CircularError(Exception):
    """Maps that need each other, or ever more maps: no order of re-evaluations makes one from what is new."""


Reading = tuple[Statement, frozenset[str]]  # a statement and the views that it reads


def order_statements(statements: Sequence[Statement], views: Mapping[str, MapDefinition]) -> tuple[Statement, ...]:
    """An increment runs before whatever writes what it reads; a re-evaluation after it. Where no order does, buffer."""
    rest = [_reading(s, views) for s in statements]
    ordered: list[Statement] = []
    while rest:
        ready = next((s for s in rest if not any(_before(t, s) for t in rest if t is not s)), None)
        if ready is None:
            blocking = next((i for i, (s, _) in enumerate(rest) if not s.reads_new and not s.buffered), None)
            if blocking is None:
                raise CircularError(", ".join(str(s) for s, _ in rest))
            statement, reads = rest[blocking]
            rest[blocking] = replace(statement, buffered=True), reads
            continue
        rest.remove(ready)
        ordered.append(ready[0])
    return tuple(ordered)


def _reading(s: Statement, views: Mapping[str, MapDefinition]) -> Reading:
    """Maintaining a cache while one of its entries is filled would count the update twice: it reads what fills it."""
    fill = views[s.target.name].fill
    reads = views_read(s.expression, views) | (views_read(fill, views) if fill is not None else frozenset())
    if s.op == ":=" and s.target.name in reads:
        raise CircularError(str(s))
    return replace(s, buffered=not s.reads_new and s.target.name in reads), reads


def _before(t: Reading, s: Reading) -> bool:
    """t must run before s: t reads the old version of what s writes, or s the new version of what t writes."""
    (first, first_reads), (second, second_reads) = t, s
    old = not first.reads_new and not first.buffered and second.target.name in first_reads
    return old or (second.reads_new and first.target.name in second_reads)
