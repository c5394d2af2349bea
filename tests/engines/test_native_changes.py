"""What a native engine tells of changes comes to what is there, after every batch, at the cost of what changed."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import viewlet
from tests.engines.conformance import cut
from tests.engines.random_sql import SCHEMA, Writer, seeded_rows, seeded_stream
from tests.engines.watched import Follower, apply, compiled, engine_of, load_static, told, watching
from viewlet.algebra.query import join
from viewlet.algebra.terms import Op, Var
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.emit.program import native
from viewlet.engines.native.engine import NativeEngine, Watched
from viewlet.errors import Error, OverflowError_
from viewlet.program.kinds import Unfit
from viewlet.program.trigger import Program
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH
from viewlet.workloads.streams import NATION, TPCH_STREAMS, Event, order_book, tpch

SALES = """
CREATE STREAM sales (id BIGINT NOT NULL, shop VARCHAR, price DECIMAL(10,2) NOT NULL, weight DOUBLE, day DATE);
CREATE TABLE shops (shop VARCHAR NOT NULL, city VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW per_shop AS
  SELECT shop, SUM(price) AS sum, AVG(price) AS mean, MAX(price) AS most, MIN(day) AS first, SUM(weight) AS weight
  FROM sales GROUP BY shop HAVING COUNT(*) > 1;
CREATE MATERIALIZED VIEW cheap AS SELECT shop, weight FROM sales WHERE price < 5;
CREATE MATERIALIZED VIEW distinct_days AS SELECT DISTINCT day FROM sales;
CREATE MATERIALIZED VIEW in_all AS SELECT SUM(price) AS sum, MIN(weight) AS least, COUNT(*) AS n FROM sales;
CREATE MATERIALIZED VIEW per_city AS
  SELECT city, SUM(price) AS sum FROM sales, shops WHERE sales.shop = shops.shop GROUP BY city;
CREATE MATERIALIZED VIEW above AS
  SELECT shop, price FROM sales WHERE price * 2 > (SELECT MAX(s.price) FROM sales AS s);
"""


@pytest.fixture(scope="module")
def sales() -> Compiled:
    return compiled(SALES)


def sale(id: int, shop: str | None, price: str, weight: float | None = None, day: str | None = None) -> tuple[Any, ...]:
    return id, shop, price, weight, day


# -- streams -----------------------------------------------------------------------------------------------------------


def paper(schema: str, dialect: Any = "sql") -> str:
    """Half of the paper's queries in one script, so that they are one program."""
    return schema + "".join(q.sql(dialect) for q in PAPER_QUERIES.values() if q.schema == schema)


def paper_events(schema: str, seed: int, events: int) -> list[Event]:
    if schema == FINANCE:
        return list(order_book(seed, events, brokers=3, live=12, duplicates=0.05, session=150))
    return list(tpch(seed, events, live=12, duplicates=0.05, delete_from=TPCH_STREAMS))


def follow(made: Compiled, events: list[Event], static: dict[str, Any], rng: Random) -> Follower:
    follower, engine = Follower(made), engine_of(made)
    load_static(engine, made.program, {name: rows[:1] for name, rows in static.items()})
    follower.look(engine)
    for number, batch in enumerate(cut(events, rng, 12)):
        apply(engine, batch)
        if number == 3:
            load_static(engine, made.program, {name: rows[1:] for name, rows in static.items()})
        follower.look(engine)
    return follower


@pytest.mark.parametrize("schema", [FINANCE, TPCH], ids=["finance", "tpch"])
def test_the_papers_queries(schema: str) -> None:
    static = {} if schema == FINANCE else {"nation": NATION}
    follower = follow(compiled(paper(schema)), paper_events(schema, 3, 400), static, Random(5))
    assert all(follower.most.values()), follower.most


@pytest.mark.parametrize("strategy", ["reevaluate", "naive"])
def test_views_that_are_replaced_or_cached(strategy: str) -> None:
    made = compiled(FINANCE + PAPER_QUERIES["vwap"].sql() + PAPER_QUERIES["mst"].sql(), strategy)
    assert all(follow(made, paper_events(FINANCE, 4, 150), {}, Random(6)).most.values())


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Several random views, so that the compiler runs once for all of them."""
    writer, views = Writer(draw), ""
    for number in range(1, 7):
        body, columns = writer.body()
        views += f"CREATE MATERIALIZED VIEW v{number} AS {body};\n"
        writer.remember(f"v{number}", columns)
    return viewlet.compile(SCHEMA + views)


@settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(programs(), st.randoms(use_true_random=False))
def test_random_queries(program: Program, rng: Random) -> None:
    try:
        made = watching(program)
    except Unfit:
        return
    follow(made, seeded_stream(rng, 120), {"u": seeded_rows(rng, "u", 3)}, rng)


# -- rows --------------------------------------------------------------------------------------------------------------


def changes(engine: NativeEngine, result: str) -> set[tuple[Any, ...]]:
    return set(told(engine.changes(result)))


def test_a_fresh_engine_tells_all_rows_and_then_what_changed(sales: Compiled) -> None:
    engine = engine_of(sales)
    assert changes(engine, "in_all") == {(1, None, None, 0)}
    engine.state.many("sales", 1, [sale(1, "a", "1"), sale(2, "a", "3")])
    assert changes(engine, "in_all") == {(-1, None, None, 0), (1, 4, None, 2)}
    assert changes(engine, "in_all") == set()
    later = engine_of(sales, {"sales": engine.table("sales")})
    assert changes(later, "in_all") == {(1, 4, None, 2)}


def test_columns_have_their_types_and_a_weight_before_them(sales: Compiled) -> None:
    engine = engine_of(sales)
    engine.state.many("sales", 1, [sale(1, "a", "1", 0.5, "2024-02-29"), sale(2, "a", "3")])
    told_type, shown = pa.array(engine.changes("per_shop")).type, pa.array(engine.result("per_shop")).type
    assert told_type.field(0).equals(pa.field("weight", pa.int64(), nullable=False))
    assert list(told_type)[1:] == list(shown)


def test_a_row_that_is_there_several_times(sales: Compiled) -> None:
    engine = engine_of(sales)
    engine.state.many("sales", 1, [sale(1, "a", "1", 1.0), sale(2, "a", "2", 1.0), sale(3, None, "1", None)])
    assert changes(engine, "cheap") == {(2, "a", 1.0), (1, None, None)}
    engine.state.many("sales", -1, [sale(1, "a", "1", 1.0), sale(3, None, "1", None)])
    assert changes(engine, "cheap") == {(-1, "a", 1.0), (-1, None, None)}


def test_what_comes_and_goes_between_two_questions_is_not_told(sales: Compiled) -> None:
    engine = engine_of(sales)
    engine.state.many("sales", 1, [sale(1, "a", "1"), sale(2, "a", "2")])
    before = {name: told(engine.changes(name)) for name in sales.watched.results}
    assert len(before["per_shop"]) == 1
    for _ in range(2):  # erased and made again
        engine.state.many("sales", -1, [sale(1, "a", "1"), sale(2, "a", "2")])
        engine.state.many("sales", 1, [sale(2, "a", "2"), sale(1, "a", "1")])
    engine.state.one("sales", 1, sale(7, "z", "1"))
    engine.state.one("sales", -1, sale(7, "z", "1"))
    assert all(told(engine.changes(name)) == [] for name in sales.watched.results)


def test_two_keys_that_show_the_same_row() -> None:
    made = compiled("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW sums AS SELECT SUM(b) AS s FROM r GROUP BY a;""")
    engine = engine_of(made)
    engine.state.many("r", 1, [(1, 5), (2, 7)])
    assert changes(engine, "sums") == {(1, 5), (1, 7)}
    engine.state.many("r", 1, [(1, 2), (2, -2)])
    assert changes(engine, "sums") == set()
    engine.state.many("r", 1, [(3, 7), (4, 7)])
    assert changes(engine, "sums") == {(2, 7)}


def test_nan_infinity_zeros_and_null(sales: Compiled) -> None:
    follower, engine = Follower(sales), engine_of(sales)
    odd = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, None]
    for number, weight in enumerate(odd * 2):
        engine.state.one("sales", 1, sale(number, "a" if number % 2 else None, "1", weight))
        follower.look(engine)
    for number, weight in enumerate(odd * 2):
        engine.state.one("sales", -1, sale(number, "a" if number % 2 else None, "1", weight))
        follower.look(engine)
    assert not follower.rows["per_shop"]


def test_texts_that_are_gone_are_still_told(sales: Compiled) -> None:
    """The id of a text that is in no row any more goes to another, but not before somebody was told."""
    follower, engine = Follower(sales), engine_of(sales)
    for number in range(20):
        rows = [sale(i, f"shop {number} {i % 3}", "2") for i in range(9)]
        engine.state.many("sales", 1, rows)
        follower.look(engine)
        for row in rows:  # the last one forgets texts, and the next interns others
            engine.state.one("sales", -1, row)
        engine.state.one("sales", 1, sale(0, f"other {number}", "2"))
        engine.state.one("sales", -1, sale(0, f"other {number}", "2"))
        follower.look(engine)
        assert engine.memory()[-1][1] == 0


# -- entries -----------------------------------------------------------------------------------------------------------


def test_an_entry_is_told_with_what_it_was_and_what_it_is(sales: Compiled) -> None:
    engine = engine_of(sales)
    view = next(v for v in sales.watched.views if v.startswith("per_shop_sum"))
    count = "per_shop"
    assert told(engine.partials(view)) == []
    engine.state.many("sales", 1, [sale(1, "a", "1.50"), sale(2, None, "2")])
    partials = pa.array(engine.partials(view))
    assert [f.name for f in partials.type] == ["weight", "k0", "value"]
    assert [f.type for f in partials.type] == [pa.int64(), pa.string(), pa.decimal128(38, 2)]
    assert set(told(engine.partials(count))) == {(1, "a", 1), (1, None, 1)}
    engine.state.one("sales", -1, sale(1, "a", "1.50"))
    engine.state.one("sales", 1, sale(1, None, "1.50"))
    assert set(told(engine.partials(count))) == {(-1, "a", 1), (-1, None, 1), (1, None, 2)}


def test_kinds_of_keys_and_values_have_their_types() -> None:
    made = compiled("""
        CREATE STREAM r (a BIGINT NOT NULL, b DECIMAL(20,3), c DOUBLE NOT NULL, d DATE, e TIMESTAMP, f BOOLEAN);
        CREATE MATERIALIZED VIEW v AS SELECT b, c, d, e, f, SUM(a * a) AS s, SUM(c) AS m, COUNT(*) AS n
        FROM r GROUP BY b, c, d, e, f;""")
    engine = engine_of(made)
    engine.state.one("r", 1, (1, "2.5", 0.1, "1970-01-02", "1970-01-01 00:00:01", True))
    keys = [pa.decimal128(38, 3), pa.float64(), pa.int64(), pa.int64(), pa.bool_()]
    values = {name: pa.array(engine.partials(name)) for name in made.watched.views}
    assert all([f.type for f in partial.type][1:-1] == keys for partial in values.values())
    last = {partial.type.field(partial.type.num_fields - 1).type for partial in values.values()}
    assert last == {pa.int64(), pa.float64(), pa.decimal128(38, 0)}
    assert [tuple(partial.to_pylist()[0].values())[3:6] for partial in values.values()] == [(1, 1_000_000, True)] * 3


def test_a_value_of_more_than_38_digits_is_no_other_number() -> None:
    script = """CREATE STREAM r (a BIGINT NOT NULL, b DECIMAL(38,0) NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, AVG(b) AS mean FROM r GROUP BY a;"""
    program = viewlet.compile(script)
    view = next(v.name for v in program.views if "sum" in v.name)
    engine = engine_of(watching(program, Watched(views=(view,))))
    engine.state.many("r", 1, [(1, 8 * 10**37)] * 2)
    with pytest.raises(OverflowError_, match=f"{view}.*38 digits"):
        engine.partials(view)
    engine.state.one("r", -1, (1, 8 * 10**37))
    assert told(engine.partials(view)) == [(1, 1, 8 * 10**37)]


# -- all views built anew ----------------------------------------------------------------------------------------------


def test_rows_of_a_static_table_change_views(sales: Compiled) -> None:
    follower, engine = Follower(sales), engine_of(sales)
    engine.state.many("sales", 1, [sale(1, "a", "1"), sale(2, "b", "4")])
    follower.look(engine)
    engine.state.one("sales", 1, sale(3, "a", "2"))  # not told yet when the views are built anew
    engine.load("shops", {("a", "Bern"): 1})
    assert changes(engine_of(sales, {n: engine.table(n) for n in ("sales", "shops")}), "per_city") == {(1, "Bern", 3)}
    follower.look(engine)
    assert follower.rows["per_city"]
    engine.state.one("sales", -1, sale(1, "a", "1"))
    follower.look(engine)


def test_an_update_that_failed_changes_nothing_and_loses_nothing() -> None:
    made = compiled("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM r GROUP BY a;""")
    follower, engine = Follower(made), engine_of(made)
    engine.apply_bulk("r", {(1, 5): 1, (2, 2**62): 1})
    follower.look(engine)
    engine.apply("+", "r", (3, 1))
    with pytest.raises(OverflowError_):
        engine.apply_bulk("r", {(1, 7): 1, (2, 2**62): 1, (4, 1): 1})
    assert set(told(engine.changes("v"))) == {(1, 3, 1)}
    follower.rows["v"][3, 1] += 1
    follower.look(engine)
    engine.apply("-", "r", (2, 2**62))
    follower.look(engine)


def test_a_row_that_cannot_be_shown_stays_to_be_told() -> None:
    made = compiled("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) + SUM(b) AS s FROM r GROUP BY a;""")
    engine = engine_of(made)
    engine.changes("v")
    engine.state.many("r", 1, [(1, 2**62 - 1), (1, 1), (2, 3)])
    with pytest.raises(OverflowError_, match=r"v\.s"):
        engine.changes("v")
    engine.state.one("r", -1, (1, 1))
    assert changes(engine, "v") == {(1, 1, 2**63 - 2), (1, 2, 6)}


# -- programs of other shapes ------------------------------------------------------------------------------------------


def test_rows_that_read_less_than_their_key() -> None:
    """No SQL compiles to this, but a program may be: totals for some rows, for all rows, and one of two views."""
    program = viewlet.compile("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, b, SUM(c) AS s FROM r GROUP BY a, b;
        CREATE MATERIALIZED VIEW per_a AS SELECT a, SUM(c) AS s FROM r GROUP BY a;
        CREATE MATERIALIZED VIEW in_all AS SELECT SUM(c) AS s, COUNT(*) AS n FROM r;""")
    v, per_a, in_all = program.results
    per_b = replace(per_a, name="per_b", lookups=(*per_a.lookups, ("all", join(*(q for _, q in in_all.lookups)))))
    per_b = replace(per_b, columns=(*per_a.columns, replace(per_a.columns[1], name="all", term=Var("all"))))
    more = (("of_a", per_a.lookups[0][1]), ("all", in_all.lookups[0][1]))
    columns = tuple(replace(v.columns[2], name=name, term=Var(name)) for name, _ in more)
    having = Op(">=", (Var("all"), Var("sum")))
    wider = replace(v, columns=(*v.columns, *columns), lookups=(*v.lookups, *more), having=having)
    made = watching(replace(program, results=(wider, per_a, per_b)))
    assert made.watched.results == ("v", "per_a", "per_b")
    rng, live, events = Random(1), list[Any](), list[Event]()
    for _ in range(300):
        if rng.random() < len(live) / 20:
            events.append(("-", "r", live.pop(rng.randrange(len(live)))))
        else:
            live.append((rng.randrange(3), rng.randrange(3), rng.randrange(-2, 4)))
            events.append(("+", "r", live[-1]))
    assert all(follow(made, events, {}, rng).most.values())


def test_what_is_not_watched_has_no_code(sales: Compiled) -> None:
    plain = native(sales.program).source
    assert native(sales.program, Watched()).source == plain
    assert "note" not in plain.replace("not empty", "")
    assert "note_" in native(sales.program, sales.watched).source


def test_only_what_is_there_can_be_watched(sales: Compiled) -> None:
    with pytest.raises(Error, match="nobody"):
        native(sales.program, Watched(results=("per_shop", "nobody")))
    engine = engine_of(watching(sales.program, Watched(results=("in_all",))))
    assert engine.watches("in_all")
    assert not engine.watches("cheap")
    with pytest.raises(Error, match=r"cheap.*compare all rows"):
        engine.changes("cheap")
