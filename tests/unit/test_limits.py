"""A sum that a user sees as it is may not leave its column's type: the update that would take it out is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

import viewlet
from viewlet import Database, OverflowError_
from viewlet.program.limits import limits

SCRIPT = """
CREATE STREAM r (k BIGINT NOT NULL, x BIGINT NOT NULL, n INTEGER, d DECIMAL(38,2));
CREATE TABLE rate (k BIGINT NOT NULL, f BIGINT NOT NULL);
CREATE MATERIALIZED VIEW by_k AS SELECT k, sum(x) AS total, count(*) AS rows FROM r GROUP BY k;
CREATE MATERIALIZED VIEW money AS SELECT sum(d) AS d, sum(x) + 0.5 AS shifted FROM r;
CREATE MATERIALIZED VIEW rated AS SELECT r.k, sum(r.n * rate.f) AS v FROM r, rate WHERE r.k = rate.k GROUP BY r.k;
"""
MOST, LEAST = 2**63 - 1, -(2**63)
MONEY = Decimal(10**36 - 1)


@pytest.fixture(params=["interpreter", "python"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with viewlet.connect(engine=request.param) as database:
        database.execute(SCRIPT)
        database.insert("r", [(1, MOST - 1, 2, None), (1, 1, None, MONEY), (2, LEAST, 1, None)])
        database.insert("r", [(1, 0, 3, None), (2, 1, None, None), (2, -1, None, None)])
        yield database


def state(db: Database) -> object:
    return (
        [sorted(db.view(v).rows()) for v in ("by_k", "money", "rated")],
        db.engine.table("r"),
        db.engine.table("rate"),
    )


UPDATES: dict[str, tuple[Callable[[Database], object], str]] = {
    "one row": (lambda db: db.insert("r", (1, 1, None, None)), f"by_k.total: {2**63} no longer fits BIGINT"),
    "below": (lambda db: db.insert("r", (2, -1, None, None)), f"by_k.total: {-(2**63) - 1} no longer fits BIGINT"),
    "by a delete": (lambda db: db.delete("r", (2, 1, None, None)), f"by_k.total: {-(2**63) - 1} no longer fits BIGINT"),
    "rows": (lambda db: db.insert("r", [(9, 1, None, None), (1, 5, None, None)]), f"by_k.total: {MOST + 5} "),
    "one of a batch": (
        lambda db: db.apply([("+", "r", (9, 1, 1, None)), ("+", "r", (1, 5, 1, None)), ("-", "r", (9, 1, 1, None))]),
        f"by_k.total: {MOST + 5} ",
    ),
    "a count": (lambda db: db.apply([(2**64, "r", (7, 0, None, None))]), f"by_k.rows: {2**64} "),
    "decimals": (lambda db: db.insert("r", (5, 0, None, Decimal(1))), f"money.d: {10**36} no longer fits DECIMAL"),
    "a static table": (lambda db: db.insert("rate", (1, MOST)), f"rated.v: {5 * MOST} no longer fits BIGINT"),
}  # fmt: skip


@pytest.mark.parametrize("case", UPDATES)
def test_an_update_that_would_leave_the_type_is_refused_whole(db: Database, case: str) -> None:
    update, why = UPDATES[case]
    before = state(db)
    with pytest.raises(OverflowError_) as caught:
        update(db)
    assert str(caught.value).startswith(why)
    assert state(db) == before
    db.insert("r", (2, 7, 1, None))
    assert [db.verify(v) for v in ("by_k", "money", "rated")] == [[], [], []]


def test_what_is_out_of_its_type_only_on_the_way_is_taken(db: Database) -> None:
    """The rows of one list are one update: their order says nothing."""
    db.insert("r", [(1, 5, None, None), (1, -5, None, None), (2, -1, None, None), (2, 1, None, None)])
    assert db.view("by_k").get(k=1) == (1, MOST, 5)


def test_a_view_that_could_not_be_shown_is_not_made(db: Database) -> None:
    db.insert("r", (3, 1, None, None))
    before = state(db)
    with pytest.raises(OverflowError_, match=r"^everything\.x: "):
        db.execute("CREATE MATERIALIZED VIEW everything AS SELECT sum(x * x) AS x FROM r;")
    assert state(db) == before


def test_limits_are_those_of_the_columns_that_show_a_sum() -> None:
    by_view = limits(viewlet.compile(SCRIPT))
    assert {limit.column: limit.units(0) for limit in by_view.values()} == {
        "by_k.total": (LEAST, MOST),
        "by_k.rows": (LEAST, MOST),
        "money.d": (-(10**36 - 1), 10**36 - 1),
        "rated.v": (LEAST, MOST),
    }
    assert [limit.units(3) for limit in by_view.values() if limit.column == "money.d"] == [
        (-(10**39 - 10), 10**39 - 10)
    ]
