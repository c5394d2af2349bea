"""Window functions as columns: each as DuckDB has it, after every event.

The random family draws functions, partitions, orders and frames whose answers do not depend on how ties fall.
"""

from __future__ import annotations

from random import Random

import pytest

import viewlet
from tests.engines.conformance import agree
from tests.engines.test_aggregates_more import SCHEMA, case
from tests.engines.watched import Follower, apply, compiled, engine_of
from tests.laws.cells import random_grid
from tests.laws.test_cells import follow
from viewlet.cells import plan
from viewlet.sql import translate

CONTESTANTS = [
    ("interpreter", "optimized"),
    ("python", "reevaluate"),
    ("native", "cost"),
    ("python", "classical"),
    ("python", "naive"),
    ("native", "optimized"),
]
WHOLE = {
    "shares": "SELECT k, s, n * 1.0 / sum(n + 1) OVER (PARTITION BY k) AS share FROM r",
    "partitions": "SELECT k, n, sum(a) OVER (PARTITION BY k) AS s, count(*) OVER () AS c, avg(n) OVER w AS v,"
    " min(s) OVER w AS lo, max(a) OVER (PARTITION BY s, n % 2) AS hi, median(n) OVER w AS m,"
    " count(DISTINCT a) OVER w AS d, sum(n) FILTER (WHERE a > 0) OVER w AS f, bool_or(f) OVER w AS o"
    " FROM r WINDOW w AS (PARTITION BY k)",
    "listed": "SELECT n, string_agg(s, ',' ORDER BY s) OVER (PARTITION BY k) AS l FROM r",
    "of_groups": "SELECT k, s AS t, sum(n) AS own, sum(sum(n)) OVER (PARTITION BY k) AS both,"
    " sum(n) * 100.0 / sum(sum(n) + 1) OVER (PARTITION BY k) AS part, rank() OVER (ORDER BY sum(n) DESC) AS r"
    " FROM r GROUP BY k, t HAVING count(*) > 0",
    "rolled": "SELECT k, s, sum(n) AS t, grouping(k) + grouping(s) AS g,"
    " rank() OVER (PARTITION BY grouping(k) + grouping(s) ORDER BY sum(n) DESC) AS r FROM r GROUP BY ROLLUP (k, s)",
    "chosen": "SELECT k, n FROM r QUALIFY sum(n) OVER (PARTITION BY k) > 1 AND n * 2 >= avg(n) OVER ()",
    "best_groups": "SELECT k, sum(n) AS t FROM r GROUP BY k QUALIFY rank() OVER (ORDER BY sum(n) DESC) <= 2",
    "distinct_ones": "SELECT DISTINCT k, sum(n) OVER (PARTITION BY k) AS s FROM r",
    "below": "SELECT t.k, sum(t.x) AS x FROM (SELECT k, n * 3 - max(n) OVER (PARTITION BY k) AS x,"
    " rank() OVER (ORDER BY n) AS rk FROM r) t WHERE t.rk > 0 GROUP BY t.k",
    "correlated": "SELECT q.n, (SELECT max(t.c) FROM (SELECT count(*) OVER (PARTITION BY r.f) AS c FROM r"
    " WHERE r.n = q.n) t) AS m FROM r q",
}
ORDERED = {
    "ranks": "SELECT k, a, s, rank() OVER (PARTITION BY k ORDER BY a DESC) AS r, dense_rank() OVER (ORDER BY n) AS d,"
    " percent_rank() OVER (PARTITION BY k ORDER BY n) AS p, cume_dist() OVER (ORDER BY a, s DESC) AS c,"
    " rank() OVER (PARTITION BY k) AS one FROM r",
    "running": "SELECT k, n, sum(n) OVER (PARTITION BY k ORDER BY n) AS b, count(*) OVER (ORDER BY n, a) AS c,"
    " avg(a) OVER (ORDER BY n DESC) AS v, sum(p) OVER (ORDER BY d NULLS FIRST, n) AS p FROM r",
    "ranges": "SELECT k, n, sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS w,"
    " sum(n) OVER (ORDER BY n RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS e,"
    " count(s) OVER (PARTITION BY k ORDER BY n DESC RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING) AS g,"
    " sum(n) OVER (ORDER BY n RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS u,"
    " count(*) OVER (ORDER BY coalesce(d, DATE '2000-01-01') RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)"
    " AS i FROM r",
    "extremes": "SELECT k, n, min(a) OVER (PARTITION BY k ORDER BY n) AS lo, first_value(n) OVER (PARTITION BY k"
    " ORDER BY n) AS f, last_value(n) OVER (ORDER BY n) AS l, max(s) OVER (ORDER BY n DESC) AS hi FROM r",
    "nulls_meet": "SELECT DISTINCT k, a, count(*) OVER (ORDER BY a) AS c, sum(n) OVER (PARTITION BY f"
    " ORDER BY s DESC, a) AS s, rank() OVER (ORDER BY a NULLS FIRST, s) AS r FROM r",
    "first_ones": "SELECT k, n, sum(n) OVER (PARTITION BY k ORDER BY n) AS b FROM r ORDER BY b DESC, k, n LIMIT 3",
}

_ALL = "n, k, a, b, p, x, s, f, d"  # no two different rows are tied
NUMBERED = {
    "numbers": f"SELECT k, n, a, s, row_number() OVER (PARTITION BY k ORDER BY {_ALL}) AS r,"
    f" ntile(3) OVER (ORDER BY a NULLS FIRST, {_ALL}) AS t FROM r",
    "shifts": f"SELECT k, n, a, lag(n) OVER (PARTITION BY k ORDER BY {_ALL}) AS l, lead(a, 2, -1) OVER"
    f" (ORDER BY n DESC, {_ALL}) AS e, n - lag(n, 1, 0) OVER (PARTITION BY f ORDER BY {_ALL}) AS d FROM r",
    "rows_frames": f"SELECT k, n, sum(n) OVER (ORDER BY {_ALL} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS w,"
    f" avg(a) OVER (PARTITION BY k ORDER BY {_ALL} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS v,"
    f" count(*) OVER (ORDER BY {_ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS c,"
    f" min(a) OVER (ORDER BY {_ALL} ROWS UNBOUNDED PRECEDING) AS lo,"
    f" max(s) OVER (ORDER BY {_ALL} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS hi FROM r",
    "places": f"SELECT k, n, nth_value(a, 2) OVER (ORDER BY {_ALL} ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)"
    f" AS two, first_value(a) OVER (ORDER BY {_ALL} ROWS 1 PRECEDING) AS f, last_value(s) OVER (ORDER BY {_ALL}"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l, sum(n) OVER (PARTITION BY k) AS t FROM r",
    "numbered_groups": "SELECT k, sum(n) AS t, lag(sum(n)) OVER (ORDER BY k) AS b,"
    " sum(sum(n)) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) AS c FROM r GROUP BY k",
    "numbers_chosen": f"SELECT k, n FROM r QUALIFY n > lag(n, 1, -1) OVER (ORDER BY {_ALL})"
    f" OR row_number() OVER (ORDER BY {_ALL}) > 2 ORDER BY k, n",
}


def test_windows_are_those_of_duckdb(seeded: int, soaking: bool) -> None:
    views = WHOLE | ORDERED | NUMBERED
    watch = agree(case(views, {}, 7 + seeded, 40), CONTESTANTS if soaking else CONTESTANTS[:3])
    for view in watch.values():
        view.check()


# -- random windows ----------------------------------------------------------------------------------------------------

CALLS = [
    "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)", "sum({})", "count({})", "avg({})", "max({})",
    "sum(n) FILTER (WHERE f)", "median({})",
]  # fmt: skip
FRAMES = [
    "", "", "", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE UNBOUNDED PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
]  # fmt: skip


def window(rng: Random) -> str:
    call = rng.choice(CALLS).format(rng.choice(["a", "n", "p"]))
    partition = f"PARTITION BY {rng.choice(['k', 'f', 'k, f', 's', 'n % 2'])} " if rng.random() < 0.7 else ""
    keys = rng.sample(["a", "n", "s", "d", "p", "n % 3"], rng.randint(1, 2))
    order = ", ".join(f"{key} {rng.choice(['', 'DESC', 'DESC NULLS LAST', 'NULLS FIRST'])}" for key in keys)
    frame = rng.choice(FRAMES) if "(" in call and not call.endswith("()") else ""
    ordered = f"ORDER BY {order} {frame}" if rng.random() < 0.8 or call.endswith("()") else ""
    return f"{call} OVER ({partition}{ordered})"


def drawn(seed: int) -> dict[str, str]:
    rng = Random(seed)

    def items() -> str:
        return ", ".join(f"{window(rng)} AS w{i}" for i in range(rng.randint(1, 3)))

    plain = {f"plain{i}": f"SELECT k, n, a, {items()} FROM r WHERE n < {rng.choice((3, 9))}" for i in range(3)}
    below = f"SELECT t.k, count(*) AS c, sum(t.w) AS w FROM (SELECT k, {window(rng)} AS w FROM r) t GROUP BY t.k"
    return plain | {"below_a_group": below}


def test_random_windows_are_those_of_duckdb(seeded: int, soaking: bool) -> None:
    views = drawn(seeded + 1)
    agree(case(views, {}, seeded, 24), CONTESTANTS if soaking else CONTESTANTS[:3])


# -- around them -------------------------------------------------------------------------------------------------------


def test_changes_are_told() -> None:
    views = {name: (WHOLE | ORDERED)[name] for name in ("shares", "partitions", "ranks", "running", "ranges")}
    told = case(views, {}, 3, 40)
    made = compiled(SCHEMA + told.views, "optimized")
    assert set(made.watched.results) == set(views)
    engine, follower = engine_of(made), Follower(made)
    for event in told.events:
        apply(engine, [event])
        follower.look(engine)


@pytest.mark.parametrize("name", ["shares", "partitions", "ranks", "running", "numbers"])
def test_windows_are_the_sum_of_their_cells(name: str) -> None:
    given = case({name: (WHOLE | ORDERED | NUMBERED)[name]}, {}, 5, 40)
    script, rng = translate(given.schema + given.views), Random(name)
    for grid in (plan(script, 4), random_grid(script, rng, 1), random_grid(script, rng, 1)):
        follow(script, grid, given.events, {})


def test_a_program_of_windows_comes_back_from_its_text() -> None:
    program = viewlet.compile(SCHEMA + case(ORDERED | NUMBERED, {}, 1, 1).views)
    assert viewlet.Program.from_text(program.to_text()) == program


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_changes_of_numbers_are_told(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(
        "CREATE STREAM r (k INTEGER, n INTEGER NOT NULL);"
        "CREATE MATERIALIZED VIEW v AS SELECT k, n, lag(n) OVER (PARTITION BY k ORDER BY n) AS l FROM r;"
    )
    database.insert("r", [(1, 5), (1, 9), (2, 5)])
    told = list[tuple[int, tuple[object, ...]]]()
    database.view("v").subscribe(told.append)
    database.insert("r", [(1, 7)])
    assert sorted(told) == [(-1, (1, 9, 5)), (1, (1, 7, 5)), (1, (1, 9, 7))]
    assert database.verify("v") == []


def test_a_running_sum_is_a_range() -> None:
    program = viewlet.compile(
        "CREATE STREAM r (k INTEGER NOT NULL, t INTEGER NOT NULL, v INTEGER NOT NULL);"
        "CREATE MATERIALIZED VIEW balance AS SELECT k, t, v, sum(v) OVER (PARTITION BY k ORDER BY t) AS b FROM r;"
    )
    (lookup,) = [q.text for _, q in program.result("balance").lookups]
    assert lookup == "Sum[r.k](balance_sum[][r.k, r.t_2] * [r.t_2 <= r.t])"
    assert all(s.op == "+=" and "balance" not in s.expression.text for t in program.triggers for s in t.statements)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT DISTINCT row_number() OVER (ORDER BY n) AS x FROM r", "ROW_NUMBER by the numbers of rows that may be"),
        ("SELECT t.x FROM (SELECT lag(n) OVER (ORDER BY n) AS x FROM r) t", "LAG by the numbers of rows that may be"),
        ("SELECT lag(n, k) OVER (ORDER BY n) AS x FROM r", "not a constant integer"),
        (
            "SELECT sum(DISTINCT n) OVER (ORDER BY n ROWS 1 PRECEDING) AS x FROM r",
            "SUM by the numbers of rows that may",
        ),
        ("SELECT sum(n) OVER (ORDER BY n GROUPS -1 PRECEDING) AS x FROM r", "a number from 0 on"),
        ("SELECT sum(n) OVER (ORDER BY n ROWS a PRECEDING) AS x FROM r", "not a constant integer"),
        ("SELECT DISTINCT nth_value(n, 2) OVER (ORDER BY n GROUPS 1 PRECEDING) AS x FROM r", "the n-th value of this"),
        (
            "SELECT DISTINCT sum(n) OVER (PARTITION BY n % 2 ORDER BY a RANGE UNBOUNDED PRECEDING EXCLUDE TIES) FROM r",
            "EXCLUDE of rows that may be equal, by a computed PARTITION BY",
        ),
        ("SELECT sum(sum(n) OVER ()) OVER () AS x FROM r", "a window function cannot stand here"),
        ("SELECT n FROM r WHERE sum(n) OVER () > 1", "a window function cannot stand here"),
        (
            "SELECT l FROM (SELECT lag(n) OVER (PARTITION BY n ORDER BY n) AS l FROM (SELECT DISTINCT n FROM r))",
            "LAG by the places of rows that PARTITION BY parts from all others",
        ),
        (
            "SELECT * FROM (SELECT sum(n) OVER (PARTITION BY n ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)"
            " FROM r)",
            "a frame without its own row, ordered by columns of PARTITION BY alone",
        ),
        (
            "SELECT * FROM (SELECT a, max(a) OVER (PARTITION BY a ORDER BY a ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)"
            " FROM (SELECT sum(n) AS a FROM r))",
            "a frame without its own row, ordered by columns of PARTITION BY alone",
        ),
        ("SELECT sum(n) OVER (ORDER BY a RANGE 1 PRECEDING) AS x FROM r", "a RANGE with a distance"),
        ("SELECT sum(n) OVER (ORDER BY n RANGE a PRECEDING) AS x FROM r", "a computed distance"),
        ("SELECT sum(n) OVER w AS x FROM r", "there is no window w"),
        ("SELECT k, sum(sum(n)) OVER () AS x FROM r GROUP BY ALL", "GROUP BY ALL beside a window function"),
    ],
)
def test_what_is_refused(query: str, message: str) -> None:
    with pytest.raises(viewlet.SqlError, match=message):
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {query};")
