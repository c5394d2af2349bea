"""Figure 2: each rewrite rule as the paper writes it, in meaning on random databases, and where it must not apply."""

from __future__ import annotations

import pytest

from tests.rules.meaning import values
from viewlet.algebra.query import Query
from viewlet.algebra.rewrite import Rule
from viewlet.algebra.text import parse
from viewlet.compiler.context import Context
from viewlet.compiler.factorize import factorization
from viewlet.compiler.materialize import (
    expand_term,
    expand_union,
    input_variables,
    nested_aggregates_and_decorrelation,
    query_decomposition,
)
from viewlet.compiler.simplify import polynomial_expansion
from viewlet.compiler.strategy import NAIVE
from viewlet.program.trigger import Event

ANYWHERE = Context()
ON_S = Context(frozenset({"@c", "@d"}), Event("+", "S", ("@c", "@d")))
WITH_INPUT_C = Context(frozenset({"C"}))


def check(rule: Rule[Context], context: Context, before: str, after: str) -> None:
    """The rule makes ``after`` of ``before``, and both are the same GMR on random databases, not always empty."""
    result = rule(parse(before), context)
    assert result is not None
    assert result.text == parse(after).text
    left, right = values(context, parse(before), result)
    assert left == right
    assert any(left)


def test_1_query_decomposition():
    """𝓜(Sum_{AB;f₁*f₂}(Q₁ ⋈ Q₂)) ⇒ 𝓜(Sum_{A;f₁}(Q₁)) ⋈ 𝓜(Sum_{B;f₂}(Q₂))"""
    check(
        query_decomposition,
        ANYWHERE,
        "Sum[A, B](R(A, x) * S(B, y) * x * y)",
        "M(Sum[A](R(A, x) * x)) * M(Sum[B](S(B, y) * y))",
    )


def test_1_only_without_common_columns():
    """ "Q₁ and Q₂ have no common columns" """
    assert query_decomposition(parse("Sum[A, B](R(A, x) * S(B, x))"), ANYWHERE) is None
    assert query_decomposition(parse("Sum[A, B](R(A, x) * S(B, y) * [x < y])"), ANYWHERE) is None


def test_1_a_parameter_disconnects():
    """§5.1: a single-tuple delta eliminates one hyperedge from the join graph and creates new components"""
    disconnected = "Sum[](R(A, @c) * T(@d, B) * A * B)"
    check(query_decomposition, ON_S, disconnected, "M(Sum[@c](R(A, @c) * A)) * M(Sum[@d](T(@d, B) * B))")


EXPANDED = "(Q_L(a) * Q1(a, b) * Q_R(b) + Q_L(a) * Q2(a, b) * Q_R(b))"


def test_2_polynomial_expansion():
    """𝓜(Q_L ⋈ (Q₁ + Q₂) ⋈ Q_R) ⇒ 𝓜(Q_L ⋈ Q₁ ⋈ Q_R) + 𝓜(Q_L ⋈ Q₂ ⋈ Q_R)

    In two steps: the union comes on top, then 𝓜 goes inside.
    """
    check(polynomial_expansion, ANYWHERE, "Q_L(a) * (Q1(a, b) + Q2(a, b)) * Q_R(b)", EXPANDED)
    check(expand_union, ANYWHERE, EXPANDED, "(M(Q_L(a) * Q1(a, b) * Q_R(b)) + M(Q_L(a) * Q2(a, b) * Q_R(b)))")


def test_2_expansion_needs_a_union():
    q = parse("Q_L(a) * Q1(a, b) * Q_R(b)")
    assert polynomial_expansion(q, ANYWHERE) is None
    assert expand_union(q, ANYWHERE) is None


def test_2_inside_an_aggregated_term():
    """Sum_{A;f₁−f₂}: where the two terms touch different parts of the join graph, as PSP's a.price − b.price"""
    check(
        expand_term,
        ANYWHERE,
        "Sum[](R(a, b) * S(c, d) * {(a - c)})",
        "M(Sum[]((R(a, b) * S(c, d) * a + R(a, b) * S(c, d) * c * -1)))",
    )
    assert expand_term(parse("Sum[](R(a, b) * {(a - b)})"), ANYWHERE) is None


def test_2_factorization():
    """The same from right to left, over views: one common factor at a time"""
    check(factorization, ANYWHERE, EXPANDED, "Q_L(a) * (Q1(a, b) * Q_R(b) + Q2(a, b) * Q_R(b))")
    check(factorization, ANYWHERE, "(Q1(a, b) * Q_R(b) + Q2(a, b) * Q_R(b))", "Q_R(b) * (Q1(a, b) + Q2(a, b))")
    assert factorization(parse("(Q_L(a) * Q1(a, b) + Q_R(b) * Q2(a, b))"), ANYWHERE) is None


def test_3_input_variables():
    """𝓜(Sum_{A;f(BC)}(σ_{θ(BC)}(Q))) ⇒ Sum_{A;f(BC)}(σ_{θ(BC)}(𝓜(Sum_{AB;1}(Q))))"""
    check(
        input_variables,
        WITH_INPUT_C,
        "Sum[A](Q(A, B, x) * [B < C] * {(B + C)})",
        "Sum[A](M(Sum[A, B](Q(A, B, x))) * [B < C] * {(B + C)})",
    )


def test_3_only_what_has_input_variables_is_pulled_out():
    """§5.1: "if an operator can be partitioned …, only the latter are pulled out of the expression\""""
    check(
        input_variables,
        WITH_INPUT_C,
        "Sum[A](Q(A, B, x) * [B < C] * [x < B] * B)",
        "Sum[A](M(Sum[A, B](Q(A, B, x) * [x < B] * B)) * [B < C])",
    )
    assert input_variables(parse("Sum[A](Q(A, B, x) * [x < B] * x)"), WITH_INPUT_C) is None


def test_3_a_view_cache_keeps_its_input_variables():
    """ "these input variables are treated as elements of A instead of C" """
    q = parse("Sum[A](Q(A, B, x) * [B < C])")
    assert input_variables(q, Context(frozenset({"C"}), strategy=NAIVE)) is None


def test_4_nested_aggregates_and_decorrelation():
    """𝓜(Sum_{A;f}(σ_{θ(Q_N,B)}(Q_O))) ⇒ Sum_{A;1}(σ_{θ(𝓜(Q_N),B)}(𝓜(Sum_{AB;f}(Q_O))))"""
    check(
        nested_aggregates_and_decorrelation,
        ON_S,
        "Sum[A](R(A, B, f) * (n := Sum[](S(c, d) * d)) * [B < n] * f)",
        "Sum[A](M(Sum[A, B](R(A, B, f) * f)) * (n := M(Sum[](S(c, d) * d))) * [B < n])",
    )


def test_4_correlated():
    """B is "the output variables of Q_O used by f, θ and Q_N": here b, by which Q_N is correlated"""
    check(
        nested_aggregates_and_decorrelation,
        ON_S,
        "Sum[A](R(A, b, f) * (n := Sum[b](S(b, d) * d)) * [1 < n] * f)",
        "Sum[A](M(Sum[A, b](R(A, b, f) * f)) * (n := M(Sum[b](S(b, d) * d))) * [1 < n])",
    )


@pytest.mark.parametrize("relation", ["R", "T"])
def test_4_only_when_the_nested_aggregate_changes(relation: str):
    """§5.1: "only required (and thus, only used) when the delta of the nested subquery is nonzero\""""
    q: Query = parse("Sum[A](U(A, B, f) * (n := Sum[](S(c, d) * d)) * [B < n] * f)")
    on_another = Context(frozenset({"@x"}), Event("+", relation, ("@x",)))
    assert nested_aggregates_and_decorrelation(q, on_another) is None
