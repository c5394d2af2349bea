"""ClickBench's questions about many rows: groups of more than 100,000, and what comes behind the first 10,000."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import viewlet
from tests.engines.conformance import opened_natively
from tests.engines.test_written import MANY_ROWS, in_full
from tests.oracle.ordered import line_difference
from viewlet.duck import opened
from viewlet.rows.arrow import arrow_type
from viewlet.schema import Column
from viewlet.workloads.written import suite

ROWS, GONE = 230_000, 0.1
HOSTS = ("http://www.example.org/", "https://shop.example.com/", "ftp://x/", "")
Draw = Callable[[np.random.Generator, int], pa.Array]


def chosen(*values: object) -> Draw:
    return lambda rng, n: pa.array([values[i] for i in rng.integers(0, len(values), n)])


def numbered(below: int) -> Draw:
    return lambda rng, n: pa.array(rng.integers(0, below, n))


def urls(below: int) -> Draw:
    return lambda rng, n: pa.array([HOSTS[i % 4] + str(i) for i in rng.integers(0, below, n)])


def moments(rng: np.random.Generator, n: int) -> pa.Array:
    start = int(dt.datetime(2013, 7, 14).replace(tzinfo=dt.timezone.utc).timestamp())
    return pa.array((start + rng.integers(0, 172_800, n)) * 1_000_000).cast(pa.timestamp("us"))


DRAWN: dict[str, Draw] = {
    "counterid": chosen(62, 62, 62, 63),
    "eventdate": chosen(dt.date(2013, 7, 14), dt.date(2013, 7, 15)),
    "eventtime": moments,
    "isrefresh": chosen(0, 0, 0, 0, 1),
    "dontcounthits": chosen(0, 0, 0, 1),
    "islink": chosen(1, 0),
    "isdownload": chosen(0),
    "traficsourceid": chosen(-1, 6, 3),
    "refererhash": chosen(3594120000172545465),
    "urlhash": lambda rng, n: pa.array(np.where(rng.random(n) < 0.5, 2868770270353813622, rng.integers(0, 300, n))),
    "windowclientwidth": numbered(2000),
    "windowclientheight": numbered(2000),
    "url": urls(20_000),
    "referer": lambda rng, n: pa.array([HOSTS[i // 14] + str(i) for i in np.minimum(rng.integers(0, 20, n), 17)]),
}


def column(c: Column, rng: np.random.Generator, n: int) -> pa.Array:
    if c.name in DRAWN:
        return DRAWN[c.name](rng, n).cast(arrow_type(c.type))
    value = {"VARCHAR": "", "DATE": dt.date(2013, 7, 1), "TIMESTAMP": dt.datetime(2013, 7, 1)}.get(c.type.kind, 0)
    return pa.repeat(pa.scalar(value, arrow_type(c.type)), n)


def test_large_groups_and_far_pages() -> None:
    written = suite("clickbench")
    database = opened_natively(written.schema + "".join(map(written.view, MANY_ROWS)))
    widths = {r.name: len(r.columns) for r in database.program.results}
    (hits,) = viewlet.compile(written.schema).relations
    rng = np.random.default_rng(7)
    rows = pa.table({c.name: column(c, rng, ROWS) for c in hits.columns})
    database.insert("hits", rows)
    referee, stays = opened(), np.random.default_rng(8).random(ROWS) > GONE
    for there in (rows, rows.filter(pa.array(stays))):
        if there is not rows:
            database.delete("hits", rows.filter(pa.array(~stays)))
        referee.register("hits", there)
        for question in MANY_ROWS:
            expected = referee.sql(in_full(written.questions[question], widths[question])).fetchall()
            assert expected, question
            assert line_difference(database.view(question).rows(), expected) is None, question


def test_batches_over_maps_that_are_out_of_the_cache() -> None:
    """What a trigger looks up is fetched some events ahead: keys, and slices of a map by part of its key."""
    rng = np.random.default_rng(3)
    orders = pa.record_batch({"k": np.arange(80_000) // 2, "g": rng.integers(0, 70_000, 80_000)})
    lines = pa.record_batch({"k": rng.integers(0, 45_000, 90_000), "v": rng.integers(-9, 9, 90_000)})
    joined = "SELECT g, o.k, sum(v) AS v, count(*) AS n FROM o JOIN l ON o.k = l.k GROUP BY g, o.k"
    with viewlet.connect(wait_native=True) as db:
        db.execute("CREATE STREAM o (k BIGINT NOT NULL, g BIGINT NOT NULL)")
        db.execute("CREATE STREAM l (k BIGINT NOT NULL, v BIGINT NOT NULL)")
        db.execute(f"CREATE MATERIALIZED VIEW joined AS {joined}")
        for relation, rows in (("l", lines), ("o", orders)):
            db.insert(relation, rows)
        assert sorted(db.view("joined").rows()) == sorted(db.sql(joined).rows())
        db.delete("l", lines.slice(100, 60_000))
        db.delete("o", orders.slice(40_000, 30_000))
        assert sorted(db.view("joined").rows()) == sorted(db.sql(joined).rows())
        assert len(db.view("joined")) > 20_000
