"""A directory that is opened again has what was acknowledged: rows, views, names, functions, on every engine."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import viewlet
from tests.durable.life import Life, check
from tests.durable.test_compaction import compacted, in_this_process
from viewlet.database.memory import EngineName
from viewlet.durable import directory as files
from viewlet.durable.beside import Beside
from viewlet.durable.store import digest
from viewlet.errors import CorruptError, DataError, Error, StorageError
from viewlet.rows.ledger import Ledger

ENGINES: tuple[EngineName, ...] = ("native", "python", "interpreter")
SALES = """CREATE STREAM sales (item VARCHAR, n BIGINT);
CREATE MATERIALIZED VIEW totals AS SELECT item, sum(n) AS n FROM sales GROUP BY item"""


@pytest.mark.parametrize("engine", ENGINES)
def test_life_goes_on(tmp_path: Path, engine: EngineName, seeded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed and opened now and then, each time on another engine; machine code takes rows from the files."""
    monkeypatch.setattr(viewlet.database.directory, "WORTH_WAITING", 1)
    life = Life(100 + seeded, steady=engine == "native")
    for start in range(3):
        now = engine if start % 2 == 0 else "python"
        with viewlet.connect(tmp_path, engine=now, wait_native=True) as db:
            if start:
                check(db, life.model)
            for _ in range(15):
                life.step()(db)
            check(db, life.model)
            assert db.tier == now
    with viewlet.connect(tmp_path, engine="python", strategy="classical") as db:
        check(db, life.model)
        assert not any(db.verify(view) for view in life.model.views)


@pytest.mark.parametrize("durability", ["none", "process", "machine"])
def test_every_level_keeps_what_was_closed(tmp_path: Path, durability: viewlet.database.directory.Durability) -> None:
    with viewlet.connect(tmp_path, durability=durability, engine="python") as db:
        db.execute(SALES)
        for n in range(100):
            db.insert("sales", ("tea", n))
        db.sync()
    with viewlet.connect(tmp_path, engine="python") as db:
        assert db.view("totals").rows() == [("tea", 4950)]


def test_a_refused_update_leaves_no_record(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path, wait_native=True) as db:
        db.execute(SALES)
        db.insert("sales", ("tea", 2**63 - 1))
        size = (tmp_path / "log-0").stat().st_size
        for bad in (("tea", "x"), ("tea", 2**63)):
            with pytest.raises(DataError):
                db.insert("sales", bad)
        with pytest.raises(DataError, match="not there"):
            db.delete("sales", pa.table({"item": ["milk"], "n": [1]}))
        with pytest.raises(viewlet.SqlError):
            db.execute("CREATE MATERIALIZED VIEW w AS SELECT nothing FROM sales")
        assert (tmp_path / "log-0").stat().st_size == size
    with viewlet.connect(tmp_path) as db:
        assert db.view("totals").rows() == [("tea", 2**63 - 1)]


def test_nan_infinities_and_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One NaN and one zero, as in memory, and as DuckDB counts them for a snapshot."""
    monkeypatch.setattr(Beside, "_made", in_this_process)
    rows = [(float("nan"), 1), (float("inf"), 2), (-0.0, 3), (1.5, 4)]
    with viewlet.connect(tmp_path, wait_native=True) as db:
        db.execute("CREATE STREAM s (x DOUBLE, n BIGINT);")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT n, sum(x) AS x FROM s GROUP BY n")
        db.insert("s", rows)
        db.insert("s", [(float("nan"), 7)] * 50)
        db.checkpoint()
        db.delete("s", [(float("nan"), 7)] * 20 + [(0.0, 3)])
        there = sorted(map(repr, db.view("v").rows()))
        compacted(db)
    with viewlet.connect(tmp_path) as db:
        assert sorted(map(repr, db.view("v").rows())) == there
        db.delete("s", (float("nan"), 1))
        assert len(db.view("v").rows()) == len(there) - 1


@pytest.mark.parametrize("engine", ["native", "python"])
def test_values_with_another_form_outside(tmp_path: Path, engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    """A UUID in capitals is the same one; a moment is the same in every zone; rows are found to be deleted."""
    ids = [uuid.UUID(int=(0xABCDEF << 100) + i) for i in range(3)]
    moments = [dt.datetime(2024, 1, 1, hour, tzinfo=dt.timezone(dt.timedelta(hours=2))) for hour in range(5)]
    rows = [(str(ids[i % 3]).upper() if i % 2 else ids[i % 3], moments[i % 5], i) for i in range(60)]
    zoned = pa.array(moments, pa.timestamp("us", "UTC"))
    table = pa.table({"u": [str(ids[1]).upper()] * 5, "z": zoned, "n": range(5)})
    berlin = table.set_column(1, "z", table.column(1).cast(pa.timestamp("us", "Europe/Berlin")))
    with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
        db.execute("CREATE STREAM s (u UUID, z TIMESTAMP WITH TIME ZONE, n BIGINT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT u, z, sum(n) AS n FROM s GROUP BY u, z")
        for given in (rows, (str(ids[2]).upper(), None, 7), table, berlin):
            db.insert("s", given)
        there = set(db.view("v").rows())
    for worth in (1, 10**6, 1, 10**6):
        monkeypatch.setattr(viewlet.database.directory, "WORTH_WAITING", worth)
        with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
            assert set(db.view("v").rows()) == there
            db.checkpoint()
    with viewlet.connect(tmp_path, engine=engine) as db:
        for given in (rows, table, table):
            db.delete("s", given)
        assert db.view("v").rows() == [(ids[2], None, 7)]


def test_a_python_function_is_asked_for(tmp_path: Path) -> None:
    """Functions belong to the process, so another one must be given them."""
    with viewlet.connect(tmp_path, engine="python") as db:
        db.create_function("kept_risk", lambda n: n * 2, ["BIGINT"], "BIGINT")
        db.execute(SALES)
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(kept_risk(n)) AS r FROM sales")
        db.insert("sales", ("tea", 21))
    code = f"""
import viewlet
try:
    viewlet.connect({str(tmp_path)!r}, engine="python")
except viewlet.Error as error:
    print(error)
db = viewlet.connect({str(tmp_path)!r}, engine="python", functions={{"kept_risk": lambda n: n * 2}})
print(db.view("v").rows())
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "the Python function kept_risk(BIGINT) → BIGINT, which no directory stores" in told
    assert told.endswith("[(42,)]\n")


@pytest.mark.parametrize("n", [pa.int64(), pa.int8()])
def test_events_in_arrow_are_kept(tmp_path: Path, n: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """In columns of the own types of the stream, and of narrower ones; rows in one column for all go through Python."""
    mixed, write = list[object](), Ledger.mixed
    monkeypatch.setattr(Ledger, "mixed", lambda ledger, *events: mixed.append(write(ledger, *events)))
    rows = pa.StructArray.from_arrays(
        [pa.array(["tea", None, "tea", "tea"]), pa.array([1, 2, 1, 5]).cast(n)], ["item", "n"]
    )
    relations = pa.array(["sales"] * 4)
    with viewlet.connect(tmp_path, wait_native=True) as db:
        db.execute(SALES)
        db.apply(pa.table({"op": [1, 3, -1, 2], "relation": relations.dictionary_encode(), "sales": rows}))
        assert not mixed, "written as Arrow"
        db.apply(pa.table({"op": [1, -1, 1, -1], "relation": relations, "row": rows}))
        assert len(mixed) == 1
        there = sorted(db.view("totals").rows(), key=repr)
    with viewlet.connect(tmp_path, engine="python") as db:
        assert sorted(db.view("totals").rows(), key=repr) == there == [("tea", 7), (None, 4)]
        assert db.engine.table("sales") == {("tea", 1): 2, ("tea", 5): 1, (None, 2): 2}


@pytest.mark.parametrize("engine", ["native", "python"])
def test_rows_by_a_handle_are_kept(tmp_path: Path, engine: EngineName) -> None:
    with viewlet.connect(tmp_path, engine=engine, wait_native=True) as db:
        db.execute(SALES)
        sales = db.stream("sales")
        sales.insert(("tea", 1))
        sales.insert(("tea", 2))
        sales.delete(("tea", 1))
        sales.insert([("milk", 1)] * 3)
    with viewlet.connect(tmp_path, engine="python") as db:
        assert sorted(db.view("totals").rows()) == [("milk", 3), ("tea", 2)]


def test_one_open_database_at_a_time(tmp_path: Path) -> None:
    with viewlet.connect(tmp_path), pytest.raises(StorageError, match="open in this process"):
        viewlet.connect(tmp_path)
    viewlet.connect(tmp_path).close()


def test_a_forked_process_has_no_part_in_it(tmp_path: Path) -> None:
    """It can neither write nor keep the directory locked."""
    code = f"""
import os, viewlet
db = viewlet.connect({str(tmp_path)!r}, engine="interpreter")
db.execute("CREATE STREAM s (n BIGINT)")
(read, write), (tried, told) = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(write)
    try:
        db.insert("s", (1,))
    except viewlet.StorageError as error:
        print(error, flush=True)
    os.write(told, b".")
    os.read(read, 1)
    os._exit(0)
os.read(tried, 1)
db.insert("s", (2,))
db.close()
again = viewlet.connect({str(tmp_path)!r}, engine="interpreter")
print(again.engine.table("s"), flush=True)
os.close(write)
os.wait()
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "is closed, or belongs to another process" in told
    assert "{(2,): 1}" in told


def test_formats_and_dialects(tmp_path: Path) -> None:
    viewlet.connect(tmp_path / "db", dialect="paper").close()
    with pytest.raises(Error, match="scripts of the dialect 'paper'"):
        viewlet.connect(tmp_path / "db")
    manifest = tmp_path / "db" / files.MANIFEST
    body = json.dumps({**json.loads(manifest.read_bytes().split(b"\n")[1]), "format": files.FORMAT + 1}).encode()
    manifest.write_bytes(b"%s\n%s\n" % (digest(body).encode(), body))
    with pytest.raises(Error, match=f"has format {files.FORMAT + 1}, .* install a newer viewlet"):
        viewlet.connect(tmp_path / "db", dialect="paper")


def test_not_every_directory_is_a_database(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(CorruptError, match=r"manifest.json is not there, and other files are \(thesis.tex\)"):
        viewlet.connect(tmp_path)
    with pytest.raises(StorageError, match="cannot be written: File exists"):
        viewlet.connect(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_database_in_memory_keeps_nothing() -> None:
    db = viewlet.connect()
    for call in (db.checkpoint, db.sync):
        with pytest.raises(Error, match="in memory"):
            call()


def test_closed_means_closed(tmp_path: Path) -> None:
    db = viewlet.connect(tmp_path)
    db.close()
    db.close()
    for call in (db.checkpoint, db.sync, lambda: db.execute("CREATE STREAM s (n BIGINT)")):
        with pytest.raises(Error, match="the database is closed"):
            call()


def test_subscribers_hear_of_what_is_in_the_log(tmp_path: Path) -> None:
    """Also of an update that a subscriber makes, and a snapshot that falls due in between."""
    with viewlet.connect(tmp_path, engine="python") as db:
        db.execute(SALES)
        seen: list[object] = []

        def follow(change: tuple[int, tuple[object, ...]]) -> None:
            seen.append(change)
            if len(seen) < 4:
                db.insert("sales", ("milk", len(seen)))
                db.checkpoint()

        db.subscribe("totals", follow)
        db.insert("sales", ("tea", 1))
        there = sorted(db.view("totals").rows())
    with viewlet.connect(tmp_path, engine="python") as db:
        assert sorted(db.view("totals").rows()) == there == [("milk", 6), ("tea", 1)]
