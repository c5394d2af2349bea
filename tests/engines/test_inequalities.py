"""Random queries with inequalities over random streams: every engine equals the referee after every event.

Each example runs on all engines: two with the default strategy, which plans the ordered access paths, and one with
another in turn. It is also verified against its definition at the end, then emptied and filled again in batches.
Examples whose views all stay empty are rejected. The suite draws few queries of each family, always the same; for
thousands of others::

    python -m tests.engines.test_inequalities 5000 --seed 7 [--family joins]

draws until so many are accepted, and stops at the first failure with a small example.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

import viewlet
from tests.engines import conformance
from tests.engines.conformance import ENGINES, STRATEGIES, Case
from tests.engines.inequality_sql import Family, cases
from tests.engines.test_random_queries import Tally, agree, is_vacuous
from viewlet.workloads.streams import Event, Row

FAMILIES: tuple[Family, ...] = get_args(Family)
QUERIES = 4  # of each family
FLOOR = 0.4  # of the scripts drawn, so many must be different and say something
OTHERS = tuple(strategy for strategy in STRATEGIES if strategy != "optimized")


def prove(case: Case, tally: Tally) -> None:
    tally.drawn.add(case.views)
    answers = list(case.answers())
    assume(not all(is_vacuous([answer[view] for answer in answers]) for view in case.selects))
    tally.accepted.add(case.views)
    agree(case, answers, contestants(len(tally.accepted)))


def contestants(turn: int) -> list[tuple[str, str]]:
    """Every engine, one of them with a strategy other than the default."""
    other = OTHERS[turn // len(ENGINES) % len(OTHERS)]
    return [(engine, other if number == turn % len(ENGINES) else "optimized") for number, engine in enumerate(ENGINES)]


def property_test(examples: st.SearchStrategy[Case], queries: int, start: int, tally: Tally) -> Callable[[], None]:
    """The same examples for the same start. A failure shrinks for at most five minutes: hypothesis' own limit."""

    @seed(start)
    @settings(
        max_examples=queries,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    @given(examples)
    def check(case: Case) -> None:
        prove(case, tally)

    return check


@pytest.mark.parametrize("family", FAMILIES)
def test_random_inequalities_equal_the_referee(family: Family, seeded: int) -> None:
    tally = Tally()
    property_test(cases(family), QUERIES, 1 + seeded, tally)()
    assert len(tally.accepted) >= FLOOR * max(len(tally.drawn), QUERIES)


# -- keys without a number ---------------------------------------------------------------------------------------------

ODD_SCHEMA = """\
CREATE STREAM r (f DOUBLE NOT NULL, n BIGINT NOT NULL);
CREATE STREAM q (f DOUBLE, n BIGINT NOT NULL);
"""
ODD_KEYS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 2.5)
ODD_JOINS = (
    "r.f > q.f",
    "q.f >= r.f",
    "r.f <> q.f",
    "2 * r.f > q.f + 1",
    "r.f BETWEEN q.f - 1 AND q.f + 1",
    "r.f NOT BETWEEN q.f - 1 AND q.f + 1",
    "(r.f > q.f OR r.f < q.f - 1)",
)
ODD_QUERIES = (
    *(f"SELECT SUM(r.n) AS s, COUNT(*) AS c FROM r, q WHERE {condition}" for condition in ODD_JOINS),
    "SELECT SUM(a.n) AS s FROM r a WHERE (SELECT SUM(b.n) FROM r b WHERE b.f > a.f) < 3",
    "SELECT SUM(a.n) AS s FROM r a WHERE (SELECT SUM(b.n) FROM r b WHERE b.f <= a.f) >= 3",
    "SELECT SUM(a.n) AS s FROM r a WHERE (SELECT COUNT(*) FROM q b WHERE b.f >= a.f + 1) > 1",
)
NO_RANGES = (  # -NaN is the greatest, too; ∞ - ∞ and 0 · ∞ are NaN
    "r.f - q.f > 1",
    "q.f - r.f <= 1",
    "- r.f < q.f",
    "- r.f >= - q.f",
    "-2 * r.f > q.f + 1",
    "0 * r.f > q.f + 1",
    "r.f + q.f > q.f",
)


def odd_case(queries: Sequence[str], seed: int) -> Case:
    """A stream of rows whose keys are NaN, infinities and both zeros, and few others."""
    rng, live, events = Random(seed), list[tuple[str, Row]](), list[Event]()
    for _ in range(80):
        if rng.random() < len(live) / 24:
            events.append(("-", *live.pop(rng.randrange(len(live)))))
        else:
            live.append((rng.choice("rq"), (rng.choice(ODD_KEYS), rng.choice((1, 2, -1)))))
            events.append(("+", *live[-1]))
    views = "".join(f"CREATE MATERIALIZED VIEW v{number} AS {query};\n" for number, query in enumerate(queries))
    return Case(ODD_SCHEMA, views, {f"v{number}": query for number, query in enumerate(queries)}, events)


@pytest.mark.parametrize("half", [0, 1])
def test_nan_and_infinities_have_their_place_in_the_order(half: int) -> None:
    """NaN equals itself and is greater than all else."""
    watch = conformance.agree(odd_case(ODD_QUERIES[half::2], seed=1), [("native", "optimized")])
    for view in watch.values():
        view.check()


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_where_they_would_have_none_they_are_refused(odd: float) -> None:
    """A key that is subtracted is in no order once it is infinite or NaN; nothing changes, and the rest goes on."""
    selects = {f"v{i}": f"SELECT COUNT(*) AS c FROM r, q WHERE {condition}" for i, condition in enumerate(NO_RANGES)}
    views = "".join(f"CREATE MATERIALIZED VIEW {view} AS {select};\n" for view, select in selects.items())
    case = Case(ODD_SCHEMA, views, selects, [("+", "r", (0.5, 1)), ("+", "q", (-2.5, 1)), ("+", "q", (3.0, 2))])
    database = case.open("native", "optimized")
    for event, answer in zip(case.events, case.answers(), strict=True):
        conformance.apply_event(database, event)
        with pytest.raises(viewlet.Error, match="an infinity or NaN"):
            database.insert("r", (odd, 1))
        assert {view: database.view(view).rows() for view in selects} == answer


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Random inequalities against the referee, for as long as you like.")
    arguments.add_argument("queries", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--family", choices=FAMILIES)
    chosen = arguments.parse_args()
    families = st.just(chosen.family) if chosen.family else st.sampled_from(FAMILIES)
    total = Tally()
    for start in count(chosen.seed):
        if len(total.accepted) >= chosen.queries:
            break
        property_test(families.flatmap(cases), QUERIES, start, total)()
    print(f"{len(total.accepted)} scripts agree with the referee, of {len(total.drawn)} drawn")
