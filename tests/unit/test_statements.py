"""Statements that define, drop and rename; names in quotes; what scripts of other engines say."""

from __future__ import annotations

import pytest

import viewlet
from viewlet.program.trigger import Program
from viewlet.spark.pipeline import pipeline_of

BIDS = "CREATE STREAM bids (id BIGINT NOT NULL, price INTEGER);"
TOTAL = "CREATE MATERIALIZED VIEW total AS SELECT sum(price) AS s FROM bids;"


def opened(script: str = BIDS) -> viewlet.Database:
    db = viewlet.connect(engine="python")
    db.execute(script)
    return db


def test_a_plain_view_is_a_name_for_other_views() -> None:
    db = opened(BIDS + "CREATE VIEW dear (number, cost) AS SELECT id, price * 2 FROM bids WHERE price > 10;")
    db.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(cost) AS c FROM dear")
    db.insert("bids", [(1, 5), (2, 50)])
    assert db.view("n").rows() == [(1, 100)]
    assert [r.name for r in db.program.results] == ["n"]
    with pytest.raises(viewlet.Error, match="dear is a plain view, which only other views read"):
        db.view("dear")
    with pytest.raises(viewlet.SqlError, match="there is no column nothing"):
        db.execute("CREATE VIEW wrong AS SELECT nothing FROM bids")


def test_if_not_exists_leaves_what_is_there() -> None:
    db = opened(BIDS + TOTAL)
    db.insert("bids", (1, 5))
    db.execute("CREATE TABLE IF NOT EXISTS bids (x VARCHAR); CREATE VIEW IF NOT EXISTS total AS SELECT 1 AS one;")
    db.execute("CREATE STREAM IF NOT EXISTS asks (id BIGINT)")
    db.insert("asks", (1,))
    assert db.view("total").rows() == [(5,)]


def test_or_replace_takes_the_place_and_the_rows_stay_with_the_table() -> None:
    db = opened(BIDS + TOTAL)
    db.insert("bids", [(1, 5), (2, 6)])
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM bids")
    assert db.view("total").rows() == [(2,)]
    db.execute("DROP VIEW total; CREATE OR REPLACE STREAM bids (id BIGINT NOT NULL, price INTEGER);" + TOTAL)
    assert db.view("total").rows() == [(None,)], "another stream of that name: its rows are gone"


def test_a_dropped_name_is_free_again() -> None:
    db = opened(BIDS + TOTAL)
    db.insert("bids", (1, 5))
    db.execute("DROP MATERIALIZED VIEW total; DROP STREAM IF EXISTS bids RESTRICT; DROP VIEW IF EXISTS nothing")
    assert not db.program.relations
    assert not db.program.results
    with pytest.raises(viewlet.Error, match="there is no view total"):
        db.view("total")
    db.execute(BIDS + TOTAL)
    assert db.view("total").rows() == [(None,)]


def test_a_script_that_fails_after_a_drop_has_dropped_nothing() -> None:
    db = opened(BIDS + TOTAL)
    db.insert("bids", (1, 5))
    with pytest.raises(viewlet.SqlError, match="defined twice"):
        db.execute("DROP VIEW total; INSERT INTO bids VALUES (2, 7); CREATE STREAM bids (a INTEGER)")
    assert db.view("total").rows() == [(5,)]


def test_whoever_listens_to_a_dropped_view_hears_no_more() -> None:
    db = opened(BIDS + TOTAL)
    heard: list[object] = []
    db.view("total").subscribe(heard.append)
    db.insert("bids", (1, 5))
    assert heard == [(-1, (None,)), (1, (5,))]
    db.execute("DROP VIEW total")
    db.insert("bids", (2, 6))
    db.execute(TOTAL)
    db.insert("bids", (3, 7))
    assert len(heard) == 2


def test_renamed_relations_keep_their_rows_and_keys() -> None:
    db = opened("CREATE STREAM bids (id BIGINT PRIMARY KEY, price INTEGER) WITH (distinct_id = 7, hot_id = 0.1);")
    db.insert("bids", (1, 5))
    db.execute("ALTER TABLE bids RENAME TO offers; ALTER STREAM offers RENAME COLUMN id TO number;")
    db.execute("ALTER TABLE IF EXISTS nothing RENAME TO something; ALTER TABLE offers RENAME price TO cost")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT number, cost FROM offers; ALTER VIEW v RENAME TO w")
    assert db.view("w").rows() == [(1, 5)]
    assert db.program.relation("offers").distinct == {"number": 7}
    with pytest.raises(viewlet.DataError, match="number = 1 is there already"):
        db.insert("offers", {"number": 1, "cost": 8})
    with pytest.raises(viewlet.DataError, match="no such stream or table; there are: offers"):
        db.insert("bids", (2, 5))


ODD = """
CREATE STREAM "my stream" ("a b" INTEGER PRIMARY KEY, "1x" VARCHAR, "select" DOUBLE, "ü""q'" INTEGER, "x.y" INTEGER,
  "a_b" INTEGER);
CREATE STREAM main.s2 ("a b" INTEGER, z INTEGER);
CREATE TABLE "2;--" (k INTEGER, "v/*" VARCHAR);
CREATE MATERIALIZED VIEW "ein ""Blick" ("g 1", "s+1") AS
  SELECT "1x", sum("a b") AS "x y" FROM "my stream" GROUP BY "1x";
CREATE VIEW "pl ain" AS SELECT "a b" * 2 AS "d b", "x.y", "a_b" FROM main."my stream";
CREATE MATERIALIZED VIEW joined AS
  SELECT p."d b" AS "Δ", q.z, t."v/*", p.a_b FROM "pl ain" p JOIN s2 q ON p."d b" = q."a b" JOIN "2;--" t ON t.k = q.z
  WHERE p."x.y" >= (SELECT max("x.y") FROM "my stream" w WHERE w."a b" < p."d b");
CREATE MATERIALIZED VIEW "123" AS SELECT max("ü""q'") AS m, count(DISTINCT "1x") AS "count" FROM "my stream";
"""


@pytest.mark.parametrize("engine", ["interpreter", "python", "native"])
def test_names_in_quotes_have_any_characters(engine: viewlet.database.memory.EngineName) -> None:
    db = viewlet.connect(engine=engine, wait_native=True)
    db.execute(ODD)
    assert db.tier == engine
    db.insert("my stream", [(1, "x", 1.0, 2, 3, 8), (2, "y", 2.0, 3, 9, 9)])
    db.insert("s2", [(4, 1), (2, 1)])
    db.insert("2;--", (1, "hi"))
    db.execute('UPDATE "my stream" SET "x.y" = 11 WHERE "a b" = 2')
    assert sorted(db.view('ein "blick').rows()) == [("x", 1), ("y", 2)]
    assert db.view('ein "blick').columns == ("g 1", "s+1")
    assert sorted(db.view("joined").rows()) == [(2, 1, "hi", 8), (4, 1, "hi", 9)]
    assert db.view("123").rows() == [(3, 2)]
    assert [db.verify(r.name) for r in db.program.results] == [[], [], []]
    assert '"my stream"' in db.program.to_text()
    assert Program.from_text(db.program.to_text()) == db.program
    assert "my stream" in str(db.explain())


def test_what_other_engines_write_beside_sql() -> None:
    db = opened("""
      CREATE STREAM clicks (  -- as for Flink
        who VARCHAR, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND, PRIMARY KEY (who) NOT ENFORCED
      ) PARTITIONED BY (who);
      CREATE STREAM first (WATERMARK FOR b AS b, a INTEGER, b TIMESTAMP COMMENT 'when') CLUSTERED BY (a) INTO 4 BUCKETS;
      CREATE TABLE t (a INTEGER) APPEND ONLY WITH (appendonly = 'true');
      CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM clicks EMIT CHANGES;;
    """)
    assert [[c.name for c in r.columns] for r in db.program.relations] == [["who", "at"], ["a", "b"], ["a"]]
    assert db.program.relation("clicks").key == ("who",)
    db.insert("clicks", ("ann", None))
    assert db.view("n").rows() == [(1,)]


def test_check_follows_the_script() -> None:
    script = (
        BIDS
        + """
      CREATE VIEW plain AS SELECT id FROM bids;
      CREATE MATERIALIZED VIEW v AS SELECT id FROM plain;
      CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM plain;
      CREATE MATERIALIZED VIEW gone AS SELECT id FROM plain;
      DROP VIEW gone;
      CREATE MATERIALIZED VIEW IF NOT EXISTS wrong AS SELECT nothing_like_it(id) FROM plain;
      INSERT INTO bids VALUES (1, 2);
    """
    )
    assert [(c.view, c.maintainable) for c in viewlet.check(script)] == [("v", True), ("wrong", False)]
    assert [r.name for r in viewlet.compile(script.replace("nothing_like_it", "")).results] == ["v", "wrong"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE STREAM k (id BIGINT PRIMARY KEY);", "k has a PRIMARY KEY, which no cell on Spark can check"),
        ("CREATE STREAM k (id BIGINT UNIQUE);", "k has a UNIQUE, which no cell on Spark can check"),
        ("INSERT INTO bids VALUES (1, 2);", "the script changes rows of bids: on Spark they come from its source"),
    ],
)
def test_spark_refuses_what_needs_one_process(script: str, message: str) -> None:
    with pytest.raises(viewlet.Error, match=message):
        pipeline_of(BIDS + TOTAL + script, 1, "optimized", "sql")


def test_on_spark_a_script_is_what_it_comes_to() -> None:
    longer = "CREATE VIEW x AS SELECT 1 AS a; DROP VIEW x;" + BIDS + TOTAL + "ALTER VIEW total RENAME TO sums;"
    shorter = BIDS + TOTAL.replace("total", "sums")
    other = BIDS + TOTAL
    identities = [pipeline_of(script, 1, "optimized", "sql").identity for script in (longer, shorter, other)]
    assert identities[0] == identities[1] != identities[2]
