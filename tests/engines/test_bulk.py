"""A batch leaves every view as its events do one by one, however it is handed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from tests.engines.conformance import CONTESTANTS, WAYS, Case, apply_event, cut, deal_engines
from tests.engines.test_conformance import paper_case
from tests.oracle.oracle import Vacuity, difference
from viewlet.workloads.queries import PAPER_QUERIES
from viewlet.workloads.streams import Event

EVENTS = 200


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each query has the default strategy as machine code and two pairs in turn; ``make soak`` has all of them."""
    if "strategy" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--soak") > 1
        chosen = [
            (name, engine, strategy)
            for number, name in enumerate(PAPER_QUERIES)
            for engine, strategy in CONTESTANTS
            if whole or (engine, strategy) in (("native", "optimized"), *deal_engines(number)[number % 4 :][:2])
        ]
        metafunc.parametrize(("name", "engine", "strategy"), chosen)


def bulk_case(name: str) -> tuple[Case, list[Sequence[Event]]]:
    """A paper query, and its stream in batches of 0 to 15 events."""
    case = paper_case(name, "sql", seed=4, events=EVENTS)
    return case, list(cut(with_transients(case.events, Random(5)), Random(6), longest=15))


def with_transients(events: Sequence[Event], rng: Random) -> list[Event]:
    """The stream with rows in between that come once or twice and go at once."""
    busy: list[Event] = []
    for event in events:
        op, relation, row = event
        busy.append(event)
        if op == "+" and rng.random() < 0.2:
            times = rng.choice((1, 2))
            busy += [event] * times + [("-", relation, row)] * times
    return busy


def test_batches_equal_their_events_one_by_one(name: str, engine: str, strategy: str) -> None:
    case, batches = bulk_case(name)
    single = case.open(engine, strategy)
    bulk = {way: case.open(engine, strategy) for way in WAYS}
    watch = Vacuity()
    for batch in batches:
        for event in batch:
            apply_event(single, event)
        expected = single.view(name).rows()
        watch.watch(expected)
        for way, database in bulk.items():
            WAYS[way](database, batch)
            assert difference(database.view(name).rows(), expected) is None, (way, batch)
    watch.check()
    assert {way: database.verify(name) for way, database in bulk.items()} == {way: [] for way in WAYS}


@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_the_batches_hold_what_is_hard(name: str) -> None:
    """Empty batches, rows twice in one, rows that come and go within one, and relations mixed."""
    _, batches = bulk_case(name)
    counts = [Counter(batch) for batch in batches]
    assert [] in [list(batch) for batch in batches]
    assert any(n > 1 for count in counts for n in count.values())
    assert any(("-", relation, row) in count for count in counts for op, relation, row in count if op == "+")
    assert any(len({op for op, _, _ in batch}) == 2 for batch in batches)
