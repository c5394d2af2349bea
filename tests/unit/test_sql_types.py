"""Types with parameters: what DuckDB makes of them, or a refusal; a parameter is never dropped."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from viewlet.errors import SqlError, UnsupportedError
from viewlet.sql import translate

HONOURED = [
    "DECIMAL(12,2)",
    "NUMERIC(12)",
    "DECIMAL",
    "DEC(5,2)",
    "TIMESTAMP",
    "TIMESTAMP(4)",
    "TIMESTAMP(5)",
    "TIMESTAMP(6)",
    "DATETIME(6)",
    "TIMESTAMP(6) WITHOUT TIME ZONE",
    "VARCHAR(25)",
    "VARCHAR(0)",
    "NVARCHAR(3)",
    "TEXT(3)",
    "CHARACTER VARYING(10)",
]
REFUSED = [
    *(f"TIMESTAMP({places})" for places in (0, 1, 2, 3, 7, 8, 9, 10)),
    "DATETIME(3)",
    "TIMESTAMP(3) WITHOUT TIME ZONE",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "FLOAT(24)",
]
MISSING = [
    "INTEGER(5)",
    "BIGINT(3)",
    "BOOLEAN(1)",
    "DOUBLE(10,2)",
    "FLOAT8(3)",
    "DATE(3)",
    "TIMESTAMP(11)",
    "TIMESTAMP(1,2)",
    "DECIMAL(1,2,3)",
    "DECIMAL(0)",
    "DECIMAL(39)",
    "DECIMAL(3,4)",
    "DECIMAL(1.5)",
    "DECIMAL('5',1)",
    "DECIMAL(x)",
    f"DECIMAL({'9' * 5000})",
]


def in_duckdb(type_: str) -> str:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE x (a {type_})")
        (row,) = connection.execute("SELECT data_type FROM duckdb_columns() WHERE table_name = 'x'").fetchall()
        return str(row[0])


def shortened(type_: str) -> str:
    return type_[:30]


def column(type_: str) -> str:
    return f"CREATE STREAM x (a {type_});"


def cast(type_: str) -> str:
    return f"CREATE STREAM x (a BIGINT);CREATE MATERIALIZED VIEW v AS SELECT CAST(NULL AS {type_}) AS b FROM x;"


@pytest.mark.parametrize("type_", HONOURED)
def test_a_parameter_is_honoured(type_: str) -> None:
    expected = in_duckdb(type_)
    assert str(translate(column(type_)).relations[0].columns[0].type) == expected
    assert str(translate(cast(type_)).results[0].columns[0].type) == expected


@pytest.mark.parametrize("script", [column, cast])
@pytest.mark.parametrize("type_", REFUSED)
def test_or_refused_as_it_was_written(type_: str, script: Callable[[str], str]) -> None:
    in_duckdb(type_)
    with pytest.raises(UnsupportedError) as caught:
        translate(script(type_))
    assert caught.value.construct == f"type {type_.removesuffix(' WITHOUT TIME ZONE')}"


@pytest.mark.parametrize("script", [column, cast])
@pytest.mark.parametrize("type_", MISSING, ids=shortened)
def test_or_an_error_here_as_there(type_: str, script: Callable[[str], str]) -> None:
    with pytest.raises(duckdb.Error):
        in_duckdb(type_)
    with pytest.raises(SqlError) as caught:
        translate(script(type_))
    assert not isinstance(caught.value, UnsupportedError)
    assert f"{type_} does not exist" in caught.value.message
