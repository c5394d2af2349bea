"""check: for each view, can it be maintained, at what cost, and what is wrong."""

from __future__ import annotations

import pytest

import viewlet
from viewlet.check import Finding, check
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES

STREAM = "CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);\n"
GOOD = "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r;\n"
FAR = "CREATE MATERIALIZED VIEW far AS SELECT count(*) AS n FROM r x, r y WHERE abs(x.a - y.b) > 3;\n"
BAD = "CREATE MATERIALIZED VIEW top AS SELECT skewness(a) AS m FROM r;\n"


def test_a_good_view() -> None:
    (checked,) = check(STREAM + GOOD)
    assert (checked.view, checked.maintainable, checked.cost_class, checked.findings) == ("n", True, "O(1)", ())


@pytest.mark.parametrize(
    ("select", "cost"),
    [
        ("SELECT b, min(a) AS m FROM r GROUP BY b", "O(log n)"),
        ("SELECT max(a) - min(a) AS m FROM r", "O(log n)"),
        ("SELECT x.a, max(y.a) AS m FROM r x, r y WHERE x.a = y.b GROUP BY x.a", "O(matches log n)"),
        ("SELECT b, max(b) AS m FROM r GROUP BY b", "O(1)"),
        ("SELECT max(a > 1) AS m FROM r", "O(1)"),
    ],
)
def test_min_and_max_keep_an_order(select: str, cost: str) -> None:
    """docs/sql.md: a count, and its place in an order; a group's own key and booleans need none."""
    script = f"{STREAM}CREATE MATERIALIZED VIEW v AS {select};"
    assert check(script)[0].cost_class == cost
    program = viewlet.connect(engine="interpreter")
    program.execute(script)
    assert program.explain("v").cost_class == cost


def test_a_view_that_scans_is_maintainable_with_a_finding() -> None:
    (checked,) = check(STREAM + FAR)
    assert (checked.maintainable, checked.cost_class) == (True, "O(n)")
    assert any("no key is bound" in f.message for f in checked.findings)


def test_a_refused_view_says_construct_place_and_hint_and_hides_no_other() -> None:
    top, n = check(STREAM + BAD + GOOD)
    assert (top.view, top.maintainable, top.cost_class) == ("top", False, None)
    (finding,) = top.findings
    assert (finding.construct, finding.line, finding.column) == ("the aggregate SKEWNESS", 2, 40)
    assert "SUM, COUNT, AVG, MIN, MAX, BOOL_AND, VARIANCE, ARG_MAX, FIRST and their like" in finding.hint
    assert str(finding) == f"line 2, column 40: the aggregate SKEWNESS is not supported (hint: {finding.hint})"
    assert n == check(STREAM + GOOD)[0]


def test_all_that_is_refused_in_a_view_is_listed() -> None:
    """In the order of the text: clauses, operands of refused functions, subqueries, both sides of a UNION."""
    script = (
        STREAM
        + """CREATE MATERIALIZED VIEW v AS
SELECT corge(foo(r.a)) AS h, skewness(r.b) AS m, nope AS z
FROM r POSITIONAL JOIN r y ON grault(y.a) = 1
WHERE r.a > 0 AND zap(r.b) = 1 AND EXISTS (SELECT 1 FROM r w WHERE w.a = baz(r.a) LIMIT 1)
GROUP BY h HAVING skewness(r.a) > 3 ORDER BY h
UNION SELECT qux(a), b, a FROM r;
"""
    )
    (checked,) = check(script)
    assert [(f.line, f.construct or f.message) for f in checked.findings] == [
        (3, "the function CORGE"),
        (3, "the function FOO"),
        (3, "the aggregate SKEWNESS"),
        (3, "there is no column nope"),
        (4, "POSITIONAL JOIN"),
        (4, "the function GRAULT"),
        (5, "the function ZAP"),
        (5, "the function BAZ"),
        (6, "the aggregate SKEWNESS"),
        (7, "the function QUX"),
    ]
    with pytest.raises(viewlet.SqlError) as caught:
        viewlet.compile(script)
    assert caught.value.message in {f.message for f in checked.findings}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT foo(b) AS x, skewness(r.a) AS m FROM r, r y WHERE zap(r.a) = 1",
            ["the function FOO", "column b is ambiguous", "the aggregate SKEWNESS", "the function ZAP"],
        ),
        ("SELECT foo(r.a) AS x, count(*) AS n FROM r, r y GROUP BY b", ["the function FOO", "column b is ambiguous"]),
        (
            "SELECT d + INTERVAL '1 day 02:03' AS x, foo(a) AS y FROM r WHERE d > d - INTERVAL '1 day ago'",
            ["INTERVAL '1 day 02:03'", "the function FOO", "INTERVAL '1 day ago'"],
        ),
        ("SELECT d + INTERVAL '1' h AS x, foo(a) AS y FROM r", ["h, a name, for the unit", "the function FOO"]),
        ("SELECT d + INTERVAL '1/2' DAY AS x, foo(a) AS y FROM r", ["INTERVAL '1/2' is not", "the function FOO"]),
    ],
)
def test_neither_an_ambiguous_name_in_a_group_nor_an_interval_hides_the_rest(query: str, expected: list[str]) -> None:
    stream = "CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL, d DATE);\n"
    (checked,) = check(f"{stream}CREATE MATERIALIZED VIEW v AS {query};")
    assert len(checked.findings) == len(expected)
    for finding, message in zip(checked.findings, expected, strict=True):
        assert finding.message.startswith(message)


def test_a_function_that_duckdb_computes_hides_no_refusal() -> None:
    (checked,) = check(
        "CREATE STREAM r (s VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT md5(s) AS m, foo(s) AS f FROM r;"
    )
    assert [finding.construct for finding in checked.findings] == ["the function FOO"]


def test_what_comes_of_a_refusal_is_no_refusal() -> None:
    """A date that is refused is not besides a thing that no INTERVAL can be added to."""
    script = STREAM + "CREATE MATERIALIZED VIEW v AS SELECT sum(foo(a) + INTERVAL '1' DAY) AS s FROM r GROUP BY foo(a);"
    (checked,) = check(script)
    assert [f.construct for f in checked.findings] == ["the function FOO", "the function FOO"]


def test_each_view_is_priced_alone() -> None:
    both = check(FINANCE + PAPER_QUERIES["vwap"].sql() + PAPER_QUERIES["bsv"].sql())
    assert [(c.view, c.cost_class, c.findings) for c in both] == [("vwap", "O(log n)", ()), ("bsv", "O(1)", ())]


def test_several_things_wrong_in_one_script() -> None:
    script = (
        STREAM
        + BAD
        + "CREATE MATERIALIZED VIEW typo AS SELECT aa FROM r; "
        + GOOD
        + "CREATE MATERIALIZED VIEW e AS SELECT;"
    )
    checked = {c.view: c for c in check(script)}
    assert [c.maintainable for c in checked.values()] == [False, False, True, False]
    assert list(checked) == ["top", "typo", "n", "e"]
    (finding,) = checked["typo"].findings
    assert (finding.line, finding.column, finding.construct) == (3, 41, "")
    assert "did you mean" in finding.hint


def test_a_view_over_a_refused_one_is_refused_for_that() -> None:
    _, over = check(STREAM + BAD + "CREATE MATERIALIZED VIEW over_top AS SELECT sum(m) AS m FROM top;")
    (finding,) = over.findings
    assert not over.maintainable
    assert finding.message == "it reads top, which cannot be maintained"
    assert finding.line == 3


def test_comments_quotes_and_semicolons_in_strings_do_not_confuse_it() -> None:
    script = (
        STREAM
        + "-- CREATE MATERIALIZED VIEW ghost AS; not this one\n"
        + BAD.replace("skewness(a)", "skewness('a;b')")
        + GOOD
    )
    assert [(c.view, c.maintainable) for c in check(script)] == [("top", False), ("n", True)]


def test_a_view_defined_twice_is_refused_once() -> None:
    first, second = check(STREAM + GOOD + GOOD)
    assert first.maintainable
    assert not second.maintainable
    assert "twice" in second.findings[0].message


@pytest.mark.parametrize(
    "script", ["CREATE STREAM r (a HUGEINT);", "SELECT 1;", "CREATE STREAM r (a BIGINT) 'x", STREAM + "'"]
)
def test_what_is_wrong_outside_a_view_is_an_error(script: str) -> None:
    with pytest.raises(viewlet.SqlError):
        check(script + GOOD)


def test_dialect_and_strategy_are_taken() -> None:
    script = PAPER_QUERIES["vwap"].script()
    assert check(script, dialect="paper")[0].maintainable
    with pytest.raises(viewlet.Error, match="no strategy 'best'"):
        check(script, strategy="best")


def test_a_script_without_views() -> None:
    assert check(STREAM) == []


def test_a_finding_without_a_place() -> None:
    assert str(Finding("scans r")) == "scans r"
