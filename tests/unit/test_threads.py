"""One thread at a time is inside a database; another one is refused, and nothing is lost or spoiled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import viewlet
from viewlet import Database
from viewlet.engines.native.build import find_compiler

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


CALLS: dict[str, Callable[[Database], object]] = {
    "insert": lambda db: db.insert("r", (9, 9)),
    "insert many": lambda db: db.insert("r", [(9, 9), (9, 9)]),
    "delete": lambda db: db.delete("r", (1, 1)),
    "apply": lambda db: db.apply([("+", "r", (9, 9))]),
    "execute": lambda db: db.execute("CREATE STREAM other (a BIGINT);"),
    "verify": lambda db: db.verify("s"),
    "subscribe": lambda db: db.view("s").subscribe(print),
    "engine": lambda db: db.engine,
    "tier": lambda db: db.tier,
    "rows": lambda db: db.view("s").rows(),
    "iter": lambda db: list(db.view("s")),
    "arrow": lambda db: db.view("s").arrow(),
    "get": lambda db: db.view("s").get(k=1),
    "weights": lambda db: db.view("s").weights(),
    "len": lambda db: len(db.view("s")),
    "html": lambda db: db.view("s")._repr_html_(),
}


def test_a_second_thread_is_refused_while_the_first_is_inside(db: Database) -> None:
    """The first is in the middle of an insert: its subscriber is being told."""
    refused: dict[str, BaseException | None] = {}

    def told(change: object) -> None:
        end()  # once
        refused.update({name: in_a_thread(lambda call=call: call(db)) for name, call in CALLS.items()})

    end = db.view("total").subscribe(told)
    db.insert("r", (1, 1))
    assert refused.keys() == CALLS.keys()
    for name, error in refused.items():
        assert isinstance(error, viewlet.Error), name
        assert REFUSAL in str(error)
    assert db.view("s").rows() == [(1, 1, 1)]
    assert db.verify("s") == []


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
