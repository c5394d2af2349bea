"""Example 8: Q := Sum_{⟨⟩;1}(σ_{Sum_{⟨⟩;1}(S)=A}(R)), whose delta on S is not simpler than Q."""

from tests.paper.notation import insertion, simple_delta, stream
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import degree, relations
from viewlet.algebra.text import parse
from viewlet.compiler.delta import delta
from viewlet.compiler.script import compile_query

R, S = stream("R", "A"), stream("S", "B")
Q = parse("Sum[](R(A) * (n := Sum[](S(B))) * [n = A])")


def test_delta_by_the_rule_for_nested_aggregates():
    """Δ_{+S(B')}Q = Sum(σ_{Sum(S)+1=A}(R)) − Sum(σ_{Sum(S)=A}(R))"""
    assert delta(Q, insertion(S)) == parse(
        "Sum[](R(A) * [n = A] * ((n := (Sum[](S(B)) + 1)) + (n := Sum[](S(B))) * -1))"
    )
    expected = "(Sum[](R(A) * (A := (Sum[](S(B)) + 1))) + Sum[](R(A) * (A := Sum[](S(B)))) * -1)"
    assert simple_delta(Q, insertion(S)) == parse(expected)  # n = A: the aggregate is compared with A itself


def test_the_delta_is_the_difference():
    database = {"R": {(1,): 1, (2,): 3, (3,): 5}, "S": {(7,): 2}}
    change = delta(Q, insertion(S))
    assert evaluate(Q, over(database), ()) == {(): 3}
    assert evaluate(change, over(database), (), {"@B": 7}) == {(): 5 - 3}


def test_the_delta_is_no_simpler_than_the_query():
    """The original nested query appears in it: "the naive viewlet transform will not terminate here\""""
    change = simple_delta(Q, insertion(S))
    assert degree(change) == degree(Q) == 2
    assert relations(change) == relations(Q)


def test_the_transform_terminates_under_every_strategy():
    """Rule (4), or else the base tables; each materialised expression has a lower degree than the query"""
    for strategy in ("naive", "optimized", "cost"):
        program = compile_query("Q", Q, (R, S), strategy)
        auxiliary = [v.definition for v in program.views if v.name != "Q"]
        assert auxiliary
        assert all(degree(d) < degree(Q) for d in auxiliary)
