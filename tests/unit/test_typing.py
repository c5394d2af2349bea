"""Kinds: what they promise about a number's places and bits holds for the numbers at the ends."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import viewlet
from viewlet.algebra.terms import Op, Term, Var, evaluate_term
from viewlet.loops.infer import program_kinds
from viewlet.program.kinds import (
    BOOLEAN,
    COUNT,
    COUNT_BITS,
    DOUBLE,
    MOST_PLACES,
    NULL,
    REAL,
    TEXT,
    WIDEST,
    Exact,
    Kind,
    Unfit,
    both,
    column_kind,
    constant_kind,
    decimal_places,
    either,
    key_kind,
    plus,
    scaled_bits,
    term_kind,
    times,
)
from viewlet.program.limits import unscaled_range
from viewlet.schema import BIGINT, DATE, INTEGER, TIMESTAMP, VARCHAR, Type, decimal
from viewlet.schema import DOUBLE as DOUBLE_TYPE

EXACT_TYPES = [INTEGER, BIGINT, *(decimal(p, s) for p in (1, 9, 18, 19, 37, 38) for s in (0, 1, p))]


@pytest.mark.parametrize("type_", EXACT_TYPES, ids=str)
def test_a_column_holds_the_ends_of_its_type(type_: Type) -> None:
    kind = column_kind(type_)
    assert isinstance(kind, Exact)
    low, high = unscaled_range(type_)
    assert -(1 << kind.bits) <= low <= high <= 1 << kind.bits
    assert high < 1 << kind.bits, "or the greatest would not fit a machine's integer of that width"
    assert (kind.bits <= COUNT_BITS) == (max(-low - 1, high).bit_length() <= COUNT_BITS)


def test_columns_that_are_no_exact_numbers() -> None:
    assert [column_kind(t) for t in (DOUBLE_TYPE, VARCHAR)] == [DOUBLE, TEXT]
    assert column_kind(DATE) == Exact(0, 32)
    assert column_kind(TIMESTAMP) == Exact(0, 63)


NAMES = ("i", "b", "d", "w")
ENV: dict[str, Kind] = {
    "i": column_kind(INTEGER),
    "b": column_kind(BIGINT),
    "d": column_kind(decimal(6, 2)),
    "w": column_kind(decimal(18, 9)),
}
ENDS = {
    "i": [-(2**31), 2**31 - 1, 0, -1],
    "b": [-(2**63), 2**63 - 1, 0, 1],
    "d": [Fraction(n, 100) for n in (-999_999, 999_999, 1)],
    "w": [Fraction(n, 10**9) for n in (1 - 10**18, 10**18 - 1, 3)],
}
leaves = st.sampled_from([Var(name) for name in NAMES])


def compounds(parts: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        st.builds(Op, st.sampled_from(["+", "-", "*"]), pairs),
        st.builds(Op, st.just("abs"), st.tuples(parts)),
        st.builds(Op, st.just("coalesce"), pairs),
    )


@given(st.recursive(leaves, compounds, max_leaves=5), st.data())
def test_a_term_stays_within_its_kind(term: Term, data: st.DataObject) -> None:
    """Every value is a whole number of its kind's places, and within its bits unless they are watched."""
    try:
        kind = term_kind(term, ENV)
    except Unfit:
        return  # more places than are kept
    assert isinstance(kind, Exact)
    assert kind.scale <= MOST_PLACES
    env = {name: data.draw(st.sampled_from(ENDS[name])) for name in NAMES}
    value = evaluate_term(term, env)
    assert value is not None
    unscaled = Fraction(value) * 10**kind.scale  # type: ignore[arg-type]
    assert unscaled.denominator == 1
    if kind.bits < WIDEST:
        assert abs(unscaled) <= 1 << kind.bits
    if kind.bits <= COUNT_BITS:
        assert -(2**63) <= unscaled < 2**63, "64 bits hold it"


def test_products_and_sums() -> None:
    assert times([]) == Exact(0, 1)
    assert times([Exact(2, 10), Exact(3, 20)]) == Exact(5, 30)
    assert times([Exact(2, 10), DOUBLE]) == REAL
    assert plus([Exact(0, 10), Exact(2, 10)]) == Exact(2, scaled_bits(Exact(0, 10), 2) + 1)
    assert plus([Exact(0, 10), REAL]) == REAL
    assert times([Exact(0, 126), Exact(0, 126)]).bits == WIDEST  # type: ignore[union-attr]
    for bad in (lambda: times([TEXT, COUNT]), lambda: plus([BOOLEAN, COUNT]), lambda: times([Exact(20, 1)] * 2)):
        with pytest.raises(Unfit):
            bad()


def test_what_two_columns_have_in_common() -> None:
    assert both(Exact(2, 34), Exact(4, 34)) == Exact(2, 34)
    assert both(Exact(0, 63), Exact(4, 34)) == Exact(0, 63)
    assert both(DOUBLE, REAL) == DOUBLE
    assert both(NULL, TEXT) == both(TEXT, NULL) == TEXT
    assert either([Exact(2, 34), NULL, Exact(0, 63)]) == Exact(2, scaled_bits(Exact(0, 63), 2))
    assert either([DOUBLE, Exact(0, 3)]) == REAL
    assert key_kind(REAL) == DOUBLE
    for bad in (lambda: both(TEXT, COUNT), lambda: either([TEXT, COUNT]), lambda: both(DOUBLE, COUNT)):
        with pytest.raises(Unfit):
            bad()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, Exact(0, 0)),
        (-1, Exact(0, 1)),
        (2**62, Exact(0, 64)),
        (Fraction(1, 8), Exact(3, 7)),
        (Fraction(-5, 2), Exact(1, 5)),
        (Fraction(1, 3), REAL),
        (Fraction(1, 2**39), REAL),
        (None, NULL),
        (True, BOOLEAN),
        ("a", TEXT),
    ],
)
def test_constants(value: object, kind: Kind) -> None:
    assert constant_kind(value) == kind


@given(st.integers(-(10**20), 10**20), st.integers(0, MOST_PLACES))
def test_places_write_a_decimal_out(units: int, places: int) -> None:
    value = Fraction(units, 10**places)
    written = decimal_places(value)
    assert written is not None
    assert written <= places
    assert (value * 10**written).denominator == 1
    assert written == 0 or (value * 10 ** (written - 1)).denominator != 1


def test_the_kinds_of_a_program() -> None:
    program = viewlet.compile("""
        CREATE STREAM r (k INTEGER NOT NULL, p DECIMAL(12,2), q DECIMAL(12,4), x DOUBLE, s VARCHAR);
        CREATE MATERIALIZED VIEW v AS SELECT s, x, sum(p * q) AS a, sum(x) AS b, count(*) AS n FROM r GROUP BY s, x;
        CREATE MATERIALIZED VIEW w AS SELECT l.k, sum(l.x * m.p) AS a FROM r l, r m WHERE l.p = m.q GROUP BY l.k;
    """)
    kinds = program_kinds(program)
    assert kinds.columns["r"] == (Exact(0, 32), Exact(2, 40), Exact(4, 40), DOUBLE, TEXT)
    assert kinds.columns["v"] == (TEXT, DOUBLE)
    values = {view.name: kinds.values[view.name] for view in program.views}
    assert values["v"] == COUNT
    assert Exact(6, WIDEST) in values.values(), "a sum of products is watched"
    assert REAL in values.values()
    assert set(kinds.columns) == {r.name for r in program.relations} | {v.name for v in program.views}
