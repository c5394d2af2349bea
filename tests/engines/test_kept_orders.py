"""Orders that the native engine keeps from read to read: many rows, few reads, texts that go, other states."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from random import Random

import pytest

import viewlet
from tests.engines.conformance import opened_natively
from viewlet.database.memory import Database

SCRIPT = """
CREATE STREAM r (k VARCHAR, v INTEGER NOT NULL);
CREATE STREAM w (x INTEGER NOT NULL);
CREATE TABLE names (k VARCHAR NOT NULL, name VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS n FROM r GROUP BY k
  ORDER BY n DESC NULLS FIRST, k LIMIT 5 OFFSET 1;
CREATE MATERIALIZED VIEW keys AS SELECT k FROM r ORDER BY k DESC LIMIT 7;
CREATE MATERIALIZED VIEW best AS SELECT k, max(v) AS m FROM r GROUP BY k HAVING max(v) > 3 ORDER BY m, k LIMIT 4;
CREATE MATERIALIZED VIEW named AS SELECT n.name, sum(r.v) AS n FROM r JOIN names n ON r.k = n.k GROUP BY n.name
  ORDER BY 2, 1 LIMIT 3;
CREATE MATERIALIZED VIEW above AS SELECT k, sum(v) AS n, (SELECT sum(x) FROM w) AS t FROM r GROUP BY k
  HAVING sum(v) > (SELECT sum(x) FROM w) ORDER BY n, k LIMIT 3;
"""
NAMES = [(f"k{i}", f"name {i % 20}") for i in range(3000)]
Rows = Counter[tuple[str | None, int]]


def last(key: str | None) -> tuple[bool, str]:
    return key is None, key or ""


def expected(rows: Rows, total: int | None, names: list[tuple[str, str]]) -> dict[str, list[tuple[object, ...]]]:
    sums, best, by_name = Counter[str | None](), dict[str | None, int](), Counter[str]()
    for (k, v), n in rows.items():
        sums[k] += v * n
        best[k] = max(v, best.get(k, v))
    of = dict(names)
    for k, n in sums.items():
        if k in of:
            by_name[of[k]] += n
    ranked = sorted(sums.items(), key=lambda row: (-row[1], last(row[0])))
    keys = sorted((k for (k, _), n in rows.items() if k is not None for _ in range(n)), reverse=True)
    nulls = [None for (k, _), n in rows.items() if k is None for _ in range(n)]
    above = sorted((n, last(k), k) for k, n in sums.items() if total is not None and n > total)
    return {
        "sums": ranked[1:6],
        "keys": [(k,) for k in [*keys, *nulls][:7]],
        "best": sorted(((k, m) for k, m in best.items() if m > 3), key=lambda row: (row[1], last(row[0])))[:4],
        "named": sorted(by_name.items(), key=lambda row: (row[1], row[0]))[:3],
        "above": [(k, n, total) for n, _, k in above[:3]],
    }


class Model:
    """A database beside plain Python."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database, self.rng = database, Random(seed)
        self.rows, self.totals, self.names = Rows(), list[int](), NAMES
        database.insert("names", NAMES)

    def insert(self, count: int, keys: int) -> None:
        new = [(self.key(keys), self.rng.randint(-20, 20)) for _ in range(count)]
        self.database.insert("r", new)
        self.rows.update(new)

    def key(self, keys: int) -> str | None:
        return None if self.rng.random() < 0.01 else f"k{self.rng.randrange(keys)}"

    def delete(self, share: float) -> None:
        gone = [row for row in self.rows.elements() if self.rng.random() < share]
        self.database.delete("r", gone)
        self.rows -= Counter(gone)

    def add_to_total(self, x: int) -> None:
        self.database.insert("w", (x,))
        self.totals.append(x)

    def check(self) -> None:
        total = sum(self.totals) if self.totals else None
        for name, rows in expected(self.rows, total, self.names).items():
            assert self.database.view(name).rows() == rows, name


def test_many_rows_between_two_reads() -> None:
    model = Model(opened_natively(SCRIPT), seed=1)
    model.check()
    for count, keys, share in ((4000, 3000, 0.1), (10, 3000, 0.001), (5000, 100, 0.9), (3, 5, 0.0), (9000, 9000, 0.5)):
        model.insert(count, keys)
        model.check()
        model.delete(share)
        model.check()
        model.add_to_total(model.rng.randint(-9, 9))
        model.check()
    model.delete(1.0)
    model.check()


def test_single_events_with_texts_that_come_and_go() -> None:
    model = Model(opened_natively(SCRIPT), seed=2)
    for step in range(300):
        model.insert(1, 10 * step + 1)
        if step % 3 == 0:
            model.check()
        if step % 5 == 0:
            model.delete(0.3)


def test_a_table_that_changes_and_a_state_that_is_restored() -> None:
    database = opened_natively(SCRIPT)
    model = Model(database, seed=3)
    model.insert(500, 300)
    model.check()
    with tempfile.TemporaryFile() as file:
        database.engine.save(file.fileno())  # type: ignore[attr-defined]
        saved = Rows(model.rows)
        model.insert(500, 300)
        model.check()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        database.engine.restore(file.fileno())  # type: ignore[attr-defined]
        model.rows = saved
        model.check()
    more = [("k1", "more"), ("k2", "more")]
    database.delete("names", [(k, n) for k, n in NAMES if k in ("k1", "k2")])
    database.insert("names", more)
    model.names = [(k, n) for k, n in NAMES if k not in ("k1", "k2")] + more
    model.check()


def test_a_refused_update_leaves_the_order() -> None:
    database = viewlet.connect(wait_native=True)
    database.execute(
        "CREATE STREAM r (k INTEGER, v BIGINT NOT NULL); CREATE MATERIALIZED VIEW top AS SELECT k, sum(v * v) AS n "
        "FROM r GROUP BY k ORDER BY n DESC LIMIT 2;"
    )
    assert database.tier == "native"
    database.insert("r", [(1, 3), (2, 4), (3, 1)])
    assert database.view("top").rows() == [(2, 16), (1, 9)]
    for _ in range(2):
        with pytest.raises(viewlet.OutOfRangeError):
            database.insert("r", [(3, 9), *[(3, 2**62)] * 20])
        assert database.view("top").rows() == [(2, 16), (1, 9)]
    database.insert("r", (3, 9))
    assert database.view("top").rows() == [(3, 82), (2, 16)]
