"""Aggregates beside SUM, COUNT, AVG, MIN and MAX: each as DuckDB has it, after every event.

Where SQL leaves a choice open, the referee's query says which one is taken.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from random import Random

import pytest

from tests.engines.conformance import Case, agree
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (k INTEGER, a INTEGER, b BIGINT, p DECIMAL(8,2), x DOUBLE, s VARCHAR, f BOOLEAN,
  d DATE, n INTEGER NOT NULL);
"""
CONTESTANTS = [
    ("interpreter", "optimized"),
    ("python", "reevaluate"),
    ("python", "classical"),
    ("python", "naive"),
    ("native", "cost"),
]


def stream(seed: int, length: int) -> Iterator[Event]:
    """Few values, so that groups have ties, duplicates and NULLs; rows leave until nothing is left, and come again."""
    rng, rows = Random(seed), list[tuple[object, ...]]()
    for i in range(length):
        if rows and (rng.random() < 0.4 or length - len(rows) <= i < length * 2 // 3):
            row = rows.pop(rng.randrange(len(rows)))
            yield "-", "r", row
            continue
        row = (
            rng.choice([1, 1, 2, None]),
            rng.choice([-3, 0, 5, 5, 2**31 - 1, -(2**31), None]),
            rng.choice([-7, 0, 10**12, 10**12 + 1, None]),
            rng.choice([-1.25, 0.1, 0.1, 99999.99, None]),
            rng.choice([0.1, 0.1, -2.5, 7.25, None]),
            rng.choice(["a", "ab", "é", "", None]),
            rng.choice([True, False, None]),
            rng.choice([dt.date(1969, 1, 1), dt.date(2024, 2, 29), None]),
            rng.randrange(5),
        )
        rows.append(row)
        yield "+", "r", row


def case(views: dict[str, str], referee: dict[str, str], seed: int, length: int) -> Case:
    script = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in views.items())
    return Case(SCHEMA, script, views | referee, list(stream(seed, length)))


SUMS = {
    "filtered": "SELECT k, sum(a) FILTER (WHERE f) AS s, count(*) FILTER (WHERE a > 0) AS n, avg(x) FILTER (WHERE"
    " b < 9)"
    " AS v, min(s) FILTER (WHERE f) AS m, max(k) FILTER (WHERE a > 1) AS g, count(DISTINCT s) FILTER (WHERE f) AS c,"
    " sum(n) FILTER (WHERE n > (SELECT avg(q.n) FROM r q)) AS w FROM r GROUP BY k",
    "filtered_one": "SELECT sum(n) FILTER (WHERE s = 'a') AS s, max(d) FILTER (WHERE f) AS d, count(s) FILTER"
    " (WHERE NULL)"
    " AS z, bool_or(f) FILTER (WHERE n > 2) AS o FROM r",
    "truths": "SELECT k, bool_and(f) AS a, bool_or(a > 0) AS o, count_if(f) AS c, sum(f) AS s, sum(n > 2) AS t,"
    " sum(DISTINCT f) AS u FROM r GROUP BY k",
    "truths_one": "SELECT bool_and(n < 4) AS a, bool_or(f) AS o, count_if(a > 1) AS c FROM r",
    "distinct_all": "SELECT k, sum(DISTINCT a) AS s, avg(DISTINCT x) AS v, count(DISTINCT p) AS c, min(DISTINCT s)"
    " AS m,"
    " var_pop(DISTINCT n) AS w, count(DISTINCT (a, s)) AS t, approx_count_distinct(d) AS e FROM r GROUP BY k",
    "pairs": "SELECT count(DISTINCT (k, f)) AS t, count((k, f)) AS u, count(DISTINCT (n, n + 1)) AS v FROM r",
    "spread": "SELECT k, var_pop(n) AS a, stddev(n) AS b, var_samp(p) AS c, stddev_pop(x) AS e FROM r GROUP BY k",
    "spread_one": "SELECT var_pop(a) AS a, stddev_samp(b) FILTER (WHERE b < 100) AS b, variance(x) FILTER (WHERE"
    " f) AS c FROM r",
    "together": "SELECT k, covar_pop(n, p) AS a, covar_samp(p, n) AS b, covar_pop(x, n) AS c, corr(n, p) AS r,"
    " covar_pop(n, 3) AS e"
    " FROM r GROUP BY k",
    "lines": "SELECT k, regr_slope(n, p) AS b, regr_intercept(n, p) AS a, regr_r2(n, p) AS r, regr_sxx(p, n) AS sx,"
    " regr_syy(p, n) AS sy, regr_sxy(n, p) AS s, regr_avgx(n, p) AS x, regr_avgy(n, p) AS y, regr_count(n, p) AS c"
    " FROM r GROUP BY k",
    "over_groups": "SELECT count(*) AS n, var_pop(t.v) AS v, bool_and(t.o) AS o FROM (SELECT k, variance(n) AS v,"
    " bool_or(f) AS o FROM r GROUP BY k) t",
    "text_over_groups": "SELECT max(t.m) AS m FROM (SELECT n, min(s) AS m FROM r GROUP BY n) t",
    "ordered_sum": "SELECT k, sum(n ORDER BY a DESC) AS s FROM r GROUP BY k HAVING variance(n) > 0.5 OR bool_and(f)",
    "all_keys": "SELECT k, n + 1 AS m, 7 AS c, sum(a) AS s FROM r GROUP BY ALL",
    "all_one": "SELECT 1 AS c, sum(a) AS s FROM r GROUP BY ALL",
    "no_keys": "SELECT sum(n) AS s, count(*) AS c FROM r GROUP BY ()",
    "having_alone": "SELECT sum(n) AS s FROM r HAVING count(*) > 2",
}
PAIR = "SELECT count(DISTINCT a, s) AS t FROM r"
_COVARIANCE = "CASE WHEN abs(covar_pop(x, n)) > 1e-12 THEN covar_pop(x, n) ELSE covar_pop(x, n) * 0 END"  # of rounding
_CORRELATION = "CASE WHEN NOT isnan(corr(n, p)) THEN corr(n, p) END"
SUM_REFEREE = {"together": SUMS["together"].replace("covar_pop(x, n)", _COVARIANCE).replace("corr(n, p)", _CORRELATION)}
_SLOPE = "CASE WHEN NOT isnan(regr_slope(n, p)) THEN regr_slope(n, p) END"
SUM_REFEREE["lines"] = SUMS["lines"].replace("regr_slope(n, p)", _SLOPE)
SUM_REFEREE["pair"] = "SELECT count(DISTINCT (a, s)) FILTER (WHERE a IS NOT NULL AND s IS NOT NULL) AS t FROM r"

CHOICES = {
    "text_below": "SELECT t.k, t.m, t.g FROM (SELECT k, min(s) AS m, max(s) AS g FROM r GROUP BY k) t WHERE t.m <"
    " 'b' OR"
    " t.m IS NULL",
    "text_scalar": "SELECT n, s FROM r WHERE s = (SELECT max(q.s) FROM r q WHERE q.k = r.k)",
    "text_distinct": "SELECT DISTINCT max(s) AS m FROM r GROUP BY k",
    "text_grouped": "SELECT t.m, count(*) AS n FROM (SELECT n, min(s) AS m FROM r GROUP BY n) t GROUP BY t.m",
    "text_select": "SELECT k, count(*) AS n, (SELECT min(q.s) FROM r q WHERE q.n > 1) AS m FROM r GROUP BY k",
    "best": "SELECT k, arg_max(s, b) AS s, arg_min(n, p) AS n, max_by(f, n) AS f, min_by(d, f) AS d, arg_max(x, s)"
    " AS x FROM r"
    " GROUP BY k",
    "best_one": "SELECT arg_max(s, n) AS s, arg_min(p, d) FILTER (WHERE f) AS p FROM r",
    "best_below": "SELECT t.k, t.s, t.n FROM (SELECT k, arg_max(s, b) AS s, arg_min(n, s) AS n FROM r GROUP BY k) t",
    "first_any": "SELECT k, any_value(s) AS s, first(n) AS n, last(d) AS d FROM r GROUP BY k",
    "first_by": "SELECT k, first(s ORDER BY n) AS s, last(n ORDER BY b) AS n, first(n ORDER BY b DESC NULLS FIRST)"
    " AS m,"
    " last(a ORDER BY n DESC) AS a, any_value(s ORDER BY a) AS v FROM r GROUP BY k",
    "first_below": "SELECT t.k, t.s FROM (SELECT k, last(s ORDER BY p NULLS FIRST) AS s FROM r GROUP BY k) t",
}


def _best(x: str, y: str, end: str, where: str = "TRUE") -> str:
    """The least x of the rows with the least or greatest y."""
    rows = f"(SELECT * FROM r q WHERE q.k IS NOT DISTINCT FROM r.k AND q.{x} IS NOT NULL AND ({where})) q"
    ends = f"(SELECT {end}(q.{y}) FROM {rows})"
    return f"(SELECT min(q.{x}) FROM {rows} WHERE q.{y} = {ends})"


def _first(x: str, order: str, among: str = "TRUE") -> str:
    """The least x of the rows that come first."""
    rows = f"(SELECT * FROM r q WHERE q.k IS NOT DISTINCT FROM r.k AND ({among})) q"
    ranked = f"(SELECT q.{x} AS v, rank() OVER (ORDER BY {order}) AS p FROM {rows}) z"
    return f"(SELECT min(z.v) FROM {ranked} WHERE z.p = 1)"


_GROUPS = "FROM (SELECT DISTINCT k FROM r) r"
CHOICE_REFEREE = {
    "best": f"SELECT k, {_best('s', 'b', 'max')}, {_best('n', 'p', 'min')}, {_best('f', 'n', 'max')},"
    f" {_best('d', 'f', 'min')},"
    f" {_best('x', 's', 'max')} {_GROUPS}",
    "best_one": "SELECT (SELECT min(s) FROM r WHERE n = (SELECT max(n) FROM r WHERE s IS NOT NULL)),"
    " (SELECT min(p) FROM r WHERE f AND d = (SELECT min(d) FROM r WHERE f AND p IS NOT NULL))",
    "best_below": f"SELECT k, {_best('s', 'b', 'max')}, {_best('n', 's', 'min')} {_GROUPS}",
    "first_any": "SELECT k, min(s), min(n), min(d) FROM r GROUP BY k",
    "first_by": f"SELECT k, {_first('s', 'n')}, {_first('n', 'b DESC NULLS FIRST')},"
    f" {_first('n', 'b DESC NULLS FIRST')},"
    f" {_first('a', 'n')}, {_first('s', 'a', 'q.s IS NOT NULL')} {_GROUPS}",
    "first_below": f"SELECT k, {_first('s', 'p DESC NULLS LAST')} {_GROUPS}",
}


def _check(case: Case) -> None:
    for watch in agree(case, CONTESTANTS).values():
        watch.check()


def test_aggregates_that_are_functions_of_sums() -> None:
    _check(case(SUMS | {"pair": PAIR}, SUM_REFEREE, 1, 40))


def test_aggregates_that_choose_a_row() -> None:
    _check(case(CHOICES, CHOICE_REFEREE, 2, 40))


@pytest.mark.parametrize("select", ["var_pop(x)", "covar_pop(x, 0.1 * x)"])
def test_what_does_not_vary_has_no_variance_on_any_engine(select: str) -> None:
    """0.1 three times: the sums of such doubles and of their squares are rounded, and their difference is not 0."""
    view = f"SELECT {select} AS v, count(*) AS n FROM r"
    row = (None, None, None, None, 0.1, None, None, None, 0)
    events: list[Event] = [("+", "r", row)] * 7
    agree(Case(SCHEMA, f"CREATE MATERIALIZED VIEW v AS {view};", {"v": view}, events), CONTESTANTS)
