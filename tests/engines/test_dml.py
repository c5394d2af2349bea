"""INSERT, UPDATE, DELETE and TRUNCATE through ``execute``, beside DuckDB with the same tables, on every engine."""

# ruff: noqa: E501  one statement a line
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import viewlet
from viewlet.database.memory import Database, EngineName
from viewlet.jobs.run import Options, start, wrong_views
from viewlet.rows.boundary import values_of

TABLES = """
CREATE TABLE people (who VARCHAR PRIMARY KEY, city VARCHAR, born DATE);
CREATE TABLE orders (id BIGINT PRIMARY KEY, who VARCHAR, amount DECIMAL(10,2), seen TIMESTAMP);
CREATE TABLE ticks (k INTEGER, x DOUBLE, ok BOOLEAN);
"""
VIEWS = {
    "sums": "SELECT city, sum(amount) AS s, count(*) AS n FROM orders JOIN people ON orders.who = people.who GROUP BY city",
    "latest": "SELECT who, max(seen) AS seen, min(amount) AS low FROM orders GROUP BY who",
    "total": "SELECT count(*) AS n, sum(k) AS k, sum(x) AS x FROM ticks WHERE ok IS NOT FALSE",
}
STATEMENTS = [
    "INSERT INTO people VALUES ('ann', 'oslo', '1990-01-01'), ('bob', 'rome', NULL), ('eve', NULL, DATE '2000-02-29')",
    "INSERT INTO orders (id, who) VALUES (1, 'ann')",
    "INSERT INTO orders SELECT i, CASE i % 3 WHEN 0 THEN 'ann' WHEN 1 THEN 'bob' END, i / 4, TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR FROM range(2, 12) t(i)",
    "INSERT INTO ticks SELECT i % 4, i / 8, CASE WHEN i % 5 > 0 THEN i % 2 = 0 END FROM range(-20, 20) t(i)",
    "UPDATE orders SET amount = amount * 2, who = upper(who) WHERE id % 2 = 0",
    "UPDATE orders SET who = lower(who)",
    "UPDATE orders SET id = id + 1",
    "UPDATE orders SET amount = 7.255 WHERE id = 3",
    "UPDATE orders SET amount = 1 WHERE id = 3 AND who = 'nobody'",
    "UPDATE orders SET amount = 1 WHERE id = 99",
    "UPDATE orders SET amount = p.n FROM (SELECT who, count(*) AS n FROM people GROUP BY who) p WHERE p.who = orders.who",
    "INSERT OR REPLACE INTO orders VALUES (4, 'eve', 8, NULL), (50, 'eve', 9, '2024-05-05 01:02:03.456789')",
    "INSERT OR REPLACE INTO orders (id, amount) VALUES (4, 11)",
    "INSERT OR IGNORE INTO orders VALUES (4, 'nobody', 0, NULL), (60, 'ann', 3, NULL)",
    "INSERT INTO orders VALUES (4, 'x', 5, NULL), (61, 'x', 5, NULL) ON CONFLICT (id) DO UPDATE SET amount = orders.amount + excluded.amount",
    "INSERT INTO orders VALUES (4, 'x', 5, NULL), (62, 'x', 5, NULL) ON CONFLICT DO NOTHING",
    "INSERT INTO orders SELECT id + 100, who, amount, seen FROM orders WHERE who = 'ann'",
    "INSERT INTO orders SELECT id, who, amount + 1, seen FROM orders ON CONFLICT DO UPDATE SET amount = excluded.amount",
    "INSERT INTO ticks SELECT n, s, NULL FROM sums WHERE n > 1",
    "WITH rich AS (SELECT who FROM orders GROUP BY who HAVING sum(amount) > 10) DELETE FROM people WHERE who IN (SELECT who FROM rich)",
    "INSERT INTO people BY NAME SELECT 'kiev' AS city, 'ann' AS who",
    "DELETE FROM ticks WHERE k = 1",
    "DELETE FROM ticks USING people WHERE people.city = 'kiev' AND k = 2 AND ok",
    "DELETE FROM orders WHERE id = 5",
    "DELETE FROM orders WHERE id = 5 OR id = 6",
    "UPDATE ticks SET k = k / 0",
    "DELETE FROM main.orders WHERE seen IS NULL",
    "TRUNCATE ticks",
    "DELETE FROM orders",
]


def judge() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false; " + TABLES)
    for name, select in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {select}")
    return connection


def opened(engine: EngineName) -> Database:
    db = viewlet.connect(engine=engine, wait_native=True)
    streams = TABLES.replace("TABLE orders", "STREAM orders").replace("TABLE ticks", "STREAM ticks")
    db.execute(streams + "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items()))
    return db


def rows(db: Database, name: str) -> Counter[Any]:
    relation = db.program.relation(name)
    return Counter({values_of(relation, row): n for row, n in db.engine.table(name).items()})


def compare(db: Database, referee: duckdb.DuckDBPyConnection, statement: str) -> None:
    for name in ("people", "orders", "ticks"):
        assert rows(db, name) == Counter(referee.execute(f"SELECT * FROM {name}").fetchall()), statement
    for name in VIEWS:
        assert Counter(db.view(name).rows()) == Counter(referee.execute(f"SELECT * FROM {name}").fetchall()), statement


@pytest.mark.parametrize("engine", ["interpreter", "python", "native"])
def test_statements_do_what_they_do_in_duckdb(engine: EngineName) -> None:
    db, referee = opened(engine), judge()
    changed = 0
    for statement in STATEMENTS:
        before = [rows(db, name) for name in ("people", "orders", "ticks")]
        db.execute(statement)
        referee.execute(statement)
        compare(db, referee, statement)
        changed += before != [rows(db, name) for name in ("people", "orders", "ticks")]
    assert changed >= len(STATEMENTS) - 4
    assert db.tier == engine


def test_a_script_of_statements_is_one_update() -> None:
    db, referee = opened("python"), judge()
    heard: list[Any] = []
    db.view("total").subscribe(heard.append)
    script = "; ".join(STATEMENTS[:9])
    db.execute(script + ";")
    referee.execute(script)
    compare(db, referee, script)
    assert len(heard) == 2, "the row that was, and the row that is"


def test_statements_of_a_script_see_each_other_where_columns_are_derived() -> None:
    db = viewlet.connect(engine="python")
    db.execute("""
      CREATE STREAM r (k INTEGER PRIMARY KEY, url VARCHAR);
      CREATE MATERIALIZED VIEW v AS SELECT regexp_extract(url, 'id=(.*)', 1) AS id, count(*) AS n FROM r GROUP BY id;
      INSERT INTO r VALUES (1, 'id=a'), (2, 'id=b'), (3, 'id=b');
    """)
    db.execute("DELETE FROM r WHERE k = 1; UPDATE r SET url = url || 'x'; UPDATE r SET url = 'id=c' WHERE k = 2")
    assert sorted(db.view("v").rows()) == [("bx", 1), ("c", 1)]
    assert db.verify("v") == []
    db.upsert("r", [(2, "id=bx")])
    assert sorted(db.view("v").rows()) == [("bx", 2)]


def test_a_script_that_defines_and_changes_is_whole_or_nothing() -> None:
    db, referee = opened("python"), judge()
    for script in (
        ";".join(STATEMENTS[:3]),
        "CREATE VIEW poor AS SELECT * FROM orders WHERE amount < 1; "
        "INSERT INTO ticks SELECT id, amount, TRUE FROM poor; UPDATE orders SET amount = 5 WHERE id = 2",
    ):
        db.execute(script)
        referee.execute(script)
    compare(db, referee, "both scripts")
    heard: list[Any] = []
    db.view("total").subscribe(heard.append)
    with pytest.raises(viewlet.DataError, match="id = 1 is there already"):
        db.execute(
            "CREATE TABLE x (a INTEGER); DELETE FROM ticks; INSERT INTO x VALUES (1); INSERT INTO orders (id) VALUES (1)"
        )
    compare(db, referee, "nothing changed")
    db.execute(
        "CREATE TABLE x (a INTEGER PRIMARY KEY); INSERT INTO x VALUES (1), (2); ALTER TABLE x RENAME TO y; "
        "INSERT INTO y SELECT max(a) + 1 FROM y; DELETE FROM ticks; CREATE MATERIALIZED VIEW n AS SELECT sum(a) AS s FROM y"
    )
    assert db.view("n").rows() == [(6,)]
    assert [weight for weight, _ in heard] == [-1, 1]
    with pytest.raises(viewlet.DataError, match="a = 3 is there already"):
        db.insert("y", (3,))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO orders (id) VALUES (1), (2), (1)", "orders.id, row 2: a row with id = 1 is there already"),
        ("INSERT INTO orders (who) VALUES ('ann')", "orders.id, row 0: NULL in a NOT NULL column"),
        ("INSERT INTO orders VALUES ('one', 'ann', 1, NULL)", "orders: Could not convert string 'one' to INT64"),
        (
            "INSERT INTO orders (id, amount) VALUES (1, 1e9)",
            "orders: Could not cast value 1000000000.000000 to DECIMAL",
        ),
        ("INSERT INTO people VALUES ('ann', 'x', 'infinity')", "people: a value that no column holds"),
        ("UPDATE ticks SET k = 3000000000", "ticks: Type INT64 with value 3000000000 can't be cast"),
        ("UPDATE ticks SET nothing = 1", "line 1, column 8: Referenced update column nothing not found"),
        ("INSERT INTO ticks SELECT * FROM nowhere", "line 1, column 13: Table with name nowhere does not exist"),
        ("INSERT INTO ticks SELECT * FROM 'x.csv'", "line 1, column 13"),
        (
            "INSERT INTO ticks (k) SELECT count(*) FROM read_text('/etc/hostname')",
            "a file in a statement is not supported",
        ),
        ("INSERT INTO ticks SELECT 1, 2, TRUE FROM local_rows", "Table with name local_rows does not exist"),
        (
            "INSERT INTO ticks VALUES (1, 1, TRUE) ON CONFLICT DO NOTHING; INSERT INTO ticks VALUES (1)",
            "line 1, column 13: There are no UNIQUE",
        ),
        ("INSERT INTO people VALUES ('a', 'b', NULL); UPDATE people SET who = 'z' WHERE nothing", "line 1, column 52"),
    ],
)
def test_a_refused_statement_changes_nothing(statement: str, message: str) -> None:
    local_rows = [(1,)]  # DuckDB's Python package would find it by its name
    db, referee = opened("python"), judge()
    for before in ("INSERT INTO ticks VALUES (1, 2, TRUE)", "INSERT INTO people VALUES ('eve', NULL, NULL)"):
        db.execute(before)
        referee.execute(before)
    with pytest.raises(viewlet.Error) as caught:
        db.execute(statement)
    assert message in str(caught.value)
    compare(db, referee, statement)
    assert local_rows


def test_nan_is_for_streams_on_the_native_engine() -> None:
    db = opened("native")
    db.execute("INSERT INTO ticks VALUES (1, 'nan', TRUE)")
    assert str(db.view("total").rows()) == "[(1, 1, nan)]"
    db.execute("UPDATE ticks SET x = 2")
    assert db.view("total").rows() == [(1, 1, 2.0)]
    db = opened("python")
    with pytest.raises(viewlet.DataError, match="only the native engine takes them"):
        db.execute("INSERT INTO ticks VALUES (1, 'inf', TRUE)")


def test_statements_while_the_native_program_is_compiled() -> None:
    db = viewlet.connect()
    db.execute(
        "CREATE STREAM r (k INTEGER PRIMARY KEY, x INTEGER); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM r"
    )
    for k in range(200):
        db.execute(f"INSERT INTO r VALUES ({k}, {k})") if k % 3 else db.upsert("r", (k, k))
    with pytest.raises(viewlet.DataError, match="k = 7 is there already"):
        db.execute("INSERT INTO r VALUES (7, 7)")
    assert db.view("v").rows() == [(sum(range(200)),)]


def test_a_statement_reads_only_views_that_duckdb_finds_alike() -> None:
    db = opened("python")
    db.execute("CREATE MATERIALIZED VIEW few AS SELECT k FROM ticks ORDER BY k LIMIT 2")
    with pytest.raises(viewlet.UnsupportedError, match="reading few, which chooses among rows"):
        db.execute("INSERT INTO ticks (k) SELECT k FROM few")
    db = viewlet.connect(engine="python", dialect="paper")
    db.execute("CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW s AS SELECT sum(a) AS s FROM r")
    with pytest.raises(viewlet.UnsupportedError, match="reading the view s in the paper's dialect"):
        db.execute("INSERT INTO r SELECT s FROM s")
    db.execute("INSERT INTO r SELECT 5; INSERT INTO r SELECT a + 1 FROM r")
    assert db.view("s").rows() == [(11,)]


def test_a_job_has_keys_and_statements(tmp_path: Path) -> None:
    """Of a stream with a key a row may leave and another come in one file: rows go in the file's order."""
    (tmp_path / "a.csv").write_text("id,who,amount,op\n1,ann,5,1\n2,bob,6,1\n1,ann,5,-1\n1,ann,9,1\n")
    script = f"""
      CREATE STREAM orders (id BIGINT PRIMARY KEY, who VARCHAR, amount SMALLINT)
        WITH (connector = 'csv', path = '{tmp_path}/a.csv');
      CREATE TABLE people (who VARCHAR PRIMARY KEY, city VARCHAR);
      INSERT INTO people VALUES ('ann', 'oslo'), ('bob', 'rome');
      CREATE VIEW j AS SELECT city, amount FROM orders o JOIN people p ON o.who = p.who;
      CREATE MATERIALIZED VIEW sums AS SELECT city, sum(amount) AS s FROM j GROUP BY city;
    """
    run = start(script, "local", Options("optimized", "sql", None, None, None))
    assert [progress.rows for progress in run.batches()] == [4]
    assert sorted(run.rows("sums")) == [("oslo", 9), ("rome", 6)]
    assert wrong_views(run, script, "sql") == {}
    run.close()
