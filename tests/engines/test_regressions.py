"""Queries that once went wrong, each small: all strategies and engines against DuckDB after every event.

The comment says what was wrong. A failing random query ends here, shrunk.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from tests.engines.conformance import Case, agree
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k BIGINT NOT NULL, a BIGINT, b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE STREAM s (_0 BIGINT NOT NULL, _1 BIGINT NOT NULL, key BIGINT);
CREATE STREAM v_r (k BIGINT, x BIGINT);
CREATE TABLE u (k BIGINT NOT NULL, w BIGINT);
"""
ROWS: dict[str, list[tuple[int | None, ...]]] = {
    "r": [(1, 2, 2, 3), (1, None, 3, 3), (2, 1, 1, 1), (0, 0, 5, 2), (2, 2, 2, 5), (1, 2, 2, 2)],
    "s": [(2, 6, 1), (1, 1, None), (3, 7, 2), (2, 2, 0), (0, 5, 3)],
    "v_r": [(1, 4), (None, 2), (2, None)],
}
STATIC = {"u": [(1, 0), (2, None), (2, 5)]}
REGRESSIONS = {
    # absorb_domain dropped a domain that was stricter: R(a, x, x) beside R(a, y, z)
    "distinct of a filtered distinct": """
        SELECT count(*) AS n FROM r, (SELECT DISTINCT k FROM (SELECT DISTINCT k, b, c FROM r WHERE b = c) t) d
        WHERE r.k = d.k""",
    # with_plain_locals named a local variable like a column
    "columns called like local variables": """
        SELECT sum(r.b) AS n FROM r, (SELECT DISTINCT _0 FROM s) d WHERE r.k = d._0""",
    # the domain of a delta needed a variable that the rest gave, and the rest one that the domain gave
    "a domain that needs nothing from outside": """
        SELECT r.k, s._0 FROM r, s WHERE s._0 IN (SELECT x.k FROM r x WHERE x.k >= r.b)""",
    # a product with a sum in it was no monomial: its parameter stayed in the view
    "a sum inside a product": """
        SELECT x.k FROM (SELECT r.a AS k FROM r UNION ALL
          SELECT sum(DISTINCT u.k) AS k FROM r, u WHERE r.a < u.k GROUP BY u.k) x WHERE x.k <= 2""",
    # what a nested aggregate is given was not known inside it: VerifyError, for a window over groups below an aggregate
    "a window over groups that is summed up": """
        SELECT count(*) AS n, sum(m) AS m FROM (SELECT max(a) OVER (PARTITION BY k ORDER BY a
          ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS m FROM (SELECT k, c, sum(b) AS a FROM r GROUP BY k, c) x) y
        WHERE m > 1""",
    # an update beside a static table in a domain
    "a domain with a static table": """
        SELECT r.c FROM s, r WHERE s._0 = r.k AND r.k IN (SELECT x.a FROM r AS x JOIN u ON TRUE)""",
    # a binding of comparisons alone was neither scalar nor nested, and a view cache was to fill itself
    "a cache that fills itself": """
        SELECT count(*) AS n FROM r, u
        WHERE r.b = u.k AND u.k IN (SELECT x.k FROM r x WHERE x.k >= u.k AND x.b = u.k)""",
    # deltas made 3ⁿ terms of n aggregates, and factorisation merged them pair by pair
    "grouped views joined": """
        SELECT x.k, x.s + y.s AS n FROM (SELECT k, sum(b) AS s, avg(c) AS m FROM r GROUP BY k) x,
          (SELECT k, sum(b) AS s, count(a) AS m FROM r GROUP BY k) y WHERE x.k = y.k AND x.m >= y.m""",
    # merge_sums lost a factor that stands twice
    "a square": "SELECT k, sum(b * b * c - b * b) AS n FROM r GROUP BY k",
    # generated code used the name of a column for its own
    "columns called key": """
        SELECT sum(s.key) AS n FROM r, s WHERE r.k < s.key AND r.b < s._1
          AND 1 <= (SELECT count(*) FROM s x WHERE x.key < s._0)""",
    # an auxiliary view had the name of a stream
    "a stream called like an auxiliary view": "SELECT sum(r.b * x.x) AS n FROM r, v_r x WHERE r.k = x.k",
    # CASE swallows the NULL of its condition
    "NULL inside a term": """
        SELECT k, sum(CASE WHEN a > 1 THEN b ELSE -1 END) AS n, sum(COALESCE(a, c)) AS m FROM r GROUP BY k""",
    # a condition that never holds left a view without columns
    "never true": "SELECT r.k, count(*) AS n FROM r WHERE r.k IS NULL OR r.b < r.k GROUP BY r.k",
    # a hundred levels of indentation
    "a long NOT IN": f"SELECT count(*) AS n FROM r WHERE b NOT IN ({', '.join(map(str, range(3, 130)))})",
}

MIXED_SCHEMA = """
CREATE STREAM a (k BIGINT, d DATE NOT NULL, x INTEGER);
CREATE STREAM b (y INTEGER, d TIMESTAMP, k DOUBLE);
CREATE STREAM c (z INTEGER NOT NULL, k BIGINT NOT NULL, y INTEGER);
"""
MIXED = {
    # USING put the column of the right table where that of the left was, with its value and type
    "right_table": "SELECT b.* FROM a JOIN b USING (d, k)",
    "one_column": "SELECT *, b.k AS own FROM a JOIN b USING (k)",
    "chain": "SELECT c.*, b.*, k FROM a JOIN b USING (k) JOIN c USING (k)",
    "by_moment": "SELECT b.d, count(*) AS n, sum(x) AS s FROM a JOIN b USING (d) GROUP BY b.d",
    # BETWEEN and IN compared pair by pair, and not all as DOUBLE where one operand is
    "in_range": "SELECT k FROM a WHERE k BETWEEN 0e0 AND 9007199254740992",
    "out_of_range": "SELECT k, x FROM a WHERE k NOT BETWEEN 9007199254740993 AND 1e300",
    "in_list": "SELECT a.k, c.z FROM a, c WHERE a.k IN (c.k, 1e0)",
    "not_in_list": "SELECT count(*) AS n FROM a, b WHERE a.k NOT IN (9007199254740992, b.k)",
}
BIG, FIRST, SECOND = 2**53, dt.date(2020, 1, 31), dt.date(2020, 2, 1)
MIXED_ROWS: list[tuple[str, tuple[object, ...]]] = [
    ("a", (BIG + 1, FIRST, 1)),
    ("b", (9, dt.datetime(2020, 1, 31), float(BIG))),
    ("c", (3, BIG + 1, 9)),
    ("c", (4, BIG, 8)),
    ("a", (7, SECOND, 2)),
    ("b", (8, dt.datetime(2020, 2, 1), 7.0)),
    ("a", (1, SECOND, None)),
    ("b", (None, None, 1.0)),
    ("a", (BIG, FIRST, 3)),
    ("a", (None, FIRST, 4)),
    ("b", (5, dt.datetime(2020, 2, 1, 12), None)),
    ("c", (5, 7, None)),
]

UNTYPED_SCHEMA = "CREATE STREAM w (k INTEGER NOT NULL, p DECIMAL(18,2), z DECIMAL(12,6), v DECIMAL(38,4));"
UNTYPED = {
    # arithmetic on a bare NULL was a DOUBLE
    "negative": "SELECT k AS c FROM w UNION ALL SELECT -NULL FROM w",
    "computed": "SELECT coalesce(ABS(NULL), k) AS a, coalesce(NULL + NULL, k) AS b, coalesce(p * NULL, k) AS c FROM w",
    # MIN and MAX of what is always NULL named a column that nothing gives a value
    "extremes": "SELECT MIN(CASE k WHEN 1 THEN NULL END) AS low, MAX(NULLIF(NULL, k)) AS high, COUNT(*) AS n FROM w",
    "in_having": "SELECT k, COUNT(*) AS n FROM w GROUP BY k HAVING MAX(NULLIF(NULL, p)) IS NULL",
    "in_where": "SELECT k FROM w WHERE (SELECT MAX(NULLIF(NULL, y.k)) FROM w y WHERE y.k = w.k) IS NULL",
    "in_from": """
        SELECT t.k, coalesce(t.m, 7) AS m FROM (SELECT k, MIN(CASE k WHEN 1 THEN NULL END) AS m FROM w GROUP BY k) t""",
    # a literal next to a DECIMAL(38,2) that has no more places than that, and comparisons, which round nothing
    "literals": "SELECT k, coalesce(sum(p), 0.5) AS a, coalesce(sum(p), -0.250) AS b FROM w GROUP BY k",
    "compared": "SELECT k, nullif(z, v) AS n, z IN (v, 7) AS i FROM w WHERE z <= v",
}
UNTYPED_ROWS = [
    (1, None, Decimal("1.234567"), Decimal("1.2346")),
    (2, Decimal("0.01"), Decimal("1.2346"), Decimal("1.2346")),
    (1, Decimal("2.50"), None, Decimal("3")),
    (2, None, Decimal("7"), Decimal("9.5")),
    (3, None, None, None),
]


def stream() -> list[Event]:
    """Every row comes, in turn from each stream, one comes twice; then they go, oldest first."""
    rows = [(name, row) for i in range(6) for name, rows in ROWS.items() for row in rows[i : i + 1]]
    rows.append(rows[0])
    return [*(("+", name, row) for name, row in rows), *(("-", name, row) for name, row in rows)]


@pytest.mark.parametrize("name", REGRESSIONS)
def test_once_wrong(name: str) -> None:
    select = REGRESSIONS[name]
    case = Case(SCHEMA, f"CREATE MATERIALIZED VIEW v AS {select};", {"v": select}, stream(), STATIC)
    agree(case)["v"].check()


def test_the_base_table_itself_is_a_view() -> None:
    """Under ``classical`` a user's view that is the table took the table's place, under other names."""
    selects = {"w": "SELECT k, a, b, c FROM r", "v": "SELECT k, sum(b) AS n FROM r GROUP BY k"}
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    agree(Case(SCHEMA, views, selects, stream(), STATIC))["w"].check()


def test_a_count_that_is_the_key_beside_one_that_is_not() -> None:
    """The two became one query, of which one name was left over: VerifyError, only where both views were there."""
    selects = {
        "w": "SELECT sum(x.k) AS n FROM (SELECT k, avg(a) AS m FROM r GROUP BY k) x WHERE x.m >= 1",
        "v": "SELECT k AS g, count(a) AS n FROM r GROUP BY k INTERSECT SELECT _0, max(_0) FROM s GROUP BY _0",
    }
    for order in (["w", "v"], ["v", "w"]):
        views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {selects[name]};\n" for name in order)
        agree(Case(SCHEMA, views, selects, stream(), STATIC), [("python", "optimized"), ("python", "naive")])[
            "v"
        ].check()


def test_columns_of_two_types() -> None:
    """The front end lost which of two types a value has, above all where a BIGINT is no DOUBLE."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in MIXED.items())
    events = [*(("+", *row) for row in MIXED_ROWS), *(("-", *row) for row in MIXED_ROWS)]
    for watched in agree(Case(MIXED_SCHEMA, views, MIXED, events)).values():
        watched.check()


def test_values_without_a_type() -> None:
    """A bare NULL and a number with few places take the type that DuckDB gives them."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in UNTYPED.items())
    rows = [*UNTYPED_ROWS, UNTYPED_ROWS[0]]
    events: list[Event] = [*(("+", "w", row) for row in rows), *(("-", "w", row) for row in rows)]
    for watched in agree(Case(UNTYPED_SCHEMA, views, UNTYPED, events)).values():
        watched.check()
