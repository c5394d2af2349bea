"""Views created over rows that are there already equal those that were there first, whichever way they start.

Each example is run on every engine, in every way that views can start from rows: late views are compared with early
ones and with their definition, and again after further events, which the views behind them must be right for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import viewlet
from tests.engines import inequality_sql, random_sql
from tests.engines.conformance import STRATEGIES, Case, apply_event, compiled_once
from tests.oracle.oracle import difference
from viewlet import Database
from viewlet.algebra.query import ZERO
from viewlet.algebra.text import parse
from viewlet.engines.initial import Tables, Way, cheapest_way, fewest_steps, nest, without
from viewlet.engines.native.build import find_compiler
from viewlet.engines.native.engine import MOST_COPIES
from viewlet.program.trigger import MapDefinition, Program
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.streams import Event, order_book, tpch

ORDERED = ("vwap", "mst", "psp", "axf", "bsp", "q22")
SOON_COMPILED = 250  # letters of SQL
STARTS: tuple[tuple[str, Way | None], ...] = (
    ("interpreter", None),
    ("python", "definitions"),
    ("python", "batches"),
    ("python", "rows"),
    *([("native", None)] if find_compiler() is not None else []),
)


@contextmanager
def going(way: Way | None) -> Iterator[None]:
    """Whatever the rows and the program, views start in this way; without one they start natively where they can."""

    def chosen(program: Program, views: Sequence[MapDefinition], tables: Tables) -> Way:
        return way or cheapest_way(program, views, tables)

    with (
        mock.patch("viewlet.engines.exact.python.engine.cheapest_way", chosen),
        mock.patch("viewlet.database.memory.WORTH_WAITING", 0) if way is None else nullcontext(),
    ):
        yield


def opened(case: Case, engine: str, strategy: str) -> Database:
    return viewlet.connect(engine=engine, strategy=strategy, dialect=case.dialect)


def load(database: Database, case: Case) -> None:
    for relation, rows in case.static.items():
        database.insert(relation, list(rows))


def follow(database: Database, events: Sequence[Event]) -> None:
    for event in events:
        apply_event(database, event)


def views_last(case: Case, engine: str, strategy: str, events: Sequence[Event]) -> Database:
    database = opened(case, engine, strategy)
    database.execute(case.schema)
    load(database, case)
    follow(database, events)
    database.execute(case.views)
    return database


def static_rows_last(case: Case, engine: str, strategy: str, events: Sequence[Event]) -> Database:
    database = opened(case, engine, strategy)
    database.execute(case.schema + case.views)
    follow(database, events)
    load(database, case)
    return database


def check_late_views(case: Case, strategy: str, starts: Sequence[tuple[str, Way | None]]) -> None:
    """Two thirds of the stream come before the views."""
    early = opened(case, "python", strategy)
    cut = len(case.events) * 2 // 3
    makers = (views_last, static_rows_last) if case.static else (views_last,)
    late: dict[str, Database] = {}
    with compiled_once():
        early.execute(case.schema + case.views)
        for engine, way in starts:
            with going(way):
                for make in makers:
                    late[f"{make.__name__} {engine} {way} {strategy}"] = make(case, engine, strategy, case.events[:cut])
    load(early, case)
    for events in (case.events[:cut], case.events[cut:]):
        follow(early, events)
        for start, database in late.items():
            if events == case.events[cut:]:
                follow(database, events)
            for view in case.selects:
                wrong = difference(database.view(view).rows(), early.view(view).rows())
                assert wrong is None, f"{view} by {start}: {wrong}"
                assert database.verify(view) == [], f"{view} by {start}"


def property_test(examples: st.SearchStrategy[Case], queries: int, start: int) -> Callable[[], None]:
    turns = iter(range(1_000_000))

    @seed(start)
    @settings(
        max_examples=queries,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=tuple(HealthCheck),
    )
    @given(examples)
    def check(case: Case) -> None:
        """Every other example has the default strategy; one that a C++ compiler is soon done with goes there, too."""
        turn = next(turns)
        strategy = "optimized" if turn % 2 else STRATEGIES[turn // 2 % len(STRATEGIES)]
        is_short = turn % 2 == 1 and len(case.views) < SOON_COMPILED
        check_late_views(case, strategy, STARTS if is_short else STARTS[:4])

    return check


def test_random_queries(seeded: int) -> None:
    property_test(random_sql.cases(), 6, 4 + seeded)()


@pytest.mark.parametrize("family", ["joins", "thresholds", "products", "totals", "memberships"])
def test_random_inequalities(family: inequality_sql.Family, seeded: int) -> None:
    property_test(inequality_sql.cases(family), 3, 4 + seeded)()


@pytest.mark.parametrize("name", ORDERED)
def test_the_inequality_queries_of_the_paper(name: str) -> None:
    query = PAPER_QUERIES[name]
    stream = (
        order_book(3, 90, live=20, brokers=3, duplicates=0.2)
        if name != "q22"
        else tpch(3, 150, live=40, relations=query.relations, duplicates=0.2)
    )
    case = Case(query.schema, query.sql(), {query.name: query.select()}, list(stream))
    check_late_views(case, "optimized", STARTS)


# -- which way ---------------------------------------------------------------------------------------------------------


def book(rows: int) -> Tables:
    return {side: {(i, i, i % 10, 1.0, float(i)): 1 for i in range(rows)} for side in ("bids", "asks")}


def way_of(name: str, rows: int, strategy: str = "optimized") -> Way:
    program = viewlet.compile(PAPER_QUERIES[name].script(), strategy=strategy)
    return cheapest_way(program, program.views, book(rows))


def test_few_rows_are_worth_no_code() -> None:
    assert {way_of(name, 2) for name in ORDERED if name != "q22"} == {"definitions"}


def test_thresholds_are_found_once_for_all_rows() -> None:
    assert [way_of(name, 1000) for name in ("vwap", "mst")] == ["batches"] * 2


def test_factors_that_readers_multiply_are_filled_by_their_definitions() -> None:
    assert way_of("psp", 1000) == "definitions"


def test_an_inequality_within_a_batch_is_no_range_of_any_map() -> None:
    assert way_of("bsp", 1000) == "rows"


def test_what_is_evaluated_anew_on_every_event_is_evaluated_once() -> None:
    assert way_of("vwap", 1000, "reevaluate") == "batches"


def test_steps_are_rows_where_triggers_are_logarithmic_and_their_square_where_they_scan() -> None:
    ordered, scanning = (
        viewlet.compile(PAPER_QUERIES["bsp"].script(), strategy=s) for s in ("optimized", "reevaluate")
    )
    assert fewest_steps(ordered, book(500)) == 1000
    assert fewest_steps(scanning, {}) <= 1
    crossed = viewlet.compile("""
        CREATE STREAM r (a BIGINT NOT NULL); CREATE STREAM s (a BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r, s WHERE abs(r.a * s.a) > r.a + s.a;
    """)
    assert fewest_steps(crossed, {"r": {(i,): 1 for i in range(500)}, "s": {(1,): 500}}) == 1_000_000


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("R(a, b)", (1, 0)),
        ("R(a, b) * S(b, c)", (1, 1)),
        ("R(a, b) * S(c, d)", (2, 0)),
        ("R(a, b) * (n := Sum[](S(c, d)))", (1, 0)),
        ("R(a, b) * (n := Sum[](S(c, d) * [c < a]))", (2, 0)),
        ("R(a, b) * (n := Sum[a](S(a, d)))", (1, 1)),
        ("R(a, b) * Sum[c](S(c, d) * T(e, c))", (2, 1)),
        ("(R(a, b) + Sum[a, b](S(a, b) * T(c, d)))", (2, 0)),
    ],
)
def test_the_loops_of_a_definition(query: str, expected: tuple[int, int]) -> None:
    assert nest(parse(query), frozenset()) == expected


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("R(a, b) * S(b, c)", "0"),
        ("(R(a, b) + S(a, b))", "S(a, b)"),
        ("S(a, b) * (n := Sum[](R(c, d))) * [n = 0]", "S(a, b) * (n := 0) * [n = 0]"),
        ("(Sum[a](R(a, b) * S(b, c)) + Sum[a](S(a, b)))", "Sum[a](S(a, b))"),
    ],
)
def test_nothing_is_joined_with_an_empty_relation(query: str, rest: str) -> None:
    assert without(parse(query), frozenset({"R"})) == parse(rest)


def test_an_empty_relation_has_no_distinct_rows() -> None:
    assert without(parse("S(a, b) * Exists(R(a, b))"), frozenset({"R"})) == ZERO


# -- all or nothing ----------------------------------------------------------------------------------------------------

WIDE = "CREATE STREAM r (i BIGINT NOT NULL, a DECIMAL(38,0) NOT NULL);"
SUM_A = "CREATE MATERIALIZED VIEW total AS SELECT sum(a) AS s FROM r;"
MOST = 10**38 - 1


@pytest.mark.parametrize(("engine", "way"), STARTS)
def test_an_overflow_refuses_the_view_and_leaves_the_rest(engine: str, way: Way | None) -> None:
    database = viewlet.connect(engine=engine)
    database.execute(WIDE + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r;")
    database.insert("r", [(1, MOST), (2, MOST)])
    with going(way), pytest.raises(viewlet.OverflowError_, match="total"):
        database.execute(SUM_A)
    assert database.view("n").rows() == [(2,)]
    with pytest.raises(viewlet.Error, match="no view total"):
        database.view("total")
    database.delete("r", (1, MOST))
    with going(way):
        database.execute(SUM_A)
    assert (database.view("n").rows(), database.view("total").rows()) == ([(1,)], [(MOST,)])


@pytest.mark.parametrize(("engine", "way"), STARTS)
def test_only_the_sum_of_all_rows_must_fit(engine: str, way: Way | None) -> None:
    database = viewlet.connect(engine=engine)
    database.execute(WIDE)
    database.insert("r", [(1, MOST), (2, MOST), (3, -MOST)])
    with going(way):
        database.execute(SUM_A)
    assert database.view("total").rows() == [(MOST,)]


@pytest.mark.parametrize(("engine", "way"), STARTS)
def test_static_rows_that_overflow_a_view_change_nothing(engine: str, way: Way | None) -> None:
    database = viewlet.connect(engine=engine, wait_native=True)
    database.execute(
        WIDE
        + """
        CREATE TABLE n (i BIGINT NOT NULL, name VARCHAR NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT n.name, sum(r.a) AS s FROM r, n WHERE r.i = n.i GROUP BY n.name;
        """
    )
    database.insert("r", [(1, MOST), (2, MOST), (2, 0)])
    database.insert("n", (1, "one"))
    before = {name: Counter(database.engine.table(name)) for name in ("r", "n")}
    with going(way), pytest.raises(viewlet.OverflowError_):
        database.insert("n", (2, "one"))
    assert {name: Counter(database.engine.table(name)) for name in ("r", "n")} == before
    assert database.view("v").rows() == [("one", MOST)]
    database.insert("n", (2, "two"))
    assert sorted(database.view("v").rows()) == [("one", MOST), ("two", MOST)]


@pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler")
def test_a_row_may_be_there_more_often_than_one_event_may_bring_it() -> None:
    database = viewlet.connect()
    database.execute("CREATE STREAM r (a BIGINT NOT NULL); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r;")
    for times in (MOST_COPIES, 3):
        database.insert("r", [(2,)] * times)
    database.execute("CREATE MATERIALIZED VIEW s AS SELECT sum(a) AS s FROM r")
    assert database.tier == "native"
    assert (database.view("n").rows(), database.view("s").rows()) == ([(MOST_COPIES + 3,)], [(2 * MOST_COPIES + 6,)])


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize("name", ["vwap", "bsp"])
def test_a_view_over_many_rows_is_there_in_seconds(name: str, engine: str) -> None:
    """Evaluated, VWAP over so many rows would take half an hour."""
    database = viewlet.connect(engine=engine)
    database.execute(PAPER_QUERIES[name].schema)
    database.insert("bids", [(i, i, i % 10, 1 + i % 7, i * 7919 % 10_007) for i in range(20_000)])
    start = time.process_time()
    database.execute(PAPER_QUERIES[name].sql())
    assert time.process_time() - start < 20
    assert len(database.view(PAPER_QUERIES[name].name).rows()) == (1 if name == "vwap" else 10)
