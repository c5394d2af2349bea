"""§3.1, operation by operation, and what a GMR refuses."""

from fractions import Fraction

import pytest

from viewlet.algebra.gmr import GMR
from viewlet.algebra.text import parse_term

R = GMR(("a", "b"), {(1, 10): 2, (2, 20): -3})


def test_a_tuple_that_is_not_there_has_multiplicity_zero():
    assert R[(1, 10)] == 2
    assert R[(1, 20)] == 0


def test_zero_is_never_stored():
    assert len(GMR(("a",), {(1,): 0, (2,): Fraction(0)})) == 0
    assert list(R + GMR(("a", "b"), {(1, 10): -2})) == [(2, 20)]
    assert len(R - R) == 0


def test_whole_fractions_become_integers():
    (multiplicity,) = GMR((), {(): Fraction(4, 2)}).entries.values()
    assert type(multiplicity) is int


def test_union_is_by_column_name_not_by_position():
    swapped = GMR(("b", "a"), {(10, 1): 5})
    assert (R + swapped).entries == {(1, 10): 7, (2, 20): -3}
    with pytest.raises(ValueError, match="not those of"):
        R + GMR(("a", "c"), {})


def test_equality_is_that_of_functions_on_records():
    swapped = GMR(("b", "a"), {(20, 2): -3, (10, 1): 2})
    assert swapped == R
    assert hash(swapped) == hash(R)
    assert GMR(("a", "b"), {(10, 1): 2, (20, 2): -3}) != R
    assert GMR(("a",)) != GMR(("b",))
    assert R != {(1, 10): 2}


def test_minus_is_join_with_minus_one():
    assert (-R).entries == {(1, 10): -2, (2, 20): 3}
    assert R - R * GMR.singleton({}, 2) == -R


def test_join_without_shared_columns_is_the_product():
    t = GMR(("c",), {("x",): Fraction(1, 2), ("y",): 1})
    assert (R * t).entries == {(1, 10, "x"): 1, (1, 10, "y"): 2, (2, 20, "x"): Fraction(-3, 2), (2, 20, "y"): -3}


def test_join_on_every_column_multiplies():
    assert R.join(GMR(("b", "a"), {(10, 1): 5, (99, 1): 7})).entries == {(1, 10): 10}


def test_join_matches_null_with_null():
    s = GMR(("b", "c"), {(None, 1): 1})
    assert (GMR(("a", "b"), {(1, None): 2, (1, 0): 3}) * s).entries == {(1, None, 1): 2}


def test_select_keeps_what_is_true_and_not_what_is_null():
    r = GMR(("a",), {(1,): 1, (2,): 5, (None,): 7})
    assert r.select(parse_term("(a > 1)")).entries == {(2,): 5}
    assert r.select(lambda row: row["a"] is None).entries == {(None,): 7}


def test_sum_groups_weighs_and_lets_null_add_nothing():
    r = GMR(("a", "b"), {(1, 10): 2, (1, 20): 3, (2, 5): 1, (2, None): 100})
    assert r.sum(("a",), parse_term("(b * 2)")).entries == {(1,): 160, (2,): 10}
    assert r.sum(()).entries == {(): 106}
    assert r.sum((), lambda row: row["a"]).entries == {(): 207}


def test_sum_of_what_cancels_is_empty():
    assert len(GMR(("a", "b"), {(1, 1): 1, (1, 2): -1}).sum(("a",))) == 0


def test_rename():
    assert R.rename({"a": "b", "b": "a"}) == GMR(("b", "a"), R.entries)
    with pytest.raises(ValueError, match="named twice"):
        R.rename({"a": "b"})
    with pytest.raises(ValueError, match="no column z"):
        R.rename({"z": "a"})


def test_singleton():
    assert GMR.singleton({"a": 1, "b": "x"}, Fraction(1, 3)) == GMR(("b", "a"), {("x", 1): Fraction(1, 3)})


def test_prints_in_the_order_of_the_tuples():
    assert str(GMR(("a",), {(2,): 1, (1,): 1})).splitlines()[2:] == ["1 | 1", "2 | 1"]


def test_prints_fractions_and_nothing_at_all():
    assert str(GMR(("a",), {("x",): Fraction(-1, 3)})).splitlines()[-1] == "'x' | (-1 / 3)"
    assert str(GMR(("a",))) == "a | #\n--+--"


@pytest.mark.parametrize(
    ("columns", "entries", "error", "says"),
    [
        (("a", "a"), {}, ValueError, "named twice"),
        (("a",), {(1, 2): 1}, ValueError, "not a tuple of the 1 columns"),
        (("a",), {1: 1}, ValueError, "not a tuple"),
        (("a",), {(1,): 0.5}, TypeError, "float"),
        (("a",), {(0.5,): 1}, TypeError, "float"),
        (("a",), {(1,): True}, TypeError, "int or a Fraction"),
        (("a",), {(1,): None}, TypeError, "int or a Fraction"),
    ],
)
def test_refuses(columns, entries, error, says):
    with pytest.raises(error, match=says):
        GMR(columns, entries)


def test_refuses_inexact_functions():
    with pytest.raises(TypeError, match="float"):
        R.sum((), 0.5)
    with pytest.raises(TypeError, match="float"):
        R.sum((), lambda row: 0.5)
    with pytest.raises(ValueError, match="no column z"):
        R.sum(("z",))


def test_is_frozen():
    with pytest.raises(AttributeError):
        R.columns = ()
    with pytest.raises(TypeError):
        R.entries[(1, 10)] = 5
