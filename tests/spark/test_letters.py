"""Dead letters: rows that are bad by themselves are kept apart and counted, and the rest is as if they had not come."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import viewlet
from tests.oracle.oracle import DuckOracle, Row, difference
from tests.spark.harness import shown
from viewlet.spark import Views, maintain

SCRIPT = """
CREATE STREAM sales (shop INT NOT NULL, item VARCHAR, amount DECIMAL(10,2) NOT NULL, unread BIGINT NOT NULL);
CREATE STREAM shops (shop INT NOT NULL, city VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW by_city AS
  SELECT s.city, count(*) AS n, sum(x.amount) AS total FROM sales x, shops s WHERE x.shop = s.shop GROUP BY s.city;
CREATE MATERIALIZED VIEW pairs AS
  SELECT x.shop, count(*) AS n FROM sales x, sales y WHERE x.amount = y.shop GROUP BY x.shop;
"""
SALES = "shop long, item string, amount decimal(10,2), unread long, op long"
SHOPS = "shop int, city string"
ONE = Decimal("1.00")
GOOD = [(1, "pen", ONE, 1, 1), (2, None, ONE, None, 2), (2, None, ONE, None, -1), (1, "none", ONE, 1, 0)]
BAD = [
    ((None, "pen", ONE, 1, 1), "shop is NULL"),
    ((2**31, "pen", ONE, 1, 1), "shop does not fit INTEGER"),
    ((1, "ä", None, 1, -1), "amount is NULL"),
    ((1, "pen", ONE, 1, None), "op is not a number of times that the row comes or goes"),
    ((1, "pen", ONE, 1, 2**40), "op is not a number of times that the row comes or goes"),
]


def batch(spark: SparkSession, folder: Path, number: int, sales: list[Any], shops: list[Any]) -> None:
    spark.createDataFrame(sales, SALES).coalesce(1).write.parquet(str(folder / "sales" / str(number)))
    spark.createDataFrame(shops, SHOPS).coalesce(1).write.parquet(str(folder / "shops" / str(number)))


def sources(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    return {
        "sales": spark.readStream.schema(SALES).parquet(str(folder / "sales" / "*")),
        "shops": spark.readStream.schema(SHOPS).parquet(str(folder / "shops" / "*")),
    }


def run(spark: SparkSession, folder: Path, **options: Any) -> Views:
    views = maintain(
        spark, SCRIPT, sources(spark, folder), folder / "ck", cells=2, trigger={"availableNow": True}, **options
    )
    try:
        views.query.awaitTermination()
    finally:
        views.stop()
    return views


@pytest.mark.parametrize("pinned", ["true", "false"])  # rows are handed over, or shuffled
def test_bad_rows_are_kept_apart(
    spark: SparkSession, tmp_path: Path, pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    batch(spark, tmp_path, 0, [*GOOD, *(row for row, _ in BAD)], [(1, "Rome"), (2, "Oslo"), (3, None)])
    with pytest.raises(StreamingQueryException):
        run(spark, tmp_path)
    views = run(spark, tmp_path, dead_letters=True)
    assert sorted(shown(views["by_city"])) == [("Oslo", 1, ONE), ("Rome", 1, ONE)]
    assert sorted(shown(views["pairs"])) == [(1, 1), (2, 1)]
    letters = shown(views.dead_letters)
    expected = [("sales", reason, row) for row, reason in BAD] + [("shops", "city is NULL", (3, None))]
    told = {(name, reason, tuple(json.loads(row).values())) for _, name, reason, row in letters}
    assert told == {(name, why, tuple(float(v) if v == ONE else v for v in row)) for name, why, row in expected}
    assert {number for number, *_ in letters} == {0}
    assert [p["dead_rows"] for p in views.progress] == [len(expected)]
    batch(spark, tmp_path, 1, [(3, None, ONE, None, 1)], [(3, "Rome")])
    again = run(spark, tmp_path, dead_letters=True)
    assert ("Rome", 2, Decimal("2.00")) in shown(again["by_city"])
    assert [p["dead_rows"] for p in again.progress] == [0]
    assert sorted(shown(again.dead_letters)) == sorted(letters), "each of them once"


def test_no_letters_are_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    batch(spark, tmp_path, 0, GOOD, [(1, "Rome")])
    views = run(spark, tmp_path, dead_letters=True)
    assert shown(views["by_city"]) == [("Rome", 1, ONE)]
    assert shown(views.dead_letters) == []
    assert views.progress[0]["dead_rows"] == 0
    batch(spark, tmp_path, 1, [(1, "never", ONE, 1, -1), (1, "never", ONE, 1, -1)], [])
    with pytest.raises(StreamingQueryException, match="is not there"):
        run(spark, tmp_path)
    views = run(spark, tmp_path, dead_letters=True)
    assert [(name, json.loads(row)["shop"]) for _, name, _, row in shown(views.dead_letters)] == [("sales", 1)]
    assert shown(views["by_city"]) == []


# -- deletes of what is not there --------------------------------------------------------------------------------------

JOINED = "SELECT r.a, count(*) AS n, sum(r.x) AS s FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY r.a"
LARGE = "SELECT b, count(*) AS n, max(x) AS m FROM r GROUP BY b HAVING count(*) > 1"
CHAIN = f"""
CREATE STREAM r (a INT NOT NULL, b INT, x BIGINT);
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL);
CREATE STREAM t (c INT NOT NULL);
CREATE MATERIALIZED VIEW joined AS {JOINED};
CREATE MATERIALIZED VIEW large AS {LARGE};
"""
COLUMNS = {"r": "a int, b int, x long, op int", "s": "b int, c int, op int", "t": "c int, op int"}
Events = dict[str, list[tuple[Row, int]]]


def some_events(rng: random.Random) -> Events:
    """Few values, so that a delete may or may not find its row; some rows come or go more than once."""
    values = [None, 1, 2]
    drawn = {
        "r": lambda: (rng.choice([1, 2]), rng.choice(values), rng.choice([None, 2**40])),
        "s": lambda: (rng.choice([1, 2]), rng.choice([1, 2])),
        "t": lambda: (rng.choice([1, 2, 3]),),
    }
    return {name: [(draw(), rng.choice([1, 2, 2, -1, -3])) for _ in range(9)] for name, draw in drawn.items()}


def taken(oracle: DuckOracle, held: dict[str, Counter[Row]], events: Events) -> Counter[tuple[str, Row]]:
    """What comes, comes first; the referee hears of what then goes and is there. The rest is answered."""
    missing: Counter[tuple[str, Row]] = Counter()
    for name, given in events.items():
        for row, op in sorted(given, key=lambda event: event[1] < 0):
            there = op if op > 0 else -min(-op, held[name][row])
            held[name][row] += there
            missing[name, row] += there - op
            for _ in range(abs(there)):
                oracle.apply("+" if there > 0 else "-", name, row)
    return +missing


@pytest.mark.parametrize("pinned", ["true", "false"])  # rows are handed over, or shuffled
def test_a_delete_of_what_is_not_there_is_kept_apart(
    spark: SparkSession, tmp_path: Path, pinned: str, monkeypatch: pytest.MonkeyPatch, soaking: bool
) -> None:
    """Rows are in several cells each, and each start makes these again of their logs."""
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    if pinned == "false" and not soaking:
        pytest.skip("make soak runs it")
    oracle, rng = DuckOracle(viewlet.compile(CHAIN).relations), random.Random(0)
    held: dict[str, Counter[Row]] = {name: Counter() for name in COLUMNS}
    missing = list[Counter[tuple[str, Row]]]()
    for number in range(4 if soaking else 2):
        events = some_events(rng)
        for name, given in events.items():
            rows = [(*row, op) for row, op in given]
            spark.createDataFrame(rows, COLUMNS[name]).coalesce(1).write.parquet(str(tmp_path / name / str(number)))
        missing.append(taken(oracle, held, events))
        streams = {n: spark.readStream.schema(c).parquet(str(tmp_path / n / "*")) for n, c in COLUMNS.items()}
        now = {"availableNow": True}
        views = maintain(spark, CHAIN, streams, tmp_path / "ck", cells=4, trigger=now, dead_letters=True)
        views.query.awaitTermination()
        assert views.explain().count("dimension ") == 2, "a row of r is in two cells"
        for view, select in (("joined", JOINED), ("large", LARGE)):
            assert difference(shown(views[view]), list(oracle.rows(select))) is None
        assert list(oracle.rows(JOINED))
        told: list[Counter[tuple[str, Row]]] = [Counter() for _ in missing]
        for batch, name, reason, row in shown(views.dead_letters):
            times = re.fullmatch(r"it is to go, and is not there(?: \((\d+) of \d+ times\))?", reason)
            assert times is not None
            told[batch][name, tuple(json.loads(row).values())] += int(times[1] or 1)
        assert told == missing
        views.stop()
    assert all(missing)
    assert list(oracle.rows(LARGE))
