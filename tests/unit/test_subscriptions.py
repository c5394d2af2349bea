"""Subscribers that raise, that are ended while they are told, and that end twice: nobody else is troubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import viewlet
from viewlet import Database
from viewlet.engines.native.build import find_compiler

NATIVE = pytest.param("native", marks=pytest.mark.skipif(find_compiler() is None, reason="no C++ compiler"))
SCRIPT = """
CREATE STREAM bids (id BIGINT NOT NULL, volume BIGINT NOT NULL);
CREATE TABLE brokers (broker BIGINT NOT NULL, name VARCHAR NOT NULL);
CREATE MATERIALIZED VIEW total AS SELECT sum(volume) AS volume FROM bids;
"""
A, B, C = (1, 100), (2, 50), (3, 200)


@pytest.fixture(params=[NATIVE, "python"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    """On both tiers."""
    with viewlet.connect(engine=request.param, wait_native=True) as database:
        database.execute(SCRIPT)
        assert database.tier == request.param
        yield database


def test_a_callback_that_raises_troubles_nobody_else(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    """The update is in, so its caller is told nothing; the error is logged, and all others hear of the change now."""
    seen: list[tuple[int, tuple[object, ...]]] = []

    def broken(change: object) -> None:
        raise ValueError("broken")

    end = db.view("total").subscribe(broken)
    db.view("total").subscribe(seen.append)
    for update in (
        lambda: db.insert("bids", A),
        lambda: db.insert("bids", [B]),
        lambda: db.apply([("+", "bids", C)]),
        lambda: db.insert("brokers", (7, "Kim")),
    ):
        update()
    assert seen == [(-1, (None,)), (1, (100,)), (-1, (100,)), (1, (150,)), (-1, (150,)), (1, (350,))]
    assert len(caplog.records) == 6, "one for each change: the subscription goes on"
    record = caplog.records[0]
    assert (record.name, record.levelname) == ("viewlet", "ERROR")
    assert record.getMessage().startswith("a subscriber of view total raised; the update is in")
    assert record.exc_info is not None
    assert "broken" in str(record.exc_info[1])
    end()
    db.insert("bids", A)
    assert len(caplog.records) == 6


def test_an_interrupt_in_a_callback_is_raised_when_all_were_told(db: Database) -> None:
    """Ctrl-C and sys.exit are for the program, not for the log."""
    seen: list[object] = []

    def interrupted(change: object) -> None:
        end()
        raise KeyboardInterrupt

    end = db.view("total").subscribe(interrupted)
    db.view("total").subscribe(seen.append)
    with pytest.raises(KeyboardInterrupt):
        db.insert("bids", A)
    assert seen == [(-1, (None,)), (1, (100,))]
    db.insert("bids", B)
    assert seen[2:] == [(-1, (100,)), (1, (150,))]


def test_a_subscription_that_was_ended_is_never_called(db: Database) -> None:
    """Not even with what was on its way when another callback ended it."""
    seen: list[object] = []

    def end_the_other(change: object) -> None:
        end()

    db.view("total").subscribe(end_the_other)
    end = db.view("total").subscribe(seen.append)
    db.insert("bids", A)
    assert seen == []


def test_to_end_a_subscription_twice_ends_no_other(db: Database) -> None:
    seen: list[object] = []
    first = db.view("total").subscribe(seen.append)
    second = db.view("total").subscribe(seen.append)
    first()
    first()
    db.insert("bids", A)
    assert len(seen) == 2
    second()
    db.insert("bids", B)
    assert len(seen) == 2


def test_one_of_two_views_is_no_longer_heard(db: Database) -> None:
    """Where rows are compared for the listeners, those of the view that nobody hears now are forgotten for good."""
    db.execute("CREATE MATERIALIZED VIEW most AS SELECT max(volume) AS volume FROM bids;")
    heard: list[tuple[int, tuple[object, ...]]] = []
    end = db.view("total").subscribe(lambda _: None)
    db.view("most").subscribe(heard.append)
    db.insert("bids", A)
    end()
    db.insert("bids", B)
    db.insert("bids", C)
    assert heard == [(-1, (None,)), (1, (100,)), (-1, (100,)), (1, (200,))]


def test_what_cannot_be_called_is_refused_at_once(db: Database) -> None:
    for given in ((None,), (5,), (print, "gone")):
        with pytest.raises(viewlet.Error, match="subscribe takes functions, the first to call with each change, not "):
            db.view("total").subscribe(*given)  # type: ignore[arg-type]


def test_a_view_that_is_replaced_tells_the_difference(db: Database) -> None:
    """At once: what listeners were told adds up to the view before the next update as after it."""
    seen: list[tuple[int, tuple[object, ...]]] = []
    db.insert("bids", [A, B])
    changes = db.view("total").changes()
    db.view("total").subscribe(seen.append)
    replace = "CREATE OR REPLACE MATERIALIZED VIEW total AS"
    db.execute(f"{replace} SELECT count(*) AS n FROM bids")
    assert seen == [(-1, (150,)), (1, (2,))]
    db.insert("bids", C)
    db.execute(f"{replace} SELECT id, volume FROM bids WHERE volume > 150; CREATE VIEW other AS SELECT 1 AS one")
    assert seen[2:] == [(-1, (2,)), (1, (3,)), (-1, (3,)), (1, C)]
    db.execute(f"{replace} SELECT id, volume FROM bids WHERE volume > 150")
    db.delete("bids", C)
    assert seen[6:] == [(-1, C)]
    assert list(changes) == seen
