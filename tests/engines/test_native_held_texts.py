"""Texts that a program computes: they are held while a map has them, forgotten with its entries, and never mixed up."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import viewlet
from tests.engines.conformance import Case, opened_natively
from tests.engines.test_native_snapshots import answers, never_away, restored, save
from tests.engines.watched import compiled, engine_of, told, watching
from tests.native.test_runtime import COMPILER, FLAGS, RUNTIME, SANITIZED, has_sanitizers
from tests.oracle.oracle import Row, difference
from viewlet.database.memory import Database
from viewlet.engines.exact.python.engine import PythonEngine
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.emit import program as emit
from viewlet.engines.native.emit.held import held_columns
from viewlet.engines.native.emit.watch import UNWATCHED
from viewlet.engines.native.engine import NativeEngine
from viewlet.errors import OutOfRangeError
from viewlet.workloads.streams import Event

SCHEMA = """
CREATE STREAM r (s VARCHAR, u VARCHAR NOT NULL, n INTEGER NOT NULL);
CREATE STREAM q (t VARCHAR NOT NULL, k INTEGER);
"""
SELECTS = {
    "counts": "SELECT upper(s) AS c, count(*) AS n, sum(n) AS total FROM r GROUP BY upper(s)",
    "ends": "SELECT n % 3 AS g, min(lower(u) || '-' || s) AS least, max(s || u) AS most FROM r GROUP BY n % 3",
    "partners": "SELECT r.u, q.k FROM r JOIN q ON lower(r.u) = lower(q.t)",
    "parts": "SELECT DISTINCT substring(u, 2, 5) AS part FROM r WHERE n > 2",
    "either": "SELECT u || '+' AS c FROM r UNION ALL SELECT 'other' AS c FROM q WHERE k > 1",
    "chosen": "SELECT c, count(*) AS n FROM (SELECT CASE WHEN n > 4 THEN u ELSE upper(u) END AS c FROM r) x GROUP BY c",
    "before": "SELECT count(*) AS n FROM r, q WHERE upper(r.u) < upper(q.t)",
    "above": "SELECT u FROM r WHERE n > (SELECT avg(x.n) FROM r x WHERE left(x.u, 3) = left(r.u, 3))",
    "first": "SELECT u, count(*) AS n FROM r GROUP BY u ORDER BY lower(u), u LIMIT 4",
    "last": "SELECT s, u FROM r ORDER BY s || u DESC NULLS LAST, u, n LIMIT 3",
}
VIEWS = "".join(f"CREATE MATERIALIZED VIEW {name} AS {select};\n" for name, select in SELECTS.items())
LASTING = [("Kept", "kEPT", 3), (None, "kEPT", 9), ("", "k", 1)]


def words(rng: Random, count: int, turn: int) -> list[tuple[str | None, str, int]]:
    """Rows with texts that no other turn has; some are equal but for their case."""

    def word() -> str:
        text = f"Word {rng.randrange(count)} of {turn}"
        return rng.choice([text, text.upper(), text.lower()])

    return [(None if rng.random() < 0.1 else word(), word(), rng.randrange(8)) for _ in range(count)]


def turns(count: int) -> Iterator[list[Event]]:
    """In each, rows come in some order with those of another stream, and all of them go again."""
    rng = Random(5)
    for turn in range(count):
        events: list[Event] = [("+", "r", row) for row in words(rng, 40, turn)]
        events += [("+", "q", (row[2][1], rng.choice([None, 1, 2]))) for row in events[:10]]
        rng.shuffle(events)
        gone: list[Event] = [("-", relation, row) for _, relation, row in events]
        rng.shuffle(gone)
        yield events + gone


def texts_of(engine: object) -> int:
    return int(engine.memory()[-1][1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("strategy", ["optimized", "naive"])
def test_computed_texts_come_and_go(strategy: str) -> None:
    case = Case(SCHEMA, VIEWS, SELECTS, ())
    database, oracle = opened_natively(SCHEMA + VIEWS, strategy=strategy), case.referee()
    cached = any(view.is_cache for view in database.program.views)
    for row in LASTING:
        database.insert("r", row)
        oracle.apply("+", "r", row)
    left = list[int]()
    for events in turns(4):
        for number, (op, relation, row) in enumerate(events):
            (database.insert if op == "+" else database.delete)(relation, row)
            oracle.apply(op, relation, row)
            if number % 9 == 0 or number == len(events) - 1:
                agrees(database, {name: oracle.rows(select) for name, select in SELECTS.items()})
        left.append(texts_of(database.engine))
    assert cached or set(left) == {left[0]}, left  # a cache keeps what it was asked for


def agrees(database: Database, answers: dict[str, list[Row]]) -> None:
    for name, expected in answers.items():
        assert not (wrong := difference(database.view(name).rows(), expected)), f"{name}: {wrong}"


# -- as a file, undone, taken over ------------------------------------------------------------------------------------

SMALL = """
CREATE STREAM r (s VARCHAR, u VARCHAR NOT NULL, n BIGINT NOT NULL);
CREATE STREAM other (x INTEGER NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT upper(s) AS c, sum(n) AS total, min(u || '!') AS m FROM r GROUP BY upper(s);
CREATE MATERIALIZED VIEW first AS SELECT u, count(*) AS n FROM r GROUP BY u ORDER BY lower(u), u LIMIT 4;
CREATE MATERIALIZED VIEW others AS SELECT count(*) AS n FROM other;
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(scope="module")
def small() -> Compiled:
    return compiled(SMALL)


@pytest.fixture(scope="module")
def unwatched() -> Compiled:
    return watching(viewlet.compile(SMALL), UNWATCHED)


def test_nobody_can_tell_that_it_was_away(small: Compiled, file: Path) -> None:
    never_away(small, [event for turn in turns(2) for event in turn if event[1] == "r"], {}, file)


def test_what_an_order_holds_is_not_saved(small: Compiled, file: Path) -> None:
    engine, rows = engine_of(small), words(Random(1), 30, 0)
    engine.state.many("r", 1, rows)
    first = told(engine.result("first"))
    engine.state.one("other", 1, (1,))
    save(engine, file)
    later = restored(small, file)
    for each in (engine, later):
        assert told(each.result("first")) == first
        each.state.many("r", -1, rows)
        assert told(each.result("first")) == []
        for _ in range(2):  # the first answer tells all rows, the second what is noted
            list(answers(each, small))
    assert texts_of(engine) == texts_of(later) == constants(small)


def constants(made: Compiled) -> int:
    """The texts of a program that nothing ever came to."""
    return texts_of(engine_of(made))


def test_an_order_by_computed_texts_outlives_batches_that_are_not_about_it(unwatched: Compiled) -> None:
    """It was wrong: the texts that rows are ordered by were forgotten with the first such batch."""
    engine, rows = engine_of(unwatched), words(Random(2), 60, 0)
    for number, row in enumerate(rows):
        engine.state.one("r", 1, row)
        expected = sorted(Counter(u for _, u, _ in rows[: number + 1]).items(), key=lambda r: (r[0].lower(), r[0]))
        assert told(engine.result("first")) == expected[:4]
        engine.state.one("other", 1, (number,))


def test_a_refused_batch_leaves_no_text_behind() -> None:
    database = opened_natively(SMALL)
    database.insert("r", [("kept", "too", 2**62)])
    before, rows = texts_of(database.engine), database.view("sums").rows()
    for turn in range(3):
        with pytest.raises(OutOfRangeError, match="no longer fits"):
            database.insert("r", [(f"new {turn}", f"other {turn}", 1), ("KEPT", "too", 2**62)])
        assert (texts_of(database.engine), database.view("sums").rows()) == (before, rows)


def test_entries_that_are_taken_over_hold_their_texts(unwatched: Compiled) -> None:
    before = PythonEngine(unwatched.program, {})
    rows = [("ab", "Cd", 1), ("aB", "ce", 2), (None, "x", 3)]
    for row in rows:
        before.apply("+", "r", row)
    engine = NativeEngine.adopt(unwatched, before, lambda *_: ())
    for number in range(50):  # ids are used again
        engine.apply("+", "other", (number,))
        engine.apply("+", "r", (f"text {number}", "y", number))
        engine.apply("-", "r", (f"text {number}", "y", number))
    assert sorted(told(engine.result("sums")), key=str) == [("AB", 3, "Cd!"), (None, 3, "x!")]
    for row in rows:
        engine.apply("-", "r", row)
    assert told(engine.result("sums")) == []
    assert texts_of(engine) == constants(unwatched)


# -- generated code under sanitizers ----------------------------------------------------------------------------------

DRIVER = """
#include "fill.hpp"
#include "packing.hpp"
using namespace viewlet;
static Program program;
static u32 at_first = program.texts.size();
static RRow row(u32 n) {
    char bytes[] = "Word 0000 of a stream";
    for (u32 at = 8; at > 4; --at, n /= 10) bytes[at] = char('0' + n % 10);
    Text text = program.texts.intern(bytes, sizeof bytes - 1);
    return {text, text, i64(bytes[8] - '0')};
}
int main() {
    Table<RRow> table;  // who holds the texts of rows
    auto hold = [](const RRow& r, bool in) { in ? program.texts.hold(r.u_) : program.texts.release(r.u_); };
    for (u32 n = 0; n < 3000; ++n) {
        RRow in = row(n);
        hold(in, true), program.change_r(in, 1);
        if (n >= 20) {
            RRow out = row(n - 20);
            hold(out, false), program.change_r(out, -1);
        }
        program.texts.collect();
        if (program.texts.size() > at_first + 20 * MOST) return 1;
    }
    for (u32 n = 2980; n < 3000; ++n) {
        RRow out = row(n);
        hold(out, false), program.change_r(out, -1);
    }
    program.texts.collect();
    return program.texts.size() == at_first ? 0 : 2;
}
"""


def test_generated_code_reads_no_text_that_is_gone(tmp_path: Path) -> None:
    if COMPILER is None or not has_sanitizers(tmp_path):
        pytest.skip("no compiler with sanitizers")
    names = ("counts", "ends", "parts", "chosen", "above")
    script = SCHEMA + "".join(f"CREATE MATERIALIZED VIEW {name} AS {SELECTS[name]};\n" for name in names)
    source, program = tmp_path / "generated.cpp", tmp_path / "generated"
    source.write_text(emit.cpp_source(viewlet.compile(script)) + f"#define MOST {2 * len(names)}" + DRIVER)
    flags = [flag for flag in FLAGS if not flag.startswith("-W")]
    subprocess.run([*COMPILER.split(), *flags, *SANITIZED, f"-I{RUNTIME}", str(source), "-o", str(program)], check=True)
    subprocess.run([str(program)], check=True, timeout=60)


# -- which columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "held"),
    [
        ("SELECT s, u, count(*) AS n FROM r GROUP BY s, u", set()),
        ("SELECT coalesce(s, u) AS c, count(*) AS n FROM r GROUP BY coalesce(s, u)", set()),
        ("SELECT c, count(*) AS n FROM (SELECT CASE WHEN n > length(u) THEN s END AS c FROM r) x GROUP BY c", set()),
        ("SELECT c, count(*) AS n FROM (SELECT u AS c FROM r UNION ALL SELECT t FROM q) x GROUP BY c", set()),
        ("SELECT c, count(*) AS n FROM (SELECT u AS c FROM r UNION ALL SELECT 'a' FROM q) x GROUP BY c", {0}),
        ("SELECT c, sum(1) AS n FROM (SELECT CASE WHEN n > 1 THEN s ELSE u || s END AS c FROM r) x GROUP BY c", {0}),
        ("SELECT u, count(*) AS n FROM r WHERE n > (SELECT max(k) FROM q WHERE t = upper(r.u)) GROUP BY u", set()),
    ],
)
def test_only_columns_that_no_relation_gives_are_held(select: str, held: set[int]) -> None:
    program = viewlet.compile(f"{SCHEMA} CREATE MATERIALIZED VIEW v AS {select};")
    assert held_columns(next(v for v in program.views if v.name == "v")) == held
    assert ("{texts}" in emit.cpp_source(program)) is any(map(held_columns, program.views))
