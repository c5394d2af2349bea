"""Updates of every form against a model of counters: what is done is done whole, what is refused changes nothing."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.native.samples import opened, optimised  # noqa: F401
from tests.native.test_arrow_in import NAMES, as_structs, as_union, orders
from viewlet.engines.native.bridge import NativeState
from viewlet.errors import DataError

DAY = dt.date(1970, 1, 11)


def order(number: int, customer: str | None) -> tuple[Any, ...]:
    return (number, customer, number, None, DAY, None, None, None, None)


CUSTOMERS = st.sampled_from([None, "", "Ada", "a longer name than twelve"])
ORDERS = st.builds(order, st.integers(0, 2), CUSTOMERS)
PAYMENTS = st.tuples(CUSTOMERS.filter(lambda c: c is not None), st.integers(0, 1))
TIMES = st.sampled_from([1, 1, 1, 2, -1, -1, 0])
EVENTS = st.tuples(TIMES, st.just("orders"), ORDERS) | st.tuples(TIMES, st.just("payments"), PAYMENTS)
UPDATES = st.one_of(
    st.tuples(st.just("one"), EVENTS.map(lambda e: [e])),
    st.tuples(st.just("many"), st.lists(ORDERS, max_size=6), st.sampled_from([1, -1])),
    st.tuples(st.just("arrow"), st.lists(ORDERS, min_size=1, max_size=6), st.sampled_from([1, -1])),
    st.tuples(st.just("events"), st.lists(EVENTS, max_size=8)),
    st.tuples(st.just("structs"), st.lists(EVENTS, min_size=1, max_size=8)),
    st.tuples(st.just("union"), st.lists(EVENTS, min_size=1, max_size=8)),
)


@given(st.lists(UPDATES, max_size=12))
def test_updates_of_every_form(updates: list[tuple[Any, ...]]) -> None:
    state = opened("shop")
    there: Counter[tuple[str, tuple[Any, ...]]] = Counter()
    for update in updates:
        events = update[1] if len(update) == 2 else [(update[2], "orders", row) for row in update[1]]
        after, missing = _play(there, events)
        assert _refused(state, update[0], events) == missing
        there = after
        _compare(state, there)


def _refused(state: NativeState, form: str, events: list[Any]) -> int | None:
    """The number of the event that the whole update was refused for."""
    try:
        _update(state, form, events)
    except DataError as error:
        return error.row
    return None


def _play(there: Counter[Any], events: list[Any]) -> tuple[Counter[Any], int | None]:
    after = Counter(there)
    for number, (times, relation, row) in enumerate(events):
        after[relation, row] += times
        if after[relation, row] < 0:
            return there, number
    return +after, None


def _update(state: NativeState, form: str, events: list[Any]) -> None:
    rows = [row for _, _, row in events]
    dicts = [
        (t, r, dict(zip(NAMES if r == "orders" else ("customer", "amount"), row, strict=True))) for t, r, row in events
    ]
    match form:
        case "one":
            [(times, relation, row)] = events
            state.one(relation, times, row)
        case "many":
            state.many("orders", events[0][0] if events else 1, rows)
        case "events":
            assert state.events(events) is None
        case "arrow":
            assert state.arrow_rows("orders", events[0][0], orders(rows))
        case "structs":
            assert state.arrow_events(as_structs(dicts))
        case "union":
            assert state.arrow_events(as_union(dicts))


def _compare(state: NativeState, there: Counter[Any]) -> None:
    expected = {_cells(relation, row): n for (relation, row), n in there.items()}
    stored = {(name, row): n for name in ("orders", "payments") for row, n in state.table(name).items()}
    assert stored == expected
    counts: Counter[Any] = Counter()
    pairs = 0
    for (relation, row), n in there.items():
        if relation == "orders":
            counts[row[1],] += n
            paid = sum(m for (other, payment), m in there.items() if other == "payments" and payment[0] == row[1])
            pairs += n * paid
    assert dict(state.entries("orders_by")) == counts
    assert (state.find("pairs", ()) or 0) == pairs
    shown = pa.record_batch(state.rows("all_orders"))
    assert Counter(shown.column("customer").to_pylist()) == {key[0]: n for key, n in counts.items()}
    texts = {row[1] if relation == "orders" else row[0] for relation, row in there} - {None, ""}
    assert state.memory()[-1][1] == len(texts)


def _cells(relation: str, row: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    if relation == "payments":
        return relation, (row[0], row[1] * 100)
    return relation, (row[0], row[1], row[2] * 100, None, 10, None, None, None, None)
