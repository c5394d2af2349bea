"""parse(q.text) == q and parse(pretty(q)) == q, for terms, for meaningful queries and for any tree at all."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.queries import queries
from viewlet.algebra.query import (
    Bind,
    Compare,
    Delta,
    Exists,
    Materialize,
    Query,
    Rel,
    Value,
    View,
    join,
    outputs,
    sum_,
    union,
)
from viewlet.algebra.terms import COMPARISONS, NULL, Const, Term, Var, date, number, op, string, timestamp
from viewlet.algebra.text import ParseError, parse, parse_term, pretty

NAMES = st.sampled_from(["a", "b", "@x", "b1.price", "ok′", "Δt", "Sum", "DATE", "and", "x₁"])
RELATIONS = NAMES.filter(lambda name: not name.startswith("Δ"))  # ΔR(a) is the update to R
NAME_LISTS = st.lists(NAMES, max_size=3, unique=True).map(tuple)
NUMBERS = st.one_of(st.integers(), st.fractions(max_denominator=60)).map(number)
STRINGS = st.text(max_size=8).map(string)
DAYS = st.integers(-500_000, 2_000_000)
MOMENTS = DAYS.map(date) | st.builds(lambda d, us: timestamp(d * 86_400_000_000 + us), DAYS, st.integers(0, 10**11))
VARIABLES = NAMES.map(Var)


def numeric(smaller: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.one_of(
        st.builds(op, st.sampled_from("+-*/"), smaller, smaller),
        st.builds(op, st.just("abs"), smaller),
        st.builds(op, st.just("coalesce"), smaller, smaller, smaller),
        st.builds(op, st.just("case"), conditions(smaller), smaller, smaller),
    )


def conditions(over: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    compare = st.builds(op, st.sampled_from(sorted(COMPARISONS)), over, over)
    return st.one_of(
        compare,
        st.builds(op, st.sampled_from(["not", "is_null"]), compare),
        st.builds(op, st.sampled_from(["and", "or"]), compare, compare),
        st.builds(op, st.just("or"), compare, compare, compare),
    )


NUMERIC = st.recursive(NUMBERS | VARIABLES | st.just(NULL), numeric, max_leaves=6)
TERMS = st.one_of(NUMERIC, conditions(NUMERIC), STRINGS, MOMENTS)


def larger(smaller: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    return st.one_of(
        st.lists(smaller, max_size=4).map(lambda parts: join(*parts)),
        st.lists(smaller, max_size=4).map(lambda parts: union(*parts)),
        st.builds(lambda q, keep: sum_(outputs(q) & set(keep), q), smaller, NAME_LISTS),
        st.builds(Bind, NAMES, smaller),
        st.builds(Exists, smaller),
        st.builds(Materialize, smaller),
    )


ATOMS = st.one_of(
    st.builds(Rel, RELATIONS, NAME_LISTS),
    st.builds(Delta, RELATIONS, NAME_LISTS),
    st.builds(View, NAMES, NAME_LISTS, NAME_LISTS),
    st.builds(Value, TERMS),
    st.builds(Compare, st.sampled_from(sorted(COMPARISONS)), TERMS, TERMS),
)
TREES = st.recursive(ATOMS, larger, max_leaves=12)


@given(TERMS)
def test_terms(term):
    assert parse_term(term.text) == term


@given(NUMBERS | STRINGS | MOMENTS)
def test_constants_keep_value_and_kind(constant):
    """Nodes are equal when they print the same, so the value is looked at on its own."""
    parsed = parse_term(constant.text)
    assert isinstance(parsed, Const)
    assert (parsed.value, parsed.kind) == (constant.value, constant.kind)


@given(queries())
def test_queries_that_mean_something(q):
    assert parse(q.text) == q
    assert parse(pretty(q, width=30)) == q


@given(TREES, st.integers(0, 120))
def test_any_tree(q, width):
    assert parse(q.text) == q
    assert parse(pretty(q, width)) == q


@given(queries(), st.integers(20, 120))
def test_pretty_breaks_only_what_is_too_long(q, width):
    assert ("\n" in pretty(q, width)) <= (len(q.text) > width)


def test_pretty_by_example():
    q = parse("Sum[a](R(a, b) * S(b, c) * (n := Sum[c](T(c, d) * d)) * [n < 3] * (U(a) + V(a) * W(a)))")
    assert pretty(q, width=23) == (
        "Sum[a](\n"
        "  R(a, b)\n"
        "  * S(b, c)\n"
        "  * (\n"
        "        U(a)\n"
        "      + V(a) * W(a)\n"
        "    )\n"
        "  * (n :=\n"
        "      Sum[c](\n"
        "        T(c, d) * d\n"
        "      )\n"
        "    )\n"
        "  * [n < 3]\n"
        ")"
    )


def test_a_view_may_be_called_sum():
    assert parse("Sum[x][a, b]") == View("Sum", ("x",), ("a", "b"))


def test_what_is_not_in_normal_form_is_brought_into_it():
    assert parse("2 * S(b) * R(a) * 3").text == "R(a) * S(b) * 6"
    assert parse("((R(a) + S(a)) + -1 * R(a))").text == "S(a)"
    assert parse("(1 / 2) * R(a)").text == "R(a) * 0.5"
    assert parse_term("((1 / 3) + x)") == op("+", number(Fraction(1, 3)), Var("x"))


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("R(a, b", "expected ')', found 'the end'", 7),
        ("R(a) S(b)", "expected the end, found 'S'", 6),
        ("R(a) * ", "expected a name, found 'the end'", 8),
        ("[a b]", "expected a comparison, found 'b'", 4),
        ("{(a + b - c)}", "expected ')', found '-'", 9),
        ("{(a + b + c)}", "expected ')', found '+'", 9),
        ("{(a)}", "expected an operator, found ')'", 4),
        ("{sin(a)}", "no such operator: sin", 2),
        ("{('x' + 1)}", "cannot apply + to 'x', 1", 2),
        ("{not()}", "not does not take 0 terms", 2),
        ("{case(a, 1)}", "case does not take 2 terms", 2),
        ("Sum[z](R(a))", "cannot group by z", 1),
        ("q[x]", "expected '[', found 'the end'", 5),
        ("(x := R(a) + 1)", "expected ')', found '+'", 12),
        ("DATE '2020-13-01'", "month must be in 1..12", 1),
        ("R(a) % S", "unexpected '%'", 6),
        ("'open", 'unexpected "\'"', 1),
    ],
)
def test_errors_point_at_the_place(text, message, column):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert caught.value.column == column
    assert str(caught.value).endswith("\n  " + " " * (column - 1) + "^")


def test_errors_name_the_line():
    with pytest.raises(ParseError, match="line 2, column 5") as caught:
        parse("R(a)\n  * ]")
    assert caught.value.line == 2
