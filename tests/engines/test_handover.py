"""A database changes its program while rows come and go: what both programs keep changes hands, the rest is filled.

Every view is compared with DuckDB after every event. Every subscriber's changes add up to the rows of its view.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest

import viewlet
from tests.oracle.oracle import DuckOracle, Vacuity, difference
from viewlet import Database
from viewlet.engines.native.build import find_compiler
from viewlet.engines.native.engine import NativeEngine

pytestmark = [
    pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"),
]

SCHEMA = """
CREATE STREAM trades (k BIGINT, name VARCHAR, price DOUBLE, paid DECIMAL(10,2), on_day DATE);
CREATE STREAM quotes (k BIGINT NOT NULL, size BIGINT NOT NULL);
CREATE TABLE sectors (k BIGINT NOT NULL, sector VARCHAR NOT NULL);
"""
FIRST = {
    "by_name": "SELECT name, sum(price * size) AS total, count(*) AS n, max(size) AS most "
    "FROM trades JOIN quotes USING (k) GROUP BY name",
    "average": "SELECT k, avg(paid) AS average FROM trades GROUP BY k HAVING count(*) > 1",
    "computed": "SELECT upper(name) AS loud, name || '!' AS cry, count(*) AS n FROM trades GROUP BY ALL",
    "whole": "SELECT count(*) AS n, sum(price) AS total, min(on_day) AS since FROM trades",
    "below": "SELECT t.k, sum(q.size) AS size FROM trades t, quotes q WHERE q.size < t.price GROUP BY t.k",
    "top": "SELECT k, count(*) AS n FROM trades GROUP BY k ORDER BY n DESC, k LIMIT 3",
}
LATER = {
    "by_k": "SELECT k, sum(price) AS total, min(name) AS first FROM trades GROUP BY k",
    "by_sector": "SELECT sector, count(*) AS n, sum(paid) AS paid FROM trades JOIN sectors USING (k) GROUP BY sector",
    "lowered": "SELECT lower(name) AS quiet, sum(size) AS size FROM trades t, quotes q WHERE t.k < q.k GROUP BY 1",
    "days": "SELECT on_day, count(DISTINCT name) AS names FROM trades GROUP BY on_day",
}
NAMES = ["ada", "Bob", "çelik", "", None, "a rather long name that is in no register"]
SECTORS = [(1, "oil"), (2, "tech"), (2, "media"), (5, "oil")]


@pytest.fixture(autouse=True)
def handed_over() -> Iterator[mock.Mock]:
    """Counts how often one program followed another."""
    following = mock.Mock(side_effect=NativeEngine.following)
    with mock.patch.object(NativeEngine, "following", following):
        yield following


class World:
    """A database on the native engine beside DuckDB, and what subscribers were told."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.db: Database = viewlet.connect(wait_native=True)
        self.db.execute(SCHEMA)
        self.referee = DuckOracle(self.db.program.relations)
        self.views: dict[str, str] = {}
        self.told: dict[str, Counter[tuple[Any, ...]]] = {}
        self.rows: list[tuple[str, tuple[Any, ...]]] = []
        self.vacuity: dict[str, Vacuity] = {}

    def define(self, views: dict[str, str]) -> None:
        self.db.execute(";".join(f"CREATE MATERIALIZED VIEW {name} AS {sql}" for name, sql in views.items()))
        self.views |= views
        self.vacuity |= {name: Vacuity() for name in views}

    def listen(self, view: str) -> Any:
        self.told[view] = self.db.view(view).weights()

        def tell(change: tuple[int, tuple[Any, ...]]) -> None:
            weight, row = change
            self.told[view][row] += weight

        return self.db.view(view).subscribe(tell)

    def events(self, count: int) -> None:
        for _ in range(count):
            self.event()
            self.check()

    def event(self) -> None:
        rng = self.rng
        if self.rows and rng.random() < 0.4:
            relation, row = self.rows.pop(rng.randrange(len(self.rows)))
            self.db.delete(relation, row)
            self.referee.apply("-", relation, row)
            return
        relation = rng.choice(["trades", "quotes"])
        row = self.row(relation)
        self.rows.append((relation, row))
        self.db.insert(relation, row)
        self.referee.apply("+", relation, row)

    def row(self, relation: str) -> tuple[Any, ...]:
        rng = self.rng
        if relation == "quotes":
            return rng.randrange(6), rng.randrange(-3, 9)
        price = rng.choice([None, -1.5, 0.25, 7.0, 8.0])
        paid = rng.choice([None, Decimal("0.10"), Decimal("-12.34"), Decimal("99999999.99")])
        day = rng.choice([None, date(1999, 12, 31), date(2024, 2, 29)])
        return rng.choice([None, 0, 1, 2, 5]), rng.choice(NAMES), price, paid, day

    def check(self) -> None:
        assert isinstance(self.db.engine, NativeEngine)
        for name, sql in self.views.items():
            ours = self.db.view(name).rows()
            self.vacuity[name].watch(ours)
            assert difference(ours, self.referee.rows(sql)) is None, name
        for name, rows in self.told.items():
            assert +rows == self.db.view(name).weights(), name


def test_views_come_and_go_beside_rows(handed_over: mock.Mock) -> None:
    world = World(1)
    world.define(FIRST)
    world.events(25)
    world.db.insert("sectors", SECTORS)
    world.referee.load("sectors", SECTORS)
    world.define(LATER)
    world.check()
    world.events(25)
    world.db.execute("DROP VIEW below; CREATE STREAM other (a BIGINT)")
    del world.views["below"]
    world.referee.connection.execute("CREATE TABLE other (a BIGINT)")
    world.define({"others": "SELECT count(*) AS n FROM other", "below": FIRST["below"]})
    world.events(20)
    assert handed_over.call_count == 3
    for name, vacuity in world.vacuity.items():
        if name != "others":
            vacuity.check()


def test_subscribers_come_and_go_beside_rows(handed_over: mock.Mock) -> None:
    world = World(2)
    world.define(FIRST)
    world.events(10)
    ends = [world.listen(name) for name in FIRST]
    tells = {name for name in FIRST if world.db._tells(name)}
    assert tells == FIRST.keys() - {"top"}, "a view of first rows is compared, and is short"
    world.events(25)
    world.define({"by_k": LATER["by_k"]})
    world.events(10)
    for end, name in zip(ends, FIRST, strict=True):
        end()
        del world.told[name]
        if name == "average":
            world.events(5)
    world.db.tier  # noqa: B018  # a look at the database is enough for it to go over
    assert not world.db._tells(), "nobody listens: the program takes no notes"
    world.events(10)
    world.listen("by_k")
    world.events(15)
    assert handed_over.call_count == 4
    while world.rows:
        relation, row = world.rows.pop()
        world.db.delete(relation, row)
        world.referee.apply("-", relation, row)
    world.check()
    texts = {name: entries for name, entries, _ in world.db.engine.memory()}["texts"]
    assert texts <= 2, "constants of the program; no text of a row that is gone"


def test_what_cannot_be_filled_changes_nothing() -> None:
    """The product overflows in a new map: the view is refused, and all that was there goes on."""
    world = World(3)
    world.define({"whole": FIRST["whole"], "by_name": FIRST["by_name"]})
    world.events(10)
    big = 2**62
    for row in ((1, big), (2, big)):
        world.rows.append(("quotes", row))
        world.db.insert("quotes", row)
        world.referee.apply("+", "quotes", row)
    with pytest.raises(viewlet.Error):
        world.db.execute("CREATE MATERIALIZED VIEW large AS SELECT sum(size * size * size) AS s FROM quotes")
    world.check()
    world.events(10)
    texts = world.db.engine.memory()[-1]
    assert texts[0] == "texts"


def test_keys_go_on_with_the_next_program() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute(
        "CREATE STREAM t (id BIGINT PRIMARY KEY, x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM t"
    )
    db.insert("t", [(1, 10), (2, 20)])
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM t")
    with pytest.raises(viewlet.DataError, match="is there already"):
        db.insert("t", (1, 11))
    db.upsert("t", (1, 11))
    assert (db.view("v").rows(), db.view("w").rows()) == ([(31,)], [(2,)])
