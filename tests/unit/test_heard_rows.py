"""Single rows go straight to machine code while somebody listens, too: what is told adds up to the view."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pytest

import viewlet
from viewlet import Database
from viewlet.engines.native.build import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
SALES = """
SELECT shop, day, sum(price) AS paid, sum(weight) AS weight, count(*) AS n FROM sold
GROUP BY shop, day HAVING count(*) > 1
"""
SCRIPT = f"""
CREATE STREAM sold (shop VARCHAR, day DATE NOT NULL, price DECIMAL(9, 2) NOT NULL, weight DOUBLE NOT NULL);
CREATE MATERIALIZED VIEW sales AS {SALES};
CREATE MATERIALIZED VIEW shops AS SELECT shop, count(*) AS n FROM sold GROUP BY shop;
CREATE STREAM side (k BIGINT NOT NULL, a DOUBLE NOT NULL);
CREATE MATERIALIZED VIEW squares AS
  SELECT s.k, sum(s.a * t.a) AS square FROM side s, side t WHERE s.k = t.k GROUP BY s.k;
"""


@pytest.fixture
def through_python(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows that did not go straight."""
    update, rows_seen = Database._update, list[Any]()

    def seen(self: Database, relation: str, times: int, rows: Any) -> None:
        rows_seen.append(rows)
        update(self, relation, times, rows)

    monkeypatch.setattr(Database, "_update", seen)
    return rows_seen


@pytest.fixture
def db(through_python: list[Any]) -> Iterator[Database]:
    with viewlet.connect(wait_native=True) as database:
        database.execute(SCRIPT)
        yield database


def events(rng: Random, count: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    there: list[tuple[Any, ...]] = []
    for _ in range(count):
        if there and rng.random() < 0.45:
            yield "-", there.pop(rng.randrange(len(there)))
        else:
            day, price = dt.date(2024, 1, rng.randint(1, 2)), Decimal(rng.randint(-3, 3)) / 4
            there.append((rng.choice(["a", "b", None]), day, round(price, 2), rng.choice([0.5, -0.5, 1.25])))
            yield "+", there[-1]
    yield from (("-", row) for row in there)


def test_what_is_told_adds_up_to_what_duckdb_says(db: Database, through_python: list[Any]) -> None:
    sold, changes, callback = db.stream("sold"), db.view("sales").changes(), list[Any]()
    db.view("shops").subscribe(callback.append)
    sold.insert(("a", dt.date(2024, 1, 1), Decimal("0.5"), 1.0))  # finds the way
    sold.delete(("a", dt.date(2024, 1, 1), Decimal("0.5"), 1.0))
    referee, rows, shops, seen = duckdb.connect(), Counter[Any](), Counter[Any](), 0
    referee.execute("CREATE TABLE sold (shop VARCHAR, day DATE, price DECIMAL(9, 2), weight DOUBLE)")
    through_python.clear()
    for op, row in events(Random(3), 120):
        if op == "+":
            sold.insert(row)
            referee.execute("INSERT INTO sold VALUES (?, ?, ?, ?)", row)
        else:
            sold.delete(row)
            same = "shop IS NOT DISTINCT FROM ? AND day = ? AND price = ? AND weight = ?"
            referee.execute(f"DELETE FROM sold WHERE rowid = (SELECT min(rowid) FROM sold WHERE {same})", row)
        told = list(changes)
        assert [weight for weight, _ in told] == sorted(weight for weight, _ in told), "what went, then what came"
        for weight, changed in told:
            rows[changed] += weight
        expected = Counter(referee.execute(SALES).fetchall())
        assert +rows == expected == Counter(db.view("sales").rows())
        assert list(map(repr, sorted(+rows, key=repr))) == list(map(repr, sorted(db.view("sales").rows(), key=repr)))
        seen = max(seen, len(expected))
    assert seen > 3
    for weight, changed in callback:
        shops[changed] += weight
    assert +shops == Counter(db.view("shops").rows()) == Counter()
    assert len(callback) > 100
    assert through_python == []


def test_a_row_that_cannot_be_shown_to_who_listens_is_undone(db: Database, through_python: list[Any]) -> None:
    side, heard = db.stream("side"), db.view("squares").changes()
    side.insert((1, 2.0))
    side.insert((2, 3.0))
    assert [*heard][-1] == (1, (2, 9.0))
    through_python.clear()
    with pytest.raises(viewlet.OutOfRangeError):
        side.insert((1, 1e200))
    assert list(heard) == []
    side.insert((1, 1.0))
    assert list(heard) == [(-1, (1, 4.0)), (1, (1, 9.0))]
    assert sorted(db.view("squares").rows()) == [(1, 9.0), (2, 9.0)]
    assert through_python == []


def test_a_callback_may_update_and_what_it_raises_is_raised_when_all_were_told(db: Database) -> None:
    side, heard = db.stream("side"), list[Any]()

    def once(change: tuple[int, tuple[Any, ...]]) -> None:
        heard.append(change)
        if change == (1, (1, 4.0)):
            side.insert((7, 1.0))
        if change == (1, (7, 1.0)):
            raise KeyboardInterrupt

    db.view("squares").subscribe(once)
    waiting = db.view("squares").changes()
    with pytest.raises(KeyboardInterrupt):
        side.insert((1, 2.0))
    assert heard == list(waiting) == [(1, (1, 4.0)), (1, (7, 1.0))]
    side.delete((1, 2.0))
    assert list(waiting) == [(-1, (1, 4.0))]
    assert db.view("squares").rows() == [(7, 1.0)]


def test_with_a_log_rows_go_through_python_and_are_in_it(tmp_path: Any) -> None:
    with viewlet.connect(tmp_path / "kept", wait_native=True) as first:
        first.execute(SCRIPT)
        side, heard = first.stream("side"), first.view("squares").changes()
        side.insert((1, 2.0))
        side.insert((1, 3.0))
        assert list(heard) == [(1, (1, 4.0)), (-1, (1, 4.0)), (1, (1, 25.0))]
    with viewlet.connect(tmp_path / "kept", wait_native=True) as again:
        assert again.view("squares").rows() == [(1, 25.0)]
