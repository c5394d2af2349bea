"""Columns that nobody reads leave a definition, and nothing else does."""

from __future__ import annotations

import pytest

import viewlet
from viewlet.algebra.query import Rel, atoms
from viewlet.algebra.text import parse
from viewlet.compiler.narrow import narrow
from viewlet.explain import explain

PAIRS = [
    ("Sum[a](R(a, b) * (x := Sum[](S(c))) * b)", "Sum[a](R(a, b) * b)"),
    ("Sum[a](R(a, b) * (x := {(b + 1)}) * (y := {(x + 1)}))", "Sum[a](R(a, b))"),
    ("Sum[a](R(a, b) * (x := Sum[](S(c))) * [x < b])", "Sum[a](R(a, b) * (x := Sum[](S(c))) * [x < b])"),
    ("Sum[a](R(a) * (S(a, b) * (x := b) + T(a, x)))", "Sum[a](R(a) * (S(a, b) + Sum[a](T(a, x))))"),
    ("Sum[](R(a) * (a := b) * S(b))", "Sum[](R(a) * S(b) * (a := b))"),
    ("R(a) * (x := Sum[](S(a, c) * (y := c)))", "R(a) * (x := Sum[](S(a, c)))"),
    ("Exists(Sum[a, x](R(a, b) * (x := b)))", "Exists(Sum[a, x](R(a, b) * (x := b)))"),
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_what_nobody_reads_is_left_out(before: str, after: str) -> None:
    assert narrow(parse(before)) == parse(after)


WIDE = ", ".join(f"c{i} INTEGER" for i in range(14))
SCRIPT = f"""
CREATE STREAM r ({WIDE}); CREATE STREAM s ({WIDE});
CREATE MATERIALIZED VIEW v AS SELECT c1, count(*) AS n, sum(c2) AS total FROM r
  WHERE EXISTS (SELECT * FROM s WHERE s.c1 = r.c1 AND s.c3 > 0) GROUP BY c1;
CREATE MATERIALIZED VIEW w AS SELECT count(DISTINCT c2) AS n FROM r;
"""


def test_a_column_that_no_view_reads_is_in_no_statement_and_in_every_definition() -> None:
    program = viewlet.compile(SCRIPT)
    widths = {len(a.vars) for view in program.views for a in atoms(view.definition) if isinstance(a, Rel)}
    assert widths == {14}
    assert {len(t.event.params) for t in program.triggers if t.event.params} == {14}
    assert all("@c9" not in str(s) for t in program.triggers for s in t.statements)
    assert viewlet.Program.from_text(program.to_text()).to_text() == program.to_text()
    told = explain(program)
    places = {step.place.partition(" on ")[2] for step in told.trace}
    assert places <= {"", *(str(t.event) for t in program.triggers)}


def test_a_subquery_that_is_a_value_is_cut_like_the_others() -> None:
    program = viewlet.compile(
        f"CREATE STREAM r ({WIDE}); CREATE STREAM s ({WIDE});"
        "CREATE MATERIALIZED VIEW v AS SELECT c1, (SELECT s.c2 FROM s WHERE s.c3 = 1) AS x FROM r;"
    )
    assert program.result("v").single
    assert {len(a.vars) for view in program.views for a in atoms(view.definition) if isinstance(a, Rel)} == {14}


@pytest.mark.parametrize("strategy", ["optimized", "cost", "naive", "classical", "reevaluate"])
@pytest.mark.parametrize("engine", ["interpreter", "python"])
def test_rows_that_differ_only_in_unread_columns_count_each(engine: str, strategy: str) -> None:
    db = viewlet.Database(engine=engine, strategy=strategy)
    db.execute(SCRIPT)
    rows = [(i, i % 2, i % 3, 1, *[i] * 10) for i in range(6)]
    db.insert("r", rows)
    db.insert("s", rows)
    db.delete("s", rows[:5:2])
    db.delete("r", rows[5:])
    assert db.view("v").rows() == [(1, 2, 1)]
    assert db.view("w").rows() == [(3,)]
