"""What the planner of cells decides: grids for the paper's queries, types that hash alike, what is summed and where."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import pyarrow as pa
import pytest

from viewlet.algebra.text import parse
from viewlet.cells import First, Grid, Hash, Merge, explain_grid, legal_grids, merge_of, plan
from viewlet.cells.dimensions import monomials
from viewlet.cells.plan import assemble
from viewlet.cells.routing import Routing, Term, common_type
from viewlet.cells.spread import Spread
from viewlet.compiler.script import compile_script
from viewlet.engines.native.compiled import compile_program
from viewlet.engines.native.engine import NativeEngine
from viewlet.program.trigger import Result, Script
from viewlet.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, Column, Relation, Type, decimal
from viewlet.sql import translate
from viewlet.workloads.queries import PAPER_QUERIES

TABLES = """\
CREATE STREAM r (k BIGINT NOT NULL, a BIGINT, p DECIMAL(6,2), s VARCHAR, z DOUBLE);
CREATE STREAM q (k INTEGER NOT NULL, b BIGINT NOT NULL, d DATE, f BOOLEAN);
CREATE TABLE u (k BIGINT NOT NULL, w BIGINT);
"""


def script(*views: str, tables: str = TABLES) -> Script:
    named = (f"CREATE MATERIALIZED VIEW v{i} AS {view};\n" for i, view in enumerate(views, 1))
    return translate(tables + "".join(named))


def paper(name: str, cells: int, schema: str = "") -> Grid:
    query = PAPER_QUERIES[name]
    return plan(translate((schema or query.schema) + query.sql()), cells)


def shares(grid: Grid) -> dict[str, int]:
    return {dimension.what: dimension.share for dimension in grid.dimensions}


def routes(grid: Grid) -> dict[str, list[str]]:
    return {
        copy.name: [r.column if isinstance(r, Hash) else type(r).__name__ for r in copy.routes] for copy in grid.copies
    }


def merged(script_: Script, cells: int = 4) -> tuple[Grid, Merge]:
    grid = plan(script_, cells)
    merge = merge_of(compile_script(grid.script), grid)
    assert merge is not None
    return grid, merge


# -- the paper's queries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["axf", "bsp", "bsv"])
def test_brokers_are_apart(name: str) -> None:
    grid = paper(name, 4)
    assert grid.cells == 4
    assert set(map(tuple, routes(grid).values())) == {("broker_id",)}
    assert grid.local == {name}


@pytest.mark.parametrize("name", ["vwap", "psp", "mst"])
@pytest.mark.parametrize("cells", [2, 16])
def test_what_reads_everything_for_each_row_is_one_cell(name: str, cells: int) -> None:
    grid = paper(name, cells)
    assert (grid.cells, grid.dimensions, grid.local) == (1, (), {name})
    assert "to every cell" in grid.why


def test_q3_is_whole_by_order_while_customers_are_cheap_to_copy() -> None:
    assert routes(paper("q3", 4)) == {"customer": ["All"], "orders": ["orderkey"], "lineitem": ["orderkey"]}
    assert paper("q3", 4).local == {"q3"}


def test_q3_takes_two_dimensions_when_there_are_many_cells() -> None:
    grid = paper("q3", 64)
    assert set(shares(grid).values()) == {8}
    assert sorted(routes(grid)["orders"]) == ["custkey", "orderkey"]
    assert [copy.replication for copy in grid.copies] == [8, 1, 8]
    assert not grid.local


def test_nested_aggregates_by_equality_follow_their_row() -> None:
    assert routes(paper("q17", 4)) == {"lineitem": ["partkey"], "part": ["partkey"]}
    assert routes(paper("q18", 4)) == {"customer": ["custkey"], "orders": ["custkey"], "lineitem": ["All"]}
    rates = PAPER_QUERIES["q18"].schema.replace("shipdate DATE NOT NULL)", "shipdate DATE NOT NULL) WITH (rate = 10)")
    by_order = paper("q18", 4, rates)
    assert routes(by_order) == {"customer": ["All"], "orders": ["orderkey"], "lineitem": ["orderkey"]}


def test_q22_copies_what_its_uncorrelated_aggregate_reads() -> None:
    grid = paper("q22", 4)
    assert routes(grid) == {"customer": ["custkey"], "customer_2": ["All"], "orders": ["custkey"]}
    assert [copy.columns for copy in grid.copies] == [("custkey", "nationkey", "acctbal"), ("acctbal",), ("custkey",)]


def test_q11_and_ssb4_are_summed() -> None:
    assert routes(paper("q11", 4)) == {"supplier": ["suppkey"], "partsupp": ["suppkey"]}
    ssb4 = paper("ssb4", 4)
    assert shares(ssb4) == {"customer.custkey = orders.custkey": 2, "lineitem.partkey = part.partkey": 2}
    assert routes(ssb4)["nation"] == ["All", "All"]
    assert not ssb4.local


# -- the choice --------------------------------------------------------------------------------------------------------


def test_rates_decide_what_is_copied() -> None:
    join = "SELECT SUM(r.p) FROM r, q WHERE r.a > q.b"
    busy = TABLES.replace("z DOUBLE)", "z DOUBLE) WITH (rate = 9)")
    assert routes(plan(script(join, tables=busy), 4))["q"] == ["All"]
    busy = TABLES.replace("f BOOLEAN)", "f BOOLEAN) WITH (rate = 9)")
    assert routes(plan(script(join, tables=busy), 4))["r"] == ["All"]


def test_a_column_of_few_values_makes_few_coordinates() -> None:
    few = TABLES.replace("z DOUBLE)", "z DOUBLE) WITH (distinct_k = 3)")
    select = "SELECT r.k, SUM(q.b) FROM r, q WHERE r.k = q.k GROUP BY r.k"
    assert shares(plan(script(select, tables=few), 8)) == {"q.k = r.k": 8}  # q has more of them
    few = few.replace("f BOOLEAN)", "f BOOLEAN) WITH (distinct_k = 3)")
    assert plan(script(select, tables=few), 8).cells < 8


HOT = TABLES.replace("z DOUBLE)", "z DOUBLE) WITH (hot_k = 0.3)")


def test_rows_of_a_hot_key_are_split_by_another_column_where_the_view_is_linear_in_them() -> None:
    groups = "SELECT k, COUNT(*) AS n, MIN(p) AS least FROM r GROUP BY k"
    assert routes(plan(script(groups), 8)) == {"r": ["k"]}
    grid = plan(script(groups, tables=HOT), 8)
    assert routes(grid) == {"r": ["a"]}
    assert not grid.local, "a group is in several cells now"
    assert "  r.k, one value in 0.3 of the rows: not routed by it" in explain_grid(grid)


def test_a_join_by_a_hot_key_copies_where_the_busiest_cell_then_has_less() -> None:
    """Along a dimension of its own each stream is split by something else, and the other one is copied."""
    join = "SELECT r.k, SUM(r.p * q.b) FROM r, q WHERE r.k = q.k GROUP BY r.k"
    hot = HOT.replace("f BOOLEAN)", "f BOOLEAN) WITH (hot_k = 0.3)")
    assert routes(plan(script(join, tables=hot), 4)) == {"r": ["k"], "q": ["k"]}
    assert routes(plan(script(join, tables=hot), 64)) == {"r": ["k", "All", "a"], "q": ["k", "b", "All"]}
    few = HOT.replace("f BOOLEAN)", "f BOOLEAN) WITH (rate = 0.01)")
    assert routes(plan(script(join, tables=few), 64)) == {"r": ["a", "k"], "q": ["All", "k"]}, "few rows are copied"


def test_a_hot_key_that_cannot_be_split_is_said() -> None:
    """Which rows are below the mean of their group no cell knows that has not all of the group."""
    nested = "SELECT k, COUNT(*) FROM r WHERE p < (SELECT AVG(x.p) FROM r x WHERE x.k = r.k) GROUP BY k"
    grid = plan(script(nested, tables=HOT), 64)
    assert routes(grid) == {"r": ["k"]}
    assert "r.k, one value in 0.3 of the rows: r routed by it, no other division" in explain_grid(grid)


def test_a_view_alone_takes_the_dimension_that_keeps_its_rows_whole() -> None:
    grid = plan(script("SELECT s, COUNT(*) FROM r GROUP BY s"), 4)
    assert routes(grid) == {"r": ["s"]}
    assert grid.local == {"v1"}


def test_views_share_copies_where_that_is_cheaper() -> None:
    grid = plan(script("SELECT s, COUNT(*) FROM r GROUP BY s", "SELECT r.k FROM r, q WHERE r.k = q.k"), 4)
    assert routes(grid) == {"r": ["k"], "q": ["k"]}
    assert grid.local == {"v2"}


def test_every_legal_grid_has_at_most_so_many_cells_and_the_best_is_among_them() -> None:
    pairs = script("SELECT r.s, q.f, COUNT(*) FROM r, q WHERE r.k = q.k GROUP BY r.s, q.f")
    grids = list(legal_grids(pairs, 6))
    assert {grid.cells for grid in grids} >= {1, 6}
    assert max(grid.cells for grid in grids) == 6
    assert plan(pairs, 6).copies in [grid.copies for grid in grids]


@pytest.mark.parametrize(
    ("view", "why"),
    [
        ("SELECT 1 AS k UNION ALL SELECT k FROM r", "no stream"),
        ("SELECT SUM(p) FROM r WHERE p < (SELECT AVG(p) FROM r)", "would copy r to every cell"),
    ],
)
def test_one_cell_says_why(view: str, why: str) -> None:
    grid = plan(script(view), 4)
    assert grid.cells == 1
    assert why in grid.why
    assert why in explain_grid(grid)


def test_one_cell_that_was_asked_for() -> None:
    grid = plan(script("SELECT k, COUNT(*) FROM r GROUP BY k", "SELECT COUNT(*) FROM r"), 1)
    assert (grid.cells, grid.local, grid.why) == (1, {"v1", "v2"}, "one cell was asked for")
    assert merge_of(compile_script(grid.script), grid) is None


def test_a_batch_is_summed_up_first_only_where_equal_rows_are_common() -> None:
    view = "SELECT SUM(p) FROM r WHERE p < (SELECT AVG(p) FROM r)"
    assert not plan(script(view), 4).preaggregate
    few = TABLES.replace("z DOUBLE)", "z DOUBLE) WITH (distinct_p = 100, rows = 1000)")
    grid = plan(script(view, tables=few), 4)
    assert grid.preaggregate
    assert "summed up before" in explain_grid(grid)
    many = TABLES.replace("z DOUBLE)", "z DOUBLE) WITH (distinct_p = 900, rows = 1000)")
    assert not plan(script(view, tables=many), 4).preaggregate


# -- copies ------------------------------------------------------------------------------------------------------------


def test_columns_that_nothing_reads_stay_at_home() -> None:
    grid = plan(script("SELECT x.a FROM r x, r y WHERE x.k = y.k AND y.s = 'a'", "SELECT COUNT(*) FROM q"), 2)
    columns = {copy.name: copy.columns for copy in grid.copies}
    assert columns == {"r": ("k", "a", "s"), "q": ("f",)}
    assert {r.name: tuple(c.name for c in r.columns) for r in grid.script.relations} == columns


def test_distinct_rows_keep_the_columns_that_tell_them_apart() -> None:
    grid = plan(script("SELECT COUNT(*) FROM (SELECT DISTINCT k, a FROM r) z"), 2)
    assert [copy.columns for copy in grid.copies] == [("k", "a")]


def test_a_stream_that_no_view_reads_goes_nowhere() -> None:
    assert [copy.name for copy in plan(script("SELECT k FROM q"), 2).copies] == ["q"]


def test_copies_have_names_of_their_own() -> None:
    tables = TABLES + "CREATE STREAM r_2 (k BIGINT NOT NULL);\n"
    twice = script("SELECT r.k FROM r, r_2 WHERE r.k = r_2.k AND r.p < (SELECT SUM(p) FROM r)", tables=tables)
    grid = next(g for g in legal_grids(twice, 2) if len(g.copies) == 3)
    assert {copy.name: copy.relation for copy in grid.copies} == {"r": "r", "r_3": "r", "r_2": "r_2"}
    compile_script(grid.script)


def test_a_branch_without_the_dimension_is_counted_once() -> None:
    union = script("SELECT k, COUNT(*) FROM (SELECT k FROM r UNION ALL SELECT k FROM u) z GROUP BY k")
    grid = plan(union, 4)
    assert {copy.name: copy.routes for copy in grid.copies} == {"r": (Hash("k", BIGINT),), "u": (First(),)}
    assert list(grid.routing(grid.copies[1]).cells({})) == [0]


def test_cells_are_numbered_in_mixed_radix() -> None:
    grid = paper("ssb4", 6)
    assert sorted(shares(grid).values()) == [2, 3]
    by_name = {copy.name: grid.routing(copy) for copy in grid.copies}
    assert by_name["nation"] == Routing((), (0, 1, 2, 3, 4, 5))
    first, second = (d.share for d in grid.dimensions)
    assert by_name["customer"] == Routing((Term("custkey", BIGINT, first, second),), tuple(range(second)))
    assert list(by_name["customer"].cells({("custkey", BIGINT): 7})) == [7 % first * second + i for i in range(second)]
    assert by_name["part"].offsets == tuple(i * second for i in range(first))


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ((INTEGER, BIGINT), BIGINT),
        ((BIGINT, decimal(6, 2)), decimal(38, 2)),
        ((decimal(12, 4), decimal(6, 2)), decimal(38, 4)),
        ((BIGINT, decimal(38, 30)), DOUBLE),
        ((BIGINT, DOUBLE), DOUBLE),
        ((VARCHAR, VARCHAR), VARCHAR),
        ((DATE,), DATE),
        ((BOOLEAN,), BOOLEAN),
    ],
)
def test_columns_that_may_be_equal_hash_as_one_type(types: tuple[Type, ...], common: Type) -> None:
    assert common_type(types) == common


def test_numbers_of_two_types_meet() -> None:
    grid = plan(script("SELECT r.p FROM r, q WHERE r.p = q.k"), 2)
    assert [copy.routes for copy in grid.copies] == [(Hash("p", decimal(38, 2)),), (Hash("k", decimal(38, 2)),)]


def test_views_of_two_types_share_a_dimension() -> None:
    """Each by its own column: texts need not hash like numbers that they never meet."""
    two = script("SELECT s, COUNT(*) FROM r GROUP BY s", "SELECT k, COUNT(*) FROM q GROUP BY k")
    grid = plan(two, 4)
    assert {copy.name: copy.routes for copy in grid.copies} == {"r": (Hash("s", VARCHAR),), "q": (Hash("k", BIGINT),)}
    assert grid.local == {"v1", "v2"}


PAIRS = tuple(Relation(name, (Column("c", BIGINT), Column("d", BIGINT))) for name in ("r", "q"))


def test_equal_names_in_two_sums_are_two_variables() -> None:
    rows = parse("Sum[a](r(a, k)) * Sum[b](q(b, k))")
    (monomial,) = monomials(Script(PAIRS, (Result("v", (), rows),)))
    hashed = {tuple(r.column if isinstance(r, Hash) else "" for r in split.routes) for split in monomial.splits}
    assert hashed == {("c", ""), ("", "c"), ("", "")}  # the last: all at the first coordinate


def test_a_column_that_must_equal_another_is_read() -> None:
    grid = plan(Script(PAIRS, (Result("v", (), parse("Sum[](r(a, a) * q(b, c))")),)), 2)
    assert {copy.name: copy.columns for copy in grid.copies} == {"r": ("c", "d"), "q": ("c",)}


def test_a_view_is_whole_only_where_all_its_maps_follow_one_key() -> None:
    grouped = script("SELECT a, s, SUM(k) FROM r GROUP BY a, s")
    parts = monomials(grouped)
    by_a, by_s = (tuple(next(x for x in m.splits if x.keys == {key}) for m in parts) for key in ("r.a", "r.s"))
    assert assemble(grouped, ((Spread(parts, by_a), 2),)).local == {"v1"}
    assert not assemble(grouped, ((Spread(parts, (by_a[0], *by_s[1:])), 2),)).local


# -- sums across cells -------------------------------------------------------------------------------------------------


def test_partial_values_have_types_that_hold_them() -> None:
    view = (
        "SELECT a, s, z, q.d, f, COUNT(*), SUM(p), SUM(z), SUM(q.b) FROM r, q WHERE r.k = q.k GROUP BY a, s, z, q.d, f"
    )
    grid, merge = merged(script(view))
    assert not grid.local
    keys = {str(c.type) for partial in merge.partials for c in partial.relation.columns[:-1]}
    assert keys == {"BIGINT", "VARCHAR", "DOUBLE", "BOOLEAN"}  # a date is its number
    values = {p.view: p.relation.columns[-1] for p in merge.partials}
    assert {str(c.type) for c in values.values()} == {"BIGINT", "DECIMAL(38,2)", "DOUBLE", "DECIMAL(38,0)"}
    assert not any(c.nullable for c in values.values())


def test_the_maps_of_a_row_meet_by_the_keys_they_share() -> None:
    grouped = script("SELECT a, s, MAX(q.b) FROM r, q WHERE r.k = q.k GROUP BY a, s")
    _, merge = merged(grouped)
    places = {p.view: [p.relation.columns[i].type.kind for i in p.partition] for p in merge.partials}
    assert set(map(tuple, places.values())) == {("BIGINT", "VARCHAR")}
    assert merge.single == frozenset()


def test_an_aggregate_of_everything_has_its_row_in_the_first_merge_cell() -> None:
    _, merge = merged(script("SELECT SUM(p) FROM r"))
    assert merge.single == {"v1"}
    assert {p.partition for p in merge.partials} == {()}


def test_a_having_over_everything_takes_its_groups_along() -> None:
    """One map has no key; a second view shares the groups' maps and has to follow."""
    groups = "SELECT a, SUM(q.b) FROM r, q WHERE r.k = q.k GROUP BY a"
    _, merge = merged(script(f"{groups} HAVING SUM(q.b) > (SELECT SUM(b) FROM q)", groups))
    assert merge.single == {"v1", "v2"}
    assert {p.partition for p in merge.partials} == {()}


def test_local_views_are_left_out_of_the_sum() -> None:
    grid, merge = merged(script("SELECT k, SUM(p) FROM r GROUP BY k", "SELECT SUM(p) FROM r"))
    assert grid.local == {"v1"}
    assert [r.name for r in merge.program.results] == ["v2"]
    assert all(result.columns for result in merge.program.results)


def test_sums_run_natively() -> None:
    """Decimals of 38 digits, doubles, texts, counts: to the native engine a merge program is like any other."""
    solid = TABLES.replace("p DECIMAL(6,2)", "p DECIMAL(6,2) NOT NULL").replace("z DOUBLE", "z DOUBLE NOT NULL")
    view = "SELECT s, COUNT(*) AS n, SUM(p) AS p, MAX(p) AS m, SUM(z) AS z FROM r, q WHERE r.k = q.k GROUP BY s"
    _, merge = merged(script(view, tables=solid))
    compiled = compile_program(merge.program)
    assert compiled is not None
    engine, big = NativeEngine(compiled, {}), 10**37

    def send(kind: Literal["+", "-"], values: dict[str, tuple[object, ...]]) -> list[tuple[object, ...]]:
        for partial in merge.partials:
            engine.apply(kind, partial.relation.name, values[partial.view])
        return [tuple(row.values()) for row in pa.array(engine.result("v1")).to_pylist()]

    one = {"v1": ("a", 2), "v1_sum": ("a", big), "v1_max": (150, "a", 1), "v1_sum_2": ("a", 0.1)}
    other = {"v1": ("a", 1), "v1_sum": ("a", 25 - big), "v1_max": (725, "a", 2), "v1_sum_2": ("a", 0.2)}
    send("+", one)
    assert send("+", other) == [("a", 3, Decimal("0.25"), Decimal("7.25"), 0.1 + 0.2)]
    assert send("-", one) == [("a", 1, Decimal(f"-{'9' * 35}.75"), Decimal("7.25"), 0.2)]
    assert send("-", other) == []
    assert not any(engine.entries(v.name) for v in merge.program.views)  # nor of 0.1 + 0.2 − 0.1 − 0.2 is anything left
