"""Whose state a checkpoint holds: that of a script's meaning, however it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from viewlet.durable.store import Store
from viewlet.spark.job import JOB, Job, job_of, standing_job
from viewlet.spark.pipeline import Pipeline, pipeline_of

SCRIPT = """
CREATE STREAM sales (shop BIGINT NOT NULL, item VARCHAR, amount DECIMAL(10,2) NOT NULL);
CREATE TABLE shops (shop BIGINT NOT NULL, city VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW by_city AS
  SELECT city, count(*) AS n, avg(amount) AS mean FROM sales JOIN shops ON sales.shop = shops.shop
  WHERE amount > 10 AND item <> 'Select' GROUP BY city;
"""
SAME = {
    "comments": SCRIPT.replace("WHERE", "-- only large ones\n  WHERE /* really */") + "-- the end",
    "white space": " ".join(SCRIPT.split()),
    "lower case": SCRIPT.replace("SELECT", "select").replace("CREATE", "create").replace("BIGINT", "bigint"),
    "upper case names": SCRIPT.replace("FROM sales", "FROM Sales").replace("GROUP BY city", "GROUP BY CITY"),
    "quoted names": SCRIPT.replace("FROM sales", 'FROM "sales"'),
    "another name of a type": SCRIPT.replace("VARCHAR", "TEXT"),
    "a column that no view reads": SCRIPT.replace("item VARCHAR,", "item VARCHAR, clerk VARCHAR,"),
    "estimates that change no plan": SCRIPT.replace("(10,2) NOT NULL)", "(10,2) NOT NULL) WITH (rows = 20000)"),
}
OTHERS = {
    "a constant": SCRIPT.replace("> 10", "> 11"),
    "the case of a string": SCRIPT.replace("'Select'", "'SELECT'"),
    "a condition": SCRIPT.replace("amount >", "amount >="),
    "an aggregate": SCRIPT.replace("avg(", "max("),
    "the name of a column": SCRIPT.replace("AS mean", "AS average"),
    "NULLs": SCRIPT.replace("DECIMAL(10,2) NOT NULL", "DECIMAL(10,2)"),
    "a type": SCRIPT.replace("DECIMAL(10,2)", "DECIMAL(10,3)"),
    "a table that streams": SCRIPT.replace("CREATE TABLE", "CREATE STREAM"),
    "another source": SCRIPT.replace("(10,2) NOT NULL)", "(10,2) NOT NULL) WITH (path = 'elsewhere')"),
    "one more view": SCRIPT + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM sales;",
}


def piped(script: str, cells: int = 2, strategy: str = "optimized", order: tuple[str, ...] = ()) -> Pipeline:
    return pipeline_of(script, cells, strategy, "sql", order)


def job(script: str, **options: Any) -> Job:
    return job_of(piped(script, **options), (), ("sales",))


@pytest.mark.parametrize("change", SAME)
def test_a_script_that_is_written_otherwise_is_the_same(change: str) -> None:
    assert SAME[change] != SCRIPT
    assert job(SCRIPT).is_as(job(SAME[change]))
    assert piped(SAME[change]).program.cpp() == piped(SCRIPT).program.cpp(), "its snapshots can be read"


def test_so_is_one_with_its_statements_in_another_order() -> None:
    two = SCRIPT + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM sales;"
    sales, shops, by_city, n, end = two.split(";")
    other = ";".join([shops, sales, n, by_city, end])
    first = job(two)
    assert first.order == ("sales", "shops", "by_city", "n")
    assert not first.is_as(job(other))
    assert first.is_as(job(other, order=first.order))
    assert piped(other, order=first.order).program.cpp() == piped(two).program.cpp()


@pytest.mark.parametrize("change", OTHERS)
def test_a_script_that_means_something_else_is_another_one(change: str) -> None:
    assert OTHERS[change] != SCRIPT
    assert not job(SCRIPT).is_as(job(OTHERS[change]))


def test_other_cells_strategies_sources_and_code_are_another_job() -> None:
    first = job(SCRIPT)
    assert not first.is_as(job(SCRIPT, cells=3))
    assert not first.is_as(job(SCRIPT, strategy="classical"))
    assert not first.is_as(replace(first, sources=("sales", "more")))
    coded = replace(first, code=("a digest",))
    assert not coded.is_as(replace(first, code=("another",)))
    assert first.is_as(coded), "an earlier version did not note it"


def test_a_job_is_read_as_it_was_written() -> None:
    noted = replace(job(SCRIPT), given="{}", since={"by_city": 7}, spark="spark-7-abc")
    assert Job.from_text(noted.to_text()) == noted
    assert [(kept.name, kept.relation) for kept in noted.kept] == [("sales", "sales")]


def test_a_checkpoint_that_was_begun_with_the_very_text_goes_on_with_it(tmp_path: Path) -> None:
    """As it was recorded before identity was meaning, and before jobs could change."""
    store, old = Store.of(str(tmp_path)), piped(SCRIPT)
    for identity in (old.identity, old.identity_with_text):
        store.write(JOB, f"{identity}\ncells=2 strategy=optimized dialect=sql\n{SCRIPT}".encode())
        standing = standing_job(str(tmp_path))
        assert standing is not None
        assert standing.text == ""
        assert standing.job.is_as(job(SAME["comments"]))
        assert not standing.job.is_as(job(OTHERS["a constant"]))
        assert standing.job.kept == job(SCRIPT).kept


def test_the_cells_that_have_each_row_once() -> None:
    """Rows that are copied along a dimension are taken from its first coordinate."""
    pairs = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r a, r b WHERE a.x = b.y;"
    noted = job("CREATE STREAM r (x BIGINT NOT NULL, y BIGINT NOT NULL);" + pairs, cells=4)
    for kept, copy in zip(noted.kept, piped(noted.script, cells=4).grid.copies, strict=True):
        assert len(kept.cells) * copy.replication == 4
        assert len(set(kept.cells)) == len(kept.cells)
