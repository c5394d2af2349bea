"""The paper's twelve queries equal DuckDB after every event: every strategy on every engine.

The engines that users have come first, then every strategy in turn; ``make soak`` has all pairs, and longer streams.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engines.conformance import Case, Disagreement, agree, chosen_contestants
from tests.oracle.oracle import Vacuous
from tests.oracle.paper_streams import small_stream, static_rows
from viewlet.compilation import Dialect
from viewlet.workloads.queries import PAPER_QUERIES

EVENTS = 250


def paper_case(name: str, dialect: Dialect, seed: int, events: int = EVENTS) -> Case:
    query = PAPER_QUERIES[name]
    stream = list(small_stream(query, seed, events))
    selects = {name: query.referee(dialect)}
    static = static_rows(query)
    return Case(query.schema, query.sql(dialect), selects, stream, static, dialect, as_users_have_it=dialect == "sql")


@pytest.mark.parametrize("dialect", ["sql", "paper"])
@pytest.mark.parametrize("name", PAPER_QUERIES)
def test_a_paper_query_equals_the_referee_after_every_event(name: str, dialect: Dialect, soaking: bool) -> None:
    events = 2 * EVENTS if soaking else EVENTS
    case = paper_case(name, dialect, seed={"sql": 1, "paper": 2}[dialect], events=events)
    assert len(case.events) == events
    assert {op for op, _, _ in case.events} == {"+", "-"}
    turn = list(PAPER_QUERIES).index(name)
    agree(case, chosen_contestants(turn, soaking))[name].check()


def test_a_wrong_answer_is_named() -> None:
    case = paper_case("q11", "sql", seed=3, events=20)
    lie = replace(case, selects={"q11": case.selects["q11"].replace("*", "+")})
    with pytest.raises(Disagreement, match=r"q11 by interpreter/reevaluate after event \d+ \('\+', 'partsupp', .*ours"):
        agree(lie)


def test_a_stream_that_proves_nothing_is_rejected() -> None:
    case = paper_case("q11", "sql", seed=3)
    watch = agree(replace(case, events=[event for event in case.events if event[1] == "supplier"]))
    with pytest.raises(Vacuous):
        watch["q11"].check()
