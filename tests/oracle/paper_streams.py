"""The paper's queries with streams fit to test them: few live rows, all thresholds straddled, deletes everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from viewlet.workloads.queries import FINANCE, PaperQuery
from viewlet.workloads.streams import NATION, TPCH_STREAMS, Event, Row, order_book, tpch


def small_stream(query: PaperQuery, seed: int, events: int) -> Iterator[Event]:
    """Events on the streams that ``query`` reads, with rows that stand twice and, for the book, relations run empty."""
    if query.schema == FINANCE:
        return order_book(seed, events, brokers=3, live=12, sides=query.relations, duplicates=0.05, session=150)
    return tpch(seed, events, live=12, relations=query.relations, duplicates=0.05, delete_from=TPCH_STREAMS)


def static_rows(query: PaperQuery) -> dict[str, tuple[Row, ...]]:
    """What to load before the first event."""
    return {"nation": NATION} if "nation" in query.relations else {}
