"""The public API: what a user calls, and what comes back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import viewlet
from viewlet import Database
from viewlet.algebra.query import View as Read
from viewlet.engines.exact.state import State
from viewlet.engines.exact.store import Map
from viewlet.engines.native.bridge import NativeState
from viewlet.engines.native.build import find_compiler
from viewlet.engines.native.engine import NativeEngine

SCRIPT = """
CREATE STREAM bids (id BIGINT NOT NULL, broker BIGINT NOT NULL, volume BIGINT NOT NULL, price DOUBLE NOT NULL);
CREATE TABLE brokers (broker BIGINT NOT NULL, name VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW worth AS
  SELECT b.broker, sum(b.volume * b.price) AS worth, count(*) AS n FROM bids b GROUP BY b.broker;
CREATE MATERIALIZED VIEW by_name AS
  SELECT r.name, sum(b.volume) AS volume FROM bids b, brokers r WHERE b.broker = r.broker GROUP BY r.name;
CREATE MATERIALIZED VIEW total AS SELECT sum(volume) AS volume FROM bids;
CREATE MATERIALIZED VIEW large AS SELECT broker, volume FROM bids WHERE volume >= 100;
"""
A, B, C = (1, 7, 100, 1.5), (2, 7, 50, 2.0), (3, 8, 200, 0.5)


NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))


@pytest.fixture(params=[NATIVE, "python"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    """On both tiers."""
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        assert database.tier == request.param
        yield database


def fresh(db: Database) -> None:
    for view in ("worth", "by_name", "total", "large"):
        assert db.verify(view) == [], view


def test_the_public_names() -> None:
    assert sorted(viewlet.__all__) == sorted(
        [
            *("connect", "compile", "check", "Database", "View", "ViewCheck", "Program", "__version__"),
            *("Error", "SqlError", "UnsupportedError", "DataError", "OutOfRangeError", "CorruptError", "StorageError"),
            "OverflowError_",  # the old name of OutOfRangeError
        ]
    )
    assert all(hasattr(viewlet, name) for name in viewlet.__all__)


def test_insert_and_delete_one_row_and_many(db: Database) -> None:
    assert db.view("worth").rows() == []
    assert db.view("total").rows() == [(None,)], "SUM of nothing is NULL"
    db.insert("bids", A)
    db.insert("bids", {"id": 2, "broker": 7, "volume": 50, "price": 2})
    assert db.view("worth").rows() == [(7, 250.0, 2)]
    db.insert("bids", [C, C])
    assert db.view("worth").rows() == [(7, 250.0, 2), (8, 200.0, 2)]
    assert db.view("total").rows() == [(550,)]
    assert db.view("large").rows() == [(7, 100), (8, 200), (8, 200)]
    fresh(db)
    db.delete("bids", [C, A])
    db.delete("bids", C)
    assert db.view("worth").rows() == [(7, 100.0, 1)]
    db.delete("bids", [B])
    assert db.view("worth").rows() == []
    assert db.view("total").rows() == [(None,)]
    fresh(db)


def test_no_rows_are_fine(db: Database) -> None:
    db.insert("bids", [])
    db.delete("bids", iter(()))
    db.apply([])
    db.insert("brokers", pa.table({"broker": pa.array([], pa.int64()), "name": pa.array([], pa.string())}))
    assert db.view("worth").rows() == []


def test_frames(db: Database) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"price": [1.5, 2.0], "volume": [100, 50], "broker": [7, 7], "id": [1, 2]}
    for frame in (pa.table(columns), pandas.DataFrame(columns), polars.DataFrame(columns)):
        db.insert("bids", frame)
        assert db.view("worth").rows() == [(7, 250.0, 2)]
        db.delete("bids", frame)
        assert db.view("worth").rows() == []


def test_an_ordered_mix_of_events(db: Database) -> None:
    db.apply([("+", "bids", A), ("+", "brokers", (7, "Kim")), ("+", "bids", C), ("-", "bids", A), (2, "bids", B)])
    assert sorted(db.view("worth").rows()) == [(7, 200.0, 2), (8, 100.0, 1)]
    assert db.view("by_name").rows() == [("Kim", 100)]
    fresh(db)


def event_batch(as_union: bool) -> pa.Table:
    """+A, +broker 7, +A twice more, -A."""
    bid, broker = dict(zip(("id", "broker", "volume", "price"), A, strict=True)), {"broker": 7, "name": "Kim"}
    relation = pa.array(["bids", "brokers", "bids", "bids"]).dictionary_encode()
    op = pa.array([1, 1, 2, -1], pa.int8())
    if not as_union:
        columns = {"bids": [bid, None, bid, bid], "brokers": [None, broker, None, None]}
        return pa.table({"op": op, "relation": relation, **{k: pa.array(v) for k, v in columns.items()}})
    row = pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 0], pa.int8()),
        pa.array([0, 0, 1, 2], pa.int32()),
        [pa.array([bid] * 3), pa.array([broker])],
        ["bids", "brokers"],
    )
    return pa.table({"op": op, "relation": relation, "row": row})


@pytest.mark.parametrize("as_union", [True, False])
def test_a_batch_of_events_in_arrow(db: Database, as_union: bool) -> None:
    db.apply(event_batch(as_union))
    assert db.view("worth").rows() == [(7, 300.0, 2)]
    assert db.view("by_name").rows() == [("Kim", 200)]
    db.apply(event_batch(as_union).slice(2).to_batches()[0])
    assert db.view("worth").rows() == [(7, 450.0, 3)]
    fresh(db)


def test_static_tables_may_still_change(db: Database) -> None:
    db.insert("bids", [A, B, C])
    assert db.view("by_name").rows() == []
    db.insert("brokers", [(7, "Kim"), (8, "Lee")])
    assert sorted(db.view("by_name").rows()) == [("Kim", 150), ("Lee", 200)]
    db.delete("brokers", (7, "Kim"))
    assert db.view("by_name").rows() == [("Lee", 200)]
    db.insert("bids", C)
    assert db.view("by_name").rows() == [("Lee", 400)]
    fresh(db)


# -- views -------------------------------------------------------------------------------------------------------------


def test_a_view_in_all_its_forms(db: Database) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    db.insert("bids", [A, B, C])
    view = db.view("worth")
    rows = [(7, 250.0, 2), (8, 100.0, 1)]
    assert view.columns == ("broker", "worth", "n")
    assert view.rows() == rows == list(view)
    assert len(view) == 2
    assert view.arrow().schema.types == [pa.int64(), pa.float64(), pa.int64()]
    assert pa.table(view).to_pydict() == {"broker": [7, 8], "worth": [250.0, 100.0], "n": [2, 1]}
    assert isinstance(view.df(), pandas.DataFrame)
    assert view.pl().rows() == rows
    assert polars.DataFrame(view).rows() == rows
    assert repr(view) == "<view worth(broker, worth, n): 2 rows>"
    assert str(view).splitlines()[0].split() == ["broker", "worth", "n"]
    assert sorted(line.split()[0] for line in str(view).splitlines()[1:]) == sorted(str(row[0]) for row in view)


def test_integers_stay_integers_in_a_frame() -> None:
    """2⁵³ + 1 is no float, and a frame with a NULL in it can be inserted again."""
    pytest.importorskip("pandas")
    rows = [(2**53 + 1, 1, None), (None, 2, 3)]
    with viewlet.connect() as db:
        db.execute("CREATE STREAM r (a BIGINT, b INTEGER NOT NULL, c INTEGER);")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, b, c FROM r;")
        db.insert("r", rows)
        frame = db.view("v").df()
        assert [str(t) for t in frame.dtypes] == ["Int64", "int32", "Int32"]
        db.insert("r", frame)
        assert db.view("v").weights() == dict.fromkeys(rows, 2)


def test_a_view_that_overflowed_can_still_be_shown() -> None:
    with viewlet.connect() as db:
        db.execute("CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) + sum(a) AS s FROM r;")
        db.insert("r", (2**62,))
        view = db.view("v")
        assert repr(view) == "<view v(s): 1 rows>"
        assert len(view) == 1
        assert f"v.s: {2**63} no longer fits BIGINT" in view._repr_html_()
        with pytest.raises(viewlet.OverflowError_):
            view.rows()


def test_html_is_escaped_and_cut(db: Database) -> None:
    db.insert("brokers", [(i, f"<b>{i}</b>") for i in range(30)])
    db.insert("bids", [(i, i, 1, 1.0) for i in range(30)])
    page = db.view("by_name")._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert page.count("<tr>") == 21
    assert "20 of 30 rows" in page
    db.delete("bids", [(i, i, 1, 1.0) for i in range(30)])
    assert "<td>NULL</td>" in db.view("total")._repr_html_()


def test_get_one_group(db: Database) -> None:
    db.insert("bids", [A, B, C])
    assert db.view("worth").get(broker=7) == (7, 250.0, 2)
    assert db.view("worth").get(broker=9) is None
    assert db.view("total").get() == (350,)
    assert db.view("large").get(broker=8, volume=200) == (8, 200)
    with pytest.raises(viewlet.Error, match="volume is missing"):
        db.view("large").get(broker=8)
    with pytest.raises(viewlet.Error, match="large has no key column zz"):
        db.view("large").get(zz=99)
    with pytest.raises(viewlet.Error, match="no key column worth"):
        db.view("worth").get(broker=7, worth=250.0)
    with pytest.raises(viewlet.DataError, match="BIGINT takes an int") as caught:
        db.view("worth").get(broker="7")
    assert (caught.value.relation, caught.value.column, caught.value.value) == ("worth", "broker", "7")


def test_get_where_the_key_is_not_all_shown(db: Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW hidden AS SELECT id, sum(volume) AS v FROM bids GROUP BY id, broker;")
    db.insert("bids", [A, C])
    assert db.view("hidden").get(id=1) == (1, 100)
    db.insert("bids", (1, 9, 5, 1.0))
    with pytest.raises(viewlet.Error, match="2 rows have these values"):
        db.view("hidden").get(id=1)


def test_get_looks_up_and_does_not_scan(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.insert("bids", [(i, i, 1, 1.0) for i in range(50)])
    seen: list[object] = []
    read, find = Map.read, NativeState.find
    if db.tier == "native":
        monkeypatch.setattr(NativeState, "find", lambda *given: seen.append(given) or find(*given))
        monkeypatch.setattr(NativeState, "entries", lambda *given: pytest.fail("this scans"))
    else:
        monkeypatch.setattr(Map, "read", lambda *given: seen.extend(entries := list(read(*given))) or entries)
    assert db.view("worth").get(broker=7) == (7, 1.0, 1)
    assert 0 < len(seen) < 10


def test_a_view_that_is_not_there(db: Database) -> None:
    for use in (db.view, db.verify):
        with pytest.raises(viewlet.Error, match="no view nothing; there are: worth, by_name, total, large"):
            use("nothing")


def test_a_sum_that_outgrows_its_type_is_an_error_and_not_another_number(db: Database) -> None:
    db.execute("CREATE STREAM big (x BIGINT); CREATE MATERIALIZED VIEW s AS SELECT sum(x) AS total FROM big;")
    db.insert("big", [(2**63 - 1,)])
    assert db.view("s").rows() == [(2**63 - 1,)]
    updates = (
        lambda: db.insert("big", (1,)),
        lambda: db.insert("big", [(1,), (1,)]),
        lambda: db.apply([("-", "big", (2**63 - 1,)), ("+", "big", (2**63 - 1,)), ("+", "big", (1,))]),
    )
    value = "a sum" if db.tier == "native" else r"92233720368547758\d\d"
    for update in updates:
        with pytest.raises(viewlet.OverflowError_, match=rf"^s\.total: {value} no longer fits BIGINT"):
            update()
        assert db.view("s").rows() == [(2**63 - 1,)], "nothing was lost, and nothing came"
        assert db.engine.table("big") == {(2**63 - 1,): 1}


def test_types_survive_the_way_through() -> None:
    db = viewlet.connect()
    db.execute("""
      CREATE STREAM t (k VARCHAR, b BOOLEAN, i INTEGER, p DECIMAL(10,2), d DATE, ts TIMESTAMP);
      CREATE MATERIALIZED VIEW v AS SELECT k, b, i, p, d, ts FROM t;
      CREATE MATERIALIZED VIEW s AS SELECT d, sum(p) AS p FROM t GROUP BY d;
    """)
    row = ("x", False, 5, Decimal("1.10"), dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 4))
    nulls = (None,) * 6
    db.insert("t", [row, nulls, row])
    assert db.view("v").rows() == [row, row, nulls]
    assert [type(v) for v in db.view("v").rows()[0]] == [str, bool, int, Decimal, dt.date, dt.datetime]
    assert db.view("s").rows() == [(dt.date(2024, 2, 29), Decimal("2.20")), (None, None)]
    assert db.view("s").get(d=None) == (None, None)
    assert db.verify("v") == db.verify("s") == []


# -- what changes ------------------------------------------------------------------------------------------------------


def test_subscribers_are_told_what_changed_in_order(db: Database) -> None:
    seen: list[tuple[int, tuple[object, ...]]] = []
    end = db.view("worth").subscribe(seen.append)
    db.insert("bids", A)
    assert seen == [(1, (7, 150.0, 1))]
    db.insert("bids", B)
    assert seen[1:] == [(-1, (7, 150.0, 1)), (1, (7, 250.0, 2))]
    db.apply([("+", "bids", C), ("-", "bids", C)])
    assert len(seen) == 3, "what came and went within one call is no change"
    end()
    end()
    db.insert("bids", C)
    assert len(seen) == 3


def test_changes_can_be_taken_whenever_some_are_wanted(db: Database) -> None:
    db.insert("bids", C)
    changes = db.view("large").changes()
    assert list(changes) == [], "what was there before is no change"
    db.insert("bids", [C, C, A])
    assert list(changes) == [(2, (8, 200)), (1, (7, 100))]
    db.delete("bids", [C, C])
    assert next(changes) == (-2, (8, 200))
    assert list(changes) == []
    changes.close()
    db.delete("bids", C)
    assert list(changes) == []


def test_the_changes_of_a_view_add_up_to_it(db: Database) -> None:
    totals: dict[tuple[object, ...], int] = {}
    db.view("by_name").subscribe(lambda change: totals.update({change[1]: totals.get(change[1], 0) + change[0]}))
    db.insert("brokers", [(7, "Kim"), (8, "Lee")])
    db.insert("bids", [A, B, C])
    db.delete("bids", A)
    db.delete("brokers", (8, "Lee"))
    assert {row: n for row, n in totals.items() if n} == {("Kim", 50): 1} == dict(db.view("by_name").weights())


def test_a_callback_may_update_the_database(db: Database) -> None:
    """Every subscriber hears everything in the order in which it happened."""
    seen: list[tuple[int, tuple[object, ...]]] = []

    def react(change: tuple[int, tuple[object, ...]]) -> None:
        if change == (1, (150,)):
            db.insert("bids", C)

    db.view("total").subscribe(react)
    db.view("total").subscribe(seen.append)
    db.insert("bids", [A, B])
    assert seen == [(-1, (None,)), (1, (150,)), (-1, (150,)), (1, (350,))]


def test_a_change_that_cannot_be_told_is_refused(db: Database) -> None:
    """A subscriber needs the new rows; where they do not fit their type, the update is undone."""
    db.execute("CREATE STREAM big (x BIGINT); CREATE MATERIALIZED VIEW s AS SELECT sum(x) AS total FROM big;")
    changes = db.view("s").changes()
    with pytest.raises(viewlet.OverflowError_):
        db.insert("big", [(2**63 - 1,), (1,)])
    assert list(changes) == []
    assert db.view("s").rows() == [(None,)]


# -- a database that grows ---------------------------------------------------------------------------------------------


def test_new_views_start_from_the_rows_that_are_there(db: Database) -> None:
    db.insert("brokers", [(7, "Kim")])
    db.insert("bids", [A, B, C])
    changes = db.view("worth").changes()
    db.execute(
        "CREATE MATERIALIZED VIEW cheap AS SELECT broker, count(*) AS n FROM bids WHERE price < 1 GROUP BY broker"
    )
    db.execute("CREATE STREAM asks (price DOUBLE); -- no view yet")
    assert db.view("cheap").rows() == [(8, 1)]
    assert db.view("by_name").rows() == [("Kim", 150)]
    db.insert("asks", (1.0,))
    db.execute("CREATE MATERIALIZED VIEW both AS SELECT count(*) AS n FROM bids b, asks a;")
    assert db.view("both").rows() == [(3,)]
    db.insert("asks", (2.0,))
    db.insert("bids", A)
    assert db.view("both").rows() == [(8,)]
    assert list(changes) == [(-1, (7, 250.0, 2)), (1, (7, 400.0, 3))]
    fresh(db)


def test_a_script_that_is_wrong_changes_nothing_and_the_error_points_into_it(db: Database) -> None:
    db.insert("bids", A)
    program = db.program
    with pytest.raises(viewlet.SqlError) as caught:
        db.execute("\nCREATE MATERIALIZED VIEW v AS\n  SELECT nonsense FROM bids;")
    assert caught.value.line == 3
    assert "line 3, column" in str(caught.value)
    assert "SELECT nonsense FROM bids" in str(caught.value)
    assert db.program is program
    assert db.view("worth").rows() == [(7, 150.0, 1)]


def test_verify_finds_a_view_that_went_wrong(db: Database) -> None:
    db.insert("bids", [A, C])
    rows = db.program.result("large").rows
    assert isinstance(rows, Read)
    for key, times in (((7, 100), 2), ((8, 200), -1)):
        if isinstance(db.engine, NativeEngine):
            db.engine.state.put(rows.name, key, times)
        else:
            assert isinstance(db.engine, State)
            kept = db.engine._views[rows.name]
            assert isinstance(kept, Map)
            kept.add(key, times)
    assert db.verify("large") == [(-1, (8, 200)), (2, (7, 100))]
    assert db.verify("worth") == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"engine": "abacus"}, "choose one of native, python, interpreter"),
        ({"engine": "Native"}, "choose one of native, python, interpreter"),
        ({"durability": "eternal"}, "no durability 'eternal'"),
        ({"threads": 2, "engine": "python"}, "only the native engine"),
        ({"strategy": "hope"}, "no strategy 'hope'"),
        ({"dialect": "latin"}, "no dialect 'latin'"),
    ],
)
def test_what_is_not_there_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(viewlet.Error, match=why):
        viewlet.connect(**options)  # type: ignore[arg-type]


def test_a_closed_database_says_so(db: Database) -> None:
    view = db.view("worth")
    db.close()
    for use in (view.rows, lambda: db.insert("bids", A), lambda: db.execute("")):
        with pytest.raises(viewlet.Error, match="closed"):
            use()
    db.close()


@pytest.mark.parametrize("strategy", ["optimized", "cost", "naive", "classical", "reevaluate"])
def test_every_strategy_gives_the_same_rows(strategy: str) -> None:
    with viewlet.connect(strategy=strategy) as db:
        db.execute(SCRIPT)
        db.insert("brokers", [(7, "Kim"), (8, "Lee")])
        db.apply([("+", "bids", A), ("+", "bids", B), ("+", "bids", C), ("-", "bids", A)])
        db.insert("bids", [A, C])
        fresh(db)
        assert sorted(db.view("by_name").rows()) == [("Kim", 150), ("Lee", 400)]
        assert db.program.strategy == strategy


def test_compile_gives_the_program_that_a_database_runs(db: Database) -> None:
    program = viewlet.compile(SCRIPT)
    assert isinstance(program, viewlet.Program)
    assert program.triggers == db.program.triggers
    assert {t.event.relation for t in program.triggers} == {"bids"}, "static tables have no triggers"
    assert program.strategy == "optimized"


def test_sum_of_nothing_in_the_dialect_of_the_paper() -> None:
    with viewlet.connect(dialect="paper") as db:
        db.execute(SCRIPT)
        assert db.view("total").rows() == [(0,)]
