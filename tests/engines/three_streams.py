"""Three streams and a table with few values, so that rows meet, repeat and are missing."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.engines.conformance import STRATEGIES, Case
from tests.oracle.oracle import Row
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (a INTEGER, b INTEGER NOT NULL, w VARCHAR);
CREATE STREAM s (b INTEGER, c INTEGER, x DOUBLE);
CREATE STREAM t (c INTEGER, d INTEGER NOT NULL);
CREATE TABLE k (c INTEGER, name VARCHAR);
"""
STATIC = {"k": [(0, "zero"), (1, "one"), (1, "uno"), (None, "none"), (3, None)]}
EVERYWHERE = [*(("python", strategy) for strategy in STRATEGIES), ("interpreter", "optimized"), ("native", "cost")]


def random_row(pick: Random, relation: str) -> Row:
    def maybe(value: object) -> object:
        return None if pick.random() < 0.15 else value

    match relation:
        case "r":
            return maybe(pick.randint(0, 2)), pick.randint(-1, 3), maybe(pick.choice("xy"))
        case "s":
            return maybe(pick.randint(0, 2)), maybe(pick.randint(-1, 2)), maybe(pick.randint(-4, 4) / 4)
    return maybe(pick.randint(0, 2)), pick.randint(-1, 3)


def stream(seed: int, events: int) -> Iterator[Event]:
    """Rows come, some of them twice, and go; now and then all of one relation."""
    pick = Random(seed)
    live: dict[str, list[Row]] = {"r": [], "s": [], "t": []}
    emptied = ""
    for _ in range(events):
        emptied = (emptied if live.get(emptied) else "") or (pick.choice("rst") if pick.random() < 0.05 else "")
        relation = emptied if live.get(emptied) else pick.choice("rst")
        rows = live[relation]
        if rows and (emptied or len(rows) > 5 or pick.random() < 0.3):
            yield "-", relation, rows.pop(pick.randrange(len(rows)))
        else:
            rows.append(pick.choice(rows) if rows and pick.random() < 0.2 else random_row(pick, relation))
            yield "+", relation, rows[-1]


def case(queries: dict[str, str], seed: int, events: int, prepare: tuple[str, ...] = ()) -> Case:
    """Each query as a view, over the same stream."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};\n" for name, sql in queries.items())
    return Case(SCHEMA, views, queries, list(stream(seed, events)), STATIC, prepare=prepare)
