"""Updates with poison in them: whatever the form and the row, an update is done whole or changes nothing."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.oracle.oracle import DuckOracle
from viewlet import Database

Event = tuple[int, str, tuple[Any, ...]]
NAN, INF, MOST, LEAST = math.nan, math.inf, 2**63 - 1, -(2**63)
SCHEMA = """
CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE);
CREATE STREAM q (k BIGINT NOT NULL, x DOUBLE);
CREATE STREAM b (n BIGINT NOT NULL, t TIMESTAMP);
CREATE TABLE u (k BIGINT NOT NULL, w BIGINT NOT NULL);
"""
VIEWS = {
    "sums": "SELECT k, sum(x) AS s, count(*) AS n FROM r GROUP BY k",
    "joined": "SELECT r.k, sum(r.x * q.x) AS s, count(*) AS n FROM r, q WHERE r.k = q.k GROUP BY r.k",
    "total": "SELECT sum(n) AS n, count(*) AS c FROM b",
    "negated": "SELECT -n AS n, t - INTERVAL '13' MONTH AS t FROM b",
    "rated": "SELECT r.k, sum(u.w) AS w FROM r, u WHERE r.k = u.k GROUP BY r.k",
}
SCRIPT = SCHEMA + "\n".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
NOON = dt.datetime(2020, 2, 29, 12)
GOOD: dict[str, list[Any]] = {  # no sum over some of them is 0, whose product with an infinity is taken to be 0, too
    "r": [(1, 0.5), (1, 2.0), (2, -1.0), (2, None), (1, 0.25)],
    "q": [(1, 4.0), (2, 0.25), (1, None)],
    "b": [(1, NOON), (2, None), (-3, NOON)],
    "u": [(1, 5), (2, -7)],
}
WILD: dict[str, list[Any]] = {name: [(1, NAN), (2, INF), (1, -INF)] for name in "rq"}
POISON: dict[str, list[Any]] = {
    "r": [(1, 1e200), (1, "x"), (MOST + 1, 0.5)],
    "q": [(1, 1e200), (2, -1e200), (None, 0.5)],
    "b": [(MOST, None), (LEAST, None), (1, dt.datetime(1, 1, 1)), (0.5, None)],
    "u": [(1, MOST), (1, NAN)],
}


def drawn(rng: Random, there: Counter[tuple[str, Any]]) -> Event:
    if there and rng.random() < 0.3:
        return (-1, *rng.choice(sorted(there, key=repr)))
    rows = rng.choices([GOOD, WILD, POISON], [6, 2, 2])[0]
    name = rng.choice(sorted(rows))
    op = 1 if rng.random() < 0.95 else -1  # what may not be there
    return op, name, rng.choice(rows[name])


# -- forms of updates --------------------------------------------------------------------------------------------------

TYPES = {
    "r": {"k": pa.int64(), "x": pa.float64()},
    "q": {"k": pa.int64(), "x": pa.float64()},
    "b": {"n": pa.int64(), "t": pa.timestamp("us")},
    "u": {"k": pa.int64(), "w": pa.int64()},
}


def as_events(db: Database, events: list[Event]) -> None:
    db.apply([("+" if op > 0 else "-", name, row) for op, name, row in events])


def as_dicts(db: Database, events: list[Event]) -> None:
    db.apply([(op, name, dict(zip(TYPES[name], row, strict=True))) for op, name, row in events])


def by_relation(db: Database, events: list[Event]) -> None:
    """Rows of one relation, of those the first event has."""
    op, name, _ = events[0]
    (db.insert if op > 0 else db.delete)(name, [row for _, _, row in events])


def by_arrow(db: Database, events: list[Event]) -> None:
    op, name, _ = events[0]
    (db.insert if op > 0 else db.delete)(name, table(name, [row for _, _, row in events], TYPES[name]))


def by_arrow_through_python(db: Database, events: list[Event]) -> None:
    """Integers as decimals: only Python knows whether they fit."""
    op, name, _ = events[0]
    types = {c: pa.decimal128(38, 1) if t == pa.int64() else t for c, t in TYPES[name].items()}
    (db.insert if op > 0 else db.delete)(name, table(name, [row for _, _, row in events], types))


def table(name: str, rows: list[Any], types: dict[str, pa.DataType]) -> pa.Table:
    columns = zip(*rows, strict=True)
    cells = [
        [decimal(v) if pa.types.is_decimal(t) else v for v in c] for c, t in zip(columns, types.values(), strict=True)
    ]
    return pa.table([pa.array(c, t) for c, t in zip(cells, types.values(), strict=True)], names=list(types))


def decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


MIXED: tuple[Callable[[Database, list[Event]], None], ...] = (as_events, as_dicts)
OF_ONE_RELATION = (by_relation, by_arrow, by_arrow_through_python)


# -- the fuzzer --------------------------------------------------------------------------------------------------------


def everything(db: Database) -> object:
    tables = {name: same(Counter(db.engine.table(name)).elements()) for name in GOOD}
    return tables, {name: same(db.view(name).rows()) for name in VIEWS}


def same(rows: Any) -> Counter[tuple[Any, ...]]:
    """NaN as a value that equals itself."""
    return Counter(tuple("NaN" if isinstance(c, float) and math.isnan(c) else c for c in row) for row in rows)


@pytest.fixture(scope="module")
def referee() -> DuckOracle:
    return DuckOracle(viewlet.compile(SCHEMA).relations)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_an_update_is_done_whole_or_changes_nothing(engine: str, referee: DuckOracle) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(60):
        rng = Random(seed)
        with viewlet.connect(engine=engine, wait_native=True) as db:
            db.execute(SCRIPT)
            assert db.tier == engine
            if seed % 3 == 0:
                db.subscribe("joined", lambda change: None)
            there = played(db, rng, outcomes)
            tables = {name: Counter(row for table, row in there.elements() if table == name) for name in GOOD}
            for name, rows in tables.items():
                referee.connection.execute(f"DELETE FROM {name}")
                referee.load(name, list(rows.elements()))
            assert {v: same(db.view(v).rows()) for v in VIEWS} == {v: same(referee.rows(VIEWS[v])) for v in VIEWS}, seed
    assert min(outcomes["taken"], outcomes["refused"]) > 100, outcomes


def played(db: Database, rng: Random, outcomes: Counter[str]) -> Counter[tuple[str, Any]]:
    """A few updates; the rows that should be there in the end."""
    there: Counter[tuple[str, Any]] = Counter()
    for _ in range(10):
        events = [drawn(rng, there) for _ in range(rng.randint(1, 5))]
        way = rng.choice((*MIXED, *OF_ONE_RELATION))
        if way in OF_ONE_RELATION:
            op, name, _ = events[0]
            events = [(op, name, row) for _, other, row in events if other == name]
        before = everything(db)
        try:
            way(db, events)
        except (viewlet.Error, pa.ArrowException, OverflowError) as error:
            if isinstance(error, viewlet.Error):
                outcomes["refused"] += 1
            assert everything(db) == before, (way.__name__, events)
            continue
        outcomes["taken"] += 1
        for op, name, row in events:
            there[name, row] += op
        there = +there
    return there


def test_the_first_nan_may_come_in_an_update_that_is_refused() -> None:
    """A NaN was looked for by another NaN: the row stayed."""
    with viewlet.connect(wait_native=True) as db:
        db.execute(SCRIPT)
        before = everything(db)
        with pytest.raises(viewlet.OverflowError_, match=r"total\.n"):
            db.apply([("+", "r", (1, NAN)), ("+", "u", (1, 1)), ("+", "b", (MOST, None)), ("+", "b", (1, None))])
        assert everything(db) == before
