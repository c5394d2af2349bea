"""STRING_AGG and LIST: the values of a group in an order, as DuckDB has them, after every event.

Where SQL leaves the order open, the referee's query says which one is taken: that of the values.
"""

from __future__ import annotations

import pytest

import viewlet
from tests.engines.conformance import Case, agree
from tests.engines.test_aggregates_more import SCHEMA, case
from viewlet.program.trigger import Program

CONTESTANTS = [
    ("interpreter", "optimized"),
    ("python", "reevaluate"),
    ("python", "classical"),
    ("native", "cost"),
]
ORDERED = {
    "texts": "SELECT k, string_agg(s, ',' ORDER BY s) AS t, listagg(s, '' ORDER BY n DESC, s) AS u,"
    " group_concat(s ORDER BY a DESC NULLS FIRST, s) AS v, count(*) AS c FROM r GROUP BY k",
    "shown": "SELECT n, string_agg(a, ' | ' ORDER BY a DESC) AS a, string_agg(p, ';' ORDER BY p) AS p,"
    " string_agg(x, ' ' ORDER BY x) AS x, string_agg(f, '' ORDER BY f) AS f, string_agg(d, ' ' ORDER BY d) AS d"
    " FROM r GROUP BY n",
    "distinct_texts": "SELECT k, string_agg(DISTINCT s, '-' ORDER BY s DESC) AS s,"
    " string_agg(DISTINCT b, ' ' ORDER BY b) AS b, string_agg(DISTINCT s, ',' ORDER BY length(s), s) AS l"
    " FROM r GROUP BY k",
    "whole": "SELECT string_agg(s || n, ',' ORDER BY n, s) AS t, max(a) AS m, string_agg(s, NULL) AS nothing FROM r",
    "filtered": "SELECT k, string_agg(s, ',' ORDER BY s, n) FILTER (WHERE f) AS s,"
    " list(n ORDER BY n DESC) FILTER (WHERE a > 0) AS n FROM r GROUP BY k",
    "lists": "SELECT k, list(a ORDER BY b, a) AS a, array_agg(s ORDER BY n DESC, s NULLS FIRST) AS s,"
    " list(x ORDER BY x NULLS FIRST) AS x, list(p ORDER BY p DESC) AS p, list(d ORDER BY d) AS d,"
    " list(f ORDER BY f DESC) AS f FROM r GROUP BY k",
    "distinct_lists": "SELECT k, list(DISTINCT a ORDER BY a) AS a, list(DISTINCT s ORDER BY s DESC NULLS FIRST) AS s,"
    " list(DISTINCT n % 2 ORDER BY n % 2) AS n FROM r GROUP BY k",
    "computed": "SELECT k % 2 AS odd, upper(string_agg(s, ',' ORDER BY s)) || '!' AS t, list(b + n ORDER BY b + n) AS l"
    " FROM r GROUP BY k % 2 HAVING string_agg(s, '' ORDER BY s) <> '' OR count(*) > 1",
    "joined": "SELECT r.k, list(q.n ORDER BY r.n, q.n) AS l FROM r JOIN r AS q ON r.a = q.a WHERE q.n < 3 GROUP BY r.k",
    "by_key": "SELECT s, string_agg(s, ',' ORDER BY k, n) AS t, list(k ORDER BY s, k) AS k FROM r GROUP BY s",
    "sets": "SELECT k, f, list(n ORDER BY n) AS l FROM r GROUP BY ROLLUP (k, f)",
    "first_lists": "SELECT n, list(a ORDER BY a) AS l FROM r GROUP BY n ORDER BY l DESC, n LIMIT 2",
    "first_texts": "SELECT n, string_agg(s, ',' ORDER BY s) AS t FROM r GROUP BY n ORDER BY t NULLS FIRST, n LIMIT 2",
}
OPEN = {
    "no_order": "SELECT k, string_agg(s, ',') AS s, list(a) AS a, string_agg(b) AS b, list(DISTINCT s) AS d FROM r"
    " GROUP BY k",
    "ties": "SELECT k, string_agg(s, ',' ORDER BY f) AS s, list(a ORDER BY 1) AS a FROM r GROUP BY k",
}
REFEREE = {
    "no_order": "SELECT k, string_agg(s, ',' ORDER BY s) AS s, list(a ORDER BY a) AS a, string_agg(b ORDER BY b) AS b,"
    " list(DISTINCT s ORDER BY s) AS d FROM r GROUP BY k",
    "ties": "SELECT k, string_agg(s, ',' ORDER BY f, s) AS s, list(a ORDER BY a) AS a FROM r GROUP BY k",
}


def lists(length: int) -> Case:
    return case(ORDERED | OPEN, REFEREE, 11, length)


def test_as_duckdb() -> None:
    for watched in agree(lists(40), CONTESTANTS).values():
        watched.check()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_one_group_changes_and_verify(engine: str) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    select = "SELECT k, list(a ORDER BY a) AS l, max(n) AS m FROM r GROUP BY k"
    database.execute(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select}")
    view = database.view("v")
    changes = view.changes()
    row = (1, 5, None, None, None, "s", True, None, 2)
    database.insert("r", [row, row, (2, *row[1:])])
    assert sorted(changes) == [(1, (1, (5, 5), 2)), (1, (2, (5,), 2))]
    database.delete("r", row)
    assert list(changes) == [(-1, (1, (5, 5), 2)), (1, (1, (5,), 2))]
    assert view.get(k=1) == (1, [5], 2)
    assert view.get(k=3) is None
    assert view.weights() == {(1, (5,), 2): 1, (2, (5,), 2): 1}
    assert view.arrow().column("l").to_pylist() == [[5], [5]]
    assert len(view) == 2
    database.verify("v")


def test_text_form() -> None:
    program = viewlet.compile(lists(1).schema + lists(1).views)
    assert Program.from_text(program.to_text()).results == program.results
