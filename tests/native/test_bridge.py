"""Rows in, rows out, and nothing half done: hand-written programs behind the bridge."""

from __future__ import annotations

import datetime as dt
import gc
import math
import sys
import threading
import weakref
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.samples import opened, optimised  # noqa: F401
from viewlet.engines.native.bridge import NativeState
from viewlet.engines.native.spoiled import SpoiledError
from viewlet.errors import DataError, OverflowError_

DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 250)
ORDER = (1, "Ada", Decimal("12.50"), Decimal("3.1416"), DAY, NOON, True, 7, 0.5)
CELLS = (1, "Ada", 1250, 31416, 19782, 1709209815000250, True, 7, 0.5)
BARE = (2, None, 5, None, dt.date(1, 1, 1), None, None, None, None)
BARE_CELLS = (2, None, 500, None, -719162, None, None, None, None)


@pytest.fixture
def shop() -> NativeState:
    return opened("shop")


def shown(state: NativeState, result: str) -> list[dict[str, Any]]:
    return pa.record_batch(state.rows(result)).to_pylist()


# -- rows of Python values ---------------------------------------------------------------------------------------------


def test_a_row_arrives_as_its_cells(shop: NativeState) -> None:
    shop.one("orders", 1, ORDER)
    shop.many("orders", 1, [BARE, list(BARE)])
    assert shop.table("orders") == {CELLS: 1, BARE_CELLS: 2}
    assert shop.count("orders", BARE_CELLS) == 2
    assert shop.find("total_by", ("Ada",)) == 1250
    assert dict(shop.entries("orders_by")) == {("Ada",): 1, (None,): 2}
    assert shop.weigh("orders_by") == (2, 3)
    assert shop.find("orders_by", ("Bob",)) is None


def test_rows_are_shown_as_arrow(shop: NativeState) -> None:
    """Those of an update, and those of a table in pieces, behind how often each is there."""
    given = pa.array(shop.many_shown("orders", 2, [ORDER, list(BARE)]))
    pieces = [pa.array(piece) for piece in shop.stored("orders", 1)]
    assert [tuple(row.values()) for row in given.to_pylist()] == [ORDER, BARE]
    assert len(pieces) == 2
    stored = [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]
    assert sorted(stored, key=repr) == sorted([(2, *ORDER), (2, *BARE)], key=repr)
    assert shop.many_shown("orders", -2, [ORDER, BARE]) is not None
    assert list(shop.stored("orders", 10)) == []
    with pytest.raises(DataError, match="not there"):
        shop.many_shown("orders", -1, [ORDER])


def test_what_no_column_can_hold_is_nowhere(shop: NativeState) -> None:
    assert shop.count("orders", (2**70, *CELLS[1:])) == 0
    assert shop.count("orders", (None, *CELLS[1:])) == 0
    assert shop.count("orders", (*CELLS[:3], 2**200, *CELLS[4:])) == 0
    assert shop.find("orders_by", ("\ud800",)) is None
    with pytest.raises(TypeError, match="column id"):
        shop.count("orders", ("1", *CELLS[1:]))
    with pytest.raises(TypeError, match="tuple of 1"):
        shop.find("orders_by", ())


def test_dicts_and_odd_types_take_the_slow_way(shop: NativeState) -> None:
    shop.one("orders", 1, {"id": 2, "price": "5.00", "day": "0001-01-01"})
    assert shop.table("orders") == {BARE_CELLS: 1}


ORDERS_ROWS = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(max_size=5),
    st.decimals(-9999999999, 9999999999, places=2) | st.integers(-9999999999, 9999999999),
    st.none() | st.decimals(-(10**20), 10**20, places=4) | st.integers(-(10**30), 10**30),
    st.dates(),
    st.none() | st.datetimes(),
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.floats() | st.integers(-(2**53), 2**53),
)


@given(st.lists(ORDERS_ROWS, max_size=5))
def test_the_fast_way_means_what_the_slow_way_means(rows: list[tuple[Any, ...]]) -> None:
    fast, slow = opened("shop"), opened("shop")
    names = ("id", "customer", "price", "weight", "day", "at", "paid", "small", "rate")
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    outcomes = [[_outcome(state, row) for row in given] for state, given in ((fast, rows), (slow, dicts))]
    assert outcomes[0] == outcomes[1]
    assert _repr_table(fast) == _repr_table(slow)


def _outcome(state: NativeState, row: object) -> str:
    try:
        return str(state.one("orders", 1, row))
    except (DataError, OverflowError_) as error:
        return type(error).__name__


def _repr_table(state: NativeState) -> list[str]:
    return sorted(repr(entry) for entry in state.table("orders").items())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (0, 2**63),
        (0, True),
        (0, None),
        (0, 1.0),
        (1, "\ud800"),
        (1, b"x"),
        (2, Decimal("0.001")),
        (2, Decimal("NaN")),
        (2, 10**10),
        (3, Decimal("1e34")),
        (4, NOON),
        (5, DAY),
        (5, NOON.replace(tzinfo=dt.timezone.utc)),
        (6, 1),
        (7, 2**31),
        (8, 2**53 + 1),
        (8, Decimal(1)),
    ],
)
def test_a_bad_value_is_named_and_changes_nothing(shop: NativeState, column: int, value: object) -> None:
    bad = (*ORDER[:column], value, *ORDER[column + 1 :])
    with pytest.raises(DataError, match="row 1"):
        shop.many("orders", 1, [ORDER, bad])
    with pytest.raises(DataError, match="values for 9 columns"):
        shop.one("orders", 1, ORDER[1:])
    assert shop.table("orders") == {}
    assert shop.entries("orders_by") == []


def test_one_zero_and_one_nan() -> None:
    state = opened("bsv")
    state.one("bids", 1, (-0.0, 1, 1, math.nan, 0.0))
    state.one("bids", -1, (0.0, 1, 1, -math.nan, -0.0))
    assert state.table("bids") == {}


# -- deletes and batches -----------------------------------------------------------------------------------------------


def test_a_batch_that_deletes_what_is_not_there_changes_nothing(shop: NativeState) -> None:
    shop.one("orders", 1, ORDER)
    with pytest.raises(DataError, match="is not there") as caught:
        shop.events([("+", "orders", BARE), ("-", "orders", ORDER), ("-", 0, ORDER)])
    assert (caught.value.relation, caught.value.row, caught.value.value) == ("orders", 2, ORDER)
    assert shop.table("orders") == {CELLS: 1}
    assert dict(shop.entries("orders_by")) == {("Ada",): 1}


def test_multiplicities(shop: NativeState) -> None:
    assert shop.events([(3, "orders", ORDER), (0, "orders", BARE), (-2, "orders", ORDER)]) is None
    assert shop.table("orders") == {CELLS: 1}
    assert shop.find("total_by", ("Ada",)) == 1250


@pytest.mark.parametrize(
    "event", [("*", "orders", ORDER), ("+", "nobody", ORDER), ("+", "orders"), 7, (True, 0, ORDER)]
)
def test_what_is_no_event_is_named(shop: NativeState, event: object) -> None:
    assert shop.events([("+", "orders", ORDER), event]) == 1
    assert shop.table("orders") == {}


def test_static_tables_are_loaded_not_updated(shop: NativeState) -> None:
    assert shop.events([("+", "nation", (1, "Peru"))]) == 0
    with pytest.raises(DataError, match="static"):
        shop.one("nation", 1, (1, "Peru"))
    shop.load("nation", [(1, "Peru"), (2, "Chad")])
    shop.load("nation", [(2, "Chad")], -1)
    with pytest.raises(DataError, match="is not there"):
        shop.load("nation", [(1, "Peru"), (9, "Oz")], -1)
    assert shop.table("nation") == {(1, "Peru"): 1}


def test_triggers_that_read_tables_see_them_as_of_their_turn(shop: NativeState) -> None:
    paid = ("Ada", Decimal("1.00"))
    shop.events([("+", "orders", ORDER), ("+", "payments", paid), ("+", "orders", (9, *ORDER[1:]))])
    assert shop.find("pairs", ()) == 2
    shop.events([("-", "payments", paid), ("-", "orders", ORDER), ("+", "payments", paid)])
    assert shop.find("pairs", ()) == 1
    assert shop.count("orders", CELLS) == 0


def test_an_overflow_leaves_the_tables_as_they_were(shop: NativeState) -> None:
    wide = (*ORDER[:3], Decimal(10**33), *ORDER[4:])
    shop.one("orders", 1, BARE)
    with pytest.raises(OverflowError_, match="squares") as caught:
        shop.many("orders", 1, [ORDER, wide])
    assert isinstance(caught.value, SpoiledError)
    assert caught.value.view == "squares"
    assert shop.table("orders") == {BARE_CELLS: 1}
    mixed = [("+", "payments", ("Ada", 1)), ("-", "orders", BARE), ("+", "orders", wide)]
    with pytest.raises(SpoiledError):
        shop.events(mixed)
    assert (shop.table("orders"), shop.table("payments")) == ({BARE_CELLS: 1}, {})


def test_texts_go_with_the_last_row_that_has_them(shop: NativeState) -> None:
    rows = [(i, f"customer {i}", 1, None, DAY, None, None, None, None) for i in range(300)]
    for _ in range(3):
        shop.many("orders", 1, rows)
        assert shop.memory()[-1][:2] == ("texts", 300)
        shop.many("orders", -1, rows)
        assert shop.memory()[-1][:2] == ("texts", 0)
    assert shop.find("orders_by", ("nobody",)) is None
    assert all(entries in (0, 1) for _, entries, _ in shop.memory())


def test_without_tables_nothing_is_remembered_of_rows() -> None:
    state = opened("shop", keep_tables=False)
    state.many("orders", 1, [ORDER, BARE])
    state.one("orders", -1, ORDER)
    assert state.table("orders") == {}
    assert dict(state.entries("orders_by")) == {(None,): 1}


# -- views and results -------------------------------------------------------------------------------------------------


def test_put_adds(shop: NativeState) -> None:
    shop.put("total_by", ("Ada",), 2**100)
    shop.put("total_by", ("Ada",), 1)
    shop.put("rates_by", ("Ada",), (1.0, 1e-20))
    shop.put("pairs", (), 5)
    assert (shop.find("total_by", ("Ada",)), shop.find("rates_by", ("Ada",))) == (2**100 + 1, (1.0, 1e-20))
    shop.put("rates_by", ("Ada",), (-1.0, -1e-20))
    shop.put("total_by", ("Ada",), -(2**100) - 1)
    assert (shop.entries("total_by"), shop.find("pairs", ())) == ([], 5)
    assert shop.memory()[3][1] == 0
    with pytest.raises(OverflowError_):
        shop.put("pairs", (), 2**63 - 1)


def test_results_come_as_arrow(shop: NativeState) -> None:
    shop.many("orders", 1, [ORDER, BARE, BARE, (3, "", 1, -1, DAY, NOON, False, -7, math.inf)])
    orders = sorted(shown(shop, "all_orders"), key=lambda row: row["id"])
    assert [tuple(row.values()) for row in orders] == [
        (*ORDER[:3], Decimal("3.1416"), *ORDER[4:]),
        (2, None, Decimal("5.00"), None, BARE[4], None, None, None, None),
        (2, None, Decimal("5.00"), None, BARE[4], None, None, None, None),
        (3, "", Decimal("1.00"), Decimal("-1.0000"), DAY, NOON, False, -7, math.inf),
    ]
    types = pa.record_batch(shop.rows("all_orders")).schema.types
    expected = "int64 string decimal128(12,2) decimal128(38,4) date32[day] timestamp[us] bool int32 double"
    assert [str(t).replace(" ", "") for t in types] == expected.split()


@given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.none() | st.booleans(), st.integers(1, 9)), max_size=12))
def test_repeated_rows_are_repeated_whole(rows: list[tuple[str | None, bool | None, int]]) -> None:
    state = opened("shop")
    events = [(n, "orders", (i, c, 1, None, DAY, None, p, None, None)) for i, (c, p, n) in enumerate(rows)]
    state.events(events)
    batch = pa.record_batch(state.rows("all_orders"))
    batch.validate(full=True)
    repeated = [(r["customer"], r["paid"]) for r in sorted(batch.to_pylist(), key=lambda r: r["id"])]
    assert repeated == [(c, p) for c, p, n in rows for _ in range(n)]


def test_a_result_that_does_not_fit_names_view_and_column(shop: NativeState) -> None:
    shop.put("total_by", ("Ada",), -(10**12))
    with pytest.raises(OverflowError_, match=r"customers\.total: -10000000000\.00 no longer fits DECIMAL\(12,2\)"):
        shop.rows("customers")
    shop.reset()
    assert shown(shop, "customers") == []


# -- the state itself --------------------------------------------------------------------------------------------------


def test_a_second_thread_is_kept_out() -> None:
    state = opened("bsv")
    rows = [(float(i), i, i % 10, 1.0, 1.0) for i in range(300_000)]
    refused: list[str] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                state.find("bsv_bids", (1,))
            except RuntimeError as error:
                refused.append(str(error))

    thread = threading.Thread(target=ask)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        _despite(RuntimeError, lambda: state.many("bids", 1, rows))
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert set(refused) <= {"the database is being updated by another thread"}
    assert state.find("bsv_bids", (1,)) == 30_000


def _despite(error: type[Exception], update: Any) -> None:
    """Until it is done: an asker inside refuses the update as an update refuses the asker."""
    while True:
        try:
            return update()
        except error:
            continue


def test_convert_may_not_come_back_in() -> None:
    state = opened("shop")

    class Nosy:
        def __index__(self) -> int:
            return state.weigh("pairs")[0]

    with pytest.raises(DataError):
        state.one("orders", 1, (Nosy(), *ORDER[1:]))


def test_a_dropped_state_is_gone() -> None:
    state = opened("shop")
    state.one("orders", 1, ORDER)
    held = weakref.ref(state)
    batch = pa.record_batch(state.rows("customers"))
    del state
    gc.collect()
    assert held() is None
    assert batch.to_pylist() == [{"customer": "Ada", "n": 1, "total": Decimal("12.50")}]
