"""The cost-based strategy (§5.1): which way to take rules (2) and (3) and whether to re-evaluate, view by view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from viewlet.algebra.query import Query, View, atoms
from viewlet.compiler.cost import CostModel, width
from viewlet.compiler.order import views_read
from viewlet.compiler.sizes import Estimator
from viewlet.compiler.strategy import Choice
from viewlet.compiler.transform import Compilation, nested_changes
from viewlet.program.trigger import Event, Program, Statement

Choices = dict[tuple[str, str], Choice]


@dataclass(frozen=True)
class Upkeep:
    """The way chosen to maintain a view under one relation's updates: its own cost and the views it reads."""

    choice: Choice
    cost: float
    reads: frozenset[str]


@dataclass
class Search:
    """Explores every view that some choice would read, each once; the catalogue of ``compilation`` is scratch paper."""

    compilation: Compilation
    best: dict[str, dict[str, Upkeep]] = field(default_factory=dict)  # view → relation → upkeep
    kept: set[str] = field(default_factory=set)  # views that the user's views so far need: free for the next ones

    def explore(self, name: str) -> None:
        if name in self.best:
            return
        self.best[name] = {}
        view = self.compilation.catalog.views[name]
        for insert, _, _ in self.compilation.events(view.definition):
            upkeep = self.cheapest(name, insert)
            if upkeep is not None:
                self.best[name][insert.relation] = upkeep
        if view.fill is not None:
            for read in views_read(view.fill, self.compilation.catalog.views):
                self.explore(read)

    def cheapest(self, name: str, event: Event) -> Upkeep | None:
        """min over choices of rate · cost_e(Q') + Σ cost_m(M), each new view M that the choice needs counted once."""
        options: dict[Query, tuple[Upkeep, float]] = {}
        for choice in self.choices(name, event):
            self.compilation.trace.place = f"{name} on {event}, considering"
            statement = self.compilation.chosen_statement(self.compilation.catalog.views[name], event, choice)
            if statement is not None and statement.expression not in options:
                upkeep = self.upkeep(statement, event, choice)
                options[statement.expression] = upkeep, upkeep.cost + self.maintenance(upkeep.reads - {name})
        return min(options.values(), key=lambda option: option[1])[0] if options else None

    def choices(self, name: str, event: Event) -> list[Choice]:
        definition = self.compilation.catalog.views[name].definition
        recursive = replace(self.compilation.strategy, search=False)
        flags = product((True, False), (False, True))
        ways = [replace(recursive, expand_terms=expand, caches=caches) for expand, caches in flags]
        either = (False, True) if nested_changes(definition, event) else (False,)
        return [Choice(way, reevaluate) for way in ways for reevaluate in either]

    def upkeep(self, statement: Statement, event: Event, choice: Choice) -> Upkeep:
        rate = float(self.compilation.relation(event.relation).rate)
        cost = CostModel(self.compilation.estimator, self.compilation.ordered).statement_cost(statement, event)
        return Upkeep(choice, rate * cost, views_read(statement.expression, self.compilation.catalog.views))

    def maintenance(self, views: frozenset[str]) -> float:
        """Σ cost_m of the views and of all that their upkeep reads; a map that is kept anyway costs nothing (§5.1)."""
        for name in views:
            self.explore(name)
        needed = self.closure(views) - self.kept
        return sum(u.cost for name in needed for u in self.best.get(name, {}).values())

    def closure(self, views: frozenset[str]) -> set[str]:
        """The views and all that their upkeep reads."""
        closed, rest = set[str](), set(views)
        while rest:
            name = rest.pop()
            closed.add(name)
            rest |= frozenset[str]().union(*(u.reads for u in self.best.get(name, {}).values())) - closed
        return closed


def cheapest_choices(compilation: Compilation) -> Choices:
    """For every view that may be kept, by shape, and every relation: the cheapest way to maintain it."""
    search = Search(compilation)
    for name in list(compilation.catalog.views):
        search.explore(name)
        search.kept |= search.closure(frozenset({name}))
    views = compilation.catalog.views
    return {
        (compilation.catalog.shape(views[name].definition), relation): upkeep.choice
        for name, upkeeps in search.best.items()
        for relation, upkeep in upkeeps.items()
    }


def total_cost(program: Program, cache_domains: Mapping[str, float]) -> dict[str, float]:
    """cost(Q) = rate_refresh · cost_e(Q') + Σ cost_m, in cells touched a second at the declared rates."""
    views = {v.name: v for v in program.views}
    sizes = Estimator({r.name: r for r in program.relations}, views, cache_domains)
    model = CostModel(sizes, program.ordered)
    maintenance = sum(
        float(program.relation(t.event.relation).rate) * model.statement_cost(s, t.event)
        for t in program.triggers
        if t.event.kind == "+"
        for s in t.statements
    )
    streams = [r for r in program.relations if not r.static]
    read = (q for r in program.results for q in (r.rows, *(q for _, q in r.lookups)) if q is not None)
    reads = list(dict.fromkeys(a for q in read for a in atoms(q) if isinstance(a, View)))
    ends = [r.rows for r in program.results for _ in r.extremes]  # each row looks at the end of one slice
    touched = sum(sizes.size(q, frozenset()) * width(q.outputs) for q in reads)
    touched += sum(1.0 if rows is None else sizes.size(rows, frozenset()) for rows in ends)
    refresh = float(sum(r.rate for r in streams)) * touched
    return {"maintenance": maintenance, "refresh": refresh, "total": maintenance + refresh, "views": float(len(views))}
