"""The Star Schema Benchmark (O'Neil, O'Neil, Chen): its thirteen queries as views, and a stream for them.

The queries are the benchmark's own but for ORDER BY, which a view does not have, and names for unnamed sums. Columns
that no query reads are left out. The dimension ``date`` is a static table (:data:`DATE`), the others are streams.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from viewlet.workloads.bulk import BulkStream, Ints, Moves
from viewlet.workloads.queries import WorkloadQuery
from viewlet.workloads.streams import REGION_OF_NATION, Row

SSB = """\
CREATE STREAM lineorder (
  lo_orderkey BIGINT NOT NULL, lo_linenumber INTEGER NOT NULL, lo_custkey BIGINT NOT NULL, lo_partkey BIGINT NOT NULL,
  lo_suppkey BIGINT NOT NULL, lo_orderdate INTEGER NOT NULL, lo_quantity INTEGER NOT NULL,
  lo_extendedprice INTEGER NOT NULL, lo_discount INTEGER NOT NULL, lo_revenue INTEGER NOT NULL,
  lo_supplycost INTEGER NOT NULL);
CREATE STREAM customer (
  c_custkey BIGINT NOT NULL, c_city VARCHAR NOT NULL, c_nation VARCHAR NOT NULL, c_region VARCHAR NOT NULL);
CREATE STREAM supplier (
  s_suppkey BIGINT NOT NULL, s_city VARCHAR NOT NULL, s_nation VARCHAR NOT NULL, s_region VARCHAR NOT NULL);
CREATE STREAM part (
  p_partkey BIGINT NOT NULL, p_mfgr VARCHAR NOT NULL, p_category VARCHAR NOT NULL, p_brand1 VARCHAR NOT NULL);
CREATE TABLE date (
  d_datekey INTEGER NOT NULL, d_year INTEGER NOT NULL, d_yearmonthnum INTEGER NOT NULL, d_yearmonth VARCHAR NOT NULL,
  d_weeknuminyear INTEGER NOT NULL);
"""

# -- the queries -------------------------------------------------------------------------------------------------------


def _discounts(condition: str) -> str:
    """Flight 1: what would have been earned without some discounts."""
    return f"""\
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM   lineorder, date
WHERE  lo_orderdate = d_datekey
  AND  {condition}"""


def _brands(condition: str) -> str:
    """Flight 2: the brands of some parts from suppliers of a region, by year."""
    return f"""\
SELECT sum(lo_revenue) AS revenue, d_year, p_brand1
FROM   lineorder, date, part, supplier
WHERE  lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
  AND  {condition}
GROUP BY d_year, p_brand1"""


def _places(level: str, condition: str) -> str:
    """Flight 3: from where to where, by year."""
    return f"""\
SELECT c_{level}, s_{level}, d_year, sum(lo_revenue) AS revenue
FROM   customer, lineorder, supplier, date
WHERE  lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
  AND  {condition}
GROUP BY c_{level}, s_{level}, d_year"""


def _profits(group: str, condition: str) -> str:
    """Flight 4: profits, further and further down."""
    return f"""\
SELECT {group}, sum(lo_revenue - lo_supplycost) AS profit
FROM   date, customer, supplier, part, lineorder
WHERE  lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
  AND  {condition}
GROUP BY {group}"""


_KINGDOM = "(c_city = 'UNITED KI1' OR c_city = 'UNITED KI5') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5')"
_NINETIES = "d_year >= 1992 AND d_year <= 1997"
_AMERICA = "c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"
_LATELY = "(d_year = 1997 OR d_year = 1998)"
_SELECTS = {
    "q1_1": _discounts("d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25"),
    "q1_2": _discounts("d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35"),
    "q1_3": _discounts(
        "d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35"
    ),
    "q2_1": _brands("p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "q2_2": _brands("p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'"),
    "q2_3": _brands("p_brand1 = 'MFGR#2239' AND s_region = 'EUROPE'"),
    "q3_1": _places("nation", f"c_region = 'ASIA' AND s_region = 'ASIA' AND {_NINETIES}"),
    "q3_2": _places("city", f"c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND {_NINETIES}"),
    "q3_3": _places("city", f"{_KINGDOM} AND {_NINETIES}"),
    "q3_4": _places("city", f"{_KINGDOM} AND d_yearmonth = 'Dec1997'"),
    "q4_1": _profits("d_year, c_nation", _AMERICA),
    "q4_2": _profits("d_year, s_nation, p_category", f"{_AMERICA} AND {_LATELY}"),
    "q4_3": _profits(
        "d_year, s_city, p_brand1",
        f"c_region = 'AMERICA' AND s_nation = 'UNITED STATES' AND p_category = 'MFGR#14' AND {_LATELY}",
    ),
}
_STREAMS = ("lineorder", "customer", "supplier", "part", "date")


def _reads(select: str) -> tuple[str, ...]:
    between = select[select.index("FROM") + 4 : select.index("WHERE")]
    named = {name.strip() for name in between.split(",")}
    return tuple(name for name in _STREAMS if name in named)


SSB_QUERIES: Mapping[str, WorkloadQuery] = MappingProxyType(
    {name: WorkloadQuery(name, SSB, _reads(select), select) for name, select in _SELECTS.items()}
)

# -- what is in the warehouse ------------------------------------------------------------------------------------------

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
)  # fmt: skip
_CITIES = [
    (f"{nation[:9]:9}{digit}", nation, _REGIONS[region])
    for nation, region in zip(_NATIONS, REGION_OF_NATION, strict=True)
    for digit in range(10)
]
_BRANDS = [
    (f"MFGR#{maker}", f"MFGR#{maker}{category}", f"MFGR#{maker}{category}{brand}")
    for maker in range(1, 6)
    for category in range(1, 6)
    for brand in range(1, 41)
]
_DAYS = [dt.date(1992, 1, 1) + dt.timedelta(days=n) for n in range(2557)]  # to the end of 1998


def _date(day: dt.date) -> Row:
    week = (day.timetuple().tm_yday - 1) // 7 + 1
    return (int(f"{day:%Y%m%d}"), day.year, int(f"{day:%Y%m}"), f"{day:%b%Y}", week)


DATE: tuple[Row, ...] = tuple(map(_date, _DAYS))
STATIC: Mapping[str, tuple[Row, ...]] = MappingProxyType({"date": DATE})


@dataclass(frozen=True)
class _Dimension:
    """Each row is a key and one of ``kinds``; ``asked`` are the kinds that queries ask for."""

    name: str
    columns: tuple[str, ...]
    kinds: Sequence[Row]
    asked: Sequence[int]
    rows_of_a_scale: int
    least: int

    def rows(self, scale: float) -> int:
        return max(int(self.rows_of_a_scale * scale), self.least)


def _those(kinds: Sequence[Row], names: Set[object]) -> list[int]:
    return [n for n, kind in enumerate(kinds) if not names.isdisjoint(kind)]


_ASKED_CITIES = _those(_CITIES, {"UNITED KI1", "UNITED KI5", "UNITED ST3", "CHINA    8"})
_ASKED_BRANDS = _those(_BRANDS, {"MFGR#1233", "MFGR#2221", "MFGR#2239", "MFGR#1411"})
_ASKED_DAYS = _those(DATE, {19930712, 19940117, 19940207, 19971224})  # one for each period
_TERMS = np.array([(discount, quantity) for discount in range(11) for quantity in range(1, 51)])
_ASKED_TERMS = [2 * 50 + 19, 5 * 50 + 29]  # 2 percent on 20 pieces, 5 on 30
_DIMENSIONS = (
    _Dimension("customer", ("c_custkey", "c_city", "c_nation", "c_region"), _CITIES, _ASKED_CITIES, 30_000, 8),
    _Dimension("supplier", ("s_suppkey", "s_city", "s_nation", "s_region"), _CITIES, _ASKED_CITIES, 2_000, 6),
    _Dimension("part", ("p_partkey", "p_mfgr", "p_category", "p_brand1"), _BRANDS, _ASKED_BRANDS, 200_000, 12),
)

# -- the stream --------------------------------------------------------------------------------------------------------

_CHANGED = 0.4  # the share of customers, suppliers and parts that change once
_LINES = 7  # of an order, at most


def stream(seed: int, events: int, *, scale: float = 0.1, live: int = 30_000, asked: float = 0.1) -> BulkStream:
    """Orders of one to seven lines come, and from ``live`` orders on a random one leaves for each that comes.

    Customers, suppliers and parts of a scale factor (at least 8, 6 and 12) come among the first half of these orders.
    Later some move to another city or get another brand, which is a delete and an insert. The benchmark's queries ask
    for as little as a line in a million, and a short stream would have none: ``asked`` is the share of cities, brands
    and days that are drawn from those asked for. The rest is spread evenly, as in the benchmark. The static table is
    :data:`DATE`.
    """
    rng = np.random.default_rng(seed)
    counts = [dimension.rows(scale) for dimension in _DIMENSIONS]
    orders = max(events - sum(counts), 0) // 3 + 16  # of four lines on average, each of which comes at least
    moves = Moves.none()
    tables = {"lineorder": _lines(rng, moves, orders, counts, live, asked)}
    for code, (dimension, count) in enumerate(zip(_DIMENSIONS, counts, strict=True), start=1):
        tables[dimension.name] = _rows(rng, moves, code, dimension, count, live, asked)
    return moves.stream(tables, events)


def _lines(
    rng: np.random.Generator, moves: Moves, orders: int, counts: Sequence[int], live: int, asked: float
) -> pa.Table:
    customers, suppliers, parts = counts
    born = np.arange(orders, dtype=np.float64)
    gone = np.maximum(born, live) + rng.exponential(live, orders)
    sizes = rng.integers(1, _LINES + 1, orders)
    order = np.repeat(np.arange(orders), sizes)
    n, number = len(order), np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    moves.add(+1, 0, born[order] + number / _LINES, np.arange(n))
    moves.add(-1, 0, gone[order] + 1 + number / _LINES, np.arange(n))
    days = np.array([row[0] for row in DATE])[_drawn(rng, orders, len(DATE), _ASKED_DAYS, asked)]
    discount, quantity = _TERMS[_drawn(rng, n, len(_TERMS), _ASKED_TERMS, asked)].T
    part = rng.integers(1, parts + 1, n)
    retail = 90_000 + part // 10 % 20_001 + 100 * (part % 1000)  # as in TPC-H
    columns = {
        "lo_orderkey": order + 1,
        "lo_linenumber": (number + 1).astype(np.int32),
        "lo_custkey": rng.integers(1, customers + 1, orders)[order],
        "lo_partkey": part,
        "lo_suppkey": rng.integers(1, suppliers + 1, n),
        "lo_orderdate": days[order].astype(np.int32),
        "lo_quantity": quantity.astype(np.int32),
        "lo_extendedprice": (quantity * retail).astype(np.int32),
        "lo_discount": discount.astype(np.int32),
        "lo_revenue": (quantity * retail * (100 - discount) // 100).astype(np.int32),
        "lo_supplycost": (6 * retail // 10).astype(np.int32),
    }
    return pa.table(columns)


def _rows(
    rng: np.random.Generator, moves: Moves, code: int, dimension: _Dimension, count: int, live: int, asked: float
) -> pa.Table:
    """The rows of a dimension, and below them those into which some of them change."""
    changed = np.flatnonzero(rng.random(count) < _CHANGED)
    when = live * (0.5 + rng.random(len(changed)))
    moves.add(+1, code, rng.random(count) * live / 2, np.arange(count))
    moves.add(-1, code, when, changed)
    moves.add(+1, code, when, count + np.arange(len(changed)))
    keys = np.concatenate([np.arange(count), changed]) + 1
    drawn = _drawn(rng, len(keys), len(dimension.kinds), dimension.asked, asked)
    key, *named = dimension.columns
    values = zip(*(dimension.kinds[kind] for kind in drawn), strict=True)
    return pa.table({key: keys} | {name: pa.array(texts) for name, texts in zip(named, values, strict=True)})


def _drawn(rng: np.random.Generator, n: int, kinds: int, asked: Sequence[int], share: float) -> Ints:
    """n numbers of kinds: a share of them from those asked for, the others evenly from all."""
    evenly = rng.integers(0, kinds, n)
    drawn: Ints = np.where(rng.random(n) < share, np.array(asked)[rng.integers(0, len(asked), n)], evenly)
    return drawn
