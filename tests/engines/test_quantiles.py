"""MEDIAN, QUANTILE and PERCENTILE, MODE and MAD: each as DuckDB has it, after every event.

Where values tie for MODE, the referee's query says which one is taken: the least.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

import viewlet
from tests.engines.conformance import agree
from tests.engines.test_aggregates_more import SCHEMA, case
from tests.engines.watched import Follower, apply, compiled, engine_of
from viewlet.database.memory import EngineName
from viewlet.loops.cost_class import statement_access

CONTESTANTS = [
    ("interpreter", "optimized"),
    ("python", "reevaluate"),
    ("python", "classical"),
    ("python", "naive"),
    ("native", "cost"),
]
EXACT = {
    "medians": "SELECT k, median(a) AS a, median(b) AS b, median(p) AS p, median(x) AS x, median(s) AS s,"
    " median(f) AS f, median(d) AS d, median(n) AS n, count(*) AS c FROM r GROUP BY k",
    "whole": "SELECT median(a) AS a, quantile_cont(p, 0.07) AS p, quantile_disc(s, 0.3) AS s, median(n + 1) AS n,"
    " quantile_cont(d, 0.3) AS d, quantile_disc(f, 1) AS f, median(NULL) AS z FROM r",
    "parts": "SELECT n, quantile_cont(a, 0.25) AS a, quantile_disc(b, 0.9) AS b, quantile(p, 0) AS p,"
    " quantile_cont(p, 0.66) AS q, quantile_cont(x, 1) AS x, quantile_disc(d, 0.5) AS d, quantile_disc(x, -0.2) AS y,"
    " quantile_cont(a, 3e-1) AS e, quantile_disc(a, 1e-1) AS g FROM r GROUP BY n",
    "within": "SELECT k, percentile_cont(0.3) WITHIN GROUP (ORDER BY a DESC) AS a,"
    " percentile_disc(0.3) WITHIN GROUP (ORDER BY s DESC) AS s, percentile_cont(0) WITHIN GROUP (ORDER BY p DESC) AS p,"
    " percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FILTER (WHERE f) AS d FROM r GROUP BY k",
    "distinct_ones": "SELECT k, median(DISTINCT a) AS a, quantile_disc(DISTINCT s, 0.5) AS s,"
    " median(x) FILTER (WHERE n > 1) AS x FROM r GROUP BY k HAVING median(n) > 1",
    "computed": "SELECT k, median(a) - avg(a) AS e, round(median(x) * 2, 1) AS g FROM r GROUP BY k"
    " ORDER BY e, k LIMIT 2",
    "nested": "SELECT sum(t.m) AS m, max(t.s) AS s, count(*) AS c FROM (SELECT k, median(n) AS m, median(s) AS s,"
    " quantile_disc(p, 0.4) AS q FROM r GROUP BY k) t",
    "of_sums": "SELECT median(t.s) AS m, quantile_cont(t.s, 0.3) AS q, mad(t.s) AS d FROM (SELECT k, sum(p) AS s FROM r"
    " GROUP BY k) t",
    "above": "SELECT k, n FROM r WHERE n > (SELECT median(q.n) FROM r q)",
    "deviation": "SELECT k, mad(n) AS n, mad(p) AS p, mad(x) AS x FROM r GROUP BY k",
}
_GROUP = "SELECT {0}, count(*) AS c FROM r q WHERE q.k IS NOT DISTINCT FROM r.k AND {0} IS NOT NULL GROUP BY {0}"
_MODE = f"(SELECT min(v.{{0}}) FROM ({_GROUP}) v WHERE v.c = (SELECT max(w.c) FROM ({_GROUP}) w)) AS {{0}}"
TIED = {
    "modes": "SELECT k, mode(a) AS a, mode(s) AS s, mode(d) AS d, mode() WITHIN GROUP (ORDER BY n) AS n FROM r"
    " GROUP BY k",
    "nested_modes": "SELECT count(DISTINCT t.m) AS c, max(t.s) AS s FROM (SELECT mode(n) AS m, mode(s) AS s FROM r"
    " GROUP BY k) t",
}
_OF_ALL = f"SELECT k, {', '.join(map(_MODE.format, 'asdn'))} FROM r GROUP BY k"
REFEREE = {
    "modes": _OF_ALL,
    "nested_modes": f"SELECT count(DISTINCT t.n) AS c, max(t.s) AS s FROM ({_OF_ALL}) t",
}


def test_quantiles_are_those_of_duckdb(seeded: int, soaking: bool) -> None:
    watch = agree(case(EXACT | TIED, REFEREE, 5 + seeded, 36), CONTESTANTS if soaking else CONTESTANTS[::2])
    for view in watch.values():
        view.check()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_wide_decimal_keeps_its_digits(engine: EngineName) -> None:
    """A distance is a double, as in DuckDB, and the value that it starts from is not."""
    database = viewlet.connect(engine=engine, wait_native=engine == "native")
    database.execute(
        "CREATE STREAM r (n DECIMAL(38,2) NOT NULL);"
        "CREATE MATERIALIZED VIEW v AS SELECT median(n) AS m, quantile_cont(n, 0.9) AS q FROM r;"
    )
    far = Decimal(10) ** 34
    database.insert("r", [(far,), (far + Decimal("0.03"),)])
    assert database.view("v").rows() == [(far + Decimal("0.01"), far + Decimal("0.02"))]
    database.insert("r", [(-far,), (-far - 1,)])
    ((middle, _),) = database.view("v").rows()
    assert abs(middle) < far / 10**15
    assert database.tier == engine


def test_changes_are_told() -> None:
    views = {name: EXACT[name] for name in ("medians", "within", "whole")}
    told = case(views, {}, 3, 40)
    made = compiled(SCHEMA + told.views, "optimized")
    assert set(made.watched.results) == set(views)
    engine, follower = engine_of(made), Follower(made)
    for event in told.events:
        apply(engine, [event])
        follower.look(engine)


def test_one_group_is_a_lookup() -> None:
    database = viewlet.connect(wait_native=True)
    database.execute(
        "CREATE STREAM r (k INTEGER, n INTEGER NOT NULL);"
        "CREATE MATERIALIZED VIEW v AS SELECT k, median(n) AS m, quantile_disc(n, 0.9) AS q FROM r GROUP BY k;"
    )
    rng = Random(1)
    rows = [(rng.randrange(3), rng.randrange(10**6)) for _ in range(5000)]
    database.insert("r", rows)
    for k in range(3):
        mine = sorted(n for key, n in rows if key == k)
        middle = (mine[(len(mine) - 1) // 2] + mine[len(mine) // 2]) / 2
        assert database.view("v").get(k=k) == (k, middle, mine[-(-len(mine) * 9 // 10) - 1])


def test_a_change_costs_a_descent() -> None:
    program = viewlet.compile(
        "CREATE STREAM r (k INTEGER NOT NULL, n INTEGER NOT NULL);"
        "CREATE MATERIALIZED VIEW v AS SELECT k, median(n) AS m, mode(n) AS o FROM r GROUP BY k;"
    )
    classes = {
        statement_access(s, t.event, program).cost_class
        for t in program.triggers
        if t.event.kind == "+"
        for s in t.statements
    }
    assert classes <= {"O(1)", "O(log n)"}, classes
    assert viewlet.Program.from_text(program.to_text()) == program


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("quantile_cont(s, 0.5)", "takes numbers and moments"),
        ("quantile_cont(n, 1.5)", "from -1 to 1"),
        ("quantile_cont(n, n)", "constant fraction"),
        ("quantile_cont(n)", "constant fraction"),
        ("quantile_cont(n, NULL)", "constant fraction"),
        ("quantile_cont(n, [0.1, 0.2])", "a list of fractions is not supported"),
        ("median(n ORDER BY a)", "MEDIAN with ORDER BY is not supported"),
        ("mad(DISTINCT n)", "MAD with DISTINCT is not supported"),
    ],
)
def test_what_is_refused(call: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT {call} AS m FROM r;")
