"""Theorem 1: if deg(Q) > 0 then deg(ΔQ) = deg(Q) − 1; so the viewlet transform ends at level deg(Q).

For queries without nested aggregates. The update is to a relation that a union-free part of full degree joins: of
another relation the delta has a lower degree still, or is 0. Equality is of the delta as the rules give it; simplifying
it may find that it is 0 (a condition that no tuple meets) but never raises its degree.
"""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.laws.queries import SCHEMA
from tests.paper.notation import stream
from viewlet.algebra.query import (
    ZERO,
    Compare,
    Query,
    Rel,
    Value,
    branches,
    degree,
    inputs,
    join,
    outputs,
    relations,
    sum_,
    union,
)
from viewlet.algebra.terms import Var, number
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.order import views_read
from viewlet.compiler.script import compile_query
from viewlet.compiler.simplify import simplify
from viewlet.program.trigger import Event

COLUMNS = {"a": ("a1", "a2"), "b": ("b1", "b2", "a1"), "c": ("c1", "c2")}
STREAMS = tuple(stream(name, *columns) for name, columns in SCHEMA.items())


@st.composite
def monomials(draw: st.DrawFn) -> Query:
    """R ⋈ S ⋈ … with conditions and values over their numbers."""
    names = draw(st.lists(st.sampled_from(sorted(SCHEMA)), min_size=1, max_size=3))
    atoms = [Rel(n, tuple(draw(st.sampled_from(COLUMNS[c])) for c in SCHEMA[n])) for n in names]
    q = join(*atoms)
    numbers = sorted(v for v in outputs(q) if not v.startswith("c"))
    if numbers:
        term = st.sampled_from(numbers).map(Var)
        conditions = st.builds(Compare, st.sampled_from(["=", "<", "<>"]), term, term | st.just(number(1)))
        q = join(q, *draw(st.lists(conditions, max_size=1)), *draw(st.lists(term.map(Value), max_size=2)))
    return q


@st.composite
def flat_queries(draw: st.DrawFn) -> Query:
    """Sums of monomials, grouped by variables that all of them have, and products of two such sums."""
    parts = draw(st.lists(monomials(), min_size=1, max_size=3))
    common = sorted(frozenset.intersection(*map(outputs, parts)))
    group = [v for v in common if draw(st.booleans())]
    q = union(*(sum_(group, p) for p in parts))
    assume(q != ZERO)
    return join(q, Rel("T", ("c9",))) if draw(st.booleans()) else q


def leading_relations(q: Query) -> frozenset[str]:
    """What the union-free parts of full degree join; here the union is on top, or beside one T."""
    parts = [f for f in (q.factors if hasattr(q, "factors") else (q,)) if degree(f)]
    return frozenset().union(*(relations(b) for p in parts for b in branches(p) if degree(b) == degree(p)))


def updates(level: int) -> list[Event]:
    """Insertions with parameters of their own, and bulk updates."""
    inserts = [Event("+", name, tuple(f"@{c}{level}" for c in columns)) for name, columns in SCHEMA.items()]
    return inserts + [Event("Δ", name, ()) for name in SCHEMA]


@given(flat_queries(), st.sampled_from(updates(1)))
@settings(max_examples=300, deadline=None)
def test_theorem_1(q: Query, event: Event) -> None:
    """deg(ΔQ) = deg(Q) − 1"""
    change = delta(q, event)
    if event.relation in leading_relations(q):
        assert degree(change) == degree(q) - 1
    assert change == ZERO or degree(change) < degree(q)
    assert degree(simplify(change, Context(frozenset(event.params), event))) <= degree(change)


@given(flat_queries(), st.data())
@settings(max_examples=100, deadline=None)
def test_deltas_of_deltas_end_in_a_constant(q: Query, data: st.DataObject) -> None:
    """The deg(Q)-th delta is independent of the database, and the one after it is 0"""
    change, bound = q, frozenset[str]()
    for level in range(degree(q)):
        event = data.draw(st.sampled_from(updates(level)[: len(SCHEMA)]))
        bound |= frozenset(event.params)
        change = simplify(delta(change, event), Context(bound))
    assert relations(change) == frozenset()
    assert inputs(change) <= bound
    assert all(delta(change, event) == ZERO for event in updates(99))


@given(flat_queries(), st.sampled_from(["naive", "optimized"]))
@settings(max_examples=60, deadline=None)
def test_every_level_of_the_transform_is_of_lower_degree(q: Query, strategy: str) -> None:
    """A view is maintained from views of lower degree only, so the recursion of VT is at most deg(Q) deep"""
    program = compile_query("Q", q, STREAMS, strategy)
    views = {v.name: v for v in program.views}
    for trigger in program.triggers:
        for statement in trigger.statements:
            target = views[statement.target.name].definition
            read = views_read(statement.expression, views)
            assert all(degree(views[name].definition) < degree(target) for name in read), str(statement)
