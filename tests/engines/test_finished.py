"""Views whose products are multiplied when they are read: as DuckDB has them, after every event, on every engine."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

import viewlet
from tests.engines.conformance import Case, agree, deal_engines, opened_natively
from tests.oracle.oracle import Row
from viewlet.explain import explain
from viewlet.program.limits import is_product
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k BIGINT, j BIGINT NOT NULL, x DOUBLE, n BIGINT NOT NULL);
CREATE STREAM s (k BIGINT, j BIGINT NOT NULL, y DOUBLE);
CREATE STREAM t (z DOUBLE NOT NULL);
"""
FINISHED = {
    "square": "SELECT a.k, sum(a.x * b.x * 0.5) AS v FROM r a, r b WHERE a.k = b.k GROUP BY a.k",
    "both": "SELECT r.k, sum(r.x * s.y) AS v FROM r, s WHERE r.k = s.k GROUP BY r.k",
    "one": "SELECT sum(r.x * s.y) AS v FROM r, s",
    "difference": "SELECT r.j, sum(r.x - s.y) AS v FROM r, s GROUP BY r.j",
    "by_two": "SELECT r.k, s.j, sum(r.x * s.y * t.z) AS v FROM r, s, t GROUP BY r.k, s.j",
    "filtered": "SELECT r.j, sum(t.z) AS v FROM r, t WHERE r.x > 0 AND t.z < 3 GROUP BY r.j",
    "nested": "SELECT r.j, sum(r.x * t.z) AS v FROM r, t WHERE t.z > (SELECT avg(y) FROM s) GROUP BY r.j",
    "cube": "SELECT a.k, sum(a.x * b.x * c.x) AS v FROM r a, r b, r c WHERE a.k = b.k AND b.k = c.k GROUP BY a.k",
    "only_there": "SELECT DISTINCT r.j FROM r, t WHERE t.z > 1",
}
COMPARED = {  # a part compares with the key of the row: there was no map for it, and the view could not be made
    "behind": "SELECT r.j, sum(s.y) AS v FROM r, s WHERE r.j < s.j GROUP BY r.j",
    "next": "SELECT r.j, sum(r.x * s.y) AS v, count(*) AS n FROM r, s WHERE r.j = s.j + 1 GROUP BY r.j",
    "near": "SELECT a.k, a.j, sum(b.x) AS v FROM r a JOIN r b ON a.k = b.k AND b.j BETWEEN a.j - 1 AND a.j"
    " GROUP BY a.k, a.j",
}
KEPT = COMPARED | {
    "whole": "SELECT a.j, sum(a.n * b.n) AS v FROM r a, r b WHERE a.j = b.j GROUP BY a.j",
    "mean": "SELECT a.k, avg(a.x * b.x) AS v FROM r a, r b WHERE a.k = b.k GROUP BY a.k",
    "had": "SELECT a.k, sum(a.x * b.x) AS v FROM r a, r b WHERE a.k = b.k GROUP BY a.k HAVING sum(a.x * b.x) > 1",
    "first": "SELECT a.k, sum(a.x * b.x) AS v FROM r a, r b WHERE a.k = b.k GROUP BY a.k ORDER BY v LIMIT 2",
    "plain": "SELECT k, sum(x) AS v FROM r GROUP BY k",
}


def script(views: dict[str, str]) -> str:
    return "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};\n" for name, sql in views.items())


def events(count: int) -> list[Event]:
    """Rows that come, come twice, have NULLs, and all go again, the last ones of their groups included."""
    made: list[tuple[str, Row]] = []
    for i in range(count):
        k, x = (None if i % 7 == 3 else i % 3), (None if i % 5 == 2 else (i % 9 - 4) * 0.375)
        made.append([("r", (k, i % 2, x, i)), ("s", (k, i % 4, x)), ("t", ((i % 6) * 0.75,))][i % 11 % 3])
        if i % 8 == 1:
            made.append(made[-1])
    stream: list[Event] = []
    for i, (relation, row) in enumerate(made):
        stream.append(("+", relation, row))
        if i % 3 == 2:
            stream.append(("-", *made[i // 3]))
    stream += [("-", relation, row) for relation, row in made[len(made) // 3 :]]
    return stream


def products(program: viewlet.Program) -> set[str]:
    return {r.name for r in program.results if any(is_product(q) or "factor" in name for name, q in r.lookups)}


def test_which_views_are_multiplied_when_they_are_read() -> None:
    program = viewlet.compile(SCHEMA + script(FINISHED | KEPT))
    assert products(program) == set(FINISHED)
    assert "multiplied when a row is read" in explain(program, "square").stages["algebra"]


@pytest.mark.parametrize("start", [0, 2])
def test_products_of_readers_equal_the_referee(start: int) -> None:
    case = Case(SCHEMA, script(FINISHED), FINISHED, events(36 if start else 27))
    for watch in agree(case, [("native", "optimized"), *deal_engines(start)]).values():
        watch.check()


def test_parts_that_compare_with_the_key_equal_the_referee() -> None:
    case = Case(SCHEMA, script(COMPARED), COMPARED, events(27))
    for watch in agree(case, [("python", "optimized"), *deal_engines(1)]).values():
        watch.check()


def note(told: Counter[Any], change: tuple[int, Row]) -> None:
    told[change[1]] += change[0]


def test_changes_one_row_and_a_script_read_back() -> None:
    db = opened_natively(SCHEMA + script(FINISHED))
    told = {name: Counter[Any](db.view(name).rows()) for name in FINISHED}
    for name in FINISHED:
        db.subscribe(name, partial(note, told[name]))
    for op, relation, row in events(20):
        (db.insert if op == "+" else db.delete)(relation, row)
        for name in FINISHED:
            assert +told[name] == Counter(db.view(name).rows())
        for row in db.view("square").rows():
            assert db.view("square").get(k=row[0]) == row
    assert viewlet.Program.from_text(db.program.to_text()).to_text() == db.program.to_text()


def test_a_product_beyond_doubles_is_refused_and_comes_back() -> None:
    db = opened_natively(SCHEMA + script({"square": FINISHED["square"]}))
    db.insert("r", (1, 1, 1e200, 1))
    with pytest.raises(viewlet.Error):
        db.view("square").rows()
    db.delete("r", (1, 1, 1e200, 1))
    db.insert("r", (1, 1, 2.0, 1))
    assert db.view("square").rows() == [(1, 2.0)]


def test_an_infinity_in_a_factor_is_refused() -> None:
    db = opened_natively(SCHEMA + script({"both": FINISHED["both"]}))
    db.insert("r", (1, 1, 3.0, 1))
    with pytest.raises(viewlet.Error, match="infinity"):
        db.insert("s", (1, 1, float("inf")))
    db.insert("s", (1, 1, 2.0))
    assert db.view("both").rows() == [(1, 6.0)]
