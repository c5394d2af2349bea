"""Rows as people have them: prices as floats, days as midnights, integers with holes, streams and lazy frames."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import viewlet
from viewlet import Database, DataError
from viewlet.engines.native.build import find_compiler

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
SCRIPT = """
CREATE STREAM r (id BIGINT NOT NULL, price DECIMAL(10,2), wide DECIMAL(38,20), day DATE, n INTEGER, big BIGINT);
CREATE TABLE fixed (id BIGINT NOT NULL, price DECIMAL(10,2), n INTEGER);
CREATE MATERIALIZED VIEW v AS SELECT id, price, wide, day, n, big FROM r;
CREATE MATERIALIZED VIEW f AS SELECT id, price, n FROM fixed;
"""
DAY = dt.date(2024, 2, 29)


@pytest.fixture(scope="module", params=[NATIVE, "python"])
def opened(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        assert database.tier == request.param
        yield database


@pytest.fixture
def db(opened: Database) -> Iterator[Database]:
    """Empty again after each test: whatever came can go."""
    yield opened
    opened.delete("r", opened.view("v").rows())
    opened.delete("fixed", opened.view("f").rows())


def column(db: Database, name: str) -> list[object]:
    view = db.view("v")
    return [row[view.columns.index(name)] for row in sorted(view.rows())]


# -- floats into DECIMAL -----------------------------------------------------------------------------------------------

PRICES = [9.99, 0.1, -0.01, 0.0, -0.0, 12345678.91, 99999999.99, 1e7, 5e-2, None]
EXACT = [None if p is None else Decimal(repr(p)) + 0 for p in PRICES]


def prices(kind: str) -> Any:
    """The same column as each library holds it."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns: dict[str, Any] = {"id": list(range(len(PRICES))), "price": PRICES}
    match kind:
        case "rows":
            return [(i, p, None, None, None, None) for i, p in enumerate(PRICES)]
        case "dicts":
            return [{"id": i, "price": p} for i, p in enumerate(PRICES)]
        case "text":
            return pa.table({**columns, "price": [None if p is None else str(Decimal(repr(p))) for p in PRICES]})
        case "pandas":
            return pandas.DataFrame(columns)
        case "polars":
            return polars.DataFrame(columns)
        case "duckdb":
            values = ", ".join(
                f"({i}, {p!r}::DOUBLE)" if p is not None else f"({i}, NULL)" for i, p in enumerate(PRICES)
            )
            return pytest.importorskip("duckdb").sql(f"FROM (VALUES {values}) t(id, price)")
    return pa.table(columns)


@pytest.mark.parametrize("kind", ["rows", "dicts", "arrow", "text", "pandas", "polars", "duckdb"])
def test_a_float_is_the_decimal_as_which_it_is_written(db: Database, kind: str) -> None:
    db.insert("r", prices(kind))
    assert column(db, "price") == EXACT
    db.delete("r", prices(kind))
    assert len(db.view("v")) == 0


def test_floats_of_half_the_width_are_written_shorter(db: Database) -> None:
    db.insert("r", pa.table({"id": [1, 2], "price": pa.array([9.99, 0.1], pa.float32())}))
    assert column(db, "price") == [Decimal("9.99"), Decimal("0.10")]
    numpy = pytest.importorskip("numpy")
    db.insert("r", {"id": 3, "price": numpy.float32(9.99)})
    assert column(db, "price")[2:] == [Decimal("9.99")]


@pytest.mark.parametrize("name", ["price", "wide"])
def test_floats_of_every_size_against_their_text(db: Database, name: str) -> None:
    """By Arrow at once, and by the row: what is refused is named, what is taken is right."""
    draw = random.Random(7)
    scale, most = {"price": (2, 10**8), "wide": (20, 10**18)}[name]
    floats = [round(draw.uniform(-most, most), draw.randrange(4)) for _ in range(300)]
    floats += [draw.randrange(-(10**17), 10**17) / 10 ** draw.randrange(20) for _ in range(300)]
    floats += [draw.random() / 10 ** draw.randrange(15) for _ in range(100)]
    floats += [math.nextafter(x, math.inf) for x in (0.1, 9.99, 1e15, 2.0**53)]
    taken = 0
    for x in floats:
        exact = Decimal(repr(x))
        fits = abs(exact) < most and (Fraction(exact) * 10**scale).denominator == 1
        for rows in (
            [(1, *((x, None) if name == "price" else (None, x)), None, None, None)],
            pa.table({"id": [1], name: [x]}),
        ):
            if fits:
                db.insert("r", rows)
                assert column(db, name) == [exact], x
                db.delete("r", rows)
                taken += 1
            else:
                with pytest.raises(DataError, match=rf"^r\.{name}, row 0: .*(digits after the point|does not fit)"):
                    db.insert("r", rows)
    assert 200 < taken < 2 * len(floats) - 50, "else little is proven"


@pytest.mark.parametrize("price", [0.001, 9.999, math.nan, math.inf, 1e8, 1e300, 5e-324])
def test_a_float_that_is_no_such_decimal_is_named(db: Database, price: float) -> None:
    for table in (
        pa.table({"id": [1, 2], "price": [9.99, price]}),
        [{"id": 1, "price": 9.99}, {"id": 2, "price": price}],
    ):
        with pytest.raises(DataError, match=r"^r\.price, row 1: "):
            db.insert("r", table)
    assert len(db.view("v")) == 0


@pytest.mark.parametrize("text", ["", "-", ".", "-.", "1.2.3", "1e", "1_0", " 1", "12a", "NaN", "0.001", "--1", "１"])
def test_odd_numerals_mean_the_same_on_every_way(db: Database, text: str) -> None:
    def taken(insert: Callable[[], object]) -> object:
        try:
            insert()
        except DataError as error:
            return str(error)
        (price,) = column(db, "price")
        db.delete("r", db.view("v").rows())
        return price

    ways = [
        taken(lambda: db.insert("r", (1, text, None, None, None, None))),
        taken(lambda: db.insert("r", [{"id": 1, "price": text}])),
        taken(lambda: db.insert("r", pa.table({"id": [1], "price": [text]}))),
    ]
    assert ways == [ways[0]] * 3
    assert isinstance(ways[0], str) or text in (" 1", "１"), "what Python reads as a number, and nothing else"


# -- days --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_midnight_is_a_day(db: Database, unit: str) -> None:
    moments = [dt.datetime(2024, 2, 29), None, dt.datetime(1969, 12, 31)]
    frame = pytest.importorskip("pandas").DataFrame(
        {"id": [1, 2, 3], "day": pytest.importorskip("numpy").array(moments, f"datetime64[{unit}]")}
    )
    db.insert("r", frame)
    assert column(db, "day") == [DAY, None, dt.date(1969, 12, 31)]
    db.delete("r", pa.table({"id": [1, 2, 3], "day": pa.array(moments, pa.timestamp(unit))}))
    db.insert("r", {"id": 1, "day": dt.datetime(2024, 2, 29)})
    assert column(db, "day") == [DAY]


@pytest.mark.parametrize(
    ("moment", "type_"),
    [
        (dt.datetime(2024, 2, 29, 12), pa.timestamp("ns")),
        (dt.datetime(2024, 2, 29, 0, 0, 0, 1), pa.timestamp("us")),
        (dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc), pa.timestamp("us", "UTC")),
        (1, pa.timestamp("ns")),
    ],
)
def test_any_other_time_is_not(db: Database, moment: object, type_: pa.DataType) -> None:
    with pytest.raises(DataError, match=r"^r\.day, row 1: .*(DATE takes a datetime\.date|time zone|finer)"):
        db.insert("r", pa.table({"id": [1, 2], "day": pa.array([None, moment], type_)}))


# -- integers with holes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_integers_of_which_some_are_missing(db: Database, library: str) -> None:
    columns: dict[str, Any] = {"id": [1.0, 2.0], "n": [-7.0, math.nan], "big": [math.nan, 2.0**53 - 1]}
    made = pa.table(columns) if library == "arrow" else pytest.importorskip(library).DataFrame(columns)
    db.insert("r", made)
    assert sorted(db.view("v").rows()) == [(1, None, None, None, -7, None), (2, None, None, None, None, 2**53 - 1)]
    db.insert("fixed", made.select(["id", "n"]) if library != "pandas" else made[["id", "n"]])
    assert sorted(db.view("f").rows()) == [(1, None, -7), (2, None, None)]
    db.delete("r", made)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("n", 1.5, "no integer"),
        ("n", math.inf, "no integer"),
        ("n", 2.0**31, "does not fit INTEGER"),
        ("big", 2.0**53, "does not say which integer was meant"),
        ("id", math.nan, "NULL in a NOT NULL column"),
    ],
)
def test_other_floats_are_no_integers(db: Database, name: str, value: float, why: str) -> None:
    with pytest.raises(DataError, match=rf"^r\.{name}, row 1: .*{why}"):
        db.insert("r", pa.table({"id": [1.0, 2.0], name: [1.0, value]}))


# -- what rows come in -------------------------------------------------------------------------------------------------


def streams(kind: str) -> Any:
    table = pa.table({"id": [1, 2], "price": [Decimal("1.50"), None]})
    odd = pa.table({"id": pa.array([1, 2]), "price": ["1.5e0", None]})  # left to Python, which must not find it empty
    match kind:
        case "reader":
            return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        case "odd reader":
            return pa.RecordBatchReader.from_batches(odd.schema, odd.to_batches())
        case "lazy":
            return pytest.importorskip("polars").LazyFrame(table.to_pydict())
        case "duckdb":
            return pytest.importorskip("duckdb").sql("SELECT id, price FROM (VALUES (1, 1.50), (2, NULL)) t(id, price)")
        case "duckdb's reader":
            return streams("duckdb").arrow()
    ids = pa.chunked_array([pa.array([1, 2])])
    holes = pa.chunked_array(
        [pa.array([Decimal("1.50")]), pa.array([], pa.decimal128(3, 2)), pa.array([None], pa.decimal128(3, 2))]
    )
    chunked = pa.table({"id": ids, "price": holes})
    return chunked if kind == "empty chunk" else Stream(chunked)


class Stream:
    """Whoever else speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "kind", ["reader", "odd reader", "lazy", "duckdb", "duckdb's reader", "empty chunk", "stream with an empty batch"]
)
def test_what_can_be_read_once(db: Database, kind: str) -> None:
    db.insert("r", streams(kind))
    assert column(db, "price") == [Decimal("1.50"), None]
    db.delete("r", streams(kind))
    assert len(db.view("v")) == 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_is_no_rows(db: Database, library: str) -> None:
    series = pytest.importorskip(library).Series([1, 2])
    for update in (db.insert, db.delete):
        with pytest.raises(DataError, match=r"^r: a Series is one column: to_frame\(\) makes a frame of it"):
            update("r", series)
    with pytest.raises(DataError, match=r"^events: a Series is one column"):
        db.apply(series)


def test_a_column_is_no_rows(db: Database) -> None:
    with pytest.raises(DataError, match=r"^r: not a table"):
        db.insert("r", pa.array([1, 2]))


def test_a_stream_is_not_lost_where_the_native_program_must_take_it() -> None:
    """NaN is for the native engine: the rows are given a second time when it is compiled."""
    if find_compiler() is None:
        pytest.skip("no C++ compiler")
    with viewlet.connect() as db:
        db.execute("CREATE STREAM s (x DOUBLE); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s;")
        table = pa.table({"x": [1.0, math.nan]})
        db.insert("s", pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
        assert (db.view("n").rows(), db.tier) == ([(2,)], "native")


def test_the_nearest_of_two_floats_that_differ_in_the_last_bit(db: Database) -> None:
    """9.99 has neighbours that are written with more digits."""
    (bits,) = struct.unpack("<q", struct.pack("<d", 9.99))
    for near in (bits - 1, bits + 1):
        (x,) = struct.unpack("<d", struct.pack("<q", near))
        with pytest.raises(DataError, match="more than 2 digits after the point"):
            db.insert("r", pa.table({"id": [1], "price": [x]}))


def test_what_is_missing_in_a_row_of_a_frame_is_null(db: Database) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "day": pandas.to_datetime(["2024-02-29", None])})
    frame["n"] = pandas.array([None, 3], "Int32")
    db.insert("r", frame.to_dict("records"))
    assert (column(db, "day"), column(db, "n")) == ([DAY, None], [None, 3])
    with pytest.raises(DataError, match=r"r\.id, row 0: NULL in a NOT NULL column"):
        db.insert("r", {"id": pandas.NA})


def test_a_batch_is_looked_at_though_one_before_it_went_in_as_it_is() -> None:
    """What is remembered of batches is their schema, as long as the stream is the same."""
    with viewlet.connect(engine="python") as db:
        db.execute("CREATE STREAM s (k BIGINT, x DOUBLE)")
        whole, real = pa.record_batch({"k": [1], "x": [1.5]}), pa.record_batch({"k": [2.0], "x": [1.5]})
        for batch in (whole, whole, real, whole):
            db.insert("s", batch)
        with pytest.raises(DataError, match="two columns of this name"):
            db.insert("s", pa.RecordBatch.from_arrays([whole["k"], whole["k"]], ["k", "k"]))
        assert sorted(db.table("s").rows()) == [(1, 1.5)] * 3 + [(2, 1.5)]
        db.execute("DROP STREAM s; CREATE STREAM s (k BIGINT, x BIGINT)")
        with pytest.raises(DataError, match="no integer"):
            db.insert("s", whole)
