"""MIN and MAX equal DuckDB's after every event: every strategy, every engine, every type.

In the paper's dialect the engines take turns with the strategies; ``make soak`` has all pairs.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import viewlet
from tests.engines.conformance import CONTESTANTS, WAYS, Case, agree, chosen_contestants, cut, opened_natively
from tests.oracle.oracle import DuckOracle, Row, difference
from viewlet.compilation import Dialect
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k INTEGER, a INTEGER, p DECIMAL(10,2) NOT NULL, x DOUBLE, d DATE, m TIMESTAMP, s VARCHAR, f BOOLEAN);
CREATE STREAM t (k INTEGER NOT NULL, v BIGINT);
"""
AT_TOP = {
    "numbers": "SELECT k, min(a) AS a, max(a) AS b, min(p) AS p, max(p) AS q, max(x) AS x FROM r GROUP BY k",
    "others": "SELECT k, min(d) AS d, max(m) AS m, min(s) AS s, max(s) AS u, min(f) AS f FROM r GROUP BY k",
    "whole": "SELECT min(a) AS a, max(p) AS p, min(x) AS x, min(d) AS d, min(m) AS m, max(s) AS s, max(f) AS f FROM r",
    "computed": "SELECT k, max(a * p) - min(DISTINCT a) AS w, coalesce(max(-x), -9) AS c FROM r GROUP BY k",
    "having": "SELECT k, count(*) AS n, max(s) AS s FROM r GROUP BY k HAVING min(a) < 1 OR max(s) > 'b'",
    "joined": "SELECT t.k, min(a + v) AS low, max(p) AS high FROM r, t WHERE r.k = t.k GROUP BY t.k",
}
NESTED = {
    "last": "SELECT k, a FROM r WHERE a = (SELECT max(a) FROM r)",
    "correlated": "SELECT k, p FROM r WHERE p = (SELECT min(i.p) FROM r i WHERE i.k = r.k)",
    "above": "SELECT k, (SELECT min(i.v) FROM t i WHERE i.v > t.v) AS above FROM t",
    "days": "SELECT k FROM r WHERE d < (SELECT max(d) FROM r) OR m = (SELECT min(m) FROM r)",
    "doubles": "SELECT x FROM r WHERE x = (SELECT max(x) FROM r)",
    "derived": "SELECT q.low, count(*) AS n FROM (SELECT k, min(a) AS low FROM r GROUP BY k) q GROUP BY q.low",
    "some": "SELECT q.k FROM (SELECT k FROM r GROUP BY k HAVING max(a) > 1 AND min(f) IS NOT TRUE) q",
    "choice": "SELECT t.k, CASE WHEN (SELECT max(a) FROM r WHERE r.k = t.k) > v THEN 1 ELSE 0 END AS c FROM t",
    "twice": "SELECT min(q.high) AS m FROM (SELECT k, max(v) AS high FROM t GROUP BY k) q",
    "second": "SELECT max(v) AS m FROM t WHERE v < (SELECT max(v) FROM t)",
}
TEXTS = ("ab", "b", "", "é", "z", "ab\u0000c", "\uffff", "\U0001f600", "B")


def random_row(pick: Random, relation: str) -> Row:
    """Small domains: values repeat, tie, are negative or missing."""

    def maybe(value: object) -> object:
        return None if pick.random() < 0.2 else value

    number = pick.randint
    if relation == "t":
        return (number(1, 3), maybe(number(-3, 4)))
    return (
        maybe(number(1, 3)),
        maybe(number(-3, 3)),
        Decimal(number(-250, 250)) / 100,
        maybe(number(-6, 6) / 4),
        maybe(dt.date(1969, 12, 30) + dt.timedelta(days=number(0, 5))),
        maybe(dt.datetime(2020, 1, 1) + dt.timedelta(minutes=number(-4, 4))),
        maybe(pick.choice(TEXTS)),
        maybe(pick.random() < 0.5),
    )


def stream(seed: int, events: int, most: int = 9) -> Iterator[Event]:
    """Rows come, some twice, and go, those with an extreme more often than others; now and then all of them."""
    pick = Random(seed)
    live: dict[str, list[Row]] = {"r": [], "t": []}
    emptying = False
    for _ in range(events):
        relation = pick.choice(("r", "r", "r", "t"))
        rows = live[relation]
        emptying = bool(live["r"]) if emptying else pick.random() < 0.02
        if emptying:
            relation, rows = "r", live["r"]
        if rows and (emptying or len(rows) >= most or pick.random() < 0.4):
            yield "-", relation, rows.pop(rows.index(_leaving(pick, rows)))
        else:
            row = pick.choice(rows) if rows and pick.random() < 0.25 else random_row(pick, relation)
            rows.append(row)
            yield "+", relation, row


def _leaving(pick: Random, rows: Sequence[Row]) -> Row:
    """An end of some column, or any row."""
    if pick.random() < 0.3:
        return pick.choice(rows)
    column = pick.randrange(len(rows[0]))
    known: list[tuple[Any, ...]] = [row for row in rows if row[column] is not None]
    end = pick.choice((min, max))
    return end(known, key=lambda row: row[column]) if known else pick.choice(rows)


def case(queries: dict[str, str], seed: int, events: int, dialect: Dialect) -> Case:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};\n" for name, query in queries.items())
    return Case(SCHEMA, views, queries, list(stream(seed, events)), dialect=dialect)


def test_the_stream_has_what_it_should() -> None:
    events = list(stream(1, 150))
    assert {op for op, _, _ in events} == {"+", "-"}
    rows = [row for op, name, row in events if (op, name) == ("+", "r")]
    assert len(set(rows)) < len(rows)
    assert all(None in {row[i] for row in rows} for i in (0, 1, 3, 4, 5, 6, 7))
    sizes = [sum(1 if op == "+" else -1 for op, name, _ in events[:n] if name == "r") for n in range(20, 150)]
    assert 0 in sizes


@pytest.mark.parametrize("dialect", ["sql", "paper"])
def test_extremes_at_the_top_equal_the_referee_s(dialect: Dialect, soaking: bool) -> None:
    at_top = case(AT_TOP, {"sql": 1, "paper": 2}[dialect], 150, dialect)
    for watch in agree(at_top, chosen_contestants(len(dialect), soaking)).values():
        watch.check()


@pytest.mark.parametrize("dialect", ["sql", "paper"])
def test_nested_extremes_equal_the_referee_s(dialect: Dialect, soaking: bool) -> None:
    nested = case(NESTED, {"sql": 3, "paper": 4}[dialect], 100, dialect)
    for watch in agree(nested, chosen_contestants(len(dialect) + 1, soaking)).values():
        watch.check()


@pytest.mark.parametrize("way", WAYS)
def test_batches(way: str) -> None:
    both_kinds = case({**AT_TOP, "last": NESTED["last"], "derived": NESTED["derived"]}, 5, 120, "sql")
    databases = {(e, s): both_kinds.open(e, s) for e, s in CONTESTANTS if s == "optimized"}
    oracle = both_kinds.referee()
    for batch in cut(both_kinds.events, Random(5), 9):
        for event in batch:
            oracle.apply(*event)
        for contestant, database in databases.items():
            WAYS[way](database, batch)
            for view, select in both_kinds.selects.items():
                wrong = difference(database.view(view).rows(), oracle.rows(select))
                assert wrong is None, f"{view} by {contestant}: {wrong}"


@pytest.mark.parametrize("engine", ["interpreter", "python", "native"])
def test_one_group_is_read_by_its_key_and_changes_are_told(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(
        SCHEMA + "CREATE MATERIALIZED VIEW v AS SELECT k, min(v) AS low, max(v) AS high FROM t GROUP BY k;"
    )
    view, changes = database.view("v"), database.view("v").changes()
    database.insert("t", [(1, 5), (1, 3), (2, None), (1, 3)])
    assert view.get(k=1) == (1, 3, 5)
    assert view.get(k=2) == (2, None, None)
    assert view.get(k=3) is None
    list(changes)
    database.delete("t", (1, 3))
    assert not list(changes)
    database.delete("t", (1, 3))
    assert sorted(changes) == [(-1, (1, 3, 5)), (1, (1, 5, 5))]
    assert database.verify("v") == []


# -- NaN and infinities ------------------------------------------------------------------------------------------------

WILD = {
    "top": "SELECT k, min(x) AS low, max(x) AS high FROM w GROUP BY k",
    "whole": "SELECT min(x) AS low, max(x) AS high, min(-x) AS turned FROM w",
    "great": "SELECT k FROM w GROUP BY k HAVING max(x) > 100",
    "by_double": "SELECT x, max(k) AS k FROM w GROUP BY x",
}


def test_nan_is_the_greatest_number() -> None:
    schema = "CREATE STREAM w (k INTEGER NOT NULL, x DOUBLE);\n"
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};\n" for name, query in WILD.items())
    database, oracle = opened_natively(schema + views), DuckOracle(viewlet.compile(schema).relations)
    pick, rows = Random(7), list[Row]()
    for _ in range(120):
        if rows and pick.random() < 0.45:
            op, row = "-", rows.pop(pick.randrange(len(rows)))
        else:
            op, row = "+", (pick.randint(1, 3), pick.choice((math.nan, math.inf, -math.inf, 1.5, -2.0, None)))
            rows.append(row)
        (database.insert if op == "+" else database.delete)("w", row)
        oracle.apply(op, "w", row)
        for view, select in WILD.items():
            assert _shown(database.view(view).rows()) == _shown(oracle.rows(select)), f"{view} of {rows}"


def _shown(rows: Sequence[Row]) -> list[str]:
    """As text, in which NaN is NaN; 0 has no sign in a view."""
    return sorted(str(row) for row in rows)
