"""UUID: held as its text in small letters, whatever form it comes in; compared and ordered as DuckDB does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from uuid import UUID

import pyarrow as pa
import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.oracle.oracle import Row
from viewlet.program.trigger import Program
from viewlet.workloads.streams import Event

SCHEMA = "CREATE STREAM r (k INTEGER, u UUID, s VARCHAR); CREATE STREAM q (u UUID NOT NULL, b INTEGER);"
ONE, SEVEN, EIGHT, LAST = (f"{first}0000000-aBcd-4000-8000-00000000000F" for first in "178f")
VIEWS = {
    "shown": "SELECT k, u, u::VARCHAR AS s, u || '!' AS t FROM r",
    "ends": "SELECT k, min(u) AS a, max(u) AS b, count(DISTINCT u) AS n, string_agg(u, ' ' ORDER BY u) AS l,"
    " list(u ORDER BY u DESC) AS m FROM r GROUP BY k",
    "tried": "SELECT TRY_CAST(s AS UUID) AS u, k FROM r",
    "keys": "SELECT u, count(*) AS n FROM r GROUP BY u",
    "joined": "SELECT r.k, q.b, r.u FROM r JOIN q ON r.u = q.u",
    "compared": f"SELECT k, u FROM r WHERE u > '{SEVEN}' OR u = UUID '{ONE}' OR u IN ('{EIGHT}', '{LAST.lower()}')",
    "nested": "SELECT k, u FROM r WHERE u <= (SELECT max(q.u) FROM q)",
    "either": "SELECT coalesce(r.u, q.u) AS u, greatest(r.u, q.u) AS g FROM r LEFT JOIN q ON r.k = q.b",
    "first_": "SELECT u, k FROM r ORDER BY u DESC NULLS LAST, k LIMIT 2",
}


def stream() -> Iterator[Event]:
    rng, rows = Random(3), list[tuple[str, Row]]()
    for _ in range(40):
        if rows and rng.random() < 0.3:
            relation, row = rows.pop(rng.randrange(len(rows)))
            yield "-", relation, row
            continue
        one = rng.choice([ONE, SEVEN, EIGHT.upper(), UUID(EIGHT), LAST.replace("-", "")])
        r = rng.choice([1, 2, None]), rng.choice([one, one, None]), rng.choice(["a", None])
        rows.append(("r", r) if rng.random() < 0.6 else ("q", (one, rng.choice([1, 2]))))
        yield "+", *rows[-1]


def test_as_duckdb() -> None:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items())
    case = Case(SCHEMA, script, VIEWS, list(stream()))
    for watched in agree(case, [("interpreter", "optimized"), ("python", "reevaluate"), ("native", "cost")]).values():
        watched.check()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_in_and_out(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    select = "SELECT u, count(*) AS n, list(u) AS l, max(md5(u::VARCHAR)) AS h FROM r GROUP BY u"
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW w AS SELECT u, count(*) AS n FROM r GROUP BY u;")
    database.execute(f"CREATE MATERIALIZED VIEW v AS {select}")
    database.insert("r", [(1, ONE, None), (1, UUID(ONE), None)])
    database.insert("r", (1, ONE.upper(), None))
    database.insert("r", pa.table({"k": [1], "u": [ONE], "s": pa.nulls(1)}))
    database.apply([("+", "r", (1, f"{{{ONE}}}", None))])
    view = database.view("w")
    assert view.rows() == [(UUID(ONE), 5)]
    assert view.get(u=ONE) == (UUID(ONE), 5)
    assert view.weights() == {(UUID(ONE), 5): 1}
    assert view.arrow().to_pylist() == [{"u": ONE.lower(), "n": 5}]
    ((u, n, many, _),) = database.view("v").rows()
    assert (u, n, many) == (UUID(ONE), 5, [UUID(ONE)] * 5)
    assert database.view("v").arrow().column("l").to_pylist() == [[ONE.lower()] * 5]
    database.execute(f"UPDATE r SET u = '{LAST}' WHERE u = '{ONE.upper()}'")
    assert view.rows() == [(UUID(LAST), 5)]
    assert database.verify("v") == []
    assert Program.from_text(database.program.to_text()) == database.program
    with pytest.raises(viewlet.DataError, match="'x' is no UUID"):
        database.insert("r", (1, "x", None))
    with pytest.raises(viewlet.DataError, match=r"UUID takes a uuid\.UUID or its text, not 1"):
        database.insert("r", (1, 1, None))


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT k FROM r WHERE u = s", "comparing a UUID with a VARCHAR"),
        ("SELECT k FROM r WHERE u = 'x'", "cannot compare a UUID with a VARCHAR"),
        ("SELECT upper(u) AS x FROM r", "a UUID where a VARCHAR belongs"),
        ("SELECT coalesce(u, s) AS x FROM r", "one column of UUID and VARCHAR"),
        ("SELECT max(s)::UUID AS x FROM r", "a cast from VARCHAR to UUID"),
        ("SELECT k::UUID AS x FROM r", "no INTEGER can be cast to UUID"),
        ("SELECT u::INTEGER AS x FROM r", "no UUID can be cast to INTEGER"),
        ("SELECT sum(u) AS x FROM r", "SUM takes a number"),
        ("SELECT k FROM r WHERE u LIKE 'a%'", "a UUID where a VARCHAR belongs"),
    ],
)
def test_refused(select: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")
