"""Conditions as ranges of a key: each range is what it claims to be, for all keys and whatever else has a value.

And which of a join's views is read by them, as a sum or one by one; a slice that is compared with a total of its own
is not. And that no sum is added up before what it needs is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from viewlet.algebra.query import Compare, View, factors
from viewlet.algebra.terms import COMPARISONS, NULL, TRUE, Const, Op, Scalar, Term, Var, evaluate_term, number
from viewlet.algebra.text import parse
from viewlet.loops.fuse import Turn
from viewlet.loops.hoist import hoist
from viewlet.loops.lower import Lowering, Scope
from viewlet.loops.monotone import (
    MOST_RANGES,
    Ranges,
    admits_unknown,
    direction,
    holds_upwards,
    is_known,
    keeps_order,
    ranges_of,
)
from viewlet.loops.names import bound_names, free_names
from viewlet.loops.order_paths import ordered_path
from viewlet.loops.pipeline import finished
from viewlet.loops.steps import Add, Block, Cut, Emit, Factor, InRun, Loop, Range, RangeSum, Total

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


def admits(cuts: Range, env: Mapping[str, Scalar]) -> bool:
    return all(is_true(cut.compare, env) == cut.holds for cut in map(cut_of, cuts))


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
        pytest.param(Op("*", (K, number(0))), 0, id="0 k"),
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
    way = direction(term, "k")
    assume(way is not None)
    values = [evaluate_term(term, {**env, "k": key}) for key in KEYS]
    numbers = [value for value in values if isinstance(value, int | Fraction)]
    assert len(numbers) in (0, len(KEYS))  # NULL comes from elsewhere, and then for every key
    assert way != 0 or len(set(values)) == 1
    assert numbers == sorted(numbers, reverse=way == -1)


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
    ranges = ranges_of(Compare("=", condition, TRUE), side)
    assume(ranges is not None)
    assert ranges is not None
    for key in KEYS:
        here = {**env, "k": key}
        assert sum(admits(range_, here) for range_ in ranges) == (evaluate_term(condition, here) is True), key


@given(booleans, others)
def test_every_cut_lies_on_its_side(condition: Op, env: dict[str, Scalar]) -> None:
    ranges = ranges_of(Compare("=", condition, TRUE), side)
    assume(ranges)
    for cut in (cut_of(cut) for range_ in ranges or () for cut in range_):
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
    ranges = ranges_of(Compare("=", condition, TRUE), side)
    assert ranges is not None
    assert len(ranges) == number_of_ranges


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


@given(booleans, others)
def test_a_condition_that_is_true_of_an_unknown_key_admits_it(condition: Op, env: dict[str, Scalar]) -> None:
    """The other way round it may: then the entries with NULL are tried."""
    if evaluate_term(condition, {**env, "k": None}) is True:
        assert admits_unknown(Compare("=", condition, TRUE), "k")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(Op(">", (K, A)), False, id="a range"),
        pytest.param(Op(">", (B, A)), True, id="another condition"),
        pytest.param(Op("and", (Op(">", (K, A)), Op(">", (B, A)))), False, id="both"),
        pytest.param(Op("or", (Op(">", (K, A)), Op(">", (B, A)))), True, id="either"),
        pytest.param(Op("or", (Op(">", (K, A)), Op("<", (K, B)))), False, id="either range"),
        pytest.param(Op("not", (Op("or", (Op(">", (K, A)), Op(">", (B, A)))),)), False, id="neither"),
    ],
)
def test_conditions_that_an_unknown_key_cannot_meet(condition: Op, expected: bool) -> None:
    assert admits_unknown(Compare("=", condition, TRUE), "k") == expected


@pytest.mark.parametrize("pieces", [MOST_RANGES // 2 - 1, MOST_RANGES // 2])
def test_a_condition_falls_into_so_many_ranges_at_most(pieces: int) -> None:
    """[k <> c] is two ranges, and n of them at once are 2ⁿ, of which many are empty."""
    condition = Op("and", tuple(Op("<>", (K, number(value))) for value in range(pieces)))
    ranges = ranges_of(Compare("=", condition, TRUE), side)
    assert ranges is None if 2**pieces > MOST_RANGES else len(ranges or ()) == 2**pieces


def test_runs_have_no_complement() -> None:
    """[k in a run] or [k > a] would need the keys that are in no run."""

    def in_runs(compare: Compare) -> Ranges | None:
        runs = InRun("runs", compare, "inner", up=True, nullable=False, plain=True)
        return ((runs,),) if compare.left == B else side(compare)

    run, key = Op(">", (B, K)), Op(">", (K, A))
    assert ranges_of(Compare("=", Op("or", (run, key)), TRUE), in_runs) is None
    assert ranges_of(Compare("=", Op("and", (run, key)), TRUE), in_runs) is not None


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(K, A, True, id="k > a"),
        pytest.param(A, K, True, id="a > k"),
        pytest.param(Op("+", (K, TWO)), A, True, id="k + 2 > a"),
        pytest.param(Op("-", (K, TWO)), A, True, id="k - 2 > a"),
        pytest.param(Op("*", (TWO, K)), A, True, id="2 k > a"),
        pytest.param(Op("*", (MINUS, K)), A, False, id="-k > a"),
        pytest.param(Op("*", (K, number(0))), A, False, id="0 k > a"),
        pytest.param(Op("/", (K, MINUS)), A, False, id="k / -1 > a"),
        pytest.param(Op("+", (K, A)), B, False, id="k + a > b"),
        pytest.param(Op("-", (K, A)), B, False, id="k - a > b"),
        pytest.param(Op("-", (TWO, K)), A, False, id="2 - k > a"),
        pytest.param(K, Op("+", (K, TWO)), False, id="k > k + 2"),
    ],
)
def test_what_infinite_keys_leave_in_order(left: Term, right: Term, expected: bool) -> None:
    assert keeps_order(Compare(">", left, right), "k") == expected


# -- slices that are compared with totals ------------------------------------------------------------------------------

SLICE, TEST = "V[][@k, y]", "[y < s]"
OWN: Mapping[str, str] = {
    "its own": f"{SLICE} * (s := T[][@k]) * {TEST}",
    "its own, changed": f"{SLICE} * (s := (T[][@k] + @x)) * {TEST}",
    "its own, added up": f"{SLICE} * (s := Sum[@k](T[][@k, z] * z)) * {TEST}",
    "its own and another's": f"{SLICE} * (s := T[][@k]) * (r := T[][]) * [y < (s + r)]",
}
NOT_OWN: Mapping[str, str] = {
    "of everything": f"{SLICE} * (s := T[][]) * {TEST}",
    "of everything, changed by the slice's key": f"{SLICE} * (s := (T[][] + @k)) * {TEST}",
    "found by another key": f"{SLICE} * (s := T[][@x]) * {TEST}",
    "beyond the slice's key": f"{SLICE} * (s := Sum[](T[][z] * [z > @k])) * {TEST}",
    "no total": f"{SLICE} * (s := {{(@k + 1)}}) * {TEST}",
    "beside a constant": f"{SLICE} * (s := T[][@k]) * {TEST} * [y > 3]",
}


@pytest.mark.parametrize("product", OWN.values(), ids=OWN)
def test_a_slice_that_is_compared_with_its_own_total_is_gone_over(product: str) -> None:
    assert ordered_path(factors(parse(product)), frozenset({"@k", "@x"}), frozenset()) is None


@pytest.mark.parametrize("product", NOT_OWN.values(), ids=NOT_OWN)
def test_a_slice_that_is_compared_with_another_total_is_read_in_order(product: str) -> None:
    path = ordered_path(factors(parse(product)), frozenset({"@k", "@x"}), frozenset())
    assert path is not None
    assert (path.key, path.is_sum) == ("y", True)


# -- which path a join takes -------------------------------------------------------------------------------------------

GIVEN = frozenset({"@a", "@b"})


@pytest.mark.parametrize(
    ("product", "needed", "key", "is_sum", "groups"),
    [
        pytest.param("V[][x] * [x > @a]", "", "x", True, "", id="a sum"),
        pytest.param("V[][x] * [x > @a]", "x", "x", False, "", id="one by one: the key is shown"),
        pytest.param("V[][x] * [x > @a] * x", "", "x", False, "", id="one by one: the key is measured"),
        pytest.param("V[][x, y] * [x > @a]", "", "x", True, "", id="the other column is summed, too"),
        pytest.param("V[][x, y] * [x > @a]", "y", "x", True, "y", id="a sum for each group"),
        pytest.param("V[][x, y] * [x > @a] * y", "", "x", False, "y", id="what is measured is no group"),
        pytest.param("V[][x, y] * W[][y] * [x > @a]", "", "x", True, "y", id="what is joined is a group"),
        pytest.param("V[][x] * W[][y] * [x > @a] * [y > @b]", "y", "x", True, "", id="a sum before a loop"),
        pytest.param("V[][x] * W[][y] * [x > @a] * [y > @b]", "x", "y", True, "", id="whichever view it is"),
        pytest.param("V[][x, y] * [x > @a] * [y > @a] * [y < @b]", "x y", "y", False, "x", id="the narrower range"),
        pytest.param("V[][y, x] * (s := T[][y]) * [x < s]", "y", "x", True, "y", id="each group's own total"),
    ],
)
def test_the_path_of_a_join(product: str, needed: str, key: str, is_sum: bool, groups: str) -> None:
    path = ordered_path(factors(parse(product)), GIVEN, frozenset(needed.split()))
    assert path is not None
    assert (path.key, path.is_sum, path.open_) == (key, is_sum, frozenset(groups.split()))


@pytest.mark.parametrize(
    "product",
    [
        pytest.param("V[][x, x] * [x > @a]", id="an entry whose columns must be equal"),
        pytest.param("V[][x] * W[][x] * [x > @a]", id="a key that is joined"),
        pytest.param("V[][x, y] * [x > y] * x", id="columns of one entry"),
        pytest.param("V[][x] * (s := Sum[](W[][z] * [z > x])) * [s > x]", id="a running sum beside its own key"),
        pytest.param("V[][x] * (s := Sum[](W[][z] * [z > x])) * [s > abs(x)]", id="or beside its distance"),
    ],
)
def test_what_has_no_path(product: str) -> None:
    assert ordered_path(factors(parse(product)), GIVEN, frozenset()) is None


def test_a_running_sum_that_is_measured_still_says_which_keys() -> None:
    """It is computed again for each of them: nothing takes its place."""
    path = ordered_path(factors(parse("V[][x] * (s := Sum[](W[][z] * [z > x])) * [s > 3] * s")), GIVEN, frozenset())
    assert path is not None
    assert [t.also_read for t in path.thresholds] == [True]
    assert path.replaced == ()
    assert not path.is_sum


def test_a_view_times_itself_has_no_path() -> None:
    """V² is no sum of V."""
    view, compare = factors(parse("V[][x] * [x > @a]"))
    assert ordered_path((view, compare), GIVEN, frozenset()) is not None
    assert ordered_path((view, view, compare), GIVEN, frozenset()) is None


# -- sums that are added up first --------------------------------------------------------------------------------------


def added_up_first(*expressions: str) -> Block:
    """What is done before two passes for each of the expressions."""
    lowering = Lowering({"V": (False,), "T": ()})
    return before(
        *(finished(lowering.change(parse(e), (), Scope(GIVEN, GIVEN))) for e in expressions for _ in range(2))
    )


def before(*blocks: Block) -> Block:
    """What is done before the passes; every name has a value where it is used."""
    first, passes = hoist(tuple(Turn((), block, False, frozenset()) for block in blocks), GIVEN)
    known = GIVEN
    for step in first:
        assert free_names((step,)) <= known
        known |= set(bound_names((step,)))
    assert all(free_names(p.block) <= known for p in passes)
    return first


def test_a_range_that_the_event_gives_is_added_up_first() -> None:
    (first,) = added_up_first("Sum[](V[][x] * [x > @a])")
    assert isinstance(first, RangeSum)


def test_a_range_up_to_a_total_waits_for_it() -> None:
    first = added_up_first("Sum[](V[][x] * (s := T[][]) * [x > s])", "Sum[](V[][x] * [x > @a])")
    assert [type(step) for step in first] == [RangeSum, Total]  # the other range, and T


def test_a_sum_that_uses_a_total_waits_for_it() -> None:
    first = added_up_first("(s := T[][]) * (r := Sum[](V[][x] * {(x * s)})) * r")
    assert len(first) == 1


def test_a_range_that_only_a_test_leads_to_stays_behind_it() -> None:
    assert added_up_first("[@b > 3] * Sum[](V[][x] * [x > @a])") == ()


def test_a_sum_does_not_share_the_loop_of_one_that_it_uses() -> None:
    def over_all(total: str, term: Term) -> Loop:
        return Loop(View("V", (), ("x",)), frozenset(), "m", (Add(total, (Factor(term),)),))

    used = Total("a", (over_all("a", Var("x")),))
    using = Total("b", (used, over_all("b", Var("a"))))
    emits = [(total, Emit((), (Factor(Var(total.var)),))) for total in (used, using) for _ in range(2)]
    first = before(*emits)
    assert [type(step.body[-1]) for step in first if isinstance(step, Total)] == [Loop, Loop]


def test_a_range_is_added_up_before_the_loops_that_give_it_nothing() -> None:
    lowering = Lowering({"V": (False,), "T": (False,), "W": (False,)})
    outside = finished(lowering.change(parse("W[][y] * Sum[](V[][x] * [x > @a])"), ("y",), Scope(GIVEN, GIVEN)))
    inside = finished(
        lowering.change(parse("W[][y] * Sum[](V[][x] * (s := T[][y]) * [x > s])"), ("y",), Scope(GIVEN, GIVEN))
    )
    assert isinstance(outside[0], RangeSum)
    assert [type(step) for step in inside] == [Loop]
