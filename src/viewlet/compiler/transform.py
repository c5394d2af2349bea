"""The viewlet transform (§4, Definition 1), with the materialisation decisions of §5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from viewlet.algebra.query import (
    ZERO,
    Bind,
    Delta,
    Exists,
    Join,
    Query,
    Rel,
    Sum,
    Value,
    View,
    branches,
    children,
    different_atoms,
    factors,
    inputs,
    join,
    map_children,
    negate,
    outputs,
    relations,
    substitute,
    sum_,
    union,
)
from viewlet.algebra.rewrite import Trace
from viewlet.algebra.sessions import is_sessions
from viewlet.algebra.terms import Term, Var
from viewlet.algebra.verify import VerifyError, verify
from viewlet.compiler.alike import Alike
from viewlet.compiler.catalog import Catalog
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.factorize import factorize
from viewlet.compiler.gaps import delta_of_gaps, side_by_side
from viewlet.compiler.halves import halves
from viewlet.compiler.materialize import Decided, decide, decide_inside
from viewlet.compiler.normal_forms import Known
from viewlet.compiler.order import CircularError, depth
from viewlet.compiler.refresh import groups_that_change
from viewlet.compiler.restriction import must_reevaluate
from viewlet.compiler.simplify import simplify
from viewlet.compiler.sizes import Estimator
from viewlet.compiler.strategy import OPTIMIZED, Choice, Strategy
from viewlet.compiler.ticks import delta_of_tick
from viewlet.compiler.values import is_running
from viewlet.program.trigger import Event, MapDefinition, Statement
from viewlet.schema import CLOCK, Relation


@dataclass
class Compilation:
    """One run of VT: the views found so far, the statements of each trigger, and the record of how."""

    relations: tuple[Relation, ...]
    strategy: Strategy = OPTIMIZED
    catalog: Catalog = field(default_factory=Catalog)
    trace: Trace = field(default_factory=Trace)
    statements: dict[Event, list[Statement]] = field(default_factory=dict)
    choices: Mapping[tuple[str, str], Choice] = field(default_factory=dict)  # (shape of a view, relation) → by cost
    cache_domains: dict[str, float] = field(default_factory=dict)
    alike: Alike = field(default_factory=dict)
    factored: Known = field(default_factory=dict)
    decided: dict[Context, Decided] = field(default_factory=dict)  # views of one script share most nested aggregates
    ordered: bool = True  # the engines have ordered access paths
    counted: bool = False  # relations are tables: no row is there less than 0 times
    wide: set[str] = field(default_factory=set)  # roots of views that would need too many maps
    stars: set[str] = field(default_factory=set)  # roots of views that join three streams or more
    by_value: bool = True  # maps may be kept by the values of groups
    deepest: int = 0  # how deep the nested aggregates of a map may be: those by values need not come to an end

    @property
    def static(self) -> frozenset[str]:
        return frozenset(r.name for r in self.relations if r.static)

    def relation(self, name: str) -> Relation:
        return next(r for r in self.relations if r.name == name)

    def events(self, definition: Query) -> list[tuple[Event, Event, Event]]:
        """Insert, delete and bulk update of every relation in the definition that can change."""
        changing = relations(definition) - self.static
        events = []
        for r in self.relations:
            if r.name in changing:
                events.append((Event("+", r.name, r.params), Event("-", r.name, r.params), Event("Δ", r.name, ())))
        return events

    # -- VT(Q): T_R += (Q += Δ_R Q), then VT of every view that Δ_R Q reads --------------------------------------------

    def run(self) -> None:
        while self.catalog.pending:
            view = self.catalog.views[self.catalog.pending.pop(0)]
            if simplify(view.definition, Context(static=self.static, counted=self.counted)) == ZERO:
                continue  # empty whatever happens
            for insert, delete, bulk in self.events(view.definition):
                self.maintain(view, insert, delete, bulk)

    def maintain(self, view: MapDefinition, insert: Event, delete: Event, bulk: Event) -> None:
        """The statements that keep ``view`` fresh when one relation changes."""
        halved = self.in_halves(view, insert)
        if halved is not None:
            self.emit_halves(insert, halved)
            self.emit_halves(delete, self.in_halves(view, delete))
            self.emit_halves(bulk, self.in_halves(view, bulk))
            return
        first = self.statement(view, insert)
        self.emit(insert, first)
        if first is not None and first.op == "+=" and is_linear(view.definition, insert.relation):
            self.emit(delete, replace(first, expression=negate(first.expression)))
            self.emit(bulk, for_each_tuple(first, insert))
        else:
            self.emit(delete, self.statement(view, delete))
            self.emit(bulk, self.statement(view, bulk))

    def emit(self, event: Event, statement: Statement | None) -> None:
        if statement is None:
            return
        bound = frozenset(event.params) | frozenset(statement.target.inputs)
        where = f"{statement.target.name} on {event}"
        verify(statement.expression, "statement", bound=bound, bulk=event.kind == "Δ", where=where)
        self.statements.setdefault(event, []).append(statement)

    def emit_halves(self, event: Event, statements: list[Statement] | None) -> None:
        assert statements is not None, "a delete and a batch name their places as an insert does"
        for s in statements:
            self.emit(event, s)

    def statement(self, view: MapDefinition, event: Event) -> Statement | None:
        """``view += ΔQ``, or ``view := Q`` where that is cheaper (§5.1)."""
        self.trace.place = f"{view.name} on {event}"
        choice = self.choices.get((self.catalog.shape(view.definition), event.relation), Choice(self.strategy))
        return self.chosen_statement(view, event, choice)

    def chosen_statement(self, view: MapDefinition, event: Event, choice: Choice) -> Statement | None:
        if self.by_value and depth(view.definition) > self.deepest:
            raise CircularError(view.definition.text)
        context = self.context(view, event, choice.strategy)
        recompute = choice.reevaluate
        split = self.split_gaps(view, event)
        moved = delta_of_tick(view.definition, event) if event.relation == CLOCK.name and self.ordered else None
        if recompute is None:
            always = choice.strategy.depth == "base tables, re-evaluate" and not isinstance(view.definition, Rel)
            known = split is not None or moved is not None
            endless = choice.strategy.caches and moves_sessions(view.definition, event)
            recompute = always or endless or (not known and must_reevaluate(view.definition, event))
        if recompute or (split is not None and event.kind == "Δ"):
            return self.reevaluation(view, context, apart=split is not None)
        if moved is not None:
            return self.increment(view, context, moved, apart=True)
        if split is not None:
            return self.increment(view, context, split)
        if choice.strategy.depth == "recursive" and not choice.strategy.caches and not view.inputs:
            groups = groups_that_change(view.definition, event)
            if groups is not None and (refreshed := self.refreshed(view, context, groups)) is not None:
                return refreshed
        statement = self.increment(view, context, delta(view.definition, event))
        in_order = self.ordered and not choice.strategy.caches and runs_by_the_row(view.definition, event)
        if statement is None or not in_order or statement.target == view.read:
            return statement
        return self.refreshed_groups(view, context, statement.target)

    def context(self, view: MapDefinition, event: Event, strategy: Strategy) -> Context:
        """What the rules may know where ``view`` is maintained under ``event``."""
        served = self.catalog.serves[view.name]
        return Context(
            frozenset(event.params),
            event,
            self.static,
            strategy,
            self.ordered,
            self.counted,
            wide=served in self.wide,
            star=served in self.stars,
            by_value=self.by_value,
        )

    def in_halves(self, view: MapDefinition, event: Event) -> list[Statement] | None:
        """Q += Q_before, and late Q += Q_after; None where a delta says it better."""
        choice = self.choices.get((self.catalog.shape(view.definition), event.relation), Choice(self.strategy))
        plain = choice.strategy.depth == "recursive" and not choice.strategy.caches and choice.reevaluate is None
        if not plain or not self.by_value or not self.ordered or view.inputs or event.relation == CLOCK.name:
            return None
        if self.split_gaps(view, event) is not None:
            return None
        split = halves(view.definition, event)
        if split is None:
            return None
        self.trace.place = f"{view.name} on {event}"
        self.trace.record("in_halves", "§5.1, rule (4) I, by halves", view.definition, split[1])
        context = self.context(view, event, choice.strategy)
        statements = [self.half(view, context, q, late) for q, late in zip(split, (False, True), strict=True)]
        return [s for s in statements if s is not None]

    def half(self, view: MapDefinition, context: Context, q: Query, late: bool) -> Statement | None:
        q = simplify(q, context, self.trace)
        if q == ZERO:
            return None
        decided = self.decision(q, context, view)
        if late and is_read(view, decided):  # kept by value, it is its own source
            decided = self.decision(q, context, view, apart=True)
        if late and is_read(view, decided):
            decided = self.decision(q, replace(context, by_value=False), view)
        return replace(aim(view, self.factorized(decided, context), context), late=late)

    def split_gaps(self, view: MapDefinition, event: Event) -> Query | None:
        """ΔQ of one row in a gap that Q tests; not None for a bulk update that may split such a gap several times."""
        row = Event("+", event.relation, self.relation(event.relation).params) if event.kind == "Δ" else event
        return delta_of_gaps(view.definition, row) if self.counted else None

    def increment(self, view: MapDefinition, context: Context, change: Query, apart: bool = False) -> Statement | None:
        """Q += ΔQ; ``apart``: its terms differ in the ranges that they read, and stay as they are"""
        event, context = context.event, context.binding(frozenset(view.inputs))
        assert event is not None
        change = simplify(change, context, self.trace)
        if change == ZERO:
            return None
        verify(change, "delta", bound=context.bound, where=self.trace.place)
        self.trace.deltas[self.trace.place] = change
        if nested_changes(view.definition, event):
            self.trace.record("increment", "§5.1, rule (4) I", view.definition, change)
        expression = self.decision(change, context, view)
        if not apart:
            expression = self.factorized(expression, context)
        return aim(view, expression, context) if expression != ZERO else None

    def reevaluation(self, view: MapDefinition, context: Context, apart: bool = False) -> Statement | None:
        """Q := Q, over views that the trigger has refreshed already; None where Q is empty whatever happens

        ``apart``: no view is kept for a join of two relations of Q.
        """
        self.trace.record("reevaluate", "§5.1, rule (4) R", view.definition, view.definition)
        assert context.event is not None
        by_value = context.by_value and must_reevaluate(view.definition, context.event)
        context = replace(context, bound=frozenset(view.inputs), by_value=by_value)
        decided = self.decision(view.definition, context, view, apart)
        if is_read(view, decided):  # kept by the values of groups, it is its own source
            context = replace(context, by_value=False)
            decided = self.decision(view.definition, context, view, apart)
        expression = self.factorized(decided, context)
        return Statement(view.read, ":=", expression) if expression != ZERO else None

    def refreshed_groups(self, view: MapDefinition, context: Context, target: View) -> Statement:
        """Q[@p] += Q'[@p] − Q[@p]: the groups that the event is about, evaluated once instead of before and after."""
        self.trace.deltas.pop(self.trace.place, None)
        given = {v: Var(p) for v, p in zip(view.outputs, target.outputs, strict=True) if v != p}
        definition = substitute(view.definition, given)
        self.trace.record("reevaluate_groups", "§5.1, rule (4) R", view.definition, definition)
        assert context.event is not None
        context = replace(context, bound=frozenset(context.event.params), by_value=False)
        expression = self.factorized(self.decision(definition, context, view), context)
        return Statement(target, "+=", union(expression, negate(target)), late=True)

    def refreshed(self, view: MapDefinition, context: Context, groups: Query) -> Statement | None:
        """Q[k] += D[k] ⋈ (Q'[k] − Q[k]): the groups in which the event may change something; None if Q' needs Q"""
        context = replace(context, by_value=False)
        definition = sum_(view.outputs, join(groups, *factors(body(view.definition))))
        self.trace.record("reevaluate_groups", "§5.1, rule (4) R", view.definition, definition)
        after = self.decision(definition, context, view)
        if is_read(view, after):
            return None
        before = join(self.decision(groups, context, view), view.read)
        expression = self.factorized(union(after, negate(before)), context)
        return replace(aim(view, expression, context), late=True)

    # -- where reads go ------------------------------------------------------------------------------------------------

    def decision(self, q: Query, context: Context, serving: MapDefinition, apart: bool = False) -> Query:
        """⟨Q', M⃗_Q⟩: Q over views."""
        if context.strategy.depth != "recursive":
            return self.over_base_tables(q)
        why = f"read to refresh {serving.name} when {context.event.relation} changes" if context.event else ""

        def name_view(inner: Query, c: Context) -> Query:
            return self.name_view(inner, c, serving.name, why)

        if apart:
            return decide_inside(side_by_side(q), context, name_view, self.trace)
        decided = self.decided.setdefault(replace(context, bound=frozenset(), event=None), {})
        return decide(q, context, name_view, self.trace, decided)

    def factorized(self, q: Query, context: Context) -> Query:
        return factorize(q, context, self.trace, self.factored)

    def over_base_tables(self, q: Query) -> Query:
        """Q with every relation read from a view that is the relation itself."""
        if isinstance(q, Rel):
            table = Rel(q.name, tuple(c.name for c in self.relation(q.name).columns))
            view = self.catalog.root(f"{q.name}_table", table, "the base table itself")
            variable = dict(zip(table.vars, q.vars, strict=True))
            return View(view.name, (), tuple(variable[v] for v in view.outputs))
        return map_children(q, self.over_base_tables)

    def name_view(self, q: Query, context: Context, serving: str, why: str) -> Query:
        """The view that 𝓜(Q) became; with input variables, a view cache and what fills it."""
        verify(q, "definition", bound=inputs(q), where=f"a view {why}")
        if not inputs(q):
            return self.catalog.view_of(q, serving, why)
        known = set(self.catalog.views)
        view = self.catalog.view_of(q, serving, f"view cache: {why}")
        if view.name not in known:
            self.cache_domains[view.name] = self.input_domain(q, context, self.catalog.views[serving].definition)
            self.fill_cache(view.name, context)
        return view

    def input_domain(self, q: Query, context: Context, serving: Query) -> float:
        """How many input tuples a cache will be asked for: values of the event's columns, or of the query it serves."""
        estimator = self.estimator
        known = dict(estimator.distinct(serving))
        if context.event is not None:
            relation = estimator.relations[context.event.relation]
            columns = zip(relation.params, relation.columns, strict=True)
            known |= {param: estimator.column(relation, c.name) for param, c in columns}
        return prod(known.get(v, 1.0) for v in inputs(q))

    @property
    def estimator(self) -> Estimator:
        return Estimator({r.name: r for r in self.relations}, self.catalog.views, self.cache_domains)

    def fill_cache(self, name: str, context: Context) -> None:
        """§5.1: a cache keeps what was asked for. A miss evaluates the definition over views without inputs."""
        view = self.catalog.views[name]
        source = "Figure 2 (3), input variables as elements of A"
        self.trace.record("view_cache", source, view.definition, view.read)
        inside = replace(
            context,
            bound=frozenset(view.inputs),
            event=None,
            strategy=replace(context.strategy, caches=False, expand_terms=True),
        )
        why = f"fills view cache {name}"
        fill = decide(view.definition, inside, lambda q, c: self.name_view(q, c, name, why), self.trace)
        if any(isinstance(a, View) and a.inputs for a in different_atoms(fill)):
            raise VerifyError(f"view cache {name} would be filled from a cache: {fill.text}")
        self.catalog.views[name] = replace(view, fill=self.factorized(fill, inside))


# -- small facts about definitions and statements ----------------------------------------------------------------------


def body(q: Query) -> Query:
    return q.query if isinstance(q, Sum) else q


def is_read(view: MapDefinition, q: Query) -> bool:
    return any(atom.name == view.name for atom in different_atoms(q))


def nested_changes(q: Query, event: Event) -> bool:
    """Some nested aggregate of Q reads the relation that the event changes."""
    if event.relation not in relations(q):
        return False
    return isinstance(q, (Bind, Exists)) or any(nested_changes(c, event) for c in children(q))


def moves_sessions(q: Query, event: Event) -> bool:
    """ΔQ reads the sessions themselves again, between other bounds: caches of them have caches in their deltas."""
    if event.relation not in relations(q):
        return False
    return is_sessions(q) or any(moves_sessions(c, event) for c in children(q))


def runs_by_the_row(q: Query, event: Event) -> bool:
    """Some nested aggregate that the event changes runs with the outer row."""
    if isinstance(q, Bind) and event.relation in relations(q):
        return is_running(q)
    if is_sessions(q):
        return False
    return any(runs_by_the_row(c, event) for c in children(q))


def is_linear(q: Query, relation: str) -> bool:
    """ΔQ is linear in ΔR: R occurs at most once in each product, and in nothing nested."""
    match q:
        case Bind() | Exists():
            return relation not in relations(q)
        case Join(parts):
            return sum(relation in relations(p) for p in parts) <= 1 and all(is_linear(p, relation) for p in parts)
        case _:
            return all(is_linear(c, relation) for c in children(q))


def for_each_tuple(statement: Statement, insert: Event) -> Statement:
    """Δ_R Q[D_R] = Sum over t of D_R(t) · Δ_{+R(t)}Q, where ΔQ is linear in ΔR."""
    kept = frozenset(statement.target.outputs)
    change = join(Delta(insert.relation, insert.params), statement.expression)
    return replace(statement, expression=sum_(kept & outputs(change), change))


def aim(view: MapDefinition, expression: Query, context: Context) -> Statement:
    """Q[x] += (x := @p) ⋈ E  as  Q[@p] += E."""
    shared = set.intersection(*(set(factors(b)) for b in branches(expression)))
    columns: dict[str, Term] = {}
    aimed: set[Query] = set()
    for f in sorted(shared, key=lambda f: f.text):
        match f:
            case Bind(x, Value(Var(p))) if p in context.bound and x in view.outputs and x not in columns:
                columns[x] = Var(p)
                aimed.add(f)
    if not aimed:
        return Statement(view.read, "+=", expression)
    expression = union(*(join(*(f for f in factors(b) if f not in aimed)) for b in branches(expression)))
    target = substitute(view.read, columns)
    assert isinstance(target, View)
    return Statement(target, "+=", substitute(expression, columns))
