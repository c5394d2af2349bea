"""A query that is twice as wide makes a program that is at most four times as long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import viewlet
from viewlet.explain import explain
from viewlet.program.trigger import Program

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


def test_a_small_star_keeps_a_map_for_each_part() -> None:
    names = {view.name for view in viewlet.compile(star(2)).views}
    assert {"q_d0_f", "q_d1_f"} <= names
