"""MIN and MAX: what they mean, how they are kept, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import viewlet
from tests.unit.test_sql_meaning import DATABASES, SCHEMA, Database, comparable, encoded, referee
from viewlet.algebra.evaluate import Entries, over
from viewlet.algebra.query import View
from viewlet.algebra.text import parse
from viewlet.algebra.verify import VerifyError
from viewlet.engines.results import result_rows
from viewlet.errors import SqlError, UnsupportedError
from viewlet.program.text import program_from_text, program_to_text
from viewlet.program.trigger import Extreme, Program, Result
from viewlet.program.verify import verify_program
from viewlet.sql import translate

AT_TOP = [
    "SELECT min(a) AS low, max(a) AS high FROM r",
    "SELECT k, min(a) AS low, max(a) AS high FROM r GROUP BY k",
    "SELECT b, min(a) AS low, max(c) AS high, count(*) AS n FROM r GROUP BY b",
    "SELECT k, min(s) AS low, max(s) AS high FROM r GROUP BY k",
    "SELECT min(d) AS first, max(d) AS last FROM r",
    "SELECT k, max(m) AS last, min(y) AS low FROM t GROUP BY k",
    "SELECT k, min(f) AS every, max(f) AS some FROM t GROUP BY k",
    "SELECT min(f) AS every, max(f) AS some, max(x > 1) AS big, min(x IS NULL) AS none FROM t",
    "SELECT k, min(a + b) AS low, max(-c) AS high, min(a / b) AS ratio FROM r GROUP BY k",
    "SELECT k, max(CASE WHEN a > 0 THEN b END) AS m, min(coalesce(a, b)) AS low FROM r GROUP BY k",
    "SELECT min(DISTINCT a) AS low, max(DISTINCT a) AS high, count(DISTINCT a) AS n FROM r",
    "SELECT k, min(k) AS same, max(k) + 1 AS next FROM r GROUP BY k",
    "SELECT a, max(a) AS same FROM r GROUP BY a",
    "SELECT a + 1 AS next, max(a + 1) AS same FROM r GROUP BY a + 1",
    "SELECT max(3) AS three, min('x') AS x, min(NULL) AS nil, max(DATE '2020-01-01') AS d FROM r",
    "SELECT min(v) AS low, max(v) AS high, min(v IS NULL) AS nil FROM nothing",
    "SELECT k, max(a) - min(a) AS spread, coalesce(min(b), -1) AS low FROM r GROUP BY k",
    "SELECT k, CASE WHEN max(a) > 1 THEN 'high' WHEN max(a) IS NULL THEN 'none' ELSE 'low' END AS w FROM r GROUP BY k",
    "SELECT k FROM r GROUP BY k HAVING min(a) < 0",
    "SELECT k, sum(b) AS total FROM r GROUP BY k HAVING max(a) > 1 OR min(s) = 'ab'",
    "SELECT k, max(a) AS high FROM r GROUP BY k HAVING high > (SELECT avg(x) FROM t)",
    "SELECT r.k, min(x) AS low, max(y) AS high FROM r, t WHERE r.k = t.k AND a > 0 GROUP BY r.k",
    "SELECT k, min(w) AS low FROM u GROUP BY k",
    "SELECT max(q.n) AS most FROM (SELECT k, count(*) AS n FROM r GROUP BY k) q",
    "SELECT max(q.total) AS most, min(q.total) AS least FROM (SELECT k, sum(a) AS total FROM r GROUP BY k) q",
    "SELECT k, min(a) AS low, (SELECT max(x) FROM t WHERE t.k = r.k) AS high FROM r GROUP BY k",
    "SELECT b, max((SELECT sum(x) FROM t WHERE t.k = r.k)) AS m FROM r GROUP BY b",
    "SELECT min((SELECT max(x) FROM t WHERE t.k < r.k)) AS m FROM r",
    "SELECT k, count(DISTINCT a + b) AS n, max(a + b) AS m, sum(DISTINCT a + b) AS s FROM r GROUP BY k",
    "SELECT max(s) AS last, k = 1 AS one FROM r GROUP BY k = 1 HAVING max(k = 1) OR min(s) < 'b'",
]
NESTED = [
    "SELECT q.m FROM (SELECT max((SELECT sum(x) FROM t WHERE t.k = r.k)) AS m FROM r GROUP BY b) q WHERE q.m > -5",
    "SELECT q.m FROM (SELECT a, min((SELECT max(x) FROM t WHERE t.k < r.k)) AS m FROM r GROUP BY a) q WHERE q.m < 5",
    "SELECT q.k, max(q.high) AS m FROM (SELECT k, a, max(b) AS high FROM r GROUP BY k, a) q GROUP BY q.k",
    "SELECT q.f, max(q.s) AS m FROM (SELECT k, max(f) AS f, sum(x) AS s FROM t GROUP BY k) q GROUP BY q.f",
    "SELECT k FROM r WHERE d IN (SELECT max(d) FROM r GROUP BY b) OR d + 1 = (SELECT min(m) FROM t)",
    "SELECT k, a FROM r WHERE a = (SELECT max(a) FROM r)",
    "SELECT k, a FROM r WHERE a > (SELECT min(x) FROM t) AND a < (SELECT max(x) FROM t)",
    "SELECT k, d FROM r WHERE d = (SELECT min(d) FROM r)",
    "SELECT k, m FROM t WHERE m < (SELECT max(m) FROM t)",
    "SELECT k, y FROM t WHERE y >= (SELECT max(y) FROM t) - 1",
    "SELECT k, c FROM r WHERE c = (SELECT min(c) FROM r)",
    "SELECT k, x FROM t o WHERE x = (SELECT max(x) FROM t i WHERE i.k = o.k)",
    "SELECT k, (SELECT min(i.x) FROM t i WHERE i.k > o.k) AS above FROM t o",
    "SELECT k, coalesce((SELECT min(x) FROM t WHERE t.k = r.k), -9) AS low FROM r",
    "SELECT k, CASE WHEN (SELECT max(x) FROM t WHERE t.k = r.k) > a THEN 1 ELSE 0 END AS w FROM r",
    "SELECT k, (SELECT max(x) - min(x) FROM t WHERE t.k = r.k) AS spread FROM r",
    "SELECT k, (SELECT max(x) FROM t WHERE t.k = r.k HAVING count(*) > 1) AS high FROM r",
    "SELECT k, (SELECT min(f) FROM t WHERE t.k = r.k) AS every FROM r",
    "SELECT k FROM r WHERE (SELECT max(f) FROM t WHERE t.k = r.k)",
    "SELECT k FROM r WHERE NOT (SELECT min(f) FROM t WHERE t.k = r.k)",
    "SELECT k FROM r WHERE (SELECT min(v) FROM nothing) IS NULL",
    "SELECT k FROM r WHERE a = (SELECT min(NULL) FROM t) IS NULL",
    "SELECT q.low, count(*) AS n FROM (SELECT k, min(a) AS low FROM r GROUP BY k) q GROUP BY q.low",
    "SELECT q.k, q.high FROM (SELECT k, max(a) AS high, min(a) AS low FROM r GROUP BY k) q WHERE q.high > q.low",
    "SELECT q.k FROM (SELECT k, sum(b) AS s FROM r GROUP BY k HAVING min(a) < 0 AND max(b) > 0) q WHERE q.s >= 0",
    "SELECT q.k, t.x FROM (SELECT k, max(a + b) AS high FROM r GROUP BY k) q, t WHERE t.k = q.k AND t.x < q.high",
    "SELECT min(q.high) AS low FROM (SELECT k, max(a) AS high FROM r GROUP BY k) q",
    "SELECT k FROM r WHERE a = (SELECT min(q.high) FROM (SELECT k, max(x) AS high FROM t GROUP BY k) q)",
    "SELECT k, a FROM r WHERE a = (SELECT max(a) FROM r WHERE a < (SELECT max(a) FROM r))",
    "SELECT max(q.total) AS m FROM (SELECT k, sum(a) AS total FROM r GROUP BY k HAVING max(a) > 0) q",
    "SELECT DISTINCT max(a) AS high FROM r GROUP BY k",
    "SELECT max(a) AS m FROM r UNION ALL SELECT min(x) FROM t",
    "SELECT k FROM r WHERE a IN (SELECT max(x) FROM t GROUP BY k)",
    "SELECT k FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.k = r.k HAVING max(x) > 0)",
    "SELECT q.m FROM (SELECT max(-c) AS m, min(a / b) AS n FROM r) q WHERE q.n IS NOT NULL",
    "SELECT q.m, q.n FROM (SELECT max(a / 3) AS m, min(-a / 7) AS n FROM r) q WHERE q.n < 9",
    "WITH q AS (SELECT k, min(y) AS low FROM t GROUP BY k) SELECT r.k, low FROM r JOIN q ON r.k = q.k WHERE low < a",
]


def answer(result: Result, database: Database) -> Counter[tuple[object, ...]]:
    """The rows by the definition, before anything is compiled."""
    entries: dict[str, Entries] = {
        name: dict(Counter(tuple(map(encoded, row)) for row in rows)) for name, rows in database.items()
    }
    answered: Counter[tuple[object, ...]] = Counter()
    for weight, row in result_rows(result, over(entries)):
        answered[tuple(comparable(v, c.type.kind) for v, c in zip(row, result.columns, strict=True))] += weight
    return answered


# in the paper's dialect a sum of nothing is no NULL, which the referee cannot say
WITHOUT_SUMS = [q for q in AT_TOP + NESTED if "sum(" not in q and "avg(" not in q]


@pytest.mark.parametrize(
    ("query", "dialect"), [(q, "sql") for q in AT_TOP + NESTED] + [(q, "paper") for q in WITHOUT_SUMS]
)
def test_the_meaning_is_duckdb_s(query: str, dialect: viewlet.compilation.Dialect) -> None:
    result = translate(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {query};", dialect).results[-1]
    seen = set[object]()
    for number, database in enumerate(DATABASES):
        expected = referee("", query, number)
        assert answer(result, database) == expected, f"\n{query}\nover {database}\n{result}"
        for row in expected:
            assert all(c.nullable or value is not None for c, value in zip(result.columns, row, strict=True))
            seen |= set(row)
    assert seen - {None} or "nothing" in query


# -- how they are kept -------------------------------------------------------------------------------------------------

STREAM = "CREATE STREAM r (k INTEGER NOT NULL, g VARCHAR, a INTEGER NOT NULL, b INTEGER, s VARCHAR, x DOUBLE);\n"


def compiled(query: str, strategy: str = "optimized") -> Program:
    return viewlet.compile(f"{STREAM}CREATE MATERIALIZED VIEW v AS {query};", strategy=strategy)


def test_one_map_of_counts_serves_min_and_max_and_is_maintained_at_once() -> None:
    program = compiled("SELECT g, min(a + b) AS low, max(b + 1) AS high, max(a + b) AS top FROM r GROUP BY g")
    (result,) = program.results
    assert [e.end for e in result.extremes] == ["least", "greatest", "greatest"]
    low, high, top = (e.query for e in result.extremes)
    assert isinstance(low, View)
    assert low == top
    assert low != high
    assert len(program.views) == 3
    assert not result.lookups
    assert viewlet.check(program.source)[0].cost_class == "O(log n)"


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("SELECT min(a) FROM r", ("min", "INTEGER", True)),
        ("SELECT max(a) FROM r GROUP BY g", ("max", "INTEGER", False)),
        ("SELECT max(b) FROM r GROUP BY g", ("max", "INTEGER", True)),
        ("SELECT min(s) FROM r", ("min", "VARCHAR", True)),
        ("SELECT min(a > 1) FROM r GROUP BY g", ("min", "BOOLEAN", False)),
        ("SELECT max(g) AS m FROM r GROUP BY g", ("m", "VARCHAR", True)),
        ("SELECT max(a * 1.5) AS m FROM r GROUP BY g", ("m", "DECIMAL(12,1)", False)),
        ("SELECT max(x * a) AS m FROM r", ("m", "DOUBLE", True)),
        ("SELECT q.m FROM (SELECT min(a) AS m FROM r GROUP BY g) q", ("m", "INTEGER", False)),
    ],
)
def test_the_type_is_the_argument_s(query: str, column: tuple[str, str, bool]) -> None:
    (shown,) = compiled(query).result("v").columns
    assert (shown.name, str(shown.type), shown.nullable) == column


@pytest.mark.parametrize("strategy", ["reevaluate", "classical", "naive", "optimized", "cost"])
def test_a_program_with_extremes_is_text_and_back(strategy: str) -> None:
    program = compiled("SELECT g, min(s) AS low, max(x) AS high FROM r GROUP BY g HAVING max(a) > 3", strategy)
    text = program_to_text(program)
    assert "extreme min := least r.s of v_min[][r.g, r.s];" in text
    assert program_from_text(text) == program
    assert program_from_text(text.replace("least", "greatest")) != program


def test_the_graph_shows_the_values_of_an_extreme() -> None:
    program = compiled("SELECT g, min(a) AS low FROM r GROUP BY g")
    assert ("view:v_min", "result:v", "shows") in [(e.source, e.target, e.kind) for e in program.graph().edges]
    assert next(n for n in program.graph().nodes if n.id == "view:v_min").kind == "result"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query": parse("nix[][r.g, r.a]")}, "least min: there is no view nix"),
        ({"key": "r.z"}, "least min: nothing gives {r.z} a value"),
        ({"key": "r.g"}, "least min: nothing gives {r.a} a value"),
        ({"query": parse("v[][r.g]"), "key": "r.g"}, "least min: r.g is a key of the row"),
        ({"var": "r.g"}, "variable r.g is there twice"),
        ({"var": "other"}, "column low: nothing gives {min} a value"),
    ],
)
def test_an_extreme_that_makes_no_sense_is_found(change: dict[str, object], says: str) -> None:
    program = compiled("SELECT g, min(a) AS low FROM r GROUP BY g")
    (result,) = program.results
    (extreme,) = result.extremes
    assert isinstance(extreme, Extreme)
    wrong = replace(result, extremes=(replace(extreme, **change),))  # type: ignore[arg-type]
    with pytest.raises(VerifyError) as caught:
        verify_program(replace(program, results=(wrong,)))
    assert says in str(caught.value)


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = [
    ("SELECT k FROM r WHERE ‸min(a) > 3", SqlError, "MIN cannot stand here", "HAVING"),
    ("SELECT max(‸max(a)) AS m FROM r", SqlError, "MAX cannot stand here", "not inside one another"),
    ("SELECT ‸k, min(a) AS m FROM r", SqlError, "neither grouped nor aggregated", "GROUP BY r.k"),
    ("SELECT min(‸nope) AS m FROM r", SqlError, "there is no column nope", "columns"),
    ("SELECT k, ‸max(a) + max(s) AS m FROM r GROUP BY k", SqlError, "cannot compute", "numbers"),
    ("SELECT ‸sum(s) AS m FROM r", SqlError, "SUM takes a number", "numeric"),
    ("SELECT ‸min() AS m FROM r", SqlError, "MIN takes one argument", "MIN(x)"),
    ("SELECT min(a, ‸3) AS m FROM r", UnsupportedError, "MIN with several arguments", "MIN(x)"),
    ("SELECT max(‸*) AS m FROM r", UnsupportedError, "* in an expression", "columns"),
    ("SELECT (SELECT max(‸r.a) FROM r q) AS m FROM r", UnsupportedError, "of the outer query only", "own FROM"),
    ("SELECT ‸skewness(a) AS m FROM r", UnsupportedError, "the aggregate SKEWNESS", "ARG_MAX"),
]


@pytest.mark.parametrize(("query", "kind", "message", "hint"), REFUSED)
def test_what_is_refused(query: str, kind: type[SqlError], message: str, hint: str) -> None:
    before, _, after = f"{STREAM}CREATE MATERIALIZED VIEW v AS {query}".partition("‸")
    with pytest.raises(SqlError) as caught:
        translate(before + after)
    error = caught.value
    assert type(error) is kind
    assert message in error.message
    assert hint in error.hint
    assert (error.line, error.column) == (2, len(before.splitlines()[1]) + 1)
