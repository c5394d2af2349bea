"""Lives of a database: whatever its API offers in random order, and DuckDB, which runs the same statements.

Views come and go while rows do, listeners hear of some views, bad updates are refused, the database is closed, and
opened with another engine, strategy or number of threads. After each step all tables, views and listeners must agree.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.oracle.oracle import DuckOracle, Row, difference
from viewlet.database.memory import Database, EngineName

RELATIONS = """
CREATE STREAM r (id INTEGER PRIMARY KEY, g INTEGER, v INTEGER, s VARCHAR, t TIMESTAMP);
CREATE STREAM q (g INTEGER NOT NULL, u BIGINT, w DECIMAL(8,2), b BOOLEAN);
CREATE TABLE names (g INTEGER, name VARCHAR);
"""
VIEWS = {
    "sums": "SELECT g, sum(v) AS s, count(*) AS n FROM r GROUP BY g",
    "pairs": "SELECT r.g, sum(r.v * q.u) AS s FROM r JOIN q ON r.g = q.g GROUP BY r.g",
    "ends": "SELECT s, max(v) AS m, min(t) AS t FROM r GROUP BY s",
    "best": "SELECT g, sum(v) AS s FROM r GROUP BY g ORDER BY s DESC NULLS LAST, g LIMIT 2",
    "named": "SELECT name, count(*) AS n, avg(u) AS a FROM q JOIN names USING (g) GROUP BY name",
    "places": "SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v, id) AS p FROM r",
    "some": "SELECT count(*) AS n FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.g = r.g AND q.b)",
    "sizes": "SELECT n, count(*) AS c FROM (SELECT g, count(*) AS n FROM q GROUP BY g) GROUP BY n",
    "outer_rows": "SELECT r.id, q.w FROM r LEFT JOIN q ON r.g = q.g",
    "middle": "SELECT b, median(u) AS m FROM q GROUP BY b",
    "texts": "SELECT DISTINCT s FROM r WHERE v > 0",
    "rolled": "SELECT g, sum(w) AS w FROM q GROUP BY ROLLUP (g)",
    "below": "SELECT id, (SELECT sum(u) FROM q WHERE q.u < r.v) AS z FROM r",
    "without": "SELECT g, v FROM r EXCEPT SELECT g, u FROM q",
    "lists": "SELECT g, string_agg(s, ',' ORDER BY id) AS l FROM r GROUP BY g",
    "above": "SELECT g FROM r GROUP BY g HAVING sum(v) > (SELECT avg(v) FROM r)",
    "rows_of_q": "SELECT * FROM q",
    "large": "SELECT g, n FROM sums WHERE n > 1",
    "total": "SELECT sum(s) AS t FROM sums",
}
OVER_SUMS = ("large", "total")
TYPES: dict[str, dict[str, pa.DataType]] = {
    "r": {"id": pa.int32(), "g": pa.int32(), "v": pa.int32(), "s": pa.string(), "t": pa.timestamp("us")},
    "q": {"g": pa.int32(), "u": pa.int64(), "w": pa.decimal128(8, 2), "b": pa.bool_()},
    "names": {"g": pa.int32(), "name": pa.string()},
}
VALUES: dict[str, tuple[list[object], ...]] = {
    "r": (
        list(range(12)),
        [1, 2, 3, None],
        [0, 1, 5, -4, None, 9],
        ["a", "b", "", None, "a text that is longer than a short one"],
        [dt.datetime(2024, 1, 1, h) for h in range(3)],
    ),
    "q": ([1, 2, 3], [0, 1, 3, -5, None, 2**40], [Decimal("1.25"), Decimal(-3), None], [True, False, None]),
    "names": ([1, 2, 3, None], ["one", "two", None]),
}
CHANGES = [
    "UPDATE r SET v = v + 1, s = 'u' WHERE id < 5",
    "UPDATE r SET g = NULL WHERE v IS NULL OR id = 3",
    "DELETE FROM q WHERE b OR u IS NULL",
    "INSERT INTO q VALUES (1, 7, 0.25, NULL), (2, NULL, NULL, TRUE), (2, NULL, NULL, TRUE)",
    "UPDATE names SET name = 'three' WHERE g = 3",
    "UPDATE q SET w = NULL, u = coalesce(u, 0) - 1 WHERE g = 2",
    "TRUNCATE r",
    "TRUNCATE names",
]
BAD: list[Callable[[Database], object]] = [
    lambda db: db.insert("r", [(99, 1, 1, "x", None), (99, 1, 1, "x", None)]),
    lambda db: db.insert("q", [(1, 1, None, None), (None, 1, None, None)]),
    lambda db: db.delete("q", [(1, 77, None, None)]),
    lambda db: db.apply([("+", "q", (1, 5, None, None)), ("+", "names", (1, "x")), ("-", "r", (55, 1, 1, "x", None))]),
    lambda db: db.insert("q", arrow("q", [(1, 1, None, None)]).set_column(0, "g", pa.array([None], pa.int32()))),
]
STRATEGIES = ("optimized", "optimized", "optimized", "cost", "naive", "classical", "reevaluate")


def arrow(relation: str, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(TYPES[relation])
    arrays = [pa.array(list(c), t) for c, t in zip(columns, TYPES[relation].values(), strict=True)]
    return pa.Table.from_arrays(arrays, list(TYPES[relation]))


@dataclass
class Heard:
    """The rows of a view by what its listener was told. ``ask`` takes what waits, of an iterator."""

    rows: Counter[Row]
    end: Callable[[], object]
    ask: Callable[[], Iterable[tuple[int, Row]]] = tuple

    def look(self) -> Counter[Row]:
        for weight, row in self.ask():
            self.rows[row] += weight
        assert all(n >= 0 for n in self.rows.values())
        return +self.rows


class Life:
    """The same for the same seed, but for the moment at which machine code takes over."""

    def __init__(self, seed: int, folder: Path, engines: Sequence[EngineName]) -> None:
        self.chance, self.engines = random.Random(seed), engines
        self.folder = folder if self.chance.random() < 0.5 else None
        self.oracle = DuckOracle(viewlet.compile(RELATIONS).relations)
        self.oracle.connection.execute(f"CREATE TEMP VIEW sums AS {VIEWS['sums']}")
        self.views: list[str] = []
        self.selects = dict(VIEWS)
        self.heard: dict[str, Heard] = {}
        self.filled = 0  # views that had rows, each step counted
        self.db = self._opened()
        self.db.execute(RELATIONS)
        self.create()

    def _opened(self) -> Database:
        engine, strategy = self.chance.choice(self.engines), self.chance.choice(STRATEGIES)
        native: dict[str, Any] = {}
        if engine == "native":
            native = {"wait_native": self.chance.random() < 0.4, "threads": self.chance.choice([1, 1, 2])}
        return viewlet.connect(self.folder, engine=engine, strategy=strategy, **native)

    def step(self) -> None:
        self.chance.choice(STEPS)(self)

    def rows(self, relation: str) -> list[Row]:
        return self.oracle.rows(f"SELECT * FROM {relation}")

    def some_rows(self, relation: str, most: int) -> list[Row]:
        """New rows, each with a key of its own."""
        rows = [tuple(map(self.chance.choice, VALUES[relation])) for _ in range(self.chance.randint(1, most))]
        if relation != "r":
            return rows
        taken = {row[0] for row in self.rows("r")}
        return list({row[0]: row for row in rows if row[0] not in taken}.values())

    # -- rows ----------------------------------------------------------------------------------------------------------

    def insert(self) -> None:
        relation = self.chance.choice(["r", "r", "q", "q", "names"])
        rows = self.some_rows(relation, self.chance.choice([1, 6, 30]))
        self._give("+", relation, rows)

    def delete(self) -> None:
        relation = self.chance.choice(["r", "r", "q", "q", "names"])
        rows = self.rows(relation)
        self._give("-", relation, self.chance.sample(rows, min(len(rows), self.chance.choice([1, 2, 6, 30]))))

    def _give(self, op: str, relation: str, rows: list[Row]) -> None:
        for row in rows:
            self.oracle.apply(op, relation, row)
        update = self.db.insert if op == "+" else self.db.delete
        match self.chance.choice(["rows", "arrow", "pieces", "dicts", "one", "events", "handle"]):
            case "rows":
                update(relation, list(rows))
            case "arrow":
                update(relation, arrow(relation, rows))
            case "pieces":
                table, cut = arrow(relation, rows), self.chance.randint(0, len(rows))
                update(relation, pa.concat_tables([table.slice(0, cut), table.slice(cut)]))
            case "dicts":
                update(relation, [dict(zip(TYPES[relation], row, strict=True)) for row in rows])
            case "one":
                for row in rows:
                    update(relation, row)
            case "events":
                self.db.apply([(op, relation, row) for row in rows])
            case "handle":
                handle = self.db.table(relation)
                for row in rows:
                    (handle.insert if op == "+" else handle.delete)(row)

    def mix(self) -> None:
        events: list[tuple[str, str, Row]] = []
        for _ in range(self.chance.choice([2, 6, 20])):
            relation = self.chance.choice(["r", "q"])
            rows = self.rows(relation)
            going = rows and self.chance.random() < 0.45
            for row in [self.chance.choice(rows)] if going else self.some_rows(relation, 1):
                events.append(("-" if going else "+", relation, row))
                self.oracle.apply(*events[-1])
        self.db.apply(events)

    def upsert(self) -> None:
        rows = [tuple(map(self.chance.choice, VALUES["r"])) for _ in range(self.chance.randint(1, 8))]
        for row in rows:
            self.oracle.connection.execute("DELETE FROM r WHERE id = ?", row[:1])
            self.oracle.apply("+", "r", row)
        match self.chance.choice(["rows", "arrow", "handle"]):
            case "rows":
                self.db.upsert("r", rows)
            case "arrow":
                self.db.upsert("r", arrow("r", rows))
            case "handle":
                handle = self.db.table("r")
                for row in rows:
                    handle.upsert(row)

    def change(self) -> None:
        sql = self.chance.choice(CHANGES)
        self.oracle.connection.execute(sql)
        self.db.execute(sql)

    def refused(self) -> None:
        with pytest.raises(viewlet.DataError):
            self.chance.choice(BAD)(self.db)

    # -- views ---------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        free = [v for v in VIEWS if v not in self.views and (v not in OVER_SUMS or "sums" in self.views)]
        names = [v for v in free if self.chance.random() < 3 / len(free)]
        self.selects |= {v: VIEWS[v] for v in names}
        self.db.execute("".join(f"CREATE MATERIALIZED VIEW {v} AS {VIEWS[v]};" for v in names))
        self.views += names

    def replace(self) -> None:
        """Those who listen to the view hear of what it has now."""
        free = [v for v in self.views if v not in ("sums", *OVER_SUMS)]
        if free:
            free = [v for v in free if v in self.heard] or free
            name, other = self.chance.choice(free), self.chance.choice([v for v in VIEWS if v not in OVER_SUMS])
            self.selects[name] = VIEWS[other]
            self.db.execute(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {VIEWS[other]}")

    def drop(self) -> None:
        read = ["sums"] if any(v in self.views for v in OVER_SUMS) else []
        free = [v for v in self.views if v not in read]
        if free:
            name = self.chance.choice(free)
            self.db.execute(f"DROP MATERIALIZED VIEW {name}")
            self.views.remove(name)
            self.heard.pop(name, None)

    def hear(self) -> None:
        free = [v for v in self.views if v not in self.heard]
        if not free:
            return
        view = self.db.view(self.chance.choice(free))
        if self.chance.random() < 0.5:
            changes = view.changes(snapshot=True)
            self.heard[view.name] = Heard(Counter(), changes.close, lambda: changes)
            return
        rows = view.weights()

        def told(change: tuple[int, Row]) -> None:
            rows[change[1]] += change[0]

        self.heard[view.name] = Heard(rows, view.subscribe(told))

    def no_longer_hear(self) -> None:
        if self.heard:
            self.heard.pop(self.chance.choice(list(self.heard))).end()

    # -- the database --------------------------------------------------------------------------------------------------

    def begin_again(self) -> None:
        if self.folder is not None:
            self.db.close()
            self.heard.clear()
            self.db = self._opened()

    def write_down(self) -> None:
        if self.folder is not None:
            self.db.checkpoint()

    def ask(self) -> None:
        assert self.db.sql("SELECT count(*), sum(v) FROM r").rows() == self.oracle.rows(
            "SELECT count(*), sum(v) FROM r"
        )
        if "sums" in self.views:
            view = self.db.view("sums")
            by_key = {row[0]: row for row in view.rows()}
            assert [view.get(g=g) for g in (1, 2, 3, None)] == [by_key.get(g) for g in (1, 2, 3, None)]
            assert len(view.first(2)) == min(2, len(view))

    def check(self) -> None:
        for name in TYPES:
            assert Counter(self.db.table(name).rows()) == Counter(self.rows(name)), name
        for name in self.views:
            rows, expected = self.db.view(name).rows(), self.oracle.rows(self.selects[name])
            assert difference(rows, expected) is None, (name, self.db.tier)
            self.filled += bool(expected)
            if name in self.heard:
                assert self.heard[name].look() == Counter(rows), (name, self.db.tier)


STEPS: list[Callable[[Life], None]] = [
    *[Life.insert] * 6,
    *[Life.delete] * 3,
    *[Life.mix] * 2,
    *[Life.create] * 3,
    *[Life.hear] * 2,
    Life.replace,
    *(Life.change, Life.change, Life.upsert, Life.refused, Life.drop, Life.no_longer_hear),
    *(Life.begin_again, Life.write_down, Life.ask),
]
