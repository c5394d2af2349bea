"""Cells and scalars, there and back; what a store holds and what is read from it."""

from fractions import Fraction

import pytest

from viewlet.algebra.evaluate import UNBOUND
from viewlet.algebra.terms import Scalar
from viewlet.program.encoding import AS_IT_IS, Codec, Stored, decode, encode, row_codec, view_codec
from viewlet.program.kinds import COUNT, DOUBLE, REAL, TEXT, Exact
from viewlet.schema import BIGINT, BOOLEAN, VARCHAR, Column, Relation, decimal
from viewlet.schema import DOUBLE as DOUBLE_TYPE


@pytest.mark.parametrize(
    ("cell", "scale", "scalar"),
    [
        (150, 2, Fraction(3, 2)),
        (300, 2, 3),
        (-1, 38, Fraction(-1, 10**38)),
        (7, 0, 7),
        (0.1, 0, Fraction(0.1)),
        (2.0, 0, 2),
        ("1", 2, "1"),
        (True, 2, True),
        (None, 2, None),
    ],
)
def test_a_cell_and_its_scalar(cell: Stored, scale: int, scalar: Scalar) -> None:
    assert decode(cell, scale) == scalar
    assert type(decode(cell, scale)) is type(scalar)
    assert encode(scalar, scale) == cell, "a float equals its exact number"
    assert hash(encode(scalar, scale)) == hash(cell)


def test_a_number_that_the_scale_does_not_hold_is_found_nowhere() -> None:
    assert encode(Fraction(1, 3), 2) == Fraction(100, 3)


def test_the_codec_of_a_relation() -> None:
    columns = (BIGINT, decimal(6, 2), DOUBLE_TYPE, BOOLEAN, VARCHAR)
    codec = row_codec(Relation("r", tuple(Column(t.kind, t) for t in columns)))
    assert codec.decode_key((1, 150, 0.5, True, "a")) == (1, Fraction(3, 2), Fraction(1, 2), True, "a")
    assert codec.decode_key((None,) * 5) == (None,) * 5
    assert codec.encode_key((1, UNBOUND, Fraction(1, 2), UNBOUND, "a")) == (1, UNBOUND, 0.5, UNBOUND, "a")


def test_the_codec_of_a_view() -> None:
    codec = view_codec((Exact(2, 30), TEXT, DOUBLE, COUNT), Exact(4, 127))
    entries = {(Fraction(3, 2), "a", Fraction(1, 3), 5): Fraction(1, 4), (None, "b", 2, 0): 3}
    held = {(150, "a", Fraction(1, 3), 5): 2500, (None, "b", 2, 0): 30000}
    assert codec.encode_entries(entries) == held
    assert codec.decode_entries(held) == entries
    assert codec.head(1).decode_key((150,)) == (Fraction(3, 2),)
    assert codec.tail(1) == Codec(((1, 0),), 4)
    assert view_codec((TEXT, COUNT), REAL) == AS_IT_IS
