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
        "WITH RECURSIVE q AS (SELECT a FROM r) SELECT a FROM q",
        "leave RECURSIVE out",
        "WITH q AS (SELECT a FROM r) SELECT a FROM q",
    ),
    (
        "SELECT d + INTERVAL '1 month 02:03:04' AS x FROM r",
        "one after the other: + INTERVAL '1' MONTH + INTERVAL '02:03:04'",
        "SELECT d + INTERVAL '1' MONTH + INTERVAL '02:03:04' AS x FROM r",
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
        "SELECT a, (SELECT t.b FROM t WHERE t.a = 9 AND t.b <= r.a) AS b, count(*) AS n FROM r GROUP BY a",
        "(SELECT MAX(x) FROM …)",
        "SELECT a, (SELECT max(t.b) FROM t WHERE t.a = 9 AND t.b <= r.a) AS b, count(*) AS n FROM r GROUP BY a",
    ),
]
# what proposes no query: to do it elsewhere, or what there is
NO_QUERY = re.compile(
    r"compute it before the insert|find the partner before the insert|number them before the insert"
    r"|when you read|the operators are|write one view for each|name the columns$|write the value$|add it to a DATE"
    r"|only casts that cannot fail work|leave it out: a sum has no order|a condition on groups stands in HAVING"
    r"|say column by column"
)


def hints() -> Iterator[str]:
    """Every hint for a construct that is refused by its kind."""
    yield from (hint for _, hint in unsupported.NODES.values())
    yield from unsupported.JOINS.values()
    yield from (hint for _, hint in table.SELECT_HINTS.values())


def answers(connection: duckdb.DuckDBPyConnection, select: str) -> Counter[tuple[object, ...]]:
    return Counter(connection.execute(select).fetchall())


@pytest.fixture(scope="module")
def referees() -> list[duckdb.DuckDBPyConnection]:
    """With all rows, with none of t, with nothing."""
    connections = []
    for rows, others in ((R, T), (R, []), ([], [])):
        connection = duckdb.connect()
        connection.execute(SCHEMA.replace("STREAM", "TABLE"))
        insert(connection, "r", rows)
        insert(connection, "t", others)
        connections.append(connection)
    return connections


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
    assert list(hints())
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
    assert NULLABLE
