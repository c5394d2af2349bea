"""DOUBLE beside exact numbers: what is equal, and what is one key, is what DuckDB says."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import duckdb
import pytest

import viewlet
from viewlet.algebra.terms import Var, number, op

SCHEMA = """
CREATE STREAM r (k INTEGER, a DOUBLE);
CREATE STREAM s (a DOUBLE NOT NULL, b DECIMAL(3,1), c BIGINT);
"""
R = [(1, 0.1), (1, 0.2), (2, 0.30000000000000004), (3, 0.3), (4, 1.0), (5, None), (6, 0.7)]
S = [
    (0.1, Decimal("0.1"), 2**53),
    (2.0**53, Decimal("0.3"), 2**53 + 1),
    (1.0, Decimal("1.0"), 1),
    (0.7, Decimal("0.7"), 3),
    (1 / 3, Decimal("0.3"), None),
]
GONE = [("r", (1, 0.1)), ("s", S[0])]  # inserted once more than it stays

COMPARISONS = [
    "SELECT a FROM r WHERE a = 0.1",
    "SELECT a FROM r WHERE a = 1e-1",
    "SELECT k FROM r WHERE a <> 0.1",
    "SELECT a FROM r WHERE a <= 0.1",
    "SELECT k FROM r WHERE -a = -0.1",
    "SELECT a FROM r WHERE a IN (0.1, 0.2)",
    "SELECT a FROM r WHERE a BETWEEN 0.3 AND 0.7",
    "SELECT CASE a WHEN 0.1 THEN 1 WHEN 0.3 THEN 2 ELSE 0 END AS x FROM r",
    "SELECT nullif(a, 0.1) AS n FROM r",
    "SELECT a FROM s WHERE a = b",
    "SELECT b FROM s WHERE b >= 1e-1",
    "SELECT c FROM s WHERE c BETWEEN 0e0 AND 9007199254740992",
    "SELECT c FROM s WHERE c BETWEEN a AND 9007199254740992",
    "SELECT c FROM s WHERE c NOT BETWEEN 9007199254740993 AND 1e300",
    "SELECT c FROM s WHERE c IN (9007199254740992, 1e0)",
    "SELECT c FROM s WHERE c NOT IN (9007199254740992, 0.5, 0e0)",
    "SELECT x.c FROM s x, s y WHERE x.c IN (y.a, y.c)",
    "SELECT c, CASE c WHEN 9007199254740992 THEN 1 WHEN 1e0 THEN 2 END AS n FROM s",
    "SELECT x.c FROM s x, s y WHERE x.c = y.a",
    "SELECT a FROM r WHERE a IN (SELECT b FROM s)",
    "SELECT b FROM s WHERE b IN (SELECT a FROM r)",
    "SELECT a FROM s WHERE a IN (SELECT r.a / 3 FROM r)",
    "SELECT k FROM r WHERE a / 10 = 0.1",
    "SELECT k FROM r WHERE 0.1 * a = 0.1",
    "SELECT r.k FROM r, s WHERE r.a / 3 = s.a",
    "SELECT r.k FROM r, s WHERE 0.1 * r.a = s.a",
    "SELECT r.k FROM r, s WHERE 0.1 * r.a = s.b",
    "SELECT b FROM s WHERE b >= (SELECT avg(y.b) FROM s y WHERE y.b = 0.1)",
    "SELECT a FROM s WHERE a IN (SELECT 0.1 * r.a FROM r)",
    "SELECT b, avg(b) = 0.1 AS tenth FROM s GROUP BY b",
    "SELECT v.c, x.a FROM (SELECT a / 3 AS c FROM r) v, s x WHERE v.c = x.a",
    "SELECT q.k, x.a FROM (SELECT k, sum(a) AS s FROM r GROUP BY k) q JOIN r x ON x.a = q.s",
]
SUMS = [
    "SELECT a - b AS d FROM s",
    "SELECT a FROM r WHERE a + 0.1 = 0.2",
    "SELECT k FROM r WHERE 0.3 - a = 0",
    "SELECT b - avg(b) AS d, avg(b) + b AS e FROM s GROUP BY b",
    "SELECT a - b / 1 AS d, b / 4 + a AS e, b / 2 + 1 AS f FROM s",
    "SELECT b - avg(b) OVER (PARTITION BY c) AS d FROM s",
    "SELECT b FROM s x WHERE b - (SELECT avg(y.b) FROM s y WHERE y.b = x.b) = 0",
]
KEYS = [
    "SELECT DISTINCT x FROM (SELECT a AS x FROM s UNION ALL SELECT b FROM s) t",
    "SELECT count(DISTINCT x) AS n FROM (SELECT a AS x FROM s UNION ALL SELECT b FROM s) t",
    "SELECT c::DOUBLE AS d, count(*) AS n FROM s GROUP BY c::DOUBLE",
    "SELECT DISTINCT c / 1 AS d FROM s",
    "SELECT count(DISTINCT c / 1) AS n FROM s",
    "SELECT a / 3 AS c, count(*) AS n FROM r GROUP BY a / 3",
    "SELECT a / 3 + 1 AS c FROM r",
    "SELECT coalesce(a, 0.1) AS x, count(*) AS n FROM r GROUP BY 1",
    "SELECT CASE WHEN k = 1 THEN a ELSE 0.1 END AS z, count(*) AS n FROM r GROUP BY 1",
    "SELECT DISTINCT q.v FROM (SELECT avg(a) AS v FROM r GROUP BY k) q",
    "SELECT q.s, count(*) AS n FROM (SELECT k, sum(a) AS s FROM r GROUP BY k) q GROUP BY q.s",
]


def referee(query: str) -> Counter[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")
    connection.execute(SCHEMA.replace("STREAM", "TABLE"))
    connection.executemany("INSERT INTO r VALUES (?, ?)", R)
    connection.executemany("INSERT INTO s VALUES (?, ?, ?)", S)
    return Counter(connection.execute(query).fetchall())


@pytest.mark.parametrize("engine", ["python", "interpreter"])
@pytest.mark.parametrize("query", COMPARISONS + SUMS + KEYS)
def test_the_same_rows_as_duckdb(query: str, engine: str) -> None:
    """To the last bit: no tolerance."""
    expected = referee(query)
    assert expected, "no rows: this proves nothing"
    with viewlet.connect(engine=engine) as db:
        db.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {query};")
        for relation, row in [*GONE, *(("r", row) for row in R), *(("s", row) for row in S)]:
            db.insert(relation, row)
        for relation, row in GONE:
            db.delete(relation, row)
        assert Counter(db.view("v").rows()) == expected
        assert db.verify("v") == []


def test_a_computed_key_is_found_by_the_value_it_shows() -> None:
    with viewlet.connect() as db:
        db.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT a / 3 AS c, count(*) AS n FROM r GROUP BY a / 3;")
        db.insert("r", R)
        for c, n in db.view("v"):
            assert db.view("v").get(c=c) == (c, n)
        assert db.view("v").get(c=0.1 / 3) == (0.1 / 3, 1)


def test_arithmetic_is_not_rounded_before_it_is_a_key() -> None:
    """Factors and sums stay exact, so that the compiler can take them apart."""
    script = "CREATE MATERIALIZED VIEW v AS SELECT sum(q.x) AS s FROM (SELECT r.a * s.a AS x FROM r, s) q WHERE q.x > 0"
    assert "double" not in repr(viewlet.compile(SCHEMA + script).result("v").lookups)


def test_double_folds() -> None:
    assert op("double", number(2**53 + 1)) == number(2**53)
    assert op("double", Var("x")).text == "double(x)"
