"""ORDER BY, LIMIT and OFFSET of a view: the rows of every engine in the referee's order, after every event."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, Disagreement, apply_event, opened_natively
from tests.oracle.oracle import Row, Vacuity
from tests.oracle.ordered import OrderedQuery, line_difference
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k INTEGER, v BIGINT, s VARCHAR, d DOUBLE, p DECIMAL(10,2) NOT NULL);
CREATE STREAM u (k INTEGER NOT NULL, w INTEGER);
"""
QUERIES = {
    "by_name": OrderedQuery("SELECT k, v FROM r", 2, "k, v DESC"),
    "nulls_first": OrderedQuery("SELECT k, s FROM r", 2, "s DESC NULLS FIRST, k NULLS FIRST"),
    "by_place": OrderedQuery("SELECT s, d FROM r", 2, "2 DESC, 1", "LIMIT 3"),
    "by_all": OrderedQuery("SELECT k, v, s FROM r", 3, "ALL DESC", "LIMIT 4"),
    "no_order": OrderedQuery("SELECT k, v FROM r", 2, "", "LIMIT 3"),
    "skipped": OrderedQuery("SELECT k, v FROM r", 2, "v", "LIMIT 2 OFFSET 2"),
    "rest": OrderedQuery("SELECT p, k FROM r", 2, "p DESC", "OFFSET 3"),
    "fetched": OrderedQuery("SELECT p FROM r", 1, "p", "OFFSET 1 ROWS FETCH FIRST 2 ROWS ONLY"),
    "hidden": OrderedQuery("SELECT k FROM r", 1, "s, v DESC", "LIMIT 1 + 2"),
    "computed": OrderedQuery("SELECT k, v FROM r", 2, "abs(v) DESC, v IS NULL, k + v", "LIMIT 4"),
    "alias_first": OrderedQuery("SELECT k AS v, v AS k FROM r", 2, "k", "LIMIT 3"),
    "column_first": OrderedQuery("SELECT k AS v, v AS k FROM r", 2, "k + 0", "LIMIT 3"),
    "distinct_rows": OrderedQuery("SELECT DISTINCT k, s FROM r", 2, "s, k + 1 DESC", "LIMIT 3"),
    "united": OrderedQuery("SELECT k AS x FROM r UNION ALL SELECT w FROM u", 1, "-x, x", "LIMIT 5"),
    "joined": OrderedQuery("SELECT r.k, u.w, r.p FROM r JOIN u ON r.k = u.k", 3, "r.p * u.w DESC", "LIMIT 4"),
    "top_sums": OrderedQuery("SELECT k, sum(v) AS total FROM r GROUP BY k", 2, "total DESC", "LIMIT 2"),
    "top_counts": OrderedQuery("SELECT s FROM r GROUP BY s", 1, "count(*) DESC, max(v)", "LIMIT 2"),
    "averages": OrderedQuery("SELECT k, avg(d) FROM r GROUP BY k", 2, "2 NULLS FIRST", "LIMIT 3"),
    "some_groups": OrderedQuery(
        "SELECT k, count(*) AS n, min(s) AS m FROM r GROUP BY k HAVING count(*) > 1", 3, "m, n DESC", "LIMIT 2"
    ),
    "shares": OrderedQuery(
        "SELECT k, sum(p) FROM r GROUP BY k", 2, "sum(p) / (SELECT count(*) FROM u) DESC", "LIMIT 2"
    ),
    "one_row": OrderedQuery("SELECT count(*), sum(v) FROM r", 2, "1", "LIMIT 1"),
    "in_order": OrderedQuery("SELECT k, sum(v) AS total FROM r GROUP BY k", 2, "total, k DESC"),
}
NOTHING = {
    "none": OrderedQuery("SELECT k FROM r", 1, "k", "LIMIT 0"),
    "one_skipped": OrderedQuery("SELECT count(*) FROM r", 1, "", "OFFSET 1"),
}
WAYS = (
    ("native", "optimized"),
    ("native", "classical"),
    ("python", "cost"),
    ("python", "reevaluate"),
    ("interpreter", "naive"),
)
EXTREMES = (2**40, -(2**40), 0)


def event(rng: Random, there: list[tuple[str, Row]]) -> Event:
    """Few values, so that rows are equal and groups go; one event in three deletes."""
    if there and rng.random() < 0.35:
        return "-", *there.pop(rng.randrange(len(there)))
    if rng.random() < 0.2:
        name, row = "u", (rng.randint(0, 3), rng.choice((None, -2, 0, 5)))
    else:
        v = rng.choice((None, *EXTREMES, *range(-3, 4)))
        s = rng.choice((None, "", "a", "B", "é", "z", "𝄞", "ab"))
        d = rng.choice((None, 0.5, -1.25, 3.0, 1e300))
        name, row = "r", (rng.choice((None, 0, 1, 2, 3)), v, s, d, Decimal(rng.randint(-300, 300)) / 100)
    there.append((name, row))
    return "+", name, row


def stream(seed: int, length: int) -> list[Event]:
    rng, there = Random(seed), list[tuple[str, Row]]()
    grown = [event(rng, there) for _ in range(length)]
    return [*grown, *(("-", *gone) for gone in reversed(there))]


def case(seed: int, length: int) -> Case:
    queries = QUERIES | NOTHING
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {q.written};\n" for name, q in queries.items())
    return Case(SCHEMA, views, {name: q.in_full for name, q in queries.items()}, stream(seed, length))


def test_rows_come_in_the_referees_order_after_every_event() -> None:
    tested = case(seed=3, length=80)
    databases = {way: tested.open(*way) for way in WAYS}
    oracle, watch = tested.referee(), {name: Vacuity() for name in QUERIES}
    for number, happened in enumerate(tested.events):
        oracle.apply(*happened)
        for database in databases.values():
            apply_event(database, happened)
        for name, query in (QUERIES | NOTHING).items():
            expected = query.rows(oracle)
            for way, database in databases.items():
                view = database.view(name)
                if wrong := line_difference(view.rows(), expected):
                    raise Disagreement(f"{name} by {way} after event {number} {happened}: {wrong}")
                assert len(view) == len(expected), (name, way, number)
            if name in watch:
                watch[name].watch(expected)
    for vacuity in watch.values():
        vacuity.check()


@pytest.mark.parametrize("engine", ["native", "python"])
def test_every_way_to_read_gives_the_same_rows(engine: str) -> None:
    tested = case(seed=5, length=40)
    database = tested.open(engine, "optimized")
    changed = {name: database.view(name).changes() for name in QUERIES}
    folded = {name: Counter[Row]() for name in QUERIES}
    for happened in tested.events[:40]:
        apply_event(database, happened)
        for name, changes in changed.items():
            for weight, row in changes:
                folded[name][row] += weight
    for name in QUERIES:
        view = database.view(name)
        rows = view.rows()
        assert list(view) == rows
        assert [tuple(row.values()) for row in view.arrow().to_pylist()] == rows
        assert list(view.df().itertuples(index=False, name=None)) == rows or any(None in row for row in rows)
        assert view.weights() == Counter(rows) == +folded[name]
        assert view._repr_html_().count("<tr>") == min(len(rows), 20) + 1
        assert database.verify(name) == []


def test_get_finds_a_group_only_among_the_first() -> None:
    script = "CREATE STREAM r (k INTEGER, v INTEGER); CREATE MATERIALIZED VIEW top AS SELECT k, sum(v) AS n, max(v) "
    script += "AS m FROM r GROUP BY k ORDER BY n DESC LIMIT 2;"
    native = opened_natively(script)
    python = viewlet.connect(engine="python")
    python.execute(script)
    for database in (native, python):
        database.insert("r", [(1, 5), (2, 7), (3, 6), (None, 1)])
        assert database.view("top").get(k=2) == (2, 7, 7)
        assert database.view("top").get(k=1) is None
        database.insert("r", (None, 9))
        assert database.view("top").get(k=None) == (None, 10, 9)
        assert database.view("top").get(k=3) is None


def test_nan_is_the_greatest_number() -> None:
    database = opened_natively(
        "CREATE STREAM r (d DOUBLE); CREATE MATERIALIZED VIEW up AS SELECT d FROM r ORDER BY d LIMIT 3;"
        "CREATE MATERIALIZED VIEW down AS SELECT d FROM r ORDER BY d DESC LIMIT 3;"
    )
    database.insert("r", [(math.nan,), (None,), (math.inf,), (-math.inf,), (1.5,)])
    assert database.view("up").rows() == [(-math.inf,), (1.5,), (math.inf,)]
    first, *rest = database.view("down").rows()
    assert math.isnan(first[0])
    assert rest == [(math.inf,), (1.5,)]


def test_an_order_inside_means_nothing() -> None:
    database = viewlet.connect(engine="python")
    database.execute(
        "CREATE STREAM r (k INTEGER); CREATE MATERIALIZED VIEW a AS SELECT k FROM r ORDER BY k DESC;"
        "CREATE MATERIALIZED VIEW b AS WITH c AS (SELECT k FROM a ORDER BY k) SELECT k FROM (SELECT k FROM c "
        "ORDER BY 1) x WHERE k IN (SELECT k FROM r ORDER BY k) ORDER BY k LIMIT 2;"
    )
    database.insert("r", [(3,), (1,), (2,)])
    assert database.view("b").rows() == [(1,), (2,)]
    assert database.view("a").rows() == [(3,), (2,), (1,)]


def test_a_program_with_an_order_is_its_text() -> None:
    program = viewlet.compile(case(1, 1).schema + case(1, 1).views)
    assert viewlet.Program.from_text(program.to_text()) == program
