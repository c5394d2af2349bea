"""Nexmark, an online auction: a stream of people, auctions and bids, and its standard queries as views.

Nexmark is a benchmark of stream processors, and many of its queries ask about windows of time. A view is about the
rows that are there: as of now. :data:`TREATMENT` says of each standard query q0 to q22 whether it is kept as it is,
adapted or refused. Columns that no view reads (``extra``, ``url``, ``creditCard``, …) are left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import pyarrow as pa

from viewlet.workloads.bulk import BulkStream, Floats, Ints, Moves
from viewlet.workloads.queries import WorkloadQuery
from viewlet.workloads.streams import Row

NEXMARK = """\
CREATE STREAM person (
  id BIGINT NOT NULL, name VARCHAR NOT NULL, city VARCHAR NOT NULL, state VARCHAR NOT NULL,
  datetime TIMESTAMP NOT NULL);
CREATE STREAM auction (
  id BIGINT NOT NULL, itemname VARCHAR NOT NULL, initialbid BIGINT NOT NULL, reserve BIGINT NOT NULL,
  datetime TIMESTAMP NOT NULL, expires TIMESTAMP NOT NULL, seller BIGINT NOT NULL, category BIGINT NOT NULL);
CREATE STREAM bid (
  auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT NOT NULL, channel VARCHAR NOT NULL,
  datetime TIMESTAMP NOT NULL);
CREATE TABLE side_input (channel VARCHAR NOT NULL, value VARCHAR NOT NULL);
"""

# -- the queries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Treatment:
    """What became of a standard query: ``how`` it was adapted, or why it is refused."""

    kind: Literal["kept", "adapted", "refused"]
    how: str = ""


_KEPT = Treatment("kept")
_AS_OF_NOW = "over all bids that are there, instead of"

TREATMENT: Mapping[str, Treatment] = MappingProxyType(
    {
        "q0": _KEPT,
        "q1": _KEPT,
        "q2": Treatment("adapted", "five auctions by name, as first published, instead of auction % 123 = 0"),
        "q3": _KEPT,
        "q4": _KEPT,
        "q5": Treatment("adapted", f"the auctions with most bids {_AS_OF_NOW} in a sliding window"),
        "q6": Treatment("adapted", "a seller's average over all his auctions, instead of the last ten"),
        "q7": Treatment("adapted", f"the highest bid {_AS_OF_NOW} in a tumbling window"),
        "q8": Treatment("adapted", "who sells within 10 seconds of registering, instead of in the same window"),
        "q9": Treatment("adapted", "no better and no earlier equal bid exists, instead of ROW_NUMBER() = 1"),
        "q10": Treatment("refused", "writes a log into files: a sink's work, and the view would be q0"),
        "q11": Treatment("refused", "session windows, which DuckDB has not: it could not be checked"),
        "q12": Treatment("refused", "windows of processing time: a view depends on its rows, not on the clock"),
        "q13": Treatment("adapted", "the side input is joined by channel, instead of auction % 10000"),
        "q14": Treatment("adapted", "without the letters counted in `extra`, which is left out, and the hour of day"),
        "q15": Treatment("adapted", "FILTER written as CASE; all bids that are there, instead of by day"),
        "q16": Treatment("adapted", "FILTER written as CASE; by channel, instead of by channel and day"),
        "q17": Treatment("adapted", "FILTER written as CASE; by auction, instead of by auction and day"),
        "q18": Treatment("adapted", "no later bid of the bidder on the auction exists, instead of ROW_NUMBER() = 1"),
        "q19": Treatment("adapted", "fewer than ten bids are higher, instead of ROW_NUMBER() <= 10"),
        "q20": _KEPT,
        "q21": Treatment("adapted", "the four channels by name; the others go by `url`, which is left out"),
        "q22": Treatment("refused", "splits `url`, which is left out"),
    }
)

_WINNING = """\
SELECT max(b.price) AS final, a.{0} FROM auction a, bid b
      WHERE a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires
      GROUP BY a.id, a.{0}"""
_RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
_BIDS_BY_RANK = "count(*) AS total_bids,\n       " + ",\n       ".join(
    f"count(CASE WHEN {condition} THEN 1 END) AS {rank}_bids" for rank, condition in _RANKS.items()
)
_DISTINCT_BY_RANK = ",\n       ".join(
    f"count(DISTINCT {who}) AS total_{who}s,\n       "
    + ",\n       ".join(
        f"count(DISTINCT CASE WHEN {condition} THEN {who} END) AS {rank}_{who}s" for rank, condition in _RANKS.items()
    )
    for who in ("bidder", "auction")
)

_Q5 = """\
WITH counts AS (SELECT auction, count(*) AS num FROM bid GROUP BY auction)
SELECT auction, num FROM counts WHERE num >= (SELECT max(num) FROM counts)"""

_Q8 = """\
SELECT DISTINCT p.id, p.name FROM person p, auction a
WHERE  p.id = a.seller AND a.datetime BETWEEN p.datetime AND p.datetime + INTERVAL '10' SECOND"""

_Q9 = """\
SELECT a.id, a.itemname, a.initialbid, a.reserve, a.seller, a.category, b.bidder, b.price, b.datetime
FROM   auction a, bid b
WHERE  a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires
  AND  NOT EXISTS (SELECT 1 FROM bid c
         WHERE c.auction = b.auction AND c.datetime BETWEEN a.datetime AND a.expires
           AND (c.price > b.price OR (c.price = b.price AND c.datetime < b.datetime)))"""

_Q18 = """\
SELECT b.auction, b.bidder, b.price, b.channel, b.datetime FROM bid b
WHERE  NOT EXISTS (SELECT 1 FROM bid c
         WHERE c.bidder = b.bidder AND c.auction = b.auction AND c.datetime > b.datetime)"""

_Q19 = """\
SELECT b.auction, b.bidder, b.price, b.channel, b.datetime FROM bid b
WHERE  (SELECT count(*) FROM bid c WHERE c.auction = b.auction AND c.price > b.price) < 10"""

_Q21 = """\
SELECT auction, bidder, price, channel,
       CASE channel WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' ELSE '3' END AS channel_id
FROM   bid WHERE channel IN ('apple', 'google', 'facebook', 'baidu')"""

NEXMARK_QUERIES: Mapping[str, WorkloadQuery] = MappingProxyType(
    {
        name: WorkloadQuery(name, NEXMARK, relations, select)
        for name, relations, select in (
            ("q0", ("bid",), "SELECT auction, bidder, price, datetime FROM bid"),
            ("q1", ("bid",), "SELECT auction, bidder, 0.908 * price AS price, datetime FROM bid"),
            ("q2", ("bid",), "SELECT auction, price FROM bid WHERE auction IN (1007, 1020, 2001, 2019, 2087)"),
            (
                "q3",
                ("auction", "person"),
                "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id\n"
                "WHERE  a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
            ),
            (
                "q4",
                ("auction", "bid"),
                f"SELECT q.category, avg(q.final) AS price\nFROM ({_WINNING.format('category')}) q GROUP BY q.category",
            ),
            ("q5", ("bid",), _Q5),
            (
                "q6",
                ("auction", "bid"),
                f"SELECT q.seller, avg(q.final) AS price\nFROM ({_WINNING.format('seller')}) q GROUP BY q.seller",
            ),
            (
                "q7",
                ("bid",),
                "SELECT b.auction, b.price, b.bidder, b.datetime FROM bid b\n"
                "WHERE  b.price = (SELECT max(c.price) FROM bid c)",
            ),
            ("q8", ("person", "auction"), _Q8),
            ("q9", ("auction", "bid"), _Q9),
            (
                "q13",
                ("bid", "side_input"),
                "SELECT b.auction, b.bidder, b.price, b.datetime, s.value FROM bid b, side_input s\n"
                "WHERE  b.channel = s.channel",
            ),
            (
                "q14",
                ("bid",),
                "SELECT auction, bidder, 0.908 * price AS price, datetime FROM bid\n"
                "WHERE  0.908 * price > 1000000 AND 0.908 * price < 50000000",
            ),
            ("q15", ("bid",), f"SELECT {_BIDS_BY_RANK},\n       {_DISTINCT_BY_RANK}\nFROM   bid"),
            (
                "q16",
                ("bid",),
                f"SELECT channel, {_BIDS_BY_RANK},\n       {_DISTINCT_BY_RANK}\nFROM   bid GROUP BY channel",
            ),
            (
                "q17",
                ("bid",),
                f"SELECT auction, {_BIDS_BY_RANK},\n       min(price) AS min_price, max(price) AS max_price,\n"
                "       avg(price) AS avg_price, sum(price) AS sum_price\nFROM   bid GROUP BY auction",
            ),
            ("q18", ("bid",), _Q18),
            ("q19", ("bid",), _Q19),
            (
                "q20",
                ("bid", "auction"),
                "SELECT b.auction, b.bidder, b.price, b.channel, b.datetime, a.itemname, a.initialbid, a.reserve,\n"
                "       a.expires, a.seller, a.category\n"
                "FROM   bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10",
            ),
            ("q21", ("bid",), _Q21),
        )
    }
)

# -- the stream --------------------------------------------------------------------------------------------------------

_EPOCH, _PERSONS, _AUCTIONS = 50, 1, 3  # of so many arrivals, a person and three auctions; the others are bids
_FIRST_ID = 1000
_START = (dt.datetime(2015, 7, 15) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
_PACE = 100_000  # microseconds between two arrivals
_CATEGORIES = (10, 15)
_HOT_AUCTION, _HOT_BIDDER, _HOT_SELLER, _HOT_CHANNEL = 1 / 2, 3 / 4, 3 / 4, 1 / 2
_MOVED = 0.2  # the share of people who move once
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_TOWNS = (
    ("Phoenix", "AZ"), ("Los Angeles", "CA"), ("San Francisco", "CA"), ("Boise", "ID"), ("Portland", "OR"),
    ("Bend", "OR"), ("Redmond", "WA"), ("Seattle", "WA"), ("Kent", "WA"), ("Cheyenne", "WY"),
)  # fmt: skip
_CHANNELS = ("google", "facebook", "baidu", "apple")
_RARE_CHANNELS = 10_000

SIDE_INPUT: tuple[Row, ...] = tuple((channel, channel.upper()) for channel in _CHANNELS)
STATIC: Mapping[str, tuple[Row, ...]] = MappingProxyType({"side_input": SIDE_INPUT})


def stream(seed: int, events: int, *, live: int = 100) -> BulkStream:
    """Of fifty arrivals one is a person, three are auctions and the others bids, with Nexmark's own skew.

    Bids are on the last ``live`` auctions, half of them on one hot auction; three quarters of all bids and auctions
    are by one hot person, and half of all bids come through four channels. Nexmark only inserts. Here an auction leaves
    with its bids some time after the last bid, so that about 2 · ``live`` are there, and some people move to another
    town, which is a delete and an insert. The static table is :data:`SIDE_INPUT`.
    """
    rng = np.random.default_rng(seed)
    epochs = events // _EPOCH + 1
    moves = Moves.none()
    tables = {"person": _people(rng, moves, epochs, live)}
    opened = _arrival(np.arange(epochs * _AUCTIONS) // _AUCTIONS, _PERSONS + np.arange(epochs * _AUCTIONS) % _AUCTIONS)
    left = opened + _EPOCH / _AUCTIONS * (live + rng.exponential(live, len(opened))) + _EPOCH
    tables["auction"] = _auctions(rng, moves, opened, left, live)
    tables["bid"] = _bids(rng, moves, epochs, left, live)
    return moves.stream(tables, events)


def _arrival(epoch: Ints, place: Ints) -> Ints:
    return epoch * _EPOCH + place


def _people(rng: np.random.Generator, moves: Moves, count: int, live: int) -> pa.Table:
    """And below them, those who moved with the town where they are now."""
    came = _arrival(np.arange(count), np.zeros(count, np.int64)).astype(np.float64)
    moved = np.flatnonzero(rng.random(count) < _MOVED)
    when = came[moved] + rng.exponential(_EPOCH * live / 4, len(moved))
    moves.add(+1, 0, came, np.arange(count))
    moves.add(-1, 0, when, moved)
    moves.add(+1, 0, when, count + np.arange(len(moved)))
    who = np.concatenate([np.arange(count), moved])
    names = [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]
    towns, states = zip(*(_TOWNS[town] for town in rng.integers(0, len(_TOWNS), len(who))), strict=True)
    return pa.table(
        {
            "id": _FIRST_ID + who,
            "name": pa.array(names).take(pa.array(rng.integers(0, len(names), count)[who])),
            "city": pa.array(towns),
            "state": pa.array(states),
            "datetime": _times(came[who]),
        }
    )


def _auctions(rng: np.random.Generator, moves: Moves, opened: Ints, left: Floats, live: int) -> pa.Table:
    n = len(opened)
    moves.add(+1, 1, opened.astype(np.float64), np.arange(n))
    moves.add(-1, 1, left, np.arange(n))
    expires = opened + _EPOCH / _AUCTIONS * live * (0.2 + rng.random(n))  # some bids are too late
    initial = _prices(rng, n)
    return pa.table(
        {
            "id": _FIRST_ID + np.arange(n),
            "itemname": pa.array([f"item {number}" for number in range(n)]),
            "initialbid": initial,
            "reserve": initial + _prices(rng, n),
            "datetime": _times(opened),
            "expires": _times(expires),
            "seller": _FIRST_ID + _recent(rng, opened // _EPOCH, 10 * live, _HOT_SELLER, live),
            "category": rng.integers(*_CATEGORIES, n),
        }
    )


def _bids(rng: np.random.Generator, moves: Moves, epochs: int, left: Floats, live: int) -> pa.Table:
    of_an_epoch = np.arange(_PERSONS + _AUCTIONS, _EPOCH)
    epoch = np.repeat(np.arange(epochs), len(of_an_epoch))
    came = _arrival(epoch, np.tile(of_an_epoch, epochs))
    n = len(came)
    auction = _recent(rng, _AUCTIONS * epoch + _AUCTIONS - 1, live, _HOT_AUCTION, live)
    moves.add(+1, 2, came.astype(np.float64), np.arange(n))
    moves.add(-1, 2, left[auction], np.arange(n))
    rare = len(_CHANNELS) + rng.integers(0, _RARE_CHANNELS, n)
    channels = pa.array([*_CHANNELS, *(f"channel-{number}" for number in range(_RARE_CHANNELS))])
    channel = np.where(rng.random(n) < _HOT_CHANNEL, rng.integers(0, len(_CHANNELS), n), rare)
    return pa.table(
        {
            "auction": _FIRST_ID + auction,
            "bidder": _FIRST_ID + _recent(rng, epoch, 10 * live, _HOT_BIDDER, live),
            "price": _prices(rng, n),
            "channel": channels.take(pa.array(channel)),
            "datetime": _times(came),
        }
    )


def _recent(rng: np.random.Generator, last: Ints, among: int, hot: float, every: int) -> Ints:
    """A number up to ``last``: with probability ``hot`` the last multiple of ``every``, or any of the last ones."""
    n = len(last)
    any_ = last - (rng.random(n) * np.minimum(among, last + 1)).astype(np.int64)
    numbers: Ints = np.where(rng.random(n) < hot, last - last % every, any_)
    return numbers


def _prices(rng: np.random.Generator, n: int) -> Ints:
    """In cents: from one dollar to a million, evenly spread by order of magnitude."""
    return np.round(100 * 10 ** (6 * rng.random(n))).astype(np.int64)


def _times(arrivals: Ints | Floats) -> pa.Array:
    return pa.array(_START + (arrivals * _PACE).astype(np.int64), pa.timestamp("us"))
