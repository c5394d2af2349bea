"""What each stage refuses, and that the message says where."""

import pytest
from hypothesis import given

from tests.laws.queries import queries
from viewlet.algebra.query import Value
from viewlet.algebra.terms import Var
from viewlet.algebra.text import parse
from viewlet.algebra.verify import VerifyError, verify

FINE = [
    ("definition", "Sum[a](R(a, b) * S(b, c) * [c < 3] * b)", ""),
    ("definition", "R(a, b) * (n := Sum[a](S(a, c) * c)) * [n < b]", ""),
    ("definition", "R(a, b) * (n := Sum[](S(c, d) * [c < a])) * [n < b]", ""),
    ("definition", "(x := y) * (y := 3) * R(x, z)", ""),
    ("definition", "Sum[](R(x, b) * [b < y])", "x y"),
    ("definition", "(R(a, x) + T(a))", "x"),
    ("definition", "(Sum[a](R(a, b)) + Sum[a](S(a, b)))", ""),
    ("definition", "R(a, b) * (T(b) + [a < b])", ""),
    ("definition", "S(a) * (R(a) + 1)", ""),
    ("definition", "(x := n) * (n := Sum[](R(b) * [b < x]))", "x"),
    ("delta", "ΔR(a, b) * S(b, c)", ""),
    ("decision", "M(Sum[b](R(a, b))) * [@x < b] * ΔS(b, c)", "@x"),
    ("statement", "q[@x][a] * (n := q_n[][]) * [n < a]", "@x"),
    ("statement", "Sum[](q[][@x, a] * a)", "@x"),
]


@pytest.mark.parametrize(("stage", "text", "bound"), FINE)
def test_accepts(stage, text, bound):
    verify(parse(text), stage, bound=frozenset(bound.split()))


@pytest.mark.parametrize(
    ("stage", "text", "says"),
    [
        ("definition", "ΔR(a)", "Delta ΔR(a)"),
        ("definition", "Sum[](M(R(a)))", "Materialize M(R(a))"),
        ("definition", "R(a) * (n := q[][])", "View q[][]"),
        ("delta", "ΔR(a) * M(S(a))", "Materialize M(S(a))"),
        ("delta", "ΔR(a) * q[][a]", "View q[][a]"),
        ("decision", "M(R(a)) * q[][a]", "View q[][a]"),
        ("statement", "q[][a] * Exists(R(a))", "Rel R(a)"),
        ("statement", "M(q[][a])", "Materialize M(q[][a])"),
        ("statement", "ΔR(a)", "Delta ΔR(a)"),
    ],
)
def test_each_stage_has_its_vocabulary(stage, text, says):
    with pytest.raises(VerifyError, match="may not exist at this stage") as caught:
        verify(parse(text), stage)
    assert says in str(caught.value)


def test_only_a_bulk_statement_reads_the_update():
    verify(parse("ΔR(a) * q[][a]"), "statement", bulk=True)
    with pytest.raises(VerifyError, match="Materialize"):
        verify(parse("ΔR(a) * M(q[][a])"), "statement", bulk=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        # closed
        ("Sum[a](R(a, b) * [b < @x])", "not closed: nothing gives @x a value"),
        ("(x := {(x + 1)})", "not closed: nothing gives x a value"),
        ("(n := R(a, b))", "not closed: nothing gives a, b a value"),
        # evaluable
        ("(x := y) * (y := x)", "not evaluable: no order gives x, y a value"),
        ("R(a) * (n := Sum[](S(b) * (x := y) * (y := x)))", "not evaluable: no order gives x, y a value"),
        # unions: what only some branches bind
        ("(R(a, b) + T(a))", "not closed: nothing gives b a value"),
        ("R(a) * Exists((S(a, b) + T(a, c)))", "not closed: nothing gives b, c a value"),
        ("T(a) * (R(a, b) + S(a) * [b < 3])", "not closed: nothing gives b a value"),
        # free of capture
        ("R(a, b) * Sum[](S(b, c))", "captured: b, summed out in Sum[](S(b, c)), is in use around it"),
        ("R(a, b) * (n := Sum[](S(b, c)))", "captured: b, summed out in Sum[](S(b, c)), is in use around it"),
        ("(n := Sum[](S(n, c)))", "captured: n"),
        ("Sum[](R(a, b) * [a < 2] * (n := Sum[](S(a, c))))", "captured: a, summed out in Sum[](S(a, c))"),
        ("R(a) * ([a < 3] + Sum[](S(a, b)))", "captured: a"),
        ("Sum[](((b := 1) + [b < 3]))", "not closed: nothing gives b a value"),
    ],
)
def test_refuses(text, says):
    with pytest.raises(VerifyError) as caught:
        verify(parse(text), "definition")
    assert says in str(caught.value)


def test_a_part_may_not_lean_on_a_variable_that_its_inputs_do_not_name():
    """It can be evaluated if S goes first, but nothing says that it must: the other factor claims to need no input."""
    with pytest.raises(VerifyError, match="not evaluable: no order gives a, n a value"):
        verify(parse("S(a) * Exists((a := n) * (n := Sum[](R(b) * [b < a])))"), "definition")


def test_the_message_names_stage_place_and_query():
    with pytest.raises(VerifyError) as caught:
        verify(Value(Var("x")), "definition", where="view q_li")
    assert str(caught.value) == "definition of view q_li: not closed: nothing gives x a value\nin x"


def test_a_sum_may_sum_out_a_variable_that_is_given():
    """A slice at @x, as single-tuple deltas make them, and no capture, though @x is in use around it."""
    verify(parse("T(@x) * Sum[](R(@x, b))"), "definition", bound=frozenset({"@x"}))
    with pytest.raises(VerifyError, match="captured: @x"):
        verify(parse("T(@x) * Sum[](R(@x, b))"), "definition")


@given(queries())
def test_random_queries_are_well_formed(q):
    verify(q, "definition")
