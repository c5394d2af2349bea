"""What is refused is named as it was written, and what DuckDB takes is never called wrong."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import viewlet
from viewlet.errors import SqlError, UnsupportedError
from viewlet.sql import translate

SCHEMA = """\
CREATE STREAM r (a INTEGER, b INTEGER, s VARCHAR, f BOOLEAN, d DATE, t TIMESTAMP, x DOUBLE, p DECIMAL(10,2));
CREATE STREAM u (a INTEGER, c INTEGER);
"""
ROWS = """\
INSERT INTO r VALUES (1, 2, '1', true, '2024-01-01', '2024-01-01 12:00:00', 1.5, 1.25);
INSERT INTO r VALUES (NULL, 2, '1', false, '2024-01-01', '2024-01-01 12:00:00', 1.5, 1.25);
INSERT INTO u VALUES (1, 2);
"""
HERE = Path(__file__).parent
EXPRESSIONS = (HERE / "odd_expressions.txt").read_text(encoding="utf-8").splitlines()
QUERIES = (HERE / "odd_queries.txt").read_text(encoding="utf-8").splitlines()
ALL = [*(f"SELECT {e} FROM r" for e in EXPRESSIONS), *QUERIES]
TYPES = {"INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL", "DATE", "TIMESTAMP"}


@pytest.fixture(scope="module")
def referee() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(SCHEMA.replace("STREAM", "TABLE") + ROWS)
    return connection


def takes(referee: duckdb.DuckDBPyConnection, query: str) -> bool:
    try:
        referee.execute(query).fetchall()
    except duckdb.Error:
        return False
    return True


def refusals() -> dict[str, SqlError]:
    errors: dict[str, SqlError] = {}
    for query in ALL:
        try:
            translate(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS\n{query}")
        except SqlError as error:
            errors[query] = error
    return errors


REFUSALS = refusals()


def test_many_are_refused_and_many_taken() -> None:
    assert len(REFUSALS) > 100
    assert len(ALL) - len(REFUSALS) > 60


def test_what_duckdb_takes_is_not_called_wrong(referee: duckdb.DuckDBPyConnection) -> None:
    wrong = [query for query, error in REFUSALS.items() if not isinstance(error, UnsupportedError)]
    assert len(wrong) > 30
    assert [query for query in wrong if takes(referee, query)] == []


def test_errors_name_what_was_written() -> None:
    """Each word in capitals is a word of the query, or a type."""
    strange = {}
    for query, error in REFUSALS.items():
        named = error.construct if isinstance(error, UnsupportedError) else error.message
        words = set(re.findall(r"\b[A-Z_]{2,}\b", named)) - TYPES
        if any(word.lower() not in query.lower() for word in words):
            strange[query] = named
    assert strange == {}


def test_a_function_is_pointed_at() -> None:
    named = [(q, e) for q, e in REFUSALS.items() if "the function" in e.message or "the aggregate" in e.message]
    assert len(named) > 20
    for query, error in named:
        assert isinstance(error, UnsupportedError)
        assert error.line == 4
        name = error.construct.split()[-1]
        assert query[(error.column or 0) - 1 :].upper().startswith(f"{name}("), query


def test_check_goes_on_after_each_of_them() -> None:
    """One more thing is refused before it, and one behind it; what only the parser can tell ends the view."""
    lost = []
    for expression in EXPRESSIONS:
        error = REFUSALS.get(f"SELECT {expression} FROM r")
        if error is None or "syntax error" in error.message:
            continue
        query = f"SELECT foo(a) AS x, {expression} AS y FROM r WHERE zap(b) > 1 AND qux(s) = 1"
        (view,) = viewlet.check(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS\n{query};")
        messages = [f.message for f in view.findings]
        wanted = ["the function FOO", error.message.split(" is not")[0], "the function ZAP", "the function QUX"]
        if not all(any(message.startswith(w) for message in messages) for w in wanted):
            lost.append((query, error.message, messages))
    assert lost == []
