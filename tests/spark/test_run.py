"""``viewlet run --engine spark``: the same jobs as on the engine in this process, with the same answers."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from viewlet.cli.main import app
from viewlet.errors import Error
from viewlet.jobs.run import LocalRun, Options
from viewlet.jobs.source import sources_of
from viewlet.jobs.spark import Frames, clear_errors
from viewlet.sql.translate import translate

BOOK = """
CREATE STREAM bids (
  t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id BIGINT NOT NULL, volume DOUBLE NOT NULL, price DOUBLE NOT NULL
) WITH (connector = 'orderbook', events = 2000, events_per_batch = 500, live = 100);
CREATE MATERIALIZED VIEW book AS SELECT broker_id, count(*) AS orders, max(price) AS best FROM bids GROUP BY broker_id;
"""
FILES = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR, price DECIMAL(10,2))
  WITH (connector = 'csv', path = '{0}/sales');
CREATE TABLE shops (shop BIGINT NOT NULL, town VARCHAR) WITH (connector = 'csv', path = '{0}/shops.csv');
CREATE MATERIALIZED VIEW towns AS
SELECT town, count(item) AS items, sum(price) AS total FROM sales, shops WHERE sales.shop = shops.shop GROUP BY town;
"""


def run(script: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["run", "-", *options], input=script)


def add(directory: Path, number: int, text: str) -> None:
    """Files are taken by their age."""
    path = directory / "sales" / f"{number}.csv"
    path.write_text(text)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.fixture
def sales(tmp_path: Path) -> str:
    """Two files: in the second, a row of the first goes. An empty field is NULL, quoted or not."""
    (tmp_path / "sales").mkdir()
    (tmp_path / "shops.csv").write_text("town,shop\nAhlen,1\nBonn,2\n")
    add(tmp_path, 1, 'op,shop,item,price\n1,1,pen,1.50\n1,2,,2.00\n2,1,"",0.25\n')
    add(tmp_path, 2, "op,shop,item,price\n-1,1,pen,1.50\n1,2,ink,4.10\n")
    return FILES.format(tmp_path)


def test_a_generated_job_runs_to_its_end_and_goes_on_from_there(spark: SparkSession, tmp_path: Path) -> None:
    options = ("--engine", "spark", "--cells", "2", "--verify", "--checkpoint", str(tmp_path))
    result = run(BOOK, *options)
    assert result.exit_code == 0, result.output
    *batches, book, verdict = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in batches] == [f"batch {n}/4" for n in range(1, 5)]
    assert "2 cells" in batches[0]
    assert "spark, native" in batches[0]
    assert book.startswith("book: 0 ")
    assert verdict.startswith("verified: ")
    assert "\x1b" not in result.stdout, "piped output is plain"
    assert run(BOOK, *options).stdout.splitlines() == [book, verdict], "every row has been read"


def test_files_mean_the_same_to_both_engines(spark: SparkSession, sales: str) -> None:
    for engine in ("spark", "native"):
        result = run(sales, "--engine", engine, "--verify")
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[-2] == "towns: Ahlen 0 0.50 | Bonn 1 6.10"


def test_a_row_that_is_not_there_ends_the_run_with_its_reason(spark: SparkSession, sales: str, tmp_path: Path) -> None:
    add(tmp_path, 3, "op,shop,item,price\n-1,7,pen,1.50\n")
    result = run(sales, "--engine", "spark")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: sales")
    assert len(result.stderr.splitlines()) == 1


# -- what is in a file -------------------------------------------------------------------------------------------------

NOTES = """
CREATE STREAM notes (id BIGINT, text VARCHAR) WITH (connector = '{0}', path = '{1}');
CREATE MATERIALIZED VIEW kept AS SELECT id, text FROM notes;
"""


def job(columns: str, format: str, path: Path) -> str:
    return f"""
    CREATE STREAM r ({columns}) WITH (connector = '{format}', path = '{path}');
    CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r;
    """


def read_by_spark(spark: SparkSession, script: str, scratch: Path) -> None:
    relations = translate(script, "sql").relations
    with clear_errors():
        Frames(spark, relations, sources_of(relations), str(scratch)).live_rows()["r"].collect()


def read_natively(script: str) -> None:
    list(LocalRun(script, Options("optimized", "sql", None, None, None)).batches())


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_may_have_another_order_than_the_next_and_op_or_none(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    """Quotes are doubled and a backslash is one, as RFC 4180 has it."""
    if format == "csv":
        (tmp_path / "1 %20.csv").write_text('id,text\n1,"x""y"\n2,"c\\d"\n3,"a\nb"\n')
        (tmp_path / "2.csv").write_text('text,op,ID\n"x""y",-1,1\n')
    else:
        texts = pa.array(['x"y', "c\\d", "a\nb"]).dictionary_encode()
        pq.write_table(pa.table({"id": [1, 2, 3], "text": texts}), tmp_path / "1 %20.parquet")
        pq.write_table(pa.table({"text": ['x"y'], "op": [-1], "ID": [1]}), tmp_path / "2.parquet")
    for age, path in enumerate(sorted(tmp_path.iterdir(), reverse=True)):
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    for engine in ("spark", "native"):
        result = run(NOTES.format(format, tmp_path), "--engine", engine, "--verify")
        assert result.exit_code == 0, result.output
        assert "kept: 2 c\\d | 3 a\\nb\n" in result.stdout  # a line break is shown, so that a row stays a line


def test_no_engine_rounds_cuts_or_guesses_what_is_in_csv(spark: SparkSession, tmp_path: Path) -> None:
    refused = [
        ("a DECIMAL(10,2)", "a\n1.239\n", r"data loss"),
        ("a DATE", "a\n2024-01-02 12:00:00\n", r"invalid value '2024-01-02 12:00:00'"),
        ("a TIMESTAMP", "a\n2024-01-02 12:00:00.1234567\n", r"invalid value '2024-01-02 12:00:00\.1234567'"),
        ("a BIGINT, b BIGINT", "a,b\n1,2\n1\n", r"Expected 2 columns, got 1"),
        ("a BIGINT", "a,b\n1,2\n1,2,3\n", r"Expected 2 columns, got 3"),
        ("a BIGINT", "a,op\n1,1\n2,\n", r"r\.op, row 1: NULL in .*\.csv; it is \+1"),
        ("a BIGINT", "a,A\n1,2\n", r"r\.a: .*\.csv has two columns of this name"),
        ("a BIGINT, b BIGINT", "a\n1\n", r"r\.b: .*\.csv has no such column; it has a"),
    ]
    for number, (columns, text, message) in enumerate(refused):
        path = tmp_path / f"{number}.csv"
        path.write_text(text)
        for read in (lambda script: read_by_spark(spark, script, tmp_path), read_natively):
            with pytest.raises(Error, match=message) as error:
                read(job(columns, "csv", path))
            assert len(str(error.value).splitlines()) == 1


def test_every_parquet_file_is_looked_at_before_the_first_row_is_read(spark: SparkSession, tmp_path: Path) -> None:
    whole = pa.table({"a": [1], "b": pa.array([1], pa.timestamp("us"))})
    refused = {
        "missing": (pa.table({"a": [2]}), r"r\.b: .*missing/2\.parquet has no such column; it has a"),
        "other": (
            whole.set_column(0, "a", pa.array([2], pa.int32())),
            r"r\.a: .*other/2\.parquet has it as int32, .*other/1\.parquet as int64",
        ),
        "fine": (
            whole.set_column(1, "b", pa.array([2], pa.timestamp("ns"))),
            r"r\.b: .*fine/2\.parquet has it as timestamp\[ns\], .*1\.parquet as timestamp\[us\]",
        ),
    }
    for name, (table, message) in refused.items():
        (tmp_path / name).mkdir()
        pq.write_table(whole, tmp_path / name / "1.parquet")
        pq.write_table(table, tmp_path / name / "2.parquet")
        with pytest.raises(Error, match=message):
            read_by_spark(spark, job("a BIGINT, b TIMESTAMP", "parquet", tmp_path / name), tmp_path)
    with pytest.raises(Error, match=r"fine/2\.parquet has it as timestamp\[ns\], which Spark does not read"):
        read_by_spark(spark, job("b TIMESTAMP", "parquet", tmp_path / "fine" / "2.parquet"), tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(Error, match=r"r: there is no file .*none"):
        read_by_spark(spark, job("a BIGINT", "parquet", tmp_path / "none"), tmp_path)
