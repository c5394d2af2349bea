"""Arrow batches mean what their rows mean; what the fast way does not know, it leaves alone."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.native.samples import ORDERS, opened, optimised  # noqa: F401
from viewlet.engines.native.bridge import NativeState
from viewlet.errors import DataError, OverflowError_
from viewlet.rows import arrow

DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 250)
NAMES = [c.name for c in ORDERS.columns]
ROWS = [
    (1, "Ada", Decimal("12.50"), Decimal("3.1416"), DAY, NOON, True, 7, 0.5),
    (2, None, Decimal("5.00"), None, dt.date(1, 1, 1), None, None, None, None),
    (3, "", Decimal("-0.01"), Decimal(-(10**14)), dt.date(9999, 12, 31), dt.datetime.max, False, -(2**31), -0.0),
    (4, "Žofie 🦊 with a long name", Decimal("9999999999.99"), Decimal(0), DAY, NOON, True, 0, float("nan")),
    (2**63 - 1, "Ada", Decimal(0), None, DAY, dt.datetime.min, None, 1, float("-inf")),
]


@pytest.fixture
def shop() -> NativeState:
    return opened("shop")


def orders(rows: list[tuple[Any, ...]] = ROWS, **types: pa.DataType) -> pa.RecordBatch:
    declared = {c.name: types.get(c.name, arrow.arrow_type(c.type)) for c in ORDERS.columns}
    columns = zip(*rows, strict=True) if rows else [()] * len(NAMES)
    arrays = [pa.array(values, t) for values, t in zip(columns, declared.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, NAMES)


def content(state: NativeState) -> list[str]:
    return sorted(repr(entry) for entry in state.table("orders").items())


def by_rows(rows: list[tuple[Any, ...]]) -> list[str]:
    state = opened("shop")
    state.many("orders", 1, [dict(zip(NAMES, row, strict=True)) for row in rows])
    return content(state)


def test_a_batch_is_its_rows(shop: NativeState) -> None:
    assert shop.arrow_rows("orders", 1, orders())
    assert content(shop) == by_rows(ROWS)
    assert shop.arrow_rows("orders", -1, orders())
    assert (content(shop), shop.entries("orders_by")) == ([], [])


def test_a_slice_is_its_rows(shop: NativeState) -> None:
    doubled = pa.concat_tables([pa.table(orders()), pa.table(orders())]).combine_chunks().to_batches()[0]
    assert shop.arrow_rows("orders", 1, doubled.slice(2, 5))
    assert content(shop) == by_rows((ROWS * 2)[2:7])


def test_a_batch_of_many_blocks_is_its_rows(shop: NativeState) -> None:
    """Columns are decoded some hundred rows at a time, but for one with a dictionary."""
    rows = [(i, ROWS[i % 5][1], *ROWS[i % 2][2:]) for i in range(1300)]
    assert shop.arrow_rows("orders", 1, orders(rows, customer=pa.dictionary(pa.int8(), pa.string())).slice(1))
    assert content(shop) == by_rows(rows[1:])
    places = [*range(1299, 500, -1), *range(1, 501)]
    assert shop.arrow_rows("orders", -1, orders(rows).take(pa.array(places)))
    assert content(shop) == []


@pytest.mark.parametrize("size", [0, 1, 9])
def test_sliced_structs(shop: NativeState, size: int) -> None:
    struct = pa.StructArray.from_arrays(orders(ROWS * 3).columns, NAMES)
    assert shop.arrow_rows("orders", 1, struct.slice(3, size))
    assert content(shop) == by_rows((ROWS * 3)[3 : 3 + size])


@pytest.mark.parametrize(
    "types",
    [
        {"customer": pa.large_string()},
        {"customer": pa.string_view()},
        {"customer": pa.dictionary(pa.int8(), pa.string())},
        {"customer": pa.dictionary(pa.uint32(), pa.large_string())},
        {"price": pa.decimal128(20, 5), "weight": pa.decimal128(38, 4)},
        {"day": pa.date64()},
        {"small": pa.int64(), "id": pa.uint64()},
    ],
)
def test_other_types_that_hold_the_same(shop: NativeState, types: dict[str, pa.DataType]) -> None:
    assert shop.arrow_rows("orders", 1, orders(**types))
    assert content(shop) == by_rows(ROWS)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit(shop: NativeState, unit: str) -> None:
    rows = [(*ROWS[0][:5], dt.datetime(1969, 12, 31, 23, 59, 58), *ROWS[0][6:])]
    assert shop.arrow_rows("orders", 1, orders(rows, at=pa.timestamp(unit)))
    assert content(shop) == by_rows(rows)


def test_narrow_numbers(shop: NativeState) -> None:
    rows = [(1, "x", 5, 7, DAY, NOON, True, 3, 2.5)]
    for i, wide in enumerate([pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()]):
        batch = orders(rows, id=wide, price=wide, weight=wide, small=wide, rate=pa.float32())
        assert shop.arrow_rows("orders", 1, batch)
        assert list(shop.table("orders").values()) == [i + 1]
    assert shop.arrow_rows("orders", -6, orders(rows))
    assert shop.table("orders") == {}


@pytest.mark.parametrize(
    ("column", "value", "type_"),
    [
        ("id", 2**63, pa.uint64()),
        ("id", None, pa.int64()),
        ("id", 1.0, pa.float64()),
        ("price", Decimal("0.001"), pa.decimal128(12, 3)),
        ("price", Decimal(10**10), pa.decimal128(12, 0)),
        ("price", 1.125, pa.float64()),
        ("price", 1e15, pa.float64()),
        ("price", 1.5, pa.float32()),
        ("price", "1e1", pa.string()),
        ("weight", Decimal(10**34), pa.decimal128(38, 0)),
        ("weight", Decimal(1), pa.decimal256(50, 0)),
        ("day", NOON, pa.timestamp("us")),
        ("day", DAY.isoformat(), pa.string()),
        ("at", NOON, pa.timestamp("us", "UTC")),
        ("at", 1, pa.timestamp("ns")),
        ("at", 2**62, pa.timestamp("us")),
        ("paid", 1, pa.int8()),
        ("small", 2**31, pa.int64()),
        ("rate", 2**53 + 1, pa.int64()),
        ("customer", b"Ada", pa.binary()),
        ("customer", None, pa.null()),
    ],
)
def test_what_is_not_plainly_right_is_left_to_python(shop: NativeState, column: str, value: Any, type_: Any) -> None:
    row = tuple(value if name == column else known for name, known in zip(NAMES, ROWS[0], strict=True))
    array = pa.array([row[NAMES.index(column)]], type_)
    good = orders(ROWS[:1])
    assert not shop.arrow_rows("orders", 1, good.set_column(NAMES.index(column), column, array))
    assert (shop.table("orders"), shop.memory()[3][1]) == ({}, 0)


def test_columns_go_by_name(shop: NativeState) -> None:
    batch = orders(ROWS[1:2])
    few = batch.select(["day", "price", "id"])
    assert shop.arrow_rows("orders", 1, few)
    assert content(shop) == by_rows(ROWS[1:2])
    assert not shop.arrow_rows("orders", 1, batch.select(["id", "price"]))
    assert not shop.arrow_rows("orders", 1, batch.append_column("more", pa.array([1])))
    twice = pa.RecordBatch.from_arrays([*few.columns, few.column(0)], ["day", "price", "id", "id"])
    assert not shop.arrow_rows("orders", 1, twice)


def test_text_that_is_no_utf8_is_left_to_python(shop: NativeState) -> None:
    for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ab\xe2\x82"):
        array = pa.Array.from_buffers(pa.string(), 1, pa.array([bad], pa.binary()).buffers())
        assert not shop.arrow_rows("orders", 1, orders(ROWS[:1]).set_column(1, "customer", array))


def test_a_delete_that_fails_names_the_row(shop: NativeState) -> None:
    shop.arrow_rows("orders", 1, orders(ROWS[:2]))
    with pytest.raises(DataError, match="is not there") as caught:
        shop.arrow_rows("orders", -1, orders(ROWS[:3]))
    assert (caught.value.row, caught.value.value["id"]) == (2, 3)
    assert content(shop) == by_rows(ROWS[:2])


# -- events ------------------------------------------------------------------------------------------------------------

PAID = {"customer": "Ada", "amount": Decimal("1.00")}
EVENTS = [
    (1, "orders", dict(zip(NAMES, ROWS[0], strict=True))),
    (1, "payments", PAID),
    (2, "orders", dict(zip(NAMES, ROWS[4], strict=True))),
    (-1, "orders", dict(zip(NAMES, ROWS[0], strict=True))),
    (0, "payments", PAID),
]
ROW_TYPES = {
    "orders": pa.struct([(c.name, arrow.arrow_type(c.type)) for c in ORDERS.columns]),
    "payments": pa.struct([("amount", pa.decimal128(12, 2)), ("customer", pa.string())]),
}


def as_structs(events: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = {"op": pa.array([op for op, _, _ in events], pa.int8()), "relation": as_relation(events)}
    for name, type_ in ROW_TYPES.items():
        columns[name] = pa.array([row if relation == name else None for _, relation, row in events], type_)
    return pa.record_batch(columns)


def as_union(events: list[tuple[Any, ...]]) -> pa.RecordBatch:
    names = list(ROW_TYPES)
    rows = {name: [row for _, relation, row in events if relation == name] for name in names}
    kinds = [names.index(relation) for _, relation, _ in events]
    places = [kinds[:i].count(kind) for i, kind in enumerate(kinds)]
    children = [pa.array(rows[name], type_) for name, type_ in ROW_TYPES.items()]
    codes = pa.array([{0: 5, 1: 2}[k] for k in kinds], pa.int8())
    union = pa.UnionArray.from_dense(codes, pa.array(places, pa.int32()), children, names, [5, 2])
    return pa.record_batch({"op": pa.array([op for op, _, _ in events]), "relation": as_relation(events), "row": union})


def as_relation(events: list[tuple[Any, ...]]) -> pa.Array:
    return pa.array([relation for _, relation, _ in events]).dictionary_encode()


@pytest.mark.parametrize("batch_of", [as_structs, as_union])
@pytest.mark.parametrize("start", [0, 2])
def test_events_in_arrow(shop: NativeState, batch_of: Any, start: int) -> None:
    slow = opened("shop")
    slow.events(EVENTS[2:3] * 2 if start else [])
    slow.events(EVENTS[start:3])
    shop.events(EVENTS[2:3] * 2 if start else [])
    assert shop.arrow_events(batch_of(EVENTS[:3]).slice(start))
    assert (content(shop), shop.table("payments")) == (content(slow), slow.table("payments"))
    assert shop.find("pairs", ()) == slow.find("pairs", ())
    plain = batch_of(EVENTS[:3]).slice(start)
    strings = plain.set_column(1, "relation", plain.column("relation").dictionary_decode())
    assert shop.arrow_events(strings)
    whole = opened("shop")
    assert whole.arrow_events(batch_of(EVENTS))
    assert whole.find("orders_by", ("Ada",)) == 2


def test_one_struct_for_all(shop: NativeState) -> None:
    batch = as_structs(EVENTS[1:2]).drop_columns(["orders"]).rename_columns(["op", "relation", "row"])
    assert shop.arrow_events(batch)
    assert shop.table("payments") == {("Ada", 100): 1}
    with pytest.raises(DataError, match="payments, row 0"):
        shop.arrow_events(batch.set_column(0, "op", pa.array([-2])))


@pytest.mark.parametrize("slice_", [0, 3])
@pytest.mark.parametrize(
    ("codes", "places"),
    [
        ([5] * 20, list(range(4, 24))),
        ([5] * 20, list(range(23, 3, -1))),
        ([5] * 20, [*range(4, 15), 4, *range(16, 24)]),
        ([5] * 20, [*range(4, 23), 2]),
        ([5] * 10 + [2] * 10, list(range(4, 24))),
        ([5, 2] * 10, [i // 2 for i in range(20)]),
    ],
    ids=["in line", "backwards", "one twice", "the last elsewhere", "two structs in line", "two structs in turn"],
)
def test_rows_of_one_stream_lie_anywhere(shop: NativeState, codes: list[int], places: list[int], slice_: int) -> None:
    """Two structs of a union, both with payments."""
    structs = [[{"customer": "Ada", "amount": Decimal(n + first)} for n in range(24)] for first in (0, 100)]
    children = [pa.array(rows, ROW_TYPES["payments"]) for rows in structs]
    union = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()), pa.array(places, pa.int32()), children, ["a", "b"], [5, 2]
    )
    relation = pa.array(["payments"] * 20).dictionary_encode()
    batch = pa.record_batch({"op": pa.array([1] * 20, pa.int8()), "relation": relation, "row": union})
    assert shop.arrow_events(batch.slice(slice_))
    amounts = [100 * (place + (100 if code == 2 else 0)) for code, place in zip(codes, places, strict=True)]
    assert shop.table("payments") == Counter(("Ada", amount) for amount in amounts[slice_:])


def test_events_that_are_left_to_python(shop: NativeState) -> None:
    good = as_structs(EVENTS)
    bad = [
        good.set_column(0, "op", pa.array([1, 1, 1, None, 1])),
        good.set_column(0, "op", pa.array(["+"] * 5)),
        good.set_column(1, "relation", pa.array(["orders", "nobody", "orders", "orders", "payments"])),
        good.set_column(1, "relation", pa.array(["orders", "orders", "orders", "orders", "orders"])),
        good.set_column(1, "relation", pa.array(["orders", None, "orders", "orders", "payments"])),
        good.drop_columns(["payments"]),
        good.drop_columns(["op"]),
    ]
    assert [shop.arrow_events(batch) for batch in bad] == [False] * len(bad)
    assert (shop.table("orders"), shop.table("payments")) == ({}, {})


def test_a_spoiled_batch_leaves_the_tables(shop: NativeState) -> None:
    wide = dict(zip(NAMES, (*ROWS[0][:3], Decimal(10**33), *ROWS[0][4:]), strict=True))
    with pytest.raises(OverflowError_, match="squares"):
        shop.arrow_events(as_structs([*EVENTS[:2], (1, "orders", wide)]))
    assert (shop.table("orders"), shop.table("payments")) == ({}, {})
