"""Example 1: count(R × S) and its deltas, maintained by nothing but additions; every row of the table of states."""

from tests.paper.notation import definitions, insertion, simple_delta, stream, trigger_text
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter

R, S = stream("R", "a"), stream("S", "b")
Q = parse("Sum[](R(a) * S(b))")
PROGRAM = compile_query("Q", Q, (R, S))

# insert into, |R|, |S|, Q, Δ_R Q, Δ_S Q
STATES = [
    ("", 2, 3, 6, 3, 2),
    ("S", 2, 4, 8, 4, 2),
    ("R", 3, 4, 12, 4, 3),
    ("S", 3, 5, 15, 5, 3),
    ("S", 3, 6, 18, 6, 3),
]


def test_first_order_views():
    """Δ_R Q = count(S) and Δ_S Q = count(R)"""
    assert definitions(PROGRAM) == {"Q[][]": "Sum[](R(a) * S(b))", "Q_S[][]": "Sum[](S(b))", "Q_R[][]": "Sum[](R(a))"}


def test_second_order_deltas_are_one():
    """Δ_R Δ_S Q = Δ_S Δ_R Q = 1, and Δ_R Δ_R Q = 0"""
    assert simple_delta(Q, insertion(S), insertion(R)).text == "1"
    assert simple_delta(Q, insertion(R), insertion(S)).text == "1"
    assert simple_delta(Q, insertion(R), insertion(R)).text == "0"


def test_only_sums():
    """Each view is refreshed by adding a view or the second-order delta: no product, no join."""
    assert trigger_text(PROGRAM, "insert into R") == ["Q[][] += Q_S[][]", "Q_R[][] += 1"]
    assert trigger_text(PROGRAM, "insert into S") == ["Q[][] += Q_R[][]", "Q_S[][] += 1"]


def test_the_table_of_states():
    engine = Interpreter(PROGRAM)
    for relation, rows in (("R", 2), ("S", 3)):
        for i in range(rows):
            engine.apply("+", relation, (i,))
    for i, (relation, *expected) in enumerate(STATES):
        if relation:
            engine.apply("+", relation, (100 + i,))
        sizes = [len(engine.table(name)) for name in ("R", "S")]
        views = [dict(engine.read(View(name, (), ()), ())).get((), 0) for name in ("Q", "Q_S", "Q_R")]
        assert sizes + views == expected, f"time point {i}"
