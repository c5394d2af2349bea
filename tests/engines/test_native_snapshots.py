"""A native engine as a file and back: nobody can tell that it was away, and no damaged file becomes an engine."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.engines.conformance import cut
from tests.engines.test_native_changes import paper, paper_events
from tests.engines.watched import apply, compiled, engine_of, load_static, told
from viewlet.engines.native.compiled import Compiled
from viewlet.engines.native.engine import NativeEngine
from viewlet.errors import CorruptError
from viewlet.workloads.queries import FINANCE, PAPER_QUERIES, TPCH
from viewlet.workloads.streams import NATION, Event

DOUBLES = """
CREATE STREAM r (a VARCHAR, x DOUBLE, y DOUBLE NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT a, SUM(x) AS x, SUM(x * y) AS xy, AVG(y) AS y FROM r GROUP BY a;
CREATE MATERIALIZED VIEW above AS
  SELECT a, SUM(y) AS y FROM r WHERE y * 4 > (SELECT SUM(s.y) FROM r AS s WHERE s.y > r.y) GROUP BY a;
CREATE MATERIALIZED VIEW ends AS SELECT a, MIN(x) AS least, MAX(y) AS greatest FROM r GROUP BY a;
CREATE MATERIALIZED VIEW in_all AS SELECT SUM(x) AS x, COUNT(*) AS n FROM r;
"""


@pytest.fixture(scope="module")
def doubles() -> Compiled:
    return compiled(DOUBLES)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state"


def save(engine: NativeEngine, file: Path) -> int:
    with file.open("wb") as to:
        written = engine.save(to.fileno())
    assert file.stat().st_size == written
    return written


def restored(made: Compiled, file: Path) -> NativeEngine:
    engine = engine_of(made)
    with file.open("rb") as source:
        engine.restore(source.fileno())
    return engine


def random_doubles(rng: Random, number: int) -> list[Event]:
    """Doubles whose sums round, and now and then one that is none; the rows grow, shrink and go altogether."""
    live, events = list[Any](), list[Event]()
    for i in range(number):
        if live and (rng.random() < len(live) / 60 or i > number - len(live)):
            events.append(("-", "r", live.pop(rng.randrange(len(live)))))
        else:
            x = rng.choice([rng.uniform(-1, 1) * 10 ** rng.randint(-9, 9), None, math.inf, math.nan, 1e305])
            live.append((rng.choice(["a", "b", "c", None]), x, rng.uniform(0, 1)))
            events.append(("+", "r", live[-1]))
    return events


def bits(rows: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer in their order, doubles to the last bit."""
    return [tuple(v.hex() if isinstance(v, float) else v for v in row) for row in told(rows)]


def answers(engine: NativeEngine, made: Compiled) -> Iterator[list[tuple[Any, ...]]]:
    yield from (bits(engine.changes(name)) for name in made.watched.results)
    yield from (bits(engine.partials(name)) for name in made.watched.views)


def held(engine: NativeEngine, made: Compiled) -> Any:
    """All that can be asked of an engine; the room of its lists for later is not that."""
    tables = {r.name: engine.table(r.name) for r in made.program.relations}
    views = {v.name: engine.state.entries(v.name) for v in made.program.views}
    rows = {name: bits(engine.result(name)) for name in made.watched.results}
    return repr((tables, views, rows, [size for _, size, _ in engine.memory()]))


def never_away(made: Compiled, events: list[Event], static: dict[str, Any], file: Path) -> None:
    """An engine that is saved and restored after every other batch, beside one that is not."""
    stays, goes = engine_of(made), engine_of(made)
    for engine in (stays, goes):
        load_static(engine, made.program, static)
    assert list(answers(stays, made)) == list(answers(goes, made))
    for number, batch in enumerate(cut(events, Random(2), 15)):
        for engine in (stays, goes):
            apply(engine, batch)
        assert list(answers(stays, made)) == list(answers(goes, made))
        if number % 2:
            save(goes, file)
            goes = restored(made, file)
            assert held(goes, made) == held(stays, made)


@pytest.mark.parametrize("schema", [FINANCE, TPCH], ids=["finance", "tpch"])
def test_the_papers_queries(schema: str, file: Path) -> None:
    static = {} if schema == FINANCE else {"nation": NATION}
    never_away(compiled(paper(schema)), paper_events(schema, 8, 250), static, file)


SAVE_ELSEWHERE = """
import sys
from pathlib import Path
from tests.engines.test_native_snapshots import half_of_tpch, save
save(half_of_tpch()[1], Path(sys.argv[1]))
"""


def half_of_tpch() -> tuple[Compiled, NativeEngine, list[Event]]:
    """A program with texts, slices and orders, an engine in the middle of a stream, and the rest of it."""
    made, events = compiled(paper(TPCH)), paper_events(TPCH, 8, 250)
    engine = engine_of(made)
    load_static(engine, made.program, {"nation": NATION})
    apply(engine, events[: len(events) // 2])
    return made, engine, events[len(events) // 2 :]


def test_a_file_does_not_depend_on_the_hashes_of_its_process(file: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", SAVE_ELSEWHERE, str(file)], env=environment, check=True)
    made, stays, rest = half_of_tpch()
    goes = restored(made, file)
    assert held(goes, made) == held(stays, made)
    list(answers(stays, made))  # what the other process told
    for batch in cut(rest, Random(2), 15):
        for engine in (stays, goes):
            apply(engine, batch)
        assert list(answers(stays, made)) == list(answers(goes, made))
    assert held(goes, made) == held(stays, made)


def test_doubles_to_the_last_bit(doubles: Compiled, file: Path) -> None:
    never_away(doubles, random_doubles(Random(3), 700), {}, file)


def test_view_caches(file: Path) -> None:
    script = FINANCE + PAPER_QUERIES["vwap"].sql() + PAPER_QUERIES["mst"].sql()
    made = compiled(script, "naive")
    never_away(made, paper_events(FINANCE, 9, 120), {}, file)


def test_what_was_not_told_when_it_was_saved_counts_as_told(doubles: Compiled, file: Path) -> None:
    engine = engine_of(doubles)
    engine.state.many("r", 1, [("a", 1.5, 1.0), ("b", 2.0, 2.0)])
    save(engine, file)
    later = restored(doubles, file)
    assert told(later.changes("sums")) == []
    later.state.one("r", 1, ("a", 1.0, 1.0))
    assert set(told(later.changes("sums"))) == {(-1, "a", 1.5, 1.5, 1.0), (1, "a", 2.5, 2.5, 1.0)}
    assert len(told(engine.changes("sums"))) == 2  # which the one that was saved knows nothing of
    later.state.many("r", -1, [("a", 1.0, 1.0), ("a", 1.5, 1.0), ("b", 2.0, 2.0)])
    assert told(later.result("sums")) == []
    first, *_ = answers(later, doubles)
    assert len(first) == 2
    assert later.memory()[-1][1] == 0  # no text is held by what was once to be told


def test_an_update_that_fails_after_all(file: Path) -> None:
    made = compiled("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM r GROUP BY a;""")
    engine = engine_of(made)
    engine.apply_bulk("r", {(1, 5): 1, (2, 2**62): 1})
    save(engine, file)
    later = restored(made, file)
    with pytest.raises(Exception, match="no longer fits"):
        later.apply_bulk("r", {(1, 1): 1, (2, 2**62): 1})
    assert told(later.changes("v")) == []
    later.apply("+", "r", (1, 1))
    assert set(told(later.changes("v"))) == {(-1, 1, 5), (1, 1, 6)}


def test_maps_that_are_growing_or_have_gaps(doubles: Compiled, file: Path) -> None:
    """More rows than a small table has slots, at every stage of its growth, and most of them gone again."""
    engine, rng = engine_of(doubles), Random(4)
    rows = [(f"text {i}", float(i), 1.0) for i in range(700)]
    for row in rows:
        engine.state.one("r", 1, row)
        if rng.random() < 0.02:
            save(engine, file)
            assert held(restored(doubles, file), doubles) == held(engine, doubles)
    rng.shuffle(rows)
    engine.state.many("r", -1, rows[:650])
    first, *_ = answers(engine, doubles)
    assert len(first) == 50
    save(engine, file)
    later = restored(doubles, file)
    for each in (engine, later):
        each.state.many("r", 1, rows[:100])
    assert held(later, doubles) == held(engine, doubles)
    assert file.stat().st_size < 60_000


def test_a_forked_child_saves_while_its_parent_goes_on(doubles: Compiled, file: Path) -> None:
    engine = engine_of(doubles)
    apply(engine, random_doubles(Random(5), 100)[:60])
    before = held(engine, doubles)
    if (child := os.fork()) == 0:
        try:
            save(engine, file)
        finally:
            os._exit(0 if file.exists() else 1)
    engine.state.one("r", 1, ("later", 1.0, 1.0))
    assert os.waitpid(child, 0)[1] == 0
    assert held(restored(doubles, file), doubles) == before


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(doubles: Compiled, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    engine, file = engine_of(doubles), tmp_path_factory.mktemp("saved") / "state"
    engine.state.many("r", 1, [("a", 1.5, 1.0), (None, math.inf, 2.0)])
    save(engine, file)
    return file.read_bytes()


def refusal(made: Compiled, content: bytes, file: Path) -> str:
    file.write_bytes(content)
    with pytest.raises(CorruptError) as caught:
        restored(made, file)
    return str(caught.value)


def test_a_byte_that_flipped_anywhere_is_refused(doubles: Compiled, saved: bytes, file: Path) -> None:
    engine = engine_of(doubles)
    file.write_bytes(saved)
    with file.open("r+b", buffering=0) as source:
        for place, byte in enumerate(saved):
            os.pwrite(source.fileno(), bytes([byte ^ 1 << place % 8]), place)
            source.seek(0)
            with pytest.raises(CorruptError):
                engine.restore(source.fileno())
            os.pwrite(source.fileno(), bytes([byte]), place)
    assert engine.table("r") == {}
    engine.state.one("r", 1, ("a", 1.0, 1.0))  # what could not be read left nothing behind
    assert told(engine.result("in_all")) == [(1.0, 1)]


def test_a_file_that_is_too_short_or_too_long_is_refused(doubles: Compiled, saved: bytes, file: Path) -> None:
    for length in [*range(0, len(saved), 37), len(saved) - 1]:
        assert "ends too early" in refusal(doubles, saved[:length], file)
    assert "behind its end" in refusal(doubles, saved + b"\0", file)


def test_a_refusal_says_what_is_wrong(doubles: Compiled, saved: bytes, file: Path) -> None:
    other = compiled("""CREATE STREAM r (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM r GROUP BY a;""")
    assert "another program" in refusal(other, saved, file)
    assert "no saved state" in refusal(doubles, b"x" * len(saved), file)
    assert "checksum" in refusal(doubles, saved[:-1] + bytes([saved[-1] ^ 1]), file)


def test_what_the_system_says_is_passed_on(doubles: Compiled, file: Path) -> None:
    file.write_bytes(b"")
    with file.open("rb") as source, pytest.raises(OSError, match="Bad file descriptor"):
        engine_of(doubles).save(source.fileno())
    with file.open("wb") as to, pytest.raises(OSError, match="Bad file descriptor"):
        engine_of(doubles).restore(to.fileno())


def test_types_of_answers_after_a_restore(doubles: Compiled, saved: bytes, file: Path) -> None:
    file.write_bytes(saved)
    engine = restored(doubles, file)
    assert pa.array(engine.changes("in_all")).type == pa.array(engine_of(doubles).changes("in_all")).type
