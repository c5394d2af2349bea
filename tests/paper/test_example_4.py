"""Example 4: the delta of Example 3 for one inserted tuple, simplified to Sum_{⟨⟩;x*D}(σ_{y=C} S)."""

from tests.paper.notation import deletion, insertion, simple_delta, stream
from viewlet.algebra.query import inputs, negate
from viewlet.algebra.text import parse
from viewlet.compiler.delta import delta
from viewlet.program.trigger import Event

R = stream("R", "A", "B")
Q = parse("Sum[](R(A, B) * S(C, D) * [B = C] * A * D)")
INSERT = Event("+", "R", ("x", "y"))


def test_the_delta_has_the_tuple_as_a_singleton():
    """Sum_{⟨⟩;A*D}(σ_{B=C}({⟨A:x, B:y⟩} ⋈ S))"""
    assert delta(Q, INSERT).text == "Sum[](S(C, D) * (A := x) * (B := y) * [B = C] * A * D)"


def test_simplified():
    """Sum_{⟨⟩;x*D}(σ_{y=C} S): y stands where C stood, and x, which the sum does not touch, before it"""
    assert simple_delta(Q, INSERT) == parse("Sum[y](S(y, D) * D) * x")


def test_the_update_is_the_delta_s_input():
    """§3.3: "taking a delta adds input variables parameterizing the query with the update": here x and y"""
    assert inputs(Q) == frozenset()
    assert inputs(delta(Q, INSERT)) == {"x", "y"}


def test_a_deletion_is_the_negative():
    assert simple_delta(Q, deletion(R)) == negate(simple_delta(Q, insertion(R)))
