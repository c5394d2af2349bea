"""Infinities and NaN among the rows: each update is taken and right, or refused with nothing changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import opened_natively
from tests.oracle.oracle import DuckOracle, Row, Vacuity
from viewlet import Database

NAN, INF = math.nan, math.inf
SCHEMA = """
CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE);
CREATE STREAM q (k BIGINT NOT NULL, x DOUBLE);
CREATE STREAM b (n BIGINT);
CREATE TABLE u (k BIGINT NOT NULL);
"""
VIEWS = {
    "a join": "SELECT r.k, sum(q.x) AS s, count(*) AS n FROM r, q WHERE r.k = q.k GROUP BY r.k",
    "a range": "SELECT k, (SELECT sum(x) FROM q WHERE q.x < r.x) AS s FROM r",
    "an extreme": "SELECT (SELECT max(x) FROM q WHERE q.k = r.k) AS m FROM r",
    "a domain": "SELECT k, sum(x) AS s FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.x = r.x) GROUP BY k",
}
BESIDE = """
CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM b;
CREATE MATERIALIZED VIEW still AS SELECT count(*) AS n FROM u;
"""
VALUES = (0.5, 2.0, -1.0, None, NAN, INF, -INF)
EVENTS = 120


def one(db: Database, sign: str, relation: str, row: Row) -> None:
    (db.insert if sign == "+" else db.delete)(relation, row)


def as_a_list(db: Database, sign: str, relation: str, row: Row) -> None:
    (db.insert if sign == "+" else db.delete)(relation, [list(row)])


def as_an_event(db: Database, sign: str, relation: str, row: Row) -> None:
    db.apply([(sign, relation, row)])


def by_arrow(db: Database, sign: str, relation: str, row: Row) -> None:
    k, x = row
    (db.insert if sign == "+" else db.delete)(relation, pa.table({"k": [k], "x": pa.array([x], pa.float64())}))


def by_arrow_events(db: Database, sign: str, relation: str, row: Row) -> None:
    struct = pa.array([dict(zip("kx", row, strict=True))], pa.struct([("k", pa.int64()), ("x", pa.float64())]))
    db.apply(pa.table({"op": pa.array([1 if sign == "+" else -1]), "relation": [relation], "row": struct}))


WAYS: tuple[Callable[[Database, str, str, Row], None], ...] = (one, as_a_list, as_an_event, by_arrow, by_arrow_events)


def same(rows: list[Row]) -> Counter[Row]:
    """NaN as a value that equals itself."""
    return Counter(tuple("NaN" if isinstance(c, float) and math.isnan(c) else c for c in row) for row in rows)


def everything(db: Database) -> object:
    tables = {name: same(list(Counter(db.engine.table(name)).elements())) for name in "rqbu"}
    return tables, {name: same(db.view(name).rows()) for name in ("v", "total", "still")}


def refused(db: Database, update: Callable[[], None]) -> bool:
    before = everything(db)
    try:
        update()
    except viewlet.Error:
        assert everything(db) == before
        return True
    return False


@pytest.mark.parametrize("strategy", ["optimized", "naive"])
@pytest.mark.parametrize("name", VIEWS)
def test_an_update_is_right_or_changes_nothing(name: str, strategy: str) -> None:
    """Also one of a stream that has no such rows, and one of a static table, which has all views built anew."""
    rng, select = Random(name), VIEWS[name]
    db = opened_natively(f"{SCHEMA}CREATE MATERIALIZED VIEW v AS {select};\n{BESIDE}", strategy=strategy)
    referee = DuckOracle(db.program.relations)
    db.insert("b", (2**63 - 1,))
    watch, outcomes, live = Vacuity(), Counter[str](), list[tuple[str, Row]]()
    for number in range(EVENTS):
        leaves = bool(live) and rng.random() < len(live) / 16
        relation, row = rng.choice(live) if leaves else (rng.choice("rq"), (rng.randint(1, 2), rng.choice(VALUES)))
        sign, way = "-" if leaves else "+", WAYS[number % len(WAYS)]
        if refused(db, partial(way, db, sign, relation, row)):
            outcomes["refused"] += 1
        else:
            outcomes["taken"] += 1
            referee.apply(sign, relation, row)
            if leaves:
                live.remove((relation, row))
            else:
                live.append((relation, row))
        if number % 7 == 0:
            assert refused(db, lambda: db.insert("b", (1,))), "BIGINT ends there"
        if number % 9 == 0:  # an event before one that is refused goes with it
            assert refused(db, lambda: db.apply([("+", "r", (1, 0.5)), ("+", "u", (1,)), ("+", "b", (1,))]))
        if number % 11 == 0:
            outcomes["rebuilt"] += not refused(db, lambda: db.insert("u", (1,)))
        answer = referee.rows(select)
        watch.watch(answer)
        assert same(db.view("v").rows()) == same(answer), (number, sign, relation, row)
    watch.check()
    assert outcomes["taken"] > EVENTS / 3
    assert outcomes["rebuilt"] > 0
