"""Example 5: binding patterns Q[x_in][x_out] of a correlated nested aggregate and of the query around it."""

import pytest

from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import inputs, outputs
from viewlet.algebra.text import parse
from viewlet.algebra.verify import VerifyError, verify

NESTED = parse("Sum[](S(C, D) * [A > C] * D)")
QUERY = parse("R(A, B) * (n := Sum[](S(C, D) * [A > C] * D)) * [B < n]")


def test_nested_aggregate():
    """A is an input variable; there are no output variables since the aggregate is non-grouping"""
    assert (inputs(NESTED), outputs(NESTED)) == ({"A"}, frozenset())


def test_whole_query():
    """All columns of R are output variables; n names the value of the aggregate, and nothing comes from outside."""
    assert (inputs(QUERY), outputs(QUERY)) == (frozenset(), {"A", "B", "n"})


def test_an_expression_without_its_inputs_cannot_be_a_view():
    """§3.3: "they have to be provided so that the query can be evaluated\""""
    verify(QUERY, "definition")
    verify(NESTED, "definition", bound=frozenset({"A"}))
    with pytest.raises(VerifyError, match="not closed: nothing gives A a value"):
        verify(NESTED, "definition")


def test_meaning():
    """select * from R where B < (select sum(D) from S where A > C)"""
    database = {"R": {(1, 5): 1, (3, 5): 2, (3, 50): 1}, "S": {(0, 4): 1, (2, 9): 1}}
    assert evaluate(NESTED, over(database), (), {"A": 3}) == {(): 13}
    assert evaluate(QUERY, over(database), ("A", "B")) == {(3, 5): 2}
