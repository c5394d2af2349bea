"""What a script declares: relations with their types and options, views with their columns."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from viewlet.algebra.query import Query, Rel, children, variables
from viewlet.algebra.text import parse
from viewlet.program.trigger import Result
from viewlet.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Column, Type, decimal
from viewlet.sql import translate

BIDS = "CREATE STREAM bids (t DOUBLE, broker BIGINT NOT NULL, price DECIMAL(10,2) NOT NULL, day DATE);"


def view(query: str, dialect: str = "sql") -> Result:
    return translate(f"{BIDS} CREATE MATERIALIZED VIEW v AS {query}", dialect).results[0]  # type: ignore[arg-type]


def atoms(q: Query) -> list[Rel]:
    return [q] if isinstance(q, Rel) else [a for child in children(q) for a in atoms(child)]


def test_stream_with_options() -> None:
    stream, table = translate("""
      -- the order book
      Create Stream Bids (T double, "Broker" BIGINT not null)
        WITH (rate = 2.5, rows = 30000, distinct_broker = 10, hot_broker = 0.25, connector = 'csv', path='a;b.csv',
              header = true, kafka.group.id = 'g');
      CREATE TABLE nation (k INTEGER);;
    """).relations
    assert (stream.name, stream.static, stream.rate, stream.rows) == ("bids", False, Fraction(5, 2), 30_000)
    assert stream.columns == (Column("t", DOUBLE), Column("broker", BIGINT, nullable=False))
    assert stream.distinct == {"broker": 10}
    assert stream.hot == {"broker": Fraction(1, 4)}
    assert stream.options == {"connector": "csv", "path": "a;b.csv", "header": "true", "kafka.group.id": "g"}
    assert table.static
    assert not table.options


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("BOOLEAN", BOOLEAN),
        ("INTEGER", INTEGER),
        ("INT", INTEGER),
        ("BIGINT", BIGINT),
        ("DOUBLE", DOUBLE),
        ("DOUBLE PRECISION", DOUBLE),
        ("FLOAT8", DOUBLE),
        ("DECIMAL(12,2)", decimal(12, 2)),
        ("NUMERIC(12)", decimal(12, 0)),
        ("DECIMAL", decimal(18, 3)),
        ("DATE", DATE),
        ("TIMESTAMP", TIMESTAMP),
        ("VARCHAR", VARCHAR),
        ("VARCHAR(25)", VARCHAR),
        ("TEXT", VARCHAR),
    ],
)
def test_types(sql: str, expected: Type) -> None:
    assert translate(f"CREATE TABLE x (a {sql})").relations[0].columns == (Column("a", expected),)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("count(*)", BIGINT),
        ("sum(broker)", BIGINT),
        ("sum(price)", decimal(38, 2)),
        ("sum(price * 1.5)", decimal(38, 3)),
        ("sum(price + 0.125)", decimal(38, 3)),
        ("sum(price * t)", DOUBLE),
        ("avg(broker)", DOUBLE),
        ("sum(broker) / 2", DOUBLE),
        ("1", INTEGER),
        ("3000000000", BIGINT),
        ("1e3", DOUBLE),
        ("0.25", decimal(3, 2)),
        ("DATE '2020-01-01' + 1", DATE),
        ("DATE '2020-01-01' + INTERVAL '1' DAY", TIMESTAMP),
        ("DATE '2020-01-02' - DATE '2020-01-01'", BIGINT),
        ("count(*) > 1", BOOLEAN),
        ("CASE WHEN count(*) > 1 THEN 1 ELSE 0.5 END", decimal(11, 1)),
        ("coalesce(sum(price), 0)", decimal(38, 2)),
        ("coalesce(sum(price), 0.500)", decimal(38, 2)),
        ("coalesce(sum(broker) * 0.5, 1.50)", decimal(38, 1)),
        ("coalesce(CAST(sum(broker) AS BIGINT) * 0.5, 0.125)", decimal(23, 3)),
        ("sum(broker) + 1", BIGINT),
        ("-NULL", BIGINT),
        ("coalesce(NULL + NULL, 1)", BIGINT),
        ("coalesce(NULL * sum(price), 1)", INTEGER),
        ("NULL / 2", DOUBLE),
    ],
)
def test_result_types(expression: str, expected: Type) -> None:
    assert view(f"SELECT {expression} AS x, count(*) AS n FROM bids").columns[0].type == expected


def test_column_names() -> None:
    query = "SELECT x.broker, y.broker, sum(x.t), sum(y.t), 1 + 1, count(*) AS N FROM bids x, bids y GROUP BY 1, 2"
    names = [c.name for c in view(query).columns]
    assert names == ["broker", "broker_1", "sum", "sum_1", "column_5", "n"]


def test_variables_are_named_after_alias_and_column_and_given_once() -> None:
    rows = view("SELECT x.t FROM bids x WHERE x.price < (SELECT avg(x.price) FROM bids x)").rows
    assert rows is not None
    names = [name for atom in atoms(rows) for name in atom.vars]
    assert names[:4] == ["x.t", "x.broker", "x.price", "x.day"]
    assert len(names) == len(set(names)) == 12  # the outer bids, and one copy each for the sum and the count


def test_a_sum_that_cannot_be_null_needs_no_count() -> None:
    grouped = view("SELECT broker, sum(price) FROM bids GROUP BY broker")
    assert [name for name, _ in grouped.lookups] == ["sum"]
    assert not grouped.columns[1].nullable
    nullable = view("SELECT broker, sum(t) FROM bids GROUP BY broker")
    assert [name for name, _ in nullable.lookups] == ["sum", "count"]
    assert nullable.columns[1].nullable
    paper = view("SELECT broker, sum(t) FROM bids GROUP BY broker", "paper")
    assert [name for name, _ in paper.lookups] == ["sum"]
    assert not paper.columns[1].nullable


def test_equal_aggregates_share_one_lookup() -> None:
    result = view("SELECT broker, sum(price), avg(price), count(*), count(price) FROM bids GROUP BY broker")
    assert [name for name, _ in result.lookups] == ["sum", "count"]


def test_the_result_keeps_the_text_of_its_statement() -> None:
    result = view("SELECT broker FROM bids")
    assert result.sql == "CREATE MATERIALIZED VIEW v AS SELECT broker FROM bids"


def test_an_empty_script() -> None:
    script = translate("-- nothing yet\n;")
    assert (script.relations, script.results) == ((), ())


@pytest.mark.parametrize(
    "query",
    [
        'SELECT broker + 1 AS "1 x.2", t AS "", day AS "größe" FROM bids',
        'SELECT "9 q"."1.2" AS "." FROM (SELECT broker + 1 AS "1.2" FROM bids UNION ALL SELECT 1 FROM bids) "9 q"',
        'SELECT "a-b.3".broker AS "..", count(*) AS "(" FROM bids "a-b.3" GROUP BY 1',
    ],
)
def test_any_alias_makes_a_plain_variable(query: str) -> None:
    rows = view(query).rows
    assert rows is not None
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) for v in variables(rows) for part in v.split("."))
    assert parse(rows.text) == rows
