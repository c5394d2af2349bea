"""Functions of Python over several relations and over aggregates, beside DuckDB with the same functions."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from random import Random

import pytest

import viewlet
from tests.oracle.oracle import DuckOracle, Row, Vacuity, difference
from viewlet.spark.pipeline import pipeline_of
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM r (k INTEGER, a INTEGER, s VARCHAR); CREATE STREAM q (k INTEGER, b DECIMAL(6,2), d DATE);"
FUNCTIONS = {
    "distance": (lambda a, b: abs(a - b) / 3, ["DOUBLE", "DOUBLE"], "DOUBLE"),
    "tagged": (lambda s, d: f"{s}@{d:%Y}", ["VARCHAR", "DATE"], "VARCHAR"),
    "later": (lambda d, n: d + dt.timedelta(days=n), ["DATE", "INT"], "DATE"),
    "near": (lambda a, b: abs(a - b) < 3, ["INTEGER", "INTEGER"], "BOOLEAN"),
    "quotient": (lambda a, b: a // b, ["BIGINT", "BIGINT"], "BIGINT"),
}
VIEWS = {
    "sums": "SELECT r.k, sum(distance(r.a, q.b)) AS s, count(*) AS n FROM r JOIN q ON r.k = q.k"
    " WHERE distance(r.a, q.b) > 0.5 GROUP BY r.k",
    "groups": "SELECT tagged(r.s, q.d) AS t, max(later(q.d, r.a)) AS m, count(*) AS n FROM r JOIN q ON r.k = q.k"
    " GROUP BY 1",
    "self": "SELECT x.k, y.s FROM r AS x JOIN r AS y ON near(x.a, y.a)",
    "of_aggregates": "SELECT k, distance(sum(a), count(*)) AS d, quotient(count(*), count(a) + 1) AS e FROM r"
    " GROUP BY k",
    "outer_": "SELECT r.k, tagged(coalesce(r.s, '?'), q.d) AS t FROM r LEFT JOIN q ON r.k = q.k",
    "at_the_door": "SELECT near(k, a) AS n, count(*) AS c FROM r GROUP BY 1",
}


def stream() -> Iterator[Event]:
    rng, rows = Random(5), list[tuple[str, Row]]()
    for _ in range(40):
        if rows and rng.random() < 0.3:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        r = rng.choice([1, 1, 2, None]), rng.choice([-4, 0, 7, 7, None]), rng.choice(["a", "é", None])
        q = rng.choice([1, 1, 2, None]), rng.choice([1.5, -2, None]), rng.choice([dt.date(2020, 2, 29)] * 2 + [None])
        rows.append(("r", r) if rng.random() < 0.5 else ("q", q))
        yield "+", *rows[-1]


def opened(engine: str, strategy: str) -> viewlet.Database:
    database = viewlet.connect(engine=engine, strategy=strategy)
    for name, function in FUNCTIONS.items():
        database.create_function(name, *function)
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    database.execute(SCHEMA + views)
    return database


def test_as_duckdb() -> None:
    contestants = [("interpreter", "optimized"), ("python", "cost"), ("python", "reevaluate"), ("python", "classical")]
    databases = [opened(*contestant) for contestant in contestants]
    oracle = DuckOracle(viewlet.compile(SCHEMA).relations)
    for name, function in FUNCTIONS.items():
        oracle.connection.create_function(name, *function)
    watched = {name: Vacuity() for name in VIEWS}
    for event in stream():
        oracle.apply(*event)
        for name, select in VIEWS.items():
            expected = oracle.rows(select)
            watched[name].watch(expected)
            for number, database in enumerate(databases):
                if name == "sums":
                    (database.insert if event[0] == "+" else database.delete)(*event[1:])
                assert difference(database.view(name).rows(), expected) is None, (name, contestants[number], event)
    for watch in watched.values():
        watch.check()
    for name in FUNCTIONS:
        oracle.connection.remove_function(name)


def test_generated_python_keeps_them_and_explain_says_so() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        database = opened("native", "optimized")
        assert database.tier == "python"
    assert "calls a function of Python; generated Python keeps this fresh" in str(database.explain("sums"))
    with pytest.raises(viewlet.Error, match="function of Python"):
        database.program.cpp()
    with pytest.raises(viewlet.Error, match="calls distance, a function of Python"):
        pipeline_of(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {VIEWS['sums']}", 2, "optimized", "sql")


def test_what_it_gives_is_checked() -> None:
    database = viewlet.connect(engine="python")
    database.create_function("half", lambda a, d: a / d.month, ["INTEGER", "DATE"], "INTEGER")
    select = "SELECT half(r.a, q.d) AS h FROM r JOIN q ON r.k = q.k"
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")
    database.insert("r", (1, 3, None))
    with pytest.raises(viewlet.DataError, match=r"half gave 1\.5, which is no INTEGER"):
        database.insert("q", (1, None, dt.date(2020, 2, 1)))
    assert database.view("v").rows() == []
    with pytest.raises(viewlet.SqlError, match="a VARCHAR where a INTEGER belongs"):
        database.execute("CREATE MATERIALIZED VIEW w AS SELECT half(max(s), max(d)) AS h FROM r, q")
    with pytest.raises(viewlet.SqlError, match="HALF takes 2 arguments, not 1"):
        database.execute("CREATE MATERIALIZED VIEW w AS SELECT half(sum(a)) AS h FROM r")
