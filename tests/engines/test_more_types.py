"""Integers of all widths: types, values and errors are DuckDB's. Other types are refused in a sentence."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import Case, agree
from viewlet.workloads.streams import Event

TYPES = {"t": "TINYINT", "s": "SMALLINT", "i": "INTEGER", "b": "BIGINT"}
TYPES |= {"ut": "UTINYINT", "us": "USMALLINT", "ui": "UINTEGER"}
RANGES = {"t": (-128, 127), "s": (-(2**15), 2**15 - 1), "i": (-(2**31), 2**31 - 1), "b": (-(2**40), 2**40)}
RANGES |= {"ut": (0, 255), "us": (0, 2**16 - 1), "ui": (0, 2**32 - 1)}
SCHEMA = f"CREATE STREAM r (k INTEGER NOT NULL, {', '.join(f'{name} {kind}' for name, kind in TYPES.items())});"
LITERALS = ("1", "-1", "200", "-200", "40000", "70000", "3000000000", "5000000000", "1.5", "1e0", "(1 + 1)", "NULL")
LITERALS += ("1::BIGINT", "CAST(1 AS SMALLINT)", "-(1::INTEGER)", "1::UTINYINT")
PAIRS = [(x, y) for x in TYPES for y in TYPES] + [(x, y) for x in TYPES for y in LITERALS]
FORMS = ("{x} + {y}", "{y} * {x}", "coalesce({x}, {y})", "CASE WHEN k > 0 THEN {y} ELSE {x} END")
VALUES = {
    **{f"{x}_{n}": f"{op}({x})" for x in TYPES for n, op in enumerate(("min", "max", "sum", "avg", "count"))},
    "one": "max(CASE WHEN t > 0 THEN t ELSE 1 END)",
    "two": "sum(CAST(s AS BIGINT) * ut + i)",
    "three": "max(coalesce(t, us, 300))",
    "four": "min(ui) + min(t)",
    "five": "count(DISTINCT us)",
}
AGGREGATES = ", ".join(f"{value} AS {name}" for name, value in VALUES.items())
VIEWS = {
    "shown": "SELECT k, t, s, i, b, ut, us, ui FROM r",
    "by_t": f"SELECT t, {AGGREGATES} FROM r GROUP BY t",
    "whole": f"SELECT {AGGREGATES} FROM r",
    "meet": "SELECT x.k, y.us FROM r x JOIN r y ON x.t = y.ut AND x.s <= y.us WHERE x.ui >= y.t",
    "both": "SELECT t AS x FROM r UNION ALL SELECT us FROM r UNION ALL SELECT 1 FROM r",
}


def described(select: str) -> list[tuple[str, str]]:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA.replace("STREAM", "TABLE"))
        rows = connection.execute(f"DESCRIBE {select}").fetchall()
    return [(name.lower(), "BIGINT" if kind == "HUGEINT" else kind) for name, kind, *_ in rows]


def typed(select: str) -> list[tuple[str, str]]:
    (result,) = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}").results
    return [(c.name, str(c.type)) for c in result.columns]


def test_arithmetic_and_common_types_are_those_of_duckdb() -> None:
    items = [
        f"{form.format(x=x, y=y)} AS c{n}_{m}"
        for n, (x, y) in enumerate(PAIRS)
        for m, form in enumerate(FORMS)
        if y != "NULL" or m > 1
    ]
    items += [f"-{x} AS n_{x}" for x in TYPES] + [f"{x} / 2 AS d_{x}" for x in TYPES]
    items += [f"coalesce({x}, {y}, 1) AS l_{x}_{y}" for x in TYPES for y in TYPES]
    items += ["q.one + t AS of_a_subquery"]
    for select in (f"SELECT {', '.join(items)} FROM r, (SELECT 1 AS one) q", *VIEWS.values()):
        assert typed(select) == described(select)


def events() -> list[Event]:
    random, live, stream = Random(7), list[tuple[Any, ...]](), list[Event]()
    for k in range(40):
        if live and random.random() < 0.3:
            stream.append(("-", "r", live.pop(random.randrange(len(live)))))
            continue
        cells = [random.choice((None, low, high, max(low, 0), 1, 2, 100)) for low, high in RANGES.values()]
        live.append((k % 5, *cells))
        stream.append(("+", "r", live[-1]))
    return stream


def test_values_are_those_of_duckdb() -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    contestants = [("interpreter", "optimized"), ("python", "naive"), ("native", "optimized"), ("python", "cost")]
    for watch in agree(Case(SCHEMA, views, VIEWS, events()), contestants).values():
        watch.check()


@pytest.mark.parametrize("engine", ["interpreter", "python", "native"])
def test_what_does_not_fit_is_refused(engine: viewlet.database.memory.EngineName) -> None:
    db = viewlet.connect(engine=engine, wait_native=True)
    views = "SELECT t + 1 AS x, ut - 2 AS y, s * s AS z, -us AS w FROM r", "SELECT t, s, i, b, ut, us, ui FROM r"
    db.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW added AS {views[0]}; CREATE MATERIALIZED VIEW shown AS {views[1]};")
    whole = {"k": 1, "t": 1, "s": 1, "i": 1, "b": 1, "ut": 9, "us": 0, "ui": 1}
    db.insert("r", whole)
    for name, (low, high) in RANGES.items():
        for value in (low - 1, high + 1) if name != "b" else ():
            wrong = {**whole, name: value}
            for given in (wrong, [wrong], tuple(wrong.values()), pa.table({c: [cell] for c, cell in wrong.items()})):
                with pytest.raises(viewlet.DataError, match=rf"r\.{name}, row 0: {value} does not fit {TYPES[name]}"):
                    db.insert("r", given)
    for column, value in (("t", 127), ("ut", 1), ("s", 200), ("us", 1)):
        with pytest.raises(viewlet.OutOfRangeError, match=r"added.*no longer fits"):
            db.insert("r", {**whole, column: value})
    assert db.view("added").rows() == [(2, 7, 1, 0)]
    types = db.view("shown").arrow().schema.types
    assert [str(t) for t in types] == ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
    db.insert("r", {**whole, "t": -128, "ui": 2**32 - 1})
    assert (-128, 2**32 - 1) in {(row[0], row[6]) for row in db.view("shown").rows()}
    db.insert("r", db.view("shown").arrow().append_column("k", pa.array([3, 4])))
    assert sorted(db.view("shown").arrow()["ui"].to_pylist()) == [1, 1, 2**32 - 1, 2**32 - 1]
    db.execute("UPDATE r SET t = t + 1, ui = ui - 1 WHERE t = -128")
    assert sorted(db.view("shown").df()["t"].tolist()) == [-127, -127, 1, 1]


def test_functions_take_them_as_duckdb_does() -> None:
    items = "round(ut, -1) AS a, trunc(us) AS b, repeat('x', t) AS c, substring('abc', ut) AS d, t % 3 AS e"
    select = f"SELECT {items}, s // 2 AS f, greatest(t, 1) AS g, nullif(us, 1) AS h, least(ut, s) AS i FROM r"
    assert typed(select) == described(select)
    case = Case(SCHEMA, f"CREATE MATERIALIZED VIEW v AS {select};", {"v": select}, events())
    agree(case, [("python", "optimized")])["v"].check()


def test_an_aggregate_is_no_function_of_a_row() -> None:
    with duckdb.connect() as connection:
        listed = connection.execute("SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
        names = sorted({name for (name,) in listed.fetchall() if name.isidentifier()})
    assert "product" in names
    for name in names:
        try:
            program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT {name}(i) AS x FROM r")
        except viewlet.SqlError:
            continue
        assert not program.relation("r").derived, name


REFUSED = {
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "TIMETZ": "UTC",
    "INTEGER[3]": "INTEGER[]",
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "TIMESTAMP"),
}


@pytest.mark.parametrize("type_", REFUSED)
def test_other_types_are_refused_in_a_sentence(type_: str) -> None:
    with pytest.raises(viewlet.UnsupportedError) as caught:
        viewlet.compile(f"CREATE STREAM r (a {type_})")
    assert REFUSED[type_] in caught.value.hint
