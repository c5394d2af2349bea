"""A query that is twice as wide makes a program that is at most four times as long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import viewlet
from viewlet.algebra.query import relations
from viewlet.compiler import wide
from viewlet.explain import explain
from viewlet.loops.cost_class import growth
from viewlet.program.trigger import Program
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.ssb import SSB_QUERIES

Script = Callable[[int], str]


def star(dimensions: int, shown: str = "sum(f.v) AS s") -> str:
    each = range(dimensions)
    tables = [f"CREATE STREAM d{i} (k INTEGER NOT NULL, a INTEGER NOT NULL)" for i in each]
    facts = f"CREATE STREAM f ({', '.join(f'k{i} INTEGER' for i in each)}, v INTEGER, w INTEGER)"
    joined = " AND ".join(f"f.k{i} = d{i}.k" for i in each)
    names = ", ".join(f"d{i}" for i in each)
    select = f"SELECT d0.a AS a0, d1.a AS a1, {shown} FROM f, {names} WHERE {joined} GROUP BY d0.a, d1.a"
    return ";\n".join([*tables, facts, f"CREATE MATERIALIZED VIEW q AS {select}"]) + ";"


def star_of_averages(dimensions: int) -> str:
    return star(dimensions, "avg(f.v) AS s, avg(f.w) AS t, avg(f.v * f.w) AS u")


def exists(tables: int) -> str:
    others = "".join(f"CREATE STREAM s{i} (k INTEGER);\n" for i in range(tables))
    where = " AND ".join(f"EXISTS (SELECT * FROM s{i} WHERE s{i}.k = r.k)" for i in range(tables))
    return (
        f"{others}CREATE STREAM r (k INTEGER, v INTEGER);\n"
        f"CREATE MATERIALIZED VIEW q AS SELECT sum(v) AS s FROM r WHERE {where};"
    )


def exists_of_one_table(tests: int) -> str:
    where = " AND ".join(f"EXISTS (SELECT * FROM s WHERE s.k = r.k AND s.a > {i})" for i in range(tests))
    return (
        "CREATE STREAM r (k INTEGER, v INTEGER); CREATE STREAM s (k INTEGER, a INTEGER);\n"
        f"CREATE MATERIALIZED VIEW q AS SELECT sum(v) AS s FROM r WHERE {where};"
    )


def grouped_side_by_side(subqueries: int) -> str:
    each = [f"(SELECT k, sum(v) AS s, avg(w) AS a FROM r WHERE t = {i} GROUP BY k) q{i}" for i in range(subqueries)]
    joined = " AND ".join(f"q{i}.k = q{i + 1}.k" for i in range(subqueries - 1))
    shown = ", ".join(f"q{i}.s AS s{i}, q{i}.a AS a{i}" for i in range(subqueries))
    return (
        "CREATE STREAM r (k INTEGER, t INTEGER, v INTEGER, w INTEGER);\n"
        f"CREATE MATERIALIZED VIEW q AS SELECT q0.k, {shown} FROM {', '.join(each)} WHERE {joined};"
    )


def chain(joined: int) -> str:
    """A stream joined with itself: the product rule would make 2ⁿ terms."""
    where = " AND ".join(f"r{i}.a = r{i + 1}.k" for i in range(joined - 1))
    return (
        "CREATE STREAM r (k INTEGER, a INTEGER, v INTEGER);\nCREATE MATERIALIZED VIEW q AS SELECT r0.k, sum(r0.v) AS s "
        f"FROM {', '.join(f'r r{i}' for i in range(joined))} WHERE {where} GROUP BY r0.k;"
    )


def padded_by_one_stream(joined: int) -> str:
    joins = " ".join(f"LEFT JOIN s s{i} ON r.k = s{i}.k AND s{i}.a > {i}" for i in range(joined))
    return (
        "CREATE STREAM r (k INTEGER, v INTEGER); CREATE STREAM s (k INTEGER, a INTEGER);\n"
        f"CREATE MATERIALIZED VIEW q AS SELECT s0.a, sum(v) AS s FROM r {joins} GROUP BY s0.a;"
    )


def rollup(columns: int) -> str:
    """Each set of the keys beside its rank among all sets."""
    keys = ", ".join(f"k{i}" for i in range(columns))
    return (
        f"CREATE STREAM r ({', '.join(f'k{i} INTEGER' for i in range(columns))}, v INTEGER);\n"
        f"CREATE MATERIALIZED VIEW q AS SELECT * FROM (SELECT {keys}, s, rank() OVER (PARTITION BY k0 ORDER BY s) AS n "
        f"FROM (SELECT {keys}, sum(v) AS s FROM r GROUP BY ROLLUP ({keys})) x) y WHERE n <= 3;"
    )


def groups_of_a_union(tables: int) -> str:
    """Two groups of one UNION side by side: a change of ``day`` asks which groups of all tables it is about."""
    sales = "".join(f"CREATE STREAM s{i} (d INTEGER NOT NULL, c INTEGER, x INTEGER);\n" for i in range(tables))
    rows = " UNION ".join(f"SELECT y, c, x FROM s{i} JOIN day USING (d)" for i in range(tables))
    return (
        f"CREATE STREAM day (d INTEGER NOT NULL, y INTEGER NOT NULL);\n{sales}CREATE MATERIALIZED VIEW q AS "
        f"WITH g AS (SELECT y, c, sum(x) AS s FROM ({rows}) u GROUP BY y, c) "
        "SELECT a.c, a.s, b.s AS t FROM g a JOIN g b ON a.c = b.c AND a.y = b.y + 1 WHERE a.s < b.s;"
    )


SHOWN = {"q", "q_sum", "q_count"}  # of a star, the maps that are read
SCRIPTS: tuple[Script, ...] = (star, star_of_averages, exists, exists_of_one_table, grouped_side_by_side)


def length(program: Program) -> int:
    return sum(len(str(s)) for trigger in program.triggers for s in trigger.statements)


@pytest.mark.parametrize("script", SCRIPTS)
def test_maps_grow_with_the_query_and_statements_with_its_square(script: Script) -> None:
    six, twelve = viewlet.compile(script(6)), viewlet.compile(script(12))
    assert len(twelve.views) <= 2 * len(six.views)
    assert length(twelve) <= 4 * length(six)


@pytest.mark.parametrize("script", [chain, padded_by_one_stream])
def test_a_stream_that_is_joined_with_itself_grows_with_a_power(script: Script) -> None:
    """n terms of n factors, for each of the n parts that are kept: from 4 to 8 to 12 no step is ten times."""
    four, eight, twelve = (viewlet.compile(script(n)) for n in (4, 8, 12))
    assert len(twelve.views) <= 2 * len(eight.views) <= 4 * len(four.views)
    assert length(eight) <= 8 * length(four)
    assert length(twelve) <= 27 / 8 * length(eight)


def test_each_set_of_a_rollup_is_beside_its_own_aggregates() -> None:
    """Not beside those of all sets: then a statement of one set would be as long as all of them."""
    four, eight = (viewlet.compile(rollup(n)) for n in (4, 8))
    assert len(eight.views) <= 2 * len(four.views)
    assert length(eight) <= 6 * length(four)


def test_grouped_subqueries_side_by_side_are_evaluated_once() -> None:
    six, twelve = (viewlet.compile(grouped_side_by_side(n)) for n in (6, 12))
    assert length(twelve) <= 2 * length(six)


def test_a_domain_has_no_product_for_each_two_branches_of_a_union() -> None:
    two, four = (viewlet.compile(groups_of_a_union(n)) for n in (2, 4))
    assert len(four.views) <= 2 * len(two.views)
    assert length(four) <= 2.5 * length(two)


def test_a_wide_star_goes_from_row_to_row() -> None:
    assert explain(viewlet.compile(star(8))).cost_class == "O(matches)"


def test_a_small_star_goes_from_row_to_row_where_it_would_go_over_a_slice() -> None:
    """A map of the fact with one dimension has a key that no event gives: it would be read entry by entry anyway."""
    program = viewlet.compile(star(2))
    assert all(len(relations(view.definition)) == 1 for view in program.views if view.name not in SHOWN)
    assert explain(program).cost_class == "O(matches)"


def test_a_small_star_keeps_a_map_for_each_part_that_an_event_looks_up() -> None:
    script = star(2).replace("d0.a AS a0, d1.a AS a1, ", "").replace(" GROUP BY d0.a, d1.a", "")
    assert {"q_sum_d0_f", "q_sum_d1_f"} <= {view.name for view in viewlet.compile(script).views}


def test_a_static_table_goes_with_the_stream_that_leads_to_it() -> None:
    program = viewlet.compile(PAPER_QUERIES["ssb4"].script())
    kept = {frozenset(relations(view.definition)) for view in program.views} - {
        frozenset(PAPER_QUERIES["ssb4"].relations)
    }
    streams = {frozenset(names) for names in (("orders",), ("lineitem",), ("part",))}
    assert kept == streams | {
        frozenset(("customer", "nation")),
        frozenset(("supplier", "nation")),
        frozenset(("nation",)),
    }


def test_a_star_with_a_nested_aggregate_keeps_its_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of its statements could not go from row to row, and would need the maps beside the rows."""
    script = PAPER_QUERIES["q18"].script()
    before = [view.definition for view in viewlet.compile(script).views]
    monkeypatch.setattr(wide, "LEAST_OF_A_STAR", 10_000)
    assert [view.definition for view in viewlet.compile(script).views] == before


@pytest.mark.parametrize("script", [PAPER_QUERIES["ssb4"].script(), SSB_QUERIES["q4_2"].script(), star(2), star(3)])
def test_going_from_row_to_row_makes_no_event_worse(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stars = viewlet.compile(script)
    monkeypatch.setattr(wide, "LEAST_OF_A_STAR", 10_000)
    maps = viewlet.compile(script)
    assert len(stars.views) < len(maps.views)
    for relation in stars.relations:
        assert growth(_on(stars, relation.name)) <= growth(_on(maps, relation.name))


def _on(program: Program, relation: str) -> Program:
    return replace(program, triggers=tuple(t for t in program.triggers if t.event.relation == relation))


BUSY = """
CREATE STREAM d (k INTEGER NOT NULL, a INTEGER NOT NULL) WITH (rate = {rate}, rows = 20);
CREATE STREAM e (k INTEGER NOT NULL, a INTEGER NOT NULL) WITH (rate = 0.001, rows = 1000, distinct_a = 10);
CREATE STREAM f (dk INTEGER NOT NULL, ek INTEGER NOT NULL, v INTEGER NOT NULL)
  WITH (rate = 1, rows = 1000000, distinct_dk = 20, distinct_ek = 1000);
CREATE MATERIALIZED VIEW q AS
SELECT d.a AS da, e.a AS ea, sum(f.v) AS s FROM d, e, f WHERE f.dk = d.k AND f.ek = e.k GROUP BY d.a, e.a;
"""


@pytest.mark.parametrize(("rate", "has_parts"), [(1000, True), (0.001, False)])
def test_cost_keeps_the_parts_of_a_star_for_a_busy_dimension_with_few_rows(rate: float, has_parts: bool) -> None:
    """Each of its events would go over a twentieth of the facts, which sum up to ten groups."""
    by_cost = viewlet.compile(BUSY.format(rate=rate), strategy="cost")
    assert ("q_e_f" in {view.name for view in by_cost.views}) == has_parts
    assert "q_e_f" not in {view.name for view in viewlet.compile(BUSY.format(rate=rate)).views}
