"""How many tuples a query has, by standard cardinality estimation [12, 32], from what was declared of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

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
    outputs,
)
from viewlet.program.trigger import MapDefinition
from viewlet.schema import Relation

INEQUALITY_SELECTIVITY = 1 / 3  # System R's guess, for want of histograms
EQUALITY_SELECTIVITY = 1 / 10
DEFAULT_DISTINCT = 1 / 10  # of the rows, for a column about which nothing was said
BATCH_ROWS = 100.0  # what a bulk update is taken to hold


@dataclass
class Estimator:
    """|dom(Q)|. ``cache_domains``: for how many inputs each view cache is asked."""

    relations: Mapping[str, Relation]
    views: Mapping[str, MapDefinition]
    cache_domains: Mapping[str, float] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    domains: dict[Query, Mapping[str, float]] = field(default_factory=dict)

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
            case Join(parts):
                known = _least((v, n) for c in parts for v, n in self.distinct(c).items())
                for f in join_order(parts, inputs(q)):
                    if isinstance(f, Bind):  # what is computed has as many values as the column that has most
                        known.setdefault(f.var, max((known.get(v, 1.0) for v in inputs(f)), default=1.0))
                return known
            case _:
                return _least((v, n) for c in children(q) for v, n in self.distinct(c).items())

    def column(self, relation: Relation, name: str) -> float:
        return float(relation.distinct.get(name, max(1.0, relation.rows * DEFAULT_DISTINCT)))

    def size(self, q: Query, bound: frozenset[str]) -> float:
        """|dom(Q)|: how many tuples Q has where ``bound`` have one value each."""
        match q:
            case Rel(name, _):
                each_once = prod(self.distinct(q).values())
                return self._restricted(q, min(float(self.relations[name].rows), each_once), bound)
            case Delta():
                return self._restricted(q, BATCH_ROWS, bound)
            case View(name, _, _):
                return self._restricted(q, self.view_size(name), bound)
            case Value() | Bind():
                return 1.0
            case Compare():
                return selectivity(q)
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
        """|dom(M)|; of a view cache, for each input that it holds."""
        if name not in self.sizes:
            view = self.views[name]
            self.sizes[name] = max(1.0, self.size(view.definition, frozenset(view.inputs)))
        return self.sizes[name]


def selectivity(test: Compare) -> float:
    """The share of tuples for which a comparison holds."""
    match test.op:
        case "=":
            return EQUALITY_SELECTIVITY
        case "<>":
            return 1 - EQUALITY_SELECTIVITY
        case _:
            return INEQUALITY_SELECTIVITY


def _least(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    result: dict[str, float] = {}
    for v, n in pairs:
        result[v] = min(n, result.get(v, n))
    return result
