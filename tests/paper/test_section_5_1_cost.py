"""§5.1, the cost model: cost_e, cost_m, shared views, the refresh rate, and statistics that change the choice."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import pytest

from tests.paper.notation import stream, trigger_text
from viewlet.algebra.text import parse
from viewlet.compilation import Dialect
from viewlet.compiler.cost import Estimator
from viewlet.compiler.script import Statistics, compile_query, compile_script
from viewlet.program.access import program_cost_class
from viewlet.program.trigger import Program
from viewlet.schema import Relation
from viewlet.sql.translate import translate
from viewlet.workloads.queries import PAPER_QUERIES

ORDERS = """
CREATE STREAM o (ordk BIGINT NOT NULL, custk BIGINT NOT NULL, xch BIGINT NOT NULL)
  WITH (rate=3, rows=1000, distinct_ordk=100);
CREATE STREAM li (ordk BIGINT NOT NULL, partk BIGINT NOT NULL, price BIGINT NOT NULL)
  WITH (rate=5, rows=1000, distinct_ordk=100);
"""
SALES = "CREATE MATERIALIZED VIEW a AS SELECT sum(li.price * o.xch) AS s FROM o, li WHERE o.ordk = li.ordk;"
SALES_AGAIN = "CREATE MATERIALIZED VIEW b AS SELECT sum(y.price * x.xch) AS t FROM li y, o x WHERE y.ordk = x.ordk;"
BY_PART = """CREATE MATERIALIZED VIEW c AS
    SELECT l.partk, sum(l.price * o.xch) AS s FROM o, li l WHERE o.ordk = l.ordk GROUP BY l.partk;"""


def compiled(*views: str, strategy: str = "optimized") -> Program:
    return compile_script(translate(ORDERS + "".join(views), "paper"), strategy)


# -- cost_e ------------------------------------------------------------------------------------------------------------

R = replace(stream("R", "A", "B", rows=1000), distinct=MappingProxyType({"A": 10, "B": 500}))


@pytest.mark.parametrize(
    ("q", "bound", "expected"),
    [
        ("R(A, B)", "", 1000),  # |dom(Q)|
        ("R(A, B)", "A", 100),  # the tuples with one A
        ("Sum[A](R(A, B))", "", 10 + 1000),  # the groups, and what is aggregated
        ("Sum[](R(A, B))", "", 1 + 1000),
        ("Sum[A](R(A, B))", "A", 1 + 100),
        ("Sum[](R(A, B)) * 2", "", 1 + 1000),
        ("(Sum[A](R(A, B)) + Sum[A](R(A, B) * B))", "", 2 * (10 + 1000)),
        ("R(A, B) * (n := Sum[A](R(A, C)))", "", 1000 + 1000 * 100),  # a correlated Sum once per outer tuple
    ],
)
def test_cost_e(q: str, bound: str, expected: float):
    """cost_e(Q) = |dom(Q)| + Σ |dom(Q_i)| over the Q_i nested immediately inside aggregate sums"""
    assert Estimator({"R": R}, {}).cost_e(parse(q), frozenset(bound)) == pytest.approx(expected)


# -- cost_m, cost, sharing ---------------------------------------------------------------------------------------------


def test_cost_of_example_2():
    """cost_m = Σ rate_R · cost_e(ΔQ') of every view: two lookups or constants per event; rate_refresh = Σ rate_R"""
    statistics = compiled(SALES).statistics
    assert statistics["maintenance"] == 3 * (1 + 1) + 5 * (1 + 1)
    assert statistics["refresh"] == (3 + 5) * 1
    assert statistics["total"] == 16 + 8


def test_a_view_that_another_query_keeps_costs_nothing():
    """ "The maintenance cost of a map that is already being materialized by another query is zero" """
    assert compiled(SALES, SALES_AGAIN).statistics["maintenance"] == compiled(SALES).statistics["maintenance"]
    alone = [compiled(view).statistics["maintenance"] for view in (SALES, BY_PART)]
    shared = 3 * 1  # Σ xch by order, once per event on o
    assert compiled(SALES, BY_PART).statistics["maintenance"] == sum(alone) - shared


def test_higher_order_costs_less_than_first_order_and_that_less_than_none():
    """§1: "if classical IVM is a good idea, then doing it recursively is an even better idea\""""
    costs = [
        compiled(SALES, strategy=s).statistics["maintenance"] for s in ("cost", "optimized", "classical", "reevaluate")
    ]
    assert costs == sorted(costs)
    assert costs[1] < costs[2] < costs[3]


# -- what statistics change --------------------------------------------------------------------------------------------

INEQUALITY = """
CREATE STREAM r (p BIGINT NOT NULL) WITH ({r});
CREATE STREAM s (q BIGINT NOT NULL, v BIGINT NOT NULL) WITH ({s});
CREATE MATERIALIZED VIEW w AS SELECT sum(s.v) AS t FROM r, s WHERE r.p < s.q;
"""


def chosen(r: str, s: str) -> Program:
    return compile_script(translate(INEQUALITY.format(r=r, s=s), "paper"), "cost")


def caches(program: Program) -> list[str]:
    return [v.read.text for v in program.views if v.is_cache]


def test_a_small_domain_of_the_input_variable_makes_a_view_cache():
    """Three values of p: what s has above each is kept, and an insert into r is a lookup"""
    program = chosen("distinct_p=3", "distinct_q=3000")
    assert caches(program) == ["w_sum_s[p][]"]
    assert trigger_text(program, "insert into r")[0] == "w_sum[][] += w_sum_s[@p][]"


def test_a_large_domain_has_the_input_variable_pulled_out():
    """ "view caches are only beneficial when the size of the active domain of an input variable is small" """
    program = chosen("distinct_p=3000", "distinct_q=3000")
    assert caches(program) == []
    assert trigger_text(program, "insert into r")[0] == "w_sum[][] += Sum[](w_sum_s[][s.q] * [@p < s.q])"


def test_rates_change_the_choice():
    """A cache by p is maintained by every insert into s: when those come a thousand to one it no longer pays"""
    assert caches(chosen("distinct_p=3, rate=1000", "distinct_q=3000")) == ["w_sum_s[p][]"]
    assert "w_sum_s[p][]" not in caches(chosen("distinct_p=3", "distinct_q=3000, rate=1000"))


def test_rows_change_the_choice():
    """Without a word about its columns, a relation of few rows has few values"""
    assert caches(chosen("rows=10", "rows=100000")) == ["w_sum_s[p][]"]
    assert caches(chosen("rows=100000", "rows=10")) == ["w_sum_r[q][]"]


def test_the_choice_is_the_cheapest_of_the_strategies():
    """By its own measure the cost-based program is never above the heuristic or the naive one"""
    q = parse("Sum[](R(p) * S(q, v) * [p < q] * v)")
    for p_values, q_values, rate in ((3, 3000, 1), (3000, 3000, 1), (3, 3000, 1000), (3000, 3, 1)):
        schema = (informed(stream("R", "p"), "p", p_values, 1), informed(stream("S", "q", "v"), "q", q_values, rate))
        totals = {s: compile_query("Q", q, schema, s).statistics["total"] for s in ("cost", "optimized", "naive")}
        assert totals["cost"] <= min(totals.values()) + 1e-9


def informed(relation: Relation, column: str, distinct: int, rate: int) -> Relation:
    return replace(relation, distinct=MappingProxyType({column: distinct}), rate=Fraction(rate))


@pytest.mark.parametrize("dialect", ["sql", "paper"])
@pytest.mark.parametrize("name", ["vwap", "mst", "psp", "axf", "bsp", "q22"])
def test_beyond_the_paper_a_descent_costs_its_depth(name: str, dialect: Dialect) -> None:
    """With sizes as they are, the search finds the orders that the heuristics take blindly."""
    script = translate(PAPER_QUERIES[name].script(dialect), dialect)
    book = {"rows": 100_000, "distinct": {"broker_id": 10}}
    customers = {"rows": 100_000, "distinct": {"nationkey": 25}}
    sizes: Statistics = {"customer": customers} if name == "q22" else {"bids": book, "asks": book}
    ordered, scanned = (compile_script(script, "cost", sizes, ordered=ordered) for ordered in (True, False))
    assert program_cost_class(ordered, kinds="+-") in ("O(log n)", "O(g log n)")
    assert program_cost_class(scanned, kinds="+-") not in ("O(log n)", "O(g log n)")
    assert ordered.statistics["maintenance"] < scanned.statistics["maintenance"] / 10
