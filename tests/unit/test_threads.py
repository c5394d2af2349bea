"""One thread writes and any number read. A second writer is refused, and nothing is lost or spoiled."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import viewlet
from viewlet import Database
from viewlet.database import listening
from viewlet.engines.native.build import find_compiler
from viewlet.session import tiers
from viewlet.session.turn import Turn

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
SCRIPT = """
CREATE STREAM r (k BIGINT NOT NULL, v BIGINT NOT NULL);
CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v, count(*) AS n FROM r GROUP BY k;
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM r;
"""
REFUSAL = "the database is in use by another thread"


@pytest.fixture(params=[NATIVE, "python"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        assert database.tier == request.param
        yield database


@pytest.fixture
def switching() -> Iterator[None]:
    """Python goes from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_a_thread(work: Callable[[], object]) -> BaseException | None:
    """What it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


WRITES: dict[str, Callable[[Database], object]] = {
    "insert": lambda db: db.insert("r", (9, 9)),
    "insert many": lambda db: db.insert("r", [(9, 9), (9, 9)]),
    "delete": lambda db: db.delete("r", (1, 1)),
    "apply": lambda db: db.apply([("+", "r", (9, 9))]),
    "execute": lambda db: db.execute("CREATE STREAM other (a BIGINT);"),
}
READS: dict[str, Callable[[Database], object]] = {
    "verify": lambda db: db.verify("s"),
    "engine": lambda db: db.engine,
    "tier": lambda db: db.tier,
    "rows": lambda db: db.view("s").rows(),
    "iter": lambda db: list(db.view("s")),
    "arrow": lambda db: db.view("s").arrow(),
    "get": lambda db: db.view("s").get(k=1),
    "weights": lambda db: db.view("s").weights(),
    "len": lambda db: len(db.view("s")),
    "html": lambda db: db.view("s")._repr_html_(),
    "subscribe": lambda db: db.view("s").subscribe(print)(),
}


def test_beside_an_update_writers_are_refused_and_readers_wait(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update in flight lasts until everybody has asked."""
    inside, over = threading.Event(), threading.Event()
    session = db._running
    change = session.change

    def slow(*given: Any) -> None:
        inside.set()
        assert over.wait(30)
        change(*given)

    monkeypatch.setattr(session, "change", slow)
    writer = threading.Thread(target=lambda: db.insert("r", (1, 1)))
    writer.start()
    assert inside.wait(30)
    refused = {name: in_a_thread(lambda call=call: call(db)) for name, call in WRITES.items()}
    answers: dict[str, BaseException | None] = {}
    readers = [
        threading.Thread(target=lambda n=name, c=call: answers.update({n: in_a_thread(lambda: c(db))}))
        for name, call in READS.items()
    ]
    for reader in readers:
        reader.start()
    assert not answers
    over.set()
    for thread in (writer, *readers):
        thread.join(30)
    for name, error in refused.items():
        assert isinstance(error, viewlet.Error), name
        assert REFUSAL in str(error)
    assert answers == dict.fromkeys(READS)
    assert db.view("s").rows() == [(1, 1, 1)]


@pytest.mark.usefixtures("switching")
def test_readers_see_the_states_between_updates_while_one_thread_writes(db: Database) -> None:
    """Each batch has ten rows: no reader sees a part of one, none meets an error, none sees an earlier state again."""
    seen: list[list[int]] = [[] for _ in range(8)]
    failures, ended = list[BaseException](), threading.Event()

    def read(mine: list[int]) -> None:
        try:
            while not ended.is_set() or not mine:
                rows = db.view("s").rows()
                assert all(v == n for _, v, n in rows)
                mine.append(sum(n for _, _, n in rows))
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read, args=(mine,)) for mine in seen]
    for reader in readers:
        reader.start()
    for i in range(150):
        db.insert("r", [(j % 7, 1) for j in range(i, i + 10)])
        db.insert("r", (8, 1))
        db.delete("r", (8, 1))
    ended.set()
    for reader in readers:
        reader.join(60)
    assert failures == []
    assert db.view("total").rows() == [(1500,)]
    for mine in seen:
        assert [n // 10 for n in mine] == sorted(n // 10 for n in mine)
        assert {n % 10 for n in mine} <= {0, 1}, "one for the row that comes and goes"


def test_a_function_that_an_update_calls_must_not_use_the_database() -> None:
    """It would wait for itself."""
    db = viewlet.connect(engine="python")
    raised: list[viewlet.Error] = []

    def nosy(value: int) -> int:
        for call in (lambda: db.view("v").rows(), lambda: db.insert("r", (2,))):
            try:
                call()
            except viewlet.Error as error:
                raised.append(error)
        return value

    db.create_function("nosy", nosy, ["BIGINT"], "BIGINT")
    db.execute("CREATE STREAM r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT nosy(a) AS b FROM r")
    db.insert("r", (1,))
    db.apply([("+", "r", (3,))])
    assert len(raised) >= 4
    assert all("the call that this one comes from" in str(error) for error in raised)
    assert sorted(db.view("v").rows()) == [(1,), (3,)]


def test_a_callback_may_wait_for_a_reader(db: Database) -> None:
    """Callbacks come when the update is over: whatever they do, it is like any other code."""
    read: list[object] = []
    db.view("total").subscribe(lambda change: read.append(in_a_thread(lambda: db.view("s").rows())))
    db.insert("r", (1, 1))
    assert read == [None, None]


@pytest.mark.usefixtures("switching")
def test_what_several_threads_insert_at_once_is_in_or_was_refused(db: Database) -> None:
    done, others = [0, 0, 0], list[BaseException]()

    def insert(thread: int) -> None:
        for i in range(4000):
            try:
                db.insert("r", (i % 7, 1))
                done[thread] += 1
            except viewlet.Error as error:
                if REFUSAL not in str(error):
                    others.append(error)
            except BaseException as error:
                others.append(error)

    threads = [threading.Thread(target=insert, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert others == []
    assert db.view("total").rows() == [(sum(done),)]
    assert sum(n for _, _, n in db.view("s").rows()) == sum(done)
    assert db.verify("s") == []


def test_threads_may_take_turns(db: Database) -> None:
    for i in range(3):
        assert in_a_thread(lambda i=i: db.insert("r", (i, 1))) is None  # type: ignore[misc]
    assert in_a_thread(lambda: db.view("s").rows()) is None
    assert db.view("total").rows() == [(3,)]


def test_a_call_that_raises_ends_its_turn(db: Database) -> None:
    with pytest.raises(viewlet.DataError):
        db.insert("r", ("no", "number"))
    with pytest.raises(viewlet.Error):
        db.view("s").get(nothing=1)
    assert in_a_thread(lambda: db.insert("r", (1, 1))) is None


def test_readers_and_writers_go_on_while_a_view_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler works before the turn begins, for a new view as for the first subscriber."""
    monkeypatch.setattr(listening, "WORTH_HANDING_OVER", 1)
    compiles, goes_on, compile_program = threading.Event(), threading.Event(), tiers.compile_program

    def slowly(*of: Any, **named: Any) -> Any:
        compiles.set()
        goes_on.wait(20)
        return compile_program(*of, **named)

    with viewlet.connect(wait_native=True) as database:
        database.execute("CREATE STREAM r (k BIGINT, v BIGINT)")
        database.execute("CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v FROM r GROUP BY k")
        database.insert("r", [(i, i) for i in range(5)])
        monkeypatch.setattr(tiers, "compile_program", slowly)
        seen: list[object] = []
        late = "CREATE MATERIALIZED VIEW c AS SELECT count(*) AS n FROM r"
        for n, call in enumerate((lambda: database.execute(late), lambda: database.subscribe("s", seen.append))):
            caller = threading.Thread(target=call)
            caller.start()
            assert compiles.wait(5)
            assert len(database.view("s").rows()) == 5 + n
            database.insert("r", (10 + n, 1))
            assert caller.is_alive()
            goes_on.set()
            caller.join()
            compiles.clear()
            goes_on.clear()
        assert database.view("c").rows() == [(7,)]
        database.insert("r", (12, 1))
        assert seen == [(1, (12, 1))]
        assert database.tier == "native"


def in_line(turn: Turn, look: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """A reader that waits, because somebody is inside; and what it will have seen, or the error it got."""
    seen: list[object] = []

    def read() -> None:
        try:
            seen.append(turn.read(look))
        except Exception as error:
            seen.append(error)

    reader, others = threading.Thread(target=read), len(turn.line)
    reader.start()
    while len(turn.line) == others:
        time.sleep(0.001)
    return reader, seen


def test_who_leaves_reads_for_those_in_line() -> None:
    turn, told = Turn(lambda: None), list[tuple[threading.Thread, list[object]]]()

    def update() -> None:
        told.extend(in_line(turn, look) for look in (threading.get_ident, lambda: [][1]))

    turn.write(update)
    (first, ident), (second, error) = told
    first.join(30)
    second.join(30)
    assert ident == [threading.get_ident()]
    assert isinstance(error[0], IndexError), "the reader is told, the writer is not"
    assert turn.read(lambda: 7) == 7


def test_ctrl_c_while_reading_for_another_is_not_for_them() -> None:
    turn, calls = Turn(lambda: None), list[int]()
    told: list[tuple[threading.Thread, list[object]]] = []

    def look() -> int:
        calls.append(threading.get_ident())
        if len(calls) == 1:
            raise KeyboardInterrupt
        return len(calls)

    with pytest.raises(KeyboardInterrupt):
        turn.write(lambda: told.append(in_line(turn, look)))
    ((reader, seen),) = told
    reader.join(30)
    assert seen == [2], "it looked itself"
    assert calls[0] == threading.get_ident() != calls[1]
    assert turn.read(lambda: 7) == 7
