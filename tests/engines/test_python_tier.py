"""The Python tier: generated code that can be read, and the places where code generation goes wrong first."""

from __future__ import annotations

import pytest

import viewlet
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.python.engine import PythonEngine, python_source
from viewlet.program.lower import Lowering, Scope
from viewlet.program.nulls import is_plain, may_be_null, nullable_columns
from viewlet.schema import BIGINT, Column, Relation

R = Relation("R", (Column("a", BIGINT, nullable=False), Column("b", BIGINT, nullable=False)))
S = Relation("S", (Column("b", BIGINT, nullable=False), Column("c", BIGINT)))
STREAM = [("R", (1, 2)), ("R", (1, 1)), ("S", (2, 5)), ("S", (1, 7)), ("S", (2, 5)), ("R", (2, 2)), ("S", (1, 1))]


def run(text: str, strategy: str = "optimized") -> None:
    """The program of a query computes it, after every insertion and every deletion."""
    q = parse(text)
    program = compile_query("Q", q, (R, S), strategy)
    view = program.results[0].rows
    assert isinstance(view, View)
    engine = PythonEngine(program)
    answers = set()
    for kind, stream in (("+", STREAM), ("-", STREAM)):
        for relation, row in stream:
            engine.apply(kind, relation, row)  # type: ignore[arg-type]
            tables = {name: engine.table(name) for name in ("R", "S")}
            truth = evaluate(q, over(tables), view.outputs)
            assert engine.entries(view.name) == truth, "\n".join(engine.source.lines)
            answers.add(frozenset(truth.items()))
    assert len(answers) > 2, "the answer hardly changed: the stream proves nothing"


@pytest.mark.parametrize("strategy", ["optimized", "naive", "cost", "classical", "reevaluate"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Sum[a](R(a, b) * S(b, c) * c * c)", id="a factor twice"),
        pytest.param("Sum[](R(a, a) * S(a, c))", id="a variable twice in an atom"),
        pytest.param("Sum[](R(a, b) * S(x, c) * [a < x] * [x <= b])", id="inequality join"),
        pytest.param("Sum[a](R(a, b) * (n := Sum[b](S(b, c) * c)) * [5 < n] * n)", id="nested, correlated"),
        pytest.param("Sum[](R(a, b) * (n := Sum[](S(x, c) * c * [x > a])) * n)", id="nested, by inequality"),
        pytest.param("Sum[b](Exists(Sum[a, b](R(a, b))) * Exists(Sum[b](S(b, c))))", id="distinct"),
        pytest.param("(Sum[b](R(a, b) * a) + Sum[b](S(b, c)) * -2)", id="union with open outputs"),
        pytest.param(
            "Sum[](Sum[](R(a, b) * (n := a) * n) * Sum[](S(x, c) * (n := c) * n))", id="two locals of one name"
        ),
    ],
)
def test_a_generated_program_computes_its_query(text: str, strategy: str) -> None:
    run(text, strategy)


def test_the_source_shows_the_statement_above_its_code() -> None:
    source = "\n".join(python_source(compile_query("Q", parse("Sum[a](R(a, b) * S(b, c) * c)"), (R, S))).lines)
    assert "def fire_0(a_0, b_0):" in source
    at = source.index("# Q[][@a] += Q_S[][@b]")
    assert source[at:].splitlines()[1:3] == ["    m0_0 = VIEW_Q_S.get((b_0,))", "    if m0_0 is not None:"]


def test_columns_that_cannot_be_null_cost_nothing() -> None:
    program = compile_query("Q", parse("Sum[b](S(b, c) * [c < 3] * R(a, b))"), (R, S))
    source = "\n".join(python_source(program).lines)
    assert "if APPLY('<', (c_0, 3)):" in source, "c may be NULL"
    run("Sum[b](R(a, b) * [a < 2])")
    assert "APPLY" not in "\n".join(python_source(compile_query("Q", parse("Sum[b](R(a, b) * [a < 2])"), (R,))).lines)


def test_a_null_inside_a_term_that_cannot_be_null() -> None:
    """Regression: CASE swallows the NULL of its condition, so the term is a number and a part of it is not."""
    db = viewlet.connect(engine="python")
    db.execute("""
        CREATE STREAM s (k BIGINT NOT NULL, x BIGINT);
        CREATE MATERIALIZED VIEW v AS
          SELECT k, sum(CASE WHEN x > 1 THEN 10 ELSE 1 END) AS a, sum(COALESCE(x, 7)) AS b FROM s GROUP BY k;
    """)
    db.insert("s", [(1, None), (1, 5), (1, 0)])
    db.insert("s", (1, None))
    assert db.view("v").rows() == [(1, 13, 19)]


def test_nullability_of_terms() -> None:
    term = parse("{case((x > 1), 10, 1)}").term  # type: ignore[union-attr]
    assert not may_be_null(term, frozenset())
    assert not is_plain(term, frozenset())
    assert is_plain(term, frozenset({"x"}))


def test_a_guard_makes_a_column_solid() -> None:
    program = compile_query("Q", parse("Sum[b, c](S(b, c) * [is_null(c) = FALSE])"), (R, S))
    assert nullable_columns(program)["Q"] == (False, False)
    assert nullable_columns(program)["S"] == (False, True)


def test_lowering_refuses_what_is_not_decided() -> None:
    with pytest.raises(ValueError, match="not decided"):
        Lowering({}).change(parse("M(R(a, b))"), (), Scope(frozenset(), frozenset()))


def test_names_that_python_would_not_take() -> None:
    db = viewlet.connect(engine="python")
    db.execute("""
        CREATE STREAM "apply" ("class" BIGINT NOT NULL, "for" BIGINT, "m0_0" BIGINT, number BIGINT, delta BIGINT);
        CREATE MATERIALIZED VIEW "nonzero" AS
          SELECT "class", sum("for" * "m0_0") AS "lambda", sum(number + delta) AS "def" FROM "apply" GROUP BY "class";
    """)
    db.insert("apply", [(1, 2, 3, 4, 5), (1, 1, 1, 1, None)])
    assert db.view("nonzero").rows() == [(1, 7, 9)]
