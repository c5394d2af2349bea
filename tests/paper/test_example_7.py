"""Example 7: second-order deltas of the query of Example 4, the naive program, and what distributivity saves.

The trigger parameters are the paper's x, y of R and z, u of S.
"""

from tests.paper.notation import simple_delta, stream, trigger_text
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import ZERO, Query, inputs
from viewlet.algebra.text import parse
from viewlet.compiler.context import Context
from viewlet.compiler.delta import delta
from viewlet.compiler.script import compile_query
from viewlet.compiler.simplify import simplify
from viewlet.compiler.strategy import NAIVE, Choice
from viewlet.compiler.transform import Compilation
from viewlet.program.text import statement_to_text
from viewlet.program.trigger import Event, Statement

SCHEMA = (stream("R", "x", "y"), stream("S", "z", "u"))
Q = parse("Sum[](R(A, B) * S(C, D) * [B = C] * A * D)")


def on_r(sign: str) -> Event:
    return Event("+" if sign == "+" else "-", "R", ("x", "y"))


def on_s(sign: str) -> Event:
    return Event("+" if sign == "+" else "-", "S", ("z", "u"))


def test_second_order_deltas():
    """Δ_{sgn_R R(x,y)} Δ_{sgn_S S(z,u)} Q = sgn_R sgn_S (if y = z then x * u else 0)"""
    for sgn_r, sgn_s, sign in (("+", "+", 1), ("+", "-", -1), ("-", "+", -1), ("-", "-", 1)):
        second = simplify(delta(delta(Q, on_s(sgn_s)), on_r(sgn_r)), Context(frozenset("xyzu")))
        assert second == (parse("[y = z] * x * u") if sign == 1 else parse("[y = z] * x * u * -1"))
        for z in (7, 8):
            value = evaluate(second, over({}), (), {"x": 2, "y": 7, "z": z, "u": 5})
            assert value == ({(): sign * 10} if z == 7 else {})


def test_no_self_join():
    """Δ_{±R} Δ_{±R} Q and Δ_{±S} Δ_{±S} Q are guaranteed to be 0"""
    assert simple_delta(Q, on_r("+"), Event("+", "R", ("x2", "y2"))) == ZERO
    assert simple_delta(Q, on_s("+"), Event("-", "S", ("z2", "u2"))) == ZERO


def naive_statement(view: str, definition: Query, event: Event) -> Statement:
    """The statement of Definition 1 for a delta that is materialised as it is, parameters and all."""
    compilation = Compilation(SCHEMA, NAIVE)
    compilation.catalog.root(view, definition, "Δ_S Q, undecided")
    statement = compilation.chosen_statement(compilation.catalog.views[view], event, Choice(NAIVE))
    assert statement is not None
    return statement


def test_naive_program():
    """foreach u do Δ_{+S(y,u)}Q[y, u] += {⟨⟩ ↦ x * u}: z is replaced by y, u is looped over"""
    first = simple_delta(Q, on_s("+"))
    assert inputs(first) == {"u"}  # z is a key of the view, u comes with the update
    statement = naive_statement("ΔSQ", first, on_r("+"))
    assert statement_to_text(statement, ("x", "y")) == "foreach u do ΔSQ[u][y] += u * x"


def test_distributivity_eliminates_the_loop():
    """𝓜(u * Sum(…)) ⇒ u * 𝓜(Sum(…)): the views have no input variable, and the triggers are those of Example 2"""
    program = compile_query("Q", Q, SCHEMA)
    assert not any(v.inputs for v in program.views)
    assert trigger_text(program, "insert into R") == ["Q[][] += Q_S[][@y] * @x", "Q_R[][@y] += @x"]
    assert trigger_text(program, "insert into S") == ["Q[][] += Q_R[][@z] * @u", "Q_S[][@z] += @u"]
    fired = program.trace.fired("leave_scalars")
    assert ("M(Sum[@z](R(A, @z) * A) * @u)", "M(Sum[@z](R(A, @z) * A)) * @u") in {(s.before, s.after) for s in fired}
