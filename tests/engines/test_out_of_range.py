"""Rows from which a view would have to show what its column cannot hold: refused and named, alike by every engine."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

import viewlet
from tests.engines.conformance import ENGINES
from viewlet import Database, DataError, OverflowError_

Row = tuple[Any, ...]
HUGE, MOST, LEAST = 1.7e308, 2**63 - 1, -(2**63)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23)
NOON = dt.datetime(2020, 2, 29, 12)


@dataclass(frozen=True)
class Out:
    """A view over a stream ``s`` with these columns, rows that it takes and one that it cannot."""

    columns: str
    select: str
    good: list[Row]
    bad: Row


XY, N, T = "k BIGINT NOT NULL, x DOUBLE, y DOUBLE", "k BIGINT NOT NULL, n BIGINT", "k BIGINT NOT NULL, t TIMESTAMP"
OUT = {
    "a product in a sum": Out(XY, "SELECT k, sum(x * y) AS v FROM s GROUP BY k", [(1, 2.0, 3.0)], (1, 1e200, -1e200)),
    "a product shown": Out(XY, "SELECT k, x * y AS v FROM s", [(1, 2.0, 3.0), (1, None, 1.0)], (1, 1e200, 1e200)),
    "a key's product": Out(XY, "SELECT x * y AS v, max(k) AS k FROM s GROUP BY x, y", [(1, 2.0, 3.0)], (1, HUGE, 9.0)),
    "a product compared": Out(XY, "SELECT k FROM s WHERE x * y > y * 2", [(1, 3.0, 1.0)], (1, 1e200, 1e200)),
    "a sum of two": Out(XY, "SELECT max(x + y) AS v FROM s", [(1, HUGE, -HUGE)], (1, HUGE, HUGE)),
    "a quotient": Out(XY, "SELECT k, x / y AS v FROM s", [(1, 1.0, 4.0)], (1, 1e200, 1e-200)),
    "months before year 1": Out(T, "SELECT k, t - INTERVAL '13' MONTH AS v FROM s", [(1, NOON), (2, None)], (1, FIRST)),
    "months after 9999": Out(T, "SELECT max(t + INTERVAL '1' MONTH) AS v FROM s", [(1, NOON)], (1, LAST)),
    "months compared": Out(T, "SELECT k FROM s WHERE t + INTERVAL '1' MONTH > t", [(1, NOON)], (1, LAST)),
    "days before year 1": Out(T, "SELECT k, t - INTERVAL '1' DAY AS v FROM s", [(1, NOON), (2, None)], (1, FIRST)),
    "the least negated": Out(N, "SELECT k, -n AS v FROM s", [(1, MOST), (2, None)], (1, LEAST)),
    "the least of a key": Out(N, "SELECT -n AS v, count(*) AS c FROM s GROUP BY n", [(1, LEAST + 1)], (1, LEAST)),
    "the greatest and one": Out(N, "SELECT k, max(n + 1) AS v FROM s GROUP BY k", [(1, MOST - 1)], (1, MOST)),
    "a nested sum": Out(N, "SELECT t.v FROM (SELECT sum(n) AS v FROM s GROUP BY k) t", [(1, MOST), (2, 1)], (1, 1)),
}  # fmt: skip
STREAMS = {name: f"s{i}" for i, name in enumerate(OUT)}


def script() -> str:
    return "\n".join(
        f"CREATE STREAM {STREAMS[name]} ({out.columns});\n"
        f"CREATE MATERIALIZED VIEW v_{STREAMS[name]} AS {_over(out.select, STREAMS[name])};"
        for name, out in OUT.items()
    )


def _over(select: str, stream: str) -> str:
    return re.sub(r"\bFROM s\b", f"FROM {stream} s", select)


@pytest.fixture(scope="module", params=ENGINES)
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    """One program for all of them: to compile it is what takes long."""
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(script())
        assert database.tier == request.param
        yield database


def everything(db: Database, stream: str) -> object:
    return db.engine.table(stream), sorted(db.view(f"v_{stream}").rows(), key=repr)


@pytest.mark.parametrize("name", OUT)
def test_the_row_is_refused_and_named(db: Database, name: str) -> None:
    out, stream = OUT[name], STREAMS[name]
    db.insert(stream, out.good)
    before = everything(db, stream)
    named = re.escape(f"{stream}, row {{}}, {out.bad!r}")
    alone, second = named.replace(r"\{\}", "0"), named.replace(r"\{\}", "1")
    single = name != "a nested sum"  # which is no row's own
    for update, where in (
        (lambda: db.insert(stream, out.bad), alone),
        (lambda: db.apply([("+", stream, out.good[-1]), ("+", stream, out.bad)]), second),
        (lambda: db.insert(stream, [out.good[-1], out.bad]), second if single else stream),
    ):
        with pytest.raises(OverflowError_, match=where):
            update()
        assert everything(db, stream) == before
    assert sorted(db.view(f"v_{stream}").rows(), key=repr) == sorted(_by_duckdb(out), key=repr)
    db.delete(stream, out.good)
    assert db.engine.table(stream) == {}


def _by_duckdb(out: Out) -> list[Row]:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE s ({out.columns})")
    connection.executemany(f"INSERT INTO s VALUES ({', '.join('?' * len(out.bad))})", out.good)
    return connection.execute(out.select).fetchall()


# -- what every engine takes alike -------------------------------------------------------------------------------------

ZEROS = """
CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE NOT NULL);
CREATE TABLE u (k BIGINT NOT NULL, x DOUBLE);
CREATE MATERIALIZED VIEW plain AS SELECT k, x, -x AS minus, x * -1 AS product FROM r;
CREATE MATERIALIZED VIEW grouped AS SELECT x, count(*) AS n, sum(-x) AS s, min(-x) AS m FROM r GROUP BY x;
CREATE MATERIALIZED VIEW joined AS SELECT r.k, sum(u.x) AS s FROM r, u WHERE r.k = u.k GROUP BY r.k;
"""


@pytest.fixture(params=ENGINES)
def zeros(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(ZEROS)
        yield database


def test_there_is_one_zero(zeros: Database) -> None:
    """-0.0 = 0.0 in SQL. Numbers are exact here, and there is but one exact 0; DuckDB would show the sign of each."""
    zeros.insert("r", [(1, 0.0), (1, -0.0), (2, -0.0)])
    rows = zeros.view("plain").rows() + zeros.view("grouped").rows()
    assert sorted(rows) == [(0.0, 3, 0.0, 0.0), (1, 0.0, 0.0, 0.0), (1, 0.0, 0.0, 0.0), (2, 0.0, 0.0, 0.0)]
    assert all(math.copysign(1, cell) == 1 for row in rows for cell in row)
    zeros.delete("r", [(1, -0.0), (1, -0.0), (2, 0.0)])
    assert zeros.view("plain").rows() == []


@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf])
def test_a_static_table_takes_finite_numbers_only(zeros: Database, wild: float) -> None:
    zeros.insert("u", [(1, 2.0)])
    for update in (
        lambda: zeros.insert("u", (1, wild)),
        lambda: zeros.insert("u", [(2, 1.0), (1, wild)]),
        lambda: zeros.apply([("+", "r", (1, 1.0)), ("+", "u", (1, wild))]),
    ):
        with pytest.raises(DataError, match=r"u\.x, row [01]: a static table takes no NaN and no infinity"):
            update()
        assert zeros.engine.table("u") == {(1, 2.0): 1}
        assert zeros.engine.table("r") == {}


def test_a_view_is_verified_whatever_other_tables_hold() -> None:
    with viewlet.connect(wait_native=True) as db:
        db.execute(ZEROS + "CREATE STREAM w (x DOUBLE); CREATE MATERIALIZED VIEW wild AS SELECT sum(x) AS s FROM w;")
        db.insert("w", [(math.nan,), (math.inf,)])
        db.insert("r", [(1, 1.0)])
        assert db.verify("plain") == []
        with pytest.raises(viewlet.Error, match="wild cannot be verified"):
            db.verify("wild")
