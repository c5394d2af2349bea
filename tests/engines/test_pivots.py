"""PIVOT and UNPIVOT with values that are listed, as DuckDB has them, after every event."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM o (c INTEGER, st VARCHAR, amt DECIMAL(10,2), f DOUBLE, u INTEGER, ok BOOLEAN);"
VIEWS = {
    "grouped": "PIVOT o ON st IN ('a', 'b') USING sum(amt) GROUP BY c",
    "counted": "PIVOT o ON st IN ('a', 'b') GROUP BY c",
    "several": "PIVOT o ON st IN ('a', 'b') USING sum(amt) AS s, count(*) AS n, max(f) AS m GROUP BY c",
    "both_": "PIVOT o ON st IN ('a', 'b'), u IN (7, -8) USING sum(amt) GROUP BY c",
    "rest": "PIVOT o ON ok IN (true, false) USING sum(amt) AS s",
    "whole": "PIVOT (SELECT st, amt FROM o) ON st IN ('a', 'b') USING avg(amt)",
    "in_from": "SELECT c, first AS x, p.b FROM o PIVOT (sum(amt) FOR st IN ('a' AS first, 'b', NULL) GROUP BY c) AS p",
    "joined": "SELECT * FROM o PIVOT (sum(amt) FOR u IN (7) GROUP BY c)"
    " JOIN (SELECT c, count(*) AS n FROM o GROUP BY c) USING (c)",
    "as_text": "PIVOT o ON amt IN (2.5, 1.50) USING count(*) GROUP BY u",
    "common": "WITH t AS (PIVOT o ON st IN ('a') USING sum(u) GROUP BY c) SELECT sum(a) AS s FROM t WHERE c > 0",
    "down": "UNPIVOT (SELECT c, amt, f FROM o) ON amt, f INTO NAME k VALUE v",
    "down_alone": "UNPIVOT (SELECT c, amt, f FROM o) ON amt, f",
    "down_in_from": "SELECT k, sum(v) AS s FROM o UNPIVOT (v FOR k IN (amt AS x, f)) AS t GROUP BY k",
    "down_with_nulls": "FROM (SELECT c, u, f FROM o) UNPIVOT INCLUDE NULLS (v FOR k IN (u, f))",
}


def stream() -> Iterator[Event]:
    rng, rows = Random(5), list[Row]()

    def maybe(*options: object) -> object:
        return rng.choice([*options, None])

    for _ in range(50):
        if rows and rng.random() < 0.35:
            yield "-", "o", rows.pop(rng.randrange(len(rows)))
            continue
        price = maybe(Decimal("1.50"), Decimal("2.50"), Decimal("-3.00"))
        rows.append((maybe(1, 2), maybe("a", "b", "c"), price, maybe(2.0, 0.5), maybe(7, -8), maybe(True, False)))
        yield "+", "o", rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    case = Case(SCHEMA, script, VIEWS, list(stream()))
    for watched in agree(case, [("interpreter", "classical"), ("python", "optimized"), ("native", "cost")]).values():
        watched.check()


@pytest.mark.parametrize(
    ("select", "construct"),
    [
        ("PIVOT o ON st USING sum(amt) GROUP BY c", "PIVOT by values that are not listed"),
        ("PIVOT o ON st IN ('a') USING sum(amt), count(*)", "PIVOT by several aggregates without names"),
        ("PIVOT o ON st IN (lower('A')) USING sum(amt)", "a value of PIVOT that is no constant"),
        ("UNPIVOT o ON (amt, f) INTO NAME k VALUE v, w", "UNPIVOT of more than single columns"),
    ],
)
def test_refused_in_a_sentence(select: str, construct: str) -> None:
    with pytest.raises(viewlet.UnsupportedError, match=construct):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")
