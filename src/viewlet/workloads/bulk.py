"""The paper's streams (§6) at their full size, generated column by column with numpy and handed out as Arrow.

:mod:`viewlet.workloads.streams` makes small streams one event at a time, for tests; here a day of 2.63 million order
book events takes a second or two. Each inserted row is stored once in its relation's table, and a delete names that
very row, so it repeats it exactly. The same seed and parameters give the same events.

Who leaves when, without looping: where ``live`` rows are there and each arrival pushes out a random one, the time to
live is exponential with mean ``live`` arrivals, counted from when the population was complete.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from viewlet.errors import Error
from viewlet.workloads.streams import NATION, Event, Op, Row

try:
    import numpy as np
    import numpy.typing as npt
except ImportError as missing:
    raise Error("bulk streams are generated with numpy: pip install numpy") from missing

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Form = Literal["union", "structs"]

ORDER_BOOK_EVENTS = 2_630_000  # one day of MSFT
TPCH_EVENTS = 1_000_000


@dataclass(frozen=True)
class BulkStream:
    """Event i inserts (ops[i] = 1) or deletes (-1) row ``places[i]`` of the table of relation ``codes[i]``."""

    tables: Mapping[str, pa.Table]
    ops: npt.NDArray[np.int8]
    codes: npt.NDArray[np.int8]
    places: Ints

    def __len__(self) -> int:
        return len(self.ops)

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(self.tables)

    def only(self, relations: Collection[str]) -> BulkStream:
        """The events of some relations; the others' tables go, too."""
        kept = [code for code, name in enumerate(self.tables) if name in relations]
        chosen = np.isin(self.codes, kept)
        renamed = np.full(len(self.tables), -1, np.int8)
        renamed[kept] = np.arange(len(kept), dtype=np.int8)
        tables = {name: table for name, table in self.tables.items() if name in relations}
        return BulkStream(tables, self.ops[chosen], renamed[self.codes[chosen]], self.places[chosen])

    def between(self, start: int, stop: int) -> BulkStream:
        return BulkStream(self.tables, self.ops[start:stop], self.codes[start:stop], self.places[start:stop])

    def batches(self, rows: int, form: Form = "union") -> Iterator[pa.RecordBatch]:
        """Batches of at most so many events, in the Arrow form that ``Database.apply`` takes."""
        for start in range(0, len(self), rows):
            yield self.between(start, start + rows).batch(form)

    def batch(self, form: Form = "union") -> pa.RecordBatch:
        """All events in one batch; a row is in a dense union, or in one struct column for each relation."""
        names = pa.DictionaryArray.from_arrays(pa.array(self.codes), pa.array(self.relations, pa.string()))
        columns = {"op": pa.array(self.ops), "relation": names}
        columns |= {"row": self._union()} if form == "union" else self._structs()
        return pa.record_batch(columns)

    def _union(self) -> pa.UnionArray:
        offsets, children = np.zeros(len(self), np.int32), []
        for code, table in enumerate(self.tables.values()):
            mine = self.codes == code
            offsets[mine] = np.arange(np.count_nonzero(mine), dtype=np.int32)
            children.append(_structs(table, pa.array(self.places[mine])))
        return pa.UnionArray.from_dense(pa.array(self.codes), pa.array(offsets), children, list(self.relations))

    def _structs(self) -> dict[str, pa.StructArray]:
        return {
            name: _structs(table, pa.array(self.places, mask=self.codes != code))
            for code, (name, table) in enumerate(self.tables.items())
        }

    def runs(self) -> Iterator[tuple[Op, str, pa.Table]]:
        """Neighbouring events of one kind, as a table that ``Database.insert`` or ``delete`` takes."""
        kinds = self.codes * np.int8(2) + (self.ops > 0)
        starts = np.flatnonzero(np.diff(kinds, prepend=np.int8(-1)))
        for start, stop in zip(starts, [*starts[1:], len(self)], strict=True):
            name = self.relations[self.codes[start]]
            yield "+" if self.ops[start] > 0 else "-", name, self.tables[name].take(pa.array(self.places[start:stop]))

    def events(self, chunk: int = 10_000) -> Iterator[Event]:
        """One at a time, as Python values."""
        for start in range(0, len(self), chunk):
            part = self.between(start, start + chunk)
            rows = {code: part._python_rows(code) for code in np.unique(part.codes)}
            for op, code in zip(part.ops, part.codes, strict=True):
                yield "+" if op > 0 else "-", self.relations[code], next(rows[code])

    def _python_rows(self, code: int) -> Iterator[Row]:
        table = self.tables[self.relations[code]].take(pa.array(self.places[self.codes == code]))
        return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _structs(table: pa.Table, places: pa.Array) -> pa.StructArray:
    """Rows by their place; where there is no place there is no row, and the struct is null."""
    taken = table.take(places).combine_chunks()
    fields = [pa.field(f.name, f.type) for f in table.schema]
    columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in taken.columns]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=places.is_null())


@dataclass
class Moves:
    """Arrivals and departures of rows, collected in any order and sorted by time at the end."""

    times: list[Floats]
    ops: list[int]
    codes: list[int | Ints]
    places: list[Ints]

    @classmethod
    def none(cls) -> Moves:
        return cls([], [], [], [])

    def add(self, op: int, code: int | Ints, times: Floats, places: Ints) -> None:
        self.times.append(times)
        self.ops.append(op)
        self.codes.append(code)
        self.places.append(places)

    def stream(self, tables: Mapping[str, pa.Table], events: int) -> BulkStream:
        """The first events; of two at the same time, the one that was added first comes first."""
        sizes = [len(times) for times in self.times]
        codes = np.concatenate([np.broadcast_to(c, n) for c, n in zip(self.codes, sizes, strict=True)])
        order = np.argsort(np.concatenate(self.times), kind="stable")[:events]
        ops = np.repeat(np.array(self.ops, np.int8), sizes)
        return BulkStream(tables, ops[order], codes[order].astype(np.int8), np.concatenate(self.places)[order])


# -- the order book ----------------------------------------------------------------------------------------------------

_TICKS = 20  # in a unit of price: a tick is 0.05, which no double is exactly
_MID, _MID_REACH, _JUMP = 10_000, 4_000, 1_500  # as in streams: after a jump, old orders cross by more than AXF's 1000
_AWAY = 50  # from the mid, on average
_FILLED = 0.2  # the share of orders that are executed in part first


def order_book(
    seed: int,
    events: int = ORDER_BOOK_EVENTS,
    *,
    brokers: int = 10,
    live: int = 10_000,
    sides: Sequence[str] = ("bids", "asks"),
) -> BulkStream:
    """A limit order book of about ``live`` resting orders, all sides together: arrivals, cancels and executions.

    An execution in part is a delete, and an insert with what is left of the volume. Volumes are whole.
    """
    rng = np.random.default_rng(seed)
    arrivals = (events + live) // 2 + 4 * math.isqrt(events) + 16  # an order makes at least two events but for the last
    side = rng.integers(0, len(sides), arrivals)
    orders = _orders(rng, arrivals, brokers, np.array([-1 if name == "bids" else 1 for name in sides])[side], live)
    born = np.arange(arrivals, dtype=np.float64)
    gone = np.maximum(born, live) + rng.exponential(live, arrivals)
    rest = np.floor(orders["volume"] * rng.choice((0.5, 0.75), arrivals))
    filled = np.flatnonzero((rng.random(arrivals) < _FILLED) & (rest > 0))
    when = born[filled] + (gone[filled] - born[filled]) * rng.random(len(filled))
    first_gone = gone.copy()
    first_gone[filled] = when

    rows = {name: np.concatenate([values, values[filled]]) for name, values in orders.items()}
    rows["volume"][arrivals:] = rest[filled]
    codes = np.concatenate([side, side[filled]])
    moves = Moves.none()
    moves.add(+1, side, born, np.arange(arrivals))
    moves.add(-1, side, first_gone, np.arange(arrivals))
    moves.add(+1, side[filled], when, np.arange(arrivals, len(codes)))
    moves.add(-1, side[filled], gone[filled], np.arange(arrivals, len(codes)))
    return _by_side(moves.stream({}, events), rows, codes, sides)


def _orders(rng: np.random.Generator, n: int, brokers: int, sign: Ints, live: int) -> dict[str, Any]:
    """Columns of n orders; low numbers are busy brokers; most volumes are round lots."""
    away = np.floor(rng.exponential(_AWAY * _TICKS, n))
    lots = 100 * np.minimum(rng.geometric(0.25, n), 50)
    return {
        "t": np.cumsum(rng.choice((0.0, 1.0, 1.0, 2.0), n)),
        "id": np.arange(1, n + 1),
        "broker_id": (brokers * rng.random(n) ** 1.5).astype(np.int64),
        "volume": np.where(rng.random(n) < 0.15, rng.integers(1, 100, n), lots).astype(np.float64),
        "price": (_mid(rng, n, live) + sign * away) / _TICKS,
    }


def _mid(rng: np.random.Generator, n: int, live: int) -> Floats:
    """In ticks: a random walk, with a few jumps in the life of an order, folded back where it leaves its range."""
    jumps = rng.choice((-_JUMP, _JUMP), n) * (rng.random(n) < 3 / live) * _TICKS
    walk = np.cumsum(rng.integers(-2, 3, n) + jumps)
    reach = _MID_REACH * _TICKS
    folded: Floats = np.abs((walk + reach) % (4 * reach) - 2 * reach).astype(np.float64)
    return folded + (_MID * _TICKS - reach)


def _by_side(stream: BulkStream, rows: dict[str, Any], codes: Ints, sides: Sequence[str]) -> BulkStream:
    """Tables of their own for the sides: a row's place among all becomes its place on its side."""
    tables, place = {}, np.empty(len(codes), np.int64)
    for code, name in enumerate(sides):
        mine = codes == code
        place[mine] = np.arange(np.count_nonzero(mine))
        tables[name] = pa.table({column: values[mine] for column, values in rows.items()})
    return BulkStream(tables, stream.ops, stream.codes, place[stream.places])


# -- books of a given size ---------------------------------------------------------------------------------------------

_SPREAD_OF_PRICES = 400.0  # from the mid, on average: a third of all pairs is apart by more than AXF's 1000
_DIGITS_OF_PRICES = 5  # so that a million orders have about as many prices
_LEAST_VOLUME = 1e6


def deep_book(
    seed: int,
    live: int,
    events: int = 100_000,
    *,
    brokers: int = 10,
    sides: Sequence[str] = ("bids", "asks"),
) -> BulkStream:
    """``live`` events insert the orders of a book; then so many ``events`` in which one leaves and another comes.

    Unlike :func:`order_book` it looks the same at every size: hardly two orders share a price, a volume or a time, the
    mid stays, and volumes are so uneven (P(volume > v) is proportional to 1/v) that in a book of a million, too, some
    have more than PSP's 0.0001 of the whole.
    """
    rng = np.random.default_rng(seed)
    slots, ops, places = _succession(rng, live, (events + 1) // 2)
    n, codes = len(slots), slots % len(sides)
    sign = np.array([-1 if name == "bids" else 1 for name in sides])[codes]
    rows = {
        "t": np.arange(n, dtype=np.float64),
        "id": np.arange(1, n + 1),
        "broker_id": (brokers * rng.random(n) ** 1.5).astype(np.int64),
        "volume": np.floor(_LEAST_VOLUME / (1 - rng.random(n))),
        "price": np.round(_MID + sign * rng.exponential(_SPREAD_OF_PRICES, n), _DIGITS_OF_PRICES),
    }
    stream = BulkStream({}, ops, codes[places].astype(np.int8), places).between(0, live + events)
    return _by_side(stream, rows, codes, sides)


def _succession(rng: np.random.Generator, live: int, changes: int) -> tuple[Ints, npt.NDArray[np.int8], Ints]:
    """Rows in turn take ``live`` slots; then each next one takes a random slot, whose row leaves just before.

    Returns each row's slot, and the events: what happens, and to which row.
    """
    slots = np.concatenate([np.arange(live), rng.integers(0, live, changes)])
    by_slot = np.argsort(slots, kind="stable")
    previous = np.empty(len(slots), np.int64)
    previous[by_slot[1:]] = by_slot[:-1]
    came = np.arange(live, len(slots))
    places = np.concatenate([np.arange(live), np.stack([previous[came], came], axis=1).ravel()])
    return slots, np.concatenate([np.ones(live, np.int8), np.tile(np.array([-1, 1], np.int8), changes)]), places


# -- TPC-H -------------------------------------------------------------------------------------------------------------

_FIRST_DAY, _LAST_DAY = ((day - dt.date(1970, 1, 1)).days for day in (dt.date(1992, 1, 1), dt.date(1998, 8, 2)))
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
_SUPPLIERS_OF_A_PART = 4
_SPREAD = 20.0  # the rows of an order come, and go, among those of its twenty neighbours


def tpch(seed: int, events: int = TPCH_EVENTS, *, scale: float = 0.1, live: int = 30_000) -> BulkStream:
    """Customers, parts, suppliers and partsupp of a scale factor; then orders with their lineitems come and go.

    As DBGEN makes them, but that a part is ordered the more often the lower its key: with 30 thousand orders evenly
    spread no quantity would be below Q17's 0.005 of its part's. From ``live`` orders on, a random one leaves for each
    that comes. The static table is :data:`viewlet.workloads.streams.NATION`.
    """
    rng = np.random.default_rng(seed)
    counts = {"customer": int(150_000 * scale), "part": int(200_000 * scale), "supplier": int(10_000 * scale)}
    if min(counts.values()) < _SUPPLIERS_OF_A_PART:
        raise Error(f"scale={scale} leaves fewer than {_SUPPLIERS_OF_A_PART} suppliers: take 0.001 or more")
    tables = _dimensions(rng, counts)
    moves = Moves.none()
    for code, table in enumerate(tables.values()):
        moves.add(+1, code, rng.random(len(table)) - 2, np.arange(len(table)))
    orders = max(events - sum(map(len, tables.values())), 0) // 4 + 16  # one makes two rows at least, most of them more
    tables |= _orders_and_lineitems(rng, orders, counts, moves, len(tables), live)
    return moves.stream(tables, events)


def customers_and_orders(seed: int, live: int, events: int = 100_000) -> BulkStream:
    """2 · ``live`` events insert customers, and orders of two thirds of them; then so many ``events``.

    In turn a customer's balance changes (the row leaves and another with his key comes), and an order leaves and
    another one comes.
    """
    rng = np.random.default_rng(seed)
    changes = (events + 3) // 4
    slots, ops, customers = _succession(rng, live, changes)
    order_slots, _, orders = _succession(rng, live, changes)
    n = len(slots)
    names = pa.array([f"Customer#{key:09d}" for key in range(1, live + 1)])
    tables = {
        "customer": pa.table(
            {
                "custkey": slots + 1,
                "name": names.take(pa.array(slots)),
                "nationkey": slots % len(NATION),
                "acctbal": _cents(rng.integers(-99_999, 1_000_000, n)),
                "mktsegment": _words(_SEGMENTS, rng, n),
            }
        ),
        "orders": pa.table(
            {
                "orderkey": np.arange(1, n + 1),
                "custkey": _buyers(rng, len(order_slots), live),
                "orderdate": _dates(rng.integers(_FIRST_DAY, _LAST_DAY + 1, n)),
                "shippriority": np.zeros(n, np.int32),
            }
        ),
    }
    codes = np.concatenate([np.repeat([0, 1], live), np.tile([0, 0, 1, 1], changes)]).astype(np.int8)
    places = np.empty(len(codes), np.int64)
    places[codes == 0], places[codes == 1] = customers, orders
    all_ops = np.concatenate([np.ones(2 * live, np.int8), np.repeat(ops[live:].reshape(-1, 2), 2, axis=0).ravel()])
    return BulkStream(tables, all_ops, codes, places).between(0, 2 * live + events)


def _dimensions(rng: np.random.Generator, counts: Mapping[str, int]) -> dict[str, pa.Table]:
    customers, parts, suppliers = counts.values()
    part = np.repeat(np.arange(1, parts + 1), _SUPPLIERS_OF_A_PART)
    turn = np.tile(np.arange(_SUPPLIERS_OF_A_PART), parts)
    pairs = len(part)
    return {
        "customer": pa.table(
            {
                "custkey": np.arange(1, customers + 1),
                "name": pa.array([f"Customer#{key:09d}" for key in range(1, customers + 1)]),
                "nationkey": rng.integers(0, len(NATION), customers),
                "acctbal": _cents(rng.integers(-99_999, 1_000_000, customers)),
                "mktsegment": _words(_SEGMENTS, rng, customers),
            }
        ),
        "part": pa.table({"partkey": np.arange(1, parts + 1), "type": _words(_TYPES, rng, parts)}),
        "supplier": pa.table(
            {"suppkey": np.arange(1, suppliers + 1), "nationkey": rng.integers(0, len(NATION), suppliers)}
        ),
        "partsupp": pa.table(
            {
                "partkey": part,
                "suppkey": _supplier(part, turn, suppliers),
                "availqty": rng.integers(1, 10_000, pairs),
                "supplycost": _cents(rng.integers(100, 100_001, pairs)),
            }
        ),
    }


def _orders_and_lineitems(
    rng: np.random.Generator, n: int, counts: Mapping[str, int], moves: Moves, code: int, live: int
) -> dict[str, pa.Table]:
    """The tables of n orders and their lineitems (DBGEN: 1 to 7), and when each row comes and goes."""
    born = np.arange(n, dtype=np.float64)
    gone = np.maximum(born + 2 * _SPREAD, live) + rng.exponential(live, n)
    dates = rng.integers(_FIRST_DAY, _LAST_DAY + 1, n)
    order = np.repeat(np.arange(n), rng.integers(1, 8, n))
    came, left = (times[order] + _SPREAD * rng.random(len(order)) for times in (born, gone))
    moves.add(+1, code, born, np.arange(n))
    moves.add(-1, code, gone, np.arange(n))
    moves.add(+1, code + 1, came, np.arange(len(order)))
    moves.add(-1, code + 1, left, np.arange(len(order)))
    orders = {
        "orderkey": np.arange(1, n + 1),
        "custkey": _buyers(rng, n, counts["customer"]),
        "orderdate": _dates(dates),
        "shippriority": np.zeros(n, np.int32),
    }
    return {"orders": pa.table(orders), "lineitem": _lineitems(rng, order, dates, counts)}


def _lineitems(rng: np.random.Generator, order: Ints, dates: Ints, counts: Mapping[str, int]) -> pa.Table:
    n = len(order)
    part = 1 + (counts["part"] * rng.random(n) ** 2).astype(np.int64)
    quantity = rng.integers(1, 51, n)
    retail = 90_000 + part // 10 % 20_001 + 100 * (part % 1000)
    return pa.table(
        {
            "orderkey": order + 1,
            "partkey": part,
            "suppkey": _supplier(part, rng.integers(0, _SUPPLIERS_OF_A_PART, n), counts["supplier"]),
            "quantity": _cents(100 * quantity),
            "extendedprice": _cents(quantity * retail),
            "discount": _cents(rng.integers(0, 11, n)),
            "shipdate": _dates(dates[order] + rng.integers(1, 122, n)),
        }
    )


def _buyers(rng: np.random.Generator, n: int, customers: int) -> Ints:
    """Every third customer never orders (Q22)."""
    buyer = rng.integers(0, customers - customers // 3, n)
    return buyer + buyer // 2 + 1


def _supplier(part: Ints, turn: Ints, suppliers: int) -> Ints:
    """DBGEN's n-th supplier of a part."""
    return (part + turn * (suppliers // _SUPPLIERS_OF_A_PART + (part - 1) // suppliers)) % suppliers + 1


def _cents(values: Ints) -> pa.Array:
    """DECIMAL(12,2): a little-endian integer of 128 bits, of which these values fill the lower half."""
    halves = np.stack([values, values >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(values), [None, pa.py_buffer(halves)])


def _dates(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32)).view(pa.date32())


def _words(words: Sequence[str], rng: np.random.Generator, n: int) -> pa.Array:
    return pa.array(words).take(pa.array(rng.integers(0, len(words), n)))
