"""REAL, TIME, INTERVAL, ENUM, BLOB and JSON: engines hold them as other types, and views show them as DuckDB does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.cli.main import app
from viewlet.database.shown import column_texts
from viewlet.jobs.results import json_lines
from viewlet.program.trigger import Program
from viewlet.schema import REAL
from viewlet.workloads.streams import Event

SCHEMA = (
    "CREATE STREAM r (k INTEGER, f REAL, t TIME, i INTERVAL, e ENUM('sad', 'ok', 'it''s', 'a'), b BLOB, s VARCHAR,"
    " w TIMESTAMP);"
    "CREATE STREAM q (k INTEGER, f FLOAT NOT NULL, t TIME NOT NULL, i INTERVAL, e ENUM('sad', 'ok', 'it''s', 'a'),"
    " b BYTEA NOT NULL, o ENUM('ok', 'zoo', 'sad'), j JSON, d DOUBLE, n BIGINT);"
)
VIEWS = {
    "shown": "SELECT k, f, t, i, e, b FROM r",
    "keys": "SELECT f, t, i, e, b, count(*) AS n FROM r GROUP BY ALL",
    "ends": "SELECT k, min(f) AS f, max(t) AS t, min(i) AS i, max(e) AS e, min(e) AS l, max(b) AS b,"
    " count(DISTINCT e) AS n, count(DISTINCT f) AS m, count(DISTINCT b) AS p FROM r GROUP BY k",
    "sums": "SELECT e, sum(f) AS s, avg(f) AS a, sum(f * f) AS p, sum(f / k) AS d,"
    " sum(DISTINCT f) AS u FROM r GROUP BY e",
    "computed": "SELECT f + f AS a, f * 1.1 AS b, f / k AS c, f - 0.3 AS d, -f AS m, abs(f) AS n, f * 2.5e0 AS o,"
    " f::DOUBLE AS p, (f::DOUBLE * 3)::REAL AS q, k::REAL / 3 AS u FROM r",
    "joined": "SELECT r.k, q.e, r.b, r.f, q.f AS g FROM r JOIN q ON r.e = q.e AND r.t <= q.t",
    "on_reals": "SELECT r.k, q.k AS l FROM r JOIN q ON r.f = q.f WHERE r.f > 0.1 OR r.f = 0.1",
    "mixed": "SELECT r.k, q.f + r.f AS f, q.f * r.k AS g FROM r JOIN q ON r.b = q.b WHERE q.f < r.f OR q.f < r.k",
    "as_doubles": "SELECT k, f FROM q WHERE f = d OR f IN (d, 2) OR f BETWEEN 0.1 AND 0.1",
    "by_text": "SELECT r.k, q.o, r.e FROM r JOIN q ON r.e = q.o WHERE r.e < 'ok' OR r.e <> 'a' OR r.e <= q.o",
    "places": "SELECT k, quantile_disc(t, 0.5) AS t, quantile_disc(e, 0.25) AS e, quantile_disc(f, 0.75) AS f FROM r"
    " GROUP BY k",
    "in_set": "SELECT k, e FROM r WHERE e IN ('ok', 'a', 'none') OR e = 'sad' OR e = s",
    "words": "SELECT e::VARCHAR AS a, e || '!' AS b, upper(e) AS c, coalesce(e, 'none') AS d,"
    " coalesce(e, s) AS f, CASE e WHEN 'ok' THEN 1 ELSE 2 END AS g FROM r",
    "literals": r"SELECT k FROM r WHERE t > '09:30' AND t <> TIME '10:00:00' OR b = '\x00a' OR b < BLOB '\xFF'",
    "lengths": "SELECT k, i FROM r WHERE i > INTERVAL '1 day' OR i = INTERVAL '90 minutes'",
    "spent": "SELECT k, max(w - TIMESTAMP '2024-01-01') AS m, count(*) AS n FROM r GROUP BY k",
    "moved": "SELECT w + i AS a, w - i AS b, i + i AS c, extract(epoch FROM i) AS d FROM r",
    "by_duckdb": "SELECT hour(t) AS a, t::VARCHAR AS b, f::VARCHAR AS c, round(f, 1) AS d, floor(f) AS g, hex(b) AS h,"
    " t + INTERVAL 3 HOUR AS l, octet_length(b) AS m, sqrt(abs(f)) AS p, w::TIME AS u, e LIKE 'o%' AS v,"
    " b || b AS x, b || s AS y, b = s AS z, coalesce(t, '11:00') AS z1, concat(t, f, e) AS z2 FROM r",
    "more_by_duckdb": "SELECT k, f * n AS a, f < n AS b, coalesce(f, n) AS c, j->>'a' AS d, j FROM q",
    "first_": "SELECT e, k, f FROM r ORDER BY e DESC NULLS LAST, f, k, t, b, i LIMIT 3",
    "texts": "SELECT k, string_agg(e, ',' ORDER BY e) AS l, list(e ORDER BY e) AS m, list(t ORDER BY t) AS t,"
    " list(b ORDER BY b) AS b, list(f ORDER BY f) AS f, list(i ORDER BY i) AS i FROM r GROUP BY k",
    "nested": "SELECT k, b, f FROM r WHERE b >= (SELECT max(q.b) FROM q) OR f <= (SELECT min(q.f) FROM q)",
    "either": "SELECT coalesce(r.f, q.f) AS f, greatest(r.b, q.b) AS g, least(r.t, q.t) AS t, r.e FROM r"
    " LEFT JOIN q ON r.k = q.k",
    "together": "SELECT f, e FROM r UNION SELECT f, e FROM q",
}
REALS = (0.1, 0.1, 0.25, -1e-3, 3.0, 1e18)
TIMES = (dt.time(9, 30), dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(10), "10:00:00.5")
LENGTHS = (dt.timedelta(days=2), dt.timedelta(minutes=90), dt.timedelta(hours=-30), dt.timedelta(days=1))
WORDS = ("sad", "ok", "it's", "a")
BYTES = (b"", b"\x00a", b"\xff", b"\xff\x00", b"a")


def stream() -> Iterator[Event]:
    rng, rows = Random(3), list[tuple[str, Row]]()

    def maybe(*options: object) -> Any:
        return rng.choice([*options, None])

    for _ in range(60):
        if rows and rng.random() < 0.3:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        k, e, b = maybe(1, 2, 0), maybe(*WORDS), rng.choice(BYTES)
        at = maybe(dt.datetime(2024, 2, 29, 12, 30), dt.datetime(2024, 1, 2))
        f = rng.choice(REALS)
        r = k, rng.choice([f, None]), maybe(*TIMES), maybe(*LENGTHS), e, rng.choice([b, b, None]), maybe("ok", "x"), at
        q = (k, f, rng.choice(TIMES), maybe(*LENGTHS), e, b, maybe("ok", "zoo", "sad"), maybe('{"a": 7}', "[]"))
        rows.append(("r", r) if rng.random() < 0.6 else ("q", (*q, rng.choice([f, 0.1, 2.0]), maybe(3, 1 << 60))))
        yield "+", *rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    case = Case(SCHEMA, script, VIEWS, list(stream()))
    for watched in agree(case, [("interpreter", "optimized"), ("python", "reevaluate"), ("native", "cost")]).values():
        watched.check()


def opened(engine: str, *scripts: str) -> viewlet.Database:
    database = viewlet.connect(engine=engine, wait_native=True)
    for script in (SCHEMA, *scripts):
        database.execute(script)
    return database


@pytest.mark.parametrize("engine", ["python", "native"])
def test_in_and_out(engine: str) -> None:
    database = opened(engine, "CREATE MATERIALIZED VIEW v AS SELECT f, t, i, e, b, count(*) AS n FROM r GROUP BY ALL")
    told: list[Any] = []
    database.view("v").subscribe(told.append)
    values = (1, 0.1, dt.time(9, 30), dt.timedelta(hours=36), "it's", b"\x00\xff", None, None)
    single = 0.10000000149011612
    shown = (single, *values[2:6])
    database.insert("r", [values, dict(zip("kftiebsw", values, strict=True))])
    database.insert("r", values)
    types = [pa.int32(), pa.float64(), pa.time64("us"), pa.duration("us"), pa.string(), pa.binary(), pa.string()]
    batch = pa.table([pa.array([v], t) for v, t in zip(values, [*types, pa.timestamp("us")], strict=True)], "kftiebsw")
    database.insert("r", batch)
    database.insert("r", batch.set_column(1, "f", batch["f"].cast(pa.float32())).to_pandas())
    database.apply([("+", "r", (1, 0.1, "09:30", *values[3:]))])
    view = database.view("v")
    assert view.rows() == [(*shown, 6)]
    assert view.get(f=0.1, t="09:30:00", i=values[3], e="it's", b=values[5]) == (*shown, 6)
    assert view.weights() == {(*shown, 6): 1}
    assert told[-1] == (1, (*shown, 6))
    assert [str(t) for t in view.arrow().schema.types[:5]] == [
        "float",
        "time64[us]",
        "duration[us]",
        "string",
        "binary",
    ]
    assert view.arrow().to_pylist()[0]["b"] == b"\x00\xff"
    assert view.df()["e"].tolist() == ["it's"]
    assert database.stream("r").rows()[0] == (1, *shown, None, None)
    assert database.sql("SELECT i, e, e < 'ok', min(f), t + INTERVAL 1 HOUR FROM r GROUP BY ALL").rows() == [
        (values[3], "it's", True, single, dt.time(10, 30))
    ]
    database.execute("UPDATE r SET e = 'ok', i = INTERVAL 1 DAY, b = 'x', t = '10:00', f = f * 2 WHERE e = 'it''s'")
    assert view.rows() == [(0.20000000298023224, dt.time(10), dt.timedelta(1), "ok", b"x", 6)]
    assert database.verify("v") == []
    assert Program.from_text(database.program.to_text()) == database.program
    database.delete("r", [(1, 0.2, dt.time(10), dt.timedelta(1), "ok", b"x", None, None)] * 6)
    assert view.rows() == []


@pytest.mark.parametrize("engine", ["python", "native"])
def test_in_a_directory(engine: str, tmp_path: Path) -> None:
    rows = [(k, 0.1 * k, dt.time(k), dt.timedelta(k), "ok", bytes([k]), "s", None) for k in range(20)] * 3
    view = "CREATE MATERIALIZED VIEW v AS SELECT f, t, i, e, b, hour(t) AS h, count(*) AS n FROM r GROUP BY ALL"
    with viewlet.connect(tmp_path / "db", engine=engine, wait_native=True) as database:
        database.execute(SCHEMA + view)
        database.insert("r", rows[0])
        database.insert("r", rows[1:])
        expected = sorted(database.view("v").rows())
    with viewlet.connect(tmp_path / "db", engine=engine, wait_native=True) as database:
        assert sorted(database.view("v").rows()) == expected


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, 1e39, "1e[+]39 does not fit REAL"),
        (1, "1", "REAL takes a float or an int, not '1'"),
        (2, "25:00", "'25:00' is no time of the form HH:MM:SS"),
        (2, 3, "TIME takes a datetime.time, not 3"),
        (2, dt.time(1, tzinfo=dt.timezone.utc), "has a time zone, TIME has none"),
        (3, 3, "INTERVAL takes a datetime.timedelta, not 3"),
        (3, dt.timedelta(days=999_999_999), "does not fit INTERVAL"),
        (4, "glad", "'glad' is no value of ENUM"),
        (4, 1, "takes a str, not 1"),
        (5, "x", "BLOB takes bytes, not 'x'"),
    ],
)
def test_values_that_do_not_fit(place: int, value: object, message: str) -> None:
    database = opened("native", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r")
    row: list[object] = [None] * 8
    row[place] = value
    with pytest.raises(viewlet.DataError, match=message):
        database.insert("r", tuple(row))
    assert database.view("v").rows() == [(0,)]


def test_as_json_and_on_a_screen() -> None:
    database = opened("python", "CREATE MATERIALIZED VIEW v AS SELECT f, t, i, e, b FROM r")
    database.insert("r", (1, 2.5, "10:00", dt.timedelta(minutes=1), "a", b"\x00\xff", None, None))
    assert list(json_lines(database.view("v").arrow())) == [
        '{"f": 2.5, "t": "10:00:00", "i": 60.0, "e": "a", "b": "00ff"}'
    ]
    assert column_texts([2.5], REAL, is_key=True) == ["2.5"]


def test_a_csv_file_has_them_but_for_intervals(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("f,t,e,b\n0.1,09:30:00,ok,ab\n,,,\n")
    source = f"WITH (connector = 'csv', path = '{tmp_path}/r.csv')"
    for column in ("e ENUM('sad', 'ok')", "i INTERVAL"):
        script = f"CREATE STREAM r (f REAL, t TIME, b BLOB, {column}) {source}; CREATE MATERIALIZED VIEW v AS FROM r"
        (tmp_path / "job.sql").write_text(script)
        ran = CliRunner().invoke(app, ["run", str(tmp_path / "job.sql"), "--json", "--verify"])
        if column.startswith("e"):
            assert '"t": "09:30:00", "b": "6162", "e": "ok"' in ran.output
        else:
            assert ran.exit_code == 3


def test_rounding_in_a_batch_is_checked() -> None:
    database = opened("native", "CREATE MATERIALIZED VIEW v AS SELECT f FROM r")
    with pytest.raises(viewlet.DataError, match=r"r\.f, row 1: 1e[+]39 does not fit REAL"):
        database.insert("r", pa.table({"k": [1, 2], "f": [0.5, 1e39]}))


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT r.f + q.n AS x FROM r, q", r"a REAL \+ a BIGINT"),
        ("SELECT r.k FROM r, q WHERE r.f < q.n", "comparing a REAL with a BIGINT"),
        ("SELECT coalesce(r.f, q.n) AS x FROM r, q", "a BIGINT as a REAL"),
        ("SELECT max(r.f)::VARCHAR AS x FROM r", "a cast from REAL to VARCHAR"),
        ("SELECT k FROM r WHERE t = 'noon'", "cannot compare a TIME with a VARCHAR"),
        ("SELECT k FROM r WHERE t > w", "cannot compare a TIME with a TIMESTAMP"),
        ("SELECT median(f) AS x FROM r", "MEDIAN of a REAL"),
        ("SELECT sum(t) AS x FROM r", "SUM takes a number, not a TIME"),
        ("SELECT sum(e) AS x FROM r", "SUM takes a number, not an ENUM"),
        ("SELECT t - t AS x FROM r", "cannot compute a TIME - a TIME"),
        ("SELECT extract(day FROM i) AS x FROM r", "a part of this INTERVAL"),
        ("SELECT coalesce(i, INTERVAL '1 month') AS x FROM r", "an INTERVAL of months as a value"),
        ("SELECT i::VARCHAR AS x FROM r", "a cast from INTERVAL to VARCHAR"),
        ("SELECT r.b || q.b AS x FROM r, q", "|| of BLOBs"),
        ("SELECT r.k FROM r, q WHERE q.b = r.s", "comparing a BLOB with a VARCHAR"),
    ],
)
def test_refused(select: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")


def test_an_enum_has_values() -> None:
    for values in ("", "'a', 'a'", "1"):
        with pytest.raises(viewlet.SqlError, match="ENUM"):
            viewlet.compile(f"CREATE STREAM r (e ENUM({values}));")
