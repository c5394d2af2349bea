"""What a translated view means is what DuckDB answers: the living definition against the referee."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cache

import duckdb
import pytest

from viewlet.algebra.evaluate import Entries, evaluate, over
from viewlet.algebra.functions.calendar import EPOCH, MICROSECONDS_PER_DAY
from viewlet.algebra.query import inputs, outputs
from viewlet.algebra.terms import Scalar, evaluate_term
from viewlet.program.trigger import Result, Script
from viewlet.sql import translate

SCHEMA = """
CREATE STREAM r (k INTEGER NOT NULL, a INTEGER, b INTEGER, c DOUBLE, d DATE, s VARCHAR);
CREATE STREAM t (k INTEGER NOT NULL, x INTEGER, y DECIMAL(10,2) NOT NULL, m TIMESTAMP, f BOOLEAN);
CREATE TABLE u (k INTEGER NOT NULL, w BIGINT NOT NULL);
CREATE STREAM nothing (k INTEGER, v INTEGER);
"""
DAY = dt.date(2020, 1, 30)
Database = dict[str, list[tuple[object, ...]]]


def random_database(seed: int, size: int) -> Database:
    """Small domains, so that joins match, rows repeat and NULLs meet; ``nothing`` stays empty."""
    pick = random.Random(seed)

    def maybe(value: object) -> object:
        return None if pick.random() < 0.2 else value

    def row_r() -> tuple[object, ...]:
        number = pick.randint
        day = maybe(DAY + dt.timedelta(days=number(-1, 5) if pick.random() < 0.7 else number(25, 40)))
        a, b, c = maybe(number(-2, 3)), maybe(number(0, 3)), maybe(number(-6, 6) / 4)
        return (number(1, 4), a, b, c, day, maybe(pick.choice(["ab", "b", ""])))

    def row_t() -> tuple[object, ...]:
        moment = maybe(dt.datetime(2020, 2, 1) + dt.timedelta(hours=12 * pick.randint(-4, 4)))
        cents = Decimal(pick.randint(-400, 400)) / 100
        return (pick.randint(1, 4), maybe(pick.randint(-2, 3)), cents, moment, maybe(pick.random() < 0.5))

    def repeated(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        return rows + [r for r in rows if pick.random() < 0.3]

    return {
        "r": repeated([row_r() for _ in range(size)]),
        "t": repeated([row_t() for _ in range(size)]),
        "u": repeated([(pick.randint(1, 4), pick.randint(0, 9)) for _ in range(size // 2)]),
        "nothing": [],
    }


DATABASES = [
    random_database(0, 0),
    *(random_database(seed, size) for seed, size in ((1, 3), (2, 6), (3, 9), (4, 9), (5, 16), (6, 30), (7, 5), (8, 7))),
]


def encoded(value: object) -> Scalar:
    """A value of the database as the calculus has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case dt.datetime():
            return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - EPOCH).days
        case float() | Decimal():
            exact = Fraction(value)
            return exact.numerator if exact.denominator == 1 else exact
    raise TypeError(value)


def answer(result: Result, database: Database) -> Counter[tuple[object, ...]]:
    """The rows of a view by the definition of :class:`Result`."""
    entries: dict[str, Entries] = {
        name: dict(Counter(tuple(map(encoded, row)) for row in rows)) for name, rows in database.items()
    }
    read = over(entries)
    keys = tuple(sorted(outputs(result.rows))) if result.rows is not None else ()
    rows = evaluate(result.rows, read, keys) if result.rows is not None else {(): 1}
    maps = [(var, sorted(outputs(q)), evaluate(q, read, tuple(sorted(outputs(q))))) for var, q in result.lookups]
    answered: Counter[tuple[object, ...]] = Counter()
    for key, multiplicity in rows.items():
        env: dict[str, Scalar] = dict(zip(keys, key, strict=True))
        env |= {var: entries.get(tuple(env[n] for n in names), 0) for var, names, entries in maps}
        if result.having is None or evaluate_term(result.having, env) is True:
            row = tuple(comparable(evaluate_term(c.term, env), c.type.kind) for c in result.columns)
            answered[row] += 1 if result.distinct else int(multiplicity)
    return answered


def comparable(value: object, kind: str = "") -> object:
    """Numbers up to the rounding of a DOUBLE; dates and times as DuckDB hands them out."""
    match value:
        case None | bool() | str():
            return value
        case int() if kind == "DATE":
            return EPOCH + dt.timedelta(days=value)
        case int() if kind == "TIMESTAMP":
            days, rest = divmod(value, MICROSECONDS_PER_DAY)
            return dt.datetime(1970, 1, 1) + dt.timedelta(days=days, microseconds=rest)
        case int() | float() | Decimal() | Fraction():
            return round(float(value), 6) + 0.0
    return value


@cache
def loaded(number: int) -> duckdb.DuckDBPyConnection:
    """DuckDB with one of the databases in it."""
    connection = duckdb.connect()
    # x / 0 is NULL, as our terms have it
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")
    connection.execute(SCHEMA.replace("CREATE STREAM", "CREATE TABLE"))
    for name, rows in DATABASES[number].items():
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return connection


def referee(views: str, query: str, number: int) -> Counter[tuple[object, ...]]:
    connection = loaded(number)
    connection.execute(views.replace("CREATE MATERIALIZED", "CREATE OR REPLACE"))
    return Counter(tuple(map(comparable, row)) for row in connection.execute(query).fetchall())


def check(views: str, query: str, dialect: str = "sql", referee_query: str = "", empty: bool = False) -> Script:
    translated = translate(f"{SCHEMA}{views} CREATE MATERIALIZED VIEW v AS {query};", dialect)  # type: ignore[arg-type]
    result = translated.results[-1]
    assert well_formed(result)
    interesting = 0
    for number, database in enumerate(DATABASES):
        expected = referee(views, referee_query or query, number)
        assert answer(result, database) == expected, f"\n{query}\nover {database}\n{result}"
        nullable = [c.nullable for c in result.columns]
        assert all(may or value is not None for row in expected for may, value in zip(nullable, row, strict=True))
        interesting += any(value not in (None, 0) for row in expected for value in row)
    assert interesting or empty, "the answer is empty on every database: this proves nothing"
    return translated


def well_formed(result: Result) -> bool:
    """Closed queries, lookups over the keys."""
    keys = outputs(result.rows) if result.rows is not None else frozenset()
    closed = result.rows is None or not inputs(result.rows)
    return closed and all(not inputs(q) and outputs(q) <= keys for _, q in result.lookups)


PLAIN = [
    "SELECT * FROM r",
    "SELECT r.*, t.x FROM r, t WHERE r.k = t.k",
    "SELECT k, a + b AS total, a FROM r",
    "SELECT a, a AS again, -a AS minus, +a AS plus FROM r",
    "SELECT DISTINCT a, b FROM r",
    "SELECT DISTINCT a + b FROM r WHERE c IS NOT NULL",
    "SELECT r.a, t.x FROM r JOIN t ON r.a = t.x",
    "SELECT r.a, t.x FROM r INNER JOIN t ON r.a = t.x AND t.y > 0 CROSS JOIN u WHERE u.w > 2",
    "SELECT k, a, x FROM r JOIN t USING (k)",
    "SELECT * FROM r JOIN t USING (k) JOIN u USING (k)",
    "SELECT q.*, u.*, r.k, k FROM r JOIN u USING (k) JOIN (SELECT x, k, y FROM t) q USING (k)",
    "SELECT q.*, q.k, r.a FROM r JOIN (SELECT x AS a, y, k FROM t) q USING (a, k) WHERE q.a > 0 AND k > 1",
    "SELECT r.d, q.d AS moment FROM r JOIN (SELECT m AS d FROM t) q USING (d)",
    "SELECT q.k, sum(q.a * r.b) FROM r JOIN (SELECT x AS a, k FROM t) q USING (k) GROUP BY q.k",
    "SELECT R.A FROM r AS R WHERE R.a >= 1",
    "SELECT q.n, q.w FROM u AS q (n)",
    "SELECT 7 AS seven, 'x' AS letter, NULL AS nil, TRUE AS yes, k FROM u",
    "SELECT 1 + 1 AS two",
    "SELECT k FROM u WHERE 1 = 1 AND TRUE",
]
CONDITIONS = [
    "a = b",
    "a <> b",
    "a < b OR b IS NULL",
    "NOT a < b",
    "NOT (a < b OR c > 0)",
    "NOT (a < b AND c > 0)",
    "NOT NOT a > 0",
    "a BETWEEN 0 AND 2",
    "a NOT BETWEEN 0 AND 2",
    "a IN (1, 2, b)",
    "a NOT IN (1, 2)",
    "a NOT IN (1, NULL)",
    "a IN (1)",
    "a IS NULL",
    "a IS NOT NULL AND b IS NOT NULL",
    "(a > b) IS NULL",
    "(a > b) IS TRUE",
    "(a > b) IS NOT TRUE",
    "(a > b) IS FALSE",
    "a + b * 2 - 1 > c / 2",
    "a / b > 0.5",
    "a / b = 1",
    "a / 2 = 1",
    "a / b IS NULL",
    "s = 'ab'",
    "s < 'b'",
    "CASE WHEN a > 0 THEN b > 1 ELSE c < 0 END",
    "CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' END = 'two'",
    "COALESCE(a, b, 0) = 2",
    "NULLIF(a, b) = 1",
    "ABS(a) = 2",
    "ABS(a - b) > 1",
    "d > DATE '2020-02-01'",
    "d > DATE('2020-02-01')",
    "d > '2020-02-01'",
    "d < DATE '2020-01-31' + INTERVAL '1' MONTH",
    "d < DATE '2020-03-31' - INTERVAL 1 MONTH",
    "d >= DATE '2020-01-30' + 5",
    "d - DATE '2020-01-30' > 5",
    "d + INTERVAL '1' MONTH > DATE '2020-03-05'",
    "d + INTERVAL '36' HOUR < TIMESTAMP '2020-02-03 12:00:00'",
    "d + a = DATE '2020-02-02' OR 1 + d = DATE '2020-02-03'",
    "d = CAST('2020-02-02' AS DATE) OR d > '2020-02-05'::date",
    "CAST(a AS DOUBLE) > 0.5 AND CAST(d AS TIMESTAMP) > TIMESTAMP '2020-02-01 00:00:00'",
    "(a = 1) = (b = 1)",
    "(a < b) = (c > 0) AND b IN (1, 2)",
    "a IN (1, b, 5e-1)",
    "NOT a BETWEEN -1e0 AND b",
    "NULL = a OR a > 1",
    "NOT (a IN (1, NULL))",
]
MOMENTS = [
    "SELECT k, m FROM t WHERE m < TIMESTAMP '2020-02-01 12:00:00'",
    "SELECT r.d, t.m FROM r, t WHERE r.d = t.m",
    "SELECT r.d, t.m FROM r, t WHERE r.d < t.m AND r.d <> t.m",
    "SELECT m + INTERVAL '90' MINUTE AS later, m - INTERVAL 1 YEAR AS earlier FROM t",
    "SELECT m FROM t WHERE m >= DATE '2020-02-01'",
    "SELECT m + INTERVAL '-1.5' SECOND AS a, m + INTERVAL (-2.25) MILLISECOND AS b, m - INTERVAL 1.0 DAY AS c FROM t",
    "SELECT m + INTERVAL '-3 days' AS a, m - INTERVAL '2 h' AS b, m + INTERVAL '0.5 seconds' AS c FROM t",
    "SELECT d - DATE '2020-01-01' AS days, d + 1 AS tomorrow, d - INTERVAL 1 WEEK AS ago FROM r",
    "SELECT COALESCE(m, d) AS moment FROM r, t WHERE r.k = t.k",
    "SELECT f, NOT f AS nf, f OR x > 1 AS either FROM t WHERE f OR x IS NULL",
    "SELECT k FROM t WHERE f",
    "SELECT k FROM t WHERE NOT f",
    "SELECT k FROM t WHERE m = '2020-02-01 12:00:00'",
]
AGGREGATES = [
    "SELECT sum(a), count(*), count(a), avg(a), sum(a) + count(b) AS mixed FROM r",
    "SELECT sum(y), avg(y), sum(y * 1.5), sum(y + 1) FROM t",
    "SELECT sum(k), avg(k), count(k) FROM u",
    "SELECT sum(c * a) FROM r WHERE b > 2",
    "SELECT count(*) FROM nothing",
    "SELECT count() FROM r WHERE a > 0",
    "SELECT sum(v), avg(v) FROM nothing",
    "SELECT count(DISTINCT a), sum(DISTINCT a), avg(DISTINCT b) FROM r",
    "SELECT a, count(DISTINCT b), count(DISTINCT a + b) FROM r GROUP BY a",
    "SELECT a, sum(b), count(*) FROM r GROUP BY a",
    "SELECT k, sum(k), avg(k) FROM r GROUP BY k",
    "SELECT a, b, sum(c) / count(*) AS mean FROM r GROUP BY a, b",
    "SELECT a + b AS t, sum(c) FROM r GROUP BY a + b",
    "SELECT a + b AS t, sum(c) FROM r GROUP BY t",
    "SELECT a + b AS t, sum(c) FROM r GROUP BY 1",
    "SELECT a AS g, sum(b) FROM r GROUP BY g HAVING g > 0",
    "SELECT a, sum(b) AS t FROM r GROUP BY a HAVING sum(b) > 1 AND count(*) > 1",
    "SELECT a, sum(b) AS t FROM r GROUP BY a HAVING t > 1",
    "SELECT a FROM r GROUP BY a HAVING sum(b) IS NULL",
    "SELECT a FROM r GROUP BY a",
    "SELECT sum(a) FROM r HAVING count(*) > 3",
    "SELECT 1 AS one FROM r HAVING count(*) > 3",
    "SELECT DISTINCT sum(b) FROM r GROUP BY a",
    "SELECT DISTINCT count(*) FROM r GROUP BY a, b",
    "SELECT sum(CASE WHEN a > 0 THEN 1 ELSE 0 END), sum(CASE WHEN a > 0 THEN b END) FROM r",
    "SELECT r.k, sum(r.a * t.x), sum(r.a - t.x) FROM r, t WHERE r.k = t.k GROUP BY r.k",
    "SELECT x.a, sum(x.b * y.b) FROM r x, r y WHERE x.a = y.a AND x.c > y.c GROUP BY x.a",
    "SELECT a, 2 * sum(b) - avg(c) AS z, CASE WHEN count(*) > 1 THEN sum(b) ELSE -1 END AS w FROM r GROUP BY a",
    "SELECT a, coalesce(sum(b), 0) AS s FROM r GROUP BY a",
    "SELECT a / b AS q, count(*) FROM r GROUP BY a / b",
    "SELECT d, s, count(*) FROM r GROUP BY d, s",
    "SELECT count(*) FROM r WHERE a = b AND b = k",
    "SELECT k, sum(DISTINCT a), avg(DISTINCT a + b), count(DISTINCT c) FROM r GROUP BY k",
    "SELECT sum(1), sum(a / b), count(a / b), sum(0) FROM r",
]
SUBQUERIES = [
    "SELECT k, a FROM r WHERE a > (SELECT sum(x) FROM t)",
    "SELECT k, a FROM r WHERE a >= (SELECT avg(x) FROM t)",
    "SELECT k, a FROM r WHERE a < (SELECT sum(t.x) FROM t WHERE t.k = r.k)",
    "SELECT k, a FROM r WHERE (SELECT sum(t.x) FROM t WHERE t.x < r.a) < 3",
    "SELECT k, a FROM r WHERE (SELECT sum(t.x) FROM t WHERE t.x = r.a) = r.a",
    "SELECT k, a FROM r WHERE (SELECT count(*) FROM t WHERE t.x = r.a) = 0",
    "SELECT k, a FROM r WHERE (SELECT sum(t.x) FROM t WHERE t.x = r.a) IS NULL",
    "SELECT k, a FROM r WHERE NOT (SELECT sum(t.x) FROM t WHERE t.x = r.a) > 1",
    "SELECT k, a FROM r WHERE a > 1 OR (SELECT sum(t.x) FROM t WHERE t.k = r.k) > 1",
    "SELECT k, (SELECT sum(x) FROM t WHERE t.k = r.k) AS s, (SELECT count(*) FROM t WHERE t.x > r.a) AS n FROM r",
    "SELECT sum(a) FROM r WHERE 1 <= (SELECT sum(1) WHERE 2 < (SELECT sum(t.x) FROM t WHERE t.k = r.k))",
    "SELECT sum(a) FROM r WHERE a < (SELECT sum(x) FROM t WHERE t.k = r.k AND "
    "t.x > (SELECT avg(u.w) - 4 FROM u WHERE u.k = t.k AND u.w > r.b))",
    "SELECT a, sum(b) / (SELECT sum(w) FROM u) AS part FROM r GROUP BY a",
    "SELECT a, sum(b), (SELECT count(*) FROM t WHERE t.x = r.a) AS n FROM r GROUP BY a",
    "SELECT a, sum(b), (SELECT sum(t.x) FROM t WHERE t.x = r.a AND t.y > 0) AS n FROM r GROUP BY a",
    "SELECT a, sum(b), (SELECT count(*) FROM t WHERE t.x < r.a) AS n FROM r GROUP BY a",
    "SELECT a, sum(b) FROM r GROUP BY a HAVING count(*) < (SELECT count(*) FROM t WHERE t.x >= r.a)",
    "SELECT a, sum(b) FROM r GROUP BY a HAVING sum(b) > (SELECT sum(x) FROM t)",
    "SELECT a, sum(b) FROM r GROUP BY a "
    "HAVING EXISTS (SELECT 1 FROM t WHERE t.x = r.a GROUP BY t.k HAVING sum(t.x) = r.a)",
    "SELECT sum(a), (SELECT sum(x) FROM t) AS other FROM r HAVING count(*) > (SELECT count(*) FROM nothing)",
    "SELECT sum(a * (SELECT sum(x) FROM t WHERE t.k = r.k)) FROM r",
    "SELECT k FROM r WHERE a + (SELECT sum(x) FROM t) > 1 AND b BETWEEN 0 AND (SELECT avg(w) FROM u)",
    "SELECT k FROM r WHERE a > (SELECT sum(x) FROM t HAVING count(*) > 2)",
    "SELECT k FROM r WHERE a = (SELECT 1)",
    "SELECT k FROM r WHERE EXISTS (SELECT * FROM t WHERE t.k = r.k AND t.x > r.a)",
    "SELECT k FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = r.k)",
    "SELECT k FROM r WHERE EXISTS (SELECT sum(x) FROM nothing, t WHERE t.k > r.k)",
    "SELECT k FROM r WHERE EXISTS (SELECT count(*) FROM t WHERE t.k = r.k HAVING count(*) > 1)",
    "SELECT k FROM r WHERE EXISTS (SELECT t.k FROM t WHERE t.x = r.a GROUP BY t.k HAVING count(*) > 1)",
    "SELECT k FROM r WHERE NOT (a > 1 OR EXISTS (SELECT 1 FROM t WHERE t.x = r.a))",
    "SELECT k, EXISTS (SELECT 1 FROM t WHERE t.k = r.k) AS has FROM r",
    "SELECT k, a FROM r WHERE a IN (SELECT x FROM t)",
    "SELECT k, a FROM r WHERE a NOT IN (SELECT x FROM t)",
    "SELECT k, a FROM r WHERE a NOT IN (SELECT x FROM t WHERE x IS NOT NULL)",
    "SELECT k, a FROM r WHERE a NOT IN (SELECT v FROM nothing)",
    "SELECT k, a FROM r WHERE a NOT IN (SELECT t.x FROM t WHERE t.k = r.k)",
    "SELECT k, a FROM r WHERE k NOT IN (SELECT t.k FROM t WHERE t.x > r.a)",
    "SELECT k, a FROM r WHERE (a IN (SELECT x FROM t)) IS NULL",
    "SELECT k, a, a IN (SELECT x FROM t) AS m, a NOT IN (SELECT x FROM t) AS n FROM r",
    "SELECT k, a FROM r WHERE a IN (SELECT sum(x) FROM t GROUP BY k)",
    "SELECT k, a FROM r WHERE a IN (SELECT count(*) - 10 FROM t)",
    "SELECT k, a FROM r WHERE NOT (a IN (SELECT x FROM t) AND b > 0)",
    "SELECT k FROM r WHERE (SELECT count(*) FROM t WHERE t.k = r.k) IN (SELECT w FROM u)",
]
TABLES = [
    "SELECT q.a, q.n FROM (SELECT a, a + b AS n FROM r WHERE c > 0) q WHERE q.n > 0",
    "SELECT q.a, sum(q.n) FROM (SELECT a, a * b AS n FROM r) AS q, t WHERE q.a = t.x GROUP BY q.a",
    "SELECT q.a, q.s FROM (SELECT a, sum(b) AS s, count(*) AS n FROM r GROUP BY a) q WHERE q.n > 1",
    "SELECT q.a, q.s, t.k FROM (SELECT a, sum(b) AS s FROM r GROUP BY a) q, t WHERE q.a = t.x",
    "SELECT sum(q.s), count(*) FROM (SELECT a, sum(b) AS s FROM r GROUP BY a) q",
    "SELECT avg(q.n) FROM (SELECT count(*) AS n FROM r GROUP BY a, b) q",
    "SELECT q.g, count(*) FROM (SELECT a + b AS g, sum(c) FROM r GROUP BY a + b HAVING count(*) > 1) q GROUP BY q.g",
    "SELECT q.s, u.k FROM (SELECT sum(a) AS s FROM r) q, u",
    "SELECT count(*) FROM (SELECT DISTINCT a, b FROM r) q",
    "SELECT q.a, count(*) FROM (SELECT DISTINCT a, b + 1 AS c FROM r) q GROUP BY q.a",
    "WITH q AS (SELECT a, b FROM r WHERE b > 0) SELECT x.a, y.b FROM q x, q y WHERE x.a = y.a",
    "WITH q (g, s) AS (SELECT a, sum(b) FROM r GROUP BY a), p AS (SELECT g FROM q WHERE s > 1) SELECT * FROM p",
    "WITH q AS (SELECT k, sum(x) AS s FROM t GROUP BY k) "
    "SELECT r.k, r.a FROM r WHERE r.a < (SELECT sum(s) FROM q WHERE q.k = r.k)",
    "SELECT k FROM r WHERE a < (WITH q AS (SELECT x FROM t WHERE t.k = r.k) SELECT sum(x) FROM q)",
    "WITH r AS (SELECT k FROM u) SELECT k FROM r",
    "SELECT a FROM r UNION ALL SELECT x FROM t",
    "SELECT a, b FROM r UNION ALL SELECT a, b FROM r UNION ALL SELECT k, x FROM t",
    "SELECT k, a + 1 AS n, NULL AS z FROM r UNION ALL SELECT x, y, k FROM t",
    "SELECT d AS moment FROM r UNION ALL SELECT m FROM t",
    "SELECT q.a, count(*) FROM (SELECT a FROM r UNION ALL SELECT x FROM t) q GROUP BY q.a",
    "SELECT k, sum(a) FROM r GROUP BY k UNION ALL SELECT k, sum(x) FROM t GROUP BY k",
    "SELECT count(*) FROM r UNION ALL SELECT sum(x) FROM t",
    "SELECT DISTINCT q.a FROM (SELECT a FROM r UNION ALL SELECT x FROM t) q",
    "SELECT k FROM u WHERE k IN (SELECT a FROM r UNION ALL SELECT x FROM t)",
    "SELECT q.n, q.f FROM (SELECT k, a IS NULL AS f, (SELECT count(*) FROM t WHERE t.k = r.k) AS n FROM r) q WHERE q.f",
    "SELECT k FROM r WHERE a < (SELECT sum(q.s) FROM (SELECT x, sum(y) AS s FROM t WHERE t.k = r.k GROUP BY x) q)",
    "(SELECT k FROM u)",
]


@pytest.mark.parametrize("query", PLAIN + MOMENTS)
def test_select(query: str) -> None:
    check("", query)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_where(condition: str) -> None:
    never = condition in ("a NOT IN (1, NULL)", "NOT (a IN (1, NULL))")
    check("", f"SELECT k, a, b FROM r WHERE {condition}", empty=never)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition_as_value(condition: str) -> None:
    """Three-valued: TRUE, FALSE and NULL all told apart."""
    check("", f"SELECT k, ({condition}) AS answer FROM r")


@pytest.mark.parametrize("query", AGGREGATES)
def test_aggregates(query: str) -> None:
    check("", query, empty="nothing" in query)


@pytest.mark.parametrize("query", AGGREGATES)
def test_aggregates_in_from(query: str) -> None:
    """The general path: the same query as a derived table."""
    check("", f"SELECT * FROM ({query}) q", empty="nothing" in query)


@pytest.mark.parametrize("query", SUBQUERIES)
def test_subqueries(query: str) -> None:
    check("", query)


@pytest.mark.parametrize("query", TABLES)
def test_tables(query: str) -> None:
    check("", query)


def test_views_over_views() -> None:
    views = """
      CREATE MATERIALIZED VIEW per_a AS SELECT a, sum(b) AS s, count(*) AS n FROM r GROUP BY a;
      CREATE MATERIALIZED VIEW big (g, total) AS SELECT a, s FROM per_a WHERE n > 1;
    """
    translated = check(views, "SELECT big.g, big.total, p.n FROM big JOIN per_a p ON p.a = big.g")
    assert [r.name for r in translated.results] == ["per_a", "big", "v"]
    assert [c.name for c in translated.results[1].columns] == ["g", "total"]


PAPER = [
    ("SELECT sum(a), avg(a) FROM r WHERE b > 1", "SELECT coalesce(sum(a), 0), coalesce(avg(a), 0) FROM r WHERE b > 1"),
    ("SELECT a, sum(b) FROM r GROUP BY a", "SELECT a, coalesce(sum(b), 0) FROM r GROUP BY a"),
    (
        "SELECT k, a FROM r WHERE a > (SELECT sum(x) FROM t WHERE t.x > r.a)",
        "SELECT k, a FROM r WHERE a > (SELECT coalesce(sum(x), 0) FROM t WHERE t.x > r.a)",
    ),
    (
        "SELECT k, a FROM r WHERE 0 = (SELECT sum(1) FROM t WHERE t.k = r.k)",
        "SELECT k, a FROM r WHERE 0 = (SELECT coalesce(sum(1), 0) FROM t WHERE t.k = r.k)",
    ),
    (
        "SELECT sum(b1.c * b1.a) FROM r b1 WHERE 0.25 * (SELECT sum(b3.a) FROM r b3) > "
        "(SELECT sum(b2.a) FROM r b2 WHERE b2.c > b1.c)",
        "SELECT coalesce(sum(b1.c * b1.a), 0) FROM r b1 WHERE 0.25 * (SELECT coalesce(sum(b3.a), 0) FROM r b3) > "
        "(SELECT coalesce(sum(b2.a), 0) FROM r b2 WHERE b2.c > b1.c)",
    ),
    (
        "SELECT q.a, q.s FROM (SELECT a, sum(b) AS s FROM r GROUP BY a HAVING avg(c) >= 0) q WHERE q.s < 3",
        "SELECT q.a, q.s FROM (SELECT a, coalesce(sum(b), 0) AS s FROM r GROUP BY a HAVING coalesce(avg(c), 0) >= 0) q "
        "WHERE q.s < 3",
    ),
]


@pytest.mark.parametrize(("query", "standard"), PAPER)
def test_paper_dialect(query: str, standard: str) -> None:
    """SUM and AVG of nothing are 0: the referee has COALESCE written in."""
    check("", query, "paper", standard)
    with pytest.raises(AssertionError):
        check("", query, "sql", standard)


def test_correlation_to_a_key_by_equality_stays_linear() -> None:
    """A map of its own, looked up by the key; by inequality the whole query becomes one bag."""
    linear = "SELECT a, sum(b), (SELECT count(*) FROM t WHERE t.x = r.a) AS n FROM r GROUP BY a"
    general = linear.replace("t.x = r.a", "t.x < r.a")
    assert len(check("", linear).results[-1].lookups) == 3
    assert not check("", general).results[-1].lookups
