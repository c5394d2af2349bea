"""Functions that DuckDB computes when a row arrives: every engine agrees with DuckDB; a refused row changes nothing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import ENGINES, Case, agree
from tests.oracle.oracle import DuckOracle, same_rows
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (url VARCHAR, k INTEGER NOT NULL, d DATE, p DECIMAL(9,2), x DOUBLE, t TIMESTAMP, b BOOLEAN, n BIGINT);
CREATE STREAM s (k INTEGER NOT NULL, j VARCHAR NOT NULL);
"""
VIEWS = {
    "parts": "SELECT regexp_extract(url, 'id=([0-9]+)', 1) AS id, count(*) AS n, sum(k) AS s FROM r GROUP BY 1",
    "again": "SELECT REGEXP_EXTRACT(a.url,'id=([0-9]+)',1) AS id, a.k FROM r a WHERE a.url ~ '.*id=.*'",
    "bits": "SELECT k & 3 AS a, (k | 4) << 2 AS b, k >> 1 AS c, count(*) AS n, sum(k & 1) AS s FROM r GROUP BY ALL",
    "patterns": "SELECT k, url GLOB 'h*' AS g, url ~ 'x$' AS h, url !~* 'H' AS i FROM r",
    "matched": "SELECT k, url FROM r WHERE regexp_matches(url, '^h') AND NOT url SIMILAR TO '.*x'",
    "joined": "SELECT s.k, json_extract_string(s.j, '$.a') AS a, md5(r.url) AS h FROM r, s WHERE r.k = s.k",
    "by_key": "SELECT count(*) AS n FROM r, s WHERE levenshtein(r.url, 'http') <= bit_count(s.k)",
    "nested": "SELECT k FROM r WHERE jaro_similarity(url, 'h') > (SELECT avg(jaro_similarity(q.url, 'h')) FROM r q)",
    "several": "SELECT printf('%d-%s', k, url) AS line, bit_count(k) AS bits, isfinite(x) AS finite FROM r",
    "types": "SELECT max(date_add(d, INTERVAL 1 MONTH)) AS m, max(list_max([p, 1.5])) AS q, min(make_timestamp(n)) AS z"
    " FROM r",
    "plain": "SELECT * FROM r WHERE k > 1",
    "arrow": "SELECT j->>'$.a' AS a, count(*) AS n FROM s GROUP BY j->>'$.a'",
}
URLS = (None, "", "http://a?id=7", "http://a?id=77", "ftp://x", "Äöü id=1 🙂", "http", "it's 'quoted' \"x\"")
JSON = ('{"a": "u", "n": 0}', '{"a": null, "n": 3}', '{"n": 4}', '{"a": "ü", "n": 9}')


def row(relation: str, rng: Random) -> tuple[Any, ...]:
    if relation == "s":
        return rng.randint(0, 3), rng.choice(JSON)
    day = rng.choice((None, dt.date(2024, 1, 31), dt.date(1969, 12, 31)))
    moment = rng.choice((None, dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(1, 1, 2)))
    price = rng.choice((None, Decimal("-1.25"), Decimal("9999999.99")))
    number = rng.choice((None, 0.0, -1.5, 1e300))
    return (
        rng.choice(URLS),
        rng.randint(0, 3),
        day,
        price,
        number,
        moment,
        rng.choice((None, True)),
        rng.choice((None, 2**40)),
    )


def events(seed: int, count: int) -> list[Event]:
    rng, live, stream = Random(seed), list[tuple[str, Any]](), list[Event]()
    for _ in range(count):
        if live and rng.random() < len(live) / 30:
            relation, gone = live.pop(rng.randrange(len(live)))
            stream.append(("-", relation, gone))
        else:
            relation = rng.choice(("r", "r", "s"))
            live.append((relation, row(relation, rng)))
            stream.append(("+", *live[-1]))
    return stream


CASE = Case(
    SCHEMA, "".join(f"CREATE MATERIALIZED VIEW {n} AS {select};\n" for n, select in VIEWS.items()), VIEWS, events(1, 70)
)


@pytest.mark.parametrize(
    "contestants",
    [
        [(engine, "optimized") for engine in ENGINES],
        [("python", s) for s in ("reevaluate", "classical", "naive", "cost")],
    ],
    ids=["engines", "strategies"],
)
def test_every_view_equals_the_referee_after_every_event(contestants: list[tuple[str, str]]) -> None:
    for watch in agree(CASE, contestants).values():
        watch.check()


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_in_every_form(engine: str) -> None:
    """Lists, dicts, Arrow, events as triples and as Arrow; and a view that comes when rows are there."""
    db = viewlet.connect(engine=engine, wait_native=True)
    db.execute(SCHEMA + f"CREATE MATERIALIZED VIEW plain AS {VIEWS['plain']};")
    rows = [row("r", Random(i)) for i in range(8)]
    names = [c.name for c in db.program.relation("r").columns]
    db.insert("r", rows[:3])
    for view in ("parts", "matched"):
        db.execute(f"CREATE MATERIALIZED VIEW {view} AS {VIEWS[view]};")
    db.insert("r", dict(zip(names, rows[3], strict=True)))
    db.insert("r", pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in rows[4:6]]))
    db.apply([("+", "r", rows[6]), ("-", "r", rows[0])])
    struct = pa.array([dict(zip(names, rows[7], strict=True))])
    db.apply(pa.table({"op": [1], "relation": ["r"], "r": struct}))
    referee = DuckOracle(viewlet.compile(SCHEMA).relations)
    referee.load("r", rows[1:])
    for view in ("plain", "parts", "matched"):
        assert same_rows(db.view(view).rows(), referee.rows(VIEWS[view])), view
        assert db.verify(view) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_for_which_a_function_fails_is_named_and_nothing_changed(engine: str) -> None:
    db = viewlet.connect(engine=engine, wait_native=True)
    db.execute("""CREATE STREAM r (day VARCHAR, k INTEGER);
                  CREATE MATERIALIZED VIEW v AS SELECT strptime(day, '%d.%m.%Y') AS d, sum(k) AS s FROM r GROUP BY 1""")
    db.insert("r", [("1.2.2024", 1), (None, 2)])
    before = db.view("v").rows()
    with pytest.raises(viewlet.DataError, match=r"r, row 1: .*Could not parse string.*day 'no day'"):
        db.insert("r", [("2.2.2024", 1), ("no day", 2)])
    with pytest.raises(viewlet.DataError, match="no day"):
        db.insert("r", ("no day", 2))
    with pytest.raises(viewlet.DataError, match="takes an int"):
        db.insert("r", [("2.2.2024", "x")])
    assert db.view("v").rows() == before
    assert (dt.datetime(2024, 2, 1), 1) in before


@pytest.mark.parametrize("engine", ["python", "native"])
def test_statements_that_change_rows(engine: str) -> None:
    db = viewlet.connect(engine=engine, wait_native=True)
    db.execute("""CREATE STREAM r (k INTEGER PRIMARY KEY, s VARCHAR); CREATE STREAM q (a VARCHAR);
                  INSERT INTO r VALUES (1, 'id=5'), (2, 'id=6'); INSERT INTO q SELECT s FROM r;
                  CREATE MATERIALIZED VIEW v AS SELECT regexp_extract(s, 'id=(.*)', 1) AS i, k FROM r""")
    assert same_rows(db.view("v").rows(), [("5", 1), ("6", 2)])
    db.execute("INSERT INTO r VALUES (3, 'id=6')")
    db.execute("UPDATE r SET s = 'id=9' WHERE k = 1")
    db.upsert("r", (2, "id=77"))
    assert same_rows(db.view("v").rows(), [("9", 1), ("77", 2), ("6", 3)])
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT md5(s) AS m, k FROM r; DELETE FROM r WHERE k = 3")
    db.execute("INSERT OR REPLACE INTO r VALUES (2, 'id=1'); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM q")
    assert same_rows(db.view("v").rows(), [("9", 1), ("1", 2)])
    assert db.view("n").rows() == [(2,)]  # what the first script inserted came once
    assert [db.verify(view) for view in ("v", "w", "n")] == [[], [], []]
    db.execute("TRUNCATE r")
    assert db.view("v").rows() == db.view("w").rows() == []


@pytest.mark.parametrize(
    "script",
    ["DROP MATERIALIZED VIEW v; DROP STREAM r; CREATE STREAM r (s INTEGER)", "DROP VIEW v; ALTER TABLE r RENAME TO q"],
)
def test_a_relation_whose_functions_were_computed_keeps_its_name(script: str) -> None:
    db = viewlet.connect(engine="python")
    db.execute("CREATE STREAM r (s VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT md5(s) AS m FROM r")
    with pytest.raises(viewlet.UnsupportedError, match=r"defined again|RENAME where"):
        db.execute(script)
    db.insert("r", ("a",))
    assert len(db.view("v")) == 1


def test_functions_of_python() -> None:
    def risk(price: float, name: str) -> int:
        return int(price) * len(name)

    db = viewlet.connect(wait_native=True)
    db.create_function("risk", risk, ["DOUBLE", "VARCHAR"], "INTEGER")
    db.execute("""CREATE STREAM r (a DOUBLE, s VARCHAR);
                  CREATE MATERIALIZED VIEW v AS SELECT risk(a, s) AS k, count(*) AS n FROM r GROUP BY RISK(a,s)""")
    db.insert("r", [(1.5, "ab"), (2.0, "abc"), (None, "x")])
    db.insert("r", (3.0, "zz"))
    assert same_rows(db.view("v").rows(), [(2, 1), (6, 2), (None, 1)])
    with pytest.raises(viewlet.Error, match="there is a function risk already"):
        db.create_function("risk", lambda: 1, [], "INTEGER")


def test_a_function_of_python_that_raises_refuses_the_row() -> None:
    db = viewlet.connect(engine="python")
    db.create_function("inverse", lambda n: 1 // n, ["INTEGER"], "INTEGER")
    db.execute("CREATE STREAM q (n INTEGER); CREATE MATERIALIZED VIEW v AS SELECT inverse(n) AS i FROM q")
    with pytest.raises(viewlet.DataError, match=r"q, row 1: .*ZeroDivisionError"):
        db.insert("q", [(1,), (0,)])
    assert db.view("v").rows() == []


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT a + random() AS x FROM r", "the function RANDOM is not supported"),
        ("SELECT strftime(now(), s) AS x FROM r", "not supported"),
        ("SELECT nosuch(s) AS x FROM r", "the function NOSUCH is not supported"),
        (
            "SELECT jaro_similarity(x.s, y.s) AS j FROM r x, r y",
            "over more than the columns of one row is not supported",
        ),
        ("SELECT md5(y.s) AS h FROM r x LEFT JOIN r y ON x.a = y.a", "over more than the columns of one row"),
        ("SELECT x.a FROM r x FULL JOIN r y ON x.a = y.a AND md5(x.s) > 'a'", "over more than the columns of one row"),
        ("SELECT md5(s) AS h, count(*) AS n FROM r GROUP BY s", "over more than the columns of one row"),
        ("SELECT md5(x.s) AS h FROM (SELECT DISTINCT s FROM r) x", "over more than the columns of one row"),
        ("SELECT jaro_similarity(max(s), 'a') AS j FROM r", "the function JARO_SIMILARITY is not supported"),
        ("SELECT levenshtein(a, s) AS x FROM r", "No function matches|Binder Error"),
    ],
)
def test_what_is_no_function_of_the_row_is_refused(select: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(
            f"CREATE STREAM r (a INTEGER[1], s VARCHAR); CREATE MATERIALIZED VIEW v AS {select}".replace("[1]", "")
        )
