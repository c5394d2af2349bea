"""Whose state a checkpoint holds: that of a script's meaning, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewlet.durable.store import Store
from viewlet.errors import Error
from viewlet.spark.pipeline import JOB, Pipeline, _claim, pipeline_of

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


def piped(script: str, cells: int = 2, strategy: str = "optimized") -> Pipeline:
    return pipeline_of(script, cells, strategy, "sql")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Of a checkpoint that was begun with the script."""
    begun = Store(str(tmp_path))
    _claim(begun, piped(SCRIPT))
    return begun


@pytest.mark.parametrize("change", SAME)
def test_a_script_that_is_written_otherwise_is_the_same(store: Store, change: str) -> None:
    assert SAME[change] != SCRIPT
    _claim(store, piped(SAME[change]))
    assert piped(SAME[change]).program.cpp() == piped(SCRIPT).program.cpp(), "its snapshots can be read"


@pytest.mark.parametrize("change", OTHERS)
def test_a_script_that_means_something_else_is_another_one(store: Store, change: str) -> None:
    assert OTHERS[change] != SCRIPT
    with pytest.raises(Error, match=r"begun with another script .*go on as it was begun, or give a new checkpoint"):
        _claim(store, piped(OTHERS[change]))


def test_other_options_are_named(store: Store) -> None:
    for other in (piped(SAME["comments"], cells=3), piped(SCRIPT, strategy="classical")):
        with pytest.raises(Error, match="begun with cells=2 strategy=optimized dialect=sql "):
            _claim(store, other)


def test_a_checkpoint_that_was_begun_with_the_very_text_goes_on_with_it(tmp_path: Path) -> None:
    """As it was recorded before identity was meaning."""
    store, old = Store(str(tmp_path)), piped(SCRIPT)
    store.write(JOB, f"{old.identity_with_text}\ncells=2 strategy=optimized dialect=sql\n{SCRIPT}".encode())
    _claim(store, old)
    with pytest.raises(Error, match="begun with another script"):
        _claim(store, piped(OTHERS["a constant"]))
