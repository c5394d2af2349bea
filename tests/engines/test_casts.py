"""Casts equal DuckDB's: rounding, what fits and what does not, texts in odd forms."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import viewlet
from tests.engines.conformance import ENGINES
from tests.engines.functions_case import check

SCHEMA = (
    "CREATE STREAM t (i INTEGER, b BIGINT, d DECIMAL(10,2), w DECIMAL(38,10), x DOUBLE, f BOOLEAN, n VARCHAR, "
    "s VARCHAR, day VARCHAR, e DATE, u TIMESTAMP);\n"
)
_DAY, _MOMENT = dt.date, dt.datetime
_W = Decimal("1234567890123456789012345678.0123456789")
ROWS = [
    (
        1,
        5,
        Decimal("2.50"),
        Decimal("0.5"),
        2.5,
        True,
        " 12.5 ",
        "abc",
        "2024-02-29",
        _DAY(2024, 2, 29),
        _MOMENT(2024, 2, 29, 13, 14, 15, 678900),
    ),
    (
        -7,
        -5,
        Decimal("-2.50"),
        Decimal("-0.5"),
        -2.5,
        False,
        "-12.5",
        "tRue",
        " 2024-2-9",
        _DAY(1, 1, 1),
        _MOMENT(1, 1, 1),
    ),
    (
        0,
        0,
        Decimal("0.00"),
        Decimal("0"),
        0.0,
        None,
        "0",
        "n",
        "2024/01/31",
        _DAY(9999, 12, 31),
        _MOMENT(1969, 12, 31, 23, 59, 59, 999999),
    ),
    (None, None, None, None, None, None, None, None, None, None, None),
    (
        2147483647,
        2**63 - 1,
        Decimal("99999999.99"),
        _W,
        1e16,
        True,
        "1_000.005",
        "1",
        "1970-01-01 23:59:59",
        None,
        _MOMENT(9999, 12, 31, 23, 59, 59),
    ),
    (
        -(2**31),
        -(2**63),
        Decimal("-99999999.99"),
        -_W,
        1e-5,
        False,
        "+7",
        "",
        "1999-12-31T1:2:3.4",
        _DAY(1970, 1, 1),
        _MOMENT(1970, 1, 1, 0, 0, 0, 1),
    ),
    (
        9,
        2147483648,
        Decimal("0.05"),
        Decimal("0.0000000005"),
        0.285,
        None,
        ".5",
        "12x",
        "2024-02-29 13:14:15.1234567",
        None,
        None,
    ),
    (
        99,
        100,
        Decimal("-0.05"),
        Decimal("9.95"),
        1.005,
        True,
        "5.",
        "2024-02-30",
        "0001-01-01",
        _DAY(1582, 10, 15),
        None,
    ),
    (
        10,
        None,
        Decimal("999.95"),
        Decimal("999.5"),
        123456.789,
        True,
        "0000000000000000000001",
        "f",
        "9999-12-31",
        None,
        None,
    ),
    (11, 7, Decimal("45.55"), Decimal("1"), 5e-324, False, "-0.4999999999999999999", "-", "2000-01-01", None, None),
    (12, 8, Decimal("1.00"), Decimal("2"), -1.7976931348623157e308, True, "9" * 18, "yes", "2000-02-29", None, None),
    (13, 9, Decimal("1.10"), Decimal("3"), 1 / 3, None, "\t3\n", "x y", "2000-10-10", None, None),
]
EXPRESSIONS = [
    *(
        "i::BIGINT",
        "i::DOUBLE",
        "b::DOUBLE",
        "d::DOUBLE",
        "w::DOUBLE",
        "d::INTEGER",
        "d::BIGINT",
        "(i // 1000)::DECIMAL(9,1)",
    ),
    *(
        "d::DECIMAL(10,1)",
        "d::DECIMAL(12,4)",
        "d::DECIMAL(9,0)",
        "w::DECIMAL(38,5)",
        "w::DECIMAL(38,0)",
        "(b // 1000)::DECIMAL(18,2)",
    ),
    *(
        "(x % 1000)::INTEGER",
        "(x % 1e9)::BIGINT",
        "(x % 1000)::DECIMAL(5,2)",
        "(x % 1000)::DECIMAL(20,10)",
        "x::BOOLEAN",
        "i::BOOLEAN",
    ),
    *(
        "d::BOOLEAN",
        "f::INTEGER",
        "f::BIGINT",
        "f::DOUBLE",
        "f::DECIMAL(5,2)",
        "f::VARCHAR",
        "i::VARCHAR",
        "b::VARCHAR",
        "d::VARCHAR",
    ),
    *(
        "w::VARCHAR",
        "x::VARCHAR",
        "e::VARCHAR",
        "u::VARCHAR",
        "u::DATE",
        "e::TIMESTAMP",
        "(d * 3)::VARCHAR",
        "(x / 3)::VARCHAR",
    ),
    *(
        "n::DOUBLE",
        "n::BIGINT",
        "n::DECIMAL(20,0)",
        "n::DECIMAL(25,3)",
        "n::DECIMAL(38,15)",
        "day::DATE",
        "day::TIMESTAMP",
    ),
    *(
        "TRY_CAST(n AS INTEGER)",
        "TRY_CAST(s AS INTEGER)",
        "TRY_CAST(b AS INTEGER)",
        "TRY_CAST(d AS DECIMAL(3,1))",
        "TRY_CAST(d AS DECIMAL(2,2))",
    ),
    *(
        "TRY_CAST(x AS INTEGER)",
        "TRY_CAST(x AS BIGINT)",
        "TRY_CAST(x AS DECIMAL(10,3))",
        "TRY_CAST(x AS DECIMAL(38,0))",
        "TRY_CAST(n AS DECIMAL(4,2))",
    ),
    *(
        "TRY_CAST(s AS BOOLEAN)",
        "TRY_CAST(s AS DATE)",
        "TRY_CAST(n AS BOOLEAN)",
        "TRY_CAST(s AS VARCHAR)",
        "TRY_CAST(i AS DECIMAL(3,1))",
    ),
    *(
        "CAST('12' AS INTEGER)",
        "TRY_CAST('x' AS INTEGER)",
        "CAST('1.5' AS DECIMAL(5,2))",
        "CAST(2.5 AS INTEGER)",
        "CAST(NULL AS DATE)",
    ),
    *(
        "TRY_CAST('2024-02-30' AS DATE)",
        "CAST(1.5 AS VARCHAR)",
        "CAST(TRUE AS INTEGER)",
        "(i > 3)::INTEGER",
        "CAST('y' AS BOOLEAN)",
    ),
]
MORE = {
    "summed": "SELECT f, sum(d::INTEGER) AS a, sum(n::DECIMAL(25,3)) AS b, count(TRY_CAST(s AS INTEGER)) AS c "
    "FROM t GROUP BY f",
    "keyed": "SELECT u::DATE AS k, day::DATE AS j, count(*) AS n FROM t GROUP BY u::DATE, day::DATE",
    "filtered": "SELECT i FROM t WHERE n::DOUBLE > 1 OR day::TIMESTAMP < u",
    "joined": "SELECT a.i, b.i AS j FROM t a JOIN t b ON a.n::DOUBLE = b.d::DOUBLE OR a.i::VARCHAR = b.n",
}


def test_casts_equal_duckdb() -> None:
    check(SCHEMA, EXPRESSIONS, ROWS, MORE)


SCRIPT = """
CREATE STREAM r (s VARCHAR, x DOUBLE, b BIGINT, y INTEGER);
CREATE MATERIALIZED VIEW a AS SELECT s::INTEGER AS v FROM r;
CREATE MATERIALIZED VIEW b AS SELECT sum(sqrt(x)) AS v, sum(b::INTEGER) AS w FROM r;
CREATE MATERIALIZED VIEW c AS SELECT make_date(y, 2, 29) AS v, ln(x + 1) AS w, TRY_CAST(s AS BIGINT) AS z FROM r;
"""
BAD = [("x", 1.0, 1, 2000), ("1", -1.0, 1, 2000), ("1", 1.0, 2**31, 2000), ("1", 1.0, 1, 2001), ("0x1", 1.0, 1, 2000)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_a_function_has_no_value_for_is_refused_and_named(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(SCRIPT)
    database.insert("r", ("7", 4.0, 3, 2000))
    before = [database.view(name).rows() for name in "abc"]
    for row in BAD:
        with pytest.raises(viewlet.DataError) as caught:
            database.insert("r", [("8", 9.0, 5, 2004), row])
        assert caught.value.row == 1
        assert [database.view(name).rows() for name in "abc"] == before
