"""CHECK: a row for which the condition is FALSE is refused at the door, in whatever form it comes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

import viewlet
from viewlet.database.memory import EngineName

SCHEMA = """
CREATE STREAM r (a INTEGER CHECK (A > 0), b VARCHAR, CHECK (length(b) < 4 AND b <> 'it''s'), d DATE,
                 CONSTRAINT late CHECK (d >= DATE '2020-01-01' OR a = 1));
CREATE MATERIALIZED VIEW v AS SELECT a, b, count(*) AS n FROM r GROUP BY a, b;
"""


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_rows_are_checked_in_every_form(engine: EngineName, tmp_path: Path) -> None:
    database = viewlet.connect(tmp_path / "db", engine=engine, wait_native=True)
    database.execute(SCHEMA)
    database.insert("r", [(1, "x", None), (None, None, None)])  # NULL is not FALSE
    database.insert("r", {"a": 2, "b": "y"})
    with pytest.raises(viewlet.DataError, match=r"r, row 1: CHECK \(A > 0\) does not hold \(a 0"):
        database.insert("r", [(1, "x", None), (0, "x", None)])
    with pytest.raises(viewlet.DataError, match=r"CHECK \(length\(b\) < 4 AND b <> 'it''s'\) does not hold"):
        database.apply([("+", "r", (1, "long", None))])
    with pytest.raises(viewlet.DataError, match=r"CHECK \(d >= DATE '2020-01-01' OR a = 1\) does not hold"):
        database.execute("INSERT INTO r VALUES (2, 'z', '2019-01-01')")
    with pytest.raises(viewlet.DataError, match=r"CHECK \(A > 0\)"):
        database.insert("r", pa.table({"a": pa.array([3, -3], pa.int32()), "b": ["p", "q"]}))
    with pytest.raises(viewlet.DataError, match=r"CHECK \(A > 0\)"):
        database.execute("UPDATE r SET a = a - 1 WHERE b = 'x'")
    expected = {(1, "x", 1): 1, (None, None, 1): 1, (2, "y", 1): 1}
    assert database.view("v").weights() == expected
    assert database.stream("r").columns == ("a", "b", "d")
    database.close()
    with viewlet.connect(tmp_path / "db", engine=engine, wait_native=True) as again:
        assert again.view("v").weights() == expected
        again.delete("r", (2, "y", None))
        assert len(again.view("v")) == 2


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("a > c", 'Referenced column "c" not found'),
        ("a > now()", r"CHECK \(a > now\(\)\)"),
        ("a > (SELECT 1)", "CHECK"),
        ("sum(a) > 1", "CHECK"),
    ],
)
def test_a_check_is_over_its_own_row(check: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(f"CREATE TABLE r (a INTEGER, CHECK ({check}))")
