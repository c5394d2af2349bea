"""UNNEST: each row once for each element of a list, as DuckDB has it, after every event."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.spark.pipeline import pipeline_of
from viewlet.workloads.streams import Event

SCHEMA = (
    "CREATE STREAM r (k INTEGER, xs INTEGER[], tags VARCHAR,"
    " items STRUCT(sku VARCHAR, price DECIMAL(8,2), on_ DATE[])[], n INTEGER);"
    "CREATE STREAM o (id INTEGER PRIMARY KEY, xs INTEGER[], n INTEGER);"
    "CREATE STREAM q (x INTEGER, name VARCHAR);"
)
VIEWS = {
    "crossed": "SELECT k, x FROM r CROSS JOIN UNNEST(xs) AS t (x)",
    "commas": "SELECT r.k, t.x, r.tags FROM r, UNNEST(r.xs) t(x) WHERE x > 1 OR r.n = 2",
    "lateral_": "SELECT k, x FROM r, LATERAL UNNEST(xs) AS t(x)",
    "selected": "SELECT k, unnest(xs) AS x FROM r WHERE n IS NOT NULL",
    "grouped": "SELECT unnest(xs) AS x, count(*) AS c, sum(n) AS s FROM r GROUP BY x",
    "counted": "SELECT x, count(*) AS c, sum(k) AS s, max(len(xs)) AS m FROM r, UNNEST(xs) t(x) GROUP BY x",
    "unnamed": "SELECT * EXCLUDE (items) FROM r, UNNEST(xs)",
    "places": "SELECT k, x, i, xs[i] AS y FROM r, UNNEST(xs) WITH ORDINALITY AS t(x, i)",
    "words": "SELECT w, count(*) AS c, count(DISTINCT k) AS d FROM r, UNNEST(string_split(tags, ',')) AS t(w)"
    " GROUP BY w",
    "bought": "SELECT i.sku, sum(i.price) AS p, count(*) AS c FROM r, UNNEST(items) AS t(i) GROUP BY i.sku",
    "by_alias": "SELECT k, i.price * 2 AS p FROM r, UNNEST(items) AS i WHERE i.sku IS NOT NULL",
    "twice": "SELECT k, i.sku, d FROM r, UNNEST(items) AS t(i), UNNEST(i.on_) AS u(d)",
    "both": "SELECT k, x, w FROM r, UNNEST(xs) t(x), UNNEST(string_split(tags, ',')) u(w)",
    "kept_": "SELECT k, x FROM r LEFT JOIN UNNEST(xs) AS t(x) ON TRUE",
    "kept_places": "SELECT k, x, i, n FROM r LEFT JOIN UNNEST(xs) WITH ORDINALITY AS t(x, i) ON TRUE",
    "kept_words": "SELECT w, i, count(*) AS c FROM r LEFT JOIN UNNEST(string_split(tags, ',')) WITH ORDINALITY"
    " AS t(w, i) ON TRUE GROUP BY w, i",
    "on_": "SELECT k, x FROM r JOIN UNNEST(xs) AS t(x) ON x < k",
    "series": "SELECT k, g FROM r, generate_series(1, r.n) t(g)",
    "ranges": "SELECT k, g * 10 AS g FROM r, range(n) t(g)",
    "made": "SELECT k, x FROM r, UNNEST([k, n + 1]) t(x)",
    "constants": "SELECT k, c FROM r, UNNEST([1, 2, NULL]) t(c) WHERE c = n OR c IS NULL",
    "joined": "SELECT r.k, q.name FROM r, UNNEST(r.xs) t(x) JOIN q ON q.x = t.x",
    "joined_before": "SELECT r.k, q.name, t.x FROM r JOIN q ON q.x = r.k CROSS JOIN UNNEST(r.xs) t(x)",
    "left_": "SELECT r.k, q.name, t.x FROM r LEFT JOIN q ON q.x = r.k, UNNEST(r.xs) t(x)",
    "subquery": "SELECT x, n FROM (SELECT xs, n FROM r WHERE k > 1) s, UNNEST(s.xs) t(x)",
    "of_subquery": "SELECT u.x, sum(u.k) AS s FROM (SELECT unnest(xs) AS x, k FROM r) u JOIN q ON q.x = u.x"
    " GROUP BY u.x",
    "totals": "SELECT k, (SELECT sum(x) FROM UNNEST(xs) t(x)) AS s,"
    " (SELECT max(i.price) FROM UNNEST(items) t(i) WHERE i.sku <> 'u') AS m FROM r",
    "some_": "SELECT k FROM r WHERE EXISTS (SELECT 1 FROM UNNEST(r.xs) t(x) WHERE x > 2) OR 1 IN (SELECT unnest(xs))",
    "any_": "SELECT k, 2 = ANY(xs) AS a, 3 IN xs AS b FROM r",
    "of_a_key": "SELECT o.id, (SELECT count(*) FROM UNNEST(o.xs) t(x) JOIN q ON q.x = t.x) AS c FROM o",
    "lateral_of_key": "SELECT o.id, s.x FROM o, LATERAL (SELECT unnest(o.xs) AS x) s",
    "twins": "SELECT a.k, b.n AS l, x FROM r a, UNNEST(a.xs) t(x), o b WHERE b.id = x",
    "self_": "SELECT a.k, u.x FROM r a, UNNEST(a.xs) t(x), r b, UNNEST(b.xs) u(x) WHERE t.x = u.x AND a.k < b.k",
    "ordered": "SELECT k, x FROM r, UNNEST(xs) t(x) ORDER BY x DESC NULLS LAST, k NULLS LAST LIMIT 4",
    "ranked": "SELECT x, count(*) AS c, rank() OVER (ORDER BY count(*) DESC) AS n FROM r, UNNEST(xs) t(x) GROUP BY x",
    "united": "SELECT unnest(xs) AS x FROM r UNION SELECT x FROM q",
}
LISTS = ([], [1], [1, 2], [2, 2, None], [3, 2, 1], [None])


def stream(seed: int = 7) -> Iterator[Event]:
    rng, rows = Random(seed), list[tuple[str, Row]]()

    def maybe(*options: object) -> Any:
        return rng.choice([*options, None])

    numbers = iter(range(1, 100))
    for _ in range(45):
        if rows and rng.random() < 0.35:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        days = rng.choice([[], [dt.date(2024, 1, 2), None], [dt.date(2024, 1, 2)]])
        items = (
            rng.choice([[], [None]])
            if rng.random() < 0.3
            else maybe([{"sku": "u", "price": Decimal("1.50"), "on_": days}, {"sku": maybe("v", "u")}])
        )
        which = rng.random()
        if which < 0.6:
            same = [row for name, row in rows if name == "r"]
            new = maybe(1, 2, 3), maybe(*LISTS), maybe("a,b", "b", ""), items, maybe(0, 1, 2)
            rows.append(("r", rng.choice(same) if same and rng.random() < 0.3 else new))
        else:
            rows.append(
                ("o", (next(numbers), maybe(*LISTS), maybe(1, 2))) if which < 0.8 else ("q", (maybe(1, 2), "a"))
            )
        yield "+", *rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    events = [(op, name, _whole(row)) for op, name, row in stream()]
    case = Case(SCHEMA, script, VIEWS, events)
    for watched in agree(case, [("interpreter", "optimized"), ("python", "classical"), ("native", "cost")]).values():
        watched.check()


def _whole(row: Row) -> Row:
    """Every field of a struct, for DuckDB."""
    fields = {"sku": None, "price": None, "on_": None}
    return tuple(
        [v and {**fields, **v} for v in value]
        if isinstance(value, list) and any(isinstance(v, dict) for v in value)
        else value
        for value in row
    )


ORDERS = """
  CREATE STREAM orders (id INTEGER PRIMARY KEY, sizes INTEGER[]);
  CREATE MATERIALIZED VIEW sizes AS SELECT size, count(*) AS n FROM orders, UNNEST(sizes) AS s (size) GROUP BY size;
"""


def read(database: viewlet.Database) -> list[Row]:
    return sorted(database.view("sizes").rows())


@pytest.mark.parametrize("engine", ["python", "native"])
def test_every_way_in(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(ORDERS)
    told: list[Any] = []
    database.view("sizes").subscribe(told.append)
    database.insert("orders", (1, [40, 41]))
    database.insert("orders", pa.table({"id": [2, 3], "sizes": [[40], None]}))
    assert sorted(told) == [(-1, (40, 1)), (1, (40, 1)), (1, (40, 2)), (1, (41, 1))]
    database.upsert("orders", [(1, [42]), (4, [])])
    database.apply([("-", "orders", (2, [40])), ("+", "orders", (2, [42, 42])), ("+", "orders", (5, [7]))])
    database.execute("UPDATE orders SET sizes = list_append(sizes, 9) WHERE id = 5; DELETE FROM orders WHERE id = 4")
    assert read(database) == [(7, 1), (9, 1), (42, 3)]
    with pytest.raises(viewlet.DataError, match="there already"):
        database.insert("orders", [(8, [1]), (5, [1])])
    assert read(database) == [(7, 1), (9, 1), (42, 3)]
    database.execute("CREATE MATERIALIZED VIEW late AS SELECT id, size FROM orders, UNNEST(sizes) s(size) WHERE id < 3")
    assert sorted(database.view("late").rows()) == [(1, 42), (2, 42), (2, 42)]
    database.execute(
        "CREATE MATERIALIZED VIEW other AS SELECT unnest(list_sort(sizes)) AS size, len(sizes) AS n FROM orders"
    )
    database.delete("orders", (2, [42, 42]))
    assert (len(database.view("other")), read(database)) == (3, [(7, 1), (9, 1), (42, 1)])
    assert list(database.streams) == ["orders"]
    assert list(database.stats().relations) == ["orders"]
    database.execute("DROP VIEW other; DROP VIEW late; DROP VIEW sizes; DROP STREAM orders")
    assert list(database.streams) == []


def test_a_refused_row_changes_nothing() -> None:
    for engine in ("python", "native"):
        database = viewlet.connect(engine=engine, wait_native=True)
        database.execute("CREATE STREAM r (k INTEGER, xs BIGINT[])")
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s, count(*) AS n FROM r, UNNEST(xs) t(x)")
        database.insert("r", [(1, [5]), (2, [2**62])])
        for data in ((3, [1, 2**62]), [(3, [1]), (4, [2**62])]):
            with pytest.raises(viewlet.OutOfRangeError, match="no longer fits BIGINT"):
                database.insert("r", data)
            assert database.view("v").rows() == [(5 + 2**62, 2)]
        database.delete("r", (2, [2**62]))
        assert database.view("v").rows() == [(5, 1)]


def test_in_a_directory(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path / "db", wait_native=True) as database:
        database.execute(ORDERS)
        database.insert("orders", [(1, [40, 41]), (2, [40])])
        database.checkpoint()
        database.upsert("orders", (2, [41, 42]))
    for _ in range(2):
        with viewlet.connect(tmp_path / "db", wait_native=True) as database:
            assert read(database) == [(40, 1), (41, 2), (42, 1)]
            assert database.verify("sizes") == []
            database.upsert("orders", (2, [41, 42]))


def test_the_program_as_text() -> None:
    program = viewlet.compile(ORDERS)
    assert viewlet.Program.from_text(program.to_text()) == program


REFUSED = {
    "LEFT JOIN UNNEST of a list of a row that may be missing": "SELECT q.x, t.x AS y FROM q LEFT JOIN r ON r.k = q.x"
    " LEFT JOIN UNNEST(r.xs) t (x) ON TRUE",
    "UNNEST of a list of a row around it": "SELECT k, s.x FROM r, LATERAL (SELECT unnest(r.xs) AS x) s",
    "several lists unnested in one SELECT": "SELECT unnest(xs) AS x, unnest(items) AS i FROM r",
    "UNNEST takes a list, not a STRUCT": "SELECT unnest(items[1]) AS i FROM r",
    "over more than the columns of one row": "SELECT x FROM r, o, UNNEST(list_concat(r.xs, o.xs)) t(x)",
    "a condition in LEFT JOIN UNNEST": "SELECT x FROM r LEFT JOIN UNNEST(xs) t(x) ON x > 1",
    "beside a window function": "SELECT unnest(xs) AS x, rank() OVER (ORDER BY k) AS n FROM r",
    "is used twice in this FROM": "SELECT 1 AS a FROM r, UNNEST(xs) r(x)",
    "there is no column nope": "SELECT x FROM r, UNNEST(nope) t(x)",
}


@pytest.mark.parametrize("said", REFUSED)
def test_refusals(said: str) -> None:
    database = viewlet.connect(engine="python")
    with pytest.raises(viewlet.SqlError) as error:
        database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {REFUSED[said]}")
    assert said in str(error.value)
    assert error.value.line is not None


def test_not_on_spark() -> None:
    script = "CREATE STREAM r (k INTEGER, s VARCHAR);"
    script += "CREATE MATERIALIZED VIEW v AS SELECT k, w FROM r, UNNEST(string_split(s, ',')) t(w)"
    with pytest.raises(viewlet.Error, match="takes a list of r apart by UNNEST"):
        pipeline_of(script, 1, "optimized", "sql")
