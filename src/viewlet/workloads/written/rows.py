"""Rows for the benchmarks of this package: few keys, and the values that the questions ask for.

A benchmark's own generator asks a question about one row in thousands. A short stream then answers nothing, and an
answer that stays empty proves nothing. So each column draws from a short list that the questions were read for.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from random import Random
from types import MappingProxyType

from viewlet.compilation import compile
from viewlet.schema import Column, Relation
from viewlet.workloads.ssb import DATE
from viewlet.workloads.streams import REGION_OF_NATION, Event, Row
from viewlet.workloads.written import SuiteName, suite

Draw = Callable[[Random], object]
Pool = Sequence[object] | Draw

UPDATES = 0.15  # the share of steps that change a row: a delete and an insert


def _cents(low: int, high: int) -> Draw:
    return lambda rng: Decimal(rng.randint(low, high)) / 100


def _days(first: str, days: int) -> Draw:
    start = dt.date.fromisoformat(first)
    return lambda rng: start + dt.timedelta(days=rng.randrange(days))


def _moments(first: str, seconds: int) -> Draw:
    """To the microsecond: no two rows tie in an order by time."""
    start = dt.datetime.fromisoformat(first)
    return lambda rng: start + dt.timedelta(microseconds=rng.randrange(seconds * 1_000_000))


def _prices(*ranks: int) -> Draw:
    """Around some prices; no two are likely to be equal."""
    return lambda rng: rng.choice(ranks) + rng.randrange(1000)


# -- TPC-H -------------------------------------------------------------------------------------------------------------

_NATIONS = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
)  # fmt: skip
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_ASKED_NATIONS = (2, 3, 6, 7, 8, 20)  # Brazil, Canada, France, Germany, India, Saudi Arabia
_PARTS, _SUPPLIERS, _CUSTOMERS, _ORDERS = (1, 2), (1, 2, 3, 4), (1, 2, 3), range(1, 9)
_TPCH: Mapping[str, Pool] = {
    "p_partkey": _PARTS,
    "p_name": ("forest green", "lace forest", "forest"),
    "p_mfgr": ("Manufacturer#1", "Manufacturer#2"),
    "p_brand": ("Brand#12", "Brand#23", "Brand#23", "Brand#23", "Brand#34"),
    "p_type": ("ECONOMY ANODIZED STEEL", "PROMO BURNISHED BRASS", "LARGE BRASS", "MEDIUM POLISHED TIN"),
    "p_size": (3, 3, 15, 49),
    "p_container": ("SM BOX", "MED BOX", "MED BOX", "MED BOX", "LG BOX"),
    "s_suppkey": _SUPPLIERS,
    "s_nationkey": (3, 6, 7, 8, 8, 20, 20),
    "s_phone": ("13-555", "31-556"),
    "s_acctbal": _cents(-99_999, 999_999),
    "s_comment": ("fine", "fine", "fine", "Customer grumbles, then Complaints"),
    "ps_partkey": _PARTS,
    "ps_suppkey": _SUPPLIERS,
    "ps_availqty": (1, 10, 60, 500),
    "ps_supplycost": (Decimal("1.50"), Decimal("1.50"), Decimal("20.00"), Decimal("300.25")),
    "c_custkey": _CUSTOMERS,
    "c_nationkey": (2, 6, 7, 8, 8),
    "c_phone": ("13-555", "31-556", "99-557"),
    "c_acctbal": _cents(-99_999, 999_999),
    "c_mktsegment": ("BUILDING", "BUILDING", "MACHINERY"),
    "o_orderkey": _ORDERS,
    "o_custkey": (1, 1, 1, 2),  # the last customer has no orders
    "o_orderstatus": ("F", "F", "O"),
    "o_totalprice": _cents(10_000, 900_000),
    "o_orderdate": tuple(
        dt.date.fromisoformat(day)
        for day in ("1993-08-05", "1993-10-07", "1994-03-03", "1994-06-06", "1995-03-14", "1996-12-31")
    ),
    "o_orderpriority": ("1-URGENT", "2-HIGH", "3-MEDIUM"),
    "o_comment": ("plain", "a special kind of requests"),
    "l_orderkey": _ORDERS,
    "l_partkey": _PARTS,
    "l_suppkey": _SUPPLIERS,
    "l_quantity": (Decimal(1), Decimal(5), Decimal(15), Decimal(25), Decimal(160)),
    "l_extendedprice": _cents(90_000, 1_000_000),
    "l_discount": (Decimal("0.05"), Decimal("0.06"), Decimal("0.10")),
    "l_tax": (Decimal("0.00"), Decimal("0.08")),
    "l_returnflag": ("R", "R", "A"),
    "l_linestatus": ("F", "O"),
    "l_shipdate": tuple(
        dt.date.fromisoformat(day) for day in ("1994-02-02", "1994-05-05", "1995-03-16", "1995-09-10", "1996-02-02")
    ),
    "l_commitdate": tuple(dt.date.fromisoformat(day) for day in ("1994-03-01", "1994-06-01", "1997-01-01")),
    "l_receiptdate": tuple(dt.date.fromisoformat(day) for day in ("1994-02-20", "1994-04-01", "1994-07-01")),
    "l_shipinstruct": ("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE"),
    "l_shipmode": ("AIR", "AIR REG", "MAIL", "SHIP"),
}

# -- SSB ---------------------------------------------------------------------------------------------------------------

_ASKED_DAYS = (19930712, 19940117, 19940207, 19971224)  # one for each period
_PLACES: Mapping[str, Pool] = {
    "city": ("UNITED KI1", "UNITED KI5", "UNITED ST3"),
    "nation": ("UNITED STATES", "UNITED STATES", "CHINA"),
    "region": ("AMERICA", "ASIA", "EUROPE"),
}
_SSB: Mapping[str, Pool] = {
    "lo_orderkey": range(1, 9),
    "lo_custkey": _CUSTOMERS,
    "lo_partkey": _PARTS,
    "lo_suppkey": _SUPPLIERS,
    "lo_orderdate": _ASKED_DAYS,
    "lo_quantity": (20, 30),
    "lo_discount": (2, 5, 5),
    "lo_extendedprice": range(1000, 5000),
    "lo_revenue": range(1000, 5000),
    "lo_supplycost": range(600, 3000),
    "c_custkey": _CUSTOMERS,
    "s_suppkey": _SUPPLIERS,
    **{f"{side}_{level}": pool for side in "cs" for level, pool in _PLACES.items()},
    "p_partkey": _PARTS,
    "p_mfgr": ("MFGR#1", "MFGR#2"),
    "p_category": ("MFGR#12", "MFGR#14"),
    "p_brand1": ("MFGR#2221", "MFGR#2239"),
}

# -- ClickBench --------------------------------------------------------------------------------------------------------

_URLS = ("", "http://www.google.com/a", "https://google.ru/b", "http://example.org/c/d", "http://mail.google.de/")
_CLICKBENCH: Mapping[str, Pool] = {
    "watchid": range(1, 40),
    "title": ("", "Google search", "News"),
    "eventtime": _moments("2013-07-14 23:59:00", 120),
    "eventdate": _days("2013-07-14", 2),
    "counterid": (62, 62, 63),
    "clientip": (-5, 7, 2**31 - 1),
    "regionid": range(1, 14),
    "userid": (435090932899640449, 1, 2, -3),
    "url": _URLS,
    "referer": _URLS,
    "isrefresh": (0, 0, 1),
    "resolutionwidth": (0, 800, 1920),
    "mobilephone": (0, 1, 2),
    "mobilephonemodel": ("", "iPad", "Nokia"),
    "traficsourceid": (-1, 6, 3),
    "searchengineid": (0, 0, 2),
    "searchphrase": ("", "cat", "dog", "Äpfel"),
    "advengineid": (0, 0, 2, 7),
    "windowclientwidth": (800, 1024),
    "windowclientheight": (600, 768),
    "islink": (0, 1),
    "isdownload": (0, 0, 1),
    "dontcounthits": (0, 0, 1),
    "refererhash": (3594120000172545465, 3594120000172545465, 1),
    "urlhash": (2868770270353813622, 2868770270353813622, 2),
}

# -- Nexmark -----------------------------------------------------------------------------------------------------------

_MOMENTS = _moments("2026-01-01 18:59:40", 60)
_NEXMARK: Mapping[str, Pool] = {
    "person.id": range(1, 5),
    "person.name": ("Ann", "Bob"),
    "person.city": ("Boise", "Portland"),
    "person.state": ("OR", "ID", "NY"),
    "auction.id": (123, 246, 1001),
    "auction.datetime": _moments("2026-01-01 18:59:40", 20),
    "auction.expires": _moments("2026-01-01 19:00:00", 60),
    "auction.seller": range(1, 5),
    "auction.category": (10, 10, 11),
    "bid.auction": (123, 246, 1001),
    "bid.bidder": (1, 2, 3),
    "bid.price": _prices(100, 20_000, 1_200_000, 2_000_000),
    "bid.channel": ("apple", "Google", "channel-7"),
    "bid.url": ("https://shop.example/a/b/c/item?x=1&channel_id=77", "https://shop.example/d"),
    "bid.extra": ("", "abccc", "Cc"),
    "datetime": _MOMENTS,
}

_POOLS: Mapping[SuiteName, Mapping[str, Pool]] = {
    "tpch": _TPCH,
    "ssb": _SSB,
    "clickbench": _CLICKBENCH,
    "nexmark": _NEXMARK,
}
_ANY: Mapping[str, Pool] = {  # for columns that no question asks about
    "DATE": (dt.date(1995, 1, 1),),
    "TIMESTAMP": (dt.datetime(2013, 7, 15),),
    "VARCHAR": ("x",),
}
STATIC: Mapping[SuiteName, Mapping[str, Sequence[Row]]] = MappingProxyType(
    {
        "tpch": {
            "nation": [(n, _NATIONS[n], REGION_OF_NATION[n], "x") for n in _ASKED_NATIONS],
            "region": [(n, name, "x") for n, name in enumerate(_REGIONS)],
        },
        "ssb": {"date": [row for row in DATE if row[0] in _ASKED_DAYS]},
        "clickbench": {},
        "nexmark": {"side_input": [(123, "a"), (246, "b"), (246, "c")]},
    }
)
_UNIQUE = frozenset({"auction", "person"})  # relations whose first column is a key
_FACTS = ("store_sales", "catalog_sales", "web_sales", "store_returns", "catalog_returns", "web_returns", "inventory")
_WEIGHTS = {  # others: 1
    "lineitem": 4, "orders": 2, "partsupp": 2, "lineorder": 5, "bid": 5, **dict.fromkeys(_FACTS, 4)
}  # fmt: skip


def events(name: SuiteName, seed: int, count: int, *, live: int = 12) -> Iterator[Event]:
    """Inserts, deletes and updates; each relation grows to about ``live`` rows times its weight. Rows may repeat."""
    relations = [r for r in compile(suite(name).schema).relations if not r.static]
    return stream(relations, _POOLS[name], Random(seed), count, live)


def stream(
    relations: Sequence[Relation], pools: Mapping[str, Pool], rng: Random, count: int, live: int
) -> Iterator[Event]:
    """:func:`events` of some relations."""
    weights = [_WEIGHTS.get(r.name, 1) for r in relations]
    held: dict[str, list[Row]] = {r.name: [] for r in relations}
    for _ in range(count):
        (relation,) = rng.choices(relations, weights)
        rows = held[relation.name]
        full = len(rows) > rng.randrange(2 * live * _WEIGHTS.get(relation.name, 1))
        goes = rows.pop(rng.randrange(len(rows))) if rows and (full or rng.random() < UPDATES) else None
        if goes is not None:
            yield "-", relation.name, goes
        if goes is None or not full:
            comes = row(relation, pools, rng) if goes is None else _changed(goes, relation, pools, rng)
            if relation.name not in _UNIQUE or all(comes[0] != there[0] for there in rows):
                rows.append(comes)
                yield "+", relation.name, comes


def row(relation: Relation, pools: Mapping[str, Pool], rng: Random) -> Row:
    return tuple(_value(relation, column, pools, rng) for column in relation.columns)


def _changed(before: Row, relation: Relation, pools: Mapping[str, Pool], rng: Random) -> Row:
    """The same row with another value in one column."""
    at = rng.randrange(len(before))
    return (*before[:at], _value(relation, relation.columns[at], pools, rng), *before[at + 1 :])


def _value(relation: Relation, column: Column, pools: Mapping[str, Pool], rng: Random) -> object:
    pool = pools.get(f"{relation.name}.{column.name}") or pools.get(column.name) or _ANY.get(column.type.kind, (0, 1))
    return pool(rng) if callable(pool) else rng.choice(pool)
