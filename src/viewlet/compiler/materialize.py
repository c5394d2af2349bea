"""Materialisation decisions ⟨Q', M⃗_Q⟩ (§5.1): the rewrite rules of Figure 2 over the operator 𝓜.

A rule sees the argument of one 𝓜 and returns a query in which smaller 𝓜 stand, or None. Every 𝓜 that no rule
takes further becomes a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from viewlet.algebra.query import (
    Bind,
    Compare,
    Exists,
    Join,
    Materialize,
    Query,
    Rel,
    Sum,
    Union,
    Value,
    factors,
    inputs,
    join,
    map_children,
    negate,
    outputs,
    reads_update,
    relations,
    sum_,
    union,
    variables,
)
from viewlet.algebra.rewrite import Rule, Trace, rule
from viewlet.algebra.sessions import is_sessions, sessions_of
from viewlet.algebra.terms import Op, free
from viewlet.algebra.turns import is_turns
from viewlet.compiler.context import Context
from viewlet.compiler.padding import is_lookup
from viewlet.compiler.restriction import incremental
from viewlet.compiler.simplify import locals_apart, simplify, without
from viewlet.compiler.values import is_running, value_map, with_names
from viewlet.compiler.wide import goes_over_rows, row_by_row
from viewlet.program.trigger import Event

Factors = tuple[Query, ...]
NameView = Callable[[Query, Context], Query]


# -- what a monomial is made of ----------------------------------------------------------------------------------------


def monomial(q: Query, context: Context) -> tuple[frozenset[str], Factors]:
    """𝓜's argument as Sum_A(f₁ ⋈ f₂ ⋈ …); bound columns stay visible, they will be keys of the view."""
    inner = q.query if isinstance(q, Sum) else q
    return outputs(q) | (outputs(inner) & context.bound), factors(inner)


def is_scalar(f: Query) -> bool:
    """A function of variables that other factors give: f, θ, a computed column, or the domain of several of these."""
    return isinstance(f, (Value, Compare)) or (
        (isinstance(f, (Bind, Exists)) or is_turns(f)) and not relations(f) and not reads_update(f)
    )


def is_domain(f: Query) -> bool:
    """The keys that an event is about, which its parameters alone say."""
    return isinstance(f, Exists) and not relations(f) and not reads_update(f)


def is_nested(f: Query) -> bool:
    """A part that is not linear in the relations or the update it reads."""
    if is_lookup(f):
        return True
    return isinstance(f, (Bind, Exists)) and (bool(relations(f)) or (isinstance(f, Bind) and reads_update(f)))


def is_parameter(f: Query) -> bool:
    """The relation-valued parameter D_R of a bulk update, or its domain."""
    return not relations(f) and reads_update(f) and not isinstance(f, Bind)


def all_outputs(parts: Iterable[Query]) -> frozenset[str]:
    return frozenset().union(*map(outputs, parts))


def all_inputs(parts: Iterable[Query]) -> frozenset[str]:
    return frozenset().union(*map(inputs, parts))


def dependents(pulled: list[Query], rest: Factors) -> list[Query]:
    """``pulled`` and every scalar or nested factor that uses a value which one of them gives."""
    while True:
        given = all_outputs(pulled) - all_outputs(f for f in rest if f not in pulled)
        more = [f for f in rest if f not in pulled and (is_scalar(f) or is_nested(f)) and inputs(f) & given]
        if not more:
            return pulled
        pulled = pulled + more


def split_off(group: frozenset[str], parts: Factors, pulled: list[Query], context: Context) -> Query:
    """𝓜(Sum_{AB} rest) with B the outputs of the rest that ``pulled`` needs."""
    rest = join(*(f for f in parts if f not in pulled))
    needed = (group | all_inputs(pulled) | all_outputs(pulled)) & outputs(rest)
    return Materialize(sum_(needed, rest), context.bound)


# -- the rules ---------------------------------------------------------------------------------------------------------


@rule("§4: only queries of degree > 0 are materialised")
def leave_constants(q: Query, context: Context) -> Query | None:
    return q if not relations(q) else None


@rule("Figure 2 (2): 𝓜(Q_L ⋈ (Q₁ + Q₂) ⋈ Q_R) ⇒ 𝓜(Q_L ⋈ Q₁ ⋈ Q_R) + 𝓜(Q_L ⋈ Q₂ ⋈ Q_R)")
def expand_union(q: Query, context: Context) -> Query | None:
    match q:
        case Union(parts):
            return union(*(Materialize(b, context.bound) for b in parts))
    return None


@rule("Figure 2 (2) inside f: 𝓜(Sum_{A;f₁±f₂} Q) ⇒ 𝓜(Sum_{A;f₁} Q) ± 𝓜(Sum_{A;f₂} Q) where f₁ and f₂ come apart")
def expand_term(q: Query, context: Context) -> Query | None:
    if not context.strategy.expand_terms:
        return None
    group, parts = monomial(q, context)
    for f in parts:
        match f:
            case Value(Op("+" | "-" as name, (a, b))) if _comes_apart(f, parts, context):
                rest = without(parts, f)
                second = join(rest, Value(b))
                split = union(join(rest, Value(a)), second if name == "+" else negate(second))
                return Materialize(sum_(group & outputs(split), split), context.bound)
    return None


def _comes_apart(f: Value, parts: Factors, context: Context) -> bool:
    """f mixes bound with unbound variables, or variables of parts of the join graph that only f connects."""
    unbound = free(f.term) - context.bound
    others = tuple(p for p in parts if p is not f)
    touched = [c for c in components(others, context.bound) if unbound & (all_outputs(c) | all_inputs(c))]
    return bool(unbound) and (unbound != free(f.term) or len(touched) > 1)


@rule("§5.1 generalised distributive law: 𝓜(f ⋈ Q) ⇒ f ⋈ 𝓜(Q) where f uses bound variables only")
def leave_scalars(q: Query, context: Context) -> Query | None:
    if isinstance(q, Sum):
        return None
    out = [f for f in factors(q) if is_scalar(f) and inputs(f) <= context.bound]
    if not out:
        return None
    return join(*out, Materialize(join(*(f for f in factors(q) if f not in out)), context.bound))


@rule("§3.3: 𝓜(Sum_A(D_R ⋈ Q)) ⇒ Sum_A(D_R ⋈ 𝓜(Q)): a relation-valued parameter binds its columns in Q")
def update_parameter(q: Query, context: Context) -> Query | None:
    group, parts = monomial(q, context)
    pulled = [f for f in parts if is_parameter(f)]
    if not pulled:
        return None
    inside = context.binding(all_outputs(pulled))
    linear = tuple(f for f in parts if f not in pulled)
    apart = read_apart(group, linear, all_outputs(pulled), inside)
    rest = split_off(group, parts, pulled, inside) if apart is None else apart
    return sum_(group, join(*pulled, rest))


@rule("Figure 2 (1): 𝓜(Sum_{AB;f₁*f₂}(Q₁ ⋈ Q₂)) ⇒ 𝓜(Sum_{A;f₁} Q₁) ⋈ 𝓜(Sum_{B;f₂} Q₂)")
def query_decomposition(q: Query, context: Context) -> Query | None:
    group, parts = monomial(q, context)
    connected = components(parts, context.bound)
    if len(connected) < 2:
        return None
    pieces = (join(*c) for c in connected)
    return join(*(Materialize(sum_(group & outputs(p), p), context.bound) for p in pieces))


@rule("§5.1: 𝓜(Q₁ ⋈ Sum_B(Q₂)) ⇒ 𝓜(Sum_{AB}(Q₁ ⋈ Q₂)): one monomial, whose factors the other rules can see")
def flatten_product(q: Query, context: Context) -> Query | None:
    match q:
        case Join(parts):
            for f in parts:
                if isinstance(f, Sum) and relations(f):
                    rest = without(parts, f)
                    flat = join(rest, locals_apart(f, variables(rest)).query)
                    return Materialize(sum_(outputs(q), flat), context.bound)
    return None


def components(parts: Factors, bound: frozenset[str]) -> list[list[Query]]:
    """Components of the join graph: two factors are adjacent iff they share a variable that is not bound."""
    connected: list[tuple[frozenset[str], list[Query]]] = []
    for f in parts:
        names, members = (inputs(f) | outputs(f)) - bound, [f]
        for other in [c for c in connected if c[0] & names]:
            connected.remove(other)
            names, members = names | other[0], other[1] + members
        connected.append((names, members))
    return [members for _, members in connected]


@rule("Figure 2 (3): 𝓜(Sum_A(Q₁ ⋈ θ ⋈ Q₂)) ⇒ Sum_A(𝓜(Q₁) ⋈ θ ⋈ 𝓜(Q₂)) where parameters lead to both")
def leave_comparisons(q: Query, context: Context) -> Query | None:
    """A map of Q₁ ⋈ θ ⋈ Q₂ would have a pair for each two rows, and a row of Q₁ would go over all of Q₂ to keep it.

    θ is a disjunction, which is seldom a range: an order does not help either. The rows of a static table are few.
    """
    if context.event is None or context.strategy.caches:
        return None
    group, parts = monomial(q, context)
    few = all_outputs(f for f in parts if isinstance(f, Rel) and f.name in context.static)
    tests = [f for f in parts if isinstance(f, Compare) and _is_disjunction(f) and not inputs(f) & few]
    connected = components(tuple(f for f in parts if f not in tests), context.bound)
    across = [f for f in tests if sum(bool(inputs(f) & (all_outputs(c) - context.bound)) for c in connected) > 1]
    if len(connected) < 2 or not across or not all(_is_led_to(c, context) for c in connected):
        return None
    rest = tuple(f for f in parts if f not in across)
    pieces = [join(*c) for c in components(rest, context.bound)]
    needed = group | all_inputs(across)
    return sum_(group, join(*across, *(Materialize(sum_(needed & outputs(p), p), context.bound) for p in pieces)))


def _is_led_to(part: list[Query], context: Context) -> bool:
    return any(isinstance(f, Rel) and outputs(f) & context.bound for f in part)


def _is_disjunction(f: Compare) -> bool:
    return isinstance(f.left, Op) and f.left.name == "or"


@rule("§5.1: 𝓜(Sum_A(Q₁ ⋈ Q₂ ⋈ …)) ⇒ Sum_A(𝓜(Q₁) ⋈ 𝓜(Q₂) ⋈ …) where equalities lead to each and a map would not pay")
def leave_joins(q: Query, context: Context) -> Query | None:
    """A join of n relations has 2ⁿ parts, and a map for each is too many: an event goes from row to row instead.

    So does an event of a star where it would go over a slice of the map anyway, see :mod:`viewlet.compiler.wide`.
    """
    if context.event is None:
        return None
    group, parts = monomial(q, context)
    apart = read_apart(group, parts, frozenset(context.event.params), context)
    return None if apart is None else sum_(group, apart)


def read_apart(group: frozenset[str], parts: Factors, given: frozenset[str], context: Context) -> Query | None:
    """Each relation of a product from a map of its own; None unless columns that are ``given`` lead to all of them."""
    tables = [f for f in parts if isinstance(f, Rel)]
    others = [f for f in parts if not isinstance(f, Rel)]
    if len(tables) < 2 or not _lead_to_all(given, tables) or not all(map(_by_key, others)):
        return None
    if context.star and goes_over_rows(group, parts, context):
        return join(*row_by_row(group, parts, context))
    if not context.wide:
        return None
    tests = {f: inputs(f) for f in others if isinstance(f, Compare) and inputs(f) and not inputs(f) & context.bound}
    own = [(r, [f for f, needed in tests.items() if needed <= outputs(r)]) for r in tables]
    inside = {f for _, fs in own for f in fs}
    maps = (Materialize(join(r, *fs), context.bound) for r, fs in own)
    return join(*maps, *(_materialize_inside(f, context) for f in others if f not in inside))


def _lead_to_all(given: frozenset[str], tables: list[Rel]) -> bool:
    """From ``given`` an equality leads to some table, from its columns to the next, and so on to the last."""
    rest = list(tables)
    while near := [r for r in rest if outputs(r) & given]:
        given |= all_outputs(near)
        rest = [r for r in rest if r not in near]
    return not rest


def _by_key(f: Query) -> bool:
    """A factor that one row of the others gives all it needs: a term, or a nested aggregate that is looked up."""
    if isinstance(f, Exists):
        return not inputs(f)
    return is_scalar(f) or (isinstance(f, Bind) and not is_running(f))


@rule("Figure 2 (4): 𝓜(Sum_{A;f}(σ_{θ(Q_N,B)} Q_O)) ⇒ Sum_{A;1}(σ_{θ(𝓜(Q_N),B)}(𝓜(Sum_{AB;f} Q_O)))")
def nested_aggregates_and_decorrelation(q: Query, context: Context) -> Query | None:
    group, parts = monomial(q, context)
    parts = with_names(group, parts, context)
    kept = value_map(group, parts, context)
    pulled = [f for f in parts if is_nested(f) and f not in kept and _must_decorrelate(f, parts, context)]
    if not pulled:
        return None
    pulled = dependents(pulled, parts)
    if context.ordered and not context.strategy.caches:
        pulled = _with_running(pulled, parts)
    outer = split_off(group, parts, pulled, context)
    return sum_(group, join(outer, *(_materialize_inside(f, context) for f in pulled)))


def _with_running(pulled: list[Query], parts: Factors) -> list[Query]:
    """And the running sums that ``pulled`` compares: a view by their value changes all over, an order finds them."""
    running: list[Query] = [f for f in parts if isinstance(f, Bind) and is_running(f) and f not in pulled]
    if not all_outputs(running) & all_inputs(pulled):
        return pulled
    return dependents(pulled + running, parts)


def _materialize_inside(f: Query, context: Context) -> Query:
    match f:
        case Bind(var, inner) if relations(f):
            return Bind(var, Materialize(inner, context.bound | inputs(f)))
        case Exists(inner):
            return Exists(Materialize(inner, context.bound))
        case Union(parts):
            return union(*(Materialize(b, context.bound | inputs(f)) for b in parts))
        case _:
            return f


def _must_decorrelate(f: Query, parts: Factors, context: Context) -> bool:
    """§5.1: rule (4) is needed where the nested aggregate changes with this event, and where no outer query is left.

    It is also needed where the nested aggregate has an input that the outer query does not give (the view would not be
    closed), and it pays where a parameter restricts the outer query while the view with the aggregate inside could only
    be re-evaluated whole.
    """
    if context.by_value and isinstance(f, Exists) and (sessions := sessions_of(f.query)) is not None:
        return sessions.time in context.bound  # the session of one row; else it is read like a relation
    outer = [p for p in parts if relations(p) and not is_nested(p)]
    changes = context.event is not None and context.event.relation in relations(f)
    if not outer or changes or reads_update(f) or is_lookup(f):
        return True
    if isinstance(f, Exists) and variables(f) & context.bound:
        return True  # a domain: the parameters lead to its few tuples, a view with it inside would have to keep them
    given = all_outputs(p for p in parts if p is not f)
    if not inputs(f) <= given:
        return True
    return bool(all_outputs(outer) & context.bound) and not incremental(f, context)


@rule("Figure 2 (3): 𝓜(Sum_{A;f(BC)}(σ_{θ(BC)} Q)) ⇒ Sum_{A;f(BC)}(σ_{θ(BC)}(𝓜(Sum_{AB;1} Q)))")
def input_variables(q: Query, context: Context) -> Query | None:
    if context.strategy.caches:
        return None
    group, parts = monomial(q, context)
    parts = with_names(group, parts, context)
    given = all_outputs(parts)
    pulled = [f for f in parts if (is_scalar(f) or is_domain(f)) and not inputs(f) <= given]
    if not pulled:
        return None
    pulled = dependents(pulled, parts)
    rest = split_off(group, parts, pulled, context)
    return sum_(group, join(rest, *(_materialize_inside(f, context) for f in pulled)))


FIGURE_2: tuple[Rule[Context], ...] = (
    leave_constants,
    expand_union,  # (2) first: every other rule is about one monomial
    expand_term,  # (2) on a term that would hold the join graph together, or that (3) would pull out whole
    leave_scalars,
    update_parameter,
    query_decomposition,  # (1) before (4): a nested aggregate that a parameter cut off needs no outer query
    flatten_product,  # what (1) did not take apart belongs together
    leave_comparisons,  # after (1), which takes apart what not even a comparison connects
    leave_joins,  # before (4), which would keep the outer query whole
    nested_aggregates_and_decorrelation,  # (4) before (3): a bound column is not an input variable
    input_variables,  # (3) last: what is left depends on variables that no relation gives
)


Decided = dict[tuple[object, ...], Query]  # 𝓜(Q) by what decides it: n terms of a delta share most, and so do events


def decide(
    q: Query, context: Context, name_view: NameView, trace: Trace | None = None, decided: Decided | None = None
) -> Query:
    """Apply Figure 2 to 𝓜(Q) to a fixpoint; ``name_view`` gives every 𝓜 that is left its view.

    ``decided``: what was decided before, in contexts that differ in no more than the event and what is bound.
    """
    return _decide(q, context, name_view, trace, {} if decided is None else decided)


def decide_inside(q: Query, context: Context, name_view: NameView, trace: Trace | None = None) -> Query:
    """Decide every 𝓜 in Q."""
    return _decide_inside(q, context, name_view, trace, {})


def _decide(q: Query, context: Context, name_view: NameView, trace: Trace | None, decided: Decided) -> Query:
    q = simplify(q, context, trace)
    if context.by_value and is_sessions(q):  # a map whose changes are known, where those of its parts are not
        return Exists(name_view(q.query, context)) if isinstance(q, Exists) else name_view(q, context)
    for r in FIGURE_2:
        after = r.apply(q, context)
        if after is not None:
            if trace is not None and r is not leave_constants:
                trace.record(r.name, r.source, Materialize(q, context.bound), after)
            return _decide_inside(after, context, name_view, trace, decided)
    return name_view(q, context)


def _decide_inside(q: Query, context: Context, name_view: NameView, trace: Trace | None, decided: Decided) -> Query:
    if not isinstance(q, Materialize):
        return map_children(q, lambda child: _decide_inside(child, context, name_view, trace, decided))
    bound = (context.bound | q.bound) & variables(q.query)
    key = q.query, bound, *_of_event(q.query, context.event)
    if key not in decided:
        decided[key] = _decide(q.query, replace(context, bound=bound), name_view, trace, decided)
    return decided[key]


def _of_event(q: Query, event: Event | None) -> tuple[object, ...]:
    """What the rules ask about an event: whether it changes a part of Q, and which of its parameters Q reads."""
    if event is None:
        return (None,)
    return event.relation if event.relation in relations(q) else "", variables(q).intersection(event.params)
