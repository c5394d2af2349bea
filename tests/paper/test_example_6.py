"""Example 6: the code block T_R of a query of degree 2 over R and S, and why the order of its statements matters."""

from tests.paper.notation import definitions, stream, trigger_text
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter

PROGRAM = compile_query("Q", parse("Sum[]((R(a) * R(b) + R(a) * S(b)))"), (stream("R", "a"), stream("S", "b")))


def test_views():
    """Δ_R Q = 2·count(R) + 1 + count(S) and Δ_S Q = count(R) need two views, each materialised once."""
    assert definitions(PROGRAM) == {
        "Q[][]": "(Sum[](R(a) * R(b)) + Sum[](R(a) * S(b)))",
        "Q_R[][]": "Sum[](R(a))",
        "Q_S[][]": "Sum[](S(b))",
    }


def test_t_r_reads_old_versions():
    """Q += Δ_R Q stands before Δ_R Q += Δ_R Δ_R Q, which writes what the first reads"""
    assert trigger_text(PROGRAM, "insert into R") == ["Q[][] += (Q_S[][] + Q_R[][] * 2 + 1)", "Q_R[][] += 1"]


def test_the_value_is_right_after_every_insert():
    engine, r, s = Interpreter(PROGRAM), 0, 0
    for relation in "RSRRS":
        engine.apply("+", relation, (r + s,))
        r, s = r + (relation == "R"), s + (relation == "S")
        assert engine.entries("Q").get((), 0) == r * r + r * s
