"""The cost model of §5.1: standard cardinality estimation [12, 32], cost_e, and the tuples a statement touches.

Beyond the paper: where a sum is read off an order (:mod:`viewlet.program.ordered`), a descent counts its depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log2, prod

from viewlet.algebra.evaluate import join_order
from viewlet.algebra.query import (
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
    children,
    inputs,
    join,
    outputs,
)
from viewlet.program.ordered import Path, ordered_path
from viewlet.program.trigger import Event, ViewDefinition
from viewlet.schema import Relation

INEQUALITY_SELECTIVITY = 1 / 3  # System R's guess, for want of histograms
EQUALITY_SELECTIVITY = 1 / 10
DEFAULT_DISTINCT = 1 / 10  # of the rows, for a column about which nothing was said
NODE_BITS = 4  # a descent reads one node of sixteen on each level
BATCH_ROWS = 100.0  # what a bulk update is taken to hold


@dataclass
class Estimator:
    """Sizes of domains. ``cache_domains``: for how many inputs each view cache is asked."""

    relations: Mapping[str, Relation]
    views: Mapping[str, ViewDefinition]
    cache_domains: Mapping[str, float] = field(default_factory=dict)
    ordered: bool = True
    sizes: dict[str, float] = field(default_factory=dict)
    domains: dict[Query, Mapping[str, float]] = field(default_factory=dict)

    # -- |dom_A(Q)| ----------------------------------------------------------------------------------------------------

    def distinct(self, q: Query) -> Mapping[str, float]:
        """How many values each variable of Q takes: the least that an atom it stands in allows."""
        if q not in self.domains:
            self.domains[q] = self._distinct(q)
        return self.domains[q]

    def _distinct(self, q: Query) -> Mapping[str, float]:
        match q:
            case Rel(name, names) | Delta(name, names):
                relation = self.relations[name]
                counts = [self.column(relation, c.name) for c in relation.columns]
                return _least(zip(names, counts, strict=True))
            case View(name, _, outs):
                view = self.views[name]
                theirs = self.distinct(view.definition)
                return _least((v, theirs.get(w, 1.0)) for v, w in zip(outs, view.outputs, strict=True))
            case _:
                return _least((v, n) for c in children(q) for v, n in self.distinct(c).items())

    def column(self, relation: Relation, name: str) -> float:
        return float(relation.distinct.get(name, max(1.0, relation.rows * DEFAULT_DISTINCT)))

    def size(self, q: Query, bound: frozenset[str]) -> float:
        """|dom(Q)|: how many tuples Q has where ``bound`` have one value each."""
        match q:
            case Rel(name, _):
                return self._restricted(q, float(self.relations[name].rows), bound)
            case Delta():
                return self._restricted(q, BATCH_ROWS, bound)
            case View(name, _, _):
                return self._restricted(q, self.view_size(name), bound)
            case Value() | Bind():
                return 1.0
            case Compare(op, _, _):
                return EQUALITY_SELECTIVITY if op == "=" else INEQUALITY_SELECTIVITY
            case Exists(inner) | Materialize(inner):
                return self.size(inner, bound)
            case Union(parts):
                return sum(self.size(p, bound) for p in parts)
            case Sum(group, inner):
                counts = self.distinct(inner)
                return min(self.size(inner, bound), prod(counts.get(v, 1.0) for v in group - bound))
            case Join():
                return self._join_size(q, bound)

    def _restricted(self, atom: Query, rows: float, bound: frozenset[str]) -> float:
        counts = self.distinct(atom)
        return max(rows / prod(counts.get(v, 1.0) for v in outputs(atom) & bound), min(rows, 1e-3))

    def _join_size(self, q: Join, bound: frozenset[str]) -> float:
        size = 1.0
        for f in join_order(q.factors, bound | inputs(q)):
            size *= self.size(f, bound)
            bound |= outputs(f)
        return size

    def view_size(self, name: str) -> float:
        """|dom(M)|; a view cache holds its outputs for each input that was asked for."""
        if name not in self.sizes:
            view = self.views[name]
            inside = self.size(view.definition, frozenset(view.inputs))
            self.sizes[name] = max(1.0, inside) * self.cache_domains.get(name, 1.0)
        return self.sizes[name]

    # -- cost_e --------------------------------------------------------------------------------------------------------

    def cost_e(self, q: Query, bound: frozenset[str]) -> float:
        """cost_e(Q) = |dom(Q)| + Σ |dom(Q_i)| over the Q_i under a Sum; a correlated one counts per outer tuple."""
        return self.size(q, bound) + self._inside(q, bound)

    def _inside(self, q: Query, bound: frozenset[str]) -> float:
        match q:
            case Sum(group, Join(parts)) if self.ordered and (path := ordered_path(parts, bound | inputs(q), group)):
                return self._ordered(path, parts, bound | inputs(q))
            case Sum(_, inner):
                return self.cost_e(inner, bound)
            case Join(parts):
                total, outer = 0.0, 1.0
                for f in join_order(parts, bound | inputs(q)):
                    total += outer * self._inside(f, bound)
                    outer = max(outer * self.size(f, bound), 1e-3)
                    bound |= outputs(f)
                return total
            case _:
                return sum(self._inside(c, bound) for c in children(q))

    def _ordered(self, path: Path, parts: tuple[Query, ...], bound: frozenset[str]) -> float:
        """A descent for each group and threshold instead of a tuple for each entry; in a range, also its entries."""
        rest = join(*(f for f in parts if f is not path.atom and f not in path.replaced))
        descent = log2(2 + self.view_size(path.view.name)) / NODE_BITS
        counts = self.distinct(path.view)
        groups = min(prod(counts.get(v, 1.0) for v in path.open_ - bound), self.view_size(path.view.name))
        runs = len(path.thresholds) * descent
        if path.is_sum:
            turns = max(groups, 1.0) if (inputs(rest) | outputs(rest)) & path.open_ else 1.0
            return self.cost_e(rest, bound | path.open_) * turns + groups * descent + runs
        matches = self.size(path.atom, bound) * INEQUALITY_SELECTIVITY
        inside = bound | outputs(path.atom)
        return descent + runs + matches * max(self.cost_e(rest, inside), 1.0)

    def statement_cost(self, target: View, expression: Query, event: Event) -> float:
        """What one refresh by this statement touches; for a view cache, once for every input it holds."""
        bound = frozenset(event.params) | frozenset(target.inputs)
        return self.cache_domains.get(target.name, 1.0) * self.cost_e(expression, bound)


def _least(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    result: dict[str, float] = {}
    for v, n in pairs:
        result[v] = min(n, result.get(v, n))
    return result
