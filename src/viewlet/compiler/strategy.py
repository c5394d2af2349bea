"""The materialisation strategies of §6: what a compilation may keep, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from viewlet.errors import Error

StrategyName = Literal["reevaluate", "classical", "naive", "optimized", "cost"]
Depth = Literal["base tables, re-evaluate", "base tables, first-order deltas", "recursive"]


@dataclass(frozen=True, slots=True)
class Strategy:
    """How far deltas are taken, and which way the bidirectional rules of Figure 2 go.

    ``expand_terms``: rule (2) also splits sums inside aggregated terms.
    ``caches``: an input variable stays in the view, which becomes a view cache; rule (3) does not pull it out.
    ``row_by_row``: what an event would read of a star's map entry by entry, it reads off the relations (:mod:`.wide`).
    ``search``: choose both, and re-evaluation or increment, per statement by the cost model of §5.1.
    """

    name: str
    depth: Depth = "recursive"
    expand_terms: bool = True
    caches: bool = False
    row_by_row: bool = True
    search: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """How one view is maintained under one relation's updates; ``reevaluate`` None: the heuristic of §5.1 says."""

    strategy: Strategy
    reevaluate: bool | None = None


REEVALUATE = Strategy("reevaluate", depth="base tables, re-evaluate")
CLASSICAL = Strategy("classical", depth="base tables, first-order deltas")
NAIVE = Strategy("naive", expand_terms=False, caches=True)
OPTIMIZED = Strategy("optimized")
PARTS = Strategy("optimized", row_by_row=False)  # a map for each part, as in the paper
COST = Strategy("cost", row_by_row=False, search=True)

STRATEGIES = {s.name: s for s in (REEVALUATE, CLASSICAL, NAIVE, OPTIMIZED, COST)}


def strategy_named(name: str) -> Strategy:
    if name not in STRATEGIES:
        raise Error(f"no strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
