"""Scalar expressions as views, side by side with DuckDB: one script, one stream, every engine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

CONTESTANTS = (("interpreter", "optimized"), ("python", "cost"), ("native", "reevaluate"))
WIDE = 12  # columns of a view


def events(rows: Sequence[Row], relation: str = "t", seed: int = 1) -> list[Event]:
    """Every row, some of them twice, and then some of them out again."""
    rng = Random(seed)
    again = rng.sample(list(rows), len(rows) // 4)
    gone = rng.sample(list(rows), len(rows) // 3)
    return [*(("+", relation, r) for r in (*rows, *again)), *(("-", relation, r) for r in gone)]


def check(schema: str, expressions: Sequence[str], rows: Sequence[Row], more: dict[str, str] | None = None) -> None:
    """Every expression of every row, and what ``more`` asks, equal DuckDB's after every event."""
    selects = {}
    for number, start in enumerate(range(0, len(expressions), WIDE)):
        some = expressions[start : start + WIDE]
        items = ", ".join(f"{e} AS c{i}" for i, e in enumerate(some))
        selects[f"v{number}"] = f"SELECT {items} FROM t"
    selects |= more or {}
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in selects.items())
    for watch in agree(Case(schema, views, selects, events(rows)), CONTESTANTS).values():
        watch.check()
