"""Conditions as ranges of a key: each range is what it claims to be, for all keys and whatever else has a value."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from viewlet.algebra.query import Compare
from viewlet.algebra.terms import COMPARISONS, NULL, TRUE, Const, Op, Scalar, Term, Var, evaluate_term, number
from viewlet.program.loops import Cut, Range
from viewlet.program.monotone import Ranges, direction, holds_upwards, is_known, ranges_of

K, A, B = Var("k"), Var("a"), Var("b")
TWO, MINUS = number(2), number(-1)
KEYS: tuple[Scalar, ...] = (-3, -2, Fraction(-1, 2), 0, 1, Fraction(3, 2), 2, 3, 5)  # ascending
ORDERS = ("<", "<=", ">", ">=")
numbers = st.sampled_from([number(value) for value in (0, 1, 2, -1, -2, Fraction(1, 2), 3)])
others = st.fixed_dictionaries({name: st.sampled_from((0, 1, -2, Fraction(5, 2), None)) for name in ("a", "b")})


def grow(smaller: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.one_of(
        st.builds(lambda name, a, b: Op(name, (a, b)), st.sampled_from("+-*"), smaller, smaller),
        st.builds(lambda a, c: Op("*", (a, c)), smaller, numbers),
        st.builds(lambda a, c: Op("/", (a, c)), smaller, numbers),
        st.builds(lambda a: Op("abs", (a,)), smaller),
    )


terms = st.recursive(st.one_of(st.just(K), st.sampled_from((A, B)), numbers), grow, max_leaves=5)
comparisons = st.builds(lambda name, a, b: Op(name, (a, b)), st.sampled_from(tuple(COMPARISONS)), terms, terms)
booleans = st.recursive(
    comparisons,
    lambda smaller: st.one_of(
        st.builds(lambda name, a, b: Op(name, (a, b)), st.sampled_from(("and", "or")), smaller, smaller),
        st.builds(lambda a: Op("not", (a,)), smaller),
    ),
    max_leaves=4,
)


def side(compare: Compare) -> Ranges | None:
    """Every inequality that is monotone in k is one cut."""
    if is_known(compare, "k"):
        return ((),)
    up = holds_upwards(compare, "k")
    return None if up is None else ((Cut(compare, up, nullable=True, plain=False),),)


def is_true(compare: Compare, env: Mapping[str, Scalar]) -> bool:
    left, right = evaluate_term(compare.left, env), evaluate_term(compare.right, env)
    return left is not None and right is not None and COMPARISONS[compare.op](left, right)


def cut_of(cut: object) -> Cut:
    assert isinstance(cut, Cut)
    return cut


def admits(found: Range, env: Mapping[str, Scalar]) -> bool:
    return all(is_true(cut.compare, env) == cut.holds for cut in map(cut_of, found))


# -- one term, one comparison ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(K, 1, id="k"),
        pytest.param(A, 0, id="a"),
        pytest.param(Op("-", (K, A)), 1, id="k - a"),
        pytest.param(Op("-", (A, K)), -1, id="a - k"),
        pytest.param(Op("*", (K, TWO)), 1, id="2 k"),
        pytest.param(Op("*", (MINUS, K)), -1, id="-k"),
        pytest.param(Op("-", (A, Op("*", (K, MINUS)))), 1, id="a - -k"),
        pytest.param(Op("/", (K, TWO)), 1, id="k / 2"),
        pytest.param(Op("/", (TWO, K)), None, id="2 / k"),
        pytest.param(Op("+", (K, Op("-", (A, K)))), None, id="k + (a - k)"),
        pytest.param(Op("*", (K, K)), None, id="k k"),
        pytest.param(Op("*", (K, A)), None, id="k a, whose sign is not known"),
        pytest.param(Op("*", (K, NULL)), None, id="k NULL"),
        pytest.param(Op("abs", (K,)), None, id="|k|"),
        pytest.param(Op("abs", (A,)), 0, id="|a|"),
        pytest.param(Op("coalesce", (K, A)), None, id="coalesce"),
    ],
)
def test_the_direction_of_a_term(term: Term, expected: int | None) -> None:
    assert direction(term, "k") == expected


@given(terms, others)
def test_a_term_goes_where_its_direction_says(term: Term, env: dict[str, Scalar]) -> None:
    found = direction(term, "k")
    assume(found is not None)
    values = [evaluate_term(term, {**env, "k": key}) for key in KEYS]
    numbers = [value for value in values if isinstance(value, int | Fraction)]
    assert len(numbers) in (0, len(KEYS))  # NULL comes from elsewhere, and then for every key
    assert found != 0 or len(set(values)) == 1
    assert numbers == sorted(numbers, reverse=found == -1)


@given(st.sampled_from(ORDERS), terms, terms, others)
def test_a_comparison_holds_on_the_side_that_it_says(op: str, left: Term, right: Term, env: dict[str, Scalar]) -> None:
    compare = Compare(op, left, right)
    up = holds_upwards(compare, "k")
    assume(up is not None)
    holds = [is_true(compare, {**env, "k": key}) for key in KEYS]
    assert holds == sorted(holds, reverse=not up)


@pytest.mark.parametrize("op", ["=", "<>"])
def test_equality_has_no_side(op: str) -> None:
    assert holds_upwards(Compare(op, K, A), "k") is None


# -- conditions --------------------------------------------------------------------------------------------------------


@given(booleans, others)
def test_a_key_that_meets_a_condition_is_in_one_range_and_any_other_in_none(
    condition: Op, env: dict[str, Scalar]
) -> None:
    found = ranges_of(Compare("=", condition, TRUE), side)
    assume(found is not None)
    assert found is not None
    for key in KEYS:
        here = {**env, "k": key}
        assert sum(admits(range_, here) for range_ in found) == (evaluate_term(condition, here) is True), key


@given(booleans, others)
def test_every_cut_lies_on_its_side(condition: Op, env: dict[str, Scalar]) -> None:
    found = ranges_of(Compare("=", condition, TRUE), side)
    assume(found)
    for cut in (cut_of(cut) for range_ in found or () for cut in range_):
        inside = [admits((cut,), {**env, "k": key}) for key in KEYS]
        assert inside == sorted(inside, reverse=not cut.up)


def between(low: Term, high: Term) -> Op:
    return Op("and", (Op(">=", (K, low)), Op("<=", (K, high))))


@pytest.mark.parametrize(
    ("condition", "number_of_ranges"),
    [
        pytest.param(Op(">", (K, A)), 1, id="one side"),
        pytest.param(Op("=", (K, A)), 1, id="equality"),
        pytest.param(Op("<>", (K, A)), 2, id="inequality"),
        pytest.param(between(A, B), 1, id="between"),
        pytest.param(Op("not", (between(A, B),)), 2, id="not between"),
        pytest.param(Op("or", (Op(">", (K, A)), Op("<", (K, B)))), 2, id="two sides"),
        pytest.param(Op("not", (Op("not", (Op(">", (K, A)),)),)), 1, id="not not"),
    ],
)
def test_conditions_fall_into_few_ranges(condition: Op, number_of_ranges: int) -> None:
    found = ranges_of(Compare("=", condition, TRUE), side)
    assert found is not None
    assert len(found) == number_of_ranges


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(Op(">", (Op("abs", (K,)), A)), id="a distance"),
        pytest.param(Op(">", (Op("*", (K, K)), A)), id="a square"),
        pytest.param(Op("and", (Op(">", (K, A)), Op(">", (Op("*", (K, K)), A)))), id="a range and a square"),
        pytest.param(Op("or", (Op(">", (K, A)), Op("is_null", (A,)))), id="a range or no condition on it"),
    ],
)
def test_what_is_no_range_is_left_alone(condition: Op) -> None:
    assert ranges_of(Compare("=", condition, TRUE), side) is None


def test_a_key_is_known() -> None:
    assert is_known(Compare("=", Op("is_null", (K,)), Const(False, "boolean")), "k")
    assert not is_known(Compare("=", Op("is_null", (A,)), Const(False, "boolean")), "k")
