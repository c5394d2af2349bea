"""The streams are what they promise, and on them each of the paper's queries has something to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from tests.oracle.oracle import DuckOracle, Vacuity
from tests.oracle.paper_streams import small_stream, static_rows
from viewlet.schema import Dialect, Relation
from viewlet.sql.ddl import relation
from viewlet.sql.parse import parse
from viewlet.sql.source import Source
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH, PaperQuery
from viewlet.workloads.streams import Event, order_book, tpch

QUERIES = pytest.mark.parametrize("query", PAPER_QUERIES.values(), ids=lambda q: q.name)


def relations(schema: str) -> Iterator[Relation]:
    source = Source(schema)
    return (relation(source, statement) for statement in parse(source))


def after_every_fourth_event(query: PaperQuery, events: int) -> Iterator[DuckOracle]:
    """The referee along a small stream; the conformance suite asks after every event, here a sample will do."""
    oracle = DuckOracle(relations(query.schema))
    for name, rows in static_rows(query).items():
        oracle.load(name, rows)
    for i, event in enumerate(small_stream(query, seed=1, events=events)):
        oracle.apply(*event)
        if i % 4 == 3:
            yield oracle


@QUERIES
@pytest.mark.parametrize("dialect", ["sql", "paper"])
def test_the_answer_is_seldom_empty_and_often_changes(query: PaperQuery, dialect: Dialect) -> None:
    watch, answers = Vacuity(), set()
    for oracle in after_every_fourth_event(query, events=500):
        answer = oracle.rows(query.referee(dialect))
        watch.watch(answer)
        answers.add(tuple(answer))
    watch.check()
    assert len(answers) >= 20


@QUERIES
def test_small_streams_stay_small_and_delete_only_what_is_there(query: PaperQuery) -> None:
    live: Counter[tuple[str, object]] = Counter()
    for op, name, row in small_stream(query, seed=2, events=500):
        live[name, row] += 1 if op == "+" else -1
        assert live[name, row] >= 0
        assert sum(n for (relation_name, _), n in live.items() if relation_name == name) <= 30


@pytest.mark.parametrize("stream", [order_book, tpch])
def test_the_seed_decides_the_stream(stream: Callable[[int, int], Iterator[Event]]) -> None:
    first, again, other = (list(stream(seed, 300)) for seed in (1, 1, 2))
    assert len(first) == 300
    assert first == again != other


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("axf", "a.price - b.price > 1000 FROM bids b, asks a WHERE a.broker_id = b.broker_id"),
        ("axf", "b.price - a.price > 1000 FROM bids b, asks a WHERE a.broker_id = b.broker_id"),
        ("bsp", "x.t > y.t FROM bids x, bids y WHERE x.id <> y.id"),
        ("psp", "volume > 0.0001 * (SELECT sum(volume) FROM bids) FROM bids"),
        ("vwap", "0.25 * (SELECT sum(volume) FROM bids) > (SELECT sum(volume) FROM bids y WHERE y.price > x.price)"
                 " FROM bids x WHERE x.price < (SELECT max(price) FROM bids)"),
        ("q3", "orderdate < DATE '1995-03-15' FROM orders"),
        ("q3", "shipdate > DATE '1995-03-15' FROM lineitem"),
        ("q17", "quantity < 0.005 * (SELECT sum(quantity) FROM lineitem y WHERE y.partkey = x.partkey)"
                " FROM lineitem x"),
        ("q18", "100 < sum(quantity) FROM lineitem GROUP BY orderkey"),
        ("q22", "acctbal < (SELECT sum(acctbal) FROM customer WHERE acctbal > 0) FROM customer"
                " WHERE EXISTS (SELECT 1 FROM customer WHERE acctbal > 0)"),
        ("q22", "EXISTS (SELECT 1 FROM orders o WHERE o.custkey = c.custkey) FROM customer c"),
        ("ssb4", "orderdate >= DATE '1997-01-01' FROM orders"),
        ("ssb4", "orderdate < DATE '1998-01-01' FROM orders"),
    ],
)  # fmt: skip
def test_each_condition_is_met_on_both_sides(query: str, condition: str) -> None:
    outcomes: set[object] = set()
    for oracle in after_every_fourth_event(PAPER_QUERIES[query], events=400):
        outcomes |= {outcome for (outcome,) in oracle.rows(f"SELECT DISTINCT {condition}")}
    assert outcomes >= {True, False}


def test_volume_times_price_adds_up_exactly_in_doubles() -> None:
    rounded, exact = 0.0, Fraction(0)
    for op, _, (_, _, _, volume, price) in order_book(3, 5000, live=500):
        assert isinstance(volume, float)
        assert isinstance(price, float)
        sign = 1 if op == "+" else -1
        rounded += sign * volume * price
        exact += sign * Fraction(volume) * Fraction(price)
        assert rounded == exact


def test_both_sides_of_the_book_become_empty() -> None:
    live, empty = 0, 0
    for op, _, _ in order_book(1, 500, live=12, session=150):
        live += 1 if op == "+" else -1
        empty += live == 0
    assert empty >= 2


def test_the_paper_inserts_all_but_orders_once() -> None:
    rows = Counter((op, name) for op, name, _ in tpch(1, 3000, live=100, delete_from=("orders",)))
    assert {name for op, name in rows if op == "-"} == {"orders"}
    assert rows["+", "customer"] == 60


def test_only_q22_reads_otherwise_in_standard_sql() -> None:
    assert [q.name for q in PAPER_QUERIES.values() if q.select("sql") != q.select("paper")] == ["q22"]


def test_the_referee_of_the_paper_takes_sums_of_nothing_for_zero() -> None:
    assert PAPER_QUERIES["vwap"].referee("paper") == (
        "SELECT COALESCE(SUM(b1.price * b1.volume), 0) AS vwap FROM Bids AS b1 "
        "WHERE 0.25 * (SELECT COALESCE(SUM(b3.volume), 0) FROM Bids AS b3) > "
        "(SELECT COALESCE(SUM(b2.volume), 0) FROM Bids AS b2 WHERE b2.price > b1.price)"
    )


def test_the_schemas_declare_what_the_streams_bring() -> None:
    widths = {r.name: len(r.columns) for r in (*relations(FINANCE), *relations(TPCH))}
    events = [*order_book(1, 50), *tpch(1, 500, live=50)]
    assert {name for _, name, _ in events} == widths.keys() - {"nation"}
    assert all(len(row) == widths[name] for _, name, row in events)
