"""Example 3: the delta of Sum_{⟨⟩;A*D}(σ_{B=C}(R ⋈ S)) as ΔR changes R, by the delta rules of §3.2."""

import pytest

from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.text import parse
from viewlet.compiler.delta import delta
from viewlet.program.trigger import Event

BULK_R, BULK_S = Event("Δ", "R", ()), Event("Δ", "S", ())


def test_delta_of_the_example():
    """ΔSum_{⟨⟩;A*D}(σ_{B=C}(R ⋈ S)) = Sum_{⟨⟩;A*D}(σ_{B=C}((ΔR) ⋈ S))"""
    q = parse("Sum[](R(A, B) * S(C, D) * [B = C] * A * D)")
    assert delta(q, BULK_R).text == "Sum[](ΔR(A, B) * S(C, D) * [B = C] * A * D)"


@pytest.mark.parametrize(
    ("q", "event", "expected"),
    [
        ("R(A, B)", BULK_R, "ΔR(A, B)"),
        ("R(A, B)", BULK_S, "0"),  # "in the case that the update does not change R, ΔR is empty"
        ("(R(A, B) + S(A, B))", BULK_R, "ΔR(A, B)"),
        ("Sum[A](R(A, B) * B)", BULK_R, "Sum[A](ΔR(A, B) * B)"),
        ("R(A, B) * [A < B]", BULK_R, "ΔR(A, B) * [A < B]"),
        ("R(A, B) * S(C, D)", BULK_R, "ΔR(A, B) * S(C, D)"),
        ("R(A, B) * R(B, C)", BULK_R, "(ΔR(A, B) * R(B, C) + ΔR(A, B) * ΔR(B, C) + ΔR(B, C) * R(A, B))"),
    ],
)
def test_delta_rules(q: str, event: Event, expected: str):
    assert delta(parse(q), event).text == expected


def test_the_delta_is_the_difference():
    """ΔQ(D, ΔD) = Q(D + ΔD) − Q(D), with a deletion in the update"""
    q = parse("Sum[](R(A, B) * S(C, D) * [B = C] * A * D)")
    old = {"R": {(2, 7): 1, (3, 8): 2}, "S": {(7, 10): 1, (8, 5): 1}}
    update = {(2, 7): -1, (4, 8): 3}
    new = {**old, "R": {(3, 8): 2, (4, 8): 3}}
    before, after = (evaluate(q, over(database), ())[()] for database in (old, new))
    change = evaluate(delta(q, BULK_R), over({**old, "ΔR": update}), ())[()]
    assert (before, after, change) == (50, 90, 40)
