"""Example 9: the materialisation decisions for the two deltas of Example 8, and the choice to re-evaluate instead."""

from collections import Counter

from tests.paper.notation import definitions, insertion, simple_delta, stream, trigger_text
from viewlet.algebra.query import Query, View, children, degree, relations
from viewlet.algebra.text import parse
from viewlet.compiler.context import Context
from viewlet.compiler.script import compile_query
from viewlet.compiler.simplify import simplify
from viewlet.compiler.transform import Compilation

R, S = stream("R", "A"), stream("S", "B")
Q = parse("Sum[](R(A) * (n := Sum[](S(B))) * [n = A])")


def decided(relation: str) -> tuple[Query, Compilation]:
    """⟨Q', M⃗_Q⟩ for Δ_{+R}Q or Δ_{+S}Q, as rule (4) leaves it: before common factors are collected."""
    compilation = Compilation((R, S))
    compilation.catalog.root("Q", simplify(Q, Context()), "")
    event = insertion(R if relation == "R" else S)
    context = Context(frozenset(event.params), event)
    change = simple_delta(Q, event)
    return compilation.decision(change, context, compilation.catalog.views["Q"]), compilation


def reads(q: Query) -> Counter[str]:
    if isinstance(q, View):
        return Counter({q.name: 1})
    return sum((reads(c) for c in children(q)), Counter[str]())


def test_delta_on_s_uses_two_views_each_twice():
    """M_{Q,1} := Sum_{⟨⟩;1}(S) and M_{Q,2} := R"""
    decision, compilation = decided("S")
    assert reads(decision) == {"Q_S": 2, "Q_R": 2}
    auxiliary = {name: view.definition.text for name, view in compilation.catalog.views.items() if name != "Q"}
    assert auxiliary == {"Q_S": "Sum[](S(B))", "Q_R": "R(A)"}
    assert len(compilation.trace.fired("nested_aggregates_and_decorrelation")) == 2  # "once to each instance"


def test_delta_on_r_has_a_lower_degree_and_is_one_view():
    """Δ_{+R(A')}Q = σ_{Sum(S)=A'}{⟨⟩}: everything in it that reads the database is one materialised expression.

    The test against A' stays outside the view: §5.2 "since the selection predicate is being applied to a singleton, we
    can safely materialize only the aggregate in the predicate". With it inside, the view would have A' as an input.
    """
    change = simple_delta(Q, insertion(R))
    assert change.text == "(@A := Sum[](S(B)))"
    assert (degree(change), relations(change)) == (1, {"S"})
    decision, compilation = decided("R")
    assert decision.text == "(@A := Q_S[][])"
    assert compilation.catalog.views["Q_S"].definition.text == "Sum[](S(B))"


def test_the_heuristic_reevaluates_on_s():
    """§5.1: "naively, computing the delta costs twice as much as the original query": no parameter restricts it"""
    program = compile_query("Q", Q, (R, S))
    assert trigger_text(program, "insert into S") == ["Q_S[][] += 1", "Q[][] := Sum[](Q_R[][A] * (A := Q_S[][]))"]
    assert trigger_text(program, "insert into R") == ["Q[][] += (@A := Q_S[][])", "Q_R[][@A] += 1"]
    assert definitions(program, {"Q_R", "Q_S"}) == {"Q_R[][A]": "R(A)", "Q_S[][]": "Sum[](S(B))"}
