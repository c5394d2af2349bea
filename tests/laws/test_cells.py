"""For any script and any legal grid, the sum over the cells is what a single engine has, after every batch.

Cells run the whole script on their share; merge cells sum what is not whole in a cell. Scripts are the random family of
the engines' suite, the paper's queries, and those below; grids are drawn from everything that is legal, however dear,
and the one that is planned. Streams over which the answer stays empty are rejected. For many more scripts::

    python -m tests.laws.test_cells 2000 --seed 7
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from tests.engines.conformance import Case, cut
from tests.engines.random_sql import SCHEMA, cases, seeded_rows, seeded_stream
from tests.laws.cells import Cells, Disagreement, Single, compare, hash_of, random_axes, random_grid
from tests.laws.queries import SCHEMA as RELATIONS
from tests.laws.queries import databases, is_string, queries
from tests.oracle.oracle import Row, Vacuity, Vacuous
from tests.oracle.paper_streams import small_stream, static_rows
from viewlet.algebra.evaluate import Entries, evaluate, over
from viewlet.algebra.gmr import GMR
from viewlet.algebra.query import Query, outputs
from viewlet.cells import All, First, Grid, Hash, Route, plan
from viewlet.cells.dimensions import monomials
from viewlet.cells.plan import assemble
from viewlet.cells.spread import Spread
from viewlet.engines.base import Engine
from viewlet.engines.exact.interpreter import Interpreter
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Result, Script
from viewlet.schema import BIGINT, DOUBLE, VARCHAR, Column, Relation, decimal
from viewlet.sql import translate
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.streams import Event

Static = Mapping[str, Sequence[Row]]


def follow(
    script: Script, grid: Grid, events: Sequence[Event], static: Static, engine: type[Engine] = Interpreter
) -> None:
    """Batch by batch, empty ones among them; raises Vacuous where the answers prove nothing."""
    single, cells = Single(script, static), Cells(grid, static, engine)
    watches = {result.name: Vacuity() for result in script.results}
    for number, batch in enumerate(cut(events, Random(len(events)), longest=8)):
        single.apply(batch)
        cells.apply(batch)
        compare(single, cells, f"after batch {number}, {[d.what for d in grid.dimensions]}")
        for view, watch in watches.items():
            watch.watch([row[1:] for row in single.rows(view)])
    if all(map(is_vacuous, watches.values())):
        raise Vacuous("no view has rows for long enough")


def is_vacuous(watch: Vacuity) -> bool:
    return watch.empty > watch.limit * watch.seen


# -- random queries of the calculus ------------------------------------------------------------------------------------


def relations(static: bool) -> tuple[Relation, ...]:
    """Those of the random queries, T as a static table or not."""
    return tuple(
        Relation(name, tuple(Column(c, VARCHAR if is_string(c) else DOUBLE) for c in columns), static and name == "T")
        for name, columns in RELATIONS.items()
    )


def shares(grid: Grid, database: Mapping[str, GMR]) -> list[dict[str, Entries]]:
    """What each cell has of a database."""
    cells: list[dict[str, Entries]] = [{copy.name: {} for copy in grid.copies} for _ in range(grid.cells)]
    for copy in grid.copies:
        routing, columns = grid.routing(copy), RELATIONS[copy.relation]
        for row, times in database[copy.relation].entries.items():
            named = dict(zip(columns, row, strict=True))
            read = tuple(named[c] for c in copy.columns)
            for cell in routing.cells({(t.column, t.type): hash_of(named[t.column], t.type) for t in routing.terms}):
                cells[cell][copy.name][read] = cells[cell][copy.name].get(read, 0) + times
    return cells


@given(queries(), databases(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=300, suppress_health_check=(HealthCheck.filter_too_much,))
def test_a_query_is_the_sum_of_its_cells(q: Query, database: dict[str, GMR], static: bool, rng: Random) -> None:
    """Q(D) = Σ Q over the cells' shares of D; where a view is local, each key is in one cell."""
    script = Script(relations(static), (Result("v", (), q),))
    grid = assemble(script, random_axes(script, rng, rng.choice((1, 1, 2))))
    names = tuple(sorted(outputs(q)))
    whole = evaluate(q, over({name: dict(gmr.entries) for name, gmr in database.items()}), names)
    assume(grid.cells > 1 and whole)
    (rows,) = (result.rows for result in grid.script.results)
    assert rows is not None
    parts = [evaluate(rows, over(share), names) for share in shares(grid, database)]
    keys = Counter(key for part in parts for key in part)
    assert {key: m for key in keys if (m := sum(part.get(key, 0) for part in parts)) != 0} == whole
    assert not grid.local or set(keys.values()) == {1}


# -- random scripts ----------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    drawn: int = 0
    divided: int = 0


def prove(case: Case, tally: Tally) -> None:
    script = translate(case.schema + case.views)
    rng = Random(case.views)
    tally.drawn += 1
    grids = [plan(script, 4), random_grid(script, rng, dimensions=rng.choice((1, 1, 2)))]
    assume(grids[1].cells > 1)
    for grid in grids:
        try:
            follow(script, grid, case.events, case.static, rng.choice((Interpreter, PythonEngine)))
        except (Vacuous, Unfit):
            assume(False)
    tally.divided += 1


def property_test(scripts: int, start: int, tally: Tally) -> Callable[[], None]:
    @seed(start)
    @settings(
        max_examples=scripts,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    @given(cases())
    def check(case: Case) -> None:
        prove(case, tally)

    return check


def test_random_scripts_are_the_sum_of_their_cells(seeded: int) -> None:
    tally = Tally()
    property_test(8, 1 + seeded, tally)()
    assert tally.divided >= 8


# -- scripts that are given --------------------------------------------------------------------------------------------

VIEWS = {
    "a self-join, routed apart": "SELECT x.k, SUM(y.p) FROM r x, r y WHERE x.a = y.k GROUP BY x.k",
    "a self-join that drops columns": "SELECT x.a, COUNT(*) FROM r x, r y WHERE x.a = y.a GROUP BY x.a",
    "a union of two streams": "SELECT k, a FROM r UNION ALL SELECT k, b FROM q",
    "a union with a static table": "SELECT k, COUNT(*) FROM (SELECT k FROM r UNION ALL SELECT k FROM u) z GROUP BY k",
    "a join with a union": "SELECT t.s, COUNT(*) FROM t, (SELECT k FROM r UNION ALL SELECT b FROM q) z WHERE t.k = z.k "
    "GROUP BY t.s",
    "a static table that counts a stream": "SELECT k FROM u WHERE 2 > (SELECT COUNT(*) FROM r WHERE r.k = u.k)",
    "a union with a static table, joined": "SELECT z.k, COUNT(*) FROM (SELECT k FROM r UNION ALL SELECT k FROM u) z, q "
    "GROUP BY z.k",
    "a nested aggregate by equality": "SELECT SUM(r.p) FROM r WHERE r.a < (SELECT COUNT(*) FROM q WHERE q.k = r.k)",
    "a nested aggregate over everything": "SELECT k, SUM(a) FROM r WHERE p < (SELECT SUM(x) FROM t) GROUP BY k",
    "nested twice": "SELECT k FROM r WHERE 0 < (SELECT COUNT(*) FROM q WHERE q.k = r.k AND q.b >= "
    "(SELECT COUNT(*) FROM t WHERE t.k = q.k))",
    "IN and EXISTS": "SELECT r.s, COUNT(*) FROM r WHERE r.a IN (SELECT b FROM q) OR EXISTS "
    "(SELECT 1 FROM t WHERE t.k = r.k) GROUP BY r.s",
    "MIN and MAX": "SELECT a, MIN(p), MAX(s), COUNT(*) FROM r GROUP BY a",
    "MIN and MAX of all": "SELECT MIN(x), MAX(d) FROM t",
    "MAX of all": "SELECT MAX(p) FROM r",
    "texts of a join": "SELECT r.a, STRING_AGG(q.b, ',' ORDER BY r.p, q.b), MAX(q.b) FROM r, q WHERE r.k = q.k "
    "GROUP BY r.a",
    "lists of all": "SELECT LIST(x ORDER BY d, x), LIST(DISTINCT k ORDER BY k) FROM t",
    "HAVING": "SELECT a, SUM(p) FROM r GROUP BY a HAVING COUNT(*) > 1 AND SUM(k) > 0",
    "HAVING of another stream": "SELECT a, SUM(p) FROM r GROUP BY a HAVING COUNT(*) < (SELECT COUNT(*) FROM q)",
    "AVG": "SELECT s, AVG(p), AVG(a) FROM r GROUP BY s",
    "DISTINCT": "SELECT DISTINCT r.a, q.b FROM r, q WHERE r.k = q.k",
    "COUNT(DISTINCT)": "SELECT k, COUNT(DISTINCT a), COUNT(*) FROM r GROUP BY k",
    "DISTINCT in FROM": "SELECT COUNT(*) FROM (SELECT DISTINCT k, a FROM r) z",
    "all columns DISTINCT": "SELECT COUNT(*) FROM (SELECT DISTINCT * FROM q) z",
    "two keys": "SELECT a, s, SUM(p), COUNT(p) FROM r GROUP BY a, s",
    "groups in FROM": "SELECT z.n, COUNT(*) FROM (SELECT a, COUNT(*) AS n FROM r GROUP BY a) z GROUP BY z.n",
    "NULL keys": "SELECT t.k, r.a, COUNT(*) FROM r JOIN t ON r.k = t.k OR r.a IS NULL GROUP BY t.k, r.a",
    "numbers of two types": "SELECT t.x, COUNT(*) FROM t JOIN r ON t.x = r.k GROUP BY t.x",
    "a lookup beside": "SELECT a, COUNT(*), (SELECT SUM(b) FROM q WHERE q.k = r.a) FROM r GROUP BY a",
    "a lookup of a static table": "SELECT k, COUNT(*), (SELECT SUM(w) FROM u WHERE u.k = r.k) FROM r GROUP BY k",
    "a lookup by another number": "SELECT p, COUNT(*), (SELECT SUM(b) FROM q WHERE q.k = r.p) FROM r GROUP BY p",
    "rows counted only": "SELECT COUNT(*) FROM r, q WHERE r.k = q.k AND r.s = 'a'",
    "a cross product": "SELECT COUNT(*), SUM(r.p * q.b) FROM r, q",
}


def given_script(*views: str) -> Script:
    named = (f"CREATE MATERIALIZED VIEW v{i} AS {view};\n" for i, view in enumerate(views, 1))
    return translate(SCHEMA + "".join(named))


def with_hot_keys(script: Script) -> Script:
    """Most rows share one value of each k, a and s: the planner divides by other columns where it may."""
    hot = {name: Fraction(4, 5) for name in ("k", "a", "s")}
    declared = (replace(r, hot={name: part for name, part in hot.items() if r.column(name)}) for r in script.relations)
    return replace(script, relations=tuple(declared))


@pytest.mark.parametrize("name", VIEWS)
def test_given_scripts_are_the_sum_of_their_cells(name: str) -> None:
    script, rng = given_script(VIEWS[name]), Random(name)
    events, static = seeded_stream(rng, 60), {"u": seeded_rows(rng, "u", 4)}
    drawn = [random_grid(script, rng, dimensions) for dimensions in (1, 1, 2)]
    assert all(grid.cells > 1 for grid in drawn)
    grids = [plan(script, 6), plan(with_hot_keys(script), 12), *drawn]
    for grid in grids:
        follow(script, grid, events, static)


def test_all_of_them_in_one_grid() -> None:
    """Copies, maps and merge cells are shared by views that want them otherwise."""
    script, rng = given_script(*VIEWS.values()), Random(1)
    events, static = seeded_stream(rng, 24), {"u": seeded_rows(rng, "u", 4)}
    grid = random_grid(script, rng, dimensions=1)
    assert grid.cells > 1
    follow(script, grid, events, static)


def test_a_view_that_reads_nothing_is_for_one_cell() -> None:
    script, rng = given_script("SELECT 1 AS k UNION ALL SELECT k FROM r"), Random(1)
    assert random_axes(script, rng, 1) == ()
    follow(script, plan(script, 4), seeded_stream(rng, 30), {})


@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_the_papers_queries_are_the_sum_of_their_cells(name: str) -> None:
    query, rng = PAPER_QUERIES[name], Random(name)
    script, events = translate(query.script()), list(small_stream(query, seed=5, events=110))
    for grid in (plan(script, 4), random_grid(script, rng, dimensions=1)):
        follow(script, grid, events, static_rows(query), PythonEngine)


# -- rules that are broken: these tests can fail ----------------------------------------------------------------------

K, P = Hash("k", BIGINT), Hash("p", decimal(38, 2))


@dataclass(frozen=True)
class Break:
    """A view, the legal routes of its copies along one dimension, and one copy that goes another way."""

    view: str
    legal: Mapping[str, Route]
    copy: str
    broken: Route


BROKEN = {
    "a nested aggregate that is not whole": Break(
        "SELECT k, SUM(p) FROM r WHERE a < (SELECT COUNT(*) FROM q) GROUP BY k", {"r": K, "q": All()}, "q", K
    ),
    "DISTINCT over rows that do not meet": Break(
        "SELECT COUNT(*) FROM (SELECT DISTINCT k FROM r) z", {"r": K}, "r", Hash("p", decimal(6, 2))
    ),
    "a join whose partners do not meet": Break(
        VIEWS["a self-join, routed apart"], {"r": Hash("a", BIGINT), "r_2": K}, "r_2", Hash("a", BIGINT)
    ),
    "a branch that every cell counts": Break(VIEWS["a union of two streams"], {"r": K, "q": First()}, "q", All()),
    "a product that every cell counts": Break(VIEWS["a cross product"], {"r": K, "q": All()}, "r", All()),
    "equal numbers that hash apart": Break(
        "SELECT r.p, COUNT(*) FROM r JOIN q ON r.p = q.k GROUP BY r.p", {"r": P, "q": replace(P, column="k")}, "q", K
    ),
}


def grid_with(script: Script, legal: Mapping[str, Route]) -> Grid:
    """The legal grid of four cells whose copies are routed so."""
    wanted = {(name.split("_")[0], way(route)) for name, route in legal.items()}
    parts = monomials(script)
    splits = (
        next(s for s in m.splits if {(a.name, way(r)) for a, r in zip(m.atoms, s.routes, strict=True)} <= wanted)
        for m in parts
    )
    grid = assemble(script, ((Spread(parts, tuple(splits)), 4),))
    assert {copy.name: copy.routes for copy in grid.copies} == {name: (route,) for name, route in legal.items()}
    return grid


def way(route: Route) -> Route | str:
    return route.column if isinstance(route, Hash) else route


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_route_gives_a_wrong_sum(name: str) -> None:
    case, rng = BROKEN[name], Random(2)
    script, events = given_script(case.view), seeded_stream(rng, 60)
    legal = grid_with(script, case.legal)
    follow(script, legal, events, {})
    copies = tuple(replace(c, routes=(case.broken,)) if c.name == case.copy else c for c in legal.copies)
    with pytest.raises(Disagreement):
        follow(script, replace(legal, copies=copies), events, {})


def test_what_is_finished_before_the_sum_is_wrong() -> None:
    """HAVING of partial counts, and a group that several cells have."""
    script, events = given_script(VIEWS["HAVING"]), seeded_stream(Random(2), 60)
    legal = grid_with(script, {"r": K})
    assert not legal.local
    follow(script, legal, events, {})
    (whole,), (part,) = script.results, legal.script.results
    hasty = replace(legal.script, results=(replace(part, columns=whole.columns, having=whole.having),))
    with pytest.raises(Disagreement):
        follow(script, replace(legal, script=hasty, local=frozenset({"v1"})), events, {})


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Random scripts on random grids, for as long as you like.")
    arguments.add_argument("scripts", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    given_arguments = arguments.parse_args()
    total = Tally()
    property_test(given_arguments.scripts, given_arguments.seed, total)()
    print(f"{total.divided} scripts are the sum of their cells, of {total.drawn} drawn")
