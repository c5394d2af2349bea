"""From generated Python to machine code under way: nothing is lost or told twice, and without it all goes on."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import viewlet
from viewlet import Database
from viewlet.database.memory import WORTH_WAITING
from viewlet.engines.native.emit import program as emit
from viewlet.session import tiers

SCRIPT = """
CREATE STREAM r (g VARCHAR, a BIGINT NOT NULL, x DOUBLE, p DECIMAL(12,2));
CREATE TABLE names (g VARCHAR NOT NULL, name VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT g, sum(a) AS a, sum(x) AS x, sum(p) AS p, count(*) AS n FROM r GROUP BY g;
CREATE MATERIALIZED VIEW named AS SELECT m.name, sum(r.a) AS a FROM r, names m WHERE r.g = m.g GROUP BY m.name;
CREATE MATERIALIZED VIEW pairs AS
  SELECT count(*) AS n, sum(r.a * q.a) AS s FROM r, r q WHERE r.a < q.a AND r.g = q.g;
"""
VIEWS = ("v", "named", "pairs")
ROWS = [
    ("a", 1, 0.5, Decimal("1.25")),
    ("b", 2, None, None),
    (None, 3, 0.1, Decimal("-0.01")),
    ("a", 4, 1e17, Decimal("7")),
    ("a", 1, 0.5, Decimal("1.25")),
]


def database(script: str = SCRIPT, **options: object) -> Database:
    db = viewlet.connect(**options)  # type: ignore[arg-type]
    db.execute(script)
    if "names" in script:
        db.insert("names", [("a", "Alpha"), ("b", "Beta")])
    return db


def contents(db: Database) -> dict[str, Counter[tuple[object, ...]]]:
    return {view: db.view(view).weights() for view in VIEWS}


def until_native(db: Database) -> None:
    """Bounded by the time that any compiler takes."""
    end = time.monotonic() + 60
    while db.tier != "native":
        assert time.monotonic() < end, "the native program never came"
        time.sleep(0.01)


@pytest.fixture
def truth() -> Database:
    return database(engine="python")


# -- the swap ----------------------------------------------------------------------------------------------------------


def test_the_first_answer_does_not_wait_for_a_compiler() -> None:
    db = database()
    assert db.tier == "python"
    db.insert("r", ROWS)
    assert db.view("pairs").rows() == [(2, 8)]


def test_events_during_the_build_are_there_after_it(truth: Database) -> None:
    """One by one, so that the swap comes somewhere among them, and long enough to be sure of it."""
    db, told, seen = database(), list[tuple[int, tuple[object, ...]]](), Counter[tuple[object, ...]]()
    changes = db.view("v").changes()
    unsubscribe = db.view("pairs").subscribe(told.append)
    tiers, end, n = set[str](), time.monotonic() + 60, 0
    while tiers != {"python", "native"} or n % 100:
        row = ROWS[n % len(ROWS)]
        for each in (db, truth):
            each.insert("r", row)
            if n % 3 == 2:
                each.delete("r", row)
        tiers.add(db.tier)
        n += 1
        assert time.monotonic() < end, "the native program never came"
    assert contents(db) == contents(truth)
    assert db.engine.table("r") == truth.engine.table("r")
    for weight, row in changes:
        seen[row] += weight
    assert +seen == db.view("v").weights(), "the changes add up to the view, across the swap"
    assert told[-1] == (1, db.view("pairs").rows()[0])
    assert all(weight in (1, -1) for weight, _ in told)
    unsubscribe()
    db.delete("r", ROWS[0])
    assert told[-1][1] != db.view("pairs").rows()[0]


def test_a_swap_alone_changes_nothing_for_listeners() -> None:
    db = database()
    changes = db.view("v").changes()
    db.insert("r", ROWS)
    assert len(list(changes)) == 3
    until_native(db)
    db.insert("r", ("c", 1, None, None))
    assert list(changes) == [(1, ("c", 1, None, None, 1))]


def test_the_view_object_that_a_user_holds_goes_on(truth: Database) -> None:
    db = database()
    held = db.view("v")
    for each in (db, truth):
        each.insert("r", ROWS)
    until_native(db)
    for each in (db, truth):
        each.delete("r", ROWS[:2])
    assert held.weights() == truth.view("v").weights()
    assert held.get(g=None) == truth.view("v").get(g=None)


def test_what_python_cannot_take_waits_for_the_native_program() -> None:
    db = database()
    db.insert("r", [("a", 1, float("inf"), None)])
    assert db.tier == "native"
    assert db.view("v").rows() == [("a", 1, float("inf"), None, 1)]


def test_a_long_load_waits_for_the_native_program() -> None:
    db = database()
    db.insert("r", [("a", 1, None, None)] * WORTH_WAITING)
    assert db.tier == "native"
    assert db.view("v").rows() == [("a", WORTH_WAITING, None, None, WORTH_WAITING)]


def test_rows_from_code_that_looks_at_the_database() -> None:
    """The swap comes while the rows are still being made."""
    db = database()

    def rows() -> Iterator[tuple[object, ...]]:
        until_native(db)
        yield from ROWS

    db.insert("r", rows())
    assert db.view("pairs").rows() == [(2, 8)]
    db.apply(("-", "r", row) for row in ROWS)
    assert db.view("v").rows() == []


# -- further definitions -----------------------------------------------------------------------------------------------


def test_a_further_view_starts_from_the_rows_that_are_there(truth: Database) -> None:
    db = database(wait_native=True)
    assert db.tier == "native"
    more = """
        CREATE MATERIALIZED VIEW extra AS
          SELECT r.g, d.n, sum(r.p) AS p FROM r, (SELECT count(*) AS n FROM r) d GROUP BY r.g, d.n;
    """
    for each in (db, truth):
        each.insert("r", ROWS)
        each.execute(more)
    assert db.tier == "native"
    for each in (db, truth):
        each.delete("r", ROWS[1])
        each.insert("r", ("b", 7, 2.5, Decimal("0.75")))
    assert contents(db) == contents(truth)
    assert db.view("extra").weights() == truth.view("extra").weights()
    assert db.verify("extra") == []


def test_a_listener_hears_of_changes_only_when_a_view_is_added() -> None:
    db = database(wait_native=True)
    changes = db.view("v").changes()
    db.insert("r", ROWS[1])
    assert len(list(changes)) == 1
    db.execute("CREATE MATERIALIZED VIEW extra AS SELECT count(*) AS n FROM r WHERE g = 'a'")
    assert list(changes) == []
    db.insert("r", ROWS[0])
    assert len(list(changes)) == 1
    assert db.view("extra").rows() == [(1,)]


def test_a_definition_that_is_refused_leaves_the_native_database_running() -> None:
    db = database(wait_native=True)
    db.insert("r", ROWS)
    before = contents(db)
    with pytest.raises(viewlet.SqlError):
        db.execute("CREATE MATERIALIZED VIEW extra AS SELECT nothing FROM r")
    assert db.tier == "native"
    assert contents(db) == before


def test_two_databases_share_one_program_and_nothing_else() -> None:
    first, second = database(wait_native=True), database(wait_native=True)
    assert (first.tier, second.tier) == ("native", "native")
    first.insert("r", ROWS)
    assert second.view("v").rows() == []
    second.insert("r", ROWS[:1])
    first.close()
    assert second.view("v").rows() == [("a", 1, 0.5, Decimal("1.25"), 1)]


# -- without machine code ----------------------------------------------------------------------------------------------

WITHOUT_COMPILER = """
import warnings, viewlet
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(2):
        db = viewlet.connect(wait_native=True)
        db.execute("CREATE STREAM r (a BIGINT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s, count(*) AS n FROM r")
        db.insert("r", [(1,), (2,), (None,)])
        db.delete("r", (1,))
        assert db.tier == "python", db.tier
        print(db.view("v").rows())
print([str(w.message) for w in said])
"""


def test_without_a_compiler_python_goes_on_and_says_so_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "", "VIEWLET_CACHE": str(tmp_path), "PYTHONPATH": "src"}
    hidden = "import sys; sys.modules['ziglang'] = None\n"
    ran = subprocess.run(
        [sys.executable, "-c", hidden + WITHOUT_COMPILER], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    first, second, said = ran.stdout.splitlines()
    assert first == second == "[(2, 2)]"
    assert said.count("no C++ compiler was found") == 1
    assert "pip install ziglang" in said


def test_a_program_that_would_be_too_large_stays_on_python_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(viewlet.compile(SCRIPT).cpp())
    monkeypatch.setattr(emit, "MOST_CODE", 4096)
    monkeypatch.setattr(tiers, "_said", set())
    why = f"its C\\+\\+ would be {size >> 10} KB, of which at most 4 are compiled"
    db = viewlet.connect(wait_native=True)
    db.execute(SCRIPT)
    with pytest.warns(UserWarning, match=f"no machine code for this program: {why}; views are kept fresh by generated"):
        assert db.tier == "python"
    again = database(wait_native=True)  # and said no more
    again.insert("r", ROWS)
    assert (again.tier, again.verify("pairs")) == ("python", [])
    assert re.search(f"no native code: {why}", str(again.explain()))
    findings = [str(finding) for checked in viewlet.check(SCRIPT) for finding in checked.findings]
    assert sum("generated Python" in finding for finding in findings) == len(VIEWS)
    assert all(checked.maintainable for checked in viewlet.check(SCRIPT))


def test_infinities_need_machine_code_for_a_further_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else could take them over."""
    script = "CREATE STREAM d (x DOUBLE); CREATE MATERIALIZED VIEW s AS SELECT sum(x) AS x FROM d;"
    db = database(script, wait_native=True)
    db.insert("d", [(1.0,), (float("inf"),)])
    monkeypatch.setattr(emit, "MOST_CODE", 1024)
    with pytest.raises(viewlet.Error, match=r"the tables hold NaN or infinities, and there is no machine code .* KB"):
        db.execute("CREATE MATERIALIZED VIEW m AS SELECT max(x) AS x FROM d;")
    assert db.view("s").rows() == [(float("inf"),)]


def test_a_join_of_nulls_of_two_scales() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute("""
        CREATE STREAM p (x DECIMAL(10,2)); CREATE STREAM q (x DECIMAL(10,4));
        CREATE MATERIALIZED VIEW v AS SELECT p.x, count(*) AS n FROM p, q WHERE p.x = q.x GROUP BY p.x;
    """)
    assert db.tier == "native"
    db.insert("p", [(Decimal("1.5"),), (None,)])
    db.insert("q", [(Decimal("1.5"),), (Decimal("1.5001"),), (None,)])
    assert db.view("v").rows() == [(Decimal("1.50"), 1)]


def test_a_database_without_views_needs_no_program() -> None:
    db = viewlet.connect(wait_native=True)
    db.execute("CREATE STREAM r (a BIGINT)")
    db.insert("r", [(1,), (2,)])
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r")
    assert (db.tier, db.view("v").rows()) == ("native", [(2,)])


# -- the end -----------------------------------------------------------------------------------------------------------


def test_closed_while_it_is_built() -> None:
    with database() as db:
        build = db._build
        db.insert("r", ROWS)
    assert build is not None
    with pytest.raises(viewlet.Error, match="closed"):
        db.insert("r", ROWS)
    build.wait()
    with pytest.raises(viewlet.Error, match="closed"):
        _ = db.tier


@pytest.mark.parametrize("wait_native", [False, True])
def test_a_forgotten_database_is_collected(wait_native: bool) -> None:
    """While its program is built, and when it runs: the thread and the module must not hold on to it."""
    db = database(wait_native=wait_native)
    db.insert("r", ROWS)
    db.view("v").changes()
    build, gone = db._build, (weakref.ref(db), weakref.ref(db.engine))
    assert (db.tier == "native") == wait_native
    del db
    gc.collect()
    assert [each() for each in gone] == [None, None]
    if build is not None:
        build.wait()
