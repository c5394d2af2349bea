"""ASOF JOIN equals DuckDB's after every event, and costs what moves."""

from __future__ import annotations

from random import Random

import pytest

import viewlet
from tests.engines.conformance import CONTESTANTS, STRATEGIES, Case, agree
from tests.oracle.oracle import Row
from viewlet.loops.cost_class import statement_access
from viewlet.program.trigger import Program
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM a (s INTEGER, t INTEGER, x INTEGER NOT NULL);
CREATE STREAM b (s INTEGER, t INTEGER, p INTEGER);
CREATE STREAM u (s INTEGER NOT NULL, t INTEGER NOT NULL, p INTEGER NOT NULL, PRIMARY KEY (s, t));
"""
UNIQUE = {
    "unshown": "SELECT a.x, u.p FROM a ASOF JOIN u ON a.s = u.s AND a.t >= u.t",
    "left_using": "SELECT * FROM a ASOF LEFT JOIN u USING (s, t)",
    "after": "SELECT a.x, a.t, u.p FROM a ASOF LEFT JOIN u ON a.s = u.s AND a.t < u.t - 1",
    "grouped": "SELECT a.s, sum(u.p) AS p, count(*) AS n FROM a ASOF JOIN u ON u.s = a.s AND u.t < a.t GROUP BY a.s",
    "ungrouped": "SELECT sum(a.x * u.p) AS p, count(*) AS n FROM a ASOF JOIN u ON u.s = a.s + 1 AND u.t >= a.t + 1",
}
MORE = {
    "itself": "SELECT x.s, x.t, y.t AS y, y.p FROM u x ASOF JOIN u y ON x.s = y.s AND x.t > y.t",
    "no_key": "SELECT a.x, b.t, b.p FROM (SELECT DISTINCT t, x FROM a) a"
    " ASOF JOIN (SELECT t, max(p) AS p FROM b GROUP BY t) b ON a.t <= b.t",
    "twice": "SELECT a.x, u.p, v.p AS q FROM a ASOF LEFT JOIN u USING (s, t) ASOF LEFT JOIN u v"
    " ON a.s = v.s AND a.t < v.t",
    "moved": "SELECT a.x, m.p FROM a ASOF JOIN (SELECT s, t + 1 AS t, p FROM u WHERE p > 1) m USING (s, t)",
    "inside": "SELECT x FROM a WHERE x < 2 + (SELECT count(*) FROM b ASOF JOIN u ON b.s = u.s AND b.t > u.t"
    " WHERE b.t = a.t)",
}
TIES = {
    "ties": ("ASOF JOIN", "JOIN", "a.t >= b.t", "b.t DESC"),
    "left_ties": ("ASOF LEFT JOIN", "LEFT JOIN", "a.t < b.t", "b.t"),
}  # of rows that tie DuckDB takes any; here it is the least one


def tied(name: str) -> tuple[str, str]:
    ours, theirs, condition, order = TIES[name]
    on = f"b ON a.s = b.s AND {condition}"
    each = "(SELECT *, row_number() OVER () AS i FROM a) a"
    first = f"QUALIFY row_number() OVER (PARTITION BY i ORDER BY {order}, b.p) = 1"
    return f"SELECT a.x, b.t, b.p FROM a {ours} {on}", f"SELECT a.x, b.t, b.p FROM {each} {theirs} {on} {first}"


def drawn(seed: int, count: int) -> list[Event]:
    """Few places, so that rows tie, stand between others and have NULLs; those of ``u`` have a key."""
    rng, there, events = Random(seed), list[tuple[str, Row]](), list[Event]()
    while len(events) < count:
        if there and rng.random() < 0.35:
            relation, row = there.pop(rng.randrange(len(there)))
            events.append(("-", relation, row))
            continue
        relation = rng.choice("aabuu")
        last = rng.randint(0, 4)
        row = (rng.randint(0, 1), rng.randint(0, 9), last)
        if relation != "u":
            s, t, p = (None if rng.random() < 0.1 else value for value in row)
            row = (s, t, last if relation == "a" else p)
        if relation != "u" or not any(r == "u" and other[:2] == row[:2] for r, other in there):
            there.append((relation, row))
            events.append(("+", relation, row))
    return events


def case(views: dict[str, str], seed: int, events: int = 60) -> Case:
    pairs = {name: (select, select) for name, select in views.items()} | {name: tied(name) for name in TIES}
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {ours};\n" for name, (ours, _) in pairs.items())
    return Case(SCHEMA, script, {name: theirs for name, (_, theirs) in pairs.items()}, drawn(seed, events))


def test_each_row_meets_the_last_before_it(seeded: int, soaking: bool) -> None:
    usual = [("native", "optimized"), ("interpreter", "optimized"), ("python", STRATEGIES[seeded % len(STRATEGIES)])]
    for view in agree(case(UNIQUE, 2 + seeded), CONTESTANTS if soaking else usual).values():
        view.check()


def test_what_has_more_than_one_relation_beside_it(seeded: int, soaking: bool) -> None:
    contestants = CONTESTANTS if soaking else [("python", "optimized")]
    for view in agree(case(MORE, 5 + seeded), contestants).values():
        view.check()


INTERVALS = {
    "near": "SELECT a.x, b.p FROM a JOIN b ON a.s = b.s AND a.t BETWEEN b.t - 2 AND b.t",
    "near_left": "SELECT a.x, a.t, u.p FROM a LEFT JOIN u ON a.s = u.s AND u.t < a.t + 1 AND u.t > a.t - 3",
    "near_counts": "SELECT b.p, count(*) AS n FROM a JOIN b ON a.s = b.s AND a.t BETWEEN b.t - 2 AND b.t GROUP BY b.p",
}


def test_rows_that_are_near_meet(seeded: int, soaking: bool) -> None:
    contestants = CONTESTANTS if soaking else [("python", "optimized"), ("interpreter", "cost")]
    for view in agree(case(INTERVALS, 8 + seeded), contestants).values():
        view.check()
    checks = {c.view: c.cost_class for c in viewlet.check(SCHEMA + case(INTERVALS, 0).views)}
    assert checks["near"] == checks["near_counts"] == "O(matches)"


# -- what it costs -----------------------------------------------------------------------------------------------------

COSTS = """
CREATE STREAM trades (id INTEGER NOT NULL, sym INTEGER NOT NULL, t INTEGER NOT NULL);
CREATE STREAM quotes (sym INTEGER NOT NULL, t INTEGER NOT NULL, p INTEGER NOT NULL, PRIMARY KEY (sym, t));
CREATE MATERIALIZED VIEW v AS SELECT x.id, q.p FROM trades x {join} quotes q USING (sym, t);
"""


def classes(program: Program, relation: str) -> set[str]:
    triggers = [t for t in program.triggers if t.event.relation == relation and t.event.kind in "+-"]
    return {statement_access(s, t.event, program).cost_class for t in triggers for s in t.statements}


@pytest.mark.parametrize("join", ["ASOF JOIN", "ASOF LEFT JOIN"])
def test_an_event_costs_the_rows_that_move(join: str) -> None:
    program = viewlet.compile(COSTS.format(join=join))
    assert classes(program, "trades") == {"O(1)", "O(log n)"}
    assert classes(program, "quotes") == {"O(1)", "O(matches log n)"}
    assert not any({"id", "p"} <= {name.rpartition(".")[2] for name in v.outputs} for v in program.views[1:])


def test_rows_that_move_are_found_in_order() -> None:
    """A quote among a hundred thousand takes over the trades up to the next one, and no other row is looked at."""
    program = viewlet.compile(COSTS.format(join="ASOF JOIN"))
    (insert,) = (t for t in program.triggers if t.event.relation == "quotes" and t.event.kind == "+")
    paths = [path for s in insert.statements for _, path in statement_access(s, insert.event, program).paths]
    assert set(paths) <= {"range", "range sum", "threshold", "extremum", "lookup"}


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = {
    "ASOF RIGHT JOIN b ON a.s = b.s AND a.t >= b.t": "ASOF RIGHT JOIN is not supported",
    "ASOF JOIN b ON a.s = b.s": "this ASOF JOIN has 0 inequalities, not one",
    "ASOF JOIN b ON a.t > b.t AND a.x < b.p": "this ASOF JOIN has 2 inequalities, not one",
    "ASOF JOIN b ON a.t > b.t AND b.p > 3": "this condition of an ASOF JOIN is not supported",
    "ASOF JOIN b ON a.t > b.t OR a.s = b.s": "this condition of an ASOF JOIN is not supported",
    "ASOF JOIN b ON a.t > b.t AND a.s <> b.s": "this condition of an ASOF JOIN is not supported",
}


@pytest.mark.parametrize("join", REFUSED)
def test_other_conditions_are_refused(join: str) -> None:
    with pytest.raises(viewlet.SqlError, match="ASOF") as caught:
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT a.x FROM a {join};")
    assert REFUSED[join] in str(caught.value)
