"""The views that the rows of a SQL view are read off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from viewlet.algebra.query import Query, View, children, outputs
from viewlet.program.trigger import Result


@dataclass(frozen=True)
class Source:
    """A view that the rows of a result are read off; ``shared``: variables of the rows ↦ where it has them."""

    view: str
    shared: Mapping[str, int]


def sources(result: Result) -> Iterator[Source]:
    """Of a query that is more than a view, what changes may be in every row that agrees in what the query gives."""
    keys = frozenset() if result.rows is None else outputs(result.rows)
    for query in result.reads:
        given = keys & outputs(query)
        for view in _views(query):
            yield Source(view.name, {v: i for i, v in enumerate(view.outputs) if v in given})


def _views(query: Query) -> Iterator[View]:
    if isinstance(query, View):
        yield query
    for child in children(query):
        yield from _views(child)
