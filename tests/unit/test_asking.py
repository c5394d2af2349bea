"""db.sql: any SELECT over streams, tables and views, as of one event; what there is, by name."""

from __future__ import annotations

import datetime as dt
import gc
import math
from collections.abc import Iterator
from decimal import Decimal
from types import BuiltinFunctionType
from typing import Any
from uuid import UUID
from weakref import ref

import duckdb
import pyarrow as pa
import pytest

import viewlet
from viewlet import Database, DataError, Error, OutOfRangeError, SqlError, UnsupportedError
from viewlet.engines.native.build import find_compiler

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
SCRIPT = """
CREATE STREAM bids (
    id BIGINT NOT NULL, who VARCHAR, price DECIMAL(10,2), wide DECIMAL(38,20), day DATE, ts TIMESTAMP,
    moment TIMESTAMPTZ, x DOUBLE, good BOOLEAN, small TINYINT, short USMALLINT, u UUID
);
CREATE TABLE nation (k INTEGER, "Odd Name" VARCHAR);
CREATE VIEW twice AS SELECT who, price * 2 AS price FROM bids WHERE price > 1;
CREATE VIEW above (everything) AS SELECT sum(price) FROM twice;
CREATE MATERIALIZED VIEW by_who AS SELECT who, sum(price) AS total, max(x) AS most, sum(wide * price) AS big
    FROM bids GROUP BY who;
CREATE MATERIALIZED VIEW told AS SELECT upper(reverse(who)) AS told, count(*) AS n FROM bids GROUP BY 1;
CREATE MATERIALIZED VIEW ids AS SELECT u, count(*) AS n FROM bids GROUP BY u;
"""
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)
FIRST = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
ANN = (1, "ann", Decimal("9.99"), Decimal("1e-20"), dt.date(2024, 2, 29), NOON, NOON.replace(tzinfo=dt.timezone.utc))
WIDE = Decimal("123456789012345678")
ROWS: list[tuple[Any, ...]] = [
    (*ANN, 1.5, True, -128, 65535, FIRST),
    (*ANN, 1.5, True, -128, 65535, FIRST),
    (2, None, None, None, None, None, None, None, None, None, None, None),
    (3, "bøb ✓", Decimal("-0.01"), WIDE, dt.date(1, 1, 1), dt.datetime(1, 1, 1), None, -2.5, False, 127, 0, FIRST),
    (4, "", Decimal("99999999.99"), Decimal(-1), dt.date(9999, 12, 31), None, None, -1e300, None, 0, 1, None),
]
NATIONS = [(1, "x"), (1, "x"), (None, None)]


@pytest.fixture(scope="module", params=[NATIVE, "python"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        database.insert("bids", [*ROWS, ROWS[2]])
        database.delete("bids", ROWS[2])
        database.insert("nation", NATIONS)
        assert database.tier == request.param
        yield database


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same rows and views in a DuckDB."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET ieee_floating_point_ops = false")
        connection.execute("SET error_on_division_by_zero = false")
        connection.execute(SCRIPT.replace("STREAM", "TABLE").replace("MATERIALIZED ", ""))
        connection.executemany(f"INSERT INTO bids VALUES ({', '.join('?' * 12)})", ROWS)
        connection.executemany("INSERT INTO nation VALUES (?, ?)", NATIONS)
        yield connection


QUESTIONS = [
    "SELECT * FROM bids",
    'SELECT "odd name", K FROM "NATION"',
    "SELECT * FROM by_who",
    "SELECT b.who, total, twice.price FROM Bids b JOIN by_who USING (who) LEFT JOIN twice ON twice.who = b.who",
    "SELECT * FROM above, told",
    "WITH bids AS (SELECT 1 AS a), n AS (FROM nation) SELECT * FROM bids, n",
    "WITH by_who AS (SELECT max(total) AS t FROM by_who) FROM by_who",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
    "SELECT (SELECT count(*) FROM nation), id FROM main.bids WHERE EXISTS (FROM told WHERE told = upper(reverse(who)))",
    "SELECT sum(id), sum(price), avg(x), min(day), max(moment), count(*) FILTER (WHERE good) FROM bids",
    "SELECT x / 0, id // 0, id % 0, small + 0, short FROM bids",
    "SELECT u, n, typeof(u) FROM ids WHERE u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
    "SELECT typeof(COLUMNS(*)) FROM bids LIMIT 1",
    "SELECT id, unnest([1, 2]) AS e, row_number() OVER (PARTITION BY who ORDER BY id) AS r FROM bids, unnest([3]) t(y)",
    "PIVOT nation ON k USING count(*)",
    "SELECT * FROM query('SELECT * FROM nation')",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT * FROM bids WHERE false",
    "SELECT 1 AS a, 2 AS a",
    "DESCRIBE told",
]


def in_some_order(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(v.astimezone(dt.timezone.utc) if _is_moment(v) else v for v in row)) for row in rows)


def _is_moment(value: object) -> bool:
    return isinstance(value, dt.datetime) and value.tzinfo is not None


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_that_of_duckdb_over_the_same_rows(
    db: Database, oracle: duckdb.DuckDBPyConnection, question: str
) -> None:
    answer, expected = db.sql(question), oracle.sql(question)
    assert [name.lower() for name in answer.columns] == [name.lower() for name in expected.columns]
    assert in_some_order(answer.rows()) == in_some_order(expected.fetchall())
    assert len(answer) == len(answer.rows()) == answer.arrow().num_rows


def test_an_answer_has_the_forms_of_a_view(db: Database) -> None:
    answer = db.sql("SELECT k, count(*) AS n FROM nation GROUP BY k ORDER BY k")
    assert answer.columns == ("k", "n")
    assert list(answer) == answer.rows() == [(1, 2), (None, 1)]
    assert pa.table(answer).equals(answer.arrow())
    assert repr(answer) == "<answer (k, n): 2 rows>"
    assert str(answer).splitlines()[0].split() == ["k", "n"]
    assert len(str(answer).splitlines()) == 3
    assert "<td>NULL</td>" in answer._repr_html_()
    assert answer.df()["k"].isna().tolist() == [False, True]
    assert answer.pl().rows() == [(1, 2), (None, 1)]
    assert "20 of 30 rows" in db.sql("SELECT '<' AS c FROM range(30)")._repr_html_()


def test_an_answer_stays_as_it_was(db: Database) -> None:
    before = db.sql("SELECT count(*) AS n FROM nation")
    db.insert("nation", (7, "seven"))
    assert db.sql("SELECT count(*) FROM nation").rows() == [(4,)]
    db.delete("nation", (7, "seven"))
    assert before.rows() == [(3,)]


def test_only_what_a_question_names_is_read(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    stored = db._stored

    def noting(engine: Any, name: str) -> Any:
        read.append(name)
        return stored(engine, name)

    monkeypatch.setattr(db, "_stored", noting)
    for question, names in {
        "SELECT 1 AS bids": [],
        "WITH bids AS (SELECT 1) SELECT * FROM bids, nation AS by_who": ["nation"],
        "SELECT * FROM above": ["bids"],
        "SELECT total FROM by_who, (SELECT 'told')": ["by_who"],
    }.items():
        read.clear()
        db.sql(question)
        assert read == names, question


@pytest.mark.parametrize(
    ("question", "message", "place", "hint"),
    [
        ("SELECT id,\n  nobody FROM bids", 'Referenced column "nobody" not found', (2, 3), ""),
        ("SELECT * FROM bidz", "there is no stream, table or view bidz", (1, 15), "did you mean bids?"),
        ("SELECT FROM WHERE", "syntax error", (1, 13), ""),
        ("SELECT 'abc'::INTEGER", "Could not convert string 'abc'", (1, 13), ""),
        (f"SELECT {'id, ' * 90}nobody, {'id, ' * 90}id FROM bids", "nobody", (1, 368), ""),
        ("SELECT 9223372036854775807 + id FROM bids", "Overflow in addition", (None, None), ""),
        ("INSERT INTO bids VALUES (1)", "changes nothing; this is INSERT", (None, None), "db.execute"),
        ("CREATE MATERIALIZED VIEW w AS SELECT 1", "answers one SELECT", (None, None), "db.execute"),
        ("DROP TABLE nation", "this is DROP", (None, None), "db.execute"),
        ("WITH a AS (INSERT INTO nation VALUES (1, 'a') RETURNING 1) FROM a", "nation", (None, None), ""),
        ("SET threads = 4", "this is SET", (None, None), ""),
        ("COPY nation TO 'n.csv'", "this is COPY", (None, None), "arrow()"),
        ("EXPLAIN SELECT 1", "this is EXPLAIN", (None, None), "db.explain"),
        ("SELECT 1; SELECT 2", "here are 2 statements", (None, None), "once for each"),
        ("-- nothing", "here are no statements", (None, None), ""),
        ("SELECT * FROM 'n.csv'", "n.csv", (None, None), "insert their rows"),
    ],
)
def test_errors_say_where_and_what_to_do(
    db: Database, question: str, message: str, place: tuple[int | None, int | None], hint: str
) -> None:
    with pytest.raises(SqlError) as caught:
        db.sql(question)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place
    assert hint in caught.value.hint
    assert len(db.table("nation")) == 3


def tripled(number: int) -> int:
    return 3 * number


def test_functions_of_python_can_be_asked(db: Database) -> None:
    db.create_function("tripled_here", tripled, ["BIGINT"], "BIGINT")
    assert db.sql("SELECT tripled_here(k) FROM nation").rows() == [(3,), (3,), (None,)]


def test_a_plain_view_of_the_dialect_paper_is_refused() -> None:
    with viewlet.connect(engine="python", dialect="paper") as db:
        db.execute("CREATE STREAM s (x BIGINT); CREATE VIEW p AS SELECT sum(x) AS x FROM s")
        assert db.sql("SELECT count(*) FROM s").rows() == [(0,)]
        with pytest.raises(UnsupportedError, match="the plain view p"):
            db.sql("SELECT * FROM p")


def test_nan_and_infinities(db: Database) -> None:
    if db.tier != "native":
        pytest.skip("only the native engine takes them")
    rows = [
        (i, None, None, None, None, None, None, x, None, None, None, None) for i, x in ((8, math.inf), (9, math.nan))
    ]
    db.insert("bids", rows)
    (infinite,), (unknown,) = db.sql("SELECT x FROM bids WHERE id > 7 ORDER BY id").rows()
    db.delete("bids", rows)
    assert infinite == math.inf
    assert math.isnan(unknown)


def test_a_quotient_by_zero_is_null_also_where_duckdb_computes_a_column() -> None:
    with viewlet.connect(engine="python") as db:
        db.execute("CREATE STREAM s (a BIGINT, b BIGINT, x DOUBLE)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT to_base(a // b, 2) AS whole, bar(x / b, 0, 9) AS part FROM s")
        db.insert("s", (1, 0, 1.0))
        assert db.view("v").rows() == [(None, None)]


# -- what there is -----------------------------------------------------------------------------------------------------


def test_streams_tables_and_views_by_name(db: Database) -> None:
    assert (list(db.streams), list(db.tables), list(db.views)) == (["bids"], ["nation"], ["by_who", "told", "ids"])
    assert repr(db.views) == "<views: by_who, told, ids>"
    assert repr(db) == "<database: streams: bids; tables: nation; views: by_who, told, ids>"
    assert "nation" in db.tables
    assert "bids" not in db.tables
    assert len(db.views["told"]) == 4
    with pytest.raises(KeyError):
        db.streams["nation"]


def test_a_database_shows_itself(db: Database) -> None:
    shown = db._repr_html_()
    assert "<td>stream</td><td>bids</td>" in shown
    assert "<td>5</td>" in shown
    assert "<td>table</td><td>nation</td><td>k, odd name</td><td>3</td>" in shown
    assert "table nation(k, odd name): 3 rows" in db.tables._repr_html_()


def test_stored_rows(db: Database, oracle: duckdb.DuckDBPyConnection) -> None:
    bids = db.table("bids")
    assert in_some_order(bids.rows()) == in_some_order(oracle.sql("FROM bids").fetchall())
    assert (len(bids), bids.arrow().num_rows, bids.columns[:2]) == (5, 5, ("id", "who"))
    assert bids.arrow().schema.field("small").type == pa.int8()
    assert repr(db.table("nation")) == "<table nation(k, odd name): 3 rows>"
    assert repr(bids).startswith("<stream bids(id, who, ")
    assert "<td>bøb ✓</td>" in bids._repr_html_()
    assert pa.table(db.table("nation")).num_rows == 3
    assert sorted(map(repr, db.table("nation"))) == sorted(map(repr, NATIONS))


def test_a_handle_changes_rows() -> None:
    with viewlet.connect(engine="python") as db:
        db.execute(
            "CREATE STREAM s (k BIGINT PRIMARY KEY, x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS x FROM s"
        )
        stream = db.stream("s")
        stream.insert((1, 2))
        stream.insert([(2, 3), {"k": 3, "x": 4}])
        stream.upsert((1, 5))
        stream.delete((2, 3))
        assert sorted(stream.rows()) == [(1, 5), (3, 4)]
        assert db.view("v").rows() == [(9,)]
        db.execute("CREATE TABLE t (a BIGINT)")
        assert len(stream) == 2
        assert len(db.table("t")) == 0


@pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
def test_single_rows_by_a_handle_are_as_safe_as_by_the_database() -> None:
    """It goes straight to the machine code, whatever becomes of the session meanwhile."""
    with viewlet.connect(wait_native=True) as db:
        db.execute("CREATE STREAM s (k BIGINT, x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS k FROM s")
        s, total = db.stream("s"), db.view("v")
        first = s.insert  # from the first row on, for who keeps the call itself
        assert isinstance(first, BuiltinFunctionType)
        first((1, 1.0))
        s.insert(((2, 2.0), (3, 3.0)))
        s.delete((2, 2.0))
        assert (total.rows(), len(s)) == ([(4,)], 2)
        for row, why in {(): "0 values", (1,): "1 values", ("a", 1.0): "BIGINT takes an int"}.items():
            with pytest.raises(DataError, match=why):
                s.insert(row)
        with pytest.raises(DataError, match="is not there"):
            s.delete((2, 2.0))
        with pytest.raises(OutOfRangeError, match=r"v\.k: .*BIGINT"):
            s.insert((2**63 - 1, 0.0))
        s.insert((0, math.inf))
        s.delete((0, math.inf))
        changes = total.changes()
        s.insert((5, 0.0))
        assert list(changes) == [(-1, (4,)), (1, (9,))]
        changes.close()
        db.execute("CREATE MATERIALIZED VIEW more AS SELECT count(*) AS n FROM s")
        s.insert((-10, 0.0))
        assert s.insert != first
        first((1, 0.0))  # of another session, and still right
        assert (total.rows(), db.view("more").rows(), db.verify("more")) == ([(0,)], [(5,)], [])
    with pytest.raises(Error, match="the database is closed"):
        s.insert((1, 1.0))


@pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
def test_a_database_that_nobody_has_is_gone() -> None:
    """The calls for single rows refer to it, and it to them."""
    db = viewlet.connect(wait_native=True)
    db.execute("CREATE STREAM s (k BIGINT, x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS k FROM s")
    db.stream("s").insert((1, 1.0))
    engine = ref(db.engine)
    del db
    gc.collect()
    assert engine() is None


def test_names_that_are_not_there(db: Database) -> None:
    with pytest.raises(Error, match=r"there is no stream nation; .*: bids; nation is a table: db.table\('nation'\)"):
        db.stream("nation")
    with pytest.raises(Error, match="there is no stream or table by_who; there are: bids, nation"):
        db.table("by_who")
    with pytest.raises(Error, match=r"there is no view bids; .*; bids is a stream: db.stream\('bids'\)"):
        db.view("bids")
    with pytest.raises(Error, match="a script is a str"):
        db.sql(3)  # type: ignore[arg-type]


def test_a_closed_database_says_so() -> None:
    db = viewlet.connect(engine="python")
    db.execute("CREATE STREAM s (x BIGINT)")
    stream = db.stream("s")
    assert repr(viewlet.connect()) == "<database: streams: none; tables: none; views: none>"
    db.close()
    assert repr(db) == "<database, closed>"
    for call in (lambda: db.sql("SELECT 1"), lambda: stream.rows(), lambda: stream.insert((1,)), lambda: db.streams):
        with pytest.raises(Error, match="the database is closed"):
            call()
