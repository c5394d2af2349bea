"""Rows that expire: the views are those of the rows that are left, and the state stays as large as these are."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import viewlet
from tests.oracle.oracle import DuckOracle, Row, difference
from tests.spark.harness import shown
from viewlet.engines.native.compiled import compile_program
from viewlet.engines.native.emit.watch import Watched
from viewlet.errors import Error
from viewlet.spark import maintain
from viewlet.spark.process.cell import Cell, open_cell
from viewlet.spark.process.events import Rows, log_parts, segments
from viewlet.spark.process.taking import take

SCHEMA = """
CREATE STREAM trades (k INT NOT NULL, at TIMESTAMP, x BIGINT);
CREATE STREAM quotes (k INT NOT NULL, at TIMESTAMP);
"""
SELECTS = {
    "sums": "SELECT k, count(*) AS n, sum(x) AS s FROM trades GROUP BY k",
    "newest": "SELECT max(t.at) AS last, count(*) AS n FROM trades t",
    "joined": "SELECT t.k, count(*) AS n FROM trades t, quotes q WHERE t.k = q.k AND t.at >= q.at GROUP BY t.k",
}
SCRIPT = SCHEMA + "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in SELECTS.items())
TYPES = {
    "trades": pa.schema([("k", pa.int32()), ("at", pa.timestamp("us")), ("x", pa.int64())]),
    "quotes": pa.schema([("k", pa.int32()), ("at", pa.timestamp("us"))]),
}
START = dt.datetime(2026, 1, 1)
Given = list[tuple[int, str, Row]]  # how often each row comes (or goes)


class Left:
    """The rows that are left, as the referee has them: trades expire and quotes do not."""

    def __init__(self) -> None:
        self.oracle = DuckOracle(viewlet.compile(SCHEMA).relations)
        self.trades: Counter[Row] = Counter()

    def take(self, given: Given, bound: dt.datetime) -> int:
        """How many rows expired."""
        old = [row for row in self.trades.elements() if row[1] is not None and row[1] < bound]
        for row in old:
            self._change("-", "trades", row)
        for times, name, row in sorted(given, key=lambda event: event[0] < 0):
            if name == "quotes" or row[1] is None or row[1] >= bound:
                for _ in range(abs(times)):
                    self._change("+" if times > 0 else "-", name, row)
        return len(old)

    def _change(self, op: str, name: str, row: Row) -> None:
        self.oracle.apply(op, name, row)  # type: ignore[arg-type]
        if name == "trades":
            self.trades[row] += 1 if op == "+" else -1

    def rows(self, view: str) -> list[Row]:
        return list(self.oracle.rows(SELECTS[view]))


def some(rng: random.Random, now: dt.datetime, there: list[Row], *, only_new: bool) -> Given:
    """Rows of about now, some of no time and some too late; a few of those that came go, expired or not."""
    given: Given = []
    for _ in range(8):
        late = [now - dt.timedelta(seconds=rng.randrange(12)), now - dt.timedelta(hours=1)]
        at = rng.choice([None, now, now, *([] if only_new else late)])
        there.append((rng.randrange(3), at, rng.choice([None, 1, 2**40])))
        given += [(1, "trades", there[-1]), (1, "quotes", (rng.randrange(3), at))]
    for _ in range(0 if only_new else 3):
        given.append((-1, "trades", there.pop(rng.randrange(len(there)))))
    return given


# -- a cell ------------------------------------------------------------------------------------------------------------


def cell_of(make: str) -> Cell:
    program = viewlet.compile(SCRIPT)
    compiled = compile_program(program, Watched(tuple(SELECTS), ())) if make == "native" else None
    assert (compiled is None) == (make == "python")
    return open_cell(program, compiled, tuple(SELECTS), ())


def log_of(given: Given, batch: int) -> pa.Buffer:
    parts = [
        Rows(name, times, pa.RecordBatch.from_arrays(list(map(pa.array, zip(*rows, strict=True))), schema=TYPES[name]))
        for times in (1, -1)
        for name in TYPES
        if (rows := [row for n, to, row in given if (n, to) == (times, name)])
    ]
    return pa.py_buffer(b"".join(map(bytes, log_parts(batch, segments(parts)))))


def held(cell: Cell, view: str) -> list[Row]:
    weight, *columns = cell.rows(view).to_pydict().values()
    return [row for times, *row_ in zip(weight, *columns, strict=True) for row in [tuple(row_)] * times]


@pytest.mark.parametrize("make", ["python", "native"])
def test_a_cell_lets_go_what_is_old_and_its_log_says_so(make: str, soaking: bool) -> None:
    if make == "native" and not soaking:
        pytest.skip("make soak runs it")
    cell, again, left, rng = cell_of(make), cell_of(make), Left(), random.Random(5)
    there, expired = list[Row](), 0
    for batch in range(12):
        now = START + dt.timedelta(seconds=batch)
        bound = now - dt.timedelta(seconds=5 - batch % 2)
        micros = (bound - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        given = some(rng, now, there, only_new=batch % 3 == 2)
        taken = take(cell, log_of(given, batch), batch, "here", bounds={"trades": ("at", micros)})
        expired += left.take(given, bound)
        take(again, taken.log(log_of(given, batch), batch), batch, "there")
        for view in SELECTS:
            assert difference(held(cell, view), left.rows(view)) is None, (view, batch)
            assert difference(held(again, view), left.rows(view)) is None, "as who replays the log has it"
            assert left.rows(view)
    assert expired > 10
    stored = sum(rows.times * rows.batch.num_rows for rows in cell.stored() if rows.relation == "trades")
    assert stored == left.trades.total()


# -- on Spark ----------------------------------------------------------------------------------------------------------

AFTER = dt.timedelta(seconds=2)
STEP = AFTER // 8
SPARK = {"trades": "k int, at timestamp_ntz, x long, op int", "quotes": "k int, at timestamp_ntz, op int"}


def bound_of(checkpoint: Path, batch: int) -> dt.datetime:
    """By the moment that Spark noted, in steps of an eighth."""
    about = json.loads((checkpoint / "offsets" / str(batch)).read_text().split("\n")[1])
    since = dt.timedelta(milliseconds=about["batchTimestampMs"]) - AFTER
    return dt.datetime(1970, 1, 1) + since // STEP * STEP


@pytest.mark.parametrize("pinned", ["true", "false"])  # rows are handed over, or shuffled
def test_the_state_of_a_query_stays_flat_and_its_views_are_right(
    spark: SparkSession, tmp_path: Path, pinned: str, monkeypatch: pytest.MonkeyPatch, soaking: bool
) -> None:
    if not soaking:
        pytest.skip("six starts: make soak runs it")
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    left, rng, there = Left(), random.Random(7), list[Row]()
    sizes, expired = list[int](), 0
    for batch in range(6):
        now = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
        given = some(rng, now, there, only_new=batch % 3 == 2)
        given += [(1, "trades", (1000 * batch + n, now, n)) for n in range(1000)]  # groups of its own
        for name, columns in SPARK.items():
            rows = [(*row, times) for times, to, row in given if to == name]
            spark.createDataFrame(rows, columns).coalesce(1).write.parquet(str(tmp_path / name / str(batch)))
        streams = {n: spark.readStream.schema(c).parquet(str(tmp_path / n / "*")) for n, c in SPARK.items()}
        options: dict[str, Any] = {"cells": 2, "trigger": {"availableNow": True}, "expire": {"trades": ("at", AFTER)}}
        views = maintain(spark, SCRIPT, streams, tmp_path / "ck", **options)
        views.query.awaitTermination()
        expired += left.take(given, bound_of(tmp_path / "ck", batch))
        for view in SELECTS:
            assert difference(shown(views[view]), left.rows(view)) is None, (view, batch)
        sizes.append(views.progress[-1]["state_bytes"])
        views.stop()
        dt_left = AFTER.total_seconds() - (dt.datetime.now(dt.timezone.utc).replace(tzinfo=None) - now).total_seconds()
        assert dt_left < 1, "a start takes longer than rows stay, so that each batch's rows go before the next but one"
    assert expired > 3000
    assert max(sizes[2:]) < 1.5 * sizes[1], sizes


def test_mistakes_are_named(spark: SparkSession) -> None:
    frames = {n: spark.createDataFrame([], c) for n, c in SPARK.items()}

    def refusal(**expire: Any) -> str:
        with pytest.raises(Error) as refused:
            maintain(spark, SCRIPT, frames, expire=expire)
        return str(refused.value)

    hour = dt.timedelta(hours=1)
    assert "trades has to be a stream with a TIMESTAMP x" in refusal(trades=("x", hour))
    assert "asks has to be a stream with a TIMESTAMP at" in refusal(asks=("at", hour))
    assert "trades is to expire after 0:00:00: give a time above 0" in refusal(trades=("at", dt.timedelta()))
    assert "give a dict, expire={'stream': ('column', timedelta(hours=1))}" in refusal(trades="1 hour")
