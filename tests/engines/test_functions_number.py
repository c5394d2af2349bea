"""Functions of numbers equal DuckDB's: NULLs, negatives, zero, extremes."""

from __future__ import annotations

from decimal import Decimal

from tests.engines.functions_case import check

SCHEMA = "CREATE STREAM t (i INTEGER, b BIGINT, d DECIMAL(10,2), w DECIMAL(38,4), x DOUBLE, s VARCHAR, f BOOLEAN);\n"
ROWS = [
    (7, 3, Decimal("2.50"), Decimal("1234567890123456789012345678901234.5678"), 2.5, "a", True),
    (-7, -2, Decimal("-2.50"), Decimal("-0.5555"), -2.5, "b", False),
    (0, 0, Decimal("0.00"), Decimal("0.0000"), 0.0, "", None),
    (None, None, None, None, None, None, None),
    (
        2147483640,
        9223372036854775800,
        Decimal("99999999.99"),
        Decimal("9999999999999999999999999999999999.9999"),
        1e300,
        "é",
        True,
    ),
    (-2147483640, -9223372036854775807, Decimal("-99999999.99"), Decimal("-1.0001"), -1e-300, "z", False),
    (15, 25, Decimal("0.05"), Decimal("0.0005"), 0.285, "a", True),
    (1, 45, Decimal("-0.05"), Decimal("45.5000"), 123456.789, "B", None),
    (None, 10, Decimal("99.95"), None, -0.5, None, True),
    (100, None, None, Decimal("7.0000"), None, "c", None),
]
EXPRESSIONS = [
    *(
        "i % 3",
        "i % b",
        "b % -4",
        "i % 0",
        "d % 3",
        "d % 2.5",
        "d % i",
        "w % 7",
        "x % 2",
        "x % d",
        "x % 0",
        "mod(b, i)",
    ),
    *("i // 2", "i // b", "b // 0", "d // 2", "x // i", "-7 // i", "i // -3"),
    *("round(i)", "round(i, 1)", "round(b // 10, -1)", "round(i // 3, -2)", "round(d)", "round(d, 1)", "round(d, 5)"),
    *(
        "round(d, -1)",
        "round(w, 2)",
        "round(w, 3)",
        "round(x)",
        "round(x, 1)",
        "round(x, -2)",
        "round(x, i // 1000000000)",
    ),
    *(
        "round(d, NULL)",
        "trunc(d)",
        "trunc(d, 1)",
        "trunc(d, -1)",
        "trunc(i, -1)",
        "trunc(x)",
        "trunc(x, 1)",
        "trunc(w, 1)",
    ),
    *("floor(i)", "floor(b)", "floor(d)", "floor(w)", "floor(x)", "ceil(i)", "ceil(d)", "ceiling(w)", "ceil(x)"),
    *("sign(i)", "sign(d)", "sign(x)", "abs(d)", "sign(NULL)", "pi()", "degrees(i)", "radians(d)"),
    *(
        "power(i // 1000, 2)",
        "pow(d, 2)",
        "i ** 2",
        "(i // 100000) ^ 3",
        "sqrt(abs(x))",
        "sqrt(abs(d))",
        "cbrt(i)",
        "cbrt(x)",
    ),
    *("ln(abs(i) + 1)", "log(abs(d) + 0.5)", "log10(abs(x) + 1)", "log2(abs(b) + 1.0)", "log(3, abs(i) + 1)"),
    *(
        "exp(i % 20)",
        "exp(d / 1e6)",
        "sin(x)",
        "cos(i)",
        "tan(d)",
        "asin(d / 1e8)",
        "acos(d / 1e8)",
        "atan(x)",
        "atan2(i, d)",
    ),
    *("sinh(i % 9)", "cosh(i % 9)", "tanh(d)", "asinh(x)", "acosh(abs(d) + 1)", "atanh(d / 1e8)"),
    *("i & 12", "i | b", "xor(i, 5)", "(~i)", "b & -4", "(i & 15) << 3", "b >> 2", "i >> 40", "(b & 3) << 60"),
    *(
        "greatest(i, b)",
        "least(i, d)",
        "greatest(i, d, x)",
        "least(s, 'b')",
        "greatest(s, 'aa', NULL)",
        "least(i, NULL)",
    ),
    *(
        "greatest(i, b, i + 1, b // 7, 3)",
        "greatest(f, false)",
        "least(x, d)",
        "greatest(NULL, NULL, i)",
        "least(1, 2.5)",
    ),
    *("if(f, i, b)", "if(i > 0, 'plus', s)", "if(f, 1, 2.5)", "if(i > d, x, NULL)"),
]
MORE = {
    "sums": "SELECT s, sum(round(d, 1)) AS a, sum(i % 5) AS b, sum(b // 1000) AS c, sum(sqrt(abs(x))) AS d, "
    "sum(greatest(i, d)) AS e, max(floor(d)) AS f, sum(radians(i)) AS g FROM t GROUP BY s",
    "filtered": "SELECT i, d FROM t WHERE floor(d) = -3 OR round(x, 1) = 2.5 OR i % 2 = 1",
    "joined": "SELECT a.i, b.d, round(a.d * 1.5 - b.d, 1) AS p, power(a.x - b.x, 2) AS q FROM t a "
    "JOIN t b ON a.i % 4 = b.b % 4 "
    "WHERE abs(a.x) < 1e100 AND abs(b.x) < 1e100",
    "keyed": "SELECT floor(d / 10) AS bin, sign(i) AS g, count(*) AS n, avg(x) AS m FROM t WHERE abs(x) < 1e100 "
    "GROUP BY floor(d / 10), sign(i)",
    "later": "SELECT s, round(sum(d), 1) AS r, sum(i) % 7 AS m, sum(b // 4) // 10 AS q, sqrt(count(*)) AS k "
    "FROM t GROUP BY s",
}


def test_functions_of_numbers_equal_duckdb() -> None:
    check(SCHEMA, EXPRESSIONS, ROWS, MORE)
