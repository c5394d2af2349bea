"""``viewlet run --engine spark``: the same jobs as on the engine in this process, with the same answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from viewlet.cli.main import app

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
    assert result.exit_code == 1
    assert result.stderr.startswith("error: sales")
    assert len(result.stderr.splitlines()) == 1
