"""The views of SSB and Nexmark equal DuckDB's after every event, on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import viewlet
from tests.engines.conformance import ENGINES, Case, agree
from tests.oracle.oracle import Row
from viewlet.workloads import nexmark, ssb
from viewlet.workloads.bulk import BulkStream
from viewlet.workloads.queries import WorkloadQuery

DISTINCT = ("q15", "q16")  # eight distinct counts each, over which DuckDB takes ten times longer than over the others
BY_SELLER = "q6"  # q4 by another column: a third of the machine code of all the others together


def case(queries: Sequence[WorkloadQuery], static: Mapping[str, Sequence[Row]], stream: BulkStream) -> Case:
    """All views in one script: they share what they keep."""
    selects = {query.name: query.referee() for query in queries}
    return Case(queries[0].schema, "".join(query.sql() for query in queries), selects, list(stream.events()), static)


SSB = case(list(ssb.SSB_QUERIES.values()), ssb.STATIC, ssb.stream(9, 200, scale=0.0001, live=20, asked=0.85))
AUCTIONS = nexmark.stream(3, 200, live=4)
REST = [q for name, q in nexmark.NEXMARK_QUERIES.items() if name not in (*DISTINCT, BY_SELLER)]
NEXMARK = case(REST, nexmark.STATIC, AUCTIONS)
SELLERS = case([nexmark.NEXMARK_QUERIES[BY_SELLER]], nexmark.STATIC, AUCTIONS)
COUNTS = case([nexmark.NEXMARK_QUERIES[name] for name in DISTINCT], nexmark.STATIC, AUCTIONS.between(0, 40))


@pytest.mark.parametrize(
    ("case", "engines"),
    [
        pytest.param(SSB, ENGINES, id="ssb"),
        pytest.param(NEXMARK, ("python", "native"), id="nexmark"),  # the interpreter goes over all bids all the time
        pytest.param(SELLERS, ("python",), id="nexmark-sellers"),
        pytest.param(COUNTS, ("python", "native"), id="nexmark-distinct"),
    ],
)
def test_every_view_equals_the_referee_after_every_event(case: Case, engines: Sequence[str]) -> None:
    for watch in agree(case, [(engine, "optimized") for engine in engines]).values():
        watch.check()


@pytest.mark.parametrize("case", [SSB, NEXMARK], ids=["ssb", "nexmark"])
def test_rows_come_and_go_on_every_stream(case: Case) -> None:
    streams = {r.name for r in viewlet.compile(case.schema).relations if not r.static}
    assert {event[:2] for event in case.events} == {(op, name) for op in "+-" for name in streams}
