"""Single rows go straight to machine code while somebody listens, too: what is told adds up to the view."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
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


def test_who_iterates_is_told_by_machine_code_what_a_comparison_of_rows_tells(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single rows, lists and mixed events; two who iterate over one view, and one over another."""
    with viewlet.connect(engine="python") as slow:
        slow.execute(SCRIPT)
        told, expected = [
            [of.view("sales").changes(), of.view("sales").changes(), of.view("shops").changes()] for of in (db, slow)
        ]
        monkeypatch.setattr(slow._subscriptions, "publish", published := Counted(slow._subscriptions.publish))
        monkeypatch.setattr(db._subscriptions, "publish", never := Counted(None))
        sold, most = db.stream("sold"), 0
        for number, (op, row) in enumerate(events(Random(4), 90)):
            fast = [sold.insert if op == "+" else sold.delete, partial(both, db, op, 0), partial(both, db, op, 1)]
            fast[number % 3](row)
            both(slow, op, number % 2, row)
            for ours, theirs in zip(told, expected, strict=True):
                changes = list(ours)
                assert Counter(changes) == Counter(theirs)
                assert [type(cell) for _, cells in changes for cell in cells].count(int) >= len(changes)
                most = max(most, len(changes))
        assert most == 2
        assert published.calls > 50
        assert never.calls == 0, "no Python"


class Counted:
    def __init__(self, call: Any) -> None:
        self.call, self.calls = call, 0

    def __call__(self, looks: Any) -> None:
        looks = list(looks)
        self.calls += bool(looks)
        if self.call is not None:
            self.call(looks)


def both(db: Database, op: str, mixed: int, row: tuple[Any, ...]) -> None:
    """As events, or as a list of rows."""
    if mixed:
        db.apply([(op, "sold", row)])
    else:
        (db.insert if op == "+" else db.delete)("sold", [row])


def test_a_batch_changes_many_keys(db: Database) -> None:
    """So many that they are found by a table, and that memory of answers grows, and is used again."""
    changes, rows = db.view("squares").changes(), Counter[Any]()
    for turn in range(1, 4):
        db.insert("side", [(k, float(turn)) for k in range(20_000 // turn)])
        for weight, row in changes:
            rows[row] += weight
        assert +rows == Counter(db.view("squares").rows())
    db.delete("side", [(k, 1.0) for k in range(20_000)])
    for weight, row in changes:
        rows[row] += weight
    assert +rows == Counter(db.view("squares").rows())
    assert len(+rows) == 10_000


def test_cells_are_what_rows_show(db: Database) -> None:
    db.execute("""
        CREATE STREAM kinds (a TIMESTAMP, b DECIMAL(38, 3), c BOOLEAN, d SMALLINT, e DOUBLE, f DATE, g VARCHAR);
        CREATE MATERIALIZED VIEW all_kinds AS SELECT a, b, c, d, e, f, g, count(*) AS n FROM kinds
        GROUP BY a, b, c, d, e, f, g;
    """)
    changes, kinds, one = db.view("all_kinds").changes(), db.stream("kinds"), dt.datetime(1969, 12, 31, 23, 59, 59, 7)
    for row in [
        (one, Decimal("9" * 35 + ".001"), True, -(2**15), math.inf, dt.date.min, "é"),
        (dt.datetime.max, Decimal("-0.001"), False, 2**15 - 1, math.nan, dt.date.max, ""),
        (None,) * 7,
    ]:
        kinds.insert(row)
        assert list(map(repr, changes)) == [repr((1, (*row, 1)))]
    assert sorted(map(repr, db.view("all_kinds").changes(snapshot=True))) == sorted(
        repr((1, row)) for row in db.view("all_kinds").rows()
    )


def test_who_comes_and_goes_misses_nothing(db: Database) -> None:
    """One who is called back beside one who iterates: then Python tells both, and machine code again when it went."""
    side, changes, called = db.stream("side"), db.view("squares").changes(), list[Any]()
    side.insert((1, 1.0))
    end = db.view("squares").subscribe(called.append)
    side.insert((1, 1.0))
    end()
    side.insert((1, 1.0))
    assert list(changes) == [(1, (1, 1.0)), (-1, (1, 1.0)), (1, (1, 4.0)), (-1, (1, 4.0)), (1, (1, 9.0))]
    assert called == [(-1, (1, 1.0)), (1, (1, 4.0))]
    assert db._subscriptions.feeds is not None
    later = db.view("squares").changes(snapshot=True)
    side.delete((1, 1.0))
    assert list(changes) == [(-1, (1, 9.0)), (1, (1, 4.0))]
    assert list(later) == [(1, (1, 9.0)), (-1, (1, 9.0)), (1, (1, 4.0))]


def test_ctrl_c_behind_the_telling_takes_it_back(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, state = db.view("squares").changes(), db.engine.state
    db.insert("side", [(1, 2.0), (1, 1.0)])
    feed, rows = state.feed, Counter[Any]()

    def interrupted(feeds: Any) -> bool:
        monkeypatch.setattr(state, "feed", feed)
        feed(feeds)
        raise KeyboardInterrupt

    monkeypatch.setattr(state, "feed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.insert("side", [(1, 2.0), (2, 1.0)])
    for weight, row in changes:
        rows[row] += weight
    assert +rows == Counter(db.view("squares").rows()) == Counter([(1, 9.0)])


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
