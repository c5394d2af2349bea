"""Queries that are long or joined often: they equal DuckDB's after every event, and their programs stay small."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random

import viewlet
from tests.engines.conformance import Case, Event, agree
from tests.engines.test_extremes import SCHEMA, TEXTS, stream
from tests.oracle.oracle import Row


def listed(*values: object) -> str:
    """A list of IN with ``values`` among others that no row has."""
    return "(" + ", ".join([*map(str, values), *(str(1000 + i) for i in range(20))]) + ")"


def quoted(*values: str) -> str:
    return "(" + ", ".join(["'" + v.replace("'", "''") + "'" for v in (*values, *(f"w{i}" for i in range(20)))]) + ")"


DAYS = "(" + ", ".join(f"DATE '1970-01-{i:02}'" for i in range(1, 20)) + ")"
TIMES = "(" + ", ".join(f"TIMESTAMP '2020-01-01 00:0{i % 10}:{i // 10}0'" for i in range(20)) + ")"
CENTS = [f"{i / 100:.2f}" for i in range(-500, 500, 3)]
LISTS = {
    "whole": f"SELECT k, count(*) AS n FROM r WHERE a IN {listed(-2, 1, 3)} GROUP BY k",
    "nothing_is_in": f"SELECT k, a FROM r WHERE a NOT IN {listed(-2, 1, 3)}",
    "decimal": f"SELECT p FROM r WHERE p * 2 IN {listed('1.004', *CENTS)} OR p IN {listed(*CENTS)}",
    "double": f"SELECT x, a IN {listed(1, 2)} AS known FROM r WHERE x IN {listed('0.5', '-1.25', 1)}",
    "computed_double": f"SELECT k FROM r WHERE x + x IN {listed('0.5', '-1.5', 1)}",
    "text": f"SELECT s, count(*) AS n FROM r WHERE s IN {quoted(TEXTS[0], TEXTS[1], TEXTS[3], '')} GROUP BY s",
    "day": f"SELECT d, m IN {TIMES} AS known FROM r WHERE d IN {DAYS} OR m IN {TIMES}",
    "with_null": f"SELECT k, a FROM r WHERE (a IN {listed(1, 'NULL')}) IS NULL",
    "joined": f"SELECT t.k, sum(a) AS s FROM r, t WHERE r.k = t.k AND a + v IN {listed(*range(-3, 4))} GROUP BY t.k",
}


def test_long_lists_equal_the_referee_s() -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};\n" for name, query in LISTS.items())
    for watch in agree(Case(SCHEMA, views, LISTS, list(stream(11, 110)))).values():
        watch.check()


def test_a_long_list_is_a_constant_of_the_program() -> None:
    """Whatever its length: as many statements, one test in each, and the list once in the C++."""
    short, long = (
        viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT k FROM r WHERE a IN {listed(*range(n))};")
        for n in (1, 3000)
    )
    assert short.cpp().count("\n") == long.cpp().count("\n")
    assert long.cpp().count("2999LL") == 1


EXISTS = {
    f"exists_{n}": "SELECT k, v FROM t WHERE "
    + " AND ".join(
        f"{'NOT ' * (i % 3 == 2)}EXISTS (SELECT 1 FROM r WHERE r.k = t.k AND r.a > {3 * i - 6})" for i in range(n)
    )
    for n in (2, 3)
}
NESTED = {
    **EXISTS,
    "grouped": """
      SELECT t.v, q.n, q.total, q.most FROM t, (
        SELECT r.k, r.d, count(*) AS n, sum(r.a) AS total, sum(r.x) AS most FROM r, t i WHERE i.k = r.k AND i.v > -2
        GROUP BY r.k, r.d) q
      WHERE q.k = t.k AND q.total <> t.v""",
    "distinct": "SELECT q.k, t.v FROM (SELECT DISTINCT r.k, i.v FROM r, t i WHERE i.k = r.k) q, t WHERE t.v < q.v",
}


def test_nested_aggregates_that_change_together_equal_the_referee_s() -> None:
    """Some with one domain, some with domains of their own, some next to rows that change as well."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};\n" for name, query in NESTED.items())
    for watch in agree(Case(SCHEMA, views, NESTED, list(stream(14, 90, most=14)))).values():
        watch.check()


def test_programs_grow_with_their_exists_as_the_text_does() -> None:
    sizes = []
    for n in (3, 6, 12):
        exists = " AND ".join(f"EXISTS (SELECT 1 FROM r WHERE r.k = t.k AND r.a = {i})" for i in range(n))
        program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE {exists};")
        assert len(program.views) == n + 2
        sizes.append(len(program.to_text()))
    assert sizes[1] < 4 * sizes[0]
    assert sizes[2] < 4 * sizes[1]


EDGES = "CREATE STREAM e (k INTEGER, a INTEGER); CREATE STREAM f (k INTEGER NOT NULL, s VARCHAR);"
CHAIN = range(7)  # joins of one stream with itself, eight times
LONG = {
    "chained": "SELECT e0.k, count(*) AS n, sum(e7.a) AS s FROM " + ", ".join(f"e e{i}" for i in range(8)) + " WHERE "
    + " AND ".join(f"e{i}.a = e{i + 1}.k" for i in CHAIN) + " GROUP BY e0.k",
    "by_one_key": "SELECT e0.k, sum(e0.a) AS s, count(*) AS n FROM " + ", ".join(f"e e{i}" for i in range(8))
    + " WHERE " + " AND ".join(f"e{i}.k = e{i + 1}.k AND e{i + 1}.a < {i + 1}" for i in CHAIN) + " GROUP BY e0.k",
    "by_no_key": "SELECT count(*) AS n FROM " + ", ".join(f"e e{i}" for i in range(7)) + " WHERE "
    + " AND ".join(f"e{i}.a <= e{i + 1}.k" for i in range(6)),
    "padded": "SELECT f.s, count(*) AS n, sum(e0.a) AS s0, sum(e4.a) AS s4 FROM f "
    + " ".join(f"LEFT JOIN e e{i} ON e{i}.k = f.k AND e{i}.a <> {i}" for i in range(5)) + " GROUP BY f.s",
}  # fmt: skip


def few_edges(seed: int, events: int) -> Iterator[Event]:
    """At most four rows of each stream, some twice, so that eight of them meet and the referee can keep up."""
    pick = Random(seed)
    live: dict[str, list[Row]] = {"e": [], "f": []}
    for _ in range(events):
        relation = pick.choice("eef")
        rows = live[relation]
        if len(rows) == 4 or (len(rows) > 1 and pick.random() < 0.35):
            yield "-", relation, rows.pop(pick.randrange(len(rows)))
        else:
            k = pick.choice((0, 0, 1, None if relation == "e" else 1))
            row = (k, pick.choice((0, 0, 1, None)) if relation == "e" else pick.choice(("x", None)))
            rows.append(row)
            yield "+", relation, row


def test_long_joins_of_one_stream_equal_the_referee_s(soaking: bool) -> None:
    """Their deltas read the versions after the event in front of the row, and those before it behind."""
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};\n" for name, query in LONG.items())
    case = Case(EDGES, views, LONG, list(few_edges(3, 120 if soaking else 25)))
    engines = ("interpreter", "python", *["native"] * soaking)
    for watch in agree(case, [(engine, "optimized") for engine in engines]).values():
        watch.check()


STAR = """
CREATE STREAM sales (day BIGINT, store BIGINT, household BIGINT, address BIGINT, customer BIGINT, ticket BIGINT,
                     amount DECIMAL(7,2), profit DECIMAL(7,2));
CREATE STREAM days (day BIGINT, dow BIGINT, year BIGINT);
CREATE STREAM stores (store BIGINT, city VARCHAR);
CREATE STREAM households (household BIGINT, dependants BIGINT, vehicles BIGINT);
CREATE STREAM addresses (address BIGINT, city VARCHAR);
CREATE STREAM customers (customer BIGINT, address BIGINT, name VARCHAR);
CREATE MATERIALIZED VIEW moved AS
  SELECT name, current.city, bought, ticket, amount, profit
  FROM (SELECT ticket, customer, addresses.city AS bought, sum(amount) AS amount, sum(profit) AS profit
        FROM sales, days, stores, households, addresses
        WHERE sales.day = days.day AND sales.store = stores.store AND sales.household = households.household
          AND sales.address = addresses.address AND (dependants = 5 OR vehicles = 3) AND dow IN (6, 0)
          AND year IN (1999, 2000) AND stores.city IN ('Midway', 'Fairview')
        GROUP BY ticket, customer, sales.address, addresses.city) t, customers, addresses current
  WHERE t.customer = customers.customer AND customers.address = current.address AND current.city <> bought;
"""


def test_nullable_columns_do_not_blow_a_star_up() -> None:
    """TPC-DS's question 46: a domain of a delta is read from counts that are kept anyway, and is never kept itself."""
    program = viewlet.compile(STAR)
    assert len(program.views) <= 80
    assert not [view.name for view in program.views if "Exists" in view.definition.text and view.name != "moved"]
    assert program.cpp().count("\n") < 20_000


def test_a_compiled_program_leaves_nothing_behind() -> None:
    """What the compiler computed on the way goes with it; nodes that nobody holds go, too."""
    viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS SELECT k FROM t;").cpp()
    gc.collect()
    before = len(gc.get_objects())
    viewlet.compile(STAR).cpp()
    gc.collect()
    assert len(gc.get_objects()) - before < 1000
