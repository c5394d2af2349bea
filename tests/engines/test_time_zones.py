"""TIMESTAMP WITH TIME ZONE: a moment, held and shown in UTC, as DuckDB has it with that time zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.program.trigger import Program
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM r (k INTEGER, z TIMESTAMPTZ, t TIMESTAMP, d DATE);"
VIEWS = {
    "shown": "SELECT k, z, z::TIMESTAMP AS t, z::DATE AS d, z::VARCHAR AS s, t::TIMESTAMPTZ AS u FROM r",
    "ends": "SELECT k, min(z) AS a, max(z) AS b, count(DISTINCT z) AS n, list(z ORDER BY z) AS l FROM r GROUP BY k",
    "keys": "SELECT z, count(*) AS n FROM r GROUP BY z",
    "compared": "SELECT k FROM r WHERE z = t OR z > d OR z < '2024-03-01 01:00:00+02' OR z = '2024-03-10 10:00:00'",
    "joined": "SELECT x.k, y.t FROM r AS x JOIN r AS y ON x.z = y.t",
    "both": "SELECT coalesce(z, t, d) AS c, CASE WHEN k = 1 THEN t ELSE z END AS e, greatest(z, t) AS g FROM r",
    "parts": "SELECT extract(hour FROM z) AS h, epoch(z) AS e, date_diff('hour', z, t) AS f, strftime(z, '%d/%H') AS s"
    " FROM r",
    "cut": "SELECT date_trunc('hour', z) AS h, date_trunc('month', z) AS m, time_bucket(INTERVAL '2 hours', z) AS b,"
    " z + INTERVAL '1 month' AS n, z - INTERVAL '90' MINUTE AS p FROM r",
    "late": "SELECT k FROM r WHERE t - z > INTERVAL '1 hour'",
    "literal": "SELECT k, TIMESTAMPTZ '2024-03-01 01:30:00-03:30' AS a, TIMESTAMPTZ '2024-03-01' AS b FROM r",
    "elsewhere": "SELECT date_trunc('day', z AT TIME ZONE 'Europe/Berlin') AS day,"
    " t AT TIME ZONE 'America/New_York' AS w, count(*) AS n FROM r GROUP BY ALL",
    "first_": "SELECT z, k FROM r ORDER BY z DESC, k LIMIT 2",
}
DAY = dt.datetime(2024, 3, 1)
ZONES = (dt.timezone.utc, dt.timezone(dt.timedelta(hours=5, minutes=30)), dt.timezone(dt.timedelta(hours=-3)))


def stream() -> Iterator[Event]:
    rng, rows = Random(3), list[Row]()
    for _ in range(40):
        if rows and rng.random() < 0.3:
            yield "-", "r", rows.pop(rng.randrange(len(rows)))
            continue
        naive = rng.choice([DAY, DAY + dt.timedelta(hours=9, microseconds=1), dt.datetime(1969, 12, 31, 23), None])
        moment = naive and naive.replace(tzinfo=dt.timezone.utc).astimezone(rng.choice(ZONES))
        other = rng.choice([DAY, DAY + dt.timedelta(hours=9), dt.datetime(2024, 3, 10, 10), None])
        rows.append((rng.choice([1, 2, None]), moment, other, rng.choice([DAY.date(), None])))
        yield "+", "r", rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    case = Case(SCHEMA, script, VIEWS, list(stream()), prepare=("SET TimeZone = 'UTC'",))
    for watched in agree(case, [("interpreter", "optimized"), ("python", "reevaluate"), ("native", "cost")]).values():
        watched.check()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_in_and_out(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT z, count(*) AS n FROM r GROUP BY z")
    moment = dt.datetime(2024, 3, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    database.insert("r", [(1, moment, None, None), (1, "2024-03-01T00:00:00+00:00", None, None), (1, DAY, None, None)])
    zoned = pa.array([moment], pa.timestamp("ms", "Asia/Tokyo"))
    nothing = pa.nulls(1)
    database.insert("r", pa.table({"k": [1], "z": zoned, "t": nothing, "d": nothing}))
    database.insert("r", pa.table({"k": [1], "z": pa.array([DAY]), "t": nothing, "d": nothing}))
    view = database.view("v")
    assert view.rows() == [(moment, 5)]
    assert view.get(z=moment) == (moment, 5)
    assert view.arrow().schema.field("z").type == pa.timestamp("us", "UTC")
    assert view.df()["z"][0] == moment
    database.execute("UPDATE r SET z = z + INTERVAL 1 HOUR WHERE z = '2024-03-01 00:00:00+00'")
    assert view.rows() == [(moment + dt.timedelta(hours=1), 5)]
    assert database.verify("v") == []
    assert Program.from_text(database.program.to_text()) == database.program


def test_refused() -> None:
    with pytest.raises(viewlet.UnsupportedError, match="a cast from VARCHAR to TIMESTAMP WITH TIME ZONE"):
        viewlet.compile("CREATE STREAM s (s VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT s::TIMESTAMPTZ AS z FROM s")
