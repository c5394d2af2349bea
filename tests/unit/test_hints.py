"""A hint that proposes another query proposes an equal one: NULLs, duplicates and empty tables included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import duckdb
import pytest

import viewlet
from tests.unit.test_docs import DATA, REFUSED, code, schema
from viewlet.errors import SqlError
from viewlet.sql import table, translate, unsupported

SCHEMA = """
CREATE STREAM r (a INTEGER, b INTEGER, s VARCHAR, f BOOLEAN, d DATE, p DECIMAL(10,2));
CREATE STREAM t (a INTEGER, b INTEGER, s VARCHAR);
"""
R = [
    (1, 1, "ab", True, "2024-01-31", "1.25"),
    (1, 1, "ab", True, "2024-01-31", "1.25"),
    (None, 1, "abc", None, None, None),
    (None, 1, "abc", None, None, None),
    (None, None, None, None, "2023-12-31", "0.01"),
    (2, None, "b", False, "2024-02-29", "2.50"),
    (3, 5, None, True, "2024-03-31", None),
    (7, 7, "z", False, "2024-01-01", "7.00"),
    (1, 2, "ac", None, "2024-01-01", "-1.25"),
]
T = [(1, 1, "ab"), (1, 1, "ab"), (None, None, None), (2, None, "b"), (2, 2, None), (3, 4, "c"), (9, 7, "zz")]

# what is refused, what its hint says to write, and that on these tables
REWRITES = [
    (
        "SELECT a, sum(b) OVER (PARTITION BY a) AS v FROM r",
        "(SELECT SUM(y.v) FROM t y WHERE y.k = x.k OR (y.k IS NULL AND x.k IS NULL))",
        "SELECT a, (SELECT sum(y.b) FROM r y WHERE y.a = x.a OR (y.a IS NULL AND x.a IS NULL)) AS v FROM r x",
    ),
    (
        "SELECT sum(b) FILTER (WHERE a > 9) AS v, max(b) FILTER (WHERE a > 1) AS m FROM r",
        "SUM(CASE WHEN condition THEN x END)",
        "SELECT sum(CASE WHEN a > 9 THEN b END) AS v, max(CASE WHEN a > 1 THEN b END) AS m FROM r",
    ),
    (
        "SELECT count(*) FILTER (WHERE a > 9) AS n FROM r",
        "COUNT(CASE WHEN condition THEN 1 END)",
        "SELECT count(CASE WHEN a > 9 THEN 1 END) AS n FROM r",
    ),
    (
        "SELECT a IS NOT DISTINCT FROM b AS x FROM r",
        "COALESCE(x = y, x IS NULL AND y IS NULL)",
        "SELECT coalesce(a = b, a IS NULL AND b IS NULL) AS x FROM r",
    ),
    (
        "SELECT a IS DISTINCT FROM b AS x FROM r",
        "COALESCE(x <> y, (x IS NULL) <> (y IS NULL))",
        "SELECT coalesce(a <> b, (a IS NULL) <> (b IS NULL)) AS x FROM r",
    ),
    (
        "SELECT a = ANY (SELECT a FROM t) AS x FROM r",
        "x IN (SELECT y …)",
        "SELECT a IN (SELECT a FROM t) AS x FROM r",
    ),
    (
        "SELECT b <> ALL (SELECT b FROM t) AS x FROM r",
        "x NOT IN (SELECT y …)",
        "SELECT b NOT IN (SELECT b FROM t) AS x FROM r",
    ),
    (
        "SELECT a FROM r WHERE a < ANY (SELECT b FROM t)",
        "EXISTS (SELECT 1 FROM … WHERE x < y)",
        "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE r.a < t.b)",
    ),
    (
        "SELECT a FROM r WHERE a < ALL (SELECT b FROM t WHERE s > 'b')",
        "NOT EXISTS (SELECT 1 FROM … WHERE (x < y) IS NOT TRUE)",
        "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.s > 'b' AND (r.a < t.b) IS NOT TRUE)",
    ),
    (
        "SELECT a FROM r WHERE (a, b) IN (SELECT a, b FROM t)",
        "EXISTS (SELECT 1 FROM … y WHERE y.a = x.a AND y.b = x.b)",
        "SELECT a FROM r x WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.a AND y.b = x.b)",
    ),
    (
        "SELECT count(DISTINCT (a, b)) AS n FROM r",
        "SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM …) t",
        "SELECT count(*) AS n FROM (SELECT DISTINCT a, b FROM r) t",
    ),
    (
        "SELECT * FROM r NATURAL JOIN t",
        "JOIN … USING (x)",
        "SELECT * FROM r JOIN t USING (a, b, s)",
    ),
    (
        "SELECT r.a FROM r SEMI JOIN t ON r.a = t.a",
        "WHERE EXISTS (SELECT 1 FROM … WHERE the condition)",
        "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE r.a = t.a)",
    ),
    (
        "SELECT r.a FROM r ANTI JOIN t ON r.a = t.a",
        "WHERE NOT EXISTS (SELECT 1 FROM … WHERE the condition)",
        "SELECT r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE r.a = t.a)",
    ),
    (
        "SELECT r.a, t.b FROM r LEFT JOIN t ON r.a = t.a AND r.b < t.b",
        "UNION ALL … WHERE NOT EXISTS (…)",
        "SELECT r.a, t.b FROM r JOIN t ON r.a = t.a AND r.b < t.b UNION ALL "
        "SELECT r.a, NULL FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE r.a = t.a AND r.b < t.b)",
    ),
    (
        "SELECT r.a, t.b FROM r FULL JOIN t ON r.a = t.a",
        "UNION ALL … WHERE NOT EXISTS (…)",
        "SELECT r.a, t.b FROM r JOIN t ON r.a = t.a UNION ALL "
        "SELECT r.a, NULL FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE r.a = t.a) UNION ALL "
        "SELECT NULL, t.b FROM t WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.a = t.a)",
    ),
    (
        "SELECT a, b FROM r UNION SELECT a, b FROM t",
        "SELECT DISTINCT * FROM (SELECT … UNION ALL SELECT …) t",
        "SELECT DISTINCT * FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM t) q",
    ),
    (
        "SELECT a, b FROM r INTERSECT SELECT a, b FROM t",
        "HAVING MIN(side) = 0 AND MAX(side) = 1",
        "SELECT a, b FROM (SELECT a, b, 0 AS side FROM r UNION ALL SELECT a, b, 1 FROM t) q GROUP BY a, b "
        "HAVING min(side) = 0 AND max(side) = 1",
    ),
    (
        "SELECT a, b FROM r EXCEPT SELECT a, b FROM t",
        "HAVING MAX(side) = 0",
        "SELECT a, b FROM (SELECT a, b, 0 AS side FROM r UNION ALL SELECT a, b, 1 FROM t) q GROUP BY a, b "
        "HAVING max(side) = 0",
    ),
    (
        "SELECT r.a, q.m FROM r, LATERAL (SELECT max(y.b) AS m FROM t y WHERE y.a = r.a) q",
        "(SELECT MAX(y.v) FROM t y WHERE y.k = x.k)",
        "SELECT r.a, (SELECT max(y.b) FROM t y WHERE y.a = r.a) AS m FROM r",
    ),
    (
        "WITH RECURSIVE q AS (SELECT a FROM r) SELECT a FROM q",
        "leave RECURSIVE out",
        "WITH q AS (SELECT a FROM r) SELECT a FROM q",
    ),
    (
        "SELECT s, sum(f) AS n FROM r GROUP BY s",
        "SUM(CASE WHEN c THEN 1 WHEN NOT c THEN 0 END)",
        "SELECT s, sum(CASE WHEN f THEN 1 WHEN NOT f THEN 0 END) AS n FROM r GROUP BY s",
    ),
    (
        "SELECT a + 1 AS x, x * 2 AS y FROM r WHERE x > 1",
        "write out what x stands for",
        "SELECT a + 1 AS x, (a + 1) * 2 AS y FROM r WHERE a + 1 > 1",
    ),
    (
        "SELECT d + INTERVAL '2 days 1 month' AS x, d - INTERVAL '1 month 2 days' AS y FROM r",
        "months first: + INTERVAL '1' MONTH + INTERVAL '2' DAY",
        "SELECT d + INTERVAL '1' MONTH + INTERVAL '2' DAY AS x, d - INTERVAL '1' MONTH - INTERVAL '2' DAY AS y FROM r",
    ),
    (
        "SELECT d + INTERVAL '1 day ago' AS x FROM r",
        "- INTERVAL '1' DAY for + INTERVAL '1 day ago'",
        "SELECT d - INTERVAL '1' DAY AS x FROM r",
    ),
    (
        "SELECT a FROM r WHERE b - 1",
        "write a comparison: x <> 0",
        "SELECT a FROM r WHERE b - 1 <> 0",
    ),
    (
        "SELECT a = '1' AS x FROM r",
        "write the number without quotes",
        "SELECT a = 1 AS x FROM r",
    ),
    (
        "SELECT a FROM r WHERE b = (SELECT b FROM t WHERE a = 9)",
        "(SELECT MAX(x) FROM …)",
        "SELECT a FROM r WHERE b = (SELECT max(b) FROM t WHERE a = 9)",
    ),
]
# what proposes no query: to do it elsewhere, or what there is
NO_QUERY = re.compile(
    r"compute it before the insert|find the partner before the insert|number them before the insert"
    r"|when you read|the operators are|write one view for each|name the columns$|write the value$|add it to a DATE"
    r"|only casts that cannot fail work|leave it out: a sum has no order|write OVER where it is used"
    r"|say column by column"
)


def hints() -> Iterator[str]:
    """Every hint for a construct that is refused by its kind."""
    yield from (hint for _, hint in unsupported.NODES.values())
    yield from unsupported.JOINS.values()
    yield unsupported.OUTER_JOIN
    yield from (hint for _, hint in (*table.SELECT_HINTS.values(), *table.SET_HINTS.values()))
    yield table.SET_ALL


def answers(connection: duckdb.DuckDBPyConnection, select: str) -> Counter[tuple[object, ...]]:
    return Counter(connection.execute(select).fetchall())


@pytest.fixture(scope="module")
def referees() -> list[duckdb.DuckDBPyConnection]:
    """With all rows, with none of t, with nothing."""
    found = []
    for rows, others in ((R, T), (R, []), ([], [])):
        connection = duckdb.connect()
        connection.execute(SCHEMA.replace("STREAM", "TABLE"))
        insert(connection, "r", rows)
        insert(connection, "t", others)
        found.append(connection)
    return found


def insert(connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[tuple[object, ...]]) -> None:
    for row in rows:
        connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize(("refused", "hint", "instead"), REWRITES, ids=[r[1][:40] for r in REWRITES])
def test_a_hint_proposes_an_equal_query(
    refused: str, hint: str, instead: str, referees: list[duckdb.DuckDBPyConnection]
) -> None:
    with pytest.raises(SqlError) as caught:
        translate(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS {refused}")
    assert hint in caught.value.hint
    expected = [answers(referee, refused) for referee in referees]
    assert expected[0]
    assert [answers(referee, instead) for referee in referees] == expected
    db = viewlet.connect(engine="interpreter")
    db.execute(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS {instead}")
    db.insert("r", R)
    db.insert("t", T)
    assert Counter(db.view("v").rows()) == expected[0]


def test_every_hint_that_proposes_a_query_is_tested() -> None:
    open_ones = [h for h in hints() if not NO_QUERY.search(h)]
    assert len(open_ones) > 10
    assert [h for h in open_ones if not any(hint in h for _, hint, _ in REWRITES)] == []


NULLABLE = [r for r in REFUSED if r[2].startswith("`SELECT") or r[2].startswith("`WITH")]


@pytest.fixture(scope="module")
def nullable() -> duckdb.DuckDBPyConnection:
    """The tables of the page without NOT NULL: each row twice, and again with one column after the other NULL."""
    connection = duckdb.connect()
    relations = viewlet.compile(schema()).relations
    for relation in relations:
        columns = ", ".join(f"{c.name} {c.type}" for c in relation.columns)
        connection.execute(f"CREATE TABLE {relation.name} ({columns})")
        rows = DATA[relation.name]
        holed = [tuple(None if i == k else v for i, v in enumerate(row)) for row in rows for k in range(1, len(row))]
        insert(connection, relation.name, [*rows, *rows[1:], *holed, tuple([None] * len(relation.columns))])
    return connection


@pytest.mark.parametrize("row", NULLABLE, ids=lambda r: r[0])
def test_the_page_proposes_equal_queries_on_nullable_data(row: list[str], nullable: duckdb.DuckDBPyConnection) -> None:
    if "at most one such row" in row[2]:
        nullable.execute("DELETE FROM asks WHERE id = 1 AND price <> 12")
        nullable.execute("DELETE FROM asks WHERE id = 1 AND (broker IS NULL OR price IS NULL OR volume IS NULL)")
    expected = answers(nullable, code(row[1]))
    assert expected
    assert answers(nullable, code(row[2])) == expected


def test_the_page_is_read() -> None:
    assert len(NULLABLE) > 15
