"""What the Rust program is given has the answer in it, and its rows read as those of the query."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench.differential.events import QUERIES, answered, numbers
from bench.engine.answers import answer, check
from bench.peers.workload import peers_workload


def test_the_cells_of_bids_are_brokers_and_worths() -> None:
    w = peers_workload("bsv", 400, 40)
    sums: Counter[int] = Counter()
    for op, relation, broker, worth, *_ in numbers(w).tolist():
        assert relation == 0
        sums[broker] += op * worth
    check(
        "the events", answered("bsv", [f"1 {broker} {sum_} 0 0" for broker, sum_ in sums.items()]), answer(w, w.stream)
    )


@pytest.mark.parametrize("query", ["q3", "q11", "q18"])
def test_every_event_is_there_with_its_key(query: str) -> None:
    w = peers_workload(query, 10_500)
    events, relations = numbers(w), list(QUERIES[query][0])
    assert (events[:, 0] == w.stream.ops).all()
    assert [relations[i] for i in events[:, 1]] == [w.stream.relations[code] for code in w.stream.codes]
    for number, name in enumerate(relations):
        mine = events[:, 1] == number
        keys = np.asarray(w.stream.tables[name][0])  # the first column, in every one of them
        assert (events[mine, 2] == keys[w.stream.places[mine]]).all()
