"""Numbers in machine code: exact to the last digit, or refused by name with nothing changed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import viewlet
from tests.oracle.oracle import RELATIVE, DuckOracle
from viewlet import Database, OverflowError_
from viewlet.engines.native.engine import NativeEngine

SCRIPT = """
CREATE STREAM n (
  k BIGINT NOT NULL, b BIGINT, i INTEGER, w DECIMAL(38,2), p DECIMAL(18,9), q DECIMAL(18,9), x DOUBLE, y DOUBLE);
CREATE MATERIALIZED VIEW exact AS
  SELECT k, sum(b) AS b, sum(w) AS w, sum(p * q) AS pq, sum(i) AS i, sum(p - q) AS d, count(*) AS n FROM n GROUP BY k;
CREATE MATERIALIZED VIEW extremes AS
  SELECT count(*) AS n FROM n
  WHERE b < -9223372036854775807 OR b + 1 > 9223372036854775807 OR ABS(b) + b * 0 > 9223372036854775807;
CREATE MATERIALIZED VIEW reals AS SELECT k, sum(x) AS x, sum(x * y) AS xy, avg(x) AS m, count(x) AS n FROM n GROUP BY k;
CREATE MATERIALIZED VIEW by_x AS SELECT x, count(*) AS n, sum(y) AS y FROM n GROUP BY x;
CREATE MATERIALIZED VIEW computed AS SELECT x * y AS c, x - y AS d, count(*) AS n FROM n GROUP BY x * y, x - y;
CREATE MATERIALIZED VIEW matched AS SELECT l.k, count(*) AS n FROM n l, n r WHERE l.x = r.y GROUP BY l.k;
"""
COLUMNS = ("k", "b", "i", "w", "p", "q", "x", "y")
VIEWS = ("exact", "extremes", "reals", "by_x", "computed", "matched")
LEAST, GREATEST = -(2**63), 2**63 - 1
WIDE = Decimal("999999999999999999999999999999999999.99")
NARROW = WIDE.copy_negate()  # -WIDE would round to the 28 digits of Python's context
NAN, INF = math.nan, math.inf


def row(**cells: object) -> tuple[object, ...]:
    return tuple({"k": 1, **cells}.get(name) for name in COLUMNS)


@pytest.fixture
def db() -> Database:
    database = viewlet.connect(wait_native=True)
    database.execute(SCRIPT)
    assert database.tier == "native"
    return database


def shown(cells: tuple[object, ...]) -> tuple[object, ...]:
    """NaN as a value that equals itself."""
    return tuple("NaN" if isinstance(c, float) and math.isnan(c) else c for c in cells)


def state(db: Database) -> object:
    views = {name: Counter(map(shown, db.view(name).rows())) for name in VIEWS}
    return views, {shown(cells): n for cells, n in db.engine.table("n").items()}


# -- exact -------------------------------------------------------------------------------------------------------------


def test_decimals_and_integers_are_exact_at_their_ends(db: Database) -> None:
    nines = Decimal("999999999.999999999")
    rows = [
        row(b=LEAST, i=-(2**31), w=NARROW, p=nines, q=-nines),
        row(b=GREATEST, i=2**31 - 1, w=WIDE, p=-nines, q=-nines),
        row(b=-1, w=Decimal("0.01"), p=Decimal("0.000000001"), q=Decimal("-0.000000001")),
        row(b=GREATEST, i=-1, p=nines, q=Decimal("0.000000003")),
    ]
    expected: defaultdict[str, Fraction] = defaultdict(Fraction)
    for number, cells in enumerate(rows, 1):
        db.insert("n", cells)
        given = dict(zip(COLUMNS, cells, strict=True))
        p, q = (Fraction(given[name] or 0) for name in "pq")  # type: ignore[call-overload]
        for name, value in (("b", given["b"]), ("i", given["i"]), ("w", given["w"]), ("pq", p * q), ("d", p - q)):
            expected[name] += Fraction(value or 0)  # type: ignore[call-overload]
        ((_, *sums, n),) = db.view("exact").rows()
        assert [Fraction(s) for s in sums] == [expected[name] for name in ("b", "w", "pq", "i", "d")]
        assert n == number
        assert db.view("exact").get(k=1) == (1, *sums, n)
    assert db.view("extremes").rows() == [(3,)]
    db.delete("n", rows[::-1])
    assert (db.view("exact").rows(), db.view("extremes").rows()) == ([], [(0,)])


def test_a_refused_update_where_only_the_order_kept_a_sum_inside(db: Database) -> None:
    for b in (GREATEST, LEAST, GREATEST, 1):
        db.insert("n", row(b=b))
    before = state(db)
    with pytest.raises(OverflowError_):
        db.delete("n", row(b=LEAST))
    assert state(db) == before


def test_the_way_of_a_sum_may_leave_64_bits() -> None:
    """What no user sees may be wider than what one sees."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (k BIGINT NOT NULL, b BIGINT NOT NULL, p DECIMAL(18,9) NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT k FROM r GROUP BY k HAVING sum(b) > 9223372036854775807;
        CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM r l, r m
          WHERE l.b * m.b > 9223372036854775807 * 9223372036854775807;
        CREATE MATERIALIZED VIEW z AS SELECT avg(b) AS b, sum(p * p * p) AS p FROM r;
    """)
    assert db.tier == "native"
    p = Decimal("-123.987654321")
    db.insert("r", [(1, GREATEST, p), (1, GREATEST, p), (2, LEAST, p)])
    assert db.view("v").rows() == [(1,)]
    assert db.view("w").rows() == [(1,)], "only the square of -2⁶³ is greater"
    ((mean, cubes),) = db.view("z").rows()
    assert Fraction(cubes) == 3 * Fraction(p) ** 3
    assert mean == float(Fraction(2 * GREATEST + LEAST, 3))


def one_by_one(db: Database, rows: list[tuple[object, ...]]) -> None:
    for each in rows:
        db.insert("n", each)


Update = Callable[[Database, list[tuple[object, ...]]], None]
UPDATES: dict[str, Update] = {
    "one by one": one_by_one,
    "a list": lambda db, rows: db.insert("n", rows),
    "apply": lambda db, rows: db.apply([("+", "n", r) for r in rows]),
    "Arrow": lambda db, rows: db.insert("n", arrow_rows(rows)),
    "Arrow events": lambda db, rows: db.apply(arrow_events(rows)),
}
TYPES = [
    pa.int64(), pa.int64(), pa.int32(), pa.decimal128(38, 2), pa.decimal128(18, 9), pa.decimal128(18, 9), pa.float64(),
    pa.float64(),
]  # fmt: skip


def arrow_rows(rows: list[tuple[object, ...]]) -> pa.Table:
    arrays = [pa.array(values, t) for values, t in zip(zip(*rows, strict=True), TYPES, strict=True)]
    return pa.table(arrays, names=list(COLUMNS))


def arrow_events(rows: list[tuple[object, ...]]) -> pa.Table:
    relation = pa.array(["n"] * len(rows)).dictionary_encode()
    struct = arrow_rows(rows).to_struct_array().combine_chunks()
    return pa.table({"op": pa.array([1] * len(rows), pa.int8()), "relation": relation, "n": struct})


OVERFLOWS: dict[str, tuple[list[dict[str, object]], str]] = {
    "BIGINT": ([{"b": GREATEST}, {"b": 1}], r"^exact\.b: .*BIGINT"),
    "BIGINT below": ([{"b": LEAST}, {"b": -1}], r"^exact\.b: .*BIGINT"),
    "DECIMAL": ([{"w": WIDE}, {"w": Decimal("0.01")}], r"^exact\.w: .*DECIMAL\(38,2\)"),
    "DECIMAL below": ([{"w": NARROW}, {"w": Decimal("-0.01")}], r"^exact\.w: .*DECIMAL\(38,2\)"),
}


@pytest.mark.parametrize("way", UPDATES)
@pytest.mark.parametrize("case", list(OVERFLOWS))
def test_a_sum_that_leaves_its_type_is_refused_by_name(db: Database, case: str, way: str) -> None:
    rows, message = OVERFLOWS[case]
    db.insert("n", row(k=7, b=3, x=0.5, w=WIDE))
    full = [row(k=7, b=1, w=NARROW), *(row(**cells) for cells in rows)]
    if way == "one by one":
        UPDATES[way](db, full[:-1])
        full = full[-1:]
    before = state(db)
    with pytest.raises(OverflowError_, match=message):
        UPDATES[way](db, full)
    assert state(db) == before
    db.insert("n", row(k=7, b=-3, w=Decimal("-5")))
    assert db.verify("exact") == []
    assert db.view("exact").get(k=7)[1] == (1 if way == "one by one" else 0)  # type: ignore[index]


def test_overflow_is_told_alike_by_both_tiers(db: Database) -> None:
    python = viewlet.connect(engine="python")
    python.execute(SCRIPT)
    for cells, _ in OVERFLOWS.values():
        told = []
        for each in (db, python):
            with pytest.raises(viewlet.Error) as caught:
                each.insert("n", [row(**c) for c in cells])
            told.append((isinstance(caught.value, OverflowError_), str(caught.value).partition(":")[0]))
        assert told[0] == told[1]


def test_a_refused_delete_changes_nothing(db: Database) -> None:
    db.insert("n", row(b=GREATEST))
    db.insert("n", row(b=LEAST))
    db.insert("n", row(b=LEAST + 1))
    before = state(db)
    with pytest.raises(OverflowError_, match=r"exact\.b"):
        db.delete("n", row(b=GREATEST))
    assert state(db) == before
    db.apply([("-", "n", row(b=LEAST)), ("-", "n", row(b=GREATEST))])
    assert db.view("exact").get(k=1)[1] == LEAST + 1  # type: ignore[index]


def test_a_batch_may_pass_through_what_it_may_not_end_in(db: Database) -> None:
    """Or be refused: what it must not do is to be taken half."""
    events = [("+", "n", row(b=GREATEST)), ("+", "n", row(b=1)), ("-", "n", row(b=1))]
    try:
        db.apply(events)
    except OverflowError_:
        assert db.engine.table("n") == {}
    else:
        assert db.view("exact").get(k=1)[1] == GREATEST  # type: ignore[index]
    assert db.verify("exact") == []


def test_a_batch_that_a_listener_cannot_be_told_of_is_taken_back_last_row_first() -> None:
    """First row first, the sum would leave its type on the way."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (x BIGINT, y BIGINT, z BIGINT);
        CREATE MATERIALIZED VIEW t AS SELECT sum(x) AS s, sum(y) + sum(z) AS yz FROM r;
        CREATE MATERIALIZED VIEW n AS SELECT x, y, z FROM r;
    """)
    db.insert("r", (-10, 0, 0))
    changes = db.view("t").changes()
    with pytest.raises(OverflowError_, match=r"t\.yz"):
        db.insert("r", pa.table({"x": [GREATEST, -GREATEST], "y": [GREATEST, 0], "z": [0, GREATEST]}))
    assert (db.view("t").rows(), db.view("n").rows()) == ([(-10, 0)], [(-10, 0, 0)])
    db.insert("r", (1, 1, 1))
    assert list(changes) == [(-1, (-10, 0)), (1, (-9, 2))]


def test_a_static_table_changes_though_the_rows_beside_it_fit_in_one_order_only() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (x BIGINT NOT NULL); CREATE TABLE s (k BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW t AS SELECT sum(x) AS s, count(*) AS n FROM r;
        CREATE MATERIALIZED VIEW u AS SELECT s.k, count(*) AS n FROM r, s WHERE r.x = s.k GROUP BY s.k;
        CREATE MATERIALIZED VIEW w AS SELECT sum(k) AS n FROM s;
    """)
    for x in (GREATEST, -GREATEST, GREATEST - 1, -GREATEST):
        db.insert("r", (x,))
    db.apply([("+", "r", (7,)), ("+", "s", (GREATEST,))])
    assert (db.view("t").rows(), db.view("u").rows()) == ([(6, 5)], [(GREATEST, 1)])
    with pytest.raises(OverflowError_, match=r"^w\.n: .*BIGINT"):
        db.apply([("+", "r", (8,)), ("+", "s", (1,))])
    assert (db.view("t").rows(), db.view("w").rows()) == ([(6, 5)], [(GREATEST,)])
    assert db.tier == "native"


def test_an_absolute_value_has_a_bit_more() -> None:
    """The C++ went on with 64 bits where 128 were meant, and did not compile where the value may be NULL."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (k BIGINT NOT NULL, a BIGINT);
        CREATE MATERIALIZED VIEW great AS SELECT k FROM r WHERE abs(k) > 0.5;
        CREATE MATERIALIZED VIEW more AS SELECT abs(k) * 1.5 AS c, nullif(abs(a), 1) AS d FROM r;
        CREATE MATERIALIZED VIEW by_size AS SELECT abs(a) AS c, count(*) AS n FROM r GROUP BY abs(a);
        CREATE MATERIALIZED VIEW sizes AS SELECT sum(DISTINCT abs(a)) AS c, min(abs(a)) AS d FROM r;
        CREATE MATERIALIZED VIEW least AS SELECT count(*) AS n FROM r WHERE abs(k) > 9223372036854775807;
    """)
    assert db.tier == "native"
    db.insert("r", [(10**18, -3), (-(10**18), None), (0, 1), (LEAST, 3)])
    assert sorted(db.view("great").rows()) == [(LEAST,), (-(10**18),), (10**18,)]
    wide = Decimal("1500000000000000000.0")
    assert Counter(db.view("more").rows()) == Counter(
        [(wide, 3), (wide, None), (Decimal(0), None), (Decimal("13835058055282163712.0"), 3)]
    )
    assert Counter(db.view("by_size").rows()) == Counter([(3, 2), (None, 1), (1, 1)])
    assert (db.view("sizes").rows(), db.view("least").rows()) == ([(4, 1)], [(1,)])


@pytest.mark.parametrize("times", [2**63, 2**64 + 1, 2**70])
def test_more_copies_than_can_be_counted_are_refused(db: Database, times: int) -> None:
    with pytest.raises(viewlet.Error):
        db.apply([(times, "n", row())])


def test_copies_by_multiplicity(db: Database) -> None:
    db.apply([(1000, "n", row(b=5, x=0.1)), (-999, "n", row(b=5, x=0.1)), (0, "n", row(b=9))])
    assert db.view("exact").get(k=1)[1] == 5  # type: ignore[index]
    assert db.view("reals").get(k=1)[1] == 0.1  # type: ignore[index]


# -- doubles -----------------------------------------------------------------------------------------------------------


SELECTS = {
    "reals": "SELECT k, sum(x), sum(x * y), avg(x), count(x) FROM n GROUP BY k",
    "by_x": "SELECT x, count(*), sum(y) FROM n GROUP BY x",
    "computed": "SELECT x * y, x - y, count(*) FROM n GROUP BY ALL",
    "matched": "SELECT l.k, count(*) FROM n l, n r WHERE l.x = r.y GROUP BY l.k",
}


def test_what_is_not_finite_comes_and_goes_in_any_order(db: Database) -> None:
    oracle = DuckOracle(db.program.relations)

    def change(op: str, cells: tuple[object, ...]) -> None:
        (db.insert if op == "+" else db.delete)("n", cells)
        oracle.apply(op, "n", cells)

    change("+", row(x=1.5, y=2.0))
    for order in permutations([NAN, INF, -INF, 2.5]):
        for op, values in (("+", order), ("-", order[2:] + order[:2])):
            for x in values:
                change(op, row(x=x, y=2.5 if x == INF else 1.0))
                for view, select in SELECTS.items():
                    answers = db.view(view).rows(), oracle.rows(select)
                    ours, theirs = (sorted(map(str, map(shown, rows))) for rows in answers)
                    assert ours == theirs, (order, view, op, x)
        assert db.view("reals").rows() == [(1, 1.5, 3.0, 1.5, 1)]


def test_nan_and_zero_are_one_key_each(db: Database) -> None:
    strange = -NAN  # the same number with another sign bit
    db.insert(
        "n", [row(x=0.0, y=1.0), row(x=-0.0, y=1.0), row(x=NAN, y=1.0), row(x=strange, y=1.0), row(x=NAN, y=None)]
    )
    assert sorted(map(shown, db.view("by_x").rows()), key=str) == [("NaN", 3, 2.0), (0.0, 2, 2.0)]
    assert not any(math.copysign(1, x) < 0 for x, _, _ in db.view("by_x").rows() if x == 0)
    db.delete("n", [row(x=-0.0, y=1.0), row(x=0.0, y=1.0), row(x=strange, y=1.0), row(x=NAN, y=1.0)])
    assert [shown(r) for r in db.view("by_x").rows()] == [("NaN", 1, None)]


def test_computed_keys_too(db: Database) -> None:
    """0 · -1 is -0, and ∞ - ∞ is a NaN with its sign bit set."""
    db.insert("n", [row(x=0.0, y=-1.0), row(x=-1.0, y=0.0), row(x=INF, y=INF), row(x=NAN, y=1.0), row(x=INF, y=0.0)])
    counts = Counter(map(shown, db.view("computed").rows()))
    assert counts == Counter([(0.0, 1.0, 1), (0.0, -1.0, 1), (INF, "NaN", 1), ("NaN", "NaN", 1), ("NaN", INF, 1)])
    db.insert("n", [row(x=-INF, y=-INF), row(x=1.0, y=NAN)])
    counts = Counter(map(shown, db.view("computed").rows()))
    assert (counts[INF, "NaN", 2], counts["NaN", "NaN", 2]) == (1, 1)


def test_cancellation_leaves_nothing_behind(db: Database) -> None:
    db.insert("n", [row(x=1.0), row(x=1e17), row(x=0.1), row(x=-1e17)])
    assert db.view("reals").get(k=1)[1] == 1.1  # type: ignore[index]
    db.delete("n", [row(x=0.1), row(x=1e17), row(x=-1e17)])
    assert db.view("reals").get(k=1)[1] == 1.0  # type: ignore[index]
    db.delete("n", row(x=1.0))
    assert db.view("reals").rows() == []
    db.insert("n", [row(x=1e300, y=1e-300), row(x=-1e300, y=1.0), row(x=1e300, y=1.0), row(x=3.0, y=0.5)])
    assert db.view("reals").get(k=1)[1:3] == (1e300, 2.5)  # type: ignore[index]


def test_a_finite_sum_beyond_all_doubles_and_back(db: Database) -> None:
    """As IEEE, and DuckDB, add up: infinite while it is too great, and not for ever."""
    db.insert("n", [row(x=1.7e308), row(x=1.7e308), row(x=0.25)])
    assert db.view("reals").rows() == [(1, INF, None, INF, 3)]
    db.delete("n", row(x=1.7e308))
    assert db.view("reals").rows()[0][:2] == (1, 1.7e308)
    db.delete("n", row(x=1.7e308))
    assert db.view("reals").rows() == [(1, 0.25, None, 0.25, 1)]


def test_many_random_doubles_come_and_go() -> None:
    """200 thousand in random order: each sum within 10⁻⁹ of exact, and at the end nothing is left."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (g BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT g, sum(x) AS s, count(*) AS n FROM r GROUP BY g;
    """)
    rng = Random(11)
    rows = [(rng.randrange(8), rng.uniform(-1, 1) * 10.0 ** rng.randint(-6, 6)) for _ in range(100_000)]
    live, exact, start = list[tuple[int, float]](), defaultdict[int, Fraction](Fraction), 0
    while start < len(rows) or live:
        came = rows[start : start + 20_000]
        start += len(came)
        rng.shuffle(live)
        gone = [live.pop() for _ in range(min(len(live), 15_000 if came else 40_000))]
        db.apply([("+", "r", r) for r in came] + [("-", "r", r) for r in gone])
        live += came
        for sign, changed in ((1, came), (-1, gone)):
            for g, x in changed:
                exact[g] += sign * Fraction(x)
        for g, s, _ in db.view("v").rows():
            assert abs(Fraction(s) - exact[g]) <= abs(exact[g]) * Fraction(RELATIVE)
    assert db.view("v").rows() == []
    assert all(entries == 0 for name, entries, _ in db.engine.memory() if name != "texts")  # type: ignore[attr-defined]


def test_an_infinity_beside_a_product_of_sums_is_refused() -> None:
    """(∞ + 1) · 2 could not be taken apart again."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE STREAM s (k BIGINT NOT NULL, y DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT r.k, sum(r.x * s.y) AS z FROM r, s WHERE r.k = s.k GROUP BY r.k;
    """)
    assert db.tier == "native"
    db.insert("r", [(1, 0.5), (2, 2.0)])
    db.insert("s", [(1, 3.0), (1, 4.0)])
    for update in (lambda: db.insert("r", (1, INF)), lambda: db.apply([("+", "s", (2, 1.0)), ("+", "s", (1, NAN))])):
        with pytest.raises(viewlet.Error, match="infinity or NaN"):
            update()
        assert db.view("v").rows() == [(1, 3.5)]
        assert db.engine.table("r") == {(1, 0.5): 1, (2, 2.0): 1}
        assert db.engine.table("s") == {(1, 3.0): 1, (1, 4.0): 1}
    db.insert("s", (2, 0.25))
    assert sorted(db.view("v").rows()) == [(1, 3.5), (2, 0.5)]


def test_a_long_way_back_from_a_refused_update() -> None:
    """So many updates after a NaN that the state is saved anew in between; what came in is what counts, whatever the
    user does with his lists and arrays later."""
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM r (k BIGINT NOT NULL); CREATE STREAM q (k BIGINT NOT NULL, x DOUBLE, note VARCHAR);
        CREATE MATERIALIZED VIEW v AS SELECT r.k, sum(q.x) AS s, count(*) AS n FROM r, q WHERE r.k = q.k GROUP BY r.k;
        CREATE MATERIALIZED VIEW notes AS SELECT note, count(*) AS n FROM q GROUP BY note;
    """)
    db.insert("r", [(k,) for k in range(10)])
    db.insert("q", (3, NAN, "first"))
    rows = [[k % 10, k / 2, f"note {k % 50}"] for k in range(4000)]
    for start in range(0, len(rows), 100):
        db.insert("q", rows[start : start + 100])
    assert isinstance(db.engine, NativeEngine)
    assert db.engine.state.journal is not None
    assert len(db.engine.state.journal) < 40, "it does not grow for ever"
    kilos = np.array([0.25])
    db.insert("q", pa.table({"k": [7], "x": pa.array(kilos), "note": ["by Arrow"]}))
    kilos[0] = rows[-1][1] = 99.0
    before = Counter(map(shown, db.view("v").rows())), sorted(db.view("notes").rows())
    with pytest.raises(viewlet.Error, match="infinity or NaN"):
        db.insert("r", (3,))
    assert (Counter(map(shown, db.view("v").rows())), sorted(db.view("notes").rows())) == before
    db.delete("q", [(3, NAN, "first"), (7, 0.25, "by Arrow")])
    db.delete("q", [(k % 10, k / 2, f"note {k % 50}") for k in range(4000)])
    assert db.view("v").rows() == db.view("notes").rows() == []


# -- what else reads the tables ----------------------------------------------------------------------------------------


def wild(db: Database) -> Database:
    db.insert("n", [row(x=NAN, y=1.0), row(x=INF, y=2.0), row(k=2, x=0.5)])
    return db


def any_view(db: Database, act: Callable[[Database], Any]) -> Any:
    return act(wild(db))


def test_verify_with_nan_is_refused(db: Database) -> None:
    with pytest.raises(viewlet.Error, match=r"exact cannot be verified: .* no NaN"):
        any_view(db, lambda d: d.verify("exact"))


def test_get_with_nan(db: Database) -> None:
    assert shown(any_view(db, lambda d: d.view("reals").get(k=1))) == (1, "NaN", "NaN", "NaN", 2)


def test_a_further_view_over_nan(db: Database) -> None:
    wild(db).execute("CREATE MATERIALIZED VIEW more AS SELECT count(*) AS n FROM n WHERE x > 1")
    assert db.view("more").rows() == [(2,)]


def test_a_row_with_nan_that_stays_is_no_change(db: Database) -> None:
    changes = wild(db).view("by_x").changes()
    db.insert("n", row(k=3, x=7.0))
    assert list(changes) == [(1, (7.0, 1, None))]


def test_a_sum_beyond_all_doubles_is_taken_over() -> None:
    db = viewlet.connect()
    db.execute("CREATE STREAM r (x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM r;")
    assert db.tier == "python"
    db.insert("r", [(1.5e308,), (1.5e308,), (2.0,)])
    assert db._build is not None
    db._build.wait()
    db.delete("r", [(1.5e308,), (1.5e308,)])
    assert (db.tier, db.view("v").rows()) == ("native", [(2.0,)])
