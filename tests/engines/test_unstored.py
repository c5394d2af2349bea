"""``CREATE STREAM … WITH (stored = false)``: the same views without the rows, and a refused batch changes nothing."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.engines.test_atomicity import MIXED, OF_ONE_RELATION, Event, same
from tests.oracle.oracle import DuckOracle
from viewlet import Database
from viewlet.spark.pipeline import pipeline_of

MOST = 2**63 - 1
TYPES = {
    "r": {"k": pa.int64(), "x": pa.float64()},
    "q": {"k": pa.int64(), "x": pa.float64()},
    "b": {"n": pa.int64(), "t": pa.timestamp("us")},
    "w": {"name": pa.string(), "n": pa.int64()},
}
SCHEMA = """
CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE) WITH (stored = false);
CREATE STREAM q (k BIGINT NOT NULL, x DOUBLE) WITH (stored = false);
CREATE STREAM b (n BIGINT NOT NULL, t TIMESTAMP) WITH (stored = false);
CREATE STREAM w (name VARCHAR NOT NULL, n BIGINT NOT NULL);
CREATE TABLE u (k BIGINT NOT NULL, f BIGINT NOT NULL);
"""
VIEWS = {
    "sums": "SELECT k, sum(x) AS s, count(*) AS n FROM r GROUP BY k",
    "joined": "SELECT r.k, sum(r.x * q.x) AS s, count(*) AS n FROM r, q WHERE r.k = q.k GROUP BY r.k",
    "total": "SELECT sum(n) AS n, count(*) AS c FROM b",
    "negated": "SELECT -n AS n, t - INTERVAL '13' MONTH AS t FROM b",
    "rated": "SELECT r.k, sum(u.f) AS f FROM r, u WHERE r.k = u.k GROUP BY r.k",
    "below": "SELECT sum(a.x) AS s FROM r a, q b WHERE a.k < b.k",
    "above": "SELECT a.k, a.x FROM r a WHERE a.x > (SELECT 0.25 * sum(c.x) FROM r c WHERE c.k <= a.k)",
    "ends": "SELECT k, min(x) AS lo, max(x) AS hi FROM q GROUP BY k",
    "first": "SELECT k, x FROM q ORDER BY x DESC, k LIMIT 2",
    "named": "SELECT w.name, sum(w.n + b.n) AS n FROM w, b WHERE w.n < b.n GROUP BY w.name",
}
SCRIPT = SCHEMA + "\n".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
NOON = dt.datetime(2020, 2, 29, 12)
GOOD: dict[str, list[Any]] = {
    "r": [(1, 0.125), (1, 2.0), (2, -1.0), (2, None), (1, 2.0**45)],
    "q": [(1, 4.0), (2, 0.25), (1, None), (3, 2.0**40)],
    "b": [(1, NOON), (2, None), (-3, NOON), (7, None)],
    "w": [("ann", 1), ("bob", 4), ("ann", -5)],
}
WILD: dict[str, list[Any]] = {name: [(1, math.nan), (2, math.inf)] for name in "rq"}
POISON: dict[str, list[Any]] = {
    "r": [(1, 1e200), (1, "x"), (MOST + 1, 0.5)],
    "q": [(1, 1e200), (2, -1e200)],
    "b": [(MOST, None), (MOST - 5, None), (-(2**63), None), (1, dt.datetime(1, 1, 1))],
    "w": [("eve", MOST), (None, 1)],
}
FACTORS = [(1, 5), (2, -7)]


def drawn(rng: Random, there: Counter[tuple[str, Any]], *, wild: bool) -> Event:
    """Deletes are trusted, so those that come are right."""
    if there and rng.random() < 0.35:
        return (-1, *rng.choice(sorted(there, key=repr)))
    rows = rng.choices([GOOD, WILD, POISON], [7, 2 * wild, 2])[0]
    name = rng.choice(sorted(rows))
    return 1, name, rng.choice(rows[name])


def state(db: Database) -> object:
    """All that the engine holds, bit for bit."""
    maps = {v.name: db.engine.entries(v.name) for v in db.program.views if not v.is_cache}
    return {name: repr(sorted(map(repr, held.items()))) for name, held in maps.items()}, rows(db)


def rows(db: Database) -> dict[str, Counter[tuple[Any, ...]]]:
    return {name: same(db.view(name).rows()) for name in VIEWS}


def played(db: Database, rng: Random, outcomes: Counter[str], *, wild: bool) -> Counter[tuple[str, Any]]:
    there: Counter[tuple[str, Any]] = Counter()
    for _ in range(12):
        way, left, events = rng.choice((*MIXED, *OF_ONE_RELATION, one_row, by_handle)), +there, list[Event]()
        for _ in range(rng.randint(1, 6) if way in (*MIXED, *OF_ONE_RELATION) else 1):
            event = drawn(rng, left, wild=wild)
            if way in MIXED or not events or event[:2] == events[0][:2]:
                left[event[1:]] += event[0]
                left = +left
                events.append(event)
        before = state(db)
        try:
            way(db, events)
        except (viewlet.Error, pa.ArrowException, OverflowError) as error:
            outcomes["refused"] += isinstance(error, viewlet.Error)
            assert state(db) == before, (way.__name__, events)
            continue
        outcomes["taken"] += 1
        for op, name, row in events:
            there[name, row] += op
        there = +there
    return there


def one_row(db: Database, events: list[Event]) -> None:
    ((op, name, row),) = events
    (db.insert if op > 0 else db.delete)(name, row)


def by_handle(db: Database, events: list[Event]) -> None:
    ((op, name, row),) = events
    stream = db.stream(name)
    (stream.insert if op > 0 else stream.delete)(row)


@pytest.fixture(autouse=True)
def types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.engines.test_atomicity.TYPES", TYPES)


@pytest.mark.parametrize(("engine", "seeds"), [("native", 60), ("python", 8)])
def test_views_are_right_and_a_refused_batch_changes_nothing(engine: Any, seeds: int) -> None:
    referee, outcomes = DuckOracle(viewlet.compile(SCHEMA).relations), Counter[str]()
    for seed in range(seeds):
        rng = Random(seed)
        with viewlet.connect(engine=engine, wait_native=True) as db:
            db.execute(SCRIPT)
            assert db.tier == engine
            db.insert("u", FACTORS)
            if seed % 3 == 0:
                db.subscribe("joined", lambda change: None)
                db.subscribe("first", lambda change: None)
            there = played(db, rng, outcomes, wild=engine == "native" and seed % 2 == 1)
            for name in (*GOOD, "u"):
                stored = FACTORS if name == "u" else [row for n, row in there.elements() if n == name]
                referee.connection.execute(f"DELETE FROM {name}")
                referee.load(name, stored)
            assert rows(db) == {v: same(referee.rows(VIEWS[v])) for v in VIEWS}, seed
    assert min(outcomes["taken"], outcomes["refused"]) > 2 * seeds, outcomes


def test_a_large_batch_is_undone_to_the_last_bit() -> None:
    """Subtracting what was added would leave 0.0 of 0.1 + 1e40 - 1e40, and other sums in the trees."""
    with viewlet.connect(wait_native=True) as db:
        db.execute(SCRIPT)
        db.insert("r", [(i % 50, 0.1 * i) for i in range(500)])
        db.insert("q", [(i % 60, 0.3 * i) for i in range(500)])
        db.insert("w", [(f"name {i}", i) for i in range(100)])
        db.insert("b", [(i, None) for i in range(20)])
        before = state(db)
        events: list[Any] = [("+", "r", (i % 70, 1e40 + i)) for i in range(300)] + [
            ("-", "r", (i % 50, 0.1 * i)) for i in range(300)
        ]
        events += [("+", "w", (f"other {i}", i)) for i in range(50)] + [("-", "w", (f"name {i}", i)) for i in range(50)]
        with pytest.raises(viewlet.OutOfRangeError, match=r"total\.n"):
            db.apply([*events, ("+", "b", (MOST, None))])
        assert state(db) == before
        db.apply(events)
        assert state(db) != before


def test_no_rows_are_kept_and_texts_are_forgotten() -> None:
    with viewlet.connect(wait_native=True) as db:
        db.execute("""
          CREATE STREAM s (name VARCHAR NOT NULL, other VARCHAR, n BIGINT NOT NULL) WITH (stored = false);
          CREATE MATERIALIZED VIEW v AS SELECT name, sum(n) AS n FROM s GROUP BY name;
        """)
        batch = [(f"name {i % 7}", f"text {i}", i) for i in range(1000)]
        db.insert("s", batch)
        memory = {name: entries for name, entries, _ in db.engine.memory()}  # type: ignore[attr-defined]
        assert memory == {"table_s": 0, "v": 7, "texts": 7}
        assert db.view("v").get(name="name 3") == ("name 3", sum(i for i in range(1000) if i % 7 == 3))
        db.delete("s", pa.table([pa.array(c) for c in zip(*batch, strict=True)], names=["name", "other", "n"]))
        assert len(db.view("v")) == 0
        assert {name: entries for name, entries, _ in db.engine.memory()} == {"table_s": 0, "v": 0, "texts": 0}  # type: ignore[attr-defined]


SMALL = """
CREATE STREAM s (k BIGINT NOT NULL, n BIGINT NOT NULL) WITH (stored = false);
CREATE STREAM kept (k BIGINT NOT NULL);
CREATE TABLE t (k BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT s.k, sum(n) AS n FROM s, t WHERE s.k = t.k GROUP BY s.k;
"""
LATE = "CREATE MATERIALIZED VIEW late AS SELECT sum(n) AS n FROM s"
OTHER = "CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM kept"
REFUSED: dict[str, tuple[Callable[[Database], object], str]] = {
    "verify": (lambda db: db.verify("v"), "view v cannot be verified"),
    "rows": (lambda db: db.stream("s").rows(), "stores no rows"),
    "len": (lambda db: len(db.stream("s")), "stores no rows"),
    "sql": (lambda db: db.sql("SELECT * FROM s"), "db.sql cannot read it"),
    "late view": (lambda db: db.execute(LATE), "view late would miss them: define it before the first row"),
    "static table": (lambda db: db.insert("t", (3,)), "load t before the first row"),
    "mixed": (lambda db: db.apply([("+", "s", (1, 1)), ("+", "t", (3,))]), "load t before the first row"),
    "update": (lambda db: db.execute("UPDATE s SET n = 1"), "a statement cannot read, update or delete them"),
    "delete": (lambda db: db.execute("DELETE FROM s WHERE n = 1"), "a statement cannot read, update or delete them"),
    "truncate": (lambda db: db.execute("TRUNCATE s"), "none can be deleted by a statement"),
    "drop": (lambda db: db.execute("DROP STREAM kept"), "in a script of its own, before the first row"),
}


@pytest.mark.parametrize("engine", ["native", "python", "interpreter"])
def test_what_needs_the_rows_says_so(engine: Any) -> None:
    with viewlet.connect(engine=engine, wait_native=True) as db:
        db.execute(SMALL)
        db.insert("t", [(1,), (2,)])
        db.stream("s").insert((1, 10))
        assert "rows are not stored" in repr(db.stream("s"))
        assert "rows are not stored" in db._repr_html_()
        for name, (do, why) in REFUSED.items():
            with pytest.raises(viewlet.Error, match="stored = false") as refused:
                do(db)
            assert why in str(refused.value), name
        db.execute(OTHER)  # the maps over s are handed on
        db.execute("INSERT INTO s VALUES (2, 5), (1, 1)")
        db.insert("kept", (1,))
        assert sorted(db.view("v").rows()) == [(1, 11), (2, 5)]
        assert db.view("other").rows() == [(1,)]
        with pytest.raises(viewlet.Error, match="stored = false"):
            db.execute(LATE)
        db.delete("s", (1, 4))  # nobody knows better
        assert sorted(db.view("v").rows()) == [(1, 7), (2, 5)]


def test_views_may_be_defined_until_the_first_row() -> None:
    with viewlet.connect(wait_native=True) as db:
        db.execute(SMALL)
        db.execute(LATE)
        db.insert("s", (1, 10))
        assert db.view("late").rows() == [(10,)]


def test_the_tiers_hand_over() -> None:
    """Rows that generated Python took are in the maps of the native program, and still make a late view impossible."""
    with viewlet.connect() as db:
        db.execute(SMALL.replace("AS n", "AS total"))
        db.insert("t", (1,))
        db.insert("s", [(1, 10), (1, 5)])
        assert db._build is not None
        db._build.wait()
        assert db.tier == "native"
        db.delete("s", (1, 5))
        assert db.view("v").rows() == [(1, 10)]
        with pytest.raises(viewlet.Error, match="would miss them"):
            db.execute(LATE)


def test_where_there_is_no_place_for_it(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path / "db") as db, pytest.raises(viewlet.Error, match="a database in a directory stores"):
        db.execute(SMALL)
    with pytest.raises(viewlet.Error, match="on Spark every cell stores its rows"):
        pipeline_of(SMALL, 2, "optimized", "sql")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("CREATE TABLE t (k BIGINT) WITH (stored = false)", "a table, which is its rows"),
        ("CREATE STREAM t (k BIGINT PRIMARY KEY) WITH (stored = false)", "looked up among the stored rows"),
        ("CREATE STREAM t (k BIGINT UNIQUE) WITH (stored = false)", "looked up among the stored rows"),
        ("CREATE STREAM t (k BIGINT) WITH (stored = 'no')", "must be true or false"),
        ("CREATE STREAM t (k BIGINT) WITH (stored = 0)", "must be true or false"),
    ],
)
def test_scripts_that_are_refused(script: str, why: str) -> None:
    with pytest.raises(viewlet.SqlError, match=why):
        viewlet.compile(script)


def test_the_program_text_says_it() -> None:
    program = viewlet.compile(SMALL)
    assert "unstored" in program.to_text()
    assert viewlet.Program.from_text(program.to_text()) == program


def test_the_elements_of_a_list_are_not_stored_either() -> None:
    script = """
      CREATE STREAM s (k BIGINT NOT NULL, tags VARCHAR[]) WITH (stored = false);
      CREATE MATERIALIZED VIEW v AS SELECT sum(k) AS k FROM s;
    """
    tags = "CREATE MATERIALIZED VIEW t AS SELECT u.tag, sum(k) AS k FROM s, UNNEST(tags) AS u(tag) GROUP BY u.tag"
    with viewlet.connect(wait_native=True) as db:
        db.execute(script + tags)
        db.insert("s", [(1, ["a", "b"]), (2, ["b"]), (3, None)])
        db.delete("s", (2, ["b"]))
        assert sorted(db.view("t").rows()) == [("a", 1), ("b", 1)]
        assert {entries for name, entries, _ in db.engine.memory() if name.startswith("table_")} == {0}  # type: ignore[attr-defined]
    with viewlet.connect(wait_native=True) as db:
        db.execute(script)
        db.insert("s", (1, ["a"]))
        with pytest.raises(viewlet.Error, match="view t would miss them"):
            db.execute(tags)


# Of a stream whose view reads only k: a value that its type has, and one that it has not.
UNREAD: dict[str, tuple[pa.DataType, Any, Any]] = {
    "n BIGINT NOT NULL": (pa.uint64(), MOST, MOST + 1),
    "n BIGINT NOT NULL, m BIGINT": (pa.int64(), 5, None),
    "n INTEGER": (pa.int64(), 2**31 - 1, 2**31),
    "n DECIMAL(4,2)": (pa.decimal128(10, 2), Decimal("99.99"), Decimal("100.00")),
    "n DECIMAL(30,2)": (pa.decimal128(38, 2), Decimal(10) ** 27, Decimal(10) ** 29),
    "n DATE NOT NULL": (pa.date32(), dt.date(9999, 12, 31), None),
    "n VARCHAR": (pa.string(), "š", b"\xff"),
}


@pytest.mark.parametrize("columns", UNREAD)
def test_a_column_that_nothing_reads_is_checked_all_the_same(columns: str) -> None:
    type_, good, bad = UNREAD[columns]
    db = viewlet.connect(wait_native=True)
    db.execute(f"""CREATE STREAM s (k BIGINT NOT NULL, {columns}) WITH (stored = false);
                   CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k;""")

    def batch(*values: Any) -> pa.Table:
        if type_ == pa.string():
            cells = pa.array([v if isinstance(v, bytes) else v.encode() for v in values], pa.binary()).view(type_)
        else:
            cells = pa.array(values, type_)
        return pa.table({"k": range(len(values)), "n": cells})

    many = [good] * 600  # more than a block
    with pytest.raises((viewlet.Error, UnicodeDecodeError)):
        db.insert("s", batch(*many, bad))
    assert list(db.view("v")) == []
    db.insert("s", batch(*many).slice(7))
    assert sorted(db.view("v").rows()) == [(k, 1) for k in range(7, 600)]


def test_a_nan_in_a_column_that_nothing_reads_is_taken() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute("""CREATE STREAM s (k BIGINT NOT NULL, x DOUBLE, t VARCHAR) WITH (stored = false);
                  CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k;""")
    words = pa.array(["a", None, "b", "a"]).dictionary_encode()
    db.insert("s", pa.table({"k": [1, 1, 2, 2], "x": [math.nan, None, math.inf, 1.0], "t": words}))
    assert sorted(db.view("v").rows()) == [(1, 2), (2, 2)]
    db.delete("s", pa.table({"k": [1], "x": [math.nan], "t": ["a"]}))
    assert sorted(db.view("v").rows()) == [(1, 1), (2, 2)]
