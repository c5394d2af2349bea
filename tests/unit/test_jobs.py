"""Jobs: where rows come from, how files are read, and how views are verified."""

from __future__ import annotations

import datetime as dt
import gzip
import math
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import viewlet
from viewlet.compilation import Dialect
from viewlet.errors import DataError, Error
from viewlet.jobs.file import read
from viewlet.jobs.run import LocalRun, Options, wrong_views
from viewlet.jobs.source import Files, OrderBook, Tpch, source_of
from viewlet.jobs.verify import difference, expected
from viewlet.schema import BIGINT, Column, Relation
from viewlet.sql import translate
from viewlet.workloads.queries import PAPER_QUERIES, TPCH
from viewlet.workloads.streams import NATION

OPTIONS = Options("optimized", "sql", None, None, None)


def relation(name: str = "bids", **options: str) -> Relation:
    return Relation(name, (Column("a", BIGINT),), options=options)


# -- WITH (connector = …) ----------------------------------------------------------------------------------------------


def test_connectors() -> None:
    assert source_of(relation(connector="parquet", path="p")) == Files("parquet", "p")
    assert source_of(relation(connector="csv", path="p", files_per_batch="3")) == Files("csv", "p", 3)
    assert source_of(relation(connector="orderbook", events="7", seed="0")) == OrderBook(events=7, seed=0)
    assert source_of(relation("orders", connector="tpch", scale="0.5")) == Tpch(scale=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"stream bids has no connector: add WITH"),
        ({"connector": "kafka"}, r"no connector 'kafka'; there are: parquet, csv, orderbook, tpch"),
        ({"connector": "csv"}, r"bids: connector 'csv' needs to know where: path"),
        ({"connector": "csv", "path": "p", "sep": ";"}, r"'csv' has no option sep; it has: path, files_per_batch"),
        ({"connector": "orderbook", "events": "many"}, r"option events is a number, not 'many'"),
        ({"connector": "orderbook", "live": "0"}, r"option live is more than zero, not 0"),
        ({"connector": "tpch"}, r"'tpch' generates customer, .*; there is no bids"),
    ],
)
def test_what_a_with_clause_cannot_say(options: dict[str, str], message: str) -> None:
    with pytest.raises(Error, match=message):
        source_of(relation(**options))


# -- files -------------------------------------------------------------------------------------------------------------

LEDGER = """
CREATE STREAM ledger (account BIGINT NOT NULL, day DATE, amount DECIMAL(10,2))
  WITH (connector = '{0}', path = '{1}', files_per_batch = 2);
CREATE MATERIALIZED VIEW balance AS
SELECT account, sum(amount) AS total, max(day) AS last FROM ledger GROUP BY account;
"""


def write(path: Path, age: int, rows: list[dict[str, object]]) -> None:
    columns = [("op", pa.int32()), ("account", pa.int32()), ("day", pa.date32()), ("amount", pa.decimal128(6, 2))]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), path)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def entry(op: int, account: int, day: int, amount: str) -> dict[str, object]:
    return {"op": op, "account": account, "day": dt.date(2024, 1, day), "amount": Decimal(amount)}


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Three files, the last by name the oldest: it has the row that goes in the first by name."""
    write(tmp_path / "a.parquet", 1, [entry(-1, 1, 1, "5.00"), entry(3, 2, 3, "0.10")])
    write(tmp_path / "b.parquet", 2, [entry(1, 1, 2, "7.00")])
    write(tmp_path / "c.parquet", 3, [entry(1, 1, 1, "5.00")])
    (tmp_path / "_SUCCESS").touch()
    return LEDGER.format("parquet", tmp_path)


def test_files_are_taken_oldest_first_so_many_to_a_batch(ledger: str) -> None:
    run = LocalRun(ledger, OPTIONS)
    progress = list(run.batches())
    assert [(p.batches, p.of, p.rows) for p in progress] == [(1, 2, 2), (2, 2, 4)]
    assert sorted(run.rows("balance")) == [
        (1, Decimal("7.00"), dt.date(2024, 1, 2)),
        (2, Decimal("0.30"), dt.date(2024, 1, 3)),
    ]
    assert wrong_views(run, ledger, "sql") == {}


def test_a_pattern_and_a_single_file(ledger: str, tmp_path: Path) -> None:
    for path, total in ((tmp_path / "[bc].parquet", "12.00"), (tmp_path / "b.parquet", "7.00")):
        run = LocalRun(LEDGER.format("parquet", path), OPTIONS)
        assert len(list(run.batches())) == 1
        assert [row[1] for row in run.rows("balance")] == [Decimal(total)]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    script = LEDGER.format("csv", tmp_path / "ledger.csv")
    with pytest.raises(Error, match=r"ledger: there is no file .*ledger\.csv"):
        list(LocalRun(script, OPTIONS).batches())
    (tmp_path / "ledger.csv").write_text("account,day\n1,2024-01-01\n")
    with pytest.raises(DataError, match=r"ledger\.amount: .*ledger\.csv has no such column; it has account, day"):
        list(LocalRun(script, OPTIONS).batches())
    (tmp_path / "ledger.csv").write_text("account,day,amount\none,2024-01-01,1.00\n")
    with pytest.raises(DataError, match=r"ledger\.account, row 0: .*ledger\.csv cannot be read: .*'one'"):
        list(LocalRun(script, OPTIONS).batches())


LEDGER_RELATION = translate(LEDGER).relations[0]


@pytest.mark.parametrize(
    ("rows", "column", "row", "message"),
    [
        ("1,2024-01-01,1.00\n2,2024-02-30,1.00\n", "day", 1, r"cannot be read: .*'2024-02-30'"),
        ("1,2024-01-01,1.00\n" * 70_000 + "1,2024-01-01,1.005\n", "amount", 70_000, r"cannot be read: .*data loss"),
        ("1,2024-01-01,1.00\n2,2024-01-01\n", None, 1, r"cannot be read: Expected 3 columns, got 2"),
        ("1,2024-01-01,1.00\n2,2024-01-01,1,1\n", None, 1, r"cannot be read: Expected 3 columns, got 4"),
        ("1,2024-01-01,1.00\n,2024-01-01,1.00\n", "account", 1, r"NULL in a NOT NULL column, in .*ledger\.csv"),
    ],
    ids=["date", "late", "short", "long", "null"],
)
def test_an_error_in_a_csv_file_names_file_row_and_column(
    tmp_path: Path, rows: str, column: str | None, row: int, message: str
) -> None:
    (tmp_path / "ledger.csv").write_text(f"account,day,amount\n{rows}")
    with pytest.raises(DataError, match=message) as caught:
        list(read(LEDGER_RELATION, Files("csv", str(tmp_path)), str(tmp_path / "ledger.csv")))
    assert (caught.value.column, caught.value.row) == (column, row)
    assert "ledger.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "values", "message"),
    [
        ("DECIMAL(10,2)", pa.array([0.125]), r"r\.a, row 0: 0\.125 has more than 2 digits after the point"),
        ("DATE", pa.array([dt.datetime(2024, 1, 1, 23)]), r"r\.a, row 0: DATE takes a datetime\.date"),
        ("BOOLEAN", pa.array([5]), r"r\.a, row 0: BOOLEAN takes a bool, not 5"),
        ("TIMESTAMP", pa.array([1], pa.timestamp("ns")), r"finer than the microseconds"),
    ],
)
@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_parquet_is_not_cast_on_its_way(tmp_path: Path, kind: str, type_: str, values: pa.Array, message: str) -> None:
    pq.write_table(pa.table({"a": values}), tmp_path / "r.parquet")
    script = f"CREATE {kind} r (a {type_}) WITH (connector = 'parquet', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT count(a) AS n FROM r;"
    with pytest.raises(DataError, match=message):
        list(LocalRun(script, OPTIONS).batches())


def test_a_line_break_in_quotes_ends_no_row_wherever_a_block_ends(tmp_path: Path) -> None:
    text = "\n" * 300
    (tmp_path / "r.csv").write_text("a,t\n" + f'1,"{text}"\n' * 10_000)
    script = f"CREATE STREAM r (a BIGINT, t VARCHAR) WITH (connector = 'csv', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT t, sum(a) AS n FROM r GROUP BY t;"
    run = LocalRun(script, OPTIONS)
    list(run.batches())
    assert run.rows("v") == [(text, 10_000)]


def test_op_is_a_number_in_every_row(tmp_path: Path) -> None:
    script = f"CREATE STREAM r (a BIGINT) WITH (connector = 'parquet', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT a FROM r;"
    for ops, message in (
        (pa.array([1, None], pa.int32()), r"r\.op, row 1: NULL in .*r\.parquet; it is \+1 \(insert\), -1"),
        (pa.array([1.0, 0.5]), r"r\.op: .*r\.parquet has it as double; it is \+1"),
    ):
        pq.write_table(pa.table({"a": [1, 2], "op": ops}), tmp_path / "r.parquet")
        with pytest.raises(DataError, match=message):
            list(LocalRun(script, OPTIONS).batches())


def test_a_relation_with_a_column_op_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("op\n1\n")
    script = f"CREATE STREAM r (op BIGINT) WITH (connector = 'csv', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT op FROM r;"
    with pytest.raises(Error, match=r"r has a column op, which says in files whether a row comes or goes: rename it"):
        list(LocalRun(script, OPTIONS).batches())


def test_files_of_a_table_may_have_other_types_and_be_compressed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"A": pa.array([1], pa.int8())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2**40]}), tmp_path / "2.parquet")
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    script = f"CREATE TABLE r (a BIGINT) WITH (connector = 'parquet', path = '{tmp_path}/*.parquet');"
    script += f"CREATE STREAM s (a BIGINT) WITH (connector = 'csv', path = '{tmp_path}/s.csv.gz');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT r.a FROM r, s WHERE s.a <= r.a;"
    run = LocalRun(script, OPTIONS)
    list(run.batches())
    assert sorted(run.rows("v")) == [(1,), (2**40,)]
    assert wrong_views(run, script, "sql") == {}


@pytest.mark.parametrize(("suffix", "codec"), [(".gz", "gzip"), (".zst", "zstd"), ("", None)])
def test_a_file_that_unpacks_to_a_large_one_is_read_in_little_memory(
    tmp_path: Path, suffix: str, codec: str | None
) -> None:
    lines, times = b"1," + b"x" * 97 + b"\n", 2_000_000
    with pa.output_stream(tmp_path / f"r.csv{suffix}", compression=codec) as file:
        file.write(b"a,t\n")
        for _ in range(times // 1000):
            file.write(lines * 1000)
    path = str(tmp_path / f"r.csv{suffix}")
    rows, most, before = 0, 0, pa.total_allocated_bytes()
    for piece in read(relation("r"), Files("csv", path), path):
        rows, most = rows + piece.num_rows, max(most, pa.total_allocated_bytes() - before)
    assert rows == times
    assert most < 100 * times / 3


def test_rows_of_a_large_file_come_before_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is read in pieces, and by the number of each row in the whole file."""
    monkeypatch.setattr("viewlet.jobs.file.BLOCK", 200)
    rows = [(-1, i) for i in range(50)] + [(1, i) for i in range(100)] + [(0, 7)]
    (tmp_path / "1.csv").write_text("a,op\n")
    (tmp_path / "2.csv").write_text("\n".join(["op,a", *(f"{op},{a}" for op, a in rows), ""]))
    for age, name in enumerate(("2.csv", "1.csv")):
        os.utime(tmp_path / name, (1_700_000_000 - age, 1_700_000_000 - age))
    script = f"CREATE STREAM r (a BIGINT) WITH (connector = 'csv', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT a FROM r;"
    run = LocalRun(script, OPTIONS)
    assert [p.batches for p in run.batches()] == [1, 2], "a file without rows is not the last"
    assert sorted(run.rows("v")) == [(i,) for i in range(50, 100)]
    for bad, message in (
        ("x,1", r"r\.op, row 151: .*2\.csv cannot be read: .*'x'"),
        ("1,y", r"r\.a, row 151: .*2\.csv cannot be read: .*'y'"),
        (",1", r"r\.op, row 151: NULL in .*2\.csv"),
        ("1", r"r, row 151: .*2\.csv cannot be read: Expected 2 columns, got 1"),
        ("1," + "9" * 300, r"r: .*2\.csv cannot be read"),
    ):
        (tmp_path / "2.csv").write_text("\n".join(["op,a", *(f"{op},{a}" for op, a in rows), bad, ""]))
        with pytest.raises(DataError, match=message):
            list(LocalRun(script, OPTIONS).batches())


# -- generated ---------------------------------------------------------------------------------------------------------


def test_a_generated_warehouse_with_its_static_table() -> None:
    source = "WITH (connector = 'tpch', events = 4000, events_per_batch = 2000, live = 300, scale = 0.001)"
    script = TPCH.replace("NOT NULL);", f"NOT NULL) {source};") + PAPER_QUERIES["ssb4"].sql()
    run = LocalRun(script, OPTIONS)
    assert [p.rows for p in run.batches()] == [2_000, 4_000]
    assert run.rows("ssb4"), "else nothing is proven"
    assert wrong_views(run, script, "sql") == {}
    assert sum(len(table) for table in run.live_rows()["nation"]) == len(NATION)


def test_a_generated_stream_has_the_columns_it_has() -> None:
    script = "CREATE STREAM bids (id BIGINT, size DOUBLE) WITH (connector = 'orderbook', events = 1);"
    script += "CREATE MATERIALIZED VIEW v AS SELECT sum(size) AS s FROM bids;"
    with pytest.raises(DataError, match=r"bids\.size: no such column is generated; there are t, id, broker_id"):
        list(LocalRun(script, OPTIONS).batches())


# -- verifying ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "what"),
    [
        ([(1, None), (2, 0.1)], [(2, 0.1 + 1e-17), (1, None)], None),
        ([(Decimal("1.0"), "a")], [(1, "a")], None),
        ([(1, 2.0)], [(1, 2.5)], "has (1, 2.0), which should be (1, 2.5)"),
        ([(1,), (1,)], [(1,)], "has 2 rows like (1,), which should be 1"),
        ([], [(3,)], "has 0 rows like (3,), which should be 1"),
        ([(True,)], [(1,)], "has 1 rows like (True,), which should be 0"),
        ([(None,)], [(0,)], "has 1 rows like (None,), which should be 0"),
        ([(math.nan, 1.0), (0.5, 2.0), (math.nan, 0.5)], [(math.nan, 0.5), (math.nan, 1.0), (0.5, 2.0)], None),
        ([(math.nan, 1.0)], [(math.nan, 2.0)], "has (nan, 1.0), which should be (nan, 2.0)"),
        ([(math.nan,)], [(1.0,)], "has 1 rows like (nan,), which should be 0"),
        ([(math.inf,)], [(math.inf,)], None),
    ],
)
def test_differences(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]], what: str | None) -> None:
    assert difference(ours, theirs) == what


def test_nan_and_what_is_divided_by_zero_are_verified(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,x\n0,NaN\n1,1.5\n")
    script = f"CREATE STREAM r (a BIGINT, x DOUBLE) WITH (connector = 'csv', path = '{tmp_path}');"
    script += "CREATE MATERIALIZED VIEW v AS SELECT x, 1 / a AS y, sum(x) / 0 AS z FROM r GROUP BY x, a;"
    run = LocalRun(script, OPTIONS)
    list(run.batches())
    assert {str(row[0]) for row in run.rows("v")} == {"nan", "1.5"}
    assert wrong_views(run, script, "sql") == {}


def test_the_papers_dialect_is_verified_as_such() -> None:
    source = "WITH (connector = 'orderbook', events = 1, live = 10)"
    script = f"CREATE STREAM bids (id BIGINT, price DOUBLE) {source};"
    script += "CREATE MATERIALIZED VIEW v AS SELECT sum(price) AS s FROM bids WHERE price < 0;"
    for dialect, total in (("sql", None), ("paper", 0.0)):
        run = LocalRun(script, Options("optimized", dialect, None, None, None))  # type: ignore[arg-type]
        list(run.batches())
        assert run.rows("v") == [(total,)]
        assert wrong_views(run, script, dialect) == {}  # type: ignore[arg-type]


OF_NOTHING = """
CREATE STREAM r (k INTEGER, x INTEGER);
CREATE MATERIALIZED VIEW whole AS SELECT avg(x) AS a, sum(x) AS s, min(x) AS m, count(*) AS n FROM r WHERE x > 100;
CREATE MATERIALIZED VIEW groups AS SELECT k, avg(x) AS a, sum(DISTINCT x) AS s FROM r GROUP BY k HAVING sum(x) < 5;
CREATE MATERIALIZED VIEW nested AS
  SELECT sum(CASE WHEN x > (SELECT avg(y.x) FROM r y WHERE y.x > 100) THEN 1 END) AS n FROM r;
CREATE MATERIALIZED VIEW unnamed AS SELECT k, avg(x), avg(x) + 1 FROM r GROUP BY k;
CREATE MATERIALIZED VIEW above AS SELECT u.avg, u.column_3 FROM unnamed u;
"""


@pytest.mark.parametrize("dialect", ["sql", "paper"])
def test_aggregates_of_nothing_and_of_nulls_raise_no_false_alarm(dialect: Dialect) -> None:
    db = viewlet.connect(engine="interpreter", dialect=dialect)
    db.execute(OF_NOTHING)
    rows = [(1, None), (1, None), (2, 3), (2, None), (None, 1)]
    db.insert("r", rows)
    k, x = zip(*rows, strict=True)
    events = pa.table({"k": pa.array(k, pa.int32()), "x": pa.array(x, pa.int32()), "op": [1] * len(rows)})
    right = expected(OF_NOTHING, dialect, db.program.relations, {"r": [events]})
    assert {name: difference(db.view(name).rows(), right[name]) for name in right} == dict.fromkeys(right)
    assert db.view("whole").rows()[0][0] == (None if dialect == "sql" else 0.0)
