"""Values in and out, type by type."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from viewlet.algebra.terms import NULL, Scalar
from viewlet.errors import DataError, OverflowError_
from viewlet.program.encoding import decode, scale_of
from viewlet.program.trigger import Result, ResultColumn
from viewlet.rows import arrow
from viewlet.rows.boundary import UnfitError, encoder, is_one_row, to_cell, to_key, to_python, to_scalar
from viewlet.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Column, Relation, Type, decimal

MONEY = decimal(6, 2)


def column(type_: Type) -> ResultColumn:
    return ResultColumn("c", type_, True, NULL)


@pytest.mark.parametrize(
    ("type_", "value", "scalar"),
    [
        (BOOLEAN, True, True),
        (INTEGER, -(2**31), -(2**31)),
        (BIGINT, 2**63 - 1, 2**63 - 1),
        (DOUBLE, 0.1, Fraction(0.1)),
        (DOUBLE, 1e308, int(1e308)),
        (DOUBLE, 5e-324, Fraction(5e-324)),
        (MONEY, Decimal("-1234.56"), Fraction(-123456, 100)),
        (MONEY, Decimal("0.00"), 0),
        (decimal(38, 0), Decimal(10**38 - 1), 10**38 - 1),
        (DATE, dt.date(1969, 12, 31), -1),
        (DATE, dt.date(9999, 12, 31), 2932896),
        (TIMESTAMP, dt.datetime(1970, 1, 2, 0, 0, 0, 1), 86_400_000_001),
        (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        (VARCHAR, "", ""),
        (VARCHAR, "naïve 𝓜", "naïve 𝓜"),
    ],
)
def test_there_and_back(type_: Type, value: object, scalar: Scalar) -> None:
    assert to_scalar(value, type_) == scalar
    assert decode(to_cell(value, type_), scale_of(type_)) == scalar
    back = to_python("v", column(type_), scalar)
    assert back == value
    assert type(back) is type(value)
    assert to_scalar(None, type_) is None
    assert to_python("v", column(type_), None) is None
    assert pa.array([back, None], arrow.arrow_type(type_)).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("type_", "value", "scalar"),
    [
        (DOUBLE, 3, 3),
        (DOUBLE, -0.0, 0),
        (MONEY, "12.5", Fraction(25, 2)),
        (MONEY, 7, 7),
        (MONEY, 0.25, Fraction(1, 4)),
        (MONEY, 0.1, Fraction(1, 10)),
        (MONEY, 9.99, Fraction(999, 100)),
        (decimal(38, 0), 2.0**60, 1152921504606847000),  # as it is written
        (MONEY, "1e3", 1000),
        (DATE, "2024-02-29", 19782),
        (DATE, dt.datetime(2024, 2, 29), 19782),
        (TIMESTAMP, "1970-01-01 00:00:01", 1_000_000),
    ],
)
def test_what_else_is_taken(type_: Type, value: object, scalar: Scalar) -> None:
    assert to_scalar(value, type_) == scalar


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        (BOOLEAN, 1, "takes a bool"),
        (INTEGER, 2**31, "does not fit INTEGER"),
        (INTEGER, True, "takes an int"),
        (INTEGER, 1.0, "takes an int"),
        (BIGINT, -(2**63) - 1, "does not fit BIGINT"),
        (BIGINT, "1", "takes an int"),
        (DOUBLE, float("nan"), "NaN and infinities"),
        (DOUBLE, float("-inf"), "NaN and infinities"),
        (DOUBLE, 10**400, "not exactly a DOUBLE"),
        (DOUBLE, 2**53 + 1, "not exactly a DOUBLE"),
        (DOUBLE, Decimal("1.5"), "takes a float"),
        (DOUBLE, Fraction(1, 3), "takes a float"),
        (DOUBLE, False, "takes a float"),
        (MONEY, 0.001, "more than 2 digits"),
        (MONEY, 1e4, r"does not fit DECIMAL\(6,2\)"),
        (MONEY, float("nan"), "takes a Decimal"),
        (MONEY, Fraction(1, 2), "takes a Decimal"),
        (MONEY, "0.001", "more than 2 digits"),
        (MONEY, 10_000, r"does not fit DECIMAL\(6,2\)"),
        (MONEY, Decimal("NaN"), "takes a Decimal"),
        (MONEY, float("inf"), "takes a Decimal"),
        (MONEY, "twelve", "takes a Decimal"),
        (MONEY, True, "takes a Decimal"),
        (MONEY, "1_000", "takes a Decimal"),
        (MONEY, Decimal("1e999999999"), "does not fit"),
        (MONEY, Decimal("1e-999999999"), "does not fit"),
        (DATE, dt.datetime(2024, 1, 1, 12), "takes a datetime.date or a midnight"),
        (DATE, dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), "time zone"),
        (DATE, "2024-02-30", "no date"),
        (DATE, "20240229", "no date"),
        (DATE, "2024-W09-4", "no date"),
        (DATE, 19782, "takes a datetime.date"),
        (TIMESTAMP, dt.date(2024, 1, 1), "takes a datetime.datetime"),
        (TIMESTAMP, dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), "time zone"),
        (TIMESTAMP, "yesterday", "no timestamp"),
        (TIMESTAMP, "2024-01-01 00:00:00.1234567", "finer than the microseconds"),
        (VARCHAR, b"bytes", "takes a str"),
        (VARCHAR, "\ud800", "not valid Unicode"),
    ],
)
def test_what_is_refused(type_: Type, value: object, why: str) -> None:
    with pytest.raises(UnfitError, match=why):
        to_scalar(value, type_)


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert to_scalar(numpy.int64(5), BIGINT) == 5
    assert type(to_scalar(numpy.int32(5), INTEGER)) is int
    assert to_scalar(numpy.float32(0.5), DOUBLE) == Fraction(1, 2)
    with pytest.raises(UnfitError):
        to_scalar(numpy.float64("nan"), DOUBLE)


def test_nanoseconds_are_not_cut_off() -> None:
    pandas = pytest.importorskip("pandas")
    assert to_scalar(pandas.Timestamp("1970-01-01 00:00:01"), TIMESTAMP) == 1_000_000
    with pytest.raises(UnfitError, match="finer than the microseconds"):
        to_scalar(pandas.Timestamp("1970-01-01 00:00:00.000000001"), TIMESTAMP)


@pytest.mark.parametrize(
    ("type_", "scalar"),
    [
        (INTEGER, 2**31),
        (BIGINT, -(2**63) - 1),
        (MONEY, 10_000),
        (MONEY, Fraction(9_999_996, 1000)),  # rounds to 10000.00
        (DOUBLE, 10**400),
        (DATE, 10**9),
        (TIMESTAMP, 10**20),
    ],
)
def test_a_result_that_outgrew_its_type_names_view_and_column(type_: Type, scalar: Scalar) -> None:
    with pytest.raises(OverflowError_, match=r"^v\.c: .* no longer fits"):
        to_python("v", column(type_), scalar)


@pytest.mark.parametrize(("scalar", "shown"), [(Fraction(1, 3), "0.33"), (Fraction(5, 1000), "0.00"), (1, "1.00")])
def test_a_decimal_result_has_its_scale(scalar: Scalar, shown: str) -> None:
    assert str(to_python("v", column(MONEY), scalar)) == shown


POINT = Relation("point", (Column("x", INTEGER, nullable=False), Column("label", VARCHAR)))


def test_rows_are_tuples_lists_and_dicts() -> None:
    assert to_key(POINT, (1, "a")) == to_key(POINT, [1, "a"]) == to_key(POINT, {"label": "a", "x": 1}) == (1, "a")
    assert to_key(POINT, {"x": 1}) == (1, None)


# -- the fast way of rows ----------------------------------------------------------------------------------------------

TYPES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, MONEY, decimal(38, 10), DATE, TIMESTAMP, VARCHAR)
DECIMALS = "NaN sNaN -Infinity -0 0E+9 9999.99 9999.990 -10000 1E+4 1E+3 0.005 1e999999 1e-999999 1e28 1e-10 1e-11"
ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 2**31 - 1, 2**31, -(2**63), 2**63, 10**400, "1", "", "é", "\ud800", b"a", (1,), {}),
    *(0.0, -0.0, 0.1, 1e308, float("nan"), float("inf")),
    *(*map(Decimal, DECIMALS.split()), Decimal(10**28 - 1)),
    *(dt.date.min, dt.date.max, dt.datetime.min, dt.datetime.max, dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc)),
)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_the_fast_way_takes_what_the_slow_way_takes_or_nothing(type_: Type, nullable: bool) -> None:
    relation = Relation("r", (Column("id", BIGINT, nullable=False), Column("c", type_, nullable)))
    encode, taken = encoder(relation), 0
    for value in ODD:
        rows: tuple[Any, ...] = ((1, value), [1, value], {"c": value, "id": 1})
        for cells in map(encode, rows):
            if cells is not None:
                assert repr(cells) == repr(to_key(relation, (1, value), takes_wild=False)), "also False is not 0"
                taken += 1
    assert taken >= 3


def test_what_is_no_row_is_left_to_the_slow_way() -> None:
    encode = encoder(POINT)
    for row in ((), (1,), (1, "a", 2), "ab", None, {"x": 1}, {"x": 1, "y": "a"}, {1, "a"}, {1: 2, 3: 4}):
        assert encode(row) is None
    assert encoder(Relation("nothing", ()))(()) == ()


def test_not_a_number_is_one_number() -> None:
    """Rows with it can be found again."""
    relation = Relation("r", (Column("x", DOUBLE),))
    first, second = (to_key(relation, (value,)) for value in (float("nan"), -float("nan")))
    assert first == second
    assert to_key(relation, (float("-inf"),)) == (float("-inf"),)
    with pytest.raises(DataError, match="only the native engine takes them"):
        to_key(relation, (float("nan"),), takes_wild=False)


def test_an_error_says_where() -> None:
    with pytest.raises(DataError) as caught:
        to_key(POINT, (1, 2), 17)
    error = caught.value
    assert (error.relation, error.row, error.column, error.value) == ("point", 17, "label", 2)
    assert str(error) == "point.label, row 17: VARCHAR takes a str, not 2 (int)"


@pytest.mark.parametrize(
    ("data", "one"),
    [
        ((1, "a"), True),
        ([1, "a"], True),
        ({"x": 1}, True),
        ((), True),
        ([], False),
        ([(1, "a")], False),
        ([{"x": 1}], False),
        (((1, "a"), (2, "b")), False),
        (iter([(1, "a")]), False),
    ],
)
def test_one_row_or_many(data: Any, one: bool) -> None:
    assert is_one_row(data) is one


def test_frames_of_all_kinds_give_the_same_rows() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pa.table({"x": pa.array([1, 2], pa.int32()), "label": ["a", None]})
    expected = [{"x": 1, "label": "a"}, {"x": 2, "label": None}]
    frame = pandas.DataFrame({"x": [1, 2], "label": ["a", None]}, index=[7, 9])
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for data in (table, table.to_batches()[0], frame, polars.DataFrame({"x": [1, 2], "label": ["a", None]}), stream):
        assert arrow.is_arrow(data)
        assert list(arrow.rows(data, "r")) == expected


def test_a_table_has_the_types_of_the_view() -> None:
    types = (BOOLEAN, INTEGER, BIGINT, DOUBLE, MONEY, DATE, TIMESTAMP, VARCHAR)
    result = Result("v", tuple(ResultColumn(t.kind, t, t != BIGINT, NULL) for t in types), None)
    row = (True, 1, 2, 0.5, Decimal("1.50"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12), "a")
    expected = [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.decimal128(6, 2),
        pa.date32(),
        pa.timestamp("us"),
        pa.string(),
    ]
    for rows in ([row], []):
        table = arrow.table(result, rows)
        assert table.schema.types == expected
        assert [f.nullable for f in table.schema] == [t != BIGINT for t in types]
        assert [tuple(r.values()) for r in table.to_pylist()] == rows
