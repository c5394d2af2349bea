"""Lists, structs and maps: engines hold them as texts, and views show, compare and take them apart as DuckDB does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.jobs.results import json_lines
from viewlet.rows.boundary import to_cell, value_of
from viewlet.rows.containers import countable
from viewlet.schema import BOOLEAN, DOUBLE, INTEGER, VARCHAR, Type, decimal, list_of, map_of, struct_of
from viewlet.spark.pipeline import pipeline_of
from viewlet.workloads.streams import Event

SCHEMA = (
    "CREATE STREAM r (k INTEGER, xs INTEGER[], s STRUCT(a INTEGER, b VARCHAR, c STRUCT(d DOUBLE, e DATE[])),"
    " m MAP(VARCHAR, INTEGER), words VARCHAR[], items STRUCT(sku VARCHAR, price DECIMAL(8,2))[]);"
    "CREATE STREAM q (k INTEGER, xs INTEGER[] NOT NULL, s STRUCT(a INTEGER, b VARCHAR), tags VARCHAR);"
)
VIEWS = {
    "shown": "SELECT k, xs, s, m, words, items FROM r",
    "keys": "SELECT xs, s, m, count(*) AS n, sum(k) AS t FROM r GROUP BY ALL",
    "fields": "SELECT k, s.a, r.s.b AS b, s['b'] AS b2, s.c.d AS d, s.c.e[1] AS e, r.s.c.e[-1] AS e2,"
    " struct_extract(s, 'a') AS f FROM r",
    "elements": "SELECT xs[1] AS a, xs[-1] AS b, xs[k] AS c, xs[2:3] AS d, len(xs) AS n, list_contains(xs, 3) AS e,"
    " list_sum(xs) AS f, list_max(xs) AS g, array_to_string(words, '-') AS h, list_sort(xs) AS i, 3 IN xs AS j FROM r",
    "maps": "SELECT m['x'] AS a, map_keys(m) AS b, len(map_values(m)) AS c, map_contains(m, 'y') AS d, m.x AS e FROM r",
    "of_structs": "SELECT k, items[1].price AS p, items[1].sku AS q, len(items) AS n FROM r WHERE items[1].price > 1",
    "lambdas": "SELECT k, list_filter(xs, lambda x: x > 1) AS a, [x + 1 for x in xs if x < 3] AS b,"
    " list_transform(items, lambda i: i.price) AS c FROM r",
    "made": "SELECT k, [k, xs[1]] AS a, {'k': k, 'l': len(xs)} AS b, coalesce(xs, []) AS c, xs || [k] AS d,"
    " CASE WHEN len(xs) > 1 THEN xs ELSE [0] END AS e FROM r",
    "compared": "SELECT k, xs = [1, 2] AS a, xs < [2] AS b, s = {'a': 1, 'b': 'x', 'c': NULL} AS c, xs IS NULL AS d,"
    " s.a > 1 OR s.b LIKE 'x%' AS e FROM r",
    "by_field": "SELECT s.b, count(*) AS n, sum(s.a) AS t, max(s.c.d) AS d FROM r GROUP BY s.b HAVING sum(s.a) > 0",
    "ends": "SELECT k, min(xs) AS a, max(xs) AS b, max(s) AS c, min(words) AS d, max(m) AS e, count(DISTINCT xs) AS f"
    " FROM r GROUP BY k",
    "in_order": "SELECT xs, k FROM r ORDER BY xs DESC NULLS LAST, k LIMIT 3",
    "joined": "SELECT r.k, q.k AS l, q.xs FROM r JOIN q ON r.xs = q.xs",
    "less": "SELECT r.k, q.k AS l FROM r JOIN q ON r.xs < q.xs AND r.s.a = q.s.a",
    "known": "SELECT q.k, q.xs FROM q WHERE q.xs IN (SELECT xs FROM r)"
    " OR q.xs > ALL (SELECT xs FROM r WHERE xs IS NOT NULL)",
    "left_": "SELECT q.k, q.xs, t.xs AS ys, t.b FROM q"
    " LEFT JOIN (SELECT xs, k, s.b FROM r) t ON t.xs = q.xs AND t.k = q.k",
    "either": "SELECT xs FROM r UNION SELECT xs FROM q",
    "listed": "SELECT k, list(xs ORDER BY xs) AS a, list(s.b ORDER BY s.b) AS b FROM r GROUP BY k",
    "ranked": "SELECT k, xs, rank() OVER (PARTITION BY k ORDER BY xs) AS n FROM r",
    "latest": "SELECT k, xs, s.b FROM r"
    " QUALIFY row_number() OVER (PARTITION BY k ORDER BY xs DESC, s, m, words, items) = 1",
    "split": "SELECT string_split(tags, ',') AS words, count(*) AS n FROM q GROUP BY 1",
    "starred": "SELECT k, s.* EXCLUDE (c) FROM r",
    "renamed": "SELECT k, xs AS ys, ys[1] AS y, t.a FROM (SELECT k, xs, s AS t FROM r) u",
}
LISTS = ([], [1], [1, 2], [1, None], [3, 2, 1], [None], [-5, 2**31 - 1])


def stream() -> Iterator[Event]:
    rng, rows = Random(5), list[tuple[str, Row]]()

    def maybe(*options: object) -> Any:
        return rng.choice([*options, None])

    for _ in range(45):
        if rows and rng.random() < 0.3:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        k, xs, a, b = maybe(1, 2, 3), maybe(*LISTS), maybe(1, 2), maybe("x", "xy", "it's", "")
        inner = maybe({"d": maybe(0.5, -1e300), "e": maybe([dt.date(2024, 2, 29), None], [])})
        m = maybe({}, {"x": 1}, {"y": None, "x": 2})
        words = maybe([], ["a\x01", "a", ""], ["é", None])
        items = maybe([], [{"sku": "u", "price": Decimal("1.50")}, {"sku": None, "price": None}], [None])
        r = k, xs, maybe({"a": a, "b": b, "c": inner}), m, words, items
        q = k, rng.choice(LISTS), maybe({"a": a, "b": b}), maybe("a,b", "", "b")
        rows.append(("r", r) if rng.random() < 0.65 else ("q", q))
        yield "+", *rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    case = Case(SCHEMA, script, VIEWS, list(stream()))
    for watched in agree(case, [("interpreter", "optimized"), ("python", "reevaluate"), ("native", "cost")]).values():
        watched.check()


def opened(engine: str, *scripts: str) -> viewlet.Database:
    database = viewlet.connect(engine=engine, wait_native=True)
    for script in (SCHEMA, *scripts):
        database.execute(script)
    return database


WHOLE = "CREATE MATERIALIZED VIEW v AS SELECT k, xs, s, m, words, items FROM r"
VALUES = (
    1,
    [1, None],
    {"a": 1, "b": "x", "c": {"d": 0.5, "e": [dt.date(2024, 1, 2)]}},
    {"x": 1},
    [],
    [{"sku": "u", "price": Decimal("2.50")}],
)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_in_and_out(engine: str) -> None:
    database = opened(engine, WHOLE)
    told: list[Any] = []
    database.view("v").subscribe(told.append)
    database.insert("r", VALUES)
    database.insert("r", [VALUES, dict(zip(("k", "xs", "s", "m", "words", "items"), VALUES, strict=True))])
    shown = database.view("v").arrow()
    database.insert("r", shown)
    plain = pa.table({"k": [1], "xs": [[1, 2]], "words": [["a", None]]})
    database.insert("r", plain.to_pandas())
    database.delete("r", plain)
    assert database.view("v").rows() == [VALUES] * 6
    assert told[0][1] == tuple(map(countable, VALUES))
    database.delete("r", VALUES)
    database.delete("r", shown)
    assert len(database.view("v")) == 2
    assert database.sql("SELECT xs, s.c.d AS d, m['x'] AS x FROM r LIMIT 1").rows() == [([1, None], 0.5, 1)]
    assert database.sql("SELECT items FROM v LIMIT 1").rows() == [(VALUES[5],)]
    database.execute("UPDATE r SET xs = list_append(xs, 7), s = {'a': 2, 'b': NULL, 'c': NULL} WHERE s.a = 1")
    assert database.view("v").rows()[0][1:3] == ([1, None, 7], {"a": 2, "b": None, "c": None})


def test_rows_of_lists_alone() -> None:
    """A tuple that holds lists is a row; a list or a tuple of tuples is many."""
    database = viewlet.connect(engine="python")
    database.execute("CREATE STREAM p (xs INTEGER[], ys INTEGER[]); CREATE MATERIALIZED VIEW v AS SELECT * FROM p")
    database.insert("p", ([1], [2]))
    database.insert("p", [([3], [4]), [[5], None]])
    database.insert("p", (([6], []), ([7], [])))
    assert [row[0] for row in database.view("v").rows()] == [[1], [3], [5], [6], [7]]


def test_in_a_directory(tmp_path: Path) -> None:
    script = SCHEMA + "CREATE STREAM p (k INTEGER PRIMARY KEY, xs INTEGER[]);" + WHOLE
    script += ";CREATE MATERIALIZED VIEW w AS SELECT k, xs[1] AS x, len(xs) AS n FROM p"
    with viewlet.connect(tmp_path / "db", wait_native=True) as database:
        database.execute(script)
        database.insert("r", [VALUES, (2, None, None, None, None, None)])
        database.insert("p", [(1, [1, 2]), (2, [])])
        database.checkpoint()
        database.upsert("p", (1, [9]))
        database.delete("r", VALUES)
    with viewlet.connect(tmp_path / "db", wait_native=True) as database:
        assert database.view("v").rows() == [(2, None, None, None, None, None)]
        assert sorted(database.view("w").rows()) == [(1, 9, 1), (2, None, 0)]
        database.upsert("p", (2, [4, 5]))
        assert sorted(database.view("w").rows()) == [(1, 9, 1), (2, 4, 2)]


BAD = {
    "xs: INTEGER[] takes a list, not 5 (int)": {"xs": 5},
    "xs: element 2: INTEGER takes an int, not 'a' (str)": {"xs": [1, "a"]},
    "s: field c: field e: element 1: '2024' is no date": {"s": {"c": {"e": ["2024"]}}},
    "has no field z": {"s": {"z": 1}},
    "a key of a map is NULL, or there twice": {"m": [("a", 1), ("a", 2)]},
    "items: element 1: field price: 0.001 has more": {"items": [{"price": 0.001}]},
}


@pytest.mark.parametrize("said", BAD)
def test_values_that_do_not_fit(said: str) -> None:
    database = opened("python", WHOLE)
    with pytest.raises(viewlet.DataError) as error:
        database.insert("r", BAD[said])
    assert said.partition(": ")[2] in str(error.value)


SCALARS = {INTEGER: st.integers(-(2**31), 2**31 - 1), VARCHAR: st.text(max_size=3), BOOLEAN: st.booleans()}
SCALARS |= {
    DOUBLE: st.floats(allow_nan=False).map(lambda x: x + 0.0),
    decimal(38, 2): st.integers(-(10**30), 10**30).map(Decimal),
}


def values(type_: Type) -> st.SearchStrategy[Any]:
    if type_.kind == "STRUCT":
        return st.fixed_dictionaries({n: st.none() | values(t) for n, t in zip(type_.names, type_.inner, strict=True)})
    if type_.kind == "MAP":
        return st.dictionaries(values(type_.inner[0]), st.none() | values(type_.inner[1]), max_size=3)
    return st.lists(st.none() | values(type_.inner[0]), max_size=3) if type_.kind == "LIST" else SCALARS[type_]


def rank(value: Any) -> Any:
    """NULL last, and a shorter list first."""
    if isinstance(value, dict):
        value = [v for _, v in sorted(value.items())]  # hypothesis shuffles them
    if isinstance(value, list):
        return (0, [rank(v) for v in value])
    return (1, 0) if value is None else (0, value)


@given(
    st.sampled_from(
        [
            *map(list_of, SCALARS),
            list_of(list_of(VARCHAR)),
            struct_of({"a": list_of(INTEGER), "b": VARCHAR}),
            map_of(VARCHAR, list_of(DOUBLE)),
        ]
    ),
    st.data(),
)
def test_texts_have_the_order_of_the_values(type_: Type, data: st.DataObject) -> None:
    one, two = data.draw(values(type_)), data.draw(values(type_))
    texts = to_cell(one, type_), to_cell(two, type_)
    assert value_of(texts[0], type_) == one
    assert (texts[0] == texts[1]) == (one == two)
    if type_.kind != "MAP":
        assert (texts[0] < texts[1]) == (rank(one) < rank(two))  # type: ignore[operator]


def test_the_program_as_text() -> None:
    program = viewlet.compile(SCHEMA + "CREATE MATERIALIZED VIEW v AS SELECT s.c.e, m, items[1].price AS p FROM r")
    assert viewlet.Program.from_text(program.to_text()) == program


REFUSED = {
    "the field s.a over": "SELECT s.a, count(*) AS n FROM r GROUP BY s",
    "comparing an INTEGER[] with a VARCHAR[]": "SELECT r.k FROM r JOIN (SELECT words FROM r) t ON r.xs = t.words",
    "there is no field nope in a STRUCT": "SELECT s.nope FROM r",
    "there is no field g in an INTEGER": "SELECT s.a.g FROM r",
    "there is no table z": "SELECT z.a FROM r",
    "over more than the columns of one row": "SELECT list_concat(r.xs, q.xs) AS x FROM r, q",
}


@pytest.mark.parametrize("said", REFUSED)
def test_refusals(said: str) -> None:
    with pytest.raises(viewlet.SqlError) as error:
        opened("python", f"CREATE MATERIALIZED VIEW v AS {REFUSED[said]}")
    assert said in str(error.value)


def test_elsewhere() -> None:
    with pytest.raises(viewlet.Error, match=r"r.xs is a INTEGER\[\], which no row on Spark can have"):
        pipeline_of(SCHEMA + WHOLE, 1, "optimized", "sql")
    schema = pa.schema(
        [("s", pa.struct([("a", pa.decimal128(5, 2)), ("b", pa.date32())])), ("m", pa.map_(pa.string(), pa.int32()))]
    )
    rows = pa.Table.from_pylist([{"s": {"a": Decimal("1.50"), "b": dt.date(2024, 1, 2)}, "m": [("x", 1)]}], schema)
    assert list(json_lines(rows)) == ['{"s": {"a": 1.50, "b": "2024-01-02"}, "m": [["x", 1]]}']
