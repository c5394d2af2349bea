"""Event streams for the paper's workloads, generated one event at a time from a seed.

Each stream yields ``(op, relation, row)`` with op ``+`` or ``-``; a ``-`` always names a row that is there. The same
seed and parameters give the same events. With few live rows, as in tests, every threshold of the twelve queries (1000
in AXF, 0.0001 in PSP, 25% in VWAP and MST, 100 in Q18, 0.005 in Q17, the dates) is still met on both sides.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from random import Random
from typing import Literal

Op = Literal["+", "-"]
Row = tuple[object, ...]
Event = tuple[Op, str, Row]


# -- the order book (§6: updates to Bids and Asks) ---------------------------------------------------------------------


def order_book(
    seed: int,
    events: int,
    *,
    brokers: int = 10,
    live: int = 1000,
    sides: Sequence[str] = ("bids", "asks"),
    duplicates: float = 0.0,
    session: int | None = None,
) -> Iterator[Event]:
    """A limit order book of about ``live`` resting orders on each side.

    ``duplicates`` is the share of orders that the feed delivers twice. After every ``session`` events the market
    closes and all orders are cancelled, so that the relations become empty. Prices are whole and volumes are quarters,
    so that sums of volume × price are exact in doubles (BSV's products of four factors may round).
    """
    return islice(_Book(Random(seed), brokers, live, tuple(sides), duplicates).sessions(session), events)


@dataclass
class _Book:
    rng: Random
    brokers: int
    live: int
    sides: tuple[str, ...]
    duplicates: float
    clock: int = 0
    last_id: int = 0
    mid: int = 10_000
    resting: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.resting = {side: [] for side in self.sides}

    def sessions(self, length: int | None) -> Iterator[Event]:
        while True:
            seen = 0
            while length is None or seen < length:
                for event in self._step():
                    seen += 1
                    yield event
            for side, orders in self.resting.items():
                while orders:
                    yield self._take(side)

    def _step(self) -> Iterator[Event]:
        side = self.rng.choice(self.sides)
        self.clock += self.rng.choice((0, 1, 1, 2))
        self._move_mid()
        if self.rng.random() < len(self.resting[side]) / (2 * self.live):
            yield from self._execute(side) if self.rng.random() < 0.4 else (self._take(side),)
        else:
            order = self._new_order(side)
            for _ in range(2 if self.rng.random() < self.duplicates else 1):
                yield self._put(side, order)

    def _move_mid(self) -> None:
        """A random walk with rare jumps: after one, old orders of the two sides cross by more than AXF's 1000."""
        jump = self.rng.random() < 0.01
        self.mid += self.rng.choice((-1500, 1500)) if jump else self.rng.randint(-20, 20)
        self.mid = min(max(self.mid, 6_000), 14_000)

    def _new_order(self, side: str) -> Row:
        self.last_id += 1
        away = int(self.rng.expovariate(1 / 400))
        price = self.mid - away if side == "bids" else self.mid + away
        broker = int(self.brokers * self.rng.random() ** 1.5)
        return (float(self.clock), self.last_id, broker, self._volume(), float(max(price, 1)))

    def _volume(self) -> float:
        """Mostly round lots; now and then so few shares that they are dust next to 0.0001 of the whole book (PSP)."""
        if self.rng.random() < 0.15:
            return self.rng.randint(1, max(4, self.live // 8)) / 4
        return 25.0 * self.rng.randint(1, 40)

    def _execute(self, side: str) -> Iterator[Event]:
        """A trade takes a resting order, whole or in part: a partial fill is a delete and an insert."""
        taken = self._take(side)
        yield taken
        t, order_id, broker, volume, price = taken[2]
        assert isinstance(volume, float)
        filled = math.ceil(4 * volume * self.rng.choice((0.25, 0.5, 1.0))) / 4
        if filled < volume:
            yield self._put(side, (t, order_id, broker, volume - filled, price))

    def _put(self, side: str, order: Row) -> Event:
        self.resting[side].append(order)
        return "+", side, order

    def _take(self, side: str) -> Event:
        return "-", side, _take_any(self.resting[side], self.rng)


def _take_any(rows: list[Row], rng: Random) -> Row:
    """Remove a random row in O(1): the last one takes its place."""
    i = rng.randrange(len(rows))
    rows[i], rows[-1] = rows[-1], rows[i]
    return rows.pop()


# -- TPC-H (§6: insertions on all relations, random deletions on Orders) -----------------------------------------------

REGION_OF_NATION = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
NATION: tuple[Row, ...] = tuple(enumerate(REGION_OF_NATION))
TPCH_STREAMS = ("customer", "orders", "lineitem", "part", "supplier", "partsupp")

_SEGMENTS = ("BUILDING", "BUILDING", "MACHINERY")
_TYPES = ("ECONOMY BRASS", "PROMO COPPER", "SMALL TIN")
_CUTOFFS = 2 * (dt.date(1995, 3, 15),) + (dt.date(1997, 1, 1), dt.date(1998, 1, 1))  # of Q3, twice, and SSB4


def tpch(
    seed: int,
    events: int,
    *,
    live: int = 30_000,
    relations: Sequence[str] = TPCH_STREAMS,
    duplicates: float = 0.0,
    delete_from: Sequence[str] = ("orders", "lineitem"),
) -> Iterator[Event]:
    """Random inserts into ``relations``, with deletes that keep about ``live`` orders and the others in proportion.

    A relation not in ``delete_from`` is inserted completely, each key once, and then left alone, as in the paper. One
    that is deleted from draws its keys at random: a key may come back, dangle, or stand twice. ``duplicates`` is the
    share of its rows that come twice, all columns equal. The static table is :data:`NATION`.
    """
    chosen = tuple(r for r in TPCH_STREAMS if r in relations)
    return islice(_Warehouse(Random(seed), live, chosen, duplicates, frozenset(delete_from)).events(), events)


@dataclass
class _Warehouse:
    rng: Random
    live: int
    relations: tuple[str, ...]
    duplicates: float
    delete_from: frozenset[str]
    rows: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = {name: [] for name in self.relations}

    def events(self) -> Iterator[Event]:
        weights = [_ROWS[name] for name in self.relations]
        while any(name in self.delete_from or not self._is_full(name) for name in self.relations):
            (name,) = self.rng.choices(self.relations, weights)
            if name in self.delete_from:
                yield from self._churn(name)
            elif not self._is_full(name):
                yield self._put(name, _NEW_ROW[name](self, len(self.rows[name]) + 1))

    def keys(self, relation: str) -> int:
        """A relation's keys are 1 … this: fewer than there are orders, so that joins find partners."""
        return max(2, int(self.live * _KEYS[relation]))

    def _is_full(self, name: str) -> bool:
        return len(self.rows[name]) >= self.keys(name)

    def _churn(self, name: str) -> Iterator[Event]:
        if self.rng.random() < len(self.rows[name]) / (2 * self.live * _ROWS[name]):
            yield "-", name, _take_any(self.rows[name], self.rng)
            return
        row = _NEW_ROW[name](self, self.rng.randint(1, self.keys(name)))
        for _ in range(2 if self.rng.random() < self.duplicates else 1):
            yield self._put(name, row)

    def _put(self, name: str, row: Row) -> Event:
        self.rows[name].append(row)
        return "+", name, row

    def early(self, relation: str) -> int:
        """A foreign key; low keys are the busy ones, and the highest have no partner most of the time (Q22, Q17)."""
        return 1 + int(self.keys(relation) * self.rng.random() ** 2)

    def customer(self, key: int) -> Row:
        """Balances are mostly negative: with two positive ones Q22's first condition is always true."""
        balance = self.rng.randint(-99_999, -1) if self.rng.random() < 0.8 else self.rng.randint(0, 999_999)
        segment = self.rng.choice(_SEGMENTS)
        return (key, f"Customer#{key:09d}", self.rng.randrange(6), _cents(balance), segment)

    def order(self, key: int) -> Row:
        return (key, self.early("customer"), self.date(), self.rng.randrange(2))

    def lineitem(self, _key: int) -> Row:
        """Large quantities and small ones, so that some are below 0.005 of their part's sum (Q17)."""
        order, part, supplier = self.rng.randint(1, self.keys("orders")), self.early("part"), self.early("supplier")
        small = self.rng.random() < 0.3
        quantity = 25 * self.rng.randint(1, 12) if small else 100 * self.rng.randint(20, 50)
        price = quantity * self.rng.randint(900, 1100)
        shipped = self.date() + dt.timedelta(days=self.rng.randint(1, 121))
        return (order, part, supplier, _cents(quantity), _cents(price), _cents(self.rng.randint(0, 10)), shipped)

    def part(self, key: int) -> Row:
        return (key, self.rng.choice(_TYPES))

    def supplier(self, key: int) -> Row:
        return (key, self.rng.randrange(len(NATION)))

    def partsupp(self, key: int) -> Row:
        """As DBGEN pairs them: the n-th supplier of a part is n further on, so that no pair comes twice."""
        turn, part = divmod(key - 1, self.keys("part"))
        supplier = (part + turn) % self.keys("supplier")
        return (part + 1, supplier + 1, self.rng.randint(0, 9999), _cents(self.rng.randint(100, 100_000)))

    def date(self) -> dt.date:
        """Around the dates that the queries ask about, and now and then exactly on one."""
        days = 0 if self.rng.random() < 0.1 else self.rng.randint(-120, 120)
        return self.rng.choice(_CUTOFFS) + dt.timedelta(days=days)


_NEW_ROW: dict[str, Callable[[_Warehouse, int], Row]] = {
    "customer": _Warehouse.customer,
    "orders": _Warehouse.order,
    "lineitem": _Warehouse.lineitem,
    "part": _Warehouse.part,
    "supplier": _Warehouse.supplier,
    "partsupp": _Warehouse.partsupp,
}
# For each order: rows where a relation is deleted from, and keys.
_ROWS = {"customer": 0.7, "orders": 1.0, "lineitem": 1.5, "part": 0.4, "supplier": 0.4, "partsupp": 1.0}
_KEYS = {"customer": 0.6, "orders": 0.6, "lineitem": 1.5, "part": 0.3, "supplier": 0.3, "partsupp": 1.0}


def _cents(n: int) -> Decimal:
    return Decimal(n).scaleb(-2)
