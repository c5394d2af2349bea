"""DEFAULT, CREATE TYPE, and constants that no integer of a machine holds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import viewlet

SCRIPT = """
  CREATE TYPE mood AS ENUM ('sad', 'ok');
  CREATE TYPE price AS DECIMAL(8,2);
  CREATE TYPE spot AS STRUCT(x INTEGER, m mood);
  CREATE STREAM r (
    k INTEGER, m mood DEFAULT 'ok', p price NOT NULL DEFAULT 1 + 0.5, s spot, l price[] DEFAULT [1, 2],
    d DATE DEFAULT DATE '2024-01-01');
  CREATE MATERIALIZED VIEW v AS SELECT * FROM r;
  CREATE MATERIALIZED VIEW w AS
    SELECT s.m AS m, approx_quantile(k, 0.5) AS q, 1e300 AS large, max(-1e200) AS small
    FROM r WHERE m = 'ok'::mood GROUP BY s.m;
  INSERT INTO r (k) VALUES (1);
"""
REST = ("ok", Decimal("1.50"), None, [Decimal(1), Decimal(2)], dt.date(2024, 1, 1))


@pytest.mark.parametrize("engine", ["python", "native"])
def test_columns_that_are_not_given(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(SCRIPT)
    database.execute("INSERT INTO r (k, s) VALUES (2, {'x': 1, 'm': 'sad'::mood})")
    database.insert("r", {"k": 3})
    database.insert("r", [{"k": 4, "m": None}, (7, "sad", 2, None, None, None)])
    database.insert("r", pa.table({"k": [5, 5]}))
    database.apply([("+", "r", {"k": 6}), ("-", "r", {"k": 5})])
    rows = {row[0]: row[1:] for row in database.view("v").rows()}
    assert [rows[k] for k in (1, 3, 5, 6)] == [REST] * 4
    assert rows[2] == (*REST[:2], {"x": 1, "m": "sad"}, *REST[3:])
    assert (rows[4], rows[7]) == ((None, *REST[1:]), ("sad", Decimal(2), None, None, None))
    assert sorted(database.view("w").rows(), key=str) == [("sad", 2, 1e300, -1e200), (None, 3, 1e300, -1e200)]


def test_in_a_directory(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path / "db", engine="python") as database:
        database.execute(SCRIPT)
        database.insert("r", {"k": 2})
    with viewlet.connect(tmp_path / "db", engine="python") as database:
        database.insert("r", {"k": 3})
        database.execute("CREATE STREAM q (m mood); DROP TYPE mood; CREATE TYPE IF NOT EXISTS price AS BIGINT")
        assert sorted(database.view("v").rows()) == [(k, *REST) for k in (1, 2, 3)]


def test_the_program_as_text() -> None:
    program = viewlet.compile(SCRIPT.partition("INSERT")[0])
    assert viewlet.Program.from_text(program.to_text()) == program


REFUSED = {
    "CREATE STREAM r (a INTEGER DEFAULT 'x')": "Could not convert string 'x' to INT32",
    "CREATE STREAM r (a TIMESTAMP DEFAULT now())": "DEFAULT NOW() is not supported",
    "CREATE STREAM r (a INTEGER DEFAULT b, b INTEGER)": "DEFAULT b is not supported",
    "CREATE STREAM r (a nope)": "type nope is not supported",
    "CREATE TYPE x AS nope": "type nope is not supported",
    "CREATE TYPE x": "type x could not be read",
    "CREATE TYPE a AS INTEGER; CREATE TYPE a AS BIGINT": "type a is defined twice",
    "DROP TYPE z": "there is no type z",
}


@pytest.mark.parametrize("script", REFUSED)
def test_refusals(script: str) -> None:
    with pytest.raises(viewlet.SqlError) as error:
        viewlet.connect(engine="python").execute(script)
    assert REFUSED[script] in str(error.value)
    assert error.value.line is not None
