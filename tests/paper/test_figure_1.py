"""Figure 1: union, join and aggregation of GMRs with rational multiplicities, every table of it."""

from fractions import Fraction

from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.gmr import GMR
from viewlet.algebra.terms import number
from viewlet.algebra.text import parse

R = GMR(("A", "B"), {("a", "b1"): 2, ("a", "b2"): -3})
S1 = GMR(("B", "C"), {("b1", "c1"): 2, ("b1", "c2"): -10})
S2 = GMR(("B", "C"), {("b1", "c1"): 3, ("b1", "c2"): 3, ("b2", "c1"): -11})

UNION = {("b1", "c1"): 5, ("b1", "c2"): -7, ("b2", "c1"): -11}
JOIN = {("a", "b1", "c1"): 10, ("a", "b1", "c2"): -14, ("a", "b2", "c1"): 33}
AGGREGATE = {("a", "c1"): Fraction("21.5"), ("a", "c2"): -7}


def test_s1_plus_s2():
    union = S1 + S2
    assert union.columns == ("B", "C")
    assert union.entries == UNION


def test_r_join_s1_plus_s2():
    joined = R * (S1 + S2)
    assert joined.columns == ("A", "B", "C")
    assert joined.entries == JOIN


def test_sum_of_one_half_by_a_and_c():
    for half in (Fraction(1, 2), number(Fraction(1, 2)), lambda row: Fraction(1, 2)):
        aggregate = (R * (S1 + S2)).sum(("A", "C"), half)
        assert aggregate.columns == ("A", "C")
        assert aggregate.entries == AGGREGATE


def test_prints_as_the_table_in_the_paper():
    assert str(R * (S1 + S2)).splitlines() == [
        "A   | B    | C    |   #",
        "----+------+------+----",
        "'a' | 'b1' | 'c1' |  10",
        "'a' | 'b1' | 'c2' | -14",
        "'a' | 'b2' | 'c1' |  33",
    ]


def test_the_calculus_says_the_same():
    database = over({"R": dict(R.entries), "S1": dict(S1.entries), "S2": dict(S2.entries)})
    for text, expected, columns in (
        ("(S1(B, C) + S2(B, C))", UNION, ("B", "C")),
        ("R(A, B) * (S1(B, C) + S2(B, C))", JOIN, ("A", "B", "C")),
        ("Sum[A, C](R(A, B) * (S1(B, C) + S2(B, C)) * 0.5)", AGGREGATE, ("A", "C")),
    ):
        assert evaluate(parse(text), database, columns) == expected
