"""Delta rules (§3.2, [19]):  ΔQ(D, ΔD) := Q(D + ΔD) − Q(D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from typing_extensions import assert_never

from viewlet.algebra.query import (
    ONE,
    ZERO,
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
    atoms,
    branches,
    factors,
    inputs,
    join,
    map_children,
    negate,
    outputs,
    reads_update,
    relations,
    rename,
    scale,
    split_coefficient,
    sum_,
    union,
    variables,
)
from viewlet.algebra.remembered import remembered
from viewlet.algebra.terms import Var
from viewlet.algebra.turns import is_turns
from viewlet.compiler.context import Context
from viewlet.compiler.normal_forms import Known
from viewlet.compiler.session_changes import session_change
from viewlet.compiler.simplify import simplify
from viewlet.program.trigger import Event

MOST_PRODUCTS = 64  # that the choices of those that change make of one product
MOST_VALUES = 6  # old and new values that an event may name: a nested aggregate over them is evaluated for each


def delta(q: Query, e: Event) -> Query:
    """ΔQ for the single-tuple update ±R(x⃗), or for a bulk update ΔR, of ``e``."""
    match q:
        case Sum() | Exists() if (change := session_change(q, e)) is not None:
            return change
        case Rel():
            return delta_relation(q, e)
        case Union():
            return delta_union(q, e)
        case Join():
            return delta_join(q, e)
        case Sum():
            return delta_sum(q, e)
        case Bind() | Exists():
            return delta_nested(q, e)
        case Value() | Compare() | Delta():
            return ZERO
        case View() | Materialize():
            raise ValueError(f"deltas are taken of queries over relations, not of {q.text}")
        case _:
            assert_never(q)


def delta_relation(q: Rel, e: Event) -> Query:
    """ΔR is the update to R: {⟨x⃗⟩ ↦ ±1}, or the relation-valued parameter; empty for another relation."""
    if q.name != e.relation:
        return ZERO
    if e.kind == "Δ":
        return Delta(q.name, q.vars)
    singleton = (Bind(var, Value(Var(param))) for var, param in zip(q.vars, e.params, strict=True))
    return scale(e.sign, join(*singleton))


def delta_union(q: Union, e: Event) -> Query:
    """Δ(Q₁ + Q₂) := ΔQ₁ + ΔQ₂"""
    return union(*(delta(branch, e) for branch in q.branches))


def delta_sum(q: Sum, e: Event) -> Query:
    """Δ(Sum_{A;f} Q) := Sum_{A;f}(ΔQ), where a variable from outside that ΔQ restricts stays visible"""
    change = delta(q.query, e)
    return sum_((q.group | inputs(q)) & outputs(change), change)


def delta_join(q: Join, e: Event) -> Query:
    """Δ(Q₁ ⋈ Q₂) := ΔQ₁ ⋈ Q₂ + Q₁ ⋈ ΔQ₂ + ΔQ₁ ⋈ ΔQ₂

    For n linear factors: the sum over every choice of those that change, at least one. Each is a flat product, in which
    a factor finds the columns that another makes. A product N of nested aggregates follows: ΔL ⋈ N' + L ⋈ ΔN.
    Where those are too many, Q₁' ⋈ … ⋈ ΔQᵢ ⋈ … ⋈ Qₙ for each i, with the versions after the event in front.
    """
    changing = [f for f in q.factors if e.relation in relations(f)]
    constant = [f for f in q.factors if e.relation not in relations(f)]
    nested = [f for f in changing if isinstance(f, (Bind, Exists)) and session_change(f, e) is None]
    linear = [(f, delta(f, e)) for f in changing if f not in nested]
    after, change = delta_together(nested, e)
    if prod(1 + len(branches(d)) for _, d in linear) > MOST_PRODUCTS:
        terms = (join(*constant, *_telescoped(linear, i, e), after) for i in range(len(linear)))
        return union(*terms, *(join(*constant, *(f for f, _ in linear), c) for c in change))
    choices = product(*linear)
    before = next(choices)  # the first takes no delta at all
    return union(
        *(join(*constant, *choice, after) for choice in choices), *(join(*constant, *before, c) for c in change)
    )


def _telescoped(linear: Sequence[tuple[Query, Query]], i: int, e: Event) -> list[Query]:
    """Q₁' ⋈ … ⋈ Qᵢ₋₁' ⋈ ΔQᵢ ⋈ Qᵢ₊₁ ⋈ … ⋈ Qₙ"""
    return [*(updated(f, e) for f, _ in linear[:i]), linear[i][1], *(f for f, _ in linear[i + 1 :])]


def updated(q: Query, e: Event) -> Query:
    """Q' = Q + ΔQ, with the update where the relation stands"""
    if e.relation not in relations(q):
        return q
    match q:
        case Exists() if (change := session_change(q, e)) is not None:
            return union(q, change)
        case Rel():
            return union(q, delta(q, e))
        case Sum(group, inner):
            after = updated(inner, e)
            return sum_((group | inputs(q)) & outputs(after), after)
        case Bind() | Exists():
            return delta_together([q], e)[0]
        case _:
            return map_children(q, lambda child: updated(child, e))


def delta_together(nested: list[Bind | Exists], e: Event) -> tuple[Query, list[Query]]:
    """N' and the terms of ΔN, for a product N of nested aggregates

    Δ(F₁ ⋈ F₂) := D ⋈ (F₁' ⋈ F₂' − F₁ ⋈ F₂) where one D restricts both; Δ(F ⋈ G) := ΔF ⋈ G + F' ⋈ ΔG where none does.
    Both D may be one that holds where either does. So n of them make 2n terms at most, where the product rule would
    make 3ⁿ.
    """
    all_changes = [_Change(f, *range_restriction(f.query, e)) for f in nested]
    same = join(*(c.factor for c in all_changes if c.rest == ZERO))  # reads the relation, but not what changes in it
    groups = _readers_first(_by_domain([c for c in all_changes if c.rest != ZERO]))
    sides = [(join(*(c.factor for c in group)), join(*(c.after(ONE) for c in group))) for group in groups.values()]
    terms = []
    for i, (domain, group) in enumerate(groups.items()):
        around = join(same, *(new for _, new in sides[:i]), *(old for old, _ in sides[i + 1 :]))
        inside = union(join(*(c.after(domain) for c in group)), negate(sides[i][0]))
        terms.append(join(around, domain, inside))
    return join(same, *(new for _, new in sides)), terms


def _by_domain(changes: list[_Change]) -> dict[Query, list[_Change]]:
    """Those that change together, with the domain of all: a narrower one counts as the wider one.

    Two domains over the same columns count as one that holds where either does: each of two terms would evaluate the
    other's aggregates in its own domain anyway.
    """
    every = list(dict.fromkeys(c.domain for c in changes))
    groups: dict[Query, list[_Change]] = {}
    for c in changes:
        widest = next((d for d in every if implies(c.domain, d) and not implies(d, c.domain)), c.domain)
        groups.setdefault(widest, []).append(c)
    alike: dict[tuple[Query, frozenset[str]], list[Query]] = {}
    for domain in groups:
        bindings = join(*(f for f in factors(domain) if not isinstance(f, Exists)))
        alike.setdefault((bindings, outputs(domain)), []).append(domain)
    either = (_in_either(bindings, {d: groups[d] for d in domains}) for (bindings, _), domains in alike.items())
    return dict(part for parts in either for part in parts)


def _in_either(bindings: Query, groups: dict[Query, list[_Change]]) -> list[tuple[Query, list[_Change]]]:
    """B ⋈ Exists(Q₁) and B ⋈ Exists(Q₂) as B ⋈ Exists(Q₁ + Q₂), unless one aggregate reads the value of another."""
    exists = [[f for f in factors(d) if isinstance(f, Exists)] for d in groups]
    changes = [c for group in groups.values() for c in group]
    values = {c.factor.var for c in changes if isinstance(c.factor, Bind)}
    if len(groups) < 2 or any(len(e) != 1 for e in exists) or any(inputs(c.factor) & values for c in changes):
        return list(groups.items())
    parts = list(dict.fromkeys(b for (e,) in exists for b in branches(e.query)))
    kept = [p for p in parts if not any(_within(p, other) and not _within(other, p) for other in parts)]
    return [(join(bindings, Exists(union(*kept))), changes)]


def _readers_first(groups: dict[Query, list[_Change]]) -> dict[Query, list[_Change]]:
    """An aggregate before those whose value it reads: where it changes they are old, and may be a map by that value."""

    def reads(domain: Query, other: Query) -> bool:
        return any(inputs(c.factor) & outputs(d.factor) for c in groups[domain] for d in groups[other])

    waiting, done = list(groups), list[Query]()
    while waiting:
        first = next((d for d in waiting if not any(reads(o, d) for o in waiting if o is not d)), waiting[0])
        waiting.remove(first)
        done.append(first)
    return {domain: groups[domain] for domain in done}


@dataclass(frozen=True)
class _Change:
    """A nested aggregate F over Q, and ΔQ = D ⋈ Q'."""

    factor: Bind | Exists
    domain: Query
    rest: Query

    def after(self, given: Query) -> Query:
        """F' = F with Q + ΔQ in the place of Q; the bindings that stand in ``given`` beside it need no repeating."""
        known = factors(given)
        change = join(*(f for f in factors(self.domain) if isinstance(f, Bind) and f not in known), self.rest)
        after = union(self.factor.query, change)
        if isinstance(self.factor, Bind):
            return Bind(self.factor.var, after)
        return Exists(after) if after != ZERO else ZERO


def delta_nested(q: Bind | Exists, e: Event) -> Query:
    """Δ(n := Q) := D ⋈ ((n := Q + ΔQ) − (n := Q)), and the same for Exists(Q); D is where Q changes (§5.1, §5.2)"""
    return union(*delta_together([q], e)[1])


def implies(narrow: Query, wide: Query) -> bool:
    """The domain ``wide`` is 1 wherever ``narrow`` is, as far as their factors show."""
    return all(any(f == g or _exists_implies(f, g) for f in factors(narrow)) for g in factors(wide))


def _exists_implies(narrow: Query, wide: Query) -> bool:
    """Exists(Sum_A(f ⋈ Q)) ⇒ Exists(Sum_A(Q)), branch by branch: nothing in a domain is negative."""
    if not isinstance(narrow, Exists) or not isinstance(wide, Exists):
        return False
    return all(any(_within(n, w) for w in branches(wide.query)) for n in branches(narrow.query))


def _within(narrow: Query, wide: Query) -> bool:
    """Sum_A(Q) is not 0 where Sum_A(f ⋈ Q) is not, and the same for a Sum among the factors of Q."""
    if outputs(narrow) != outputs(wide):
        return False
    has = _body(narrow)
    return all(w in has or (isinstance(w, Sum) and any(_within(f, w) for f in has)) for w in _body(wide))


def _body(q: Query) -> tuple[Query, ...]:
    return factors(q.query if isinstance(q, Sum) else q)


# -- range restriction (§5.2) -----------------------------------------------------------------------------------------


@remembered(1 << 12)
def range_restriction(q: Query, e: Event) -> tuple[Query, Query]:
    """ΔQ as (D, Q'): D is 1 on a superset of the tuples where Q changes, and ΔQ = D ⋈ Q'.

    An equality-correlated nested aggregate is thereby touched only where it changed. D is the product of the bindings
    x := t that every branch of ΔQ has, and for the variables that no such binding gives, of the domain of ΔQ.
    """
    if e.relation not in relations(q):
        return ONE, ZERO
    change = simplify(delta(q, e), Context(bound=frozenset(e.params), event=e), known=_normal_forms())
    if change == ZERO:
        return ONE, ZERO
    common = set.intersection(*({f for f in factors(b) if _is_binding(f, e)} for b in branches(change)))
    rest = union(*(join(*(f for f in factors(b) if f not in common)) for b in branches(change)))
    bindings = join(*sorted(common, key=lambda f: f.text))
    correlated = inputs(q) & outputs(rest)  # from outside, and restricted by the update
    open_variables = (outputs(q) | correlated) - outputs(bindings) - frozenset(e.params)
    domain = _domain(rest, open_variables, e) if open_variables else ONE
    return join(bindings, domain if domain is not None else ONE), rest


@remembered(1)
def _normal_forms() -> Known:
    """What simplification made of changes: that of a nested aggregate stands again in those of all around it."""
    return {}


def _is_binding(f: Query, e: Event) -> bool:
    return isinstance(f, Bind) and isinstance(f.query, Value) and inputs(f.query) <= frozenset(e.params)


def _domain(q: Query, wanted: frozenset[str], e: Event) -> Query | None:
    """A 0/1-valued query over ``wanted`` that is 1 wherever Q is not 0; None when nothing in Q restricts them.

    It needs nothing from outside but the event's parameters, so that it can always be evaluated first.
    """
    params = frozenset(e.params)
    supports = [support(b, params) for b in branches(q)]
    if any(s is None or not wanted <= outputs(s) for s in supports):
        supports = [_values_named(b, wanted, params) for b in branches(q)[:MOST_VALUES]]
    if any(s is None for s in supports) or len(supports) < len(branches(q)):
        return None
    named = (with_plain_locals(sum_(wanted, _given(_without_versions(s, e), e))) for s in supports if s is not None)
    return Exists(union(*dict.fromkeys(named)))


def _without_versions(q: Query, e: Event) -> Query:
    """Q without Exists(F) and Exists(F + ΔF) beside the domain of their change.

    D ⋈ (Exists(F + ΔF) − Exists(F)) is 0 outside D already. A domain with a version of F in it would be multiplied
    out, into a product for each branch of D and each of F.
    """
    if isinstance(q, Sum):
        inside = _without_versions(q.query, e)
        return sum_(q.group & outputs(inside), inside)
    named = frozenset(e.params).union(*(outputs(f) for f in factors(q) if _is_binding(f, e)))
    led_to = [named | outputs(f) for f in factors(q) if _is_led_to(f, e)]

    def is_version(f: Query) -> bool:
        return isinstance(f, Exists) and e.relation in relations(f) and any(outputs(f) <= given for given in led_to)

    return join(*(f for f in factors(q) if not is_version(f)))


def _is_led_to(f: Query, e: Event) -> bool:
    """The event says which tuples F has, whatever else is in the relation that it changes."""
    if not isinstance(f, Exists) or e.relation in relations(f):
        return False
    return all(reads_update(b) or not variables(b).isdisjoint(e.params) for b in branches(f.query))


def _values_named(q: Query, wanted: frozenset[str], params: frozenset[str]) -> Query | None:
    """(c := Q[@k]): where the values of a group are ``wanted``, those that the event's own group has and had."""
    parts = _body(split_coefficient(q)[1])
    around = support(join(*parts), params)
    found = ONE if around is None else around
    reached = params | outputs(found)
    nested = [f for f in parts if isinstance(f, Bind) and relations(f) and f.var in wanted and inputs(f) <= reached]
    values = join(*nested)
    if not (wanted & outputs(found) - outputs(values) or inputs(values) - params):
        found = ONE
    named = join(found, values)
    return named if nested and wanted <= outputs(named) else None


def _given(q: Query, e: Event) -> Query:
    """Q with (x := @p) ⋈ R(x) for R(@p): a parameter that stands as a column would be summed out."""
    names = {p: f"_{p}" for p in e.params if p in outputs(q)}
    return join(rename(q, names), *(Bind(x, Value(Var(p))) for p, x in names.items()))


def with_plain_locals(q: Query) -> Query:
    """Q with its local variables named by the order in which they stand: equal domains are then equal queries.

    No column is called ``_.0``, and in the definition of a view the variables are named again (``catalog.readable``).
    """
    local = variables(q) - inputs(q) - outputs(q)
    standing = [v for a in atoms(q) for v in (a.vars if isinstance(a, (Rel, Delta)) else ())]
    order = dict.fromkeys(v for v in (*standing, *sorted(local)) if v in local)
    return rename(q, {v: f"_.{i}" for i, v in enumerate(order)})


def support(q: Query, params: frozenset[str]) -> Query | None:
    """A query without negative multiplicities whose tuples include those of Q: only what is simple to evaluate."""
    match q:
        case Rel() | Delta():
            return Exists(q)
        case Join(parts):
            kept = [s for s in (support(p, params) for p in parts) if s is not None]
            while loose := [s for s in kept if not inputs(s) <= outputs(join(*kept)) | params]:
                kept = [s for s in kept if s not in loose]  # what they need comes from outside, or was not kept
            return join(*kept) if kept else None
        case Sum(group, inner):
            inside = support(inner, params)
            return None if inside is None or not group <= outputs(inside) else sum_(group, inside)
        case Union() if is_turns(q):
            return q
        case Compare() | Exists() | Bind(_, Value()) if inputs(q) <= params or not isinstance(q, Exists):
            return q
        case _:
            return None
