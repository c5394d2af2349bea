"""Who watches the referee: each way of being wrong is noticed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.oracle.oracle import DuckOracle, Row, Vacuity, Vacuous, difference, same_rows
from viewlet.schema import BIGINT, DATE, DOUBLE, VARCHAR, Column, Relation, decimal

ITEMS = Relation(
    "items",
    (
        Column("k", BIGINT, nullable=False),
        Column("x", DOUBLE),
        Column("price", decimal(12, 2)),
        Column("day", DATE),
        Column("name", VARCHAR),
    ),
)
FULL: Row = (1, 0.5, Decimal("2.50"), dt.date(1995, 3, 15), "a")
EMPTY: Row = (1, None, None, None, None)


@pytest.fixture
def oracle() -> DuckOracle:
    return DuckOracle([ITEMS])


@pytest.mark.parametrize("row", [FULL, EMPTY])
def test_a_delete_removes_exactly_one_copy_also_of_a_row_with_nulls(oracle: DuckOracle, row: Row) -> None:
    other = FULL if row is EMPTY else EMPTY
    oracle.load("items", [row, other, row])
    oracle.apply("-", "items", row)
    assert same_rows(oracle.rows("SELECT * FROM items"), [row, other])


def test_a_delete_of_a_row_that_is_not_there_is_an_error(oracle: DuckOracle) -> None:
    oracle.apply("+", "items", FULL)
    with pytest.raises(LookupError, match="0 rows changed"):
        oracle.apply("-", "items", EMPTY)


def test_the_referee_speaks_standard_sql(oracle: DuckOracle) -> None:
    assert oracle.rows("SELECT sum(x), count(*) FROM items") == [(None, 0)]
    assert oracle.rows("SELECT 1 / 0, 1.0 / 0, 1e0 / 0") == [(None, None, None)]


def test_rows_come_sorted_whatever_they_hold(oracle: DuckOracle) -> None:
    oracle.load("items", [FULL, EMPTY])
    assert oracle.rows("SELECT name, k FROM items") == [(None, 1), ("a", 1)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param([(1, 2)], [(1, 3)], id="a wrong integer"),
        pytest.param([(1, Decimal("0.10"))], [(1, Decimal("0.11"))], id="a wrong decimal"),
        pytest.param([(10**18,)], [(10**18 + 1,)], id="integers that are one double"),
        pytest.param([(1.0,)], [(1.0 + 1e-8,)], id="a wrong double"),
        pytest.param([(0.0,)], [(1e-12,)], id="a double that should be zero"),
        pytest.param([("a",)], [("b",)], id="a wrong string"),
        pytest.param([(dt.date(1995, 3, 15),)], [(dt.date(1995, 3, 16),)], id="a wrong date"),
        pytest.param([], [(1, 2.0)], id="a missing row"),
        pytest.param([(1, 2.0)], [], id="an extra row"),
        pytest.param([(1, 2.0), (1, 2.0)], [(1, 2.0)], id="an extra duplicate"),
        pytest.param([(1, 2.0), (1, 3.0)], [(1, 2.0), (1, 2.0)], id="the wrong one of two twice"),
        pytest.param([(None,)], [(0,)], id="NULL for 0"),
        pytest.param([(0.0,)], [(None,)], id="0 for NULL"),
        pytest.param([(None,)], [], id="a row of NULL for no row"),
        pytest.param([(Fraction(1, 2),)], [(0.5,)], id="an exact number where a double belongs"),
        pytest.param([(True,)], [(1,)], id="a boolean for a number"),
        pytest.param([(1, 2)], [(1, 2, 3)], id="a missing column"),
        pytest.param([(1.0, "a"), (2.0, "b")], [(2.0, "a"), (1.0, "b")], id="doubles swapped between groups"),
    ],
)
def test_a_difference_is_noticed(ours: list[Row], theirs: list[Row]) -> None:
    assert difference(ours, theirs) is not None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param([(2, None), (1, "a")], [(1, "a"), (2, None)], id="another order"),
        pytest.param([(Fraction(5, 2), 3)], [(Decimal("2.50"), Decimal("3"))], id="exact numbers of other types"),
        pytest.param([(0.1 + 0.2, "a")], [(0.3, "a")], id="rounding"),
        pytest.param([(0.3, 2.0), (0.1 + 0.2, 1.0)], [(0.3, 1.0), (0.1 + 0.2, 2.0)], id="rounding against the order"),
        pytest.param([(None, 0.3)], [(None, 0.1 + 0.2)], id="rounding beside NULL"),
    ],
)
def test_the_same_rows_are_the_same(ours: list[Row], theirs: list[Row]) -> None:
    assert difference(ours, theirs) is None


@pytest.mark.parametrize("blank", [[], [(None,)], [(0.0, None)]])
def test_a_stream_with_hardly_an_answer_is_rejected(blank: list[Row]) -> None:
    watch = Vacuity()
    for answer in ([(1, 2.0)], blank, blank, blank, blank):
        watch.watch(answer)
    with pytest.raises(Vacuous, match="4 of 5"):
        watch.check()


def test_a_stream_without_events_is_rejected() -> None:
    with pytest.raises(Vacuous):
        Vacuity().check()


def test_a_stream_with_answers_is_accepted() -> None:
    watch = Vacuity()
    for answer in ([(7, 0.0)], [], [], []):
        watch.watch(answer)
    watch.check()
