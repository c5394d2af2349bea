"""A life of a database, step by step: what each step does to it, and what it should hold then, by DuckDB."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.oracle.oracle import DuckOracle, Row, difference
from viewlet.database.memory import Database
from viewlet.sql.translate import translate

RELATIONS = """
CREATE STREAM sales (k BIGINT, city VARCHAR, price DECIMAL(12,2), x DOUBLE, day DATE, at TIMESTAMP, ok BOOLEAN);
CREATE STREAM stock (id BIGINT PRIMARY KEY, city VARCHAR, n INTEGER);
CREATE TABLE cities (city VARCHAR, land VARCHAR);
"""
LOOSE = "CREATE STREAM loose (a BIGINT, b VARCHAR);"
VIEWS = {
    "by_city": "SELECT city, sum(price) AS p, count(*) AS n, min(day) AS first FROM sales GROUP BY city",
    "by_land": "SELECT land, sum(price) AS p, count(ok) AS n FROM sales, cities "
    "WHERE sales.city = cities.city GROUP BY land",
    "short": "SELECT sales.city, count(*) AS n, sum(x) AS x FROM sales, stock "
    "WHERE sales.city = stock.city AND sales.k < stock.n GROUP BY sales.city",
    "stars": "SELECT regexp_extract(city, '^.') AS c, count(*) AS n FROM stock GROUP BY regexp_extract(city, '^.')",
}
COLUMNS = {r.name: [c.name for c in r.columns] for r in translate(RELATIONS + LOOSE).relations}
CITIES = ["Oslo", "Rome", "Ürümqi", "", "a\nb", None]
Act = Callable[[Database], object]


@dataclass
class Model:
    """What the database should hold. ``loose`` is the name that this stream has now."""

    tables: dict[str, Counter[Row]] = field(default_factory=lambda: {name: Counter() for name in COLUMNS})
    views: set[str] = field(default_factory=set)
    loose: str = "loose"
    begun: bool = False

    def change(self, name: str, rows: Iterable[Row], times: int = 1) -> None:
        for row in rows:
            self.tables[name][row] += times
            assert self.tables[name][row] >= 0
        self.tables[name] = +self.tables[name]


class Life:
    """Steps 0, 1, 2, …, the same for the same seed. A steady life has all views from the start: one program."""

    def __init__(self, seed: int, steady: bool = False) -> None:
        self.seed, self.steady, self.done = seed, steady, 0
        self.model = Model()

    def step(self) -> Act:
        """The model is after the step, and the database will be when it has acted."""
        chance = random.Random(f"{self.seed}/{self.done}")
        self.done += 1
        if self.done == 1:
            return self._begin()
        return chance.choice(STEADY if self.steady else STEPS)(self.model, chance)

    def _begin(self) -> Act:
        self.model.begun = True
        self.model.views = set(VIEWS) if self.steady else set()
        views = [f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]};" for name in sorted(self.model.views)]
        return lambda db: db.execute(RELATIONS + LOOSE + "\n".join(views))

    def copy(self) -> Life:
        return deepcopy(self)


def check(db: Database, model: Model) -> None:
    """Stored rows, and each view against DuckDB."""
    program = db.program
    if not model.begun:
        assert not program.relations, "the first step"
        return
    names = {model.loose if name == "loose" else name: name for name in COLUMNS}
    assert {r.name for r in program.relations} == set(names), "streams and tables"
    assert {result.name for result in program.results} == model.views
    oracle = DuckOracle(translate(RELATIONS + LOOSE).relations)
    for name, rows in model.tables.items():
        there = oracle.connection
        there.register("given", _as_table(name, list(rows.elements())))
        there.execute(f"INSERT INTO {name} SELECT * FROM given")
    assert Counter(r for r, n in db.engine.table(model.loose).items() for _ in range(n)) == model.tables["loose"]
    for view in model.views:
        assert difference(db.view(view).rows(), oracle.rows(VIEWS[view])) is None, view
    for name in ("sales", "stock", "cities"):
        assert sum(db.engine.table(name).values()) == model.tables[name].total(), name


def _as_table(name: str, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS[name])
    types = TYPES[name]
    return pa.table([pa.array(v, t) for v, t in zip(columns, types, strict=True)], COLUMNS[name])


TYPES = {
    "sales": [
        pa.int64(),
        pa.string(),
        pa.decimal128(12, 2),
        pa.float64(),
        pa.date32(),
        pa.timestamp("us"),
        pa.bool_(),
    ],
    "stock": [pa.int64(), pa.string(), pa.int32()],
    "cities": [pa.string(), pa.string()],
    "loose": [pa.int64(), pa.string()],
}

# -- the steps ---------------------------------------------------------------------------------------------------------


def _sale(chance: random.Random) -> Row:
    return (
        chance.choice([None, -(2**63), *range(5)]),
        chance.choice(CITIES),
        chance.choice([None, Decimal("0.01"), Decimal("-7.25"), Decimal("9999999999.99")]),
        chance.choice([None, 0.5, -3.25, 1e15]),
        chance.choice([None, dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),
        chance.choice([None, dt.datetime(2024, 1, 1, 12, 30, 0, 1)]),
        chance.choice([None, True, False]),
    )


def _insert_one(model: Model, chance: random.Random) -> Act:
    row = _sale(chance)
    model.change("sales", [row])
    given: Any = dict(zip(COLUMNS["sales"], row, strict=True)) if chance.random() < 0.3 else row
    return lambda db: db.insert("sales", given)


def _insert_many(model: Model, chance: random.Random) -> Act:
    rows = [_sale(chance) for _ in range(chance.choice([2, 40, 300]))]
    model.change("sales", rows)
    if chance.random() < 0.5:
        table = _as_table("sales", rows)
        return lambda db: db.insert("sales", table)
    return lambda db: db.insert("sales", rows)


def _delete(model: Model, chance: random.Random) -> Act:
    there = sorted(model.tables["sales"].elements(), key=repr)
    rows = chance.sample(there, min(len(there), chance.choice([1, 20, 100])))
    model.change("sales", rows, -1)
    return lambda db: db.delete("sales", rows)


def _mixed(model: Model, chance: random.Random) -> Act:
    rows, land = [_sale(chance) for _ in range(chance.choice([3, 50]))], (chance.choice(CITIES), "N")
    model.change("sales", rows[1:])
    model.change("loose", [(len(rows), "é")])
    events: list[Any] = [("+", "sales", row) for row in rows]
    events += [("-", "sales", rows[0]), (1, model.loose, (len(rows), "é"))]
    if chance.random() < 0.3:
        model.change("cities", [land])
        events.append(("+", "cities", land))
    elif chance.random() < 0.5:
        table = _as_events(events, {"sales": "sales", model.loose: "loose"})
        return lambda db: db.apply(table)
    return lambda db: db.apply(events)


def _as_events(events: list[Any], names: dict[str, str]) -> pa.Table:
    """In Arrow each relation has a column of its rows."""
    ops = pa.array([{"+": 1, "-": -1}.get(op, op) for op, _, _ in events], pa.int8())
    relations = pa.array([relation for _, relation, _ in events]).dictionary_encode()
    table = pa.table({"op": ops, "relation": relations})
    for name, of in names.items():
        fields = list(zip(COLUMNS[of], TYPES[of], strict=True))
        rows = [dict(zip(COLUMNS[of], row, strict=True)) if relation == name else None for _, relation, row in events]
        table = table.append_column(name, pa.array(rows, pa.struct(fields)))
    return table


def _upsert(model: Model, chance: random.Random) -> Act:
    rows = [(i, chance.choice(CITIES), chance.randrange(9)) for i in chance.sample(range(30), chance.choice([1, 20]))]
    _replace(model, rows)
    return lambda db: db.upsert("stock", rows)


def _replace(model: Model, rows: Iterable[Row]) -> None:
    stock = {row[0]: row for row in model.tables["stock"]} | {row[0]: row for row in rows}
    model.tables["stock"] = Counter(stock.values())


def _statements(model: Model, chance: random.Random) -> Act:
    rows = [(row[0], row[1], 5) if row[0] < 10 else row for row in model.tables["stock"]]
    model.tables["stock"] = Counter(rows)
    model.change("cities", [("Oslo", "NO")])
    return lambda db: db.execute("UPDATE stock SET n = 5 WHERE id < 10; INSERT INTO cities VALUES ('Oslo', 'NO')")


def _cities(model: Model, chance: random.Random) -> Act:
    if chance.random() < 0.3 and model.tables["cities"]:
        model.tables["cities"] = Counter()
        return lambda db: db.execute("TRUNCATE cities")
    rows = [(city, "IT") for city in CITIES[:4]]
    model.change("cities", rows)
    return lambda db: db.insert("cities", rows)


def _view(model: Model, chance: random.Random) -> Act:
    """One comes or goes; rows change in the same script, sometimes."""
    name = chance.choice(sorted(VIEWS))
    model.views ^= {name}
    script = f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}" if name in model.views else f"DROP VIEW {name}"
    if chance.random() < 0.5:
        model.change("cities", [("Rome", name)])
        script += f"; INSERT INTO cities VALUES ('Rome', '{name}')"
    elif chance.random() < 0.5:
        model.tables["cities"] = Counter({row: n for row, n in model.tables["cities"].items() if row[0] != "Oslo"})
        script += "; DELETE FROM cities WHERE city = 'Oslo'"
    return lambda db: db.execute(script)


def _move(model: Model, chance: random.Random) -> Act:
    """The stream that no view reads gets another name, or goes and comes again, empty."""
    old = model.loose
    if chance.random() < 0.3:
        model.tables["loose"] = Counter({(1, None): 2})
        script = f"DROP STREAM {old}; {LOOSE.replace('loose', old)} INSERT INTO {old} VALUES (1, NULL), (1, NULL)"
        return lambda db: db.execute(script)
    model.loose = "loose" if old != "loose" else "tight"
    model.change("loose", [(3, "in between")])
    script = f"INSERT INTO {old} VALUES (3, 'in between'); ALTER STREAM {old} RENAME TO {model.loose}"
    return lambda db: db.execute(script)


def _checkpoint(model: Model, chance: random.Random) -> Act:
    return lambda db: db.checkpoint()


STEADY = (_insert_one, _insert_one, _insert_many, _delete, _mixed, _upsert, _statements, _cities, _checkpoint)
STEPS = (*STEADY, _view, _move)
