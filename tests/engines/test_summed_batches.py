"""Batches that machine code sums up by key before they meet the maps: the same answers, faults and changes.

Such a batch has 64 events or more, and a stream whose triggers only add its rows up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.oracle.oracle import DuckOracle, difference
from viewlet import Database
from viewlet.engines.native.emit.program import cpp_source

Row = tuple[Any, ...]
Events = list[tuple[str, str, Row]]
MOST = 2**63 - 1
SALES = """
CREATE STREAM sales (shop VARCHAR, item BIGINT NOT NULL, pieces INTEGER, price DECIMAL(12,2) NOT NULL, weight DOUBLE);
"""
COSTS = """
CREATE STREAM costs (shop VARCHAR, cost BIGINT NOT NULL);
CREATE STREAM visits (minutes BIGINT NOT NULL);
"""
VIEWS = {
    "per_shop": "SELECT shop, sum(pieces) AS pieces, sum(weight) AS weight, avg(price) AS mean, count(*) AS n "
    "FROM sales GROUP BY shop",
    "dear": "SELECT item % 3 AS rest, sum(price * pieces) AS paid, count(weight) AS weighed FROM sales "
    "WHERE price > 2 AND weight < 4 GROUP BY item % 3",
    "in_all": "SELECT sum(weight) AS weight, sum(pieces) AS pieces, count(*) AS n FROM sales WHERE item < 30",
    "rows_as_they_are": "SELECT shop, item, weight FROM sales WHERE pieces > 3",
    "several": "SELECT shop, item, count(*) AS n, sum(price) AS paid FROM sales "
    "GROUP BY shop, item HAVING count(*) > 1",
}
OTHERS = {  # of a stream whose triggers are for each event, and of another one that is summed up
    "visited": "SELECT count(*) AS n, sum(minutes) AS minutes FROM visits",
    "kept": "SELECT c.shop, sum(c.cost * d.cost) AS cost FROM costs c, costs d WHERE c.shop = d.shop GROUP BY c.shop",
    "over": "SELECT c.cost FROM costs c WHERE c.cost > (SELECT avg(d.cost) FROM costs d)",
}
SCRIPT = SALES + COSTS + "".join(f"CREATE MATERIALIZED VIEW {n} AS {s};\n" for n, s in (VIEWS | OTHERS).items())
WEIGHTS = (8, 8, 84)  # of events of costs, of visits, of sales
STREAM = re.compile(r"(CREATE STREAM [^;]*?\));")


def drawn(rng: Random, there: list[tuple[str, Row]], count: int, items: int) -> Events:
    """Few keys or many, rows twice, and rows that come and go at once. The first batch leaves rows in all groups."""
    events: Events = []
    first = not there
    while len(events) < count:
        if not first and there and rng.random() < 0.45:
            name, row = there.pop(rng.randrange(len(there)))
            events.append(("-", name, row))
            continue
        choices = [("costs", cost(rng)), ("visits", (rng.randrange(9),)), ("sales", sale(rng, items))]
        name, row = rng.choices(choices, WEIGHTS)[0]
        events.append(("+", name, row))
        if not first and rng.random() < 0.2:
            events.append(("-", name, row))
        else:
            there.append((name, row))
        if rng.random() < 0.1:
            events.append(("+", name, row))
            there.append((name, row))
    return events


def sale(rng: Random, items: int) -> Row:
    shop, pieces = rng.choice(("ann", "bob", "", None)), rng.choice((None, 0, 5, -7, 2**31 - 1))
    price = Decimal(rng.randrange(-(10**4), 10**4)) / 100
    return shop, rng.randrange(items), pieces, price, rng.choice((None, 0.1, 3.75, 1e9))


def cost(rng: Random) -> Row:
    return rng.choice(("ann", "bob", None)), rng.randrange(-5, 50)


def as_arrow(events: Events) -> pa.RecordBatch:
    """Rows in a struct for each stream."""
    types = {
        "sales": {"shop": pa.string(), "item": pa.int64(), "pieces": pa.int32(), "price": pa.decimal128(12, 2)}
        | {"weight": pa.float64()},
        "costs": {"shop": pa.string(), "cost": pa.int64()},
        "visits": {"minutes": pa.int64()},
    }
    columns: dict[str, Any] = {
        "op": pa.array([1 if op == "+" else -1 for op, _, _ in events], pa.int8()),
        "relation": pa.array([name for _, name, _ in events]).dictionary_encode(),
    }
    for name, fields in types.items():
        rows = [dict(zip(fields, row, strict=True)) if of == name else None for _, of, row in events]
        columns[name] = pa.array(rows, pa.struct(fields))
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture(scope="module", params=["stored", "unstored"])
def script(request: pytest.FixtureRequest) -> str:
    return SCRIPT if request.param == "stored" else STREAM.sub(r"\1 WITH (stored = false);", SCRIPT)


@pytest.fixture
def db(script: str) -> Iterator[Database]:
    with viewlet.connect(wait_native=True) as db:
        db.execute(script)
        yield db


def test_sales_and_visits_are_summed_up_and_costs_are_not() -> None:
    source = cpp_source(viewlet.compile(SCRIPT))
    assert "bool sum_up_sales(" in source
    assert "bool sum_up_visits(" in source
    assert "sum_up_costs" not in source


@pytest.mark.parametrize("told", [False, True], ids=["unwatched", "watched"])
def test_views_and_changes_are_right_after_every_batch(db: Database, told: bool) -> None:
    referee, rng, there = DuckOracle(viewlet.compile(SALES + COSTS).relations), Random(told), list[tuple[str, Row]]()
    changes = {name: db.view(name).changes(snapshot=True) for name in VIEWS} if told else {}
    shown = set[str]()
    known = {name: Counter[Row]() for name in VIEWS}
    for count, items in [(300, 3), (200, 3), (64, 1), (63, 3), (130, 2), (300, 500), (90, 1), (250, 3)]:
        events = drawn(rng, there, count, items)
        db.apply(as_arrow(events) if rng.random() < 0.7 else events)
        for event in events:
            referee.apply(*event)
        for name, select in (VIEWS | OTHERS).items():
            expected = referee.rows(select)
            assert difference(db.view(name).rows(), expected) is None, (name, count)
            shown |= {name} if expected else set()
        for name, view in changes.items():
            for weight, row in view:
                known[name][row] += weight
            assert +known[name] == Counter(db.view(name).rows()), name
            assert not -known[name], name
    assert shown == {*VIEWS, *OTHERS}


# -- faults ------------------------------------------------------------------------------------------------------------


def fine(count: int = 80) -> Events:
    return [("+", "sales", ("ann", n % 5, n, Decimal(n), n / 8)) for n in range(count)]


def state(db: Database) -> object:
    maps = {v.name: repr(sorted(map(repr, db.engine.entries(v.name).items()))) for v in db.program.views}
    return maps, {name: Counter(db.view(name).rows()) for name in VIEWS | OTHERS}


def refused(db: Database, events: Events, message: str) -> None:
    for given in (events, as_arrow(events)):
        before = state(db)
        with pytest.raises(viewlet.Error, match=message):
            db.apply(given)
        assert state(db) == before
    db.apply(fine())  # it goes on


@pytest.mark.parametrize("place", [0, 40, 80])
def test_a_fault_in_another_stream_undoes_what_was_summed_up(db: Database, place: int) -> None:
    """2⁶³ · 2⁶³ fits no number of ours, and the error names the event."""
    db.apply(fine())
    events = fine()
    events[place:place] = [("+", "costs", ("ann", MOST))]
    refused(db, events, f"row {place}\\b")


LIMITS = """
CREATE STREAM s (k BIGINT NOT NULL, n BIGINT NOT NULL, x DOUBLE NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT k, sum(n) AS n, sum(x) AS x, count(*) AS c FROM s GROUP BY k;
"""


@pytest.fixture(params=["stored", "unstored"])
def limits(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(wait_native=True) as db:
        db.execute(LIMITS if request.param == "stored" else STREAM.sub(r"\1 WITH (stored = false);", LIMITS))
        yield db


def of_s(rows: list[Row]) -> Events:
    return [("+", "s", row) for row in rows]


def test_a_batch_that_passes_through_an_overflow_is_refused(limits: Database) -> None:
    """docs/native.md: also if it ends inside; and one that comes close is not."""
    plain = [(1, 1, 0.5)] * 70
    inside = [(1, MOST - 100, 0.0), (1, 50, 0.0), *plain, (1, -60, 0.0)]
    beyond = [*plain, (1, MOST, 0.0), (1, -MOST, 0.0)]
    for rows, place in [(inside, 52), (beyond, 70)]:
        with pytest.raises(viewlet.OutOfRangeError, match=f"a sum no longer fits BIGINT: s, row {place},"):
            limits.insert("s", rows)
        assert limits.view("sums").rows() == []
    limits.insert("s", [(1, MOST - 70, 0.0), *plain])
    assert limits.view("sums").rows() == [(1, MOST, 35.0, 71)]
    limits.apply([("-", "s", (1, 1, 0.5))] * 70)
    assert limits.view("sums").rows() == [(1, MOST - 70, 0.0, 1)]


def test_a_sum_that_nobody_sees_does_not_overflow_in_between() -> None:
    """As one event after the other is refused, so is the batch that takes the rows out again."""
    with viewlet.connect(wait_native=True) as db:
        db.execute(
            "CREATE STREAM s (n DECIMAL(38,0) NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT avg(n) AS x FROM s;"
        )
        great: Events = [("+", "s", (Decimal(10**38 - 1),))]
        small: Events = [("+", "s", (Decimal(1),))] * 70
        gone: Events = [("-", *event[1:]) for event in great]
        db.apply(great)
        with pytest.raises(viewlet.OutOfRangeError):
            db.apply(great)
        db.apply(gone)
        with pytest.raises(viewlet.OutOfRangeError):
            db.apply([*great * 2, *small, *gone * 2])
        db.apply([*great, *small, *gone])
        assert db.view("v").rows() == [(1.0,)]
        db.apply([("-", *event[1:]) for event in small])
        db.apply([("+", "s", (Decimal(2**126),)), ("+", "s", (Decimal(2**126 - 1),))])  # 2¹²⁷ - 1: one more is too much
        with pytest.raises(viewlet.OutOfRangeError):
            db.apply([*small, *[("-", *event[1:]) for event in small]])


def test_a_sum_that_held_rows_far_greater_forgets_them_with_the_last(limits: Database) -> None:
    """1e40 and 1e20 go, no row is left, and 1e-20 comes: the 106 bits of a batch hold no two of the three."""
    some, great = of_s([(2, 0, 0.25)] * 40), of_s([(1, 0, 1e40), (1, 0, 1e20)])
    for _ in range(2):
        limits.apply([*some, *great, *some])
        limits.apply([*some, *[("-", *event[1:]) for event in great], *of_s([(1, 0, 1e-20)]), *some])
        assert limits.view("sums").get(k=1) == (1, 0, 1e-20, 1)
        limits.apply([*some, ("-", "s", (1, 0, 1e-20)), *great, *some])
        limits.apply([*some, *[("-", *event[1:]) for event in great], *some])
        assert limits.view("sums").get(k=1) is None


def test_great_doubles_and_what_is_no_number_come_and_go(limits: Database) -> None:
    inf, nan = float("inf"), float("nan")
    some: Events = of_s([(2, 1, 0.25)] * 70)
    for wild, shown in [(inf, inf), (-inf, -inf), (1e308, 1e308)]:
        limits.apply([*some, *of_s([(1, 1, wild), (1, 1, 2.0)])])
        assert limits.view("sums").get(k=1) == (1, 2, shown, 2)
        limits.apply([*some, ("-", "s", (1, 1, wild))])
        assert limits.view("sums").get(k=1) == (1, 1, 2.0, 1)
        limits.apply([("-", "s", (1, 1, 2.0)), *some])
    limits.apply([*of_s([(1, 1, 1e308)] * 3), *of_s([(1, 1, nan)] * 2), *some])
    shown_row = limits.view("sums").get(k=1)
    assert shown_row is not None
    assert str(shown_row[2]) == "nan"
    limits.apply([*[("-", "s", (1, 1, 1e308))] * 2, *[("-", "s", (1, 1, nan))] * 2, *some])
    assert limits.view("sums").get(k=1) == (1, 1, 1e308, 1)


def test_a_row_that_is_not_there_names_its_event_and_nothing_is_done() -> None:
    with viewlet.connect(wait_native=True) as db:
        db.execute(LIMITS)
        rows = of_s([(n % 3, n, n / 4) for n in range(90)])
        with pytest.raises(viewlet.DataError, match="row 50"):
            db.apply([*rows[:50], ("-", "s", (7, 7, 7.0)), *rows[50:]])
        assert db.view("sums").rows() == []
        db.apply(rows)
        db.apply([("-", *event[1:]) for event in rows])
        assert db.view("sums").rows() == []


def test_hundreds_of_keys(limits: Database) -> None:
    """Some of them meet in the table of groups."""
    for round_ in range(1, 3):
        limits.insert("s", [(n % 400, n % 7, n / 8) for n in range(4_000)])
        assert Counter(limits.view("sums").rows()) == Counter(
            (k, round_ * sum(n % 7 for n in range(k, 4_000, 400)), round_ * sum(range(k, 4_000, 400)) / 8, 10 * round_)
            for k in range(400)
        )


def test_more_keys_than_a_batch_has_groups_for(limits: Database) -> None:
    """Such batches go event by event, and later ones are summed up again."""
    for round_ in range(4):
        limits.insert("s", [(n, 1, 0.5) for n in range(3_000)])
        limits.insert("s", [(n % 2, 1, 0.5) for n in range(3_000)])
        assert limits.view("sums").get(k=0) == (0, 1501 * (round_ + 1), 750.5 * (round_ + 1), 1501 * (round_ + 1))
        assert limits.view("sums").get(k=2_999) == (2_999, round_ + 1, (round_ + 1) / 2, round_ + 1)
    assert len(limits.view("sums")) == 3_000


def test_a_row_that_comes_several_times_in_one_event(limits: Database) -> None:
    limits.apply([(3, "s", (1, 5, 0.1)), *of_s([(1, 1, 1.0)] * 70), (-2, "s", (1, 5, 0.1))])
    assert limits.view("sums").rows() == [(1, 75, 70.1, 71)]
