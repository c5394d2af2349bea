"""The Python tier: generated code that can be read, and the places where code generation goes wrong first."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from random import Random

import pytest

import viewlet
from viewlet.algebra.evaluate import evaluate, over
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.compiler.script import compile_query
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.loops.lower import Lowering, Scope
from viewlet.loops.nulls import is_plain, may_be_null, nullable_columns
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program, Trigger
from viewlet.schema import BIGINT, Column, Relation, decimal
from viewlet.workloads.queries import PAPER_QUERIES

R = Relation("R", (Column("a", BIGINT, nullable=False), Column("b", BIGINT, nullable=False)))
S = Relation("S", (Column("b", BIGINT, nullable=False), Column("c", BIGINT)))
STREAM = [("R", (1, 2)), ("R", (1, 1)), ("S", (2, 5)), ("S", (1, 7)), ("S", (2, 5)), ("R", (2, 2)), ("S", (1, 1))]


def python_source(program: Program) -> str:
    engine = PythonEngine(program)
    return "\n".join(line for trigger in program.triggers for line in engine.source(trigger).lines)


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
            assert engine.entries(view.name) == truth, python_source(program)
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
    source = python_source(compile_query("Q", parse("Sum[a](R(a, b) * S(b, c) * c)"), (R, S)))
    assert source.splitlines()[:3] == ["def fire(ROW):", "    'on +R(@a, @b)'", "    a_0, b_0 = ROW"]
    at = source.index("# Q[][@a] += Q_S[][@b]")
    assert source[at:].splitlines()[1:4] == [
        "    T_1 = (b_0,)",
        "    m0_0 = GET_VIEW_Q_S(T_1)",
        "    if m0_0 is not None:",
    ]


def test_columns_that_cannot_be_null_cost_nothing() -> None:
    program = compile_query("Q", parse("Sum[b](S(b, c) * [c < 3] * R(a, b))"), (R, S))
    source = python_source(program)
    assert "if c_0 is not None and c_0 < 3:" in source, "c may be NULL"
    run("Sum[b](R(a, b) * [a < 2])")
    assert "APPLY" not in python_source(compile_query("Q", parse("Sum[b](R(a, b) * [a < 2])"), (R,)))


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


# -- scaled integers ---------------------------------------------------------------------------------------------------

SCALES = """
CREATE STREAM r (k INTEGER NOT NULL, p DECIMAL(8,2), q DECIMAL(10,4) NOT NULL, x DOUBLE, b BOOLEAN, t VARCHAR, d DATE);
CREATE STREAM s (p DECIMAL(9,4), x DOUBLE NOT NULL, k BIGINT NOT NULL);
CREATE MATERIALIZED VIEW sums AS
  SELECT k, sum(p) AS a, sum(p * q) AS b, sum(p + q) AS c, sum(p - 0.5) AS d, sum(x) AS e, sum(x * p) AS f, avg(p) AS g
  FROM r GROUP BY k;
CREATE MATERIALIZED VIEW tests AS
  SELECT count(*) AS n FROM r WHERE p < q AND q > 0.125 AND NOT (p = 1 OR x > q + 1) AND x / 3 < p;
CREATE MATERIALIZED VIEW keyed AS SELECT p, x, b, t, d, count(*) AS n FROM r GROUP BY p, x, b, t, d;
CREATE MATERIALIZED VIEW matched AS SELECT r.p, sum(r.q * s.x) AS v FROM r, s WHERE r.p = s.p GROUP BY r.p;
CREATE MATERIALIZED VIEW ranges AS SELECT r.k, sum(s.p) AS v FROM r, s WHERE r.q > s.p AND s.k < r.p GROUP BY r.k;
CREATE MATERIALIZED VIEW chosen AS
  SELECT t, sum(CASE WHEN b THEN p WHEN x > 1 THEN q ELSE 3 END) AS v, sum(COALESCE(p, q)) AS w,
         sum(CASE WHEN p > 1 THEN x ELSE p END) AS y FROM r GROUP BY t;
CREATE MATERIALIZED VIEW nested AS
  SELECT r.k, count(*) AS n FROM r WHERE r.p * 2 > (SELECT sum(s.p) FROM s WHERE s.k = r.k) GROUP BY r.k;
CREATE MATERIALIZED VIEW either AS SELECT p FROM r UNION ALL SELECT p FROM s;
CREATE MATERIALIZED VIEW apart AS SELECT DISTINCT p, x FROM s WHERE NOT EXISTS (SELECT * FROM r WHERE r.p = s.p);
"""
SCALE_VIEWS = ("sums", "tests", "keyed", "matched", "ranges", "chosen", "nested", "either", "apart")


def scale_events(n: int, seed: int) -> list[tuple[str, str, tuple[object, ...]]]:
    """Few values, so that they meet: numbers that are equal in another scale, NULL, doubles that are no decimals."""
    rng, there, events = Random(seed), list[tuple[str, tuple[object, ...]]](), []
    money = ["0.5", "1", "1.25", "-2.00", None]
    for _ in range(n):
        if len(there) > 12 or (there and rng.random() < 0.3):
            events.append(("-", *there.pop(rng.randrange(len(there)))))
            continue
        p, q, x = rng.choice(money), rng.choice(["0.5", "0.1250", "1.2501", "7"]), rng.choice([0.1, 2.0, 1.25, -0.0])
        if rng.random() < 0.5:
            flag, text = rng.choice([True, False, None]), rng.choice(["a", "é", None])
            day = dt.date(2024, 1, rng.randint(1, 2))
            there.append(("r", (rng.randrange(3), p, q, rng.choice([x, None]), flag, text, day)))
        else:
            there.append(("s", (rng.choice([p, "1.2501"]), x, rng.randrange(3))))
        events.append(("+", *there[-1]))
    return events


@pytest.mark.parametrize("strategy", ["optimized", "naive", "classical", "reevaluate"])
def test_numbers_of_all_scales_are_those_of_the_interpreter(strategy: str) -> None:
    events, seen = scale_events(80, seed=len(strategy)), dict[str, set[str]]()
    engines = ("python", "python", "interpreter")
    by_row, by_batch, truth = (viewlet.connect(engine=engine, strategy=strategy) for engine in engines)
    for db in (by_row, by_batch, truth):
        db.execute(SCALES)
    for i, (op, relation, row) in enumerate(events):
        for db in (by_row, truth):
            (db.insert if op == "+" else db.delete)(relation, row)
        (by_batch.insert if op == "+" else by_batch.delete)(relation, [row, row])
        if i % 3 == 0:
            (by_batch.delete if op == "+" else by_batch.insert)(relation, [row, row])
            (by_batch.insert if op == "+" else by_batch.delete)(relation, [row, row])
        for view in SCALE_VIEWS:
            expected = sorted(truth.view(view).rows(), key=repr)
            assert sorted(by_row.view(view).rows(), key=repr) == expected, (view, i, op, relation, row)
            seen.setdefault(view, set()).add(repr(expected))
    assert min(map(len, seen.values())) > 2, "the answers hardly changed: the stream proves nothing"
    assert [by_batch.verify(view) for view in SCALE_VIEWS] == [[]] * len(SCALE_VIEWS)


def test_code_is_over_integers() -> None:
    program = viewlet.compile(SCALES)
    code = python_source(program)
    assert "p_0 * 100 < q_0" in code, "scales are aligned when the code is written"
    assert "q_0 > 1250" in code, "0.125 in the scale of q"


# -- what no code is written for ---------------------------------------------------------------------------------------


def test_code_is_written_when_a_trigger_first_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Trigger] = []
    source = PythonEngine.source
    monkeypatch.setattr(PythonEngine, "source", lambda self, t: written.append(t) or source(self, t))
    with viewlet.connect(engine="python") as db:
        db.execute("CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM r;")
        assert written == []
        db.insert("r", (1,))
        db.insert("r", (2,))
        assert [t.event.kind for t in written] == ["+"]
        db.insert("r", [(1,), (2,)])
        assert [t.event.kind for t in written] == ["+", "Δ"]
        assert db.view("v").rows() == [(6,)]


def test_a_program_that_no_kinds_fit_is_evaluated() -> None:
    """A product of four numbers with ten digits after the point has more than the 38 that kinds go to."""
    columns = Column("k", BIGINT, nullable=False), Column("a", decimal(20, 10), nullable=False)
    program = compile_query("Q", parse("Sum[k](T(k, a) * a * a * a * a)"), (Relation("T", columns),))
    engine, truth = PythonEngine(program), Interpreter(program)
    with pytest.raises(Unfit):
        engine.source(program.triggers[0])
    for each in (engine, truth):
        each.apply("+", "T", (1, 12_345_678_901))
        each.apply_bulk("T", {(1, 5): 2, (2, -1): 1})
        each.apply("-", "T", (1, 5))
    assert engine.entries("Q") == truth.entries("Q")
    assert engine.entries("Q")[2,] == Fraction(1, 10**40)
    assert engine.table("T") == {(1, 12_345_678_901): 1, (1, 5): 1, (2, -1): 1}


def test_more_loops_than_python_nests_are_evaluated() -> None:
    relations = "".join(f"CREATE STREAM r{i} (a BIGINT NOT NULL);" for i in range(23))
    joined = ", ".join(f"r{i}" for i in range(23))
    with viewlet.connect(engine="python", strategy="classical") as db:
        db.execute(f"{relations} CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM {joined};")
        for i in range(23):
            db.insert(f"r{i}", (i,))
        assert db.view("v").rows() == [(1,)]
        db.insert("r0", [(1,), (2,)])
        assert db.view("v").rows() == [(3,)]


def test_a_cache_is_not_filled_from_views_that_are_half_refreshed() -> None:
    """Regression: fused into one loop, the first row was in the volumes from which the second one filled a cache."""
    query = PAPER_QUERIES["bsp"]
    with viewlet.connect(engine="python", strategy="naive") as db:
        db.execute(query.script())
        for start in range(0, 60, 6):
            rows = [(float(t), t, t % 2, 1.0 + t % 3, 10.0 + t % 5) for t in range(start, start + 6)]
            db.insert("bids", rows)
            assert db.verify("bsp") == []


def test_nan_is_refused_and_says_who_takes_it() -> None:
    for engine in ("python", "interpreter"):
        with viewlet.connect(engine=engine) as db:
            db.execute("CREATE STREAM r (x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM r;")
            for value in (float("nan"), float("inf")):
                with pytest.raises(viewlet.DataError, match="only the native engine takes them"):
                    db.insert("r", (value,))
                with pytest.raises(viewlet.DataError, match=r"r\.x, row 1: .* only the native engine takes them"):
                    db.apply([("+", "r", (1.0,)), ("+", "r", [value])])
            assert db.engine.table("r") == {}
